//! A column's life, step by step: absent, claimed, waiting in an inbox, owned, leaving, taken back or read again. At any state
//! of the store, its newest blocks and its entities are there exactly once.

use crate::disk::Disk;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::view::RegionOrder;
use std::time::Duration;

const BLOCK: BlockPos = BlockPos::new(3, 9, 3);
const AWAY: f32 = 16_000.0;
/// The number of updates between the order of a column and its delivery in lockstep; from memory it comes at once.
const LATENCY: usize = 4;

fn on_demand(disk: &Disk) -> TerranePlugin {
    TerranePlugin {
        saving: SaveSettings { shutdown_patience: Duration::ZERO, ..SaveSettings::every(Duration::from_secs(3_600)) },
        ..disk.plugin()
    }
}

/// A world in lockstep that is saved on demand, with a viewer far away.
fn world(disk: &Disk) -> (App, DimensionId, Entity) {
    let mut app = game(TerranePlugin { tick_mode: TickMode::Lockstep, ..on_demand(disk) });
    let dimension = flat(&mut app);
    // The columns there stay.
    let viewers = [0; 2].map(|_| viewer(&mut app, dimension, AWAY, 0.0, 0));
    start(&mut app);
    update(&mut app, 10);
    (app, dimension, viewers[0])
}

fn come(app: &mut App, viewer: Entity, updates: usize) {
    move_viewer(app, viewer, 0.0, 0.0);
    update(app, updates);
}

fn go(app: &mut App, viewer: Entity, updates: usize) {
    move_viewer(app, viewer, AWAY, 0.0);
    update(app, updates);
}

fn set(app: &mut App, dimension: DimensionId, name: &str) -> BlockId {
    let block = id_of(app.world(), name);
    app.world_mut().write_message(SetBlock { dimension, position: BLOCK, block });
    update(app, 2);
    assert_eq!(block_at(app.world_mut(), dimension, BLOCK), Some(block));
    block
}

fn counts(app: &App) -> (u64, u64) {
    let statistics = app.world().resource::<WorldStatistics>();
    (statistics.generated, statistics.loaded)
}

#[test]
fn a_column_is_absent_then_claimed_then_owned() {
    let (mut app, dimension, viewer) = world(&Disk::default());
    assert_eq!(block_at(app.world_mut(), dimension, BLOCK), None, "absent");
    come(&mut app, viewer, 2);
    assert_eq!(block_at(app.world_mut(), dimension, BLOCK), None, "claimed");
    update(&mut app, LATENCY + 1);
    set(&mut app, dimension, "terrane:stone");
}

#[test]
fn an_unneeded_claimed_column_is_not_loaded_and_not_generated_twice() {
    let (mut app, dimension, viewer) = world(&Disk::default());
    come(&mut app, viewer, 1);
    go(&mut app, viewer, 20);
    assert_eq!(block_at(app.world_mut(), dimension, BLOCK), None);
    let (generated, _) = counts(&app);
    for saves in [false, true] {
        if saves {
            save(&mut app);
        }
        come(&mut app, viewer, 10);
        assert!(block_at(app.world_mut(), dimension, BLOCK).is_some());
        assert_eq!(counts(&app).0, generated);
        go(&mut app, viewer, 10);
    }
}

#[test]
fn a_column_that_waits_in_the_inbox_of_a_paused_region_is_seen_edited_and_stored() {
    let disk = Disk::default();
    let (mut app, dimension, viewer) = world(&disk);
    come(&mut app, viewer, 10);
    order(&mut app, dimension, BLOCK.column(), RegionOrder::Pause);
    update(&mut app, 3);
    // In addition to the one column that the region has.
    app.world_mut().get_mut::<Viewer>(viewer).unwrap().radius = 1;
    update(&mut app, LATENCY + 4);
    let beside = BlockPos::new(BLOCK.x + 16, BLOCK.y, BLOCK.z);
    assert!(block_at(app.world_mut(), dimension, beside).is_some(), "it is seen before a tick");
    let stone = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: beside, block: stone });
    update(&mut app, 3);
    save(&mut app);
    let (mut app, dimension, viewer) = world(&disk.copy());
    app.world_mut().get_mut::<Viewer>(viewer).unwrap().radius = 1;
    come(&mut app, viewer, 10);
    assert_eq!(block_at(app.world_mut(), dimension, beside), Some(stone));
}

