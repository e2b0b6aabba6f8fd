//! Sun, moon, sky and haze.

use bevy::camera::visibility::NoFrustumCulling;
use bevy::light::{CascadeShadowConfigBuilder, DirectionalLightShadowMap, NotShadowCaster, NotShadowReceiver};
use bevy::mesh::VertexAttributeValues;
use bevy::prelude::*;
use bevy_terrane::simulation::{Position, TimeOfDay, Viewer};
use bevy_terrane::view::{DimensionOpen, FarView, FollowedBodies, WorldStatistics};
use std::iter;
use std::ops::Range;
use terrane_render::{InsideLiquid, SeenDimension};

/// The color of the sky at the horizon by day, into which the land fades.
const HAZE: LinearRgba = LinearRgba::rgb(0.50, 0.74, 1.08);
/// The distance of the sky in blocks, behind all visible land.
const DISTANCE: f32 = 15_000.0;

/// Adds a sun, a sky, and haze that hides the end of the loaded land.
///
/// If the dimension that the first camera sees has a [`TimeOfDay`], sun and moon cross the sky, and the colors of the sky and the haze
/// follow them. Otherwise it is always day.
///
/// A camera with a [`Viewer`] or a [`FarView`] on the same entity or on a parent gets a haze that ends where their land ends, and so does
/// a camera that follows a body with a viewer in its region. A camera that has a `DistanceFog` already keeps it. One from [`haze`] gets
/// the colors of the sky too.
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
        let look = SkyLook::new(None);
        app.insert_resource(ClearColor(look.haze.into()))
            .insert_resource(DirectionalLightShadowMap { size: 2_048 })
            .insert_resource(GlobalAmbientLight {
                color: Color::srgb(0.72, 0.82, 1.0),
                brightness: look.ambient,
                ..default()
            })
            .insert_resource(look)
            .add_systems(Startup, raise_sky)
            .add_systems(PostStartup, (prepare_cameras, add_haze))
            .add_systems(Update, (prepare_cameras, add_haze))
            .add_systems(
                PostUpdate,
                (follow_time_of_day, paint_sky.run_if(resource_changed::<SkyLook>), keep_sky_around)
                    .chain()
                    .before(TransformSystems::Propagate),
            );
        app.world_mut().spawn(sun(self.shadows));
    }
}

/// Haze between these distances, in blocks: land is clear up to the start and invisible beyond the end.
pub fn haze(distances: Range<f32>) -> DistanceFog {
    DistanceFog {
        color: HAZE.into(),
        directional_light_color: Color::srgba(1.0, 0.92, 0.76, 0.35),
        directional_light_exponent: 12.0,
        falloff: FogFalloff::Linear { start: distances.start, end: distances.end },
    }
}

/// Lets new cameras see the sky.
fn prepare_cameras(mut new: Query<&mut Projection, Added<Camera3d>>) {
    for mut projection in &mut new {
        if let Projection::Perspective(perspective) = &mut *projection {
            perspective.far = DISTANCE * 1.1;
        }
    }
}

/// Marks a camera that has got its haze, or has a fog of its own.
#[derive(Component)]
struct HazeDecided;

/// Adds haze to cameras that have none, as soon as it is known how far they see.
fn add_haze(
    mut commands: Commands,
    mut cameras: Query<
        (Entity, Option<&mut DistanceFog>),
        (With<Camera3d>, Without<HazeDecided>, Without<InsideLiquid>),
    >,
    viewers: Query<(Option<&Viewer>, Option<&FarView>)>,
    parents: Query<&ChildOf>,
    (bodies, statistics): (FollowedBodies, Option<Res<WorldStatistics>>),
    look: Res<SkyLook>,
) {
    for (camera, fog) in &mut cameras {
        if let Some(mut fog) = fog {
            if fog.color == Color::from(HAZE) {
                fog.color = look.haze.into();
            }
            commands.entity(camera).insert(HazeDecided);
            continue;
        }
        let with_parents = iter::once(camera).chain(parents.iter_ancestors(camera));
        let radii = with_parents.filter_map(|entity| viewers.get(entity).ok()).flat_map(|(viewer, far)| {
            [viewer.map(|viewer| viewer.radius), far.map(|far| far.radius)].into_iter().flatten()
        });
        let of_body = || radius_at(bodies.position(camera)?, statistics.as_ref()?);
        if let Some(radius) = radii.max().or_else(of_body) {
            let end = radius as f32 * 16.0;
            let haze = DistanceFog { color: look.haze.into(), ..haze(end * 0.5..end * 0.98) };
            commands.entity(camera).insert((HazeDecided, haze));
        }
    }
}

