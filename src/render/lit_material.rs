//! [`LitMaterial`]: a `StandardMaterial` in the light of its place.

use super::systems::daylight;
use super::{PlaceLight, SeenDimension};
use crate::view::PublishedColumns;
use bevy::asset::embedded_asset;
use bevy::mesh::MeshTag;
use bevy::pbr::{ExtendedMaterial, MaterialExtension, MaterialPlugin};
use bevy::prelude::*;
use bevy::render::render_resource::AsBindGroup;
use bevy::shader::{ShaderRef, load_shader_library};
use std::mem;

/// A `StandardMaterial` for mobs, items and other meshes of a game, which are lit as the blocks around them: the game's lights reach
/// them as far as the light of the sky does, and the light of blocks is added. Any number of entities can share one.
///
/// An entity with this material has a [`PlaceLight`]. Its `MeshTag` tells the shader of the light, so it cannot have a tag of its own.
///
/// ```
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::render::{LitExtension, LitMaterial};
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
#[type_path = "bevy_terrane"]
pub struct LitExtension {}

impl MaterialExtension for LitExtension {
    fn fragment_shader() -> ShaderRef {
        "embedded://bevy_terrane/render/shaders/lit.wgsl".into()
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
