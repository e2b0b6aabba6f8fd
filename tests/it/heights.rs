//! Sparse dimensions: of a column only the part near viewers is generated, stored and loaded.

use crate::support::*;
use bevy_terrane::chunk::Chunk;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{BlockAccessError, RegionColumns, SplitMix64};
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::view::{DimensionGeneration, FarColumns, RegionOrder};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TRILLION: i64 = 1_000_000_000_000;

/// Layers of stone, air and dirt, each a chunk high. Counts how often each chunk was generated.
#[derive(Clone, Default)]
struct Strata(Arc<Mutex<BTreeMap<ChunkPos, u32>>>);

impl Generator for Strata {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity { name: "strata".into(), version: 1, seed: 0 }
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let mut column = Column::new(request.column);
        for y in request.heights.start >> 4..=(request.heights.end - 1) >> 4 {
            *self.0.lock().unwrap().entry(request.column.chunk(y)).or_default() += 1;
            if let Some(name) = layer(y) {
                column.set_chunk(y, Arc::new(Chunk::uniform(request.block(name)?)));
            }
        }
        Ok(column)
    }
}

/// The block of a layer, if it is not air.
fn layer(y: i64) -> Option<&'static str> {
    [Some("terrane:stone"), None, Some("terrane:dirt")][y.rem_euclid(3) as usize]
}

impl Strata {
    /// The lowest and the highest generated chunk of a column, and whether each was generated once.
    fn made(&self, column: ColumnPos) -> (i64, i64, bool) {
        let made = self.0.lock().unwrap();
        let of_column: Vec<_> = made.iter().filter(|(chunk, _)| chunk.column() == column).collect();
        let heights = || of_column.iter().map(|(chunk, _)| chunk.y);
        (heights().min().unwrap(), heights().max().unwrap(), of_column.iter().all(|(_, times)| **times == 1))
    }
}

fn boundless(app: &mut App, strata: &Strata) -> DimensionId {
    let heights = i64::MIN..i64::MAX;
    spawn_dimension(app, Dimension::new("shaft", strata.clone()).with_height(heights))
}

/// A viewer with radius 0 and a vertical radius of one chunk.
fn viewer_at(app: &mut App, dimension: DimensionId, block: BlockPos) -> Entity {
    let viewer = Viewer::in_dimension(dimension).with_radius(0).with_vertical_radius(1);
    app.world_mut().spawn((viewer, Position::new(DimensionId::default(), block))).id()
}

fn lift(app: &mut App, viewer: Entity, y: i64) {
    app.world_mut().get_mut::<Position>(viewer).unwrap().block.y = y;
}

/// The block, if it is published.
fn seen(app: &App, dimension: DimensionId, block: BlockPos) -> Option<BlockId> {
    let column = app.world().resource::<PublishedColumns>().column(dimension, block.column())?;
    column.is_loaded(block.chunk().y).then(|| column.block(block))
}

fn layer_at(app: &App, y: i64) -> BlockId {
    layer(y >> 4).map_or(BlockId::AIR, |name| id_of(app.world(), name))
}

/// The heights at which the column of x = z = 0 is published, in steps of a chunk.
fn seen_chunks(app: &App, dimension: DimensionId, around: i64) -> Vec<i64> {
    let chunk = around >> 4;
    (chunk - 40..chunk + 40).filter(|y| seen(app, dimension, BlockPos::new(0, y << 4, 0)).is_some()).collect()
}

fn set(app: &mut App, dimension: DimensionId, position: BlockPos, block: BlockId) {
    app.world_mut().write_message(SetBlock { dimension, position, block });
}