/// The radius of the viewer of a body, which the statistics show with its column of some ticks ago.
fn radius_at(body: Position, statistics: &WorldStatistics) -> Option<u32> {
    const NEAR: u128 = 4;
    let here = statistics.viewers.iter().filter(|(dimension, ..)| *dimension == body.dimension);
    let distances = here.map(|(_, column, radius)| (column.distance_squared(body.column()), *radius));
    distances.filter(|(distance, _)| *distance <= NEAR).min().map(|(_, radius)| radius)
}

/// The colors and the light of the sky at a time of day.
#[derive(Resource, Clone, Copy, PartialEq)]
struct SkyLook {
    /// The direction to the sun, if it crosses the sky.
    sun: Option<Vec3>,
    /// The direction to the light of the sun or the moon, its color and its illuminance.
    light: (Vec3, LinearRgba, f32),
    ambient: f32,
    haze: LinearRgba,
    zenith: LinearRgba,
    /// The color that the sky has around a low sun.
    glow: LinearRgba,
}

impl SkyLook {
    fn new(time: Option<TimeOfDay>) -> Self {
        const ZENITH: LinearRgba = LinearRgba::rgb(0.07, 0.27, 0.85);
        const SUNLIGHT: LinearRgba = LinearRgba::rgb(1.0, 0.85, 0.64);
        let Some(time) = time else {
            // A low sun in the south-west, so that ridges cast shadows.
            let light = (Vec3::new(-0.35, 0.60, 0.70).normalize(), SUNLIGHT, 12_500.0);
            return Self { sun: None, light, ambient: 650.0, haze: HAZE, zenith: ZENITH, glow: LinearRgba::NONE };
        };
        let (sun, day) = (time.sun(), time.daylight());
        let low = (-(sun.y / 0.16).powi(2)).exp();
        // Both are faint at the horizon, where they take turns.
        let above = |height: f32| (height / 0.25).clamp(0.0, 1.0);
        let light = match sun.y > 0.0 {
            true => (sun, SUNLIGHT.mix(&LinearRgba::rgb(1.0, 0.42, 0.16), low), 12_500.0 * above(sun.y)),
            false => (-sun, LinearRgba::rgb(0.50, 0.66, 1.0), 350.0 * above(-sun.y)),
        };
        let dusk = LinearRgba::rgb(0.42, 0.30, 0.30);
        let haze = LinearRgba::rgb(0.006, 0.010, 0.024).mix(&HAZE, day).mix(&dusk, 0.55 * low);
        Self {
            sun: Some(sun),
            light,
            ambient: 40.0 + 610.0 * day,
            haze,
            zenith: LinearRgba::rgb(0.001, 0.002, 0.008).mix(&ZENITH, day),
            glow: LinearRgba::rgb(1.30, 0.48, 0.12) * low,
        }
    }

    /// The color of the sky in this direction, of length 1.
    fn color(&self, direction: Vec3) -> LinearRgba {
        let height = (direction.y * 2.2).clamp(0.0, 1.0).powf(0.7);
        let toward_sun = self.sun.map_or(0.0, |sun| direction.dot(sun).max(0.0).powi(5));
        self.haze.mix(&self.zenith, height) + self.glow * (toward_sun * (1.0 - height))
    }
}

fn sun(shadows: f32) -> impl Bundle {
    (
        Sun,
        DirectionalLight { shadow_maps_enabled: true, ..default() },
        CascadeShadowConfigBuilder { first_cascade_far_bound: 150.0, maximum_distance: shadows, ..default() }.build(),
    )
}

