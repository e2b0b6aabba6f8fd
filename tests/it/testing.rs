//! The public harness for tests of games.

use bevy::time::TimePlugin;
use bevy_terrane::generation::Void;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::testing::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

const HERE: BlockPos = BlockPos::new(3, 9, 3);

/// An app with flat terrain at the origin.
fn open(plugin: TerranePlugin) -> (App, DimensionId) {
    let mut app = headless(plugin);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    (app, dimension)
}

/// The message of a panic.
fn last_words<T>(run: impl FnOnce() -> T) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(run)) else { panic!("it did not panic") };
    panic.downcast_ref::<String>().cloned().unwrap_or_else(|| panic.downcast_ref::<&str>().unwrap().to_string())
}

fn wait_in_vain(app: &mut App) -> String {
    let patience = Patience { limit: Duration::from_millis(100), ..default() };
    last_words(|| update_until_within(app, patience, "pigs fly", |_| false))
}

/// Promise, testing: A test of a game whose wait times out reports its condition.
#[test]
fn a_timeout_names_the_condition_and_the_state_of_the_world() {
    let (mut app, _) = open(lockstep());
    update(&mut app, 20);
    let told = wait_in_vain(&mut app);
    assert!(told.starts_with("waited 100ms in vain until pigs fly: regions: 1, columns: "), "{told}");
    assert!(told.ends_with("columns to come: 0"), "{told}");
    app.world_mut().spawn(Dimension::new("overworld", Void));
    let told = wait_in_vain(&mut app);
    assert!(told.ends_with("dimension overworld is not open"), "{told}");
}

/// Promise, testing: A test of a game whose wait times out reports its condition.
#[test]
fn a_timeout_names_halted_regions() {
    let (mut app, dimension) = open(TerranePlugin::in_memory());
    in_region(&mut app, dimension, HERE, |_| panic!("a letter bomb"));
    update_until(&mut app, "it halted", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.halted)
    });
    let told = wait_in_vain(&mut app);
    assert!(told.contains("halted: a letter bomb (tests/it/testing.rs:"), "{told}");
}

#[test]
fn waiting_fails_at_once_if_the_world_was_not_opened() {
    let mut app = headless(lockstep());
    app.add_region_plugins(|region| {
        region.add_plugins(TimePlugin);
    });
    start(&mut app);
    let told = last_words(|| update_until(&mut app, "pigs fly", |_| false));
    assert!(
        told.starts_with("cannot wait until pigs fly, since there is no world")
            && told.contains("TimePlugin was added"),
        "{told}"
    );
}

/// Promise, testing: A test of a game can reopen the world that it saved.
#[test]
fn a_saved_block_survives_reopening_and_a_crash() {
    let store = Arc::new(MemoryStore::new());
    let (mut app, dimension) = open(lockstep_on(&store));
    let place = move |app: &mut App, block: BlockPos| {
        let stone = id_of(app.world(), "terrane:stone");
        ask_region(app, dimension, block, move |mut blocks: RegionBlocks| blocks.set_block(block, stone)).unwrap();
    };
    let above = HERE.offset(0, 1, 0);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, HERE).is_some());
    place(&mut app, HERE);
    save(&mut app);
    let crash = Arc::new(store.snapshot());
    place(&mut app, above);
    drop(app);

    for (store, expected) in [(store, [true, true]), (crash, [true, false])] {
        let (mut again, dimension) = open(lockstep_on(&store));
        update_until(&mut again, "the ground is there", |world| block_at(world, dimension, HERE).is_some());
        let stone = id_of(again.world(), "terrane:stone");
        assert_eq!([HERE, above].map(|at| block_at(again.world(), dimension, at) == Some(stone)), expected);
    }
}

/// Promise, testing: A test of a game can run any system in a region and get its result.
#[test]
fn a_region_is_asked_by_any_system_wherever_it_is() {
    let (mut app, dimension) = open(lockstep());
    let far = BlockPos::new(16_000, 0, 0);
    let name = ask_region(&mut app, dimension, far, move |blocks: RegionBlocks, types: Res<BlockTypes>| {
        types.block(blocks.block(far).unwrap()).name().to_owned()
    });
    assert_eq!(name, "terrane:grass");
    update(&mut app, 20);
    let ticks = ask_region(&mut app, dimension, HERE, |region: &mut World| region.resource::<RegionInfo>().ticks);
    assert_eq!(ask_region(&mut app, dimension, HERE, |region: Res<RegionInfo>| region.ticks), ticks + 1);
}

#[test]
fn a_panic_in_a_question_to_a_region_ends_the_test_in_any_tick_mode() {
    fn fail() {
        panic!("no such luck");
    }
    let (mut app, dimension) = open(lockstep());
    let told = last_words(|| ask_region(&mut app, dimension, HERE, fail));
    assert!(told.contains("no such luck"), "{told}");
    let (mut app, dimension) = open(TerranePlugin::in_memory());
    let told = last_words(|| ask_region(&mut app, dimension, HERE, fail));
    assert!(told.contains("did not answer"), "{told}");
}