/// Promise, ground: A dimension may be as high as `i64` reaches.
/// Promise, ground: A sparse dimension generates, stores and loads only slabs of 16 chunks within a viewer's vertical radius.
#[test]
fn only_slabs_near_above_and_below_are_generated_at_any_height() {
    let strata = Strata::default();
    let mut app = game(lockstep());
    let dimension = boundless(&mut app, &strata);
    let heights = [TRILLION, -TRILLION, 0, i64::MAX - 1, i64::MIN];
    for (x, y) in (0..).zip(heights) {
        viewer_at(&mut app, dimension, BlockPos::new(x * 1_600, y, 0));
    }
    start(&mut app);
    update(&mut app, 20);
    for (x, y) in (0..).zip(heights) {
        let block = BlockPos::new(x * 1_600, y, 0);
        assert_eq!(seen(&app, dimension, block), Some(layer_at(&app, y)), "{y}");
        let (low, high, once) = strata.made(block.column());
        let (top, bottom) = ((y >> 4).saturating_add(1).min((1 << 59) - 1), ((y >> 4) - 1).max(-1 << 59));
        assert!(once, "{y}");
        assert_eq!((low, high), (bottom & !15, top | 15), "{y}: whole slabs of 16 chunks");
    }
}

/// Promise, ground: A dimension of more than 16,384 blocks is sparse.
#[test]
fn a_dimension_of_more_than_16_384_blocks_is_sparse() {
    let mut app = game(lockstep());
    let dimensions = [("low", 0..16_384), ("high", 0..16_400)].map(|(name, heights)| {
        let dimension = spawn_dimension(&mut app, Dimension::new(name, Flat::new()).with_height(heights));
        viewer_at(&mut app, dimension, BlockPos::new(0, 0, 0));
        dimension
    });
    start(&mut app);
    update(&mut app, 20);
    let is_loaded = |dimension, y| seen(&app, dimension, BlockPos::new(0, y, 0)).is_some();
    assert_eq!(dimensions.map(|dimension| is_loaded(dimension, 0)), [true, true]);
    assert_eq!(dimensions.map(|dimension| is_loaded(dimension, 16_000)), [true, false]);
}

/// Promise, ground: A sparse dimension generates, stores and loads only slabs of 16 chunks within a viewer's vertical radius.
#[test]
fn viewers_at_two_heights_of_a_column_have_both() {
    let strata = Strata::default();
    let mut app = game(lockstep());
    let dimension = boundless(&mut app, &strata);
    let [low, high] = [-TRILLION, TRILLION].map(|y| BlockPos::new(0, y, 0));
    let [_, above] = [low, high].map(|block| viewer_at(&mut app, dimension, block));
    start(&mut app);
    update(&mut app, 20);
    let stone = id_of(app.world(), "terrane:stone");
    for (block, to) in [(low, stone), (high, BlockId::AIR)] {
        set(&mut app, dimension, block, to);
    }
    update(&mut app, 3);
    assert_eq!([low, high].map(|block| seen(&app, dimension, block)), [Some(stone), Some(BlockId::AIR)]);

    app.world_mut().despawn(above);
    update(&mut app, 20);
    assert_eq!([low, high].map(|block| seen(&app, dimension, block)), [Some(stone), None]);
    viewer_at(&mut app, dimension, high);
    update(&mut app, 20);
    assert_eq!(seen(&app, dimension, high), Some(BlockId::AIR));
    assert!(strata.made(low.column()).2, "nothing is made twice");
}

/// Promise, ground: A sparse dimension loads and evicts slabs as viewers climb and fall.
#[test]
fn the_loaded_slabs_follow_a_viewer_up_and_down_with_their_edits() {
    let strata = Strata::default();
    let mut app = game(lockstep());
    listen::<ColumnChanged>(&mut app);
    let dimension = boundless(&mut app, &strata);
    let camera = viewer_at(&mut app, dimension, BlockPos::new(0, 0, 0));
    start(&mut app);
    update(&mut app, 20);
    spawn_in_region(&mut app, dimension, BlockPos::new(5, 5, 5), walker("ann", 0.0));
    update(&mut app, 3);
    let ann = app.world_mut().query_filtered::<Entity, With<Mirror>>().single(app.world()).unwrap();
    let stone = id_of(app.world(), "terrane:stone");
    let built: Vec<_> = (0..60).map(|floor| BlockPos::new(1, floor * 20, 1)).collect();
    for block in &built {
        lift(&mut app, camera, block.y);
        update(&mut app, 8);
        set(&mut app, dimension, *block, stone);
        update(&mut app, 2);
        assert_eq!(seen(&app, dimension, *block), Some(stone));
        let chunks = seen_chunks(&app, dimension, block.y);
        assert!(chunks.is_sorted_by(|a, b| a + 1 == *b) && [16, 32].contains(&chunks.len()), "{chunks:?}");
    }
    let changes = || heard::<ColumnChanged>(&app).iter().map(|changed| &changed.change);
    assert!(changes().any(|change| matches!(change, ColumnChange::Heights(_))));
    assert!(changes().all(|change| *change != ColumnChange::Unloaded), "the column stays where it is");
    assert!(app.world().get_entity(ann).is_ok(), "and those who are in it");
    for block in built.iter().rev() {
        lift(&mut app, camera, block.y);
        update(&mut app, 8);
        assert_eq!(seen(&app, dimension, *block), Some(stone), "{block}");
    }
    assert!(strata.made(ColumnPos::new(0, 0)).2, "nothing is made twice");
}

