//! [`BlockMesh`]: a single block of the main world, such as an item, a hand or a falling block.

use super::back_to_front::Blended;
use super::looks::LooksInUse;
use super::material::ChunkMaterials;
use super::mesher;
use super::quad_memory::{QuadMemory, QuadRange};
use super::quads::{CornerLight, Quad, evenly_lit};
use super::{PlaceLight, RenderMode};
use bevy::light::NotShadowCaster;
use bevy::mesh::MeshTag;
use bevy::prelude::*;
use bevy_terrane::block::BlockId;
use bevy_terrane::simulation::BlockTypes;

/// Draws one block, with its look and all its faces. Its lowest corner is at the entity's origin, and it is one unit wide: use the
/// `Transform` to move, turn and scale it. It is drawn in the [light of the place](PlaceLight) where its middle is; a block that
/// [shines](bevy_terrane::block::BlockType::with_light) is lit by itself too.
///
/// The plugin inserts `Mesh3d`, `MeshTag`, `MeshMaterial3d` and `Aabb`, and updates them when the block or its look changes.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "terrane_render"]
#[reflect(opaque)]
#[reflect(Component, Clone)]
#[require(Transform, Visibility, PlaceLight = PlaceLight::at(Vec3::splat(0.5)))]
pub struct BlockMesh(pub BlockId);

/// The quads of a [`BlockMesh`].
#[derive(Component)]
pub(super) struct BlockQuads {
    /// Under the open sky.
    quads: Vec<Quad>,
    range: Option<QuadRange>,
    /// The version of the looks that they have.
    version: u64,
}

/// Makes the meshes of new and changed blocks.
pub(super) fn mesh_blocks(
    blocks: Query<(Entity, Ref<BlockMesh>, &PlaceLight, Option<&BlockQuads>)>,
    (looks, types): (Res<LooksInUse>, Res<BlockTypes>),
    materials: Res<ChunkMaterials>,
    mut memory: ResMut<QuadMemory>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut commands: Commands,
) {
    let Some((table, version)) = looks.table() else { return };
    for (entity, block, light, quads) in &blocks {
        if quads.is_some_and(|quads| quads.version == version) && !block.is_changed() {
            continue;
        }
        // A look has one mode, and so all quads of a block do.
        let meshed = mesher::mesh_block(block.0, table);
        let of_mode = meshed
            .and_then(|meshed| RenderMode::ALL.into_iter().zip(meshed).find(|(_, quads)| !quads.quads.is_empty()));
        let light = light.corner(types.block(block.0).light());
        let shown = of_mode.as_ref().map(|(_, quads)| lit(&quads.quads, light)).unwrap_or_default();
        let range = of_mode.as_ref().and_then(|_| memory.store(&shown));
        let mut entity = commands.entity(entity);
        let mut unlit = Vec::new();
        match (of_mode, &range) {
            (Some((mode, quads)), Some(range)) => {
                let mesh = Mesh3d(memory.mesh(range, &mut meshes));
                entity.try_insert((
                    mesh,
                    MeshTag(range.first),
                    quads.aabb(),
                    MeshMaterial3d(materials.of(mode).clone()),
                ));
                match quads.order {
                    Some(order) => {
                        entity.try_insert((NotShadowCaster, Blended::new(shown, order, range.first)));
                    }
                    None => {
                        entity.try_remove::<(NotShadowCaster, Blended)>();
                    }
                }
                unlit = quads.quads;
            }
            _ => {
                entity.try_remove::<(Mesh3d, Blended)>();
            }
        }
        entity.try_insert(BlockQuads { quads: unlit, range, version });
    }
}

fn lit(quads: &[Quad], light: CornerLight) -> Vec<Quad> {
    quads.iter().map(|quad| evenly_lit(*quad, light)).collect()
}

/// Changes the light of blocks whose place has another light.
pub(super) fn relight_blocks(
    mut blocks: Query<(&BlockMesh, &PlaceLight, &BlockQuads, Option<&mut Blended>), Changed<PlaceLight>>,
    types: Res<BlockTypes>,
    memory: Res<QuadMemory>,
) {
    for (block, light, BlockQuads { quads, range, .. }, blended) in &mut blocks {
        let lit = lit(quads, light.corner(types.block(block.0).light()));
        match (blended, range) {
            (Some(mut blended), _) => blended.replace(lit),
            (None, Some(range)) => memory.overwrite(range.first, &lit),
            (None, None) => {}
        }
    }
}

/// A block that is not drawn any more shows nothing, and gives its quads back.
pub(super) fn remove_mesh(removed: On<Remove, BlockMesh>, mut commands: Commands) {
    commands.entity(removed.entity).try_remove::<(BlockQuads, Blended, Mesh3d)>();
}
