//! The camera, and the bodies of the bots.

use crate::bodies::Part;
use crate::coliseum::DIMENSION;
use crate::fight::Bot;
use bevy_terrane::prelude::*;
use std::f32::consts::TAU;
use terrane_dev::haze;

/// The position of the camera, in blocks.
const AWAY: f32 = 92.0;
const HEIGHT: f32 = 62.0;
/// Turns per second, with a window.
const SPEED: f32 = 0.06;

fn place(turn: f32) -> Transform {
    let direction = Quat::from_rotation_y(turn) * Vec3::new(0.45, 0.0, 0.9);
    Transform::from_translation(direction * AWAY + Vec3::Y * HEIGHT).looking_at(Vec3::new(0.0, 2.0, 0.0), Vec3::Y)
}

/// A camera, and a viewer that keeps the arena loaded.
pub fn spawn_camera(mut commands: Commands, dimensions: Res<Dimensions>) {
    commands.spawn((Camera3d::default(), haze(250.0..1_000.0), place(0.0)));
    commands.spawn((Viewer::in_dimension(dimensions.id(DIMENSION)).with_radius(8), Transform::default()));
}

/// Flies slowly around the arena.
pub fn circle(time: Res<Time>, mut camera: Single<&mut Transform, With<Camera3d>>) {
    **camera = place(time.elapsed_secs_wrapped() * SPEED * TAU);
}

/// The body of a bot. It fits through the arches.
pub fn body(bot: &Bot) -> Vec<Part> {
    let color = Color::hsl((bot.number as f32 * 137.5) % 360.0, 0.75, 0.5);
    vec![(Vec3::new(0.9, 1.9, 0.9), color)]
}