#[derive(Component)]
struct Sun;

#[derive(Component)]
struct Sky;

/// The disc of the sun, or that of the moon.
#[derive(Component, PartialEq)]
enum Disc {
    Sun,
    Moon,
}

/// A sphere around the camera, blue above and hazy at the horizon, with sun and moon.
fn raise_sky(
    mut commands: Commands,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    let paint = StandardMaterial { unlit: true, fog_enabled: false, cull_mode: None, ..default() };
    let unlit = || (NotShadowCaster, NotShadowReceiver, NoFrustumCulling);
    let sphere = Mesh3d(meshes.add(Sphere::new(DISTANCE).mesh().uv(32, 48)));
    commands.spawn((Sky, sphere, MeshMaterial3d(materials.add(paint.clone())), unlit())).with_children(|sky| {
        let discs = [
            (Disc::Sun, 520.0, Color::linear_rgb(6.0, 5.0, 3.6)),
            (Disc::Moon, 380.0, Color::linear_rgb(0.8, 0.86, 1.0)),
        ];
        for (disc, radius, base_color) in discs {
            let material = materials.add(StandardMaterial { base_color, ..paint.clone() });
            let circle = Mesh3d(meshes.add(Circle::new(radius)));
            sky.spawn((disc, circle, MeshMaterial3d(material), Visibility::Hidden, unlit()));
        }
    });
}

/// Finds the look of the sky. The time of day is taken in steps that are hardly visible.
fn follow_time_of_day(seen: SeenDimension, times: Query<(&DimensionOpen, &TimeOfDay)>, mut look: ResMut<SkyLook>) {
    const STEPS: f64 = 8_192.0;
    let time = times.iter().find(|(open, _)| Some(open.id) == seen.id()).map(|(_, time)| *time);
    let steps = time.map(|time| TimeOfDay { days: (time.time() * STEPS).round() / STEPS, ..time });
    look.set_if_neq(SkyLook::new(steps));
}

/// Gives sky, haze and light their colors.
fn paint_sky(
    look: Res<SkyLook>,
    (mut clear, mut ambient): (ResMut<ClearColor>, ResMut<GlobalAmbientLight>),
    mut sun: Single<(&mut DirectionalLight, &mut Transform), (With<Sun>, Without<Disc>)>,
    mut discs: Query<(&Disc, &mut Transform, &mut Visibility), Without<Sun>>,
    sky: Single<&Mesh3d, With<Sky>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut fogs: Query<&mut DistanceFog, Without<InsideLiquid>>,
) {
    for mut fog in fogs.iter_mut().filter(|fog| fog.color == clear.0) {
        fog.color = look.haze.into();
        fog.directional_light_color.set_alpha(if look.light.2 > 2_000.0 { 0.35 } else { 0.0 });
    }
    clear.0 = look.haze.into();
    ambient.brightness = look.ambient;
    let (light, place) = &mut *sun;
    let (direction, color, illuminance) = look.light;
    (light.color, light.illuminance) = (color.into(), illuminance);
    **place = Transform::default().looking_to(-direction, Vec3::Y);
    for (disc, mut place, mut visibility) in &mut discs {
        let direction = look.sun.map(|sun| if *disc == Disc::Sun { sun } else { -sun });
        visibility.set_if_neq(if direction.is_some() { Visibility::Inherited } else { Visibility::Hidden });
        if let Some(direction) = direction {
            *place = Transform::from_translation(direction * DISTANCE * 0.95).looking_to(direction, Vec3::Z);
        }
    }
    if let Some(mut sphere) = meshes.get_mut(&sky.0)
        && let Some(VertexAttributeValues::Float32x3(places)) = sphere.attribute(Mesh::ATTRIBUTE_POSITION)
    {
        let colors: Vec<_> =
            places.iter().map(|place| look.color(Vec3::from(*place) / DISTANCE).to_f32_array()).collect();
        sphere.insert_attribute(Mesh::ATTRIBUTE_COLOR, colors);
    }
}

