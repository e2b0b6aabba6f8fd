//! A world to fly over and to dig in: the first game of the README.

use bevy_terrane::prelude::*;
use terrane_dev::{DevPlugins, FlyCamera, SkyPlugin};
use terrane_render::ChunkRenderPlugin;

fn main() -> AppExit {
    App::new()
        .add_plugins((DevPlugins::new("first_world"), SkyPlugin::default())) // Bevy, a window, a flying camera
        .add_plugins((TerranePlugin::default(), ChunkRenderPlugin::default())) // the world is the folder `world`
        .add_systems(Startup, start)
        .add_systems(Update, dig)
        .run()
}

fn start(mut commands: Commands, dimensions: Res<Dimensions>) {
    commands.spawn(Dimension::new("overworld", Hills::seeded(42)));
    let viewer = Viewer::in_dimension(dimensions.id("overworld")).with_radius(16);
    let view = Transform::from_xyz(0.0, 70.0, 0.0).looking_to(Vec3::new(0.6, -0.35, 1.0), Vec3::Y);
    commands.spawn((FlyCamera::default(), viewer, view));
}

/// The left button removes the block in the middle of the view, the middle button puts a block of stone in front of it.
fn dig(
    mouse: Res<ButtonInput<MouseButton>>,
    camera: Single<&Transform, With<Viewer>>,
    (blocks, types, dimensions): (PublishedBlocks, Res<BlockTypes>, Res<Dimensions>),
    mut edits: MessageWriter<SetBlock>,
) {
    let dimension = dimensions.id("overworld");
    let eye = Position::from_translation(dimension, camera.translation);
    let Some(hit) = blocks.cast_ray(eye, camera.forward(), 100.0, |block| block != BlockId::AIR) else { return };
    if mouse.just_pressed(MouseButton::Left) {
        edits.write(SetBlock { dimension, position: hit.block, block: BlockId::AIR });
    } else if mouse.just_pressed(MouseButton::Middle) {
        let block = types.id("terrane:stone").unwrap_or_default();
        edits.write(SetBlock { dimension, position: hit.before(), block });
    }
}
