//! Block layers and block components in regions, in the store and in the next version of the game; and the opacity of
//! blocks.

use crate::support::*;
use bevy_terrane::block::{BlockComponentId, Schema};
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::ColumnError;
use bevy_terrane::space::BatchPos;
use bevy_terrane::storage::{MemoryStore, StoreError};
use bevy_terrane::view::{AskError, AskOpacity, OpacityAnswer};
use std::sync::Arc;

const CHEST: BlockPos = BlockPos::new(3, 10, -5);

/// A game with water, and with chests that have a lock and items.
fn chests(disk: &Arc<MemoryStore>, ground: impl Generator) -> (App, DimensionId) {
    let mut app = game(lockstep_on(disk));
    app.register_block_component(BlockComponent::fixed::<u32>("game:lock")).unwrap();
    app.register_block_component(BlockComponent::variable("game:items")).unwrap();
    app.register_block(BlockType::new("game:chest").with_component("game:lock").with_component("game:items")).unwrap();
    let dimension = spawn_dimension(&mut app, Dimension::new("overworld", ground));
    (app, dimension)
}

/// Waits for the columns around the origin.
fn play(app: &mut App, dimension: DimensionId) {
    viewer(app, dimension, 0.0, 0.0, 1);
    start(app);
    update(app, 20);
}

fn components(types: &BlockTypes) -> [BlockComponentId; 2] {
    ["game:lock", "game:items"].map(|name| types.component(name).expect("a component"))
}

/// The block, its lock, its items and its number of layers.
type Found = (BlockId, Option<u32>, Option<Vec<u8>>, usize);

fn look(app: &mut App, dimension: DimensionId, place: BlockPos) -> Found {
    ask_region(app, dimension, CHEST, move |blocks: RegionBlocks, types: Res<BlockTypes>| {
        let [lock, items] = components(&types);
        let items = blocks.component(place, 0, items).unwrap().map(<[u8]>::to_vec);
        let lock = blocks.component_as(place, 0, lock).unwrap();
        (blocks.block(place).unwrap(), lock, items, blocks.layer_count(place).unwrap())
    })
}

/// Promise, blocks: `RegionBlocks` reads and sets block layers and block components.
#[test]
fn layers_and_components_that_a_region_sets_are_there_after_a_restart() {
    let disk = Arc::<MemoryStore>::default();
    let (mut app, dimension) = chests(&disk, Flat::new());
    play(&mut app, dimension);
    let chest = id_of(app.world(), "game:chest");
    let placed = SetBlock { dimension, position: CHEST, block: chest };
    app.world_mut().write_message(placed);
    update(&mut app, 3);
    assert_eq!(look(&mut app, dimension, CHEST), (chest, Some(0), Some(vec![]), 1), "a new one is empty");
    ask_region(&mut app, dimension, CHEST, |mut blocks: RegionBlocks, types: Res<BlockTypes>| {
        let [lock, items] = components(&types);
        blocks.set_component_as(CHEST, 0, lock, &77_u32).unwrap();
        blocks.set_component(CHEST, 0, items, b"a map and a spade").unwrap();
        let water = types.id("terrane:water").unwrap();
        assert_eq!(blocks.set_block_at(CHEST, 1, water).unwrap(), None);
        assert_eq!(blocks.block_at(CHEST, 1).unwrap(), Some(water));
    });
    drop(app);

    let (mut app, dimension) = chests(&disk, Flat::new());
    play(&mut app, dimension);
    let expected = (chest, Some(77), Some(b"a map and a spade".to_vec()), 2);
    assert_eq!(look(&mut app, dimension, CHEST), expected);
    // The main world sees them too.
    let id = dimension;
    let lock = app.world().resource::<BlockTypes>().component("game:lock").unwrap();
    let column = app.world().resource::<PublishedColumns>().column(id, CHEST.column()).unwrap();
    assert_eq!(column.chunk(CHEST.chunk().y).unwrap().component_as(CHEST.in_chunk(), 0, lock), Ok(Some(77_u32)));
    // Another block has none of them.
    let above = ask_region(&mut app, dimension, CHEST, |mut blocks: RegionBlocks, types: Res<BlockTypes>| {
        blocks.set_block(CHEST, types.id("terrane:stone").unwrap()).unwrap();
        blocks.remove_block(CHEST, 0).unwrap();
        blocks.block(CHEST).unwrap()
    });
    assert_eq!(above, id_of(app.world(), "terrane:water"), "what was above moved down");
    drop(app);
    let (mut app, dimension) = chests(&disk, Flat::new());
    play(&mut app, dimension);
    assert_eq!(look(&mut app, dimension, CHEST), (above, None, None, 1));
}

