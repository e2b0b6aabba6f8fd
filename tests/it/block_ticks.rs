//! Scheduled block ticks: they fire once and on time, and are stored with their chunk.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::view::{RegionMerged, RegionSplit};
use std::sync::{Arc, Mutex};

/// A scheduled tick that came: the region's tick, the block, the kind.
#[derive(Resource, Clone, Default)]
struct Grown(Arc<Mutex<Vec<(u64, BlockPos, String)>>>);

fn grow(mut ticks: MessageReader<BlockTick>, grown: Res<Grown>, info: Res<RegionInfo>, mut blocks: RegionBlocks) {
    for BlockTick { block, kind } in ticks.read() {
        grown.0.lock().unwrap().push((info.ticks, *block, kind.to_string()));
        if &**kind == "again" {
            blocks.schedule_tick(*block, "again", 5).expect("it is loaded");
        }
    }
}

fn growing(plugin: TerranePlugin) -> (App, Grown) {
    let grown = Grown::default();
    let mut app = game(plugin);
    let kept = grown.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(kept.clone()).add_systems(RegionTick, grow);
    });
    (app, grown)
}

const HERE: BlockPos = BlockPos::new(3, -1, 4);

/// Promise, messages: A scheduled block tick comes when it is due, and is stored with its chunk.
#[test]
fn a_block_ticks_when_due_and_again_if_rescheduled() {
    let (mut app, grown) = growing(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    let mut commands = app.world_mut().commands();
    commands.schedule_block_tick(dimension, HERE, "once", 3).schedule_block_tick(dimension, HERE, "once", 1);
    commands.schedule_block_tick(dimension, HERE, "again", 2);
    update(&mut app, 14);
    let grown = grown.0.lock().unwrap();
    let first = grown[0].0;
    let expected = [(0, "again"), (1, "once"), (5, "again"), (10, "again")];
    assert_eq!(*grown, expected.map(|(after, kind)| (first + after, HERE, kind.to_owned())));
}

/// The time of the tick, and the number of ticks; the second time it is cancelled.
#[derive(Resource, Clone, Default)]
struct Seen(Arc<Mutex<Vec<(Option<u64>, usize, bool)>>>);

/// Promise, messages: `RegionBlocks::ticks` gives all waiting block ticks.
#[test]
fn a_system_reads_and_cancels_scheduled_ticks_with_its_blocks() {
    fn look(mut blocks: RegionBlocks, seen: Res<Seen>) {
        let mut seen = seen.0.lock().unwrap();
        let (scheduled, count) = (blocks.ticks().scheduled(HERE, "once"), blocks.ticks().len());
        if scheduled.is_some() {
            let is_cancelled = seen.len() == 1 && blocks.cancel_tick(HERE, "once");
            seen.push((scheduled, count, is_cancelled));
        }
    }
    let (mut app, grown) = growing(lockstep());
    let (dimension, seen) = (flat(&mut app), Seen::default());
    let kept = seen.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(kept.clone()).add_systems(RegionTick, look);
    });
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    app.world_mut().commands().schedule_block_tick(dimension, HERE, "once", 8);
    update(&mut app, 14);
    assert_eq!(*seen.0.lock().unwrap(), [(Some(8), 1, false), (Some(7), 1, true)]);
    assert!(grown.0.lock().unwrap().is_empty());
}

/// Promise, messages: The remaining delay of a scheduled block tick survives the end of the app.
#[test]
fn a_delay_continues_after_a_restart() {
    let store = Arc::new(MemoryStore::new());
    let open = || {
        let (mut app, grown) = growing(lockstep_on(&store));
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 0.0, 0.0, 1);
        start(&mut app);
        update_until(&mut app, "it is loaded", |world| block_at(world, dimension, HERE).is_some());
        (app, grown, dimension)
    };
    for session in 0..3 {
        let (mut app, grown, dimension) = open();
        if session == 0 {
            app.world_mut().commands().schedule_block_tick(dimension, HERE, "once", 90);
        }
        update(&mut app, 20);
        assert!(grown.0.lock().unwrap().is_empty(), "too early, in session {session}");
    }
    let (mut app, grown, _) = open();
    update(&mut app, 40);
    assert_eq!(grown.0.lock().unwrap().len(), 1);
}

#[test]
fn where_nothing_is_loaded_time_stands_still_for_blocks_too() {
    let (mut app, grown) = growing(lockstep());
    let dimension = flat(&mut app);
    let camera = viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    app.world_mut().commands().schedule_block_tick(dimension, HERE, "once", 30);
    update(&mut app, 5);
    move_viewer(&mut app, camera, 10_000.0, 0.0);
    update(&mut app, 60);
    assert!(grown.0.lock().unwrap().is_empty());
    move_viewer(&mut app, camera, 0.0, 0.0);
    update(&mut app, 15);
    assert!(grown.0.lock().unwrap().is_empty(), "it still has to wait");
    update(&mut app, 20);
    assert_eq!(grown.0.lock().unwrap().len(), 1);
}

/// Promise, messages: A scheduled block tick comes when it is due, and is stored with its chunk.
#[cfg(feature = "rocksdb")]
#[test]
fn scheduled_ticks_survive_the_app_and_fire_once() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = || TerranePlugin { tick_mode: TickMode::Lockstep, ..TerranePlugin::at(folder.path().join("world")) };
    let mut came = Vec::new();
    for session in 0..3 {
        let (mut app, grown) = growing(plugin());
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 0.0, 0.0, 1);
        start(&mut app);
        update(&mut app, 20);
        if session == 0 {
            app.world_mut().commands().schedule_block_tick(dimension, HERE, "once", 25);
        }
        update(&mut app, 10);
        came.push(grown.0.lock().unwrap().len());
    }
    assert_eq!(came, [0, 1, 0]);
}

/// Chains of ticks over two areas that merge and split: none is lost, and none comes twice.
#[test]
fn ticks_go_with_their_blocks_when_regions_merge_and_split() {
    let (mut app, grown) = growing(TerranePlugin { regionizer: parting_soon(), ..lockstep() });
    listen::<RegionMerged>(&mut app);
    listen::<RegionSplit>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    viewer(&mut app, dimension, 16.0 * 60.0, 0.0, 2);
    let bridge = viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    let blocks = [HERE, BlockPos::new(16 * 60, -1, 0)];
    for block in blocks {
        app.world_mut().commands().schedule_block_tick(dimension, block, "again", 0);
    }
    update(&mut app, 2);
    for step in 0..600 {
        let x = if step % 200 < 100 { step % 100 } else { 100 - step % 100 };
        move_viewer(&mut app, bridge, (x * 16 * 60 / 100) as f32, 0.0);
        app.update();
    }
    let (merges, splits) = (heard::<RegionMerged>(&app).len(), heard::<RegionSplit>(&app).len());
    assert!(merges > 2 && splits > 2, "{merges} merges, {splits} splits");
    for block in blocks {
        let came = grown.0.lock().unwrap().iter().filter(|(_, at, _)| *at == block).count();
        // One in five ticks; a region that splits or waits for a merge skips a few of its ticks.
        assert!((110..=121).contains(&came), "{came} at {block}");
    }
}
