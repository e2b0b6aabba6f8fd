//! A flying camera.

use bevy::input::mouse::AccumulatedMouseMotion;
use bevy::prelude::*;

/// The speed factor of the control key.
const FASTER: f32 = 4.0;
/// Radians per pixel of mouse movement.
const TURN: f32 = 0.003;

/// Makes a camera fly with the keyboard and the mouse.
#[derive(Component)]
pub struct Flying {
    /// Speed in blocks per second.
    pub speed: f32,
}

/// Moves the camera with the keyboard.
pub fn fly(time: Res<Time>, keys: Res<ButtonInput<KeyCode>>, camera: Single<(&mut Transform, &Flying)>) {
    let axis = |up: [KeyCode; 2], down: [KeyCode; 2]| {
        f32::from(i8::from(keys.any_pressed(up)) - i8::from(keys.any_pressed(down)))
    };
    let (mut camera, flying) = camera.into_inner();
    let ahead = axis([KeyCode::KeyW, KeyCode::ArrowUp], [KeyCode::KeyS, KeyCode::ArrowDown]);
    let right = axis([KeyCode::KeyD, KeyCode::ArrowRight], [KeyCode::KeyA, KeyCode::ArrowLeft]);
    let up = axis([KeyCode::Space, KeyCode::KeyE], [KeyCode::ShiftLeft, KeyCode::KeyQ]);
    let direction = camera.forward() * ahead + camera.right() * right + Vec3::Y * up;
    let speed = if keys.pressed(KeyCode::ControlLeft) { flying.speed * FASTER } else { flying.speed };
    camera.translation += direction.normalize_or_zero() * speed * time.delta_secs();
}

/// Turns the camera with the mouse.
pub fn turn(
    mouse: Res<ButtonInput<MouseButton>>,
    motion: Res<AccumulatedMouseMotion>,
    mut camera: Single<&mut Transform, With<Flying>>,
) {
    if mouse.pressed(MouseButton::Right) {
        let (yaw, pitch, _) = camera.rotation.to_euler(EulerRot::YXZ);
        let pitch = (pitch - motion.delta.y * TURN).clamp(-1.5, 1.5);
        camera.rotation = Quat::from_euler(EulerRot::YXZ, yaw - motion.delta.x * TURN, pitch, 0.0);
    }
}
