//! A column that a system fetches within its tick, while it is affected by something else.

use crate::disk::Disk;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::RegionColumns;
use bevy_terrane::view::{DimensionClosed, LetterLost, RegionOrder, RegionRestarted};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A place in the section of the column of `HERE`, which a viewer with radius 0 does not load.
const BESIDE: BlockPos = BlockPos::new(16 * 3, 9, 0);
const DUG: BlockPos = BlockPos::new(16 * 3 + 2, 9, 0);

fn plugin(disk: &Disk) -> TerranePlugin {
    TerranePlugin { saving: SaveSettings::every(Duration::from_secs(3_600)), ..disk.plugin() }
}

/// A region whose column beside the viewer's was saved with an entity in it, and is unloaded.
fn with_ann_beside(plugin: TerranePlugin) -> (App, DimensionId) {
    with_ann_beside_and(plugin, |_| {})
}

fn with_ann_beside_and(plugin: TerranePlugin, more: impl FnOnce(&mut App)) -> (App, DimensionId) {
    let mut app = game(plugin);
    more(&mut app);
    listen::<WorldSaved>(&mut app);
    listen::<DimensionClosed>(&mut app);
    listen::<RegionHalted>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 0);
    let camera = viewer(&mut app, dimension, BESIDE.x as f32, 0.0, 0);
    start(&mut app);
    update_until(&mut app, "both are loaded", |world| {
        [HERE, BESIDE].iter().all(|place| block_at(world, dimension, *place).is_some())
    });
    spawn_in_region(&mut app, dimension, BESIDE, walker("ann", 0.0));
    update_until(&mut app, "ann is there", |world| walkers(world).len() == 1);
    app.world_mut().write_message(SaveWorld { request: 0 });
    update_until(&mut app, "she is saved", |world| !world.resource::<Heard<WorldSaved>>().0.is_empty());
    app.world_mut().despawn(camera);
    update_until(&mut app, "she is unloaded", |world| block_at(world, dimension, BESIDE).is_none());
    // Evicted columns are durable: this one is read from the store.
    app.world_mut().write_message(SaveWorld { request: 1 });
    update_until(&mut app, "it is saved", |world| world.resource::<Heard<WorldSaved>>().0.len() > 1);
    assert_eq!(walkers(app.world_mut()).len(), 0);
    (app, dimension)
}

/// Fetches and changes the column.
fn fetch(region: &mut World, block: BlockId) {
    let mut blocks = region.resource_mut::<RegionColumns>();
    assert!(!blocks.contains(BESIDE.column()));
    blocks.load(BESIDE).unwrap();
    blocks.set_block(DUG, block).unwrap();
}

fn is_ann_there_once(app: &mut App, dimension: DimensionId) -> bool {
    let (sender, found) = channel();
    in_region(app, dimension, BESIDE, move |region| {
        sender.send(region.query::<&Walker>().iter(region).count()).unwrap();
    });
    let mut anns = None;
    update_until(app, "the region answers", |_| {
        anns = found.try_recv().ok();
        anns.is_some()
    });
    anns == Some(1) && walkers(app.world_mut()).len() == 1
}

#[test]
fn a_column_ordered_and_fetched_at_the_same_time_arrives_once_with_the_newest_blocks() {
    for passes in 0..6 {
        let (mut app, dimension) =
            with_ann_beside(TerranePlugin { tick_mode: TickMode::Lockstep, ..plugin(&Disk::default()) });
        let stone = id_of(app.world(), "terrane:stone");
        viewer(&mut app, dimension, BESIDE.x as f32, 0.0, 0);
        update(&mut app, passes);
        let (sender, has_run) = channel();
        in_region(&mut app, dimension, HERE, move |region| {
            if !region.resource::<RegionColumns>().contains(BESIDE.column()) {
                fetch(region, stone);
                sender.send(()).unwrap();
            }
        });
        update(&mut app, 20);
        // The column is ordered with the first update, and delivered four later.
        assert_eq!(has_run.try_recv().is_ok(), passes < 4, "{passes}");
        assert!(is_ann_there_once(&mut app, dimension), "{passes}");
        let dug = if passes < 4 { stone } else { BlockId::AIR };
        assert_eq!(block_at(app.world_mut(), dimension, DUG), Some(dug), "{passes}");
    }
}