#[test]
fn a_region_can_fetch_missing_slabs_within_the_tick() {
    let strata = Strata::default();
    let mut app = game(lockstep());
    let dimension = boundless(&mut app, &strata);
    let here = BlockPos::new(0, 0, 0);
    let camera = viewer_at(&mut app, dimension, here);
    start(&mut app);
    update(&mut app, 20);
    let stone = id_of(app.world(), "terrane:stone");
    let far = BlockPos::new(0, TRILLION, 0);
    in_region(&mut app, dimension, here, move |region| {
        region.run_system_cached_with(look_up, (far, stone)).unwrap();
    });
    update(&mut app, 1);
    // No viewer holds it, so it is unloaded again.
    update(&mut app, 10);
    assert_eq!(seen(&app, dimension, far), None);
    lift(&mut app, camera, TRILLION);
    update(&mut app, 20);
    assert_eq!(seen(&app, dimension, far), Some(stone));
    assert_eq!(seen(&app, dimension, here), None);
    assert!(strata.made(here.column()).2, "nothing is made twice");
}

#[test]
fn a_slab_ordered_and_fetched_at_the_same_time_keeps_its_edits() {
    let mut fetched = 0;
    for passes in 0..7 {
        let mut app = game(lockstep());
        let dimension = boundless(&mut app, &Strata::default());
        let [here, far] = [0, TRILLION].map(|y| BlockPos::new(0, y, 0));
        let camera = viewer_at(&mut app, dimension, here);
        start(&mut app);
        update(&mut app, 20);
        let stone = id_of(app.world(), "terrane:stone");
        lift(&mut app, camera, far.y);
        update(&mut app, passes);
        let (sender, has_fetched) = channel();
        in_region(&mut app, dimension, here, move |region| {
            let mut blocks = region.resource_mut::<RegionColumns>();
            sender.send(!blocks.column(far.column()).unwrap().is_loaded(far.chunk().y)).unwrap();
            blocks.load(far).unwrap();
            blocks.set_block(far, stone).unwrap();
        });
        update(&mut app, 20);
        fetched += usize::from(has_fetched.try_recv().unwrap());
        assert_eq!(seen(&app, dimension, far), Some(stone), "{passes}");
        // The same holds in the store.
        lift(&mut app, camera, here.y);
        update(&mut app, 20);
        app.world_mut().write_message(SaveWorld { request: 1 });
        update(&mut app, 5);
        assert_eq!(seen(&app, dimension, far), None, "{passes}");
        lift(&mut app, camera, far.y);
        update(&mut app, 20);
        assert_eq!(seen(&app, dimension, far), Some(stone), "{passes}");
    }
    assert!((1..7).contains(&fetched), "both before and after it came");
}

