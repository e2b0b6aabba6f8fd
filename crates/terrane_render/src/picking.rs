//! Bevy's pointer events on blocks.

use super::systems::SeenDimension;
use crate::chunk_meshes::RenderOrigin;
use bevy::picking::PickingSystems;
use bevy::picking::backend::ray::RayMap;
use bevy::picking::backend::{HitData, PointerHits};
use bevy::prelude::*;
use bevy_terrane::block::{BlockId, BlockShape, BlockType};
use bevy_terrane::simulation::{BlockTypes, Position};
use bevy_terrane::space::Face;
use bevy_terrane::view::{DimensionOpen, PublishedBlocks};

/// Sends Bevy's pointer events, such as `Pointer<Move>` and `Pointer<Click>`, to the dimension's entity if the pointer is over a block
/// that is drawn. Add it after `DefaultPlugins`.
///
/// The event's `hit` has the position in the space of what is drawn, the normal of the face, and the distance. Its
/// [`extra_as`](HitData::extra_as) has the [`RayHit`](bevy_terrane::chunk::RayHit). A mesh, a sprite or a node of the user interface in front of
/// the block gets the event instead, if its own backend is used.
///
/// All blocks of a dimension share its entity, so `Pointer<Over>` and `Pointer<Out>` happen where the pointer reaches the first block and
/// leaves the last one. `Pointer<Move>` tells one block from the next.
///
/// ```no_run
/// use bevy::prelude::*;
/// use bevy_terrane::chunk::RayHit;
/// use bevy_terrane::prelude::*;
/// use terrane_render::BlockPickingPlugin;
/// use bevy_terrane::view::DimensionOpen;
///
/// /// Removes the block that is clicked.
/// fn dig(click: On<Pointer<Click>>, dimensions: Query<&DimensionOpen>, mut edits: MessageWriter<SetBlock>) {
///     if let (Ok(open), Some(hit)) = (dimensions.get(click.entity), click.hit.extra_as::<RayHit>()) {
///         edits.write(SetBlock { dimension: open.id, position: hit.block, block: BlockId::AIR });
///     }
/// }
///
/// # let mut app = App::new();
/// app.add_plugins(BlockPickingPlugin::default()).add_systems(Startup, |mut commands: Commands| {
///     commands.spawn(Dimension::new("overworld", Hills::seeded(42))).observe(dig);
/// });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BlockPickingPlugin {
    /// The maximum distance from the camera's near plane, in blocks; 100 by default.
    pub reach: f32,
    /// The types that the pointer hits; by default all but liquids. Others let it pass.
    pub is_picked: fn(&BlockType) -> bool,
}

impl Default for BlockPickingPlugin {
    fn default() -> Self {
        Self { reach: 100.0, is_picked: |block| !matches!(block.shape(), BlockShape::Liquid { .. }) }
    }
}

impl Plugin for BlockPickingPlugin {
    fn build(&self, app: &mut App) {
        let Self { reach, is_picked } = *self;
        let pick = move |seen: SeenDimension,
                         (rays, origin): (Option<Res<RayMap>>, Res<RenderOrigin>),
                         cameras: Query<&Camera>,
                         open: Query<(Entity, &DimensionOpen)>,
                         (blocks, types): (PublishedBlocks, Res<BlockTypes>),
                         mut hits: MessageWriter<PointerHits>| {
            for (of, ray) in rays.iter().flat_map(|rays| rays.iter()) {
                let (Some(dimension), Ok(camera)) = (seen.by(of.camera), cameras.get(of.camera)) else { continue };
                let Some((entity, _)) = open.iter().find(|(_, open)| open.id == dimension) else { continue };
                let mut from = Position { dimension, block: origin.0, offset: Vec3::ZERO };
                from.translate(ray.origin);
                let is_wanted = |block| block != BlockId::AIR && is_picked(types.block(block));
                let Some(hit) = blocks.cast_ray(from, ray.direction, reach.into(), is_wanted) else { continue };
                let depth = hit.distance as f32;
                let normal = hit.face.map(Face::normal).map(|[x, y, z]| Vec3::new(x as f32, y as f32, z as f32));
                let data = HitData::new_with_extra(of.camera, depth, Some(ray.get_point(depth)), normal, hit);
                hits.write(PointerHits::new(of.pointer, vec![(entity, data)], camera.order as f32));
            }
        };
        app.init_resource::<RenderOrigin>().add_systems(PreUpdate, pick.in_set(PickingSystems::Backend));
    }
}
