//! Rain: an extension of the material of all chunks.

use bevy::pbr::{ExtendedMaterial, MaterialExtension};
use bevy::prelude::*;
use bevy::render::render_resource::AsBindGroup;
use bevy::shader::ShaderRef;
use terrane_render::{ChunkMaterial, ChunkMaterialExtensionPlugin};

/// How wet the blocks are.
#[derive(Asset, AsBindGroup, Clone, TypePath)]
struct Wet {
    #[uniform(110)]
    wetness: f32,
}

impl MaterialExtension for Wet {
    fn fragment_shader() -> ShaderRef {
        "shaders/wet.wgsl".into()
    }
}

/// `true` while it rains.
#[derive(Resource, Default)]
pub struct Rain(pub bool);

/// Adds the rain. R turns it on and off.
pub fn add(app: &mut App) {
    app.init_resource::<Rain>()
        .add_plugins(ChunkMaterialExtensionPlugin(Wet { wetness: 0.0 }))
        .add_systems(Update, rain);
}

fn rain(
    keys: Res<ButtonInput<KeyCode>>,
    mut rain: ResMut<Rain>,
    mut materials: ResMut<Assets<ExtendedMaterial<ChunkMaterial, Wet>>>,
) {
    if keys.just_pressed(KeyCode::KeyR) {
        rain.0 = !rain.0;
    }
    if rain.is_changed() {
        materials.iter_mut().for_each(|(_, material)| material.extension.wetness = if rain.0 { 1.0 } else { 0.0 });
    }
}