fn look_up(In((far, stone)): In<(BlockPos, BlockId)>, mut blocks: RegionBlocks) {
    let unloaded = BlockAccessError::UnloadedHeight(far);
    assert_eq!(blocks.block(far), Err(unloaded));
    assert_eq!(blocks.set_block(far, stone), Err(unloaded));
    assert_eq!(blocks.schedule_tick(far, "grow", 1), Err(unloaded));
    assert!(!blocks.contains(far));
    blocks.load(far).unwrap();
    assert!(blocks.contains(far));
    blocks.set_block(far, stone).unwrap();
    assert_eq!(blocks.block(far), Ok(stone));
    // The dimension does not have this height.
    assert_eq!(blocks.block(BlockPos::new(0, i64::MAX, 0)), Ok(BlockId::AIR));
}

/// The blocks whose scheduled ticks fired.
fn keep_block_ticks(app: &mut App) -> Arc<Mutex<Vec<BlockPos>>> {
    let ticked = Arc::<Mutex<Vec<BlockPos>>>::default();
    let kept = ticked.clone();
    app.add_region_plugins(move |region| {
        let kept = kept.clone();
        region.add_systems(RegionTick, move |mut ticks: MessageReader<BlockTick>| {
            kept.lock().unwrap().extend(ticks.read().map(|tick| tick.block));
        });
    });
    ticked
}

#[test]
fn a_block_tick_waits_for_its_slab() {
    let mut app = game(lockstep());
    let ticked = keep_block_ticks(&mut app);
    let dimension = boundless(&mut app, &Strata::default());
    let block = BlockPos::new(3, 7, 3);
    let camera = viewer_at(&mut app, dimension, block);
    start(&mut app);
    update(&mut app, 20);
    app.world_mut().commands().schedule_block_tick(dimension, block, "grow", 40);
    update(&mut app, 3);
    lift(&mut app, camera, TRILLION);
    update(&mut app, 100);
    assert!(ticked.lock().unwrap().is_empty());
    lift(&mut app, camera, 0);
    update(&mut app, 20);
    assert!(ticked.lock().unwrap().is_empty(), "it still has to wait");
    update(&mut app, 40);
    assert_eq!(*ticked.lock().unwrap(), [block]);
}

/// Promise, messages: A message to a place loads that place.
#[test]
fn a_message_to_a_place_has_that_height_loaded() {
    let mut app = game(lockstep());
    let dimension = boundless(&mut app, &Strata::default());
    viewer_at(&mut app, dimension, BlockPos::new(0, 0, 0));
    start(&mut app);
    update(&mut app, 20);
    let (sender, found) = channel();
    let there = BlockPos::new(5_000, TRILLION + 3, 0);
    in_region(&mut app, dimension, there, move |region| {
        sender.send(region.resource::<RegionColumns>().block(there)).unwrap();
    });
    update(&mut app, 20);
    assert_eq!(found.try_recv(), Ok(Ok(layer_at(&app, there.y))));
}

#[test]
fn from_afar_the_highest_ground_that_is_stored_is_seen() {
    let strata = Strata::default();
    let mut app = game(TerranePlugin { saving: SaveSettings::every(Duration::from_millis(400)), ..lockstep() });
    let dimension = boundless(&mut app, &strata);
    let far = BlockPos::new(64, TRILLION, 0);
    let camera = viewer_at(&mut app, dimension, far);
    let listener =
        (FarView::new().with_radius(8), Transform::default(), Viewer::in_dimension(dimension).with_radius(0));
    let listener = app.world_mut().spawn(listener).id();
    start(&mut app);
    let surface = |app: &App| {
        let known = app.world().resource::<FarColumns>();
        let column = known.iter(listener).find(|(_, column, _)| *column == far.column());
        Some(column?.2.surface(0, 0)?.height)
    };
    update(&mut app, 60);
    let top = surface(&app).unwrap();
    assert!((TRILLION..TRILLION + 256).contains(&top) && layer(top >> 4).is_some(), "{top}");
    lift(&mut app, camera, TRILLION - 1_000);
    update(&mut app, 60);
    assert_eq!(surface(&app), Some(top), "the lower part hides nothing");
    lift(&mut app, camera, TRILLION);
    update(&mut app, 20);
    let stone = id_of(app.world(), "terrane:stone");
    let tower = BlockPos::new(64, top + 1, 0);
    lift(&mut app, camera, top + 1);
    update(&mut app, 10);
    set(&mut app, dimension, tower.offset(0, 3, 0), stone);
    update(&mut app, 60);
    assert!(surface(&app) >= Some(top + 4), "{:?}", surface(&app));
}

