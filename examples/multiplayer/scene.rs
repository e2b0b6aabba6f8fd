//! Sun, and a camera over the middle.

use bevy_terrane::prelude::*;

const SKY: Color = Color::linear_rgb(0.45, 0.68, 1.0);
/// What everybody looks at.
pub const MIDDLE: Vec3 = Vec3::new(8.0, 12.0, 8.0);
/// From where, in blocks.
const AWAY: Vec3 = Vec3::new(70.0, 62.0, 100.0);

/// Lights the ground.
pub struct ScenePlugin;

impl Plugin for ScenePlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(ClearColor(SKY))
            .insert_resource(GlobalAmbientLight { color: Color::srgb(0.75, 0.84, 1.0), brightness: 700.0, ..default() })
            .add_systems(Startup, set_up);
    }
}

fn set_up(mut commands: Commands) {
    let sun = DirectionalLight { color: Color::srgb(1.0, 0.95, 0.86), illuminance: 10_000.0, ..default() };
    commands.spawn((sun, Transform::from_xyz(-0.55, 0.75, 0.45).looking_at(Vec3::ZERO, Vec3::Y)));
    commands.spawn((Camera3d::default(), Transform::from_translation(MIDDLE + AWAY).looking_at(MIDDLE, Vec3::Y)));
}
