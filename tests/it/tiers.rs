//! Chunks move between the store's tiers while the world runs, and each is always in exactly one of them.

#![cfg(feature = "rocksdb")]

use crate::support::process::{here, kill, process};
use crate::support::*;
use bevy_terrane::chunk::Chunk;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::upkeep::InspectedChunk;
use bevy_terrane::storage::{
    ChunkGroup, Durability, Family, KeyValueStore, MemoryStore, SaveBatch, StorageConfig, Tier, TierConfig, WorldStore,
};
use bevy_terrane::view::Pregeneration;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const DIMENSION: DimensionId = DimensionId(0);

/// In lockstep, where an update is 50 ms of the clock. Chunks are warm after 5 s, and cold after 30 s or beyond 320 blocks.
fn plugin(disk: &Arc<MemoryStore>, promotes_on_load: bool) -> TerranePlugin {
    let settings = TierConfig {
        promotes_on_load,
        warm_after: Duration::from_secs(5),
        cold_after: Duration::from_secs(30),
        cold_beyond: 320,
        ..default()
    };
    TerranePlugin { tiers: settings, ..lockstep_on(disk) }
}

fn tier(disk: &MemoryStore, block: BlockPos) -> Option<Tier> {
    // A copy, so that the running world keeps its session.
    let world = WorldStore::from_store(Arc::new(disk.snapshot())).unwrap();
    world.tier(ChunkGroup::of(DIMENSION, block.chunk())).unwrap()
}

fn seconds(app: &mut App, seconds: usize) {
    update(app, seconds * 20);
}

fn start_at(disk: &Arc<MemoryStore>, promotes_on_load: bool) -> (App, DimensionId, Entity) {
    let mut app = game(plugin(disk, promotes_on_load));
    let dimension = flat(&mut app);
    let viewer = viewer(&mut app, dimension, 0.0, 0.0, 3);
    start(&mut app);
    (app, dimension, viewer)
}

const HOME: BlockPos = BlockPos::new(3, 2, 3);
const NEAR: BlockPos = BlockPos::new(200, 2, 3);
const FAR: BlockPos = BlockPos::new(900, 2, 3);

/// Promise, tiers: Loading, evicting and generating a chunk group count as accesses.
#[test]
fn ground_that_was_left_cools_down_by_time_and_distance_and_loaded_ground_does_not() {
    let disk = Arc::new(MemoryStore::new());
    let (mut app, dimension, viewer) = start_at(&disk, false);
    seconds(&mut app, 20);
    assert_eq!(tier(&disk, HOME), Some(Tier::Hot), "it is loaded");
    let stone = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: HOME, block: stone });
    seconds(&mut app, 6);
    move_viewer(&mut app, viewer, NEAR.x as f32, 0.0);
    seconds(&mut app, 4);
    assert_eq!(tier(&disk, HOME), Some(Tier::Hot), "five seconds have not passed since it was left");
    seconds(&mut app, 6);
    assert_eq!(tier(&disk, HOME), Some(Tier::Warm), "the viewer is near");
    seconds(&mut app, 10);
    assert_eq!((tier(&disk, HOME), tier(&disk, NEAR)), (Some(Tier::Warm), Some(Tier::Hot)));
    seconds(&mut app, 15);
    assert_eq!(tier(&disk, HOME), Some(Tier::Cold), "half a minute has passed");
    move_viewer(&mut app, viewer, FAR.x as f32, 0.0);
    seconds(&mut app, 12);
    assert_eq!((tier(&disk, NEAR), tier(&disk, FAR)), (Some(Tier::Cold), Some(Tier::Hot)), "the viewer is far away");
    // It is loaded unchanged from its tier, and becomes hot when it is changed.
    move_viewer(&mut app, viewer, 0.0, 0.0);
    seconds(&mut app, 2);
    assert_eq!(block_at(app.world_mut(), dimension, HOME), Some(stone));
    assert_eq!(tier(&disk, HOME), Some(Tier::Cold));
    let dirt = id_of(app.world(), "terrane:dirt");
    app.world_mut().write_message(SetBlock { dimension, position: HOME, block: dirt });
    seconds(&mut app, 7);
    assert_eq!(tier(&disk, HOME), Some(Tier::Hot));
    let statistics = &app.world().resource::<WorldStatistics>().tiers;
    assert!(statistics.moved[1] > 0 && statistics.moved[2] > 0 && statistics.left == 0, "{statistics:?}");
    let sizes = [statistics.sizes[0], statistics.sizes[2]];
    assert!(sizes.iter().all(|size| size.entries > 0 && size.bytes > 0), "{statistics:?}");
    assert!(statistics.moved_bytes > statistics.written_bytes / 4 && statistics.written_bytes > 0);
}