#[test]
fn a_message_to_another_height_of_a_loaded_column_waits_for_that() {
    let mut app = game(lockstep());
    let dimension = boundless(&mut app, &Strata::default());
    viewer_at(&mut app, dimension, BlockPos::new(0, 0, 0));
    start(&mut app);
    update(&mut app, 20);
    let (sender, found) = channel();
    let places = [TRILLION, -TRILLION, 5].map(|y| BlockPos::new(3, y, 0));
    for place in places {
        let sender = sender.clone();
        in_region(&mut app, dimension, place, move |region| {
            sender.send((place, region.resource::<RegionColumns>().block(place))).unwrap();
        });
    }
    update(&mut app, 20);
    let found: BTreeMap<_, _> = found.try_iter().collect();
    assert_eq!(found, places.map(|place| (place, Ok(layer_at(&app, place.y)))).into());
    // When no letter waits any more, it is unloaded.
    update(&mut app, 20);
    assert_eq!(seen(&app, dimension, places[0]), None);
}

#[test]
fn stored_slabs_load_while_generation_is_paused() {
    let strata = Strata::default();
    let mut app = game(lockstep());
    let dimension = boundless(&mut app, &strata);
    let camera = viewer_at(&mut app, dimension, BlockPos::new(0, 0, 0));
    start(&mut app);
    update(&mut app, 20);
    lift(&mut app, camera, TRILLION);
    update(&mut app, 20);
    let paused = DimensionGeneration { paused: true, ..default() };
    insert_into_dimension(&mut app, dimension, paused);
    lift(&mut app, camera, 0);
    update(&mut app, 20);
    let here = BlockPos::new(0, 0, 0);
    assert_eq!(seen(&app, dimension, here), Some(layer_at(&app, 0)));
    let new = BlockPos::new(0, 5_000, 0);
    lift(&mut app, camera, new.y);
    update(&mut app, 20);
    assert_eq!(seen(&app, dimension, new), None);
    insert_into_dimension(&mut app, dimension, DimensionGeneration::default());
    update(&mut app, 20);
    assert_eq!(seen(&app, dimension, new), Some(layer_at(&app, new.y)));
    assert!(strata.made(here.column()).2, "nothing is made twice");
}

#[test]
fn edits_in_fetched_slabs_are_published_later() {
    let mut app = game(TerranePlugin::in_memory());
    let dimension = boundless(&mut app, &Strata::default());
    let here = BlockPos::new(0, 0, 0);
    viewer_at(&mut app, dimension, here);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, here).is_some());
    let stone = id_of(app.world(), "terrane:stone");
    // In the same section: one column that is not loaded, and another height of a loaded one.
    let places = [BlockPos::new(20, 40, 0), BlockPos::new(0, 400, 0)];
    for place in places {
        viewer_at(&mut app, dimension, place);
        in_region(&mut app, dimension, here, move |region| {
            let mut blocks = region.resource_mut::<RegionColumns>();
            blocks.load(place).unwrap();
            blocks.set_block(place, stone).unwrap();
        });
    }
    // Both the edit and the ordered columns come before the next frame.
    std::thread::sleep(Duration::from_millis(300));
    update_until(&mut app, "both are seen", |world| {
        places.iter().all(|place| block_at(world, dimension, *place) == Some(stone))
    });
}