#[test]
fn a_leaving_column_is_taken_back_with_its_entities_before_anything_is_written() {
    let disk = Disk::default();
    let (mut app, dimension, viewer) = world(&disk);
    come(&mut app, viewer, 10);
    save(&mut app);
    let stone = set(&mut app, dimension, "terrane:stone");
    spawn_in_region(&mut app, dimension, BLOCK, walker("bob", 0.0));
    update(&mut app, 5);
    disk.take_log();
    for round in 0..3 {
        let before = counts(&app);
        go(&mut app, viewer, 5);
        assert_eq!(block_at(app.world_mut(), dimension, BLOCK), None, "round {round}");
        assert!(walkers(app.world_mut()).is_empty());
        come(&mut app, viewer, 2);
        assert_eq!(block_at(app.world_mut(), dimension, BLOCK), Some(stone), "sooner than from the store");
        update(&mut app, 5);
        assert_eq!(walkers(app.world_mut()).len(), 1, "round {round}");
        assert_eq!(counts(&app), before, "neither read nor generated");
    }
    assert!(disk.take_log().is_empty());
}

#[test]
fn a_departed_column_is_dropped_once_written_and_reloads_from_the_store() {
    let disk = Disk::default();
    let (mut app, dimension, viewer) = world(&disk);
    come(&mut app, viewer, 10);
    for name in ["terrane:stone", "terrane:dirt", "terrane:grass"] {
        let block = set(&mut app, dimension, name);
        let before = counts(&app);
        go(&mut app, viewer, 5);
        save(&mut app);
        come(&mut app, viewer, 10);
        assert_eq!(block_at(app.world_mut(), dimension, BLOCK), Some(block));
        let (generated, loaded) = counts(&app);
        assert!(generated == before.0 && loaded > before.1, "it is read again");
    }
}

#[test]
fn a_column_that_comes_back_while_it_is_being_written_has_its_newest_blocks() {
    let disk = Disk::default();
    let mut app = game(on_demand(&disk));
    listen::<WorldSaved>(&mut app);
    let dimension = flat(&mut app);
    let viewer = viewer(&mut app, dimension, 0.0, 0.0, 0);
    start(&mut app);
    let is =
        |name: &'static str| move |world: &mut World| block_at(world, dimension, BLOCK) == Some(id_of(world, name));
    let set = |app: &mut App, name: &'static str| {
        let block = id_of(app.world(), name);
        app.world_mut().write_message(SetBlock { dimension, position: BLOCK, block });
        update_until(app, "the edit is seen", is(name));
    };
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, BLOCK).is_some());
    let gone = |world: &mut World| block_at(world, dimension, BLOCK).is_none();

    set(&mut app, "terrane:stone");
    disk.gate().close();
    // The first blocks are being written. Newer ones leave with the column and wait behind them.
    app.world_mut().write_message(SaveWorld { request: 1 });
    update_until(&mut app, "it is being written", |world| world.resource::<WorldStatistics>().unsaved > 0);
    set(&mut app, "terrane:dirt");
    for _ in 0..3 {
        move_viewer(&mut app, viewer, AWAY, 0.0);
        update_until(&mut app, "it left", gone);
        move_viewer(&mut app, viewer, 0.0, 0.0);
        update_until(&mut app, "it is back", is("terrane:dirt"));
    }
    set(&mut app, "terrane:grass");
    move_viewer(&mut app, viewer, AWAY, 0.0);
    update_until(&mut app, "it left", gone);
    disk.gate().open();
    update_until(&mut app, "the first are written", |world| !world.resource::<Heard<WorldSaved>>().0.is_empty());
    move_viewer(&mut app, viewer, 0.0, 0.0);
    update_until(&mut app, "it is back, and newer than the store", is("terrane:grass"));
    move_viewer(&mut app, viewer, AWAY, 0.0);
    app.world_mut().write_message(SaveWorld { request: 2 });
    update_until(&mut app, "all is written", |world| world.resource::<Heard<WorldSaved>>().0.len() == 2);
    update_until(&mut app, "it left", gone);
    let crashed = disk.copy();
    move_viewer(&mut app, viewer, 0.0, 0.0);
    update_until(&mut app, "it is read", is("terrane:grass"));

    let (mut app, dimension, viewer) = world(&crashed);
    come(&mut app, viewer, 10);
    let grass = id_of(app.world(), "terrane:grass");
    assert_eq!(block_at(app.world_mut(), dimension, BLOCK), Some(grass));
}
