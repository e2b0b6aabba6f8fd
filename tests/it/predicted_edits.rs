//! The main world shows its edits before the region has answered.

use crate::support::*;
use bevy::asset::AssetPlugin;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::SplitMix64;
use bevy_terrane::view::{AskChunks, ChunksAnswer, RegionOrder};
use std::collections::BTreeMap;
use std::time::Duration;
use terrane_render::{ChunkMesh, ChunkMeshProgress, ChunkRenderPlugin};

/// A place in the air.
const THERE: BlockPos = BlockPos::new(3, 7, 5);
/// A place in a chunk of only air.
const HIGH: BlockPos = BlockPos::new(3, 40, 5);

fn world(plugin: TerranePlugin) -> (App, DimensionId) {
    let mut app = game(plugin);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    listen::<ColumnChanged>(&mut app);
    listen::<BlockRefused>(&mut app);
    (app, dimension)
}

fn settled(plugin: TerranePlugin) -> (App, DimensionId) {
    let (mut app, dimension) = world(plugin);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, THERE).is_some());
    (app, dimension)
}

fn set(app: &mut App, dimension: DimensionId, position: BlockPos, name: &str) -> BlockId {
    let block = id_of(app.world(), name);
    app.world_mut().write_message(SetBlock { dimension, position, block });
    block
}

fn is_predicted(world: &World, dimension: DimensionId, position: BlockPos) -> bool {
    world.resource::<PublishedColumns>().is_predicted(dimension, position)
}

fn refused(app: &App) -> usize {
    heard::<BlockRefused>(app).len()
}

/// Promise, predicted edits: The main world shows its edit at the end of the frame that writes it, marked as predicted.
#[test]
fn an_edit_is_shown_by_the_update_that_writes_it() {
    let (mut app, dimension) = settled(lockstep());
    update(&mut app, 10);
    let before = heard::<ColumnChanged>(&app).len();
    let stone = set(&mut app, dimension, THERE, "terrane:stone");
    app.update();
    assert_eq!(block_at(app.world(), dimension, THERE), Some(stone));
    assert!(is_predicted(app.world(), dimension, THERE));
    assert!(!is_predicted(app.world(), dimension, HERE));
    app.update();
    let changed = &heard::<ColumnChanged>(&app)[before..];
    let is_of_blocks = |changed: &&ColumnChanged| !matches!(changed.change, ColumnChange::Light(_));
    let changed = changed.iter().filter(|changed| changed.column == THERE.column()).filter(is_of_blocks);
    assert!(changed.clone().count() > 0 && changed.clone().all(|changed| changed.change == ColumnChange::Chunk(0)));
    update_until(&mut app, "it is decided", |world| !is_predicted(world, dimension, THERE));
    assert_eq!((block_at(app.world(), dimension, THERE), refused(&app)), (Some(stone), 0));
    let there = ask_region(&mut app, dimension, THERE, |blocks: RegionBlocks| blocks.block(THERE));
    assert_eq!(there.unwrap(), stone);
}

#[test]
fn what_cannot_be_made_is_not_predicted() {
    let (mut app, dimension) = settled(lockstep());
    let (above, far) = (BlockPos::new(3, 1 << 20, 5), BlockPos::new(1_000, 5, 0));
    for (place, count) in [(above, 1), (far, 2)] {
        let before = block_at(app.world(), dimension, place);
        set(&mut app, dimension, place, "terrane:stone");
        app.update();
        assert_eq!(
            (block_at(app.world(), dimension, place), is_predicted(app.world(), dimension, place)),
            (before, false)
        );
        update_until(&mut app, "it is refused", |world| world.resource::<Heard<BlockRefused>>().0.len() == count);
    }
}

