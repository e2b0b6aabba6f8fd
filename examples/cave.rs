//! Light: a torch that is carried at night, a cave with torches and slimes that live in the dark, a hall below a shaft, and light
//! through water and leaves.

use bevy::prelude::*;
use bevy_terrane::prelude::*;
use bevy_terrane::view::WorldStatistics;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use terrane_dev::{DevPlugins, FlyCamera, PicturePlugin, Pictures, SkyPlugin};
use terrane_render::{BlockMesh, ChunkMeshProgress, ChunkRenderPlugin};

#[path = "shared/bodies.rs"]
mod bodies;

const NOON: f64 = 0.5;
const DUSK: f64 = 0.745;
const MIDNIGHT: f64 = 1.0;
/// A view: name, place, the point that is looked at, the time of day, the place of the carried torch, and that of a block of snow.
type View = (&'static str, [f32; 3], [f32; 3], f64, [i64; 3], Option<[f32; 3]>);

const VIEWS: [View; 8] = [
    ("torch", [5.0, 4.0, 38.0], [0.0, 1.6, 30.0], MIDNIGHT, [0, 1, 30], None),
    ("torch_moved", [5.0, 4.0, 38.0], [0.0, 1.6, 30.0], MIDNIGHT, [-6, 1, 32], None),
    ("dusk", [12.0, 6.0, 34.0], [0.0, 3.5, 30.0], DUSK, [0, 1, 30], None),
    ("cave", [26.0, -9.5, 2.0], [44.0, -10.5, 0.0], NOON, [0, 1, 30], None),
    ("skylight", [9.0, -19.5, 10.5], [-1.5, -17.5, -6.0], NOON, [0, 1, 30], None),
    ("water_and_leaves", [-32.0, -8.0, 7.0], [-32.0, -10.0, -4.0], NOON, [0, 1, 30], None),
    ("snow_in_the_sun", [-20.0, 3.5, 33.0], [-20.0, 1.5, 30.0], NOON, [0, 1, 30], Some([-20.0, 1.5, 30.0])),
    ("snow_in_a_hole", [-20.0, -8.0, 33.0], [-20.0, -10.0, 30.0], NOON, [0, 1, 30], Some([-20.0, -10.0, 30.0])),
];
/// Slimes appear where the light is lower than this.
const DARK: u8 = 8;
const MOST_SLIMES: usize = 12;
/// Lives in the dark.
#[derive(Component, Clone, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "cave"]
struct Slime;

/// The block that is built last.
const LAST: BlockPos = BlockPos::new(-38, -3, 2);

fn main() -> Result<AppExit> {
    let dev = DevPlugins { pictures: None, ..DevPlugins::new("cave") };
    let is_headless = dev.headless;
    let assets = AssetPlugin { file_path: concat!(env!("CARGO_MANIFEST_DIR"), "/../assets").to_owned(), ..default() };
    let mut app = App::new();
    app.add_plugins((dev.build().set(assets), SkyPlugin::default(), bodies::PartsPlugin(body)))
        .add_plugins(TerranePlugin::in_memory())
        .add_plugins(ChunkRenderPlugin { looks: vec!["cave.looks.ron".into()], ..default() });
    app.register_block(BlockType::new("garden:torch").with_shape(BlockShape::torch()).non_solid().with_light(14))?;
    app.register_block(BlockType::new("garden:glass").transparent())?;
    app.init_resource::<Shown>()
        .register_saved_component::<Slime>()
        .mirror_region_component::<Slime>()
        .add_region_plugins(|region| {
            region.add_systems(RegionTick, (appear, vanish));
        })
        .add_systems(Startup, start)
        .add_systems(Update, (dig_when_open, choose, set_time, carry_torch, place_snow, count).chain());
    if is_headless {
        let folder = PathBuf::from("target/examples/cave");
        app.add_plugins(PicturePlugin { folder, shows_land: false, ..default() }).add_systems(Update, take_pictures);
    }
    Ok(app.run())
}

/// The number of the view, and the place of the carried torch.
#[derive(Resource, Default)]
struct Shown {
    view: usize,
    torch: Option<BlockPos>,
}

fn start(mut commands: Commands, dimensions: Res<Dimensions>, types: Res<BlockTypes>) {
    // The time of day stands still until another view is chosen.
    commands.spawn((Dimension::new("cave", Flat::new()), TimeOfDay { seconds_per_day: 0.0, ..default() }));
    let viewer = Viewer::in_dimension(dimensions.id("cave")).with_radius(6);
    commands.spawn((FlyCamera::default(), viewer, view(0)));
    // A block as an item: it has the light of its place.
    let snow = types.id("terrane:snow").unwrap_or_default();
    commands.spawn((BlockMesh(snow), Transform::from_scale(Vec3::splat(0.8)), Visibility::Hidden));
}

fn view(number: usize) -> Transform {
    let (_, from, to, ..) = VIEWS[number];
    Transform::from_translation(from.into()).looking_at(to.into(), Vec3::Y)
}

/// 1 to 8 show a view.
fn choose(
    keys: Res<ButtonInput<KeyCode>>,
    mut camera: Single<&mut Transform, With<FlyCamera>>,
    mut shown: ResMut<Shown>,
) {
    use KeyCode::{Digit1, Digit2, Digit3, Digit4, Digit5, Digit6, Digit7, Digit8};
    let digits = [Digit1, Digit2, Digit3, Digit4, Digit5, Digit6, Digit7, Digit8];
    if let Some(chosen) = digits.iter().position(|digit| keys.just_pressed(*digit)) {
        **camera = view(chosen);
        shown.view = chosen;
    }
}

fn set_time(shown: Res<Shown>, mut time: Single<&mut TimeOfDay>) {
    let days = VIEWS[shown.view].3;
    if time.days != days {
        time.days = days;
    }
}

/// Ten times a second or so, a slime appears on a dark floor of the cave.
fn appear(
    mut commands: Commands,
    blocks: RegionBlocks,
    info: Res<RegionInfo>,
    slimes: Query<(), With<Slime>>,
    mut random: ResMut<RegionRandom>,
) {
    let mut below = |most: u32| i64::from(random.0.below(most));
    let place = BlockPos::new(24 + below(25), -12, -6 + below(13));
    let is_free = blocks.block(place).is_ok_and(|block| block == BlockId::AIR);
    if is_free && slimes.iter().len() < MOST_SLIMES && blocks.light(place).is_ok_and(|light| light.now < DARK) {
        commands.spawn((Slime, Position::new(info.dimension, place)));
    }
}

/// Slimes vanish when light reaches them.
fn vanish(mut commands: Commands, blocks: RegionBlocks, slimes: Query<(Entity, &Position), With<Slime>>) {
    for (slime, position) in &slimes {
        if blocks.light(position.block).is_ok_and(|light| light.now >= DARK) {
            commands.entity(slime).despawn();
        }
    }
}

fn body(_: &Slime) -> Vec<bodies::Part> {
    vec![(Vec3::new(0.8, 0.6, 0.8), Color::srgb(0.35, 0.75, 0.30))]
}

fn count(slimes: Query<&Mirror, With<Slime>>, blocks: PublishedBlocks, time: Res<Time>, mut last: Local<u64>) {
    let second = time.elapsed().as_secs();
    if second > *last {
        *last = second;
        let lights = slimes.iter().map(|slime| blocks.light(slime.current.0.dimension, slime.current.0.block));
        let in_light = lights.flatten().filter(|light| light.now >= DARK).count();
        info!("{} slimes, {in_light} of them in the light", slimes.iter().len());
    }
}

/// Puts the torch where the view has it. The edit is shown, with its light, in the same frame.
fn carry_torch(
    mut shown: ResMut<Shown>,
    types: Res<BlockTypes>,
    dimensions: Res<Dimensions>,
    blocks: PublishedBlocks,
    mut edits: MessageWriter<SetBlock>,
) {
    let dimension = dimensions.id("cave");
    let [x, y, z] = VIEWS[shown.view].4;
    let position = BlockPos::new(x, y, z);
    if shown.torch == Some(position) || blocks.block(dimension, position).is_none() {
        return;
    }
    if let Some(old) = shown.torch.replace(position) {
        edits.write(SetBlock { dimension, position: old, block: BlockId::AIR });
    }
    edits.write(SetBlock { dimension, position, block: types.id("garden:torch").unwrap_or_default() });
}

/// Shows the block of snow where the view has it, with its middle there.
fn place_snow(shown: Res<Shown>, mut snow: Single<(&mut Transform, &mut Visibility), With<BlockMesh>>) {
    let (transform, visibility) = &mut *snow;
    let place = VIEWS[shown.view].5;
    visibility.set_if_neq(if place.is_some() { Visibility::Inherited } else { Visibility::Hidden });
    if let Some(place) = place {
        transform.translation = Vec3::from(place) - transform.scale / 2.0;
    }
}

fn dig_when_open(mut commands: Commands, mut opened: MessageReader<DimensionOpened>) {
    for opened in opened.read() {
        commands.run_in_region(opened.dimension, BlockPos::new(0, 0, 0), |region: &mut World| {
            if let Err(error) = region.run_system_cached::<(), _, _>(dig) {
                error!("the cave cannot be dug: {error}");
            }
        });
    }
}

fn dig(mut blocks: RegionBlocks, types: Res<BlockTypes>) -> Result {
    let mut fill = |low: [i64; 3], high: [i64; 3], name: &str| -> Result {
        let block = types.id(name).ok_or_else(|| format!("{name} is not registered"))?;
        for (x, y) in (low[0]..=high[0]).flat_map(|x| (low[1]..=high[1]).map(move |y| (x, y))) {
            for z in low[2]..=high[2] {
                blocks.set_block(BlockPos::new(x, y, z), block)?;
            }
        }
        Ok(())
    };
    // A hall below a shaft.
    fill([-12, -24, -12], [12, -14, 12], "terrane:air")?;
    fill([-3, -13, -6], [2, 0, 5], "terrane:air")?;
    // A cave with pillars and torches.
    fill([24, -12, -6], [48, -7, 6], "terrane:air")?;
    for x in [30, 36, 42] {
        fill([x, -12, -4], [x + 1, -7, -3], "terrane:stone")?;
        fill([x, -12, 3], [x + 1, -7, 4], "terrane:stone")?;
    }
    for [x, z] in [[33, -4], [40, 2], [46, -2]] {
        fill([x, -12, z], [x, -12, z], "garden:torch")?;
    }
    // A hall with a roof of leaves and one of water over glass.
    fill([-42, -12, -8], [-22, -4, 8], "terrane:air")?;
    fill([-29, -3, -4], [-25, 0, 0], "terrane:leaves")?;
    fill([-39, -2, -4], [-35, 0, 0], "terrane:water")?;
    fill([-39, -3, -4], [-35, -3, 0], "garden:glass")?;
    // A hole without any light.
    fill([-24, -12, 26], [-16, -5, 36], "terrane:air")?;
    // This block tells that all is there.
    fill([-38, -3, 2], [-38, -3, 2], "garden:glass")
}

/// A picture of each view, once the cave is there.
fn take_pictures(
    (world, meshes): (Res<WorldStatistics>, Res<ChunkMeshProgress>),
    (blocks, dimensions, types): (PublishedBlocks, Res<Dimensions>, Res<BlockTypes>),
    mut pictures: ResMut<Pictures>,
    mut camera: Single<&mut Transform, With<FlyCamera>>,
    mut shown: ResMut<Shown>,
    (mut number, mut calm): (Local<usize>, Local<u32>),
    mut exit: MessageWriter<AppExit>,
) {
    let is_dug = blocks.block(dimensions.id("cave"), LAST) == types.id("garden:glass");
    let is_calm = world.columns > 0 && world.remaining == 0 && meshes.is_done() && meshes.meshes > 0 && is_dug;
    *calm = if is_calm { *calm + 1 } else { 0 };
    let Some((name, ..)) = VIEWS.get(*number) else {
        exit.write(AppExit::Success);
        return;
    };
    if *calm == 20 {
        **camera = view(*number);
        shown.view = *number;
    }
    if *calm > 30 && pictures.take(name) {
        *number += 1;
        *calm = 0;
    }
}