#[test]
fn a_value_that_does_not_fit_is_an_error_and_changes_nothing() {
    let (mut app, dimension) = chests(&Arc::default(), Flat::new());
    play(&mut app, dimension);
    let errors = ask_region(&mut app, dimension, CHEST, |mut blocks: RegionBlocks, types: Res<BlockTypes>| {
        let [lock, _] = components(&types);
        let (chest, far) = (types.id("game:chest").unwrap(), BlockPos::new(1 << 20, 0, 0));
        let air = blocks.set_component_as(CHEST, 0, lock, &1_u32).unwrap_err();
        let gap = blocks.set_block_at(CHEST, 2, chest).unwrap_err();
        blocks.set_block(CHEST, chest).unwrap();
        let size = blocks.set_component_as(CHEST, 0, lock, &1_u64).unwrap_err();
        let read = blocks.component_as::<u8>(CHEST, 0, lock).unwrap_err();
        let outside = blocks.set_component_as(far, 0, lock, &1_u32).unwrap_err();
        let high = blocks.set_block_at(CHEST.offset(0, 1_000, 0), 1, chest).unwrap_err();
        [air, gap, size, read, outside, high].map(|error| error.to_string())
    });
    let expected = [
        "does not have the component",
        "no layer 2",
        "has 4 bytes, found 8",
        "has 4 bytes, found 1",
        "does not own",
        "height range",
    ];
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(look(&mut app, dimension, CHEST).1, Some(0));
}

/// Flat terrain with a chest in each column, whose lock is set and whose items are not.
struct Treasure(Flat);

impl Generator for Treasure {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("test:treasure", 1, 0)
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let mut column = self.0.generate(request)?;
        let place = BlockPos::new((request.column.x << 4) + 7, 1, request.column.z << 4);
        let (chest, lock) = (request.block("game:chest")?, request.blocks.component("game:lock").unwrap());
        let chunk = column.chunk_mut(0);
        chunk.set_block(place.in_chunk(), chest);
        chunk
            .set_component(request.blocks, place.in_chunk(), 0, lock, &(request.column.x as u32).to_le_bytes())
            .unwrap();
        Ok(column)
    }
}

#[test]
fn components_that_a_generator_sets_are_stored_and_the_others_are_added() {
    let disk = Arc::<MemoryStore>::default();
    let place = BlockPos::new(7, 1, -16);
    let expected = |app: &App| (id_of(app.world(), "game:chest"), Some(0), Some(vec![]), 1);
    let treasure = || Treasure(Flat::new());
    let (mut app, dimension) = chests(&disk, treasure());
    play(&mut app, dimension);
    let expected = expected(&app);
    assert_eq!(look(&mut app, dimension, place), expected);
    let west = BlockPos::new(-9, 1, 0);
    assert_eq!(look(&mut app, dimension, west).1, Some(u32::MAX));
    drop(app);
    let (mut app, dimension) = chests(&disk, treasure());
    play(&mut app, dimension);
    assert_eq!(look(&mut app, dimension, place), expected);
    assert_eq!(look(&mut app, dimension, west).1, Some(u32::MAX));
}

/// Promise, blocks: A block type whose components change gets a new id, and old blocks are converted when their chunk loads.
#[test]
fn a_later_version_of_the_game_reads_migrated_values_or_gets_an_error() {
    let disk = Arc::<MemoryStore>::default();
    let (mut app, dimension) = chests(&disk, Flat::new());
    play(&mut app, dimension);
    let other = CHEST.offset(0, 0, 1);
    ask_region(&mut app, dimension, CHEST, move |mut blocks: RegionBlocks, types: Res<BlockTypes>| {
        let [lock, _] = components(&types);
        for (place, value) in [(CHEST, 5_u32), (other, 6)] {
            blocks.set_block(place, types.id("game:chest").unwrap()).unwrap();
            blocks.set_component_as(place, 0, lock, &value).unwrap();
        }
    });
    drop(app);

    let later = |refused: u8| {
        // A value that a migration refuses is not damaged: another version of the game may read it.
        let mut app = game(TerranePlugin {
            saving: SaveSettings { regenerate_damaged: true, ..default() },
            ..lockstep_on(&disk)
        });
        let schema = Schema::new(1).with_migration(0, move |old| match old {
            [first, ..] if *first == refused => Err("the key is lost".into()),
            old => Ok([old, old].concat()),
        });
        app.register_block_component(BlockComponent::fixed::<u64>("game:lock").with_schema(schema)).unwrap();
        app.register_block_component(BlockComponent::variable("game:label")).unwrap();
        let chest = BlockType::new("game:chest").with_component("game:lock").with_component("game:label");
        app.register_block(chest).unwrap();
        listen::<ColumnFailed>(&mut app);
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 0.0, 0.0, 1);
        start(&mut app);
        (app, dimension)
    };
    let (mut app, _) = later(5);
    update(&mut app, 60);
    let failed = heard::<ColumnFailed>(&app).first().expect("it was told");
    let ColumnError::Store { source: StoreError::Unmigrated { reason, .. }, .. } = &failed.error else {
        panic!("{}", failed.error)
    };
    assert!(reason.contains("the key is lost"), "{reason}");
    drop(app);
    let (mut app, dimension) = later(255);
    update(&mut app, 20);
    let found = ask_region(&mut app, dimension, CHEST, move |blocks: RegionBlocks, types: Res<BlockTypes>| {
        let [lock, label] = ["game:lock", "game:label"].map(|name| types.component(name).unwrap());
        let items = types.component("game:items");
        let locks = [CHEST, other].map(|place| blocks.component_as::<u64>(place, 0, lock).unwrap());
        (locks, blocks.component(CHEST, 0, label).unwrap().map(<[u8]>::to_vec), items)
    });
    assert_eq!(found, ([Some(5 << 32 | 5), Some(6 << 32 | 6)], Some(vec![]), None));
}

