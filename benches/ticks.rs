//! The workloads T: region ticks with the whole plugin, headless. `cargo bench --all-features --bench ticks` prints each
//! figure with its goal; arguments select workloads.
//!
//! These are measurements of a running system, not of a function: each prints figures over several seconds.

#[path = "shared/choose.rs"]
mod choose;
#[path = "shared/report.rs"]
mod report;
#[path = "shared/resident.rs"]
mod resident;

use bevy_terrane::plugin::{ThreadSettings, WorldDiagnosticsPlugin};
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{Address, RegionProfiler, SplitMix64};
use bevy_terrane::testing::{
    Patience, act, dimension_entity, flat, headless, in_region, spawn_dimension, spawn_in_region, start, update,
    update_until_within, viewer,
};
use bevy_terrane::view::{DimensionClock, Pacing, PublishedColumns, RegionStatistics, TimeWindow, WorldStatistics};
use report::report;
use resident::resident;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use terrane_metrics::{MetricsPlugin, MetricsServer};
use uuid::Uuid;

/// A distance at which regions never merge, in blocks.
const APART: i64 = 16 * 32;

/// The name of the workload T8 in a process of its own, which only says what the same ground needs.
const FRESH: &str = "--fresh=";

fn main() {
    if let Some(columns) = std::env::args().find_map(|argument| argument.strip_prefix(FRESH)?.parse().ok()) {
        return fresh_row(columns);
    }
    choose::run(&[
        ("T1", overhead),
        ("T2", scaling),
        ("T3", independence),
        ("T4", crowd),
        ("T5", many),
        ("T5b", a_thousand),
        ("T6", crowded_region),
        ("T8", memory_comes_back),
        ("T9", profiled),
        ("T10", gifts),
    ]);
}

/// The CPU time of this process so far, in seconds.
fn cpu_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    // User and system time, in hundredths of a second.
    (ticks(11) + ticks(12)) / 100.0
}

fn percentile(samples: &mut [Duration], share: f64) -> Duration {
    samples.sort_unstable();
    let last = samples.len().saturating_sub(1);
    samples.get((last as f64 * share) as usize).copied().unwrap_or_default()
}

#[derive(Component, Clone)]
struct Creature(u32);

fn age<const SYSTEM: u32>(mut creatures: Query<&mut Creature>) {
    for mut creature in &mut creatures {
        creature.0 = creature.0.wrapping_add(SYSTEM);
    }
}

/// Five systems that touch every creature.
fn five_systems(region: &mut SubApp) {
    region.add_systems(RegionTick, (age::<1>, age::<2>, age::<3>, age::<4>, age::<5>));
}

/// An app with this many regions in a grid, each with one column and this many creatures.
fn regions(plugin: TerranePlugin, count: i64, creatures: u32, systems: fn(&mut SubApp)) -> (App, DimensionId) {
    let mut app = headless(TerranePlugin { pacing: Pacing::fixed(4_096), ..plugin });
    app.register_region_component::<Creature>().add_region_plugins(systems);
    let dimension = flat(&mut app);
    start(&mut app);
    let side = (count as f64).sqrt().ceil() as i64;
    for number in 0..count {
        let place = BlockPos::new(number % side * APART, 5, number / side * APART);
        in_region(&mut app, dimension, place, move |region| {
            let id = region.resource::<RegionInfo>().dimension;
            region.spawn((Position::new(id, place), Viewer::new().with_radius(0)));
            region.spawn_batch((0..creatures).map(move |_| (Position::new(id, place), Creature(0))));
        });
    }
    let patience = Patience { limit: Duration::from_secs(120), frame: Duration::from_millis(5) };
    update_until_within(&mut app, patience, "all regions have their entities", |world| {
        let regions = &world.resource::<WorldStatistics>().regions;
        regions.len() == count as usize && regions.iter().all(|region| region.entities == creatures as usize + 1)
    });
    (app, dimension)
}

fn run_for(app: &mut App, seconds: f64) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        app.update();
        std::thread::sleep(Duration::from_millis(15));
    }
}