/// Promise, predicted edits: An edit that the region decides otherwise shows what the region decided.
#[test]
fn a_region_may_decide_otherwise() {
    fn petrify(mut blocks: RegionBlocks, types: Res<BlockTypes>) -> Result {
        let [Some(stone), Some(dirt)] = ["terrane:stone", "terrane:dirt"].map(|name| types.id(name)) else {
            return Ok(());
        };
        if blocks.contains(THERE) && blocks.block(THERE)? == dirt {
            blocks.set_block(THERE, stone)?;
        }
        Ok(())
    }
    let (mut app, dimension) = world(lockstep());
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, petrify);
    });
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, THERE).is_some());
    let dirt = set(&mut app, dimension, THERE, "terrane:dirt");
    app.update();
    assert_eq!(block_at(app.world(), dimension, THERE), Some(dirt));
    update_until(&mut app, "it is decided", |world| !is_predicted(world, dimension, THERE));
    assert_eq!(block_at(app.world(), dimension, THERE), Some(id_of(app.world(), "terrane:stone")));
}

/// Promise, predicted edits: An edit that the region refuses is taken back.
/// Promise, predicted edits: A prediction stays while its region is paused, and goes when its region halts.
#[test]
fn a_prediction_waits_for_a_paused_region_and_not_for_a_halted_one() {
    let (mut app, dimension) = settled(lockstep());
    update_until(&mut app, "the region is known", |world| region_at(world, dimension, THERE.column()).is_some());
    order(&mut app, dimension, THERE.column(), RegionOrder::Pause);
    update(&mut app, 5);
    let stone = set(&mut app, dimension, THERE, "terrane:stone");
    for _ in 0..50 {
        app.update();
        assert_eq!(block_at(app.world(), dimension, THERE), Some(stone));
        assert!(is_predicted(app.world(), dimension, THERE));
    }
    order(&mut app, dimension, THERE.column(), RegionOrder::Halt);
    update_until(&mut app, "it is taken back", |world| !is_predicted(world, dimension, THERE));
    assert_eq!(block_at(app.world(), dimension, THERE), Some(BlockId::AIR));
    app.update();
    assert_eq!(refused(&app), 1);
}

/// Promise, predicted edits: The mesh of a refused block goes, even where there is nothing but air without it.
#[test]
fn a_refused_block_is_not_drawn_any_longer() {
    let (mut app, dimension) = world(lockstep());
    app.add_plugins((AssetPlugin::default(), ChunkRenderPlugin::default())).init_asset::<Mesh>();
    start(&mut app);
    update_until(&mut app, "the region is known", |world| region_at(world, dimension, HIGH.column()).is_some());
    update_until(&mut app, "the ground is drawn", |world| world.resource::<ChunkMeshProgress>().meshes > 0);
    let is_drawn = |world: &mut World| {
        let mut meshes = world.query::<&ChunkMesh>();
        meshes.iter(world).any(|mesh| mesh.chunk == HIGH.chunk())
    };
    order(&mut app, dimension, HIGH.column(), RegionOrder::Pause);
    assert!(!is_drawn(app.world_mut()), "the chunk is empty");
    set(&mut app, dimension, HIGH, "terrane:stone");
    update_until(&mut app, "it is drawn", is_drawn);
    assert!(is_predicted(app.world(), dimension, HIGH));
    order(&mut app, dimension, HIGH.column(), RegionOrder::Halt);
    update_until(&mut app, "it is not drawn any longer", |world| !is_drawn(world));
    app.update();
    assert_eq!(refused(&app), 1);
}

/// Promise, predicted edits: Questions about the ground are answered from the world, without predicted blocks.
#[test]
fn no_answer_has_a_predicted_block_in_it() {
    let (mut app, dimension) = world(lockstep());
    listen::<ChunksAnswer>(&mut app);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, THERE).is_some());
    update_until(&mut app, "the region is known", |world| region_at(world, dimension, THERE.column()).is_some());
    order(&mut app, dimension, THERE.column(), RegionOrder::Pause);
    let ask = |app: &mut App| {
        app.world_mut().write_message(AskChunks { request: 0, dimension, chunks: vec![THERE.chunk()] });
        let count = heard::<ChunksAnswer>(app).len();
        update_until(app, "the answer comes", |world| world.resource::<Heard<ChunksAnswer>>().0.len() > count);
        heard::<ChunksAnswer>(app).last().unwrap().chunks[0].1.clone().unwrap().unwrap().bytes
    };
    let before = ask(&mut app);
    set(&mut app, dimension, THERE, "terrane:stone");
    app.update();
    assert!(is_predicted(app.world(), dimension, THERE));
    assert_eq!(ask(&mut app), before);
    assert!(is_predicted(app.world(), dimension, THERE));
    // Once the region has made it, it is in the answer.
    order(&mut app, dimension, THERE.column(), RegionOrder::Resume);
    update_until(&mut app, "it is decided", |world| !is_predicted(world, dimension, THERE));
    assert_ne!(ask(&mut app), before);
}