#[test]
fn a_block_tick_survives_a_halt_of_its_region() {
    let mut app =
        game(TerranePlugin { saving: SaveSettings::every(Duration::from_secs(3_600)), ..TerranePlugin::in_memory() });
    listen::<RegionHalted>(&mut app);
    listen::<WorldSaved>(&mut app);
    let ticked = keep_block_ticks(&mut app);
    let dimension = boundless(&mut app, &Strata::default());
    let block = BlockPos::new(3, 7, 3);
    viewer_at(&mut app, dimension, block);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, block).is_some());
    app.world_mut().commands().schedule_block_tick(dimension, block, "grow", 60);
    let statistics = |world: &World| region_at(world, dimension, block.column());
    update_until(&mut app, "the region is known", |world| statistics(world).is_some());
    app.world_mut().write_message(SaveWorld { request: 1 });
    update_until(&mut app, "it is saved", |world| !world.resource::<Heard<WorldSaved>>().0.is_empty());
    // The store learns of this only now: its chunk is in flight when the region halts.
    let stone = id_of(app.world(), "terrane:stone");
    set(&mut app, dimension, block, stone);
    update_until(&mut app, "it is built", |world| block_at(world, dimension, block) == Some(stone));
    app.world_mut().write_message(SaveWorld { request: 2 });
    app.update();
    order(&mut app, dimension, block.column(), RegionOrder::Halt);
    update_until(&mut app, "it halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
    order(&mut app, dimension, block.column(), RegionOrder::Restart);
    update_until(&mut app, "the block ticks", |_| !ticked.lock().unwrap().is_empty());
    assert_eq!(*ticked.lock().unwrap(), [block]);
}

/// Builds at random heights, while viewers jump up and down, the world is saved, and the app ends or crashes.
#[test]
fn edits_at_any_height_survive_a_restart() {
    for seed in 0..rounds(1) {
        shaft(seed);
    }
}

fn shaft(seed: u64) {
    let mut random = SplitMix64::from_parts([seed, 7]);
    let disk = Arc::new(MemoryStore::new());
    let strata = Strata::default();
    let mut model: BTreeMap<BlockPos, BlockId> = BTreeMap::new();
    let anchors = [-TRILLION, 0, 90, 200, TRILLION];
    for _session in 0..4 {
        let mut app =
            game(TerranePlugin { saving: SaveSettings::every(Duration::from_millis(400)), ..lockstep_on(&disk) });
        let dimension = boundless(&mut app, &strata);
        let cameras = [0, 1].map(|x| viewer_at(&mut app, dimension, BlockPos::new(x * 16, 0, 0)));
        start(&mut app);
        update(&mut app, 10);
        let blocks = ["terrane:stone", "terrane:dirt", "terrane:sand"].map(|name| id_of(app.world(), name));
        for _step in 0..60 {
            let camera = cameras[random.below(2) as usize];
            let y = anchors[random.below(5) as usize] + random.below(120) as i64;
            lift(&mut app, camera, y);
            app.world_mut().get_mut::<Position>(camera).unwrap().block.x = 16 * random.below(2) as i64;
            // Often before the chunks are loaded.
            update(&mut app, random.below(12) as usize);
            for camera in cameras {
                let at = app.world().get::<Position>(camera).unwrap().block;
                let block = at.offset(random.below(16) as i64 & 15, random.below(30) as i64 - 15, 0);
                let Some(found) = seen(&app, dimension, block) else { continue };
                let expected = model.get(&block).copied().unwrap_or_else(|| layer_at(&app, block.y));
                assert_eq!(found, expected, "seed {seed}, {block}");
                let to = if random.below(3) == 0 { BlockId::AIR } else { blocks[random.below(3) as usize] };
                set(&mut app, dimension, block, to);
                app.update();
                app.update();
                match seen(&app, dimension, block) {
                    Some(found) if found == to => drop(model.insert(block, to)),
                    // It was unloaded at the same moment, and the edit was refused or is in flight.
                    _ => {
                        lift(&mut app, camera, block.y);
                        update(&mut app, 20);
                        let found = seen(&app, dimension, block).unwrap();
                        assert!(found == to || found == expected, "seed {seed}, {block}");
                        model.insert(block, found);
                    }
                }
            }
        }
        assert!(strata.0.lock().unwrap().values().all(|times| *times == 1), "seed {seed}: nothing is made twice");
        for (block, expected) in &model {
            lift(&mut app, cameras[0], block.y);
            app.world_mut().get_mut::<Position>(cameras[0]).unwrap().block.x = block.x;
            // As soon as it is loaded, it is right.
            let found = (0..12).find_map(|_| {
                app.update();
                seen(&app, dimension, *block)
            });
            assert_eq!(found, Some(*expected), "seed {seed}, {block}");
        }
    }
}

