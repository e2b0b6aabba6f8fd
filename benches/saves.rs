//! K5: bytes written to disk per changed byte. K7: the cost of saving for the coordinator and the main thread. `cargo bench
//! --all-features --bench saves` prints the figures; an argument names the one to run.
//!
//! K5, compared with the same changes written as plain puts: ten minutes on a simulated clock. 100 bots, each on its own
//! ground, walk around and place a block in every other tick. All ground that they see is generated before. Nothing is unsaved
//! for longer than ten seconds. The changed bytes are the encoded bytes of the distinct chunks that changed in each ten
//! seconds. The written bytes are the database's log, its tables, and rewrites of them.
//!
//! K7, on the real clock: 44 players, around each of whom a block is changed in every one of 225 columns within five seconds:
//! once with an autosave period of five seconds, so that 2,000 columns are saved each second, and once with one of an hour.

#[path = "shared/choose.rs"]
mod choose;
#[path = "shared/processor.rs"]
mod processor;

use bevy_terrane::chunk::format;
use bevy_terrane::plugin::SaveSettings;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{Durability, Family, KeyValueStore, RocksStore, WriteBatch, keys};
use bevy_terrane::testing::{flat, headless, spawn_dimension, spawn_in_region, start, update};
use bevy_terrane::view::{Pacing, PublishedColumns, WorldStatistics};
use processor::processor_time;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const BOTS: i64 = 100;
const MINUTES: u64 = 10;
const TICKS_A_SECOND: u64 = 20;
const WINDOW: u64 = 10 * TICKS_A_SECOND;
/// The side length of a bot's ground, in blocks.
const SIDE: i64 = 64;
/// Everything is saved after the period, two ticks and the duration of a commit.
const PERIOD: Duration = Duration::from_millis(9_900);

/// A bot that walks over its ground and builds.
#[derive(Component, Clone)]
struct Bot {
    home: BlockPos,
}

/// The chunks that changed since the last query.
#[derive(Resource, Clone, Default)]
struct Changed(Arc<Mutex<BTreeSet<ChunkPos>>>);

fn home(number: i64) -> BlockPos {
    BlockPos::new(number % 10 * 2_048, 8, number / 10 * 2_048)
}

fn build(
    mut random: ResMut<RegionRandom>,
    changed: Res<Changed>,
    types: Res<BlockTypes>,
    mut blocks: RegionBlocks,
    mut bots: Query<(&Bot, &mut Position)>,
) {
    let stone = types.id("terrane:stone").unwrap_or(BlockId::AIR);
    for (bot, mut position) in &mut bots {
        let mut step = || i64::from(random.0.below(3)) - 1;
        let [x, z] = [step(), step()];
        let within = |at: i64, home: i64| at.clamp(home, home + SIDE - 1);
        position.block.x = within(position.block.x + x, bot.home.x);
        position.block.z = within(position.block.z + z, bot.home.z);
        if random.0.below(2) == 0 {
            let height = i64::from(random.0.below(8));
            let place = BlockPos::new(position.block.x, position.block.y + height, position.block.z);
            let new = if random.0.below(4) == 0 { BlockId::AIR } else { stone };
            if blocks.set_block(place, new).is_ok_and(|old| old != new) {
                changed.0.lock().unwrap().insert(place.chunk());
            }
        }
    }
}

/// A player in the middle of columns that are changed one after another.
#[derive(Component, Clone)]
struct Builder {
    home: BlockPos,
}

const BUILDERS: i64 = 44;
/// The number of columns around a builder in each direction.
const REACH: i64 = 7;
const SECONDS_A_ROUND: u64 = 5;
static COLUMNS_CHANGED: AtomicU64 = AtomicU64::new(0);