/// Changes the block beside each of the eight places in each tick, so that their chunk is always new.
fn rummage(mut blocks: RegionBlocks, types: Res<BlockTypes>, mut ticks: Local<u64>) -> Result {
    *ticks += 1;
    let block = if ticks.is_multiple_of(2) { BlockId::AIR } else { types.id("terrane:dirt").unwrap_or_default() };
    for place in (0..8).map(|number| place(number).offset(0, 1, 0)) {
        if blocks.contains(place) {
            blocks.set_block(place, block)?;
        }
    }
    Ok(())
}

/// Eight places in two columns.
fn place(number: u64) -> BlockPos {
    BlockPos::new(number as i64 * 4 - 16, 6, 2)
}

/// Promise, predicted edits: No block on which the main world and the region agree ever reverts in between.
#[test]
fn no_block_flickers_while_regions_tick_and_others_write() {
    let (mut app, dimension) = world(TerranePlugin::in_memory());
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, rummage);
    });
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| {
        (0..8).all(|number| block_at(world, dimension, place(number)).is_some())
    });
    let names = ["terrane:stone", "terrane:sand", "terrane:air"];
    let mut random = SplitMix64::new(5);
    let mut expected = BTreeMap::new();
    let (mut predicted, mut too_high) = (0, 0);
    for _ in 0..600 {
        let roll = random.next_u64() >> 20;
        if roll.is_multiple_of(3) {
            let position = place((roll >> 8) % 8);
            let block = set(&mut app, dimension, position, names[(roll >> 16) as usize % 3]);
            expected.insert(position, block);
        } else if roll.is_multiple_of(7) {
            set(&mut app, dimension, place(0).offset(0, 1 << 20, 0), "terrane:stone");
            too_high += 1;
        }
        app.update();
        for (position, block) in &expected {
            assert_eq!(block_at(app.world(), dimension, *position), Some(*block), "{position}");
            predicted += usize::from(is_predicted(app.world(), dimension, *position));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(predicted > 100, "{predicted} predicted blocks were seen");
    update_until(&mut app, "all is decided", |world| {
        expected.keys().all(|position| !is_predicted(world, dimension, *position))
    });
    update_until(&mut app, "all is refused", |world| world.resource::<Heard<BlockRefused>>().0.len() == too_high);
    for (position, block) in expected {
        assert_eq!(block_at(app.world(), dimension, position), Some(block));
        let there = ask_region(&mut app, dimension, position, move |blocks: RegionBlocks| blocks.block(position));
        assert_eq!(there.unwrap(), block);
    }
}

#[test]
fn more_edits_than_are_predicted_are_made_all_the_same() {
    let (mut app, dimension) = settled(lockstep());
    let stone = id_of(app.world(), "terrane:stone");
    let positions = || (0..16).flat_map(|x| (1..33).flat_map(move |y| (0..16).map(move |z| BlockPos::new(x, y, z))));
    let edits: Vec<_> = positions().map(|position| SetBlock { dimension, position, block: stone }).collect();
    assert!(edits.len() > 8_000);
    app.world_mut().write_message_batch(edits);
    app.update();
    let predicted = positions().filter(|position| is_predicted(app.world(), dimension, *position)).count();
    assert_eq!(predicted, 4_096);
    update_until(&mut app, "all are made", |world| {
        positions().all(|position| block_at(world, dimension, position) == Some(stone))
    });
}
