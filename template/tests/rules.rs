//! The rules of the game, in a world without a window in which every update is one tick.

use bevy_terrane::prelude::*;
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::testing::*;
use my_game::{GROWTH, OVERWORLD, RulesPlugin, SAPLING, plant};
use std::sync::Arc;

/// High above the hills.
const PLACE: BlockPos = BlockPos::new(3, 200, 5);

fn open(store: &Arc<MemoryStore>) -> (App, DimensionId) {
    let mut app = headless(lockstep_on(store));
    app.add_plugins(RulesPlugin);
    let overworld = app.dimension_id(OVERWORLD);
    viewer(&mut app, overworld, 0.0, 0.0, 2);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, overworld, PLACE).is_some());
    (app, overworld)
}

fn plant_one(app: &mut App, dimension: DimensionId) {
    plant(&mut app.world_mut().commands(), dimension, PLACE);
    update_until(app, "the sapling is there", |world| block_at(world, dimension, PLACE) == Some(id_of(world, SAPLING)));
}

fn is_tree(world: &World, dimension: DimensionId) -> bool {
    let is = |up, name| block_at(world, dimension, PLACE.offset(0, up, 0)) == Some(id_of(world, name));
    is(0, "terrane:wood") && is(4, "terrane:wood") && is(6, "terrane:leaves")
}

#[test]
fn a_sapling_grows_into_a_tree() {
    let (mut app, overworld) = open(&Arc::default());
    plant_one(&mut app, overworld);
    update(&mut app, GROWTH as usize / 2);
    assert!(!is_tree(app.world(), overworld), "it grows too fast");
    update(&mut app, GROWTH as usize / 2 + 5);
    assert!(is_tree(app.world(), overworld));
}

#[test]
fn a_sapling_grows_on_after_a_restart() {
    let store = Arc::default();
    let (mut app, overworld) = open(&store);
    plant_one(&mut app, overworld);
    update(&mut app, GROWTH as usize / 2);
    let (mut app, overworld) = reopen(app, || open(&store));
    update(&mut app, GROWTH as usize / 2 + 5);
    assert!(is_tree(app.world(), overworld));
}

#[test]
fn a_sapling_that_was_removed_does_not_grow() {
    let (mut app, dimension) = open(&Arc::default());
    plant_one(&mut app, dimension);
    app.world_mut().write_message(SetBlock { dimension, position: PLACE, block: BlockId::AIR });
    update(&mut app, GROWTH as usize + 10);
    assert_eq!(block_at(app.world(), dimension, PLACE), Some(BlockId::AIR));
}