/// The sky is around the camera, and not visible under water.
fn keep_sky_around(
    cameras: Query<(&GlobalTransform, Has<InsideLiquid>), With<Camera3d>>,
    sky: Single<(&mut Transform, &mut Visibility), With<Sky>>,
) {
    let (mut place, mut visibility) = sky.into_inner();
    if let Some((camera, is_in_liquid)) = cameras.iter().next() {
        place.translation = camera.translation();
        visibility.set_if_neq(if is_in_liquid { Visibility::Hidden } else { Visibility::Inherited });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(days: f64) -> SkyLook {
        SkyLook::new(Some(TimeOfDay { days, ..default() }))
    }

    fn brightness(color: LinearRgba) -> f32 {
        color.red + color.green + color.blue
    }

    #[test]
    fn the_sky_is_blue_by_day_red_toward_a_low_sun_and_dark_at_night() {
        let (noon, dusk, night) = (at(0.5), at(TimeOfDay::SUNSET), at(0.0));
        let up = noon.color(Vec3::Y);
        assert!(up.blue > 2.0 * up.green && up.green > up.red, "{up:?}");
        assert_eq!(noon.haze, SkyLook::new(None).haze, "by day the haze is as without a time of day");
        let [toward_sun, away] = [Vec3::NEG_X, Vec3::X].map(|side| dusk.color(side));
        assert!(toward_sun.red > 2.0 * toward_sun.blue && away.red < 1.5 * away.blue, "{toward_sun:?}, {away:?}");
        assert!([Vec3::Y, Vec3::X].iter().all(|side| brightness(night.color(*side)) < 0.06));
    }

    #[test]
    fn the_light_comes_from_what_is_in_the_sky() {
        for step in 0..96 {
            let look = at(f64::from(step) / 96.0);
            let (direction, color, illuminance) = look.light;
            assert!(direction.y >= 0.0, "{step}: the light is never below the ground");
            let is_sun = Some(direction) == look.sun;
            assert!(illuminance <= if is_sun { 12_500.0 } else { 350.0 }, "{step}");
            assert!(brightness(color) > 0.5, "{step}");
        }
        assert!(at(0.5).light.2 > 30.0 * at(0.0).light.2);
    }

    #[test]
    fn colors_change_without_jumps() {
        let places = [Vec3::Y, Vec3::X, Vec3::NEG_X, Vec3::new(0.6, 0.8, 0.0)];
        let mut before = at(0.0);
        for step in 1..=2_000 {
            let look = at(f64::from(step) / 2_000.0);
            for place in places {
                let change = look.color(place) - before.color(place);
                assert!(
                    change.to_f32_array_no_alpha().iter().all(|change| change.abs() < 0.03),
                    "{step} {place}: {change:?}"
                );
            }
            assert!((look.light.2 - before.light.2).abs() < 200.0, "{step}: the light fades in and out");
            before = look;
        }
    }

    #[test]
    fn a_camera_has_haze_by_the_viewer_of_its_parent_in_the_color_of_the_sky() {
        let mut app = App::new();
        let night = at(0.0);
        app.insert_resource(night).add_systems(Update, add_haze);
        let player = app.world_mut().spawn(Viewer::new().with_radius(10)).id();
        let eyes = app.world_mut().spawn((Camera3d::default(), ChildOf(player))).id();
        let own = app.world_mut().spawn((Camera3d::default(), haze(5.0..9.0))).id();
        let blind = app.world_mut().spawn(Camera3d::default()).id();
        app.update();
        let fog = |camera| app.world().get::<DistanceFog>(camera);
        let falloff = |camera| match fog(camera).map(|fog| &fog.falloff) {
            Some(FogFalloff::Linear { start, end }) => [*start, *end],
            other => panic!("{other:?}"),
        };
        assert_eq!((falloff(eyes), falloff(own)), ([80.0, 160.0 * 0.98], [5.0, 9.0]));
        assert!([eyes, own].iter().all(|camera| fog(*camera).unwrap().color == night.haze.into()));
        assert!(fog(blind).is_none(), "how far it sees is not known");
    }
}
