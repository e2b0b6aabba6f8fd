//! A garden with every shape and render mode: by day, at dusk, at night, under water, behind glass, and in the rain.

mod garden;
mod rain;
mod types;

use bevy::core_pipeline::prepass::{DepthPrepass, MotionVectorPrepass, NormalPrepass};
use bevy::prelude::*;
use bevy_terrane::prelude::*;
use bevy_terrane::view::WorldStatistics;
use std::path::PathBuf;
use terrane_dev::{DevPlugins, FlyCamera, PicturePlugin, Pictures, SkyPlugin};
use terrane_render::{BlockMesh, ChunkMeshProgress, ChunkRenderPlugin};

/// The views: name, place, the point that is looked at, and the hour.
const VIEWS: [(&str, [f32; 3], [f32; 3], f64); 6] = [
    ("day", [-11.5, 8.0, 16.5], [0.5, 0.6, 0.0], 10.0),
    ("dusk", [17.0, 6.5, 17.0], [1.0, 1.0, 1.0], 17.7),
    ("night", [-12.5, 6.5, 14.0], [0.0, 1.0, 0.0], 23.0),
    ("under_water", [9.5, -1.6, 12.6], [9.5, -1.2, 4.0], 12.0),
    // In the same place as by day, and in the rain.
    ("rain", [-11.5, 8.0, 16.5], [0.5, 0.6, 0.0], 10.0),
    ("behind_glass", [-9.5, 2.7, -3.2], [-3.0, 1.8, 4.0], 15.0),
];

fn main() -> Result<AppExit> {
    let dev = DevPlugins { pictures: None, ..DevPlugins::new("blocks") };
    let is_headless = dev.headless;
    let assets = AssetPlugin { file_path: concat!(env!("CARGO_MANIFEST_DIR"), "/../assets").to_owned(), ..default() };
    let mut app = App::new();
    app.add_plugins((dev.build().set(assets), SkyPlugin::default()))
        .add_plugins(TerranePlugin::at("target/examples/blocks/world"))
        .add_plugins(ChunkRenderPlugin { looks: vec!["garden.looks.ron".into()], ..default() });
    types::register(&mut app)?;
    rain::add(&mut app);
    app.init_resource::<garden::Planted>()
        .add_systems(Startup, start)
        .add_systems(Update, (garden::plant, choose, turn_item).chain());
    if is_headless {
        let folder = PathBuf::from("target/examples/blocks");
        app.add_plugins(PicturePlugin { folder, shows_land: false, ..default() }).add_systems(Update, take_pictures);
    }
    Ok(app.run())
}

/// The time of day at an hour. It stands still.
fn at(hour: f64) -> TimeOfDay {
    TimeOfDay { days: hour / 24.0, seconds_per_day: 0.0 }
}

/// A block that floats over its plinth, like an item.
#[derive(Component)]
struct Item;

fn start(mut commands: Commands, dimensions: Res<Dimensions>, types: Res<BlockTypes>) {
    commands.spawn((Dimension::new("garden", Flat::new()), at(VIEWS[0].3)));
    let viewer = Viewer::in_dimension(dimensions.id("garden")).with_radius(5);
    // Screen-space effects need these passes. Chunks take part in them.
    let prepass = (DepthPrepass, NormalPrepass, MotionVectorPrepass);
    commands.spawn((FlyCamera::default(), viewer, view(0), prepass));
    let item = types.id("garden:bookshelf").unwrap_or_default();
    commands.spawn((Item, BlockMesh(item), Transform::from_xyz(0.0, 3.0, 8.0).with_scale(Vec3::splat(0.6))));
}

fn view(number: usize) -> Transform {
    let (_, from, to, _) = VIEWS[number];
    Transform::from_translation(from.into()).looking_at(to.into(), Vec3::Y)
}

/// 1 to 6 show a view, and the arrow keys change the time of day.
fn choose(
    keys: Res<ButtonInput<KeyCode>>,
    time: Res<Time>,
    mut camera: Single<&mut Transform, With<FlyCamera>>,
    mut day: Single<&mut TimeOfDay>,
    mut rain: ResMut<rain::Rain>,
) {
    let digits = [KeyCode::Digit1, KeyCode::Digit2, KeyCode::Digit3, KeyCode::Digit4, KeyCode::Digit5, KeyCode::Digit6];
    if let Some(chosen) = digits.iter().position(|digit| keys.just_pressed(*digit)) {
        **camera = view(chosen);
        **day = at(VIEWS[chosen].3);
        rain.0 = VIEWS[chosen].0 == "rain";
    }
    let turn = i8::from(keys.pressed(KeyCode::ArrowRight)) - i8::from(keys.pressed(KeyCode::ArrowLeft));
    if turn != 0 {
        day.days += f64::from(turn) * time.delta_secs_f64() / 12.0;
    }
}

fn turn_item(time: Res<Time>, mut item: Single<&mut Transform, With<Item>>) {
    item.rotation = Quat::from_rotation_y(time.elapsed_secs_wrapped());
}

/// A picture of each view, once the garden is there.
fn take_pictures(
    world: Res<WorldStatistics>,
    meshes: Res<ChunkMeshProgress>,
    garden: Res<garden::Planted>,
    mut pictures: ResMut<Pictures>,
    mut camera: Single<&mut Transform, With<FlyCamera>>,
    (mut day, mut rain): (Single<&mut TimeOfDay>, ResMut<rain::Rain>),
    (mut number, mut calm): (Local<usize>, Local<u32>),
    mut exit: MessageWriter<AppExit>,
) {
    let is_calm = world.columns > 0 && world.remaining == 0 && meshes.is_done() && meshes.meshes > 0 && garden.0;
    *calm = if is_calm { *calm + 1 } else { 0 };
    let Some((name, .., hour)) = VIEWS.get(*number) else {
        exit.write(AppExit::Success);
        return;
    };
    if *calm == 20 {
        **camera = view(*number);
        **day = at(*hour);
        rain.0 = *name == "rain";
    }
    if *calm > 22 && pictures.take(name) {
        *number += 1;
        *calm = 0;
    }
}