fn build_around(region: Res<RegionInfo>, types: Res<BlockTypes>, mut blocks: RegionBlocks, builders: Query<&Builder>) {
    let side = 2 * REACH as u64 + 1;
    let ticks = SECONDS_A_ROUND * TICKS_A_SECOND;
    let (round, within) = (region.ticks / ticks, region.ticks % ticks);
    let kinds = [types.id("terrane:stone").unwrap_or(BlockId::AIR), BlockId::AIR];
    for builder in &builders {
        for number in side * side * within / ticks..side * side * (within + 1) / ticks {
            let [x, z] = [number % side, number / side].map(|at| (at as i64 - REACH) * 16);
            let place = BlockPos::new(builder.home.x + x, builder.home.y, builder.home.z + z);
            let kind = kinds[(round % 2) as usize];
            // Columns that are not loaded yet are changed in the next round.
            let is_changed = blocks.set_block(place, kind).is_ok_and(|old| old != kind);
            COLUMNS_CHANGED.fetch_add(is_changed.into(), Ordering::Relaxed);
        }
    }
}

const SECONDS_MEASURED: u64 = 30;

/// The cost of a world with builders; times as median and p99.
struct Cost {
    /// The coordinator's pass, in the median second by p99.
    pass: [Duration; 2],
    /// The main thread's update.
    main: [Duration; 2],
    /// The part of it spent on a core, without waiting for one.
    main_on_a_core: [Duration; 2],
    /// Columns changed per second.
    changed: f64,
    /// Commits per second.
    saves: f64,
}