/// Ticks per second over five seconds, of the slowest region and of the median region.
fn rates(app: &App) -> (f64, f64) {
    let regions = &app.world().resource::<WorldStatistics>().regions;
    let mut rates: Vec<f64> =
        regions.iter().map(|region| region.window(TimeWindow::FiveSeconds).ticks_per_second.unwrap_or(0.0)).collect();
    rates.sort_by(f64::total_cmp);
    (rates.first().copied().unwrap_or_default(), rates.get(rates.len() / 2).copied().unwrap_or_default())
}

/// Dispatch, run and collect, compared with calling the same schedules in a loop.
fn overhead() {
    const REGIONS: i64 = 1_000;
    let plugin = TerranePlugin {
        tick_mode: TickMode::Lockstep,
        threads: ThreadSettings { regions: 1, ..default() },
        ..TerranePlugin::in_memory()
    };
    let (mut app, _) = regions(plugin, REGIONS, 50, five_systems);
    let rounds = 300;
    let began = cpu_time();
    update(&mut app, rounds);
    let ours = (cpu_time() - began) / rounds as f64 / REGIONS as f64;
    drop(app);

    // The same schedules and entities, without a plugin around them.
    let mut worlds: Vec<(World, Schedule)> = (0..REGIONS)
        .map(|_| {
            let mut world = World::new();
            world.spawn_batch((0..50).map(|_| (Position::default(), Creature(0))));
            let mut schedule = Schedule::new(RegionTick);
            schedule.set_executor(bevy::ecs::schedule::SingleThreadedExecutor::new());
            schedule.add_systems((age::<1>, age::<2>, age::<3>, age::<4>, age::<5>));
            schedule.run(&mut world);
            (world, schedule)
        })
        .collect();
    let rounds = 400;
    let began = cpu_time();
    for _ in 0..rounds {
        worlds.iter_mut().for_each(|(world, schedule)| schedule.run(world));
    }
    let bare = (cpu_time() - began) / f64::from(rounds) / REGIONS as f64;
    let micro = 1e6;
    let ours = format!("{:.2} us a tick more ({:.2} against {:.2})", (ours - bare) * micro, ours * micro, bare * micro);
    report("T1 overhead", ours, "0.5 us a tick more");
}

/// The ticks of T1 while a profile is being made, and as long without one.
fn profiled() {
    const REGIONS: i64 = 200;
    let plugin = TerranePlugin {
        tick_mode: TickMode::Lockstep,
        threads: ThreadSettings { regions: 1, ..default() },
        ..TerranePlugin::in_memory()
    };
    let (mut app, dimension) = regions(plugin, REGIONS, 50, five_systems);
    let ticks = |app: &mut App| {
        let began = cpu_time();
        update(app, 1_000);
        (cpu_time() - began) / 1_000.0 / REGIONS as f64
    };
    let before = ticks(&mut app);
    for number in 0..REGIONS {
        let side = (REGIONS as f64).sqrt().ceil() as i64;
        let place = BlockPos::new(number % side * APART, 5, number / side * APART);
        in_region(&mut app, dimension, place, |world| {
            world.resource::<RegionProfiler>().begin(Duration::from_secs(3_600), drop);
        });
    }
    let during = ticks(&mut app);
    let more = during - before;
    let share = more * 20.0 * 100.0;
    let figure = format!("{:.2} us a tick more, {share:.4} % of a core at 20 TPS", more * 1e6);
    report("T9 profile of a region", figure, "under 2 % of a core");
}

/// What an entity has, as a saved component.
#[derive(Component, Clone, Default, PartialEq, Serialize, Deserialize, TypePath)]
struct Purse(u32);

/// A message of a type that is not registered to be stored on its way, and of one that is.
#[derive(Clone, Serialize, Deserialize, TypePath)]
struct Plain(Uuid);
#[derive(Clone, Serialize, Deserialize, TypePath)]
struct Stored(Uuid);

#[derive(Serialize, Deserialize, TypePath)]
struct Earn;

impl Action for Earn {
    fn apply(&self, context: &mut ActionContext) -> Result<(), Refusal> {
        context.get_mut::<Purse>().map(|purse| purse.0 += 1)
    }
}

