//! A flying camera.

use super::first_person::Eyes;
use bevy::input::mouse::AccumulatedMouseMotion;
use bevy::light::NotShadowCaster;
use bevy::prelude::*;

/// The speed factor of the control key.
const FASTER: f32 = 4.0;
/// Radians per pixel of mouse movement.
const TURN: f32 = 0.003;

/// A camera that flies. W, A, S and D or the arrow keys move it, Space and Shift (or E and Q) lift and lower it, Ctrl makes it
/// faster, and the mouse turns it while the right button is down. [`DevPlugins`](super::DevPlugins) moves it.
#[derive(Component, Clone, Copy, Debug, PartialEq, Reflect)]
#[type_path = "terrane_dev"]
#[require(Camera3d)]
#[reflect(Component, Clone, Default)]
pub struct FlyCamera {
    /// Speed in blocks per second; 30 by default.
    pub speed: f32,
}

impl Default for FlyCamera {
    fn default() -> Self {
        Self { speed: 30.0 }
    }
}

/// The system that moves [`FlyCamera`]s, in `Update`. A game can give it a run condition, such as "no menu is open".
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlySystems;

/// Two small bars in front of each new camera.
pub(super) fn add_crosshair(
    mut commands: Commands,
    new: Query<Entity, Or<(Added<FlyCamera>, Added<Eyes>)>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    let material = StandardMaterial { unlit: true, fog_enabled: false, ..default() };
    for camera in &new {
        for (width, height) in [(0.006, 0.0006), (0.0006, 0.006)] {
            let bar = (Mesh3d(meshes.add(Cuboid::new(width, height, 0.0001))), NotShadowCaster);
            let bar = (bar, MeshMaterial3d(materials.add(material.clone())), Transform::from_xyz(0.0, 0.0, -0.2));
            commands.spawn((bar, ChildOf(camera)));
        }
    }
}

pub(super) fn fly(
    time: Res<Time>,
    keys: Res<ButtonInput<KeyCode>>,
    mouse: Res<ButtonInput<MouseButton>>,
    motion: Res<AccumulatedMouseMotion>,
    mut cameras: Query<(&mut Transform, &FlyCamera)>,
) {
    let axis = |up: [KeyCode; 2], down: [KeyCode; 2]| {
        f32::from(i8::from(keys.any_pressed(up)) - i8::from(keys.any_pressed(down)))
    };
    let ahead = axis([KeyCode::KeyW, KeyCode::ArrowUp], [KeyCode::KeyS, KeyCode::ArrowDown]);
    let right = axis([KeyCode::KeyD, KeyCode::ArrowRight], [KeyCode::KeyA, KeyCode::ArrowLeft]);
    let up = axis([KeyCode::Space, KeyCode::KeyE], [KeyCode::ShiftLeft, KeyCode::KeyQ]);
    let faster = if keys.pressed(KeyCode::ControlLeft) { FASTER } else { 1.0 };
    for (mut camera, FlyCamera { speed }) in &mut cameras {
        let direction = camera.forward() * ahead + camera.right() * right + Vec3::Y * up;
        if direction != Vec3::ZERO {
            camera.translation += direction.normalize() * *speed * faster * time.delta_secs();
        }
        if mouse.pressed(MouseButton::Right) && motion.delta != Vec2::ZERO {
            let (yaw, pitch, _) = camera.rotation.to_euler(EulerRot::YXZ);
            let pitch = (pitch - motion.delta.y * TURN).clamp(-1.5, 1.5);
            camera.rotation = Quat::from_euler(EulerRot::YXZ, yaw - motion.delta.x * TURN, pitch, 0.0);
        }
    }
}
