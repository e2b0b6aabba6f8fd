//! The workloads V: the whole path, headless, on disk. `cargo bench --all-features --bench whole_path` prints each figure
//! with its goal; arguments select workloads. The comparison of V1 with its peer is in `benches/peers`.

#[path = "shared/choose.rs"]
mod choose;
#[path = "shared/report.rs"]
mod report;
#[path = "shared/resident.rs"]
mod resident;
#[path = "worlds/square.rs"]
mod square;

use bevy::prelude::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::SplitMix64;
use bevy_terrane::testing::{headless, spawn_dimension, spawn_in_region, start};
use bevy_terrane::view::{RegionStatistics, TimeWindow, WorldStatistics};
use report::report;
use resident::resident;
use square::{Seen, terrane, watch};
use std::path::Path;
use std::time::{Duration, Instant};
use terrane_render::ChunkRenderPlugin;

const FRAME: Duration = Duration::from_micros(16_667);

fn main() {
    choose::run(&[("V1", square_twice), ("V3", flight), ("V4", bots)]);
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for the world")
}

/// V1 and V2: the same ground from nothing, and then from the store.
fn square_twice() {
    let folder = folder();
    let Seen { after: made, meshes } = watch(&mut terrane(folder.path()));
    report("V1 from nothing", format!("{made:.2?}, {meshes} meshes"), "a twentieth of bevy_voxel_world's time");
    let Seen { after: loaded, meshes } = watch(&mut terrane(folder.path()));
    let ratio = made.as_secs_f64() / loaded.as_secs_f64();
    report("V2 from the store", format!("{loaded:.2?}, {meshes} meshes: V1 takes {ratio:.1} x as long"), "5 x");
}

/// The duration of the main schedule, frame by frame, during `time`; `each` is called before each frame with the seconds
/// since the last one.
fn frames(app: &mut App, time: Duration, mut each: impl FnMut(&mut World, f32)) -> Vec<Duration> {
    let start = Instant::now();
    let mut last = start;
    let mut times = Vec::new();
    while start.elapsed() < time {
        let began = Instant::now();
        each(app.world_mut(), (began - last).as_secs_f32());
        last = began;
        let worked = Instant::now();
        app.update();
        times.push(worked.elapsed());
        std::thread::sleep(FRAME.saturating_sub(began.elapsed()));
    }
    times.sort_unstable();
    times
}

/// V3: frames while the viewer stands, and while it flies over new ground.
fn flight() {
    const SPEED: f32 = 40.0;
    let folder = folder();
    let mut app = square::app();
    app.add_plugins((TerranePlugin::at(folder.path()), ChunkRenderPlugin::default()));
    let hills = Dimension::new("hills", Hills::seeded(42)).with_height(-64..64);
    let dimension = spawn_dimension(&mut app, hills);
    let viewer = app.world_mut().spawn((Viewer::in_dimension(dimension).with_radius(12), Transform::default())).id();
    start(&mut app);
    frames(&mut app, Duration::from_secs(10), |_, _| ());
    let standing = frames(&mut app, Duration::from_secs(20), |_, _| ());
    let flying = frames(&mut app, Duration::from_secs(20), |world, seconds| {
        if let Some(mut place) = world.get_mut::<Transform>(viewer) {
            place.translation.x += SPEED * seconds;
        }
    });
    let [standing, flying] = [standing, flying].map(|times| times[times.len() * 99 / 100]);
    let more = flying.as_secs_f64() * 1e3 - standing.as_secs_f64() * 1e3;
    report("V3 frames of a flight", format!("p99 {flying:.2?}, {standing:.2?} at rest: {more:+.2} ms"), "+ 1 ms");
}

/// A bot of world S, as an entity of its region. It moves 4.3 blocks a second, in one direction after the other.
#[derive(Component, Clone)]
struct Bot {
    number: u64,
    ticks: u64,
    random: u64,
}

/// Speed in blocks per tick.
const PACE: f32 = 4.3 / 20.0;
/// The number of ticks per column.
const COLUMN: u64 = 75;

fn walk(mut bots: Query<(&mut Bot, &mut Position)>) {
    for (mut bot, mut position) in &mut bots {
        bot.ticks += 1;
        if (bot.ticks + bot.number).is_multiple_of(COLUMN) {
            bot.random = SplitMix64::new(bot.random).next_u64();
        }
        let step = [Vec3::X, Vec3::NEG_X, Vec3::Z, Vec3::NEG_Z][(bot.random >> 62) as usize];
        position.translate(step * PACE);
    }
}

/// An app in which this many bots walk over world S.
fn world_s(path: &Path, bots: u64) -> App {
    const SIDE: u64 = 20_000;
    let mut app = headless(TerranePlugin::at(path));
    app.register_region_component::<Bot>().add_region_plugins(|region| {
        region.add_systems(RegionTick, walk);
    });
    let hills = Dimension::new("hills", Hills::seeded(42)).with_height(-64..64);
    let dimension = spawn_dimension(&mut app, hills);
    start(&mut app);
    let mut random = SplitMix64::new(42);
    let mut below = |n: u64| ((random.next_u64() >> 32) * n) >> 32;
    for number in 0..bots {
        let mut axis = || (below(SIDE) as i64 - SIDE as i64 / 2) * 16;
        let place = BlockPos::new(axis(), 60, axis());
        let bot = Bot { number, ticks: 0, random: number };
        spawn_in_region(&mut app, dimension, place, (bot, Viewer::new().with_radius(4)));
    }
    app
}

/// Waits until all ground around the bots is loaded.
fn settle(app: &mut App) {
    let start = Instant::now();
    loop {
        frames(app, Duration::from_secs(1), |_, _| ());
        let statistics = app.world().resource::<WorldStatistics>();
        if statistics.columns > 1_000 && statistics.remaining == 0 {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{} columns remain", statistics.remaining);
    }
}

/// V4: bots that walk over ground generated in an earlier session, with default settings.
fn bots() {
    const BOTS: u64 = 500;
    const WALK: Duration = Duration::from_secs(30);
    let folder = folder();
    // A first run takes the same steps for somewhat longer, so that nothing is generated during the measurement.
    let mut app = world_s(folder.path(), BOTS);
    settle(&mut app);
    frames(&mut app, WALK + Duration::from_secs(30), |_, _| ());
    drop(app);

    let mut app = world_s(folder.path(), BOTS);
    settle(&mut app);
    frames(&mut app, Duration::from_secs(5), |_, _| ());
    let loaded = |app: &App| app.world().resource::<WorldStatistics>().loaded;
    let before = loaded(&app);
    let start = Instant::now();
    frames(&mut app, WALK, |_, _| ());
    let columns = (loaded(&app) - before) as f64 / start.elapsed().as_secs_f64();
    let statistics = app.world().resource::<WorldStatistics>();
    let rate = |region: &RegionStatistics| region.window(TimeWindow::FiveSeconds).ticks_per_second;
    let mut rates: Vec<f64> = statistics.regions.iter().filter_map(rate).collect();
    rates.sort_by(f64::total_cmp);
    let [worst, median] = [0, rates.len() / 2].map(|at| rates.get(at).copied().unwrap_or_default());
    let ours = format!(
        "{BOTS} bots, worst {worst:.2}, median {median:.2} TPS; {columns:.0} columns/s, {:.0} MB, {} generated",
        resident() / 1e3,
        statistics.generated
    );
    report("V4 bots", ours, "500 bots at 20 TPS");
}
