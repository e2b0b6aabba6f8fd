//! Barrels roll down the slope above a real fault. The blocks are those of bevy_terrane; the physics is that of avian.

use avian3d::prelude::*;
use barrels::ground::{GroundMesher, GroundPlugin};
use bevy::prelude::*;
use bevy_terrane::block::BlockId;
use bevy_terrane::generation::HeightBand;
use bevy_terrane::plugin::TerranePlugin;
use bevy_terrane::prelude::{Dimension, Dimensions, PublishedBlocks, SetBlock, Viewer};
use bevy_terrane::simulation::Position;
use std::path::PathBuf;
use std::sync::Arc;
use terrane_dev::{DevPlugins, FlyCamera, PicturePlugin, Pictures, SkyPlugin};
use terrane_render::{ChunkMeshProgress, ChunkRenderPlugin};

#[path = "../../shared/fault.rs"]
mod fault;

/// The name of the dimension, and of the example.
const NAME: &str = "barrels";
/// The middle of the edge from which barrels roll towards higher x, in blocks.
const EDGE: Vec3 = Vec3::new(70.0, 124.0, 545.0);
const BARRELS: usize = 48;
/// The time between two barrels, in seconds.
const PAUSE: f64 = 0.15;
/// A picture is taken after this time of rolling, in seconds.
const PICTURE_AFTER: f64 = 9.0;

fn main() -> Result<AppExit> {
    let dev = DevPlugins { pictures: None, ..DevPlugins::new(NAME) };
    let is_headless = dev.headless;
    let mut app = App::new();
    app.add_plugins((dev, SkyPlugin::default()))
        .add_plugins(TerranePlugin::in_memory())
        .add_plugins(ChunkRenderPlugin { meshers: vec![Arc::new(GroundMesher)], ..default() })
        .add_plugins((PhysicsPlugins::default(), GroundPlugin))
        .add_systems(Startup, start)
        .add_systems(Update, (roll_barrels, throw_barrel, dig));
    if is_headless {
        let folder = PathBuf::from("target/examples").join(NAME);
        app.add_plugins(PicturePlugin { folder, ..default() }).add_systems(Update, take_picture);
    }
    Ok(app.run())
}

/// The parts of a barrel: mesh, material, and place along its axis.
#[derive(Resource)]
struct Look {
    parts: [(Handle<Mesh>, Handle<StandardMaterial>, f32); 3],
}

const RADIUS: f32 = 0.7;
const LENGTH: f32 = 1.8;

fn start(
    mut commands: Commands,
    dimensions: Res<Dimensions>,
    (mut meshes, mut materials): (ResMut<Assets<Mesh>>, ResMut<Assets<StandardMaterial>>),
) -> Result {
    // The scale of `jacksboro`: 4 by 5 blocks are 74 m by 93 m, and a block is 6 m high.
    let land = fault::land(&fault::file())?
        .with_blocks_per_sample([4.0, 5.0])?
        .with_blocks_per_unit(1.0 / 6.0)?
        .with_bands([
            HeightBand::new(322.0, "terrane:sand", "terrane:sand"),
            HeightBand::new(f32::INFINITY, "terrane:grass", "terrane:dirt"),
        ])?;
    let heights = fault::heights(&land);
    commands.spawn(Dimension::new(NAME, land).with_height(heights));
    let viewer = Viewer::in_dimension(dimensions.id(NAME)).with_radius(10);
    let view = Transform::from_translation(EDGE + Vec3::new(62.0, -28.0, 42.0))
        .looking_at(EDGE + Vec3::new(22.0, -30.0, 0.0), Vec3::Y);
    commands.spawn((FlyCamera::default(), viewer, view));
    let mut paint = |red, green, blue| materials.add(Color::srgb(red, green, blue));
    let (wood, iron) = (paint(0.45, 0.27, 0.12), paint(0.16, 0.16, 0.18));
    let hoop = meshes.add(Cylinder::new(RADIUS * 1.04, 0.16));
    let body = meshes.add(Cylinder::new(RADIUS, LENGTH));
    let parts = [(body, wood, 0.0), (hoop.clone(), iron.clone(), -LENGTH / 4.0), (hoop, iron, LENGTH / 4.0)];
    commands.insert_resource(Look { parts });
    Ok(())
}