/// Promise, tiers: With `promotes_on_load` a loaded chunk group becomes hot, otherwise only a saved one.
#[test]
fn loaded_groups_become_hot_at_once_by_a_setting() {
    let disk = Arc::new(MemoryStore::new());
    let (mut app, dimension, viewer) = start_at(&disk, true);
    seconds(&mut app, 2);
    move_viewer(&mut app, viewer, FAR.x as f32, 0.0);
    seconds(&mut app, 15);
    assert_eq!(tier(&disk, HOME), Some(Tier::Cold));
    move_viewer(&mut app, viewer, 0.0, 0.0);
    seconds(&mut app, 1);
    assert!(block_at(app.world_mut(), dimension, HOME).is_some());
    assert_eq!(tier(&disk, HOME), Some(Tier::Hot));
    assert!(app.world().resource::<WorldStatistics>().generated > 0);
}

/// Promise, tiers: The heat of a chunk group counts play time, over all sessions.
/// Promise, tiers: The heat of chunk groups is written when the app ends.
#[test]
fn heat_survives_a_restart() {
    let disk = Arc::new(MemoryStore::new());
    let (mut app, _, viewer) = start_at(&disk, false);
    seconds(&mut app, 8);
    move_viewer(&mut app, viewer, NEAR.x as f32, 0.0);
    seconds(&mut app, 3);
    drop(app);
    assert_eq!((tier(&disk, HOME), tier(&disk, NEAR)), (Some(Tier::Hot), Some(Tier::Hot)));
    let mut app = game(plugin(&disk, false));
    let dimension = flat(&mut app);
    self::viewer(&mut app, dimension, NEAR.x as f32, 0.0, 3);
    start(&mut app);
    seconds(&mut app, 1);
    assert_eq!(tier(&disk, HOME), Some(Tier::Hot), "three and one are less than five");
    seconds(&mut app, 4);
    assert_eq!((tier(&disk, HOME), tier(&disk, NEAR)), (Some(Tier::Warm), Some(Tier::Hot)));
}

/// Promise, tiers: The heat of chunk groups is written after a minute at the latest.
#[test]
fn heat_is_written_within_a_minute_even_without_saves() {
    let disk = Arc::new(MemoryStore::new());
    let open = || {
        let mut app = game(lockstep_on(&disk));
        let dimension = flat(&mut app);
        start(&mut app);
        (app, dimension)
    };
    let heat = || disk.scan(Family::Meta, b"heat:"..b"heat;", usize::MAX).unwrap();
    let (mut app, dimension) = open();
    viewer(&mut app, dimension, 0.0, 0.0, 3);
    seconds(&mut app, 2);
    drop(app);
    let before = heat();
    assert!(!before.is_empty());
    let (mut app, dimension) = open();
    seconds(&mut app, 10);
    viewer(&mut app, dimension, 0.0, 0.0, 3);
    seconds(&mut app, 40);
    assert!(app.world().resource::<WorldStatistics>().loaded > 0);
    assert_eq!(heat(), before, "it waits for something that is saved");
    seconds(&mut app, 11);
    update_until(&mut app, "it is written", |_| heat() != before);
    assert!(app.world().resource::<WorldStatistics>().clock < Duration::from_secs(70));
}

/// Promise, tiers: By default at most 32 MiB of chunks move between tiers per second.
#[test]
fn moves_take_no_more_bytes_a_second_than_they_may() {
    const RATE: u64 = 50_000;
    let disk = Arc::new(MemoryStore::new());
    let settings = TierConfig { bytes_per_second: RATE, ..default() };
    let mut app = game(TerranePlugin { tiers: settings, ..lockstep_on(&disk) });
    let dimension = flat(&mut app);
    start(&mut app);
    update(&mut app, 3);
    let area = ColumnArea::Square { center: ColumnPos::new(0, 0), radius: 24 };
    app.world_mut().spawn(Pregeneration { dimension, area });
    // The bytes moved so far, with the time.
    let mut steps = vec![(Duration::ZERO, 0)];
    update_until(&mut app, "three steps are made", |world| {
        let statistics = world.resource::<WorldStatistics>();
        let moved = statistics.tiers.moved_bytes;
        if moved > steps[steps.len() - 1].1 {
            steps.push((statistics.clock, moved));
        }
        steps.len() == 4
    });
    for step in 1..3 {
        let bytes = steps[step].1 - steps[step - 1].1;
        let waited = steps[step + 1].0 - steps[step].0;
        // Statistics arrive four times a second.
        let least = Duration::from_millis(bytes * 1_000 / RATE).saturating_sub(Duration::from_millis(300));
        assert!(waited >= least, "after {bytes} bytes it waited {waited:?}");
    }
}