fn builders(autosave_period: Duration) -> Cost {
    let folder = tempfile::tempdir().expect("a folder");
    let mut app = headless(TerranePlugin {
        saving: SaveSettings::every(autosave_period),
        ..TerranePlugin::at(folder.path().join("world"))
    });
    app.register_region_component::<Builder>().add_region_plugins(|region| {
        region.add_systems(RegionTick, build_around);
    });
    let dimension = flat(&mut app);
    start(&mut app);
    for number in 0..BUILDERS {
        let home = BlockPos::new(number % 7 * 1_024, 5, number / 7 * 1_024);
        let builder = (Builder { home }, Viewer::new().with_radius(REACH as u32));
        spawn_in_region(&mut app, dimension, home, builder);
    }
    let mut run = |seconds: u64| {
        let (mut times, mut own_times, mut passes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..seconds {
            let end = Instant::now() + Duration::from_secs(1);
            while Instant::now() < end {
                let (began, own) = (Instant::now(), processor_time());
                app.update();
                times.push(began.elapsed());
                own_times.push(processor_time().saturating_sub(own));
                std::thread::sleep(Duration::from_millis(15));
            }
            // Covers the last 1,024 passes, about one second.
            passes.push(app.world().resource::<WorldStatistics>().pass_times);
        }
        times.sort_unstable();
        own_times.sort_unstable();
        passes.sort_unstable_by_key(|(_, p99)| *p99);
        let (changed, saves) =
            (COLUMNS_CHANGED.swap(0, Ordering::Relaxed), app.world().resource::<WorldStatistics>().saves);
        (times, own_times, passes[passes.len() / 2], changed, saves)
    };
    // First, the ground is generated and saved.
    let (.., before) = run(40);
    let (times, own_times, pass, changed, saves) = run(SECONDS_MEASURED);
    let at = |times: &[Duration], percent: usize| times[(times.len() - 1) * percent / 100];
    let both = |times: &[Duration]| [at(times, 50), at(times, 99)];
    let rate = |count: u64| count as f64 / SECONDS_MEASURED as f64;
    Cost {
        pass: [pass.0, pass.1],
        main: both(&times),
        main_on_a_core: both(&own_times),
        changed: rate(changed),
        saves: rate(saves - before),
    }
}

/// K7: the cost of saving for the coordinator and the main thread.
fn unnoticed() {
    let idle = builders(Duration::from_secs(3_600));
    let busy = builders(Duration::from_secs(SECONDS_A_ROUND));
    for cost in [&idle, &busy] {
        let Cost { pass, main, main_on_a_core, changed, saves } = cost;
        println!("K7 {changed:.0} columns changed a second, {saves:.1} commits; p50 and p99 of");
        println!("K7   the pass {pass:.2?}, main thread {main:.2?}, of this on a core {main_on_a_core:.2?}");
    }
    let more = |busy: [Duration; 2], idle: [Duration; 2]| (busy[1].as_secs_f64() - idle[1].as_secs_f64()) * 1e3;
    println!(
        "K7 saving adds to the p99 of the pass {:+.2} ms (goal: + 1 ms), of the main thread {:+.2} ms (goal: + 0.1 ms), of its time on a core {:+.2} ms",
        more(busy.pass, idle.pass),
        more(busy.main, idle.main),
        more(busy.main_on_a_core, idle.main_on_a_core)
    );
}

fn main() {
    choose::run(&[("K5", bytes_written), ("K7", unnoticed)]);
}

fn bytes_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let changed = Changed::default();
    let plugin = TerranePlugin {
        tick_mode: TickMode::Lockstep,
        saving: SaveSettings::every(PERIOD),
        pacing: Pacing::fixed(10_000),
        ..TerranePlugin::at(folder.path().join("world"))
    };
    let mut app = headless(plugin);
    app.register_region_component::<Bot>();
    let copy = changed.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, build);
    });
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Hills::seeded(42)));
    start(&mut app);
    update(&mut app, 3);
    for number in 0..BOTS {
        let home = home(number);
        let radius = SIDE as u32 / 16 + 1;
        spawn_in_region(&mut app, dimension, home, (Bot { home }, Viewer::new().with_radius(radius)));
        // All ground that a bot sees is generated before, because new ground does not count as a change.
        let middle = BlockPos::new(home.x + SIDE / 2, home.y, home.z + SIDE / 2);
        let wide = Viewer::new().with_radius(radius + SIDE as u32 / 32 + 1);
        spawn_in_region(&mut app, dimension, middle, wide);
    }
    update(&mut app, 60);
    while app.world().resource::<WorldStatistics>().remaining > 0 {
        update(&mut app, 20);
    }
    // The new ground is saved, and the resulting compactions are done.
    update(&mut app, 3 * WINDOW as usize);

    let plain = RocksStore::open(&folder.path().join("plain"), true).expect("a database");
    changed.0.lock().unwrap().clear();
    let statistics = |app: &App| {
        let statistics = app.world().resource::<WorldStatistics>();
        (statistics.bytes_written.unwrap_or(0), statistics.bytes_saved, statistics.saves)
    };
    let (before, began) = (statistics(&app), Instant::now());
    let (mut encoded, mut most_unsaved, mut puts) = (0_u64, 0, 0_u64);
    for tick in 1..=MINUTES * 60 * TICKS_A_SECOND {
        app.update();
        most_unsaved = most_unsaved.max(app.world().resource::<WorldStatistics>().unsaved);
        if tick % WINDOW == 0 {
            let mut batch = WriteBatch::default();
            let published = app.world().resource::<PublishedColumns>();
            for chunk in std::mem::take(&mut *changed.0.lock().unwrap()) {
                let Some(blocks) = published.column(dimension, chunk.column()).and_then(|column| column.chunk(chunk.y))
                else {
                    continue;
                };
                let mut bytes = Vec::new();
                format::encode(&(), blocks, &[], &mut bytes).expect("hills have no components");
                encoded += bytes.len() as u64;
                puts += 1;
                batch.put(Family::Chunks, keys::chunk_key(dimension, chunk), bytes);
            }
            plain.write(batch, Durability::Sync).expect("a write");
        }
    }
    // The last changes are saved, since they are counted.
    update(&mut app, 2);
    let after = statistics(&app);
    let took = began.elapsed();
    drop(app);
    let ratio = |bytes: u64| bytes as f64 / encoded as f64;
    let plainly = plain.written_bytes().unwrap_or(0);
    let mebibytes = |bytes: u64| bytes as f64 / (1024.0 * 1024.0);
    println!(
        "K5 {BOTS} bots, {MINUTES} minutes in {:.0} s: {puts} chunks changed, {:.1} MiB encoded, {} saves, at most {most_unsaved} things pending",
        took.as_secs_f64(),
        mebibytes(encoded),
        after.2 - before.2
    );
    println!("K5 saved       {:>6.2} bytes for each that changed", ratio(after.1 - before.1));
    println!("K5 written     {:>6.2} (goal: below 2.5)", ratio(after.0 - before.0));
    println!("K5 plain puts  {:>6.2}", ratio(plainly));
    println!("K5 on disk     {:>6.1} MiB", mebibytes(size(folder.path())));
}

fn size(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let kind = entry.file_type().ok()?;
        Some(if kind.is_dir() { size(&entry.path()) } else { entry.metadata().ok()?.len() })
    });
    sizes.sum()
}