#[test]
fn a_new_column_ordered_and_fetched_at_the_same_time_keeps_its_edits() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 0);
    start(&mut app);
    update(&mut app, 20);
    let stone = id_of(app.world(), "terrane:stone");
    let camera = viewer(&mut app, dimension, BESIDE.x as f32, 0.0, 0);
    in_region(&mut app, dimension, HERE, move |region| fetch(region, stone));
    update(&mut app, 20);
    assert_eq!(block_at(app.world_mut(), dimension, DUG), Some(stone));
    // The same holds in the store.
    app.world_mut().despawn(camera);
    update(&mut app, 200);
    assert_eq!(block_at(app.world_mut(), dimension, DUG), None);
    viewer(&mut app, dimension, BESIDE.x as f32, 0.0, 0);
    update(&mut app, 20);
    assert_eq!(block_at(app.world_mut(), dimension, DUG), Some(stone));
}

#[test]
fn an_unneeded_fetched_column_is_evicted_once_it_is_complete() {
    let (mut app, dimension) =
        with_ann_beside(TerranePlugin { tick_mode: TickMode::Lockstep, ..plugin(&Disk::default()) });
    let stone = id_of(app.world(), "terrane:stone");
    for _ in 0..3 {
        in_region(&mut app, dimension, HERE, move |region| fetch(region, stone));
        update(&mut app, 40);
        assert_eq!(block_at(app.world_mut(), dimension, DUG), None, "it is gone again");
        assert_eq!(walkers(app.world_mut()).len(), 0);
    }
    viewer(&mut app, dimension, BESIDE.x as f32, 0.0, 0);
    update(&mut app, 20);
    assert!(is_ann_there_once(&mut app, dimension));
    assert_eq!(block_at(app.world_mut(), dimension, DUG), Some(stone));
}

#[test]
fn a_column_fetched_just_before_a_halt_comes_back_whole() {
    for is_same_tick in [true, false] {
        let (mut app, dimension) = with_ann_beside(plugin(&Disk::default()));
        let stone = id_of(app.world(), "terrane:stone");
        in_region(&mut app, dimension, HERE, move |region| {
            fetch(region, stone);
            assert!(!is_same_tick, "a letter bomb");
        });
        if !is_same_tick {
            in_region(&mut app, dimension, HERE, |_| panic!("a letter bomb"));
        }
        update_until(&mut app, "it halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
        viewer(&mut app, dimension, BESIDE.x as f32, 0.0, 0);
        update_until(&mut app, "the statistics know it", |world| {
            region_at(world, dimension, HERE.column()).is_some_and(|region| region.halted)
        });
        let times = heard::<RegionHalted>(&app).len();
        order(&mut app, dimension, HERE.column(), RegionOrder::Restart);
        update_until(&mut app, "ann is back", |world| walkers(world).len() == 1);
        assert!(is_ann_there_once(&mut app, dimension));
        assert_eq!(block_at(app.world_mut(), dimension, DUG), Some(BlockId::AIR), "it was not saved");
        assert_eq!(heard::<RegionHalted>(&app).len(), times);
    }
}

#[test]
fn an_entity_that_was_on_a_fetched_column_and_died_does_not_come_back_with_its_late_record() {
    let disk = Disk::default();
    let (mut app, dimension) = with_ann_beside(plugin(&disk));
    let stone = id_of(app.world(), "terrane:stone");
    spawn_in_region(&mut app, dimension, HERE, walker("bob", 0.0));
    update_until(&mut app, "bob is there", |world| walkers(world).len() == 1);
    disk.loads().close();
    in_region(&mut app, dimension, HERE, move |region| {
        fetch(region, stone);
        let mut bobs = region.query_filtered::<&mut Position, With<Walker>>();
        bobs.single_mut(region).unwrap().block = BESIDE;
    });
    update_until(&mut app, "the rest of the column is on order", |_| disk.loads().waiting() > 0);
    viewer(&mut app, dimension, BESIDE.x as f32, 0.0, 0);
    save(&mut app);
    in_region(&mut app, dimension, HERE, move |region| {
        let bob = region.query_filtered::<Entity, With<Walker>>().single(region).unwrap();
        region.despawn(bob);
    });
    update_until(&mut app, "bob is gone", |world| walkers(world).is_empty());
    disk.loads().open();
    // Ann came with the rest of the column, and bob is not alive again.
    update_until(&mut app, "ann is there", |world| !walkers(world).is_empty());
    update(&mut app, 50);
    let names: Vec<String> = walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["ann"]);
    assert!(is_ann_there_once(&mut app, dimension));
}