/// Two regions with 1,000 saved entities each, in which 100 letters an update go from one to the other, or 100 entities act.
fn gifts() {
    const ENTITIES: u64 = 1_000;
    const EACH: u64 = 100;
    let id = |number: u64| Uuid::from_u128(0x617 + u128::from(number));
    let plugin = TerranePlugin { tick_mode: TickMode::Lockstep, ..TerranePlugin::in_memory() };
    let mut app = headless(plugin);
    app.register_saved_component::<Purse>()
        .mirror_region_component::<Purse>()
        .register_region_message::<Plain>()
        .register_shared_message::<Stored>()
        .register_action::<Earn>();
    let dimension = flat(&mut app);
    let places = [0, APART].map(|x| BlockPos::new(x, 5, 0));
    places.iter().for_each(|place| _ = viewer(&mut app, dimension, place.x as f32, 0.0, 2));
    start(&mut app);
    for number in 0..2 * ENTITIES {
        let bundle = (StableId(id(number)), Actor::default(), Purse(0));
        spawn_in_region(&mut app, dimension, places[(number / ENTITIES) as usize], bundle);
    }
    update(&mut app, 100);
    let mut each = |change: &dyn Fn(&mut App)| {
        let began = Instant::now();
        for _ in 0..100 {
            change(&mut app);
            app.update();
        }
        began.elapsed().as_secs_f64() / 100.0
    };
    let send = |app: &mut App, send: fn(&mut Post, Uuid)| {
        in_region(app, dimension, places[0], move |region: &mut World| {
            let mut post = region.resource_mut::<Post>();
            (0..EACH).for_each(|number| send(&mut post, id(ENTITIES + number)));
        });
    };
    let nothing = each(&|app| in_region(app, dimension, places[0], |_| {}));
    let plain = each(&|app| send(app, |post, id| post.send(Address::Entity(id), Plain(id))));
    let stored = each(&|app| send(app, |post, id| post.send(Address::Entity(id), Stored(id))));
    let acts = each(&|app| (0..EACH).for_each(|number| _ = act(app, id(number), Earn)));
    let micro = |time: f64| (time - nothing) / EACH as f64 * 1e6;
    let figure = format!("{:.1} us a plain one, {:.1} us a stored one", micro(plain), micro(stored));
    report("T10 letters between regions", figure, "");
    report("T10 actions", format!("{:.1} us each, predicted and done", micro(acts)), "");
}

fn work(duration: Duration) {
    let end = Instant::now() + duration;
    while Instant::now() < end {
        black_box(());
    }
}

/// 200 regions with 100 us of work each, on one thread and on two.
fn scaling() {
    fn busy(region: &mut SubApp) {
        region.add_systems(RegionTick, || work(Duration::from_micros(100)));
    }
    let ticks_a_second = |threads: usize| {
        let plugin = TerranePlugin {
            tick_mode: TickMode::Lockstep,
            threads: ThreadSettings { regions: threads, ..default() },
            ..TerranePlugin::in_memory()
        };
        let (mut app, _) = regions(plugin, 200, 0, busy);
        let began = Instant::now();
        update(&mut app, 30);
        200.0 * 30.0 / began.elapsed().as_secs_f64()
    };
    let (one, two) = (ticks_a_second(1), ticks_a_second(2));
    report("T2 scaling", format!("{:.2} x ({one:.0} and {two:.0} ticks a second)", two / one), "1.9 x");
}

/// A region sleeps in its tick, then the main world in its frame.
fn independence() {
    static SLEEPY: AtomicU64 = AtomicU64::new(0);
    fn systems(region: &mut SubApp) {
        five_systems(region);
        region.add_systems(RegionTick, |blocks: RegionBlocks| {
            if SLEEPY.load(Ordering::Relaxed) == 1 && blocks.contains(BlockPos::new(0, 5, 0)) {
                std::thread::sleep(Duration::from_millis(300));
            }
        });
    }
    let plugin = TerranePlugin { threads: ThreadSettings { regions: 2, ..default() }, ..TerranePlugin::in_memory() };
    let (mut app, dimension) = regions(plugin, 100, 50, systems);
    let slowest_other = |app: &mut App| {
        let look = move |regions: Regions| {
            let sleepy = regions.at(dimension, BlockPos::new(0, 5, 0)).map(|region| region.region);
            let others = regions.iter().filter(|region| Some(region.region) != sleepy);
            let rate = |region: &RegionStatistics| region.window(TimeWindow::FiveSeconds).ticks_per_second;
            others.filter_map(rate).min_by(f64::total_cmp).unwrap_or_default()
        };
        bevy::ecs::system::RunSystemOnce::run_system_once(app.world_mut(), look).unwrap_or_default()
    };
    SLEEPY.store(1, Ordering::Relaxed);
    run_for(&mut app, 7.0);
    let region = slowest_other(&mut app);
    SLEEPY.store(0, Ordering::Relaxed);
    run_for(&mut app, 1.0);
    let end = Instant::now() + Duration::from_secs(7);
    while Instant::now() < end {
        app.update();
        std::thread::sleep(Duration::from_millis(300));
    }
    let frame = slowest_other(&mut app);
    let ours = format!("{region:.2} TPS beside a slow region, {frame:.2} beside slow frames");
    report("T3 independence", ours, "worst 5-second window >= 19.5 TPS");
}