/// Promise, blocks: `RegionBlocks::sees_sky` is `true` under an open sky.
#[test]
fn a_region_can_ask_for_covered_places() {
    let (mut app, dimension) = chests(&Arc::default(), Flat::new());
    app.register_block(BlockType::new("game:glass").transparent()).unwrap();
    play(&mut app, dimension);
    ask_region(&mut app, dimension, CHEST, |mut blocks: RegionBlocks, types: Res<BlockTypes>| {
        let [ground, roof, cellar] = [0, 20, -3].map(|y| BlockPos::new(3, y, -5));
        assert_eq!(blocks.highest_opaque(3, -5), Some(ground));
        assert!(blocks.sees_sky(ground).unwrap() && !blocks.sees_sky(cellar).unwrap());
        blocks.set_block(roof, types.id("game:glass").unwrap()).unwrap();
        assert!(blocks.sees_sky(ground).unwrap(), "glass hides nothing");
        blocks.set_block(roof, types.id("terrane:stone").unwrap()).unwrap();
        assert_eq!(blocks.highest_opaque(3, -5), Some(roof));
        assert!(!blocks.sees_sky(ground).unwrap() && blocks.sees_sky(roof).unwrap());
        assert!(blocks.is_opaque(3, -5, -3..1).unwrap() && !blocks.is_opaque(3, -5, -3..2).unwrap());
        assert!(blocks.sees_sky(BlockPos::new(1 << 20, 0, 0)).is_err());
        assert_eq!(blocks.highest_opaque(1 << 20, 0), None);
    });
}

/// Promise, blocks: `AskOpacity` gives the main world the opaque blocks of loaded and unloaded columns.
#[test]
fn ask_opacity_answers_for_loaded_and_unloaded_columns() {
    let disk = Arc::<MemoryStore>::default();
    let (mut app, dimension) = chests(&disk, Flat::new());
    listen::<OpacityAnswer>(&mut app);
    play(&mut app, dimension);
    let ask = |app: &mut App, request, dimension| {
        app.world_mut().write_message(AskOpacity { request, dimension, batch: BatchPos::new(0, 0) });
        update(app, 4);
        let answers = heard::<OpacityAnswer>(app);
        answers.iter().find(|answer| answer.request == request).expect("an answer").opacity.clone()
    };
    let highest = |app: &mut App, request| ask(app, request, dimension).unwrap().highest(3, 5);
    assert_eq!(highest(&mut app, 1), Some(0));
    // A column that is neither saved nor known to the store.
    let position = BlockPos::new(3, 40, 5);
    let block = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position, block });
    update(&mut app, 3);
    assert_eq!(highest(&mut app, 2), Some(40));
    // The viewer leaves.
    let mut viewers = app.world_mut().query_filtered::<Entity, With<Viewer>>();
    let viewer = viewers.single(app.world()).unwrap();
    move_viewer(&mut app, viewer, 10_000.0, 0.0);
    update_until(&mut app, "the column is evicted", |world| block_at(world, dimension, position).is_none());
    assert_eq!(highest(&mut app, 3), Some(40));
    assert_eq!(ask(&mut app, 4, DimensionId(99)), Err(AskError::NotOpen));
    drop(app);
    let (mut app, dimension) = chests(&disk, Flat::new());
    listen::<OpacityAnswer>(&mut app);
    viewer_far_away(&mut app, dimension);
    app.world_mut().write_message(AskOpacity { request: 5, dimension, batch: BatchPos::new(0, 0) });
    update(&mut app, 4);
    let tile = heard::<OpacityAnswer>(&app)[0].opacity.clone().unwrap();
    assert_eq!((tile.highest(3, 5), tile.highest(4, 5)), (Some(40), Some(0)));
    assert!(!tile.sees_sky(3, 5, 10) && tile.sees_sky(4, 5, 10) && tile.is_opaque(4, 5, -3..1));
}

fn viewer_far_away(app: &mut App, dimension: DimensionId) {
    viewer(app, dimension, 10_000.0, 0.0, 1);
    start(app);
    update(app, 10);
}
