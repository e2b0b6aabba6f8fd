//! Sun, camera and the bodies of the bots.

use crate::fight::Bot;
use bevy::light::{CascadeShadowConfigBuilder, DirectionalLightShadowMap};
use bevy_terrane::prelude::*;

const SKY: Color = Color::linear_rgb(0.45, 0.68, 1.0);
/// From where the camera looks, in blocks.
const AWAY: f32 = 92.0;
const HEIGHT: f32 = 62.0;
/// Turns a second, in a window.
const SPEED: f32 = 0.06;

/// Lights the arena, and shows the bots.
pub struct ScenePlugin;

impl Plugin for ScenePlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(ClearColor(SKY))
            .insert_resource(DirectionalLightShadowMap { size: 2_048 })
            .insert_resource(GlobalAmbientLight { color: Color::srgb(0.75, 0.84, 1.0), brightness: 600.0, ..default() })
            .add_systems(Startup, set_up)
            .add_systems(Update, (give_bodies, move_bodies).chain());
    }
}

fn place(turn: f32) -> Transform {
    let direction = Quat::from_rotation_y(turn) * Vec3::new(0.45, 0.0, 0.9);
    Transform::from_translation(direction * AWAY + Vec3::Y * HEIGHT).looking_at(Vec3::new(0.0, 2.0, 0.0), Vec3::Y)
}

/// The camera keeps the arena loaded.
pub fn set_up(mut commands: Commands, dimension: Single<Entity, With<Dimension>>) {
    commands.spawn((
        DirectionalLight {
            color: Color::srgb(1.0, 0.95, 0.86),
            illuminance: 11_000.0,
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::from_xyz(-0.55, 0.75, 0.45).looking_at(Vec3::ZERO, Vec3::Y),
        CascadeShadowConfigBuilder { first_cascade_far_bound: 90.0, maximum_distance: 320.0, ..default() }.build(),
    ));
    commands.spawn((Camera3d::default(), place(0.0)));
    commands.spawn((Viewer::in_dimension(*dimension).with_radius(8), Transform::default()));
}

/// Flies slowly around the arena.
pub fn circle(time: Res<Time>, mut camera: Single<&mut Transform, With<Camera3d>>) {
    **camera = place(time.elapsed_secs() * SPEED * std::f32::consts::TAU);
}

/// The mirror of a bot gets a body.
fn give_bodies(
    mut commands: Commands,
    new: Query<(Entity, &Bot), (With<Mirror>, Added<Bot>)>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    for (entity, bot) in &new {
        let color = Color::hsl((bot.number as f32 * 137.5) % 360.0, 0.8, 0.5);
        let body = (Mesh3d(meshes.add(Cuboid::new(0.9, 1.9, 0.9))), MeshMaterial3d(materials.add(color)));
        commands.entity(entity).insert((Transform::default(), Visibility::default())).with_children(|bot| {
            bot.spawn((body, Transform::from_xyz(0.0, 0.95, 0.0)));
        });
    }
}

/// Regions tick less often than frames are drawn: bodies glide to the newest place.
fn move_bodies(time: Res<Time>, mut bodies: Query<(&Mirror, &mut Transform), With<Bot>>) {
    let part = 1.0 - (-12.0 * time.delta_secs()).exp();
    for (mirror, mut transform) in &mut bodies {
        let newest = mirror.current.0.relative_to(BlockPos::default());
        let is_near = transform.translation.distance(newest) < 8.0;
        transform.translation = if is_near { transform.translation.lerp(newest, part) } else { newest };
    }
}
