//! Sun, sky, haze and the camera.

use crate::arguments::Arguments;
use bevy::asset::RenderAssetUsages;
use bevy::camera::visibility::NoFrustumCulling;
use bevy::light::{CascadeShadowConfigBuilder, DirectionalLightShadowMap, NotShadowCaster, NotShadowReceiver};
use bevy::mesh::VertexAttributeValues;
use bevy_terrane::prelude::*;

/// The colour of the sky at the horizon, into which the land fades.
const HAZE: Color = Color::linear_rgb(0.80, 1.00, 1.20);
const ZENITH: Color = Color::linear_rgb(0.07, 0.27, 0.85);

/// Lights the land.
pub struct ScenePlugin;

impl Plugin for ScenePlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(ClearColor(HAZE))
            .insert_resource(DirectionalLightShadowMap { size: 2_048 })
            .insert_resource(GlobalAmbientLight { color: Color::srgb(0.72, 0.82, 1.0), brightness: 650.0, ..default() })
            .add_systems(Startup, (shine, raise_sky))
            .add_systems(PostUpdate, keep_sky_around.before(TransformSystems::Propagate));
    }
}

/// How far the land is seen, in blocks.
fn reach(arguments: &Arguments) -> f32 {
    arguments.far_radius as f32 * 16.0
}

/// A camera at the place that the user chose, that sees to the end of the land.
pub fn camera(arguments: &Arguments, ground: &Heightmap) -> impl Bundle {
    let [x, above, z] = arguments.from[..] else { unreachable!("three numbers") };
    let [east, down] = arguments.look[..] else { unreachable!("two numbers") };
    let place = Vec3::new(x, ground.height_at(x as i64, z as i64) as f32 + above, z);
    let turn = Quat::from_euler(EulerRot::YXZ, -east.to_radians(), -down.to_radians(), 0.0);
    let reach = reach(arguments);
    (
        Camera3d::default(),
        Projection::from(PerspectiveProjection { far: reach * 1.6, ..default() }),
        Transform::from_translation(place).with_rotation(turn),
        DistanceFog {
            color: HAZE,
            directional_light_color: Color::srgba(1.0, 0.92, 0.76, 0.35),
            directional_light_exponent: 12.0,
            falloff: FogFalloff::Linear { start: reach * 0.3, end: reach * 0.99 },
        },
    )
}

/// A sun in the south-west: ridges throw shadows, near and far alike.
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
            num_cascades: 4,
            first_cascade_far_bound: 150.0,
            maximum_distance: 1_500.0,
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
    arguments: Res<Arguments>,
) {
    let radius = reach(&arguments) * 1.5;
    let mut sphere = Sphere::new(radius).mesh().uv(32, 48);
    if let Some(VertexAttributeValues::Float32x3(places)) = sphere.attribute(Mesh::ATTRIBUTE_POSITION) {
        let (low, high) = (HAZE.to_linear(), ZENITH.to_linear());
        let color = |[_, y, _]: &[f32; 3]| low.mix(&high, (y / radius * 2.2).clamp(0.0, 1.0).powf(0.7)).to_f32_array();
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