#[test]
fn a_dimension_that_was_boundless_has_no_holes_when_it_is_lower_and_one_that_grows_has_more_ground() {
    let disk = Arc::new(MemoryStore::new());
    let strata = Strata::default();
    let (here, above) = (BlockPos::new(1, 40, 1), BlockPos::new(1, 300, 1));
    let heights = [0..320, i64::MIN..i64::MAX, 0..640, 0..640];
    for (run, heights) in heights.into_iter().enumerate() {
        let mut app = game(lockstep_on(&disk));
        let dimension = spawn_dimension(&mut app, Dimension::new("shaft", strata.clone()).with_height(heights));
        // In the third run at a place without any viewer before.
        let x = if run < 2 { 0 } else { 160 };
        let camera = viewer_at(&mut app, dimension, here.offset(x, 0, 0));
        start(&mut app);
        update(&mut app, 20);
        let sand = id_of(app.world(), "terrane:sand");
        match run {
            0 => set(&mut app, dimension, here, sand),
            2 => set(&mut app, dimension, here.offset(x, 0, 0), sand),
            _ => assert_eq!(seen(&app, dimension, here.offset(x, 0, 0)), Some(sand), "run {run}"),
        }
        update(&mut app, 3);
        lift(&mut app, camera, above.y);
        update(&mut app, 20);
        let there = above.offset(x, 0, 0);
        assert_eq!(seen(&app, dimension, there), Some(layer_at(&app, there.y)), "run {run}");
    }
}

#[test]
fn a_part_that_cannot_be_made_is_tried_again_and_nothing_else_waits_for_it() {
    /// Fails above a height until it is told otherwise, and reports a failure.
    #[derive(Clone)]
    struct Ceiling(Strata, Arc<AtomicBool>, Arc<AtomicBool>);

    impl Generator for Ceiling {
        fn identity(&self) -> GeneratorIdentity {
            self.0.identity()
        }

        fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
            let fails = request.heights.end > 1_000 && self.1.load(Ordering::Relaxed);
            self.2.fetch_or(fails, Ordering::Relaxed);
            assert!(!fails, "there is a ceiling");
            self.0.generate(request)
        }
    }

    let [fails, has_failed] = [true, false].map(|is| Arc::new(AtomicBool::new(is)));
    let mut app = game(TerranePlugin::in_memory());
    let heights = i64::MIN..i64::MAX;
    let generator = Ceiling(Strata::default(), fails.clone(), has_failed.clone());
    let dimension = spawn_dimension(&mut app, Dimension::new("shaft", generator).with_height(heights));
    let [low, high] = [0, 2_000].map(|y| BlockPos::new(0, y, 0));
    let camera = viewer_at(&mut app, dimension, low);
    listen::<ColumnFailed>(&mut app);
    start(&mut app);
    let is_seen = |app: &App, block| seen(app, dimension, block).is_some();
    let wait_for = |app: &mut App, what: &str, place: BlockPos| {
        update_until(app, what, |world| {
            let column = world.resource::<PublishedColumns>().column(DimensionId(0), place.column());
            column.is_some_and(|column| column.is_loaded(place.chunk().y))
        });
    };
    wait_for(&mut app, "the ground", low);
    lift(&mut app, camera, high.y);
    update_until(&mut app, "it failed", |_| has_failed.load(Ordering::Relaxed));
    assert!(!is_seen(&app, high));
    viewer_at(&mut app, dimension, low.offset(160, 0, 0));
    wait_for(&mut app, "other ground", low.offset(160, 0, 0));
    let of_part = |failed: &ColumnFailed| {
        failed.column == high.column() && failed.error.to_string().contains("there is a ceiling")
    };
    assert!(heard::<ColumnFailed>(&app).iter().any(of_part), "the game hears of it");
    fails.store(false, Ordering::Relaxed);
    wait_for(&mut app, "what lies above", high);
}