/// A player of world D as an entity of its region, which moves one column every 75 ticks.
#[derive(Component, Clone)]
struct Walking {
    number: u64,
    ticks: u64,
    random: u64,
}

fn walk(mut players: Query<(&mut Walking, &mut Position)>) {
    for (mut player, mut position) in &mut players {
        player.ticks += 1;
        if (player.ticks + player.number).is_multiple_of(75) {
            let mut random = SplitMix64::new(player.random);
            player.random = random.next_u64();
            let (x, z) = [(16.0, 0.0), (-16.0, 0.0), (0.0, 16.0), (0.0, -16.0)][(player.random >> 62) as usize];
            position.translate(Vec3::new(x, 0.0, z));
        }
    }
}

/// The durations of each half of the main world's exchange.
#[derive(Resource, Default)]
struct Exchanges {
    began: Option<Instant>,
    times: Vec<Duration>,
}

fn begin_exchange(mut exchanges: ResMut<Exchanges>) {
    exchanges.began = Some(Instant::now());
}

fn end_exchange(mut exchanges: ResMut<Exchanges>) {
    if let Some(began) = exchanges.began.take() {
        exchanges.times.push(began.elapsed());
    }
}

/// World D, with its players as entities in the region worlds: a flat world with one chunk per column.
fn crowd() {
    const SIDE: u64 = 2_000;
    let threads = ThreadSettings { regions: 2, generation: 1, ..default() };
    let mut app = headless(TerranePlugin { threads, pacing: Pacing::fixed(8_192), ..TerranePlugin::in_memory() });
    app.init_resource::<Exchanges>()
        .add_systems(First, begin_exchange.before(ViewSystems::Receive))
        .add_systems(First, end_exchange.after(ViewSystems::Receive))
        .add_systems(Last, begin_exchange.before(ViewSystems::Send))
        .add_systems(Last, end_exchange.after(ViewSystems::Send))
        .register_region_component::<Walking>()
        .add_region_plugins(|region| {
            region.add_systems(RegionTick, walk);
        });
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Flat::new()).with_height(-16..0));
    start(&mut app);
    let mut random = SplitMix64::new(42);
    let mut below = |n: u64| ((random.next_u64() >> 32) * n) >> 32;
    for number in 0..1_000 {
        let mut axis = || (below(SIDE) as i64 - SIDE as i64 / 2) * 16;
        let place = BlockPos::new(axis(), -1, axis());
        let player = Walking { number, ticks: 0, random: number };
        spawn_in_region(&mut app, dimension, place, (player, Viewer::new().with_radius(10)));
    }
    let began = Instant::now();
    let loaded = loop {
        app.update();
        std::thread::sleep(Duration::from_millis(5));
        let statistics = app.world().resource::<WorldStatistics>();
        if (statistics.columns > 100_000 && statistics.remaining < 200) || began.elapsed() > Duration::from_secs(180) {
            break began.elapsed();
        }
    };
    app.world_mut().resource_mut::<Exchanges>().times.clear();
    run_for(&mut app, 20.0);
    let mut times = std::mem::take(&mut app.world_mut().resource_mut::<Exchanges>().times);
    let statistics = app.world().resource::<WorldStatistics>().clone();
    let (worst, median) = rates(&app);
    let ours = format!(
        "{} columns after {:.0} s; {} regions, {} merges, {} splits",
        statistics.columns,
        loaded.as_secs_f64(),
        statistics.regions.len(),
        statistics.merges,
        statistics.splits
    );
    report("T4 crowd", ours, "-");
    let (pass_p50, pass_p99) = statistics.pass_times;
    report("T4 coordinator's pass", format!("p50 {pass_p50:.2?}, p99 {pass_p99:.2?}"), "p99 under 5 ms");
    let ours = format!("p50 {:.2?}, p99 {:.2?}", percentile(&mut times, 0.5), percentile(&mut times, 0.99));
    report("T4 main world's exchange", ours, "p50 / p99 0.1 / 1 ms");
    report("T4 rate", format!("worst {worst:.2}, median {median:.2} TPS"), "no region below 19.5 TPS");
    let cores = |app: &mut App, collect: &dyn Fn(&App)| {
        let (cpu, wall) = (cpu_time(), Instant::now());
        for _ in 0..4 {
            run_for(app, 5.0);
            collect(app);
        }
        (cpu_time() - cpu) / wall.elapsed().as_secs_f64()
    };
    let without = cores(&mut app, &|_| ());
    // A running app takes no plugins.
    WorldDiagnosticsPlugin.build(&mut app);
    MetricsPlugin { address: ([127, 0, 0, 1], 0).into() }.build(&mut app);
    let with = cores(&mut app, &|app| {
        let mut collector = TcpStream::connect(app.world().resource::<MetricsServer>().address()).expect("it listens");
        collector.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it reads");
        let length = collector.read_to_end(&mut Vec::new()).expect("it answers");
        assert!(length > statistics.regions.len() * 100, "{length} bytes for {} regions", statistics.regions.len());
    });
    let more = (with / without - 1.0) * 100.0;
    report("T4 diagnostics and metrics", format!("{with:.3} cores, {without:.3} without: {more:+.1} %"), "at most 2 %");
}

