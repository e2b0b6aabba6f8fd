//! Regions that do not tick for a while: paused, or very slow.

use crate::support::gate::Gate;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{LetterLost, RegionOrder};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A place that is not loaded, and near enough to belong to the same region.
const NEARBY: BlockPos = BlockPos::new(16 * 6, 5, 0);
const FAR: BlockPos = BlockPos::new(16 * 100, 5, 0);

/// One region around a viewer.
fn one_region(plugin: TerranePlugin) -> (App, DimensionId, Entity) {
    one_region_with(plugin, |_| ())
}

fn one_region_with(plugin: TerranePlugin, add: impl FnOnce(&mut App)) -> (App, DimensionId, Entity) {
    let mut app = game(plugin);
    add(&mut app);
    listen::<ColumnChanged>(&mut app);
    listen::<WorldSaved>(&mut app);
    listen::<LetterLost>(&mut app);
    let dimension = flat(&mut app);
    let camera = viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update_until(&mut app, "it ticks", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.ticks > 0 && region.columns >= 13)
    });
    (app, dimension, camera)
}

fn times_loaded(app: &App, block: BlockPos) -> usize {
    let changed = heard::<ColumnChanged>(app).iter().filter(|changed| changed.column == block.column());
    changed.filter(|changed| changed.change == ColumnChange::Loaded).count()
}

/// Sends a closure to a place, which reports when it runs.
fn send(app: &mut App, dimension: DimensionId, block: BlockPos) -> Receiver<()> {
    let (sender, receiver) = channel();
    in_region(app, dimension, block, move |_| sender.send(()).unwrap());
    receiver
}

/// Promise, clocks and faults: A region that does not tick keeps columns for which a message waits.
#[test]
fn a_letter_to_ground_of_a_paused_dimension_loads_it_once_and_holds_it_until_the_next_tick() {
    let (mut app, dimension, _) = one_region(lockstep());
    let paused = DimensionClock { paused: true, ..default() };
    clock(&mut app, dimension, paused);
    update(&mut app, 3);
    let letters = [NEARBY, FAR].map(|block| send(&mut app, dimension, block));
    update(&mut app, 100);
    assert_eq!([NEARBY, FAR].map(|block| times_loaded(&app, block)), [1, 1]);
    // Another letter finds the column loaded.
    let more = send(&mut app, dimension, FAR);
    update(&mut app, 30);
    assert_eq!(times_loaded(&app, FAR), 1);
    assert!(letters.iter().chain([&more]).all(|letter| letter.try_recv().is_err()), "nothing ticks");

    clock(&mut app, dimension, DimensionClock::default());
    update(&mut app, 20);
    assert!(letters.iter().chain([&more]).all(|letter| letter.try_recv().is_ok()));
    assert!(
        [NEARBY, FAR].iter().all(|block| block_at(app.world_mut(), dimension, *block).is_none()),
        "and it is evicted"
    );
    assert!(heard::<LetterLost>(&app).is_empty());
}

#[test]
fn a_letter_to_ground_of_a_paused_region_loads_it_once_and_waits_for_the_next_tick() {
    let (mut app, dimension, _) = one_region(lockstep());
    order(&mut app, dimension, HERE.column(), RegionOrder::Pause);
    update(&mut app, 3);
    let letter = send(&mut app, dimension, NEARBY);
    update(&mut app, 100);
    assert_eq!(times_loaded(&app, NEARBY), 1);
    order(&mut app, dimension, HERE.column(), RegionOrder::Step(1));
    update(&mut app, 20);
    assert!(letter.try_recv().is_ok());
    assert_eq!(block_at(app.world_mut(), dimension, NEARBY), None);
}

/// Promise, clocks and faults: A region that does not tick for a while still saves and evicts unneeded columns.
#[test]
fn a_very_slow_region_saves_and_evicts_columns_between_its_ticks() {
    let (mut app, dimension, camera) = one_region(TerranePlugin::in_memory());
    order(&mut app, dimension, HERE.column(), RegionOrder::TickRate(Some(0.001)));
    let ticks = |world: &World| region_at(world, dimension, HERE.column()).map(|region| region.ticks);
    update_until(&mut app, "it is slow", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.tick_rate == Some(0.001))
    });
    // Running ticks have ended when the save is answered.
    app.world_mut().write_message(SaveWorld { request: 0 });
    update_until(&mut app, "all is saved", |world| !world.resource::<Heard<WorldSaved>>().0.is_empty());
    let later = app.world().resource::<WorldStatistics>().clock + Duration::from_millis(500);
    update_until(&mut app, "statistics are new", |world| world.resource::<WorldStatistics>().clock > later);
    let last = ticks(app.world());
    let (position, block) = (BlockPos::new(3, 20, 3), id_of(app.world(), "terrane:stone"));
    app.world_mut().write_message(SetBlock { dimension, position, block });
    app.world_mut().write_message(SaveWorld { request: 1 });
    update_until(&mut app, "it is saved", |world| world.resource::<Heard<WorldSaved>>().0.len() == 2);
    assert_eq!(block_at(app.world_mut(), dimension, position), Some(block));
    let letter = send(&mut app, dimension, NEARBY);
    move_viewer(&mut app, camera, 16.0 * 3.0, 0.0);
    let trail = BlockPos::new(-16 * 2, 0, 0);
    update_until(&mut app, "the columns behind it are evicted", |world| block_at(world, dimension, trail).is_none());
    assert_eq!(ticks(app.world()), last, "all of that without a tick");
    assert!(letter.try_recv().is_err());
    order(&mut app, dimension, HERE.column(), RegionOrder::TickRate(None));
    update_until(&mut app, "the letter is read", |_| letter.try_recv().is_ok());
}

#[test]
fn a_region_whose_rate_is_raised_while_it_runs_does_not_wait_out_its_old_period() {
    let gate = Gate::default();
    let copy = gate.clone();
    let plugin = TerranePlugin::in_memory();
    let (mut app, dimension, _) = one_region_with(plugin, move |app| {
        app.add_region_plugins(move |region| {
            region.insert_resource(copy.clone()).add_systems(RegionTick, |gate: Res<Gate>| gate.pass());
        });
    });
    let is_told = |app: &mut App, rate: Option<f64>, paused: bool| {
        update_until(app, "the order is followed", |world| {
            region_at(world, dimension, HERE.column())
                .is_some_and(|region| (region.tick_rate, region.paused) == (rate, paused))
        });
    };
    order(&mut app, dimension, HERE.column(), RegionOrder::TickRate(Some(0.001)));
    order(&mut app, dimension, HERE.column(), RegionOrder::Pause);
    is_told(&mut app, Some(0.001), true);
    gate.close();
    order(&mut app, dimension, HERE.column(), RegionOrder::Step(1));
    update_until(&mut app, "it ticks", |_| gate.waiting() == 1);
    order(&mut app, dimension, HERE.column(), RegionOrder::TickRate(None));
    order(&mut app, dimension, HERE.column(), RegionOrder::Resume);
    is_told(&mut app, None, false);
    gate.open();
    let ticks = |world: &World| region_at(world, dimension, HERE.column()).map(|region| region.ticks);
    let before = ticks(app.world()).unwrap();
    update_until(&mut app, "it ticks on", |world| ticks(world).is_some_and(|ticks| ticks > before + 2));
}