#[test]
fn unreadable_parts_of_a_fetched_column_are_retried() {
    let disk = Disk::default();
    let (mut app, dimension) = with_ann_beside(TerranePlugin { tick_mode: TickMode::Lockstep, ..plugin(&disk) });
    let stone = id_of(app.world(), "terrane:stone");
    viewer(&mut app, dimension, BESIDE.x as f32, 0.0, 0);
    let bad = disk.clone();
    in_region(&mut app, dimension, HERE, move |region| {
        fetch(region, stone);
        bad.set_unreadable(true);
    });
    // The viewer's order may have been read before.
    update(&mut app, 10);
    assert_eq!(block_at(app.world_mut(), dimension, DUG), Some(stone), "it has its blocks");
    disk.set_unreadable(false);
    update(&mut app, 40);
    assert!(is_ann_there_once(&mut app, dimension));
    assert_eq!(block_at(app.world_mut(), dimension, DUG), Some(stone));
}

#[test]
fn a_dimension_closes_with_a_partly_unreadable_fetched_column() {
    let disk = Disk::default();
    let (mut app, dimension) = with_ann_beside(TerranePlugin { tick_mode: TickMode::Lockstep, ..plugin(&disk) });
    let stone = id_of(app.world(), "terrane:stone");
    let bad = disk.clone();
    in_region(&mut app, dimension, HERE, move |region| {
        fetch(region, stone);
        bad.set_unreadable(true);
    });
    update(&mut app, 10);
    assert_eq!(walkers(app.world_mut()).len(), 0, "she could not be read");
    despawn_dimension(&mut app, dimension);
    update_until(&mut app, "it is closed", |world| !world.resource::<Heard<DimensionClosed>>().0.is_empty());
    disk.set_unreadable(false);
    let again = flat(&mut app);
    viewer(&mut app, again, BESIDE.x as f32, 0.0, 0);
    update_until(&mut app, "all is there", |world| block_at(world, again, DUG) == Some(stone));
    assert!(is_ann_there_once(&mut app, again));
}

#[test]
fn a_dimension_closes_with_a_column_that_is_still_to_be_read_again() {
    let disk = Disk::default();
    let (mut app, dimension) = with_ann_beside(plugin(&disk));
    let stone = id_of(app.world(), "terrane:stone");
    let position = BlockPos::new(2, 9, 0);
    app.world_mut().write_message(SetBlock { dimension, position, block: stone });
    update_until(&mut app, "it is dug", |world| block_at(world, dimension, position) == Some(stone));
    listen::<SaveFailed>(&mut app);
    listen::<RegionRestarted>(&mut app);
    disk.set_full(true);
    app.world_mut().write_message(SaveWorld { request: 2 });
    update_until(&mut app, "it is handed out", |world| !world.resource::<Heard<SaveFailed>>().0.is_empty());
    in_region(&mut app, dimension, HERE, |_| panic!("a letter bomb"));
    update_until(&mut app, "the statistics know it", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.halted)
    });
    order(&mut app, dimension, HERE.column(), RegionOrder::Restart);
    update_until(&mut app, "it began again", |world| !world.resource::<Heard<RegionRestarted>>().0.is_empty());
    despawn_dimension(&mut app, dimension);
    let again = flat(&mut app);
    let failures = heard::<SaveFailed>(&app).len();
    update_until(&mut app, "it is tried again", |world| world.resource::<Heard<SaveFailed>>().0.len() > failures);
    assert!(heard::<DimensionClosed>(&app).is_empty(), "nothing is durable yet");
    disk.set_full(false);
    viewer(&mut app, again, BESIDE.x as f32, 0.0, 4);
    update_until(&mut app, "all is there", |world| {
        block_at(world, again, position) == Some(stone) && walkers(world).len() == 1
    });
    assert_eq!(heard::<DimensionClosed>(&app).len(), 1);
}

