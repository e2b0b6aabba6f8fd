//! [`PlaceLight`]: the light of the place where an entity is, and [`LitMaterial`]: a `StandardMaterial` in it.

use super::SeenDimension;
use super::quads::{CornerLight, corner_light};
use crate::chunk_meshes::RenderOrigin;
use crate::systems::daylight;
use bevy::asset::embedded_asset;
use bevy::mesh::MeshTag;
use bevy::pbr::{ExtendedMaterial, MaterialExtension, MaterialPlugin};
use bevy::prelude::*;
use bevy::render::render_resource::AsBindGroup;
use bevy::shader::{ShaderRef, load_shader_library};
use bevy_terrane::light::Light;
use bevy_terrane::simulation::Position;
use bevy_terrane::space::{BlockPos, ColumnPos, DimensionId, Face};
use bevy_terrane::view::{ColumnChanged, FollowedBodies, PublishedBlocks, PublishedColumns};
use rustc_hash::FxHashSet;
use std::mem;

/// The light of the place where an entity is shown. The plugin changes it as the entity moves and as the light of its place
/// changes, and leaves it alone otherwise: use `Changed<PlaceLight>`. The entity has a `Transform`: a mirror, a part of it, or what the
/// game itself moves.
///
/// A [`BlockMesh`](super::BlockMesh) has one, and is drawn in that light. So is a mesh with a [`LitMaterial`](super::LitMaterial). Add it to
/// meshes with other materials, to adapt them:
///
/// ```
/// use bevy_terrane::prelude::*;
/// use terrane_render::PlaceLight;
///
/// fn shade(
///     bodies: Query<(&PlaceLight, &MeshMaterial3d<StandardMaterial>), Changed<PlaceLight>>,
///     mut materials: ResMut<Assets<StandardMaterial>>,
/// ) {
///     for (light, material) in &bodies {
///         if let Some(mut material) = materials.get_mut(&material.0) {
///             let [sky, block] = light.brightness();
///             material.base_color = Color::linear_rgb(sky, sky, sky);
///             material.emissive = LinearRgba::rgb(block, 0.8 * block, 0.5 * block);
///         }
///     }
/// }
/// # bevy::ecs::system::assert_is_system(shade);
/// ```
///
/// The dimension is that of the body that the entity follows: the [`Mirror`](bevy_terrane::view::Mirror) or [`OwnBody`](bevy_terrane::view::OwnBody)
/// that it is, or the nearest of its parents. Other entities are in the dimension that the first camera [sees](SeenDimension).
#[derive(Component, Clone, Copy, Debug, PartialEq, Reflect)]
#[type_path = "terrane_render"]
#[require(Transform)]
#[reflect(Component, Clone, Default)]
pub struct PlaceLight {
    /// The light of the sky, 0 to 15, as by day. Until the light is known it is that of the open sky.
    pub sky: u8,
    /// The light of blocks, 0 to 15.
    pub block: u8,
    /// The point whose light counts, in the entity's own space.
    point: Vec3,
    /// The cell whose light this is.
    #[reflect(ignore)]
    cell: Option<(DimensionId, BlockPos)>,
}

impl Default for PlaceLight {
    /// The light half a block above the entity's origin, such as the feet of a body.
    fn default() -> Self {
        Self::at(Vec3::new(0.0, 0.5, 0.0))
    }
}

impl PlaceLight {
    /// The light at this point of the entity's own space.
    pub const fn at(point: Vec3) -> Self {
        let [sky, block] = Light::OPEN_SKY;
        Self { sky, block, point, cell: None }
    }

    /// How bright the light of the sky and the light of blocks are, each from 0 to 1, as on chunks.
    pub fn brightness(&self) -> [f32; 2] {
        [self.sky, self.block].map(|level| f32::from(level) / (60.0 - 3.0 * f32::from(level)))
    }

    /// The light for the corners of quads of a block that has some light itself.
    pub(super) fn corner(&self, own: u8) -> CornerLight {
        corner_light([self.sky, self.block.max(own)])
    }
}

/// Finds the light of entities that have moved to another cell, and of those in columns that have changed.
pub(super) fn light_places(
    mut places: Query<(Entity, &GlobalTransform, &mut PlaceLight)>,
    (blocks, published): (PublishedBlocks, Res<PublishedColumns>),
    mut changes: MessageReader<ColumnChanged>,
    (seen, bodies): (SeenDimension, FollowedBodies),
    origin: Res<RenderOrigin>,
) {
    let changed: FxHashSet<_> = changes.read().map(|change| (change.dimension, change.column)).collect();
    if !published.has_light() || places.is_empty() {
        return;
    }
    let seen = seen.id();
    for (entity, transform, mut light) in &mut places {
        let body = bodies.position(entity).map(|body| body.dimension);
        let Some(dimension) = body.or(seen) else { continue };
        let mut place = Position { dimension, block: origin.0, offset: Vec3::ZERO };
        place.translate(transform.transform_point(light.point));
        let cell = (dimension, place.block);
        if light.cell == Some(cell) && !may_have_changed(cell, &changed) {
            continue;
        }
        let levels = light_in_front(&blocks, cell);
        light.bypass_change_detection().cell = levels.map(|_| cell);
        if let Some([sky, block]) = levels
            && (light.sky, light.block) != (sky, block)
        {
            (light.sky, light.block) = (sky, block);
        }
    }
}

