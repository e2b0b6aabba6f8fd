//! Sun, sky and haze.

use crate::render::InsideLiquid;
use crate::simulation::Viewer;
use crate::view::FarView;
use bevy::asset::RenderAssetUsages;
use bevy::camera::visibility::NoFrustumCulling;
use bevy::light::{CascadeShadowConfigBuilder, DirectionalLightShadowMap, NotShadowCaster, NotShadowReceiver};
use bevy::mesh::VertexAttributeValues;
use bevy::prelude::*;
use std::ops::Range;

/// The colour of the sky at the horizon, into which the land fades.
const HAZE: Color = Color::linear_rgb(0.80, 1.00, 1.20);
const ZENITH: Color = Color::linear_rgb(0.07, 0.27, 0.85);
/// The distance of the sky in blocks, behind all visible land.
const DISTANCE: f32 = 15_000.0;

/// Adds a sun, a sky, and haze that hides the end of the loaded land.
///
/// A camera with a [`Viewer`] or a [`FarView`] on the same entity gets a haze that ends where their land ends, unless it has a
/// `DistanceFog` already, for instance from [`haze`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkyPlugin {
    /// The maximum distance of shadows, in blocks; 300 by default.
    pub shadows: f32,
}

impl Default for SkyPlugin {
    fn default() -> Self {
        Self { shadows: 300.0 }
    }
}

impl Plugin for SkyPlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(ClearColor(HAZE))
            .insert_resource(DirectionalLightShadowMap { size: 2_048 })
            .insert_resource(GlobalAmbientLight { color: Color::srgb(0.72, 0.82, 1.0), brightness: 650.0, ..default() })
            .add_systems(Startup, raise_sky)
            .add_systems(PostStartup, prepare_cameras)
            .add_systems(Update, prepare_cameras)
            .add_systems(PostUpdate, keep_sky_around.before(TransformSystems::Propagate));
        app.world_mut().spawn(sun(self.shadows));
    }
}

/// Haze between these distances, in blocks: land is clear up to the start and invisible beyond the end.
pub fn haze(distances: Range<f32>) -> DistanceFog {
    DistanceFog {
        color: HAZE,
        directional_light_color: Color::srgba(1.0, 0.92, 0.76, 0.35),
        directional_light_exponent: 12.0,
        falloff: FogFalloff::Linear { start: distances.start, end: distances.end },
    }
}

/// Lets new cameras see the sky, and adds haze to those that have none.
fn prepare_cameras(
    mut commands: Commands,
    mut new: Query<(Entity, &mut Projection, Has<DistanceFog>, Option<&Viewer>, Option<&FarView>), Added<Camera3d>>,
) {
    for (camera, mut projection, has_haze, viewer, far) in &mut new {
        if let Projection::Perspective(perspective) = &mut *projection {
            perspective.far = DISTANCE * 1.1;
        }
        let radii = [viewer.map(|viewer| viewer.radius), far.map(|far| far.radius)];
        if let Some(radius) = radii.into_iter().flatten().max()
            && !has_haze
        {
            let end = radius as f32 * 16.0;
            commands.entity(camera).insert(haze(end * 0.5..end * 0.98));
        }
    }
}

/// A low sun in the south-west, so that ridges cast shadows.
fn sun(shadows: f32) -> impl Bundle {
    (
        DirectionalLight {
            color: Color::srgb(1.0, 0.93, 0.82),
            illuminance: 12_500.0,
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::from_xyz(-0.35, 0.60, 0.70).looking_at(Vec3::ZERO, Vec3::Y),
        CascadeShadowConfigBuilder { first_cascade_far_bound: 150.0, maximum_distance: shadows, ..default() }.build(),
    )
}

#[derive(Component)]
struct Sky;

/// A sphere around the camera, blue above and hazy at the horizon.
fn raise_sky(
    mut commands: Commands,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    let mut sphere = Sphere::new(DISTANCE).mesh().uv(32, 48);
    if let Some(VertexAttributeValues::Float32x3(places)) = sphere.attribute(Mesh::ATTRIBUTE_POSITION) {
        let (low, high) = (HAZE.to_linear(), ZENITH.to_linear());
        let color =
            |[_, y, _]: &[f32; 3]| low.mix(&high, (y / DISTANCE * 2.2).clamp(0.0, 1.0).powf(0.7)).to_f32_array();
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

/// The sky is around the camera, and not visible under water.
fn keep_sky_around(
    cameras: Query<(&Transform, Has<InsideLiquid>), (With<Camera3d>, Without<Sky>)>,
    sky: Single<(&mut Transform, &mut Visibility), With<Sky>>,
) {
    let (mut place, mut visibility) = sky.into_inner();
    if let Some((camera, is_in_liquid)) = cameras.iter().next() {
        place.translation = camera.translation;
        visibility.set_if_neq(if is_in_liquid { Visibility::Hidden } else { Visibility::Inherited });
    }
}