#[test]
fn a_dimension_that_closes_waits_for_the_commit_that_has_all_of_it_however_often_one_fails() {
    let disk = Disk::default();
    let (mut app, dimension) = with_ann_beside(plugin(&disk));
    listen::<SaveFailed>(&mut app);
    let other = spawn_dimension(&mut app, Dimension::new("other", Flat::new()));
    viewer(&mut app, other, 0.0, 0.0, 1);
    update_until(&mut app, "it is loaded", |world| block_at(world, other, HERE).is_some());
    let stone = id_of(app.world(), "terrane:stone");
    let position = BlockPos::new(2, 9, 0);
    let dig = |app: &mut App, dimension: DimensionId| {
        app.world_mut().write_message(SetBlock { dimension, position, block: stone });
        update_until(app, "it is dug", |world| block_at(world, dimension, position) == Some(stone));
    };
    disk.set_full(true);
    dig(&mut app, dimension);
    despawn_dimension(&mut app, dimension);
    dig(&mut app, other);
    for request in 2..4 {
        let failures = heard::<SaveFailed>(&app).len();
        app.world_mut().write_message(SaveWorld { request });
        update_until(&mut app, "it failed", |world| world.resource::<Heard<SaveFailed>>().0.len() > failures);
    }
    assert!(heard::<DimensionClosed>(&app).is_empty());
    disk.set_full(false);
    update_until(&mut app, "it is closed", |world| !world.resource::<Heard<DimensionClosed>>().0.is_empty());
    let again = flat(&mut app);
    viewer(&mut app, again, 0.0, 0.0, 0);
    update_until(&mut app, "all is there", |world| block_at(world, again, position) == Some(stone));
    let answers = |world: &World| world.resource::<Heard<WorldSaved>>().0.len();
    update_until(&mut app, "both saves are answered", |world| answers(world) >= 4);
}

/// Records the arrival of scheduled ticks, on the dimension's clock.
fn note_ticks(app: &mut App) -> std::sync::mpsc::Receiver<Duration> {
    let (sender, came) = channel();
    app.add_region_plugins(move |region| {
        let sender = sender.clone();
        let note = move |mut ticks: MessageReader<BlockTick>, time: Res<Time>| {
            ticks.read().for_each(|_| sender.send(time.elapsed()).unwrap());
        };
        region.add_systems(RegionTick, note);
    });
    came
}

#[test]
fn scheduled_ticks_enter_and_leave_a_paused_region_by_the_clock_of_its_dimension() {
    let mut app = game(lockstep());
    let came = note_ticks(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 0);
    let camera = viewer(&mut app, dimension, BESIDE.x as f32, 0.0, 0);
    start(&mut app);
    update(&mut app, 20);
    app.world_mut().commands().schedule_block_tick(dimension, BESIDE, "once", 60);
    update(&mut app, 2);
    order(&mut app, dimension, HERE.column(), RegionOrder::Pause);
    update(&mut app, 20);
    // Evicted without a tick: 40 ticks remain, and its time stands still.
    app.world_mut().despawn(camera);
    update(&mut app, 40);
    assert_eq!(block_at(app.world_mut(), dimension, BESIDE), None);
    viewer(&mut app, dimension, BESIDE.x as f32, 0.0, 0);
    update(&mut app, 10);
    assert!(block_at(app.world_mut(), dimension, BESIDE).is_some(), "received without a tick");
    order(&mut app, dimension, HERE.column(), RegionOrder::Resume);
    update(&mut app, 20);
    assert!(came.try_recv().is_err(), "it still has to wait");
    update(&mut app, 20);
    assert!(came.try_recv().is_ok(), "but not for what it had waited before");
}

#[test]
fn letters_in_a_halted_region_come_back_when_it_ends() {
    #[derive(Clone)]
    struct Note;
    let armed = Arc::new(AtomicBool::new(true));
    let mut app = game(TerranePlugin::in_memory());
    app.register_region_message::<Note>();
    listen::<RegionHalted>(&mut app);
    listen::<LetterLost>(&mut app);
    listen::<Returned<Note>>(&mut app);
    let dimension = flat(&mut app);
    let camera = viewer(&mut app, dimension, 0.0, 0.0, 0);
    start(&mut app);
    update_until(&mut app, "it is loaded", |world| block_at(world, dimension, HERE).is_some());
    in_region(&mut app, dimension, HERE, |_| panic!("a letter bomb"));
    update_until(&mut app, "it halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
    app.world_mut()
        .commands()
        .send_to_place(dimension, HERE, Note)
        .run_in_region(dimension, HERE, move |_| armed.store(false, Ordering::SeqCst));
    update(&mut app, 5);
    app.world_mut().despawn(camera);
    let unloaded = Undeliverable::Unloaded(HERE.column());
    update_until(&mut app, "the note is back", |world| {
        world.resource::<Heard<Returned<Note>>>().0.iter().any(|note| note.reason == unloaded)
    });
    update_until(&mut app, "the closure is reported", |world| {
        world.resource::<Heard<LetterLost>>().0.iter().any(|lost| lost.reason == unloaded)
    });
}
