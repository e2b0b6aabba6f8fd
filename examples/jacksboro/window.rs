//! With a window: a flying camera, and hands that break and place blocks.

use crate::arguments::Arguments;
use crate::palette::Palette;
use crate::view::{self, Viewpoints};
use bevy_egui::PrimaryEguiContext;
use bevy_egui::input::{egui_wants_any_keyboard_input, egui_wants_any_pointer_input};
use bevy_terrane::prelude::*;
use terrane_dev::{FlyCamera, FlySystems};

/// The reach of the hands, in blocks.
const REACH: f64 = 200.0;

/// Lets the player fly, dig and build.
pub struct HandsPlugin;

impl Plugin for HandsPlugin {
    fn build(&self, app: &mut App) {
        let is_free = not(egui_wants_any_keyboard_input).and_then(not(egui_wants_any_pointer_input));
        app.add_systems(Startup, spawn_camera)
            .add_systems(Update, use_hands.run_if(not(egui_wants_any_pointer_input)))
            .configure_sets(Update, FlySystems.run_if(is_free));
    }
}

/// Spawns the camera, which is the viewer that keeps the land around it loaded.
fn spawn_camera(
    mut commands: Commands,
    dimensions: Res<Dimensions>,
    arguments: Res<Arguments>,
    viewpoints: Res<Viewpoints>,
) {
    let radius = arguments.radius;
    commands.spawn((
        view::camera(radius as f32 * 16.0 * 0.97),
        viewpoints.by_the_lake,
        FlyCamera { speed: 40.0 },
        Viewer::in_dimension(dimensions.id(view::DIMENSION)).with_radius(radius),
        PrimaryEguiContext,
    ));
}

/// Breaks or places the block under the pointer.
fn use_hands(
    mouse: Res<ButtonInput<MouseButton>>,
    keys: Res<ButtonInput<KeyCode>>,
    window: Single<&Window>,
    camera: Single<(&Camera, &GlobalTransform)>,
    dimensions: Res<Dimensions>,
    blocks: PublishedBlocks,
    palette: Res<Palette>,
    mut edits: MessageWriter<SetBlock>,
) {
    let breaks = mouse.just_pressed(MouseButton::Left);
    let places = mouse.just_pressed(MouseButton::Middle) || keys.just_pressed(KeyCode::KeyR);
    if !(breaks || places) {
        return;
    }
    let dimension = dimensions.id(view::DIMENSION);
    let (camera, transform) = *camera;
    let ray = window.cursor_position().and_then(|cursor| camera.viewport_to_world(transform, cursor).ok());
    let Some(ray) = ray else { return };
    let eye = Position::from_translation(dimension, ray.origin);
    let Some(hit) = blocks.cast_ray(eye, ray.direction, REACH, |block| block != BlockId::AIR) else { return };
    // Landmarks cannot be broken, because the next run checks them.
    let is_landmark = blocks.block(dimension, hit.block).is_some_and(|block| palette.is_landmark(block));
    if breaks && !is_landmark {
        edits.write(SetBlock { dimension, position: hit.block, block: BlockId::AIR });
    }
    if places {
        edits.write(SetBlock { dimension, position: hit.before(), block: palette.stone });
    }
}