/// Returns `true` if the column of a cell has changed, or one of those beside the cell.
fn may_have_changed((dimension, cell): (DimensionId, BlockPos), changed: &FxHashSet<(DimensionId, ColumnPos)>) -> bool {
    !changed.is_empty()
        && [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]
            .into_iter()
            .any(|(x, z)| changed.contains(&(dimension, cell.offset(x, 0, z).column())))
}

/// The light of a cell. What is in an opaque block is in the brightest light around it; `None` if it is not known.
fn light_in_front(blocks: &PublishedBlocks, (dimension, cell): (DimensionId, BlockPos)) -> Option<[u8; 2]> {
    let levels = |cell| blocks.light(dimension, cell).map(|light| [light.sky, light.block]);
    let here = levels(cell)?;
    if here != [0, 0] || !blocks.is_opaque(dimension, cell) {
        return Some(here);
    }
    let around = Face::ALL.into_iter().filter_map(|face| {
        let [x, y, z] = face.normal();
        levels(cell.offset(x, y, z))
    });
    around.reduce(|one, other| [one[0].max(other[0]), one[1].max(other[1])])
}

/// A `StandardMaterial` for mobs, items and other meshes of a game, which are lit as the blocks around them: the game's lights reach
/// them as far as the light of the sky does, and the light of blocks is added. Any number of entities can share one.
///
/// An entity with this material has a [`PlaceLight`]. Its `MeshTag` tells the shader of the light, so it cannot have a tag of its own.
///
/// ```
/// use bevy_terrane::prelude::*;
/// use terrane_render::{LitExtension, LitMaterial};
///
/// fn give_bodies(
///     mut commands: Commands,
///     new: Query<Entity, Added<Mirror>>,
///     (mut meshes, mut materials): (ResMut<Assets<Mesh>>, ResMut<Assets<LitMaterial>>),
/// ) {
///     for mirror in &new {
///         let material = LitMaterial { base: Color::WHITE.into(), extension: LitExtension::default() };
///         let body = (Mesh3d(meshes.add(Cuboid::from_length(0.8))), MeshMaterial3d(materials.add(material)));
///         commands.entity(mirror).insert((body, Transform::default()));
///     }
/// }
/// # bevy::ecs::system::assert_is_system(give_bodies);
/// ```
pub type LitMaterial = ExtendedMaterial<StandardMaterial, LitExtension>;

/// The part of a [`LitMaterial`] that reads the light.
#[derive(Asset, AsBindGroup, Clone, Debug, Default, TypePath)]
#[type_path = "terrane_render"]
pub struct LitExtension {}

impl MaterialExtension for LitExtension {
    fn fragment_shader() -> ShaderRef {
        "embedded://terrane_render/shaders/lit.wgsl".into()
    }
}

/// Adds the material and its shaders.
pub(super) fn add(app: &mut App) {
    load_shader_library!(app, "shaders/light.wgsl");
    embedded_asset!(app, "shaders/lit.wgsl");
    app.add_plugins(MaterialPlugin::<LitMaterial>::default())
        .register_required_components::<MeshMaterial3d<LitMaterial>, PlaceLight>()
        .register_required_components::<MeshMaterial3d<LitMaterial>, MeshTag>();
}

/// Tells the shader of light that has changed.
pub(super) fn tag_lit_meshes(
    mut meshes: Query<(Ref<PlaceLight>, &mut MeshTag), With<MeshMaterial3d<LitMaterial>>>,
    published: Res<PublishedColumns>,
    seen: SeenDimension,
    mut last: Local<f32>,
) {
    let daylight = daylight(&published, seen.id());
    let is_other = mem::replace(&mut *last, daylight) != daylight;
    for (light, mut tag) in &mut meshes {
        if is_other || light.is_changed() {
            tag.set_if_neq(MeshTag(tag_of(&light, daylight)));
        }
    }
}

/// The brightness of both lights in a byte each, as `lit.wgsl` reads them. Daylight outshines the light of blocks.
fn tag_of(light: &PlaceLight, daylight: f32) -> u32 {
    /// As in `chunk.wgsl`.
    const OUTSHONE: f32 = 0.85;
    let [sky, block] = light.brightness();
    let byte = |part: f32| (part * 255.0).round() as u32;
    byte(sky) | byte(block * (1.0 - OUTSHONE * sky * daylight)) << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_the_brightness_of_both_lights() {
        let of = |sky, block, daylight| {
            let mut light = PlaceLight::default();
            (light.sky, light.block) = (sky, block);
            tag_of(&light, daylight).to_le_bytes()
        };
        assert_eq!(of(15, 0, 1.0), [255, 0, 0, 0]);
        assert_eq!(of(0, 15, 1.0), [0, 255, 0, 0]);
        assert_eq!(of(15, 15, 0.0), [255, 255, 0, 0], "at night nothing outshines a torch");
        assert_eq!(of(15, 15, 1.0), [255, 38, 0, 0]);
        assert_eq!(of(0, 0, 1.0), [0; 4]);
    }
}
