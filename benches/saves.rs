//! K5: bytes written to disk for each byte that changed. `cargo bench --bench saves` prints the figure, beside that of the
//! same changes written as plain puts.
//!
//! Ten minutes on a simulated clock: 100 bots, each on ground of its own, walk about and place a block in every other
//! tick. All the ground that they come to see is generated before. Nothing is unsaved for longer than ten seconds. What
//! counts as changed are the encoded bytes of the distinct chunks that changed in each ten seconds; what counts as written
//! is the database's log, its tables, and what it writes again.

use bevy_terrane::chunk::format;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{Durability, Family, KeyValueStore, RocksStore, WriteBatch, keys};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const BOTS: i64 = 100;
const MINUTES: u64 = 10;
const TICKS_A_SECOND: u64 = 20;
const WINDOW: u64 = 10 * TICKS_A_SECOND;
/// The blocks on a side of what a bot walks over.
const SIDE: i64 = 64;
/// Everything is saved after the period, two ticks and the time of a commit.
const PERIOD: Duration = Duration::from_millis(9_900);

/// A bot walks over its ground and builds.
#[derive(Component, Clone)]
struct Bot {
    home: BlockPos,
}

/// The chunks that changed since they were asked for.
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

fn updates(app: &mut App, count: u64) {
    (0..count).for_each(|_| app.update());
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let changed = Changed::default();
    let mut app = App::new();
    let plugin = TerranePlugin::at(folder.path().join("world"))
        .with_tick_mode(TickMode::Lockstep)
        .with_autosave_period(PERIOD)
        .with_columns_in_flight(10_000);
    app.add_plugins((MinimalPlugins, plugin)).register_region_component::<Bot>();
    let copy = changed.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, build);
    });
    let dimension = app.world_mut().spawn(Dimension::new("overworld", Hills::seeded(42))).id();
    app.finish();
    app.cleanup();
    updates(&mut app, 3);
    for number in 0..BOTS {
        let home = home(number);
        let radius = SIDE as u32 / 16 + 1;
        app.world_mut().commands().spawn_in_region(dimension, home, (Bot { home }, Viewer::new().with_radius(radius)));
        // All that a bot comes to see is there before: new ground is no change.
        let middle = BlockPos::new(home.x + SIDE / 2, home.y, home.z + SIDE / 2);
        let wide = Viewer::new().with_radius(radius + SIDE as u32 / 32 + 1);
        app.world_mut().commands().spawn_in_region(dimension, middle, wide);
    }
    updates(&mut app, 60);
    while app.world().resource::<WorldStatistics>().remaining > 0 {
        updates(&mut app, 20);
    }
    // The new ground is saved and what it left to tidy up is done.
    updates(&mut app, 3 * WINDOW);
    let id = app.world().get::<DimensionOpen>(dimension).expect("an open dimension").id;

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
                let Some(blocks) = published.column(id, chunk.column()).and_then(|column| column.chunk(chunk.y)) else {
                    continue;
                };
                let mut bytes = Vec::new();
                format::encode(blocks, &[], &mut bytes);
                encoded += bytes.len() as u64;
                puts += 1;
                batch.put(Family::Chunks, keys::chunk_key(id, chunk), bytes);
            }
            plain.write(batch, Durability::Sync).expect("a write");
        }
    }
    // What was changed last is saved, as it is counted.
    updates(&mut app, 2);
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