/// 10,000 regions at 20 TPS on two threads.
fn many() {
    report("T5 many", many_regions(10_000), "12 TPS each");
}

fn a_thousand() {
    report("T5b a thousand", many_regions(1_000), "20.0 TPS each, 0.35 cores");
}

fn many_regions(count: i64) -> String {
    let before = resident();
    let threads = ThreadSettings { regions: 2, ..default() };
    let plugin = TerranePlugin { threads, ..TerranePlugin::in_memory() };
    let (mut app, _) = regions(plugin, count, 10, five_systems);
    run_for(&mut app, 5.0);
    let (cpu, wall) = (cpu_time(), Instant::now());
    run_for(&mut app, 10.0);
    let cores = (cpu_time() - cpu) / wall.elapsed().as_secs_f64();
    let (worst, median) = rates(&app);
    let memory = (resident() - before) / count as f64;
    format!("worst {worst:.2}, median {median:.2} TPS, {cores:.2} cores, {memory:.0} KiB a region")
}

/// One part of a creature's work.
#[derive(Component, Clone)]
struct Part<const N: usize>(f32);

fn heavy<const N: usize>(mut parts: Query<&mut Part<N>>) {
    for mut part in &mut parts {
        for _ in 0..20 {
            part.0 = black_box(part.0 * 1.000_1 + 0.5);
        }
    }
}

/// A single crowded region with four heavy systems, sequential and parallel.
fn crowded_region() {
    const CREATURES: u32 = 20_000;
    fn systems(region: &mut SubApp) {
        region.add_systems(RegionTick, (heavy::<0>, heavy::<1>, heavy::<2>, heavy::<3>));
    }
    let tick_time = |parallel_from: usize| {
        let plugin = TerranePlugin {
            threads: ThreadSettings { parallel_systems_from: Some(parallel_from), ..default() },
            ..TerranePlugin::in_memory()
        };
        let mut app = headless(plugin);
        app.register_region_component::<Part<0>>()
            .register_region_component::<Part<1>>()
            .register_region_component::<Part<2>>()
            .register_region_component::<Part<3>>()
            .add_region_plugins(systems);
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 0.0, 0.0, 2);
        start(&mut app);
        let place = BlockPos::new(0, 5, 0);
        in_region(&mut app, dimension, place, move |region| {
            let id = region.resource::<RegionInfo>().dimension;
            let creature =
                move |_| (Position::new(id, place), Part::<0>(0.0), Part::<1>(0.0), Part::<2>(0.0), Part::<3>(0.0));
            region.spawn_batch((0..CREATURES).map(creature));
        });
        run_for(&mut app, 8.0);
        let statistics = app.world().resource::<WorldStatistics>().clone();
        statistics.regions.first().map(|region| region.window(TimeWindow::FiveSeconds).median).unwrap_or_default()
    };
    let (one, many) = (tick_time(usize::MAX), tick_time(1_000));
    let gain = one.as_secs_f64() / many.as_secs_f64();
    let ours = format!("{gain:.2} x (a tick of 20,000 entities: {one:.2?} to {many:.2?})");
    report("T6 crowded region", ours, "a gain worth its cost");
}

