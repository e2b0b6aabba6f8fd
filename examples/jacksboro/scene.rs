//! Sun, sky and haze, and the bodies of the bots.

use crate::bots::Bot;
use bevy::asset::RenderAssetUsages;
use bevy::camera::visibility::NoFrustumCulling;
use bevy::light::{CascadeShadowConfigBuilder, DirectionalLightShadowMap, NotShadowCaster, NotShadowReceiver};
use bevy::mesh::VertexAttributeValues;
use bevy_terrane::prelude::*;

/// The colour of the sky at the horizon, into which the land fades.
const HAZE: Color = Color::linear_rgb(0.80, 1.00, 1.20);
const ZENITH: Color = Color::linear_rgb(0.07, 0.27, 0.85);
/// Larger than what any camera of the demo sees of the land.
const SKY_RADIUS: f32 = 3_000.0;

/// Lights the land, and shows the bots.
pub struct ScenePlugin;

impl Plugin for ScenePlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(ClearColor(HAZE))
            .insert_resource(DirectionalLightShadowMap { size: 2_048 })
            .insert_resource(GlobalAmbientLight { color: Color::srgb(0.72, 0.82, 1.0), brightness: 650.0, ..default() })
            .add_systems(Startup, (shine, raise_sky))
            .add_systems(Update, (give_bodies, move_bodies).chain())
            .add_systems(PostUpdate, keep_sky_around.before(TransformSystems::Propagate));
    }
}

/// A camera that sees the land up to `distance` blocks away, and haze beyond.
pub fn camera(distance: f32) -> impl Bundle {
    (
        Camera3d::default(),
        Projection::from(PerspectiveProjection { far: SKY_RADIUS * 1.1, ..default() }),
        DistanceFog {
            color: HAZE,
            directional_light_color: Color::srgba(1.0, 0.92, 0.76, 0.35),
            directional_light_exponent: 12.0,
            falloff: FogFalloff::Linear { start: distance * 0.55, end: distance },
        },
    )
}

/// A low sun in the south-west: ridges throw shadows.
fn shine(mut commands: Commands) {
    commands.spawn((
        DirectionalLight {
            color: Color::srgb(1.0, 0.93, 0.82),
            illuminance: 12_500.0,
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::from_xyz(-0.35, 0.60, 0.70).looking_at(Vec3::ZERO, Vec3::Y),
        CascadeShadowConfigBuilder {
            num_cascades: 3,
            first_cascade_far_bound: 150.0,
            maximum_distance: 600.0,
            ..default()
        }
        .build(),
    ));
}

#[derive(Component)]
struct Sky;

/// A sphere around the camera, blue above and hazy at the horizon.
fn raise_sky(
    mut commands: Commands,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    let mut sphere = Sphere::new(SKY_RADIUS).mesh().uv(32, 48);
    if let Some(VertexAttributeValues::Float32x3(places)) = sphere.attribute(Mesh::ATTRIBUTE_POSITION) {
        let (low, high) = (HAZE.to_linear(), ZENITH.to_linear());
        let color =
            |[_, y, _]: &[f32; 3]| low.mix(&high, (y / SKY_RADIUS * 2.2).clamp(0.0, 1.0).powf(0.7)).to_f32_array();
        let colors: Vec<_> = places.iter().map(color).collect();
        sphere.insert_attribute(Mesh::ATTRIBUTE_COLOR, colors);
    }
    sphere.asset_usage = RenderAssetUsages::RENDER_WORLD;
    let material = StandardMaterial { unlit: true, fog_enabled: false, cull_mode: None, ..default() };
    commands.spawn((
        Sky,
        Mesh3d(meshes.add(sphere)),
        MeshMaterial3d(materials.add(material)),
        (NotShadowCaster, NotShadowReceiver, NoFrustumCulling),
    ));
}

fn keep_sky_around(
    camera: Single<&Transform, (With<Camera3d>, Without<Sky>)>,
    mut sky: Single<&mut Transform, With<Sky>>,
) {
    sky.translation = camera.translation;
}

/// The mirror of a bot gets a body: two boxes, as bots have it.
fn give_bodies(
    mut commands: Commands,
    new: Query<(Entity, &Bot), (With<Mirror>, Added<Bot>)>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    for (entity, bot) in &new {
        let color = Color::hsl((bot.number as f32 * 137.5) % 360.0, 0.75, 0.5);
        let material = materials.add(StandardMaterial { base_color: color, perceptual_roughness: 0.8, ..default() });
        let head = materials.add(StandardMaterial::from(Color::srgb(0.93, 0.85, 0.74)));
        commands.entity(entity).insert((Transform::default(), Visibility::default())).with_children(|body| {
            let part = |size: Vec3| Mesh3d(meshes.add(Cuboid::from_size(size)));
            let [trunk, skull] = [Vec3::new(1.6, 2.2, 1.6), Vec3::splat(1.1)].map(part);
            body.spawn((trunk, MeshMaterial3d(material), Transform::from_xyz(0.0, 1.1, 0.0)));
            body.spawn((skull, MeshMaterial3d(head), Transform::from_xyz(0.0, 2.75, 0.0)));
        });
    }
}

/// Regions tick less often than frames are drawn: bodies glide to the newest place.
fn move_bodies(time: Res<Time>, mut bodies: Query<(&Mirror, &mut Transform), With<Bot>>) {
    let part = 1.0 - (-12.0 * time.delta_secs()).exp();
    for (mirror, mut transform) in &mut bodies {
        let newest = mirror.current.0.relative_to(BlockPos::default());
        let is_near = transform.translation.distance(newest) < 32.0;
        transform.translation = if is_near { transform.translation.lerp(newest, part) } else { newest };
    }
}