/// Promise, tiers: Pre-generated columns start in the cold tier.
#[test]
fn pregenerated_ground_starts_cold() {
    let disk = Arc::new(MemoryStore::new());
    let mut app = game(plugin(&disk, false));
    let dimension = flat(&mut app);
    start(&mut app);
    update(&mut app, 3);
    let area = ColumnArea::Square { center: ColumnPos::new(0, 0), radius: 8 };
    app.world_mut().spawn(Pregeneration { dimension, area });
    seconds(&mut app, 4);
    assert_eq!(tier(&disk, HOME), Some(Tier::Cold), "it waits for nothing but a save and a step");
}

fn positions() -> impl Iterator<Item = ChunkPos> {
    // Groups of several cubes, some at negative positions.
    (0..240).map(|n| ChunkPos::new(n % 6 * 3 - 9, n / 36 % 7 * 3 - 10, n / 6 % 6 * 4 - 12))
}

/// The block of a chunk after a round. Every chunk changes in every seventh round.
fn block(n: usize, round: u64) -> BlockId {
    BlockId::new(1 + (round.saturating_sub(n as u64 % 7) / 7) as u32)
}

fn save(world: &WorldStore, round: u64) {
    let due = positions().enumerate().filter(|(n, _)| round == 0 || *n as u64 % 7 == round % 7);
    let chunk = |n| {
        let mut chunk = Chunk::uniform(BlockId::new(9_000 + n as u32));
        chunk.set_block([1, 2, 3], block(n, round));
        Arc::new(chunk)
    };
    let chunks = due.map(|(n, pos)| ((DIMENSION, pos), chunk(n))).collect();
    world.commit(&SaveBatch { chunks, ..SaveBatch::default() }, Durability::Process).unwrap();
}

/// Runs only in the process that `a_kill_during_moves_leaves_every_chunk_in_one_tier` starts and kills.
#[test]
fn process_that_moves_chunks() {
    let Some(path) = here() else { return };
    let world = WorldStore::open(&StorageConfig::Path(path)).unwrap();
    save(&world, 0);
    println!("\nmoving");
    for round in 1.. {
        let groups: Vec<_> = positions().map(|pos| ChunkGroup::of(DIMENSION, pos)).collect();
        let tier = |n: usize| Tier::ALL[(n + round as usize) % 3];
        let moves: Vec<_> = groups.into_iter().enumerate().map(|(n, group)| (group, tier(n))).collect();
        world.move_groups(&moves).unwrap();
        save(&world, round);
    }
}

/// Promise, tiers: Every move between tiers is one atomic write, and no reader misses a chunk group.
#[test]
fn a_kill_during_moves_leaves_every_chunk_in_one_tier() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..rounds(20) {
        let path = folder.path().join((number / 10).to_string());
        let (mut process, mut lines) = process("tiers::process_that_moves_chunks", &path);
        assert!(lines.any(|line| line == "moving"));
        std::thread::sleep(Duration::from_millis(number * 13 % 60));
        kill(&mut process);
        check_world(&path);
    }
}

/// Checks that each chunk is there once, in the same round as those that changed with it.
fn check_world(path: &Path) {
    let world = WorldStore::open(&StorageConfig::Path(path.to_owned())).unwrap();
    let mut found = BTreeMap::new();
    let mut tiers: BTreeMap<ChunkGroup, Tier> = BTreeMap::new();
    for pos in positions() {
        let InspectedChunk { tier, chunk, .. } = world.inspect_chunk(DIMENSION, pos).unwrap().unwrap();
        let group = ChunkGroup::of(DIMENSION, pos);
        assert_eq!(*tiers.entry(group).or_insert(tier), tier, "{pos} is not where its group is");
        found.insert(pos, chunk);
    }
    // Verifying finds groups that are in two tiers.
    let report = world.verify(|_| ControlFlow::Continue(())).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    let mut rounds: [Option<BlockId>; 7] = [None; 7];
    for (n, pos) in positions().enumerate() {
        let chunk = &found[&pos];
        assert_eq!(chunk.block([0, 0, 0]), BlockId::new(9_000 + n as u32));
        let block = chunk.block([1, 2, 3]);
        assert_eq!(*rounds[n % 7].get_or_insert(block), block, "{pos} is of another round");
        let column = pos.column();
        let loaded = world.load_batch(DIMENSION, column.batch(), &[column], pos.y..pos.y + 1).unwrap();
        assert_eq!(loaded[0].column.chunk(pos.y).map(|chunk| &**chunk), Some(chunk));
    }
    for (group, tier) in tiers {
        assert_eq!(world.tier(group).unwrap(), Some(tier));
    }
}