/// A world whose regions have one column each, in a row.
fn row_world() -> (App, DimensionId) {
    let threads = ThreadSettings { regions: 2, ..default() };
    let mut app = headless(TerranePlugin { threads, pacing: Pacing::fixed(4_096), ..TerranePlugin::in_memory() });
    app.register_region_component::<Creature>().add_region_plugins(five_systems);
    let dimension = flat(&mut app);
    start(&mut app);
    (app, dimension)
}

/// Spawns viewers of single columns, from `first` on at this distance in blocks.
fn row(app: &mut App, dimension: DimensionId, first: i64, count: i64, distance: i64) -> Vec<Entity> {
    (0..count).map(|number| viewer(app, dimension, (first + number * distance) as f32, 8.0, 0)).collect()
}

fn until_regions(app: &mut App, count: usize, columns: i64) {
    let patience = Patience { limit: Duration::from_secs(240), frame: Duration::from_millis(5) };
    update_until_within(app, patience, &format!("there are {count} regions"), |world| {
        let statistics = world.resource::<WorldStatistics>();
        let ticks = |region: &RegionStatistics| region.ticks > 5;
        statistics.regions.len() == count
            && statistics.regions.iter().all(ticks)
            && statistics.columns as i64 == columns
    });
}

/// The memory of a process that never had more than one region, with this many columns in a row.
fn fresh_row(columns: i64) {
    let (mut app, dimension) = row_world();
    let entity = dimension_entity(app.world_mut(), dimension);
    // No region gets a world before all ground is there.
    app.world_mut().entity_mut(entity).insert(DimensionClock { paused: true, ..default() });
    row(&mut app, dimension, 0, columns, APART / 2);
    let patience = Patience { limit: Duration::from_secs(240), frame: Duration::from_millis(5) };
    update_until_within(&mut app, patience, "the ground is there", |world| {
        world.resource::<PublishedColumns>().iter().count() as i64 == columns
    });
    app.world_mut().entity_mut(entity).insert(DimensionClock::default());
    until_regions(&mut app, 1, columns);
    run_for(&mut app, 10.0);
    println!("{}", resident());
}

/// The memory after 2,000 regions have merged into one, and after they have gone, each beside a process that never had them.
fn memory_comes_back() {
    const REGIONS: i64 = 2_000;
    let fresh = |columns: i64| -> f64 {
        let program = std::env::current_exe().expect("this program");
        let output = std::process::Command::new(program).arg(format!("{FRESH}{columns}")).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("its memory in KiB")
    };
    let (mut app, dimension) = row_world();
    row(&mut app, dimension, 0, 1, APART);
    let many = row(&mut app, dimension, APART, REGIONS - 1, APART);
    until_regions(&mut app, REGIONS as usize, REGIONS);
    run_for(&mut app, 5.0);
    let height = resident();
    let bridges = row(&mut app, dimension, APART / 2, REGIONS - 1, APART);
    until_regions(&mut app, 1, 2 * REGIONS - 1);
    let compare = |app: &mut App, what: &str, columns: i64| {
        run_for(app, 60.0);
        let (ours, fresh) = (resident(), fresh(columns));
        let ours = format!(
            "{:.0} MiB, fresh {:.0} MiB: {:.2} x; with {REGIONS} regions {:.0} MiB",
            ours / 1_024.0,
            fresh / 1_024.0,
            ours / fresh,
            height / 1_024.0
        );
        report(what, ours, "1.2 x within a minute");
    };
    compare(&mut app, "T8 memory after a merge", 2 * REGIONS - 1);
    for viewer in many.into_iter().chain(bridges) {
        app.world_mut().despawn(viewer);
    }
    until_regions(&mut app, 1, 1);
    compare(&mut app, "T8 memory after the end of regions", 1);
}