/// A barrel that lies across the slope.
fn spawn_barrel(commands: &mut Commands, look: &Look, place: Vec3, velocity: Vec3) {
    let body = (RigidBody::Dynamic, Collider::cylinder(RADIUS, LENGTH), ColliderDensity(0.6));
    let touch = (Friction::new(0.6), Restitution::new(0.25), LinearVelocity(velocity), SleepingDisabled);
    let transform =
        Transform::from_translation(place).with_rotation(Quat::from_rotation_x(std::f32::consts::FRAC_PI_2));
    commands.spawn((body, touch, TransformInterpolation, transform, Visibility::default())).with_children(|parts| {
        for (mesh, material, along) in &look.parts {
            parts.spawn((
                Mesh3d(mesh.clone()),
                MeshMaterial3d(material.clone()),
                Transform::from_xyz(0.0, *along, 0.0),
            ));
        }
    });
}

/// Once the land is meshed, barrels roll over the edge one after the other.
fn roll_barrels(
    mut commands: Commands,
    progress: Res<ChunkMeshProgress>,
    (time, look): (Res<Time>, Res<Look>),
    (mut rolled, mut next): (Local<usize>, Local<f64>),
) {
    if *rolled == 0 && !(progress.is_done() && progress.meshes > 100) {
        *next = time.elapsed_secs_f64();
        return;
    }
    while *rolled < BARRELS && time.elapsed_secs_f64() >= *next {
        let along = (*rolled * 7 % 12) as f32 * 2.5 - 14.0;
        spawn_barrel(&mut commands, &look, EDGE + Vec3::new(0.0, 0.0, along), Vec3::new(4.0, 0.0, 0.0));
        *rolled += 1;
        *next += PAUSE;
    }
}

/// B throws a barrel from the camera.
fn throw_barrel(
    mut commands: Commands,
    keys: Res<ButtonInput<KeyCode>>,
    camera: Single<&Transform, With<Viewer>>,
    look: Res<Look>,
) {
    if keys.just_pressed(KeyCode::KeyB) {
        let forward = *camera.forward();
        spawn_barrel(&mut commands, &look, camera.translation + forward * 3.0, forward * 15.0);
    }
}

/// The left button blows a hole into the ground: barrels that lie there fall in.
fn dig(
    mouse: Res<ButtonInput<MouseButton>>,
    camera: Single<&Transform, With<Viewer>>,
    (blocks, dimensions): (PublishedBlocks, Res<Dimensions>),
    mut edits: MessageWriter<SetBlock>,
) {
    let dimension = dimensions.id(NAME);
    let eye = Position::from_translation(dimension, camera.translation);
    let hit = mouse
        .just_pressed(MouseButton::Left)
        .then(|| blocks.cast_ray(eye, camera.forward(), 200.0, |block| block != BlockId::AIR));
    if let Some(hit) = hit.flatten() {
        let around = || -2..=2;
        let cells = around().flat_map(|x| around().flat_map(move |y| around().map(move |z| hit.block.offset(x, y, z))));
        edits.write_batch(cells.map(|position| SetBlock { dimension, position, block: BlockId::AIR }));
    }
}

/// Without a window, the barrels are pictured on their way.
fn take_picture(
    barrels: Query<(), With<SleepingDisabled>>,
    time: Res<Time>,
    mut first: Local<Option<f64>>,
    mut pictures: ResMut<Pictures>,
    mut exit: MessageWriter<AppExit>,
) {
    if !barrels.is_empty() {
        let since = *first.get_or_insert(time.elapsed_secs_f64());
        if time.elapsed_secs_f64() - since > PICTURE_AFTER && pictures.take(NAME) {
            exit.write(AppExit::Success);
        }
    }
}
