//! The light of regions, and of the main world.

use crate::snapshots::{capture, restore};
use crate::support::gate::Gate;
use crate::support::*;
use bevy_terrane::light::{ColumnLight, Light, LightBlocks, LightMap, LightTable};
use bevy_terrane::prelude::*;
use bevy_terrane::region::RegionState;
use bevy_terrane::space::{BlockBox, HeightSet};
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::view::{CaptureSnapshot, JobEnded, RegionOrder, RestoreSnapshot};
use std::sync::Arc;

/// A place in the air.
const THERE: BlockPos = BlockPos::new(15, 3, 5);

struct Shown<'a>(&'a PublishedColumns, DimensionId);

impl LightBlocks for Shown<'_> {
    fn chunk(&self, pos: ChunkPos) -> Option<&Chunk> {
        self.0.column(self.1, pos.column())?.chunk(pos.y).map(|chunk| &**chunk)
    }
}

/// The first column whose shown light is not what its shown blocks give, all columns together.
pub fn wrong_light(world: &World, dimension: DimensionId, heights: std::ops::Range<i64>) -> Option<String> {
    let published = world.resource::<PublishedColumns>();
    let table = LightTable::new(&world.resource::<BlockTypes>().0);
    let columns: Vec<_> = published.iter().filter(|(of, _)| *of == dimension).map(|(_, column)| column).collect();
    assert!(!columns.is_empty());
    let mut map = LightMap::new();
    for column in &columns {
        map.insert(ColumnLight::new(&table, column, &HeightSet::from(heights.clone()), heights.end));
    }
    assert!(map.advance(&table, &Shown(published, dimension), usize::MAX));
    columns.iter().find_map(|column| {
        let Some(found) = published.light(dimension, column.pos()) else {
            return Some(format!("column {} is not lit", column.pos()));
        };
        let wrong = heights.clone().find(|y| found.chunk(*y) != map.chunk(column.pos().chunk(*y)));
        wrong.map(|y| format!("the light of chunk {} is wrong", column.pos().chunk(y)))
    })
}

/// Updates until all light is right.
#[track_caller]
fn settle(app: &mut App, dimension: DimensionId) {
    update_until(app, "the light is right", |world| wrong_light(world, dimension, -4..20).is_none());
}

fn world(plugin: TerranePlugin) -> (App, DimensionId, BlockId) {
    let mut app = game(plugin);
    let torch = BlockType::new("game:torch").with_shape(BlockShape::torch()).with_light(14);
    let torch = app.register_block(torch).unwrap();
    let dimension = flat(&mut app);
    listen::<ColumnChanged>(&mut app);
    listen::<JobEnded>(&mut app);
    (app, dimension, torch)
}

fn lit(plugin: TerranePlugin) -> (App, DimensionId, BlockId) {
    let (mut app, dimension, torch) = world(plugin);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, THERE).is_some());
    settle(&mut app, dimension);
    (app, dimension, torch)
}

fn set(app: &mut App, dimension: DimensionId, position: BlockPos, block: BlockId) {
    app.world_mut().write_message(SetBlock { dimension, position, block });
}

fn shown(app: &mut App, dimension: DimensionId, position: BlockPos) -> Option<[u8; 2]> {
    let published = app.world().resource::<PublishedColumns>();
    published.light(dimension, position.column())?.levels(position)
}

/// Covers the ground around the origin with a roof at this height.
fn cover(app: &mut App, dimension: DimensionId, y: i64, size: i64) {
    let stone = id_of(app.world(), "terrane:stone");
    for (x, z) in (-size..size).flat_map(|x| (-size..size).map(move |z| (x, z))) {
        set(app, dimension, BlockPos::new(x, y, z), stone);
    }
}

/// Promise, light: All columns of a region are lit, with light that crosses their borders.
#[test]
fn the_ground_is_lit_when_it_appears_and_after_edits() {
    let (mut app, dimension, torch) = lit(lockstep());
    assert_eq!(shown(&mut app, dimension, THERE), Some([15, 0]));
    cover(&mut app, dimension, 20, 24);
    update(&mut app, 3);
    settle(&mut app, dimension);
    assert_eq!(shown(&mut app, dimension, BlockPos::new(0, 3, 0)), Some([0, 0]));
    set(&mut app, dimension, THERE, torch);
    update(&mut app, 3);
    settle(&mut app, dimension);
    let beyond = THERE.offset(3, 0, 0);
    assert_ne!(beyond.column(), THERE.column());
    assert_eq!(shown(&mut app, dimension, beyond).map(|[_, block]| block), Some(11));
    let read = ask_region(&mut app, dimension, THERE, move |blocks: RegionBlocks| blocks.light(beyond));
    assert_eq!(read.map(|light| (light.block, light.now)), Ok((11, 11)));
    let outside =
        ask_region(&mut app, dimension, THERE, |blocks: RegionBlocks| blocks.light(BlockPos::new(5_000, 0, 0)));
    assert!(outside.is_err());
}

/// Promise, light: No frame shows a predicted edit in old light, or a decided one in other light than predicted.
#[test]
fn a_predicted_edit_is_lit_in_the_frame_that_shows_it() {
    let (mut app, dimension, torch) = lit(lockstep());
    cover(&mut app, dimension, 20, 24);
    update(&mut app, 5);
    settle(&mut app, dimension);
    let beside = THERE.offset(2, 0, 0);
    for (block, expected) in [(torch, 12), (BlockId::AIR, 0)] {
        set(&mut app, dimension, THERE, block);
        let mut frames_predicted = 0;
        for _ in 0..20 {
            app.update();
            assert_eq!(shown(&mut app, dimension, beside).map(|[_, block]| block), Some(expected));
            assert_eq!(wrong_light(app.world(), dimension, -4..20), None);
            frames_predicted += u32::from(app.world().resource::<PublishedColumns>().is_predicted(dimension, THERE));
        }
        assert!((1..20).contains(&frames_predicted), "{frames_predicted}");
    }
    let told = heard::<ColumnChanged>(&app).iter().filter(|changed| matches!(changed.change, ColumnChange::Light(_)));
    assert!(told.count() > 0);
}

/// Promise, light: A refused edit leaves the light as it was.
#[test]
fn the_light_of_a_refused_edit_is_taken_back() {
    let (mut app, dimension, torch) = lit(lockstep());
    update_until(&mut app, "the region is known", |world| region_at(world, dimension, THERE.column()).is_some());
    order(&mut app, dimension, THERE.column(), RegionOrder::Pause);
    update(&mut app, 5);
    set(&mut app, dimension, THERE, torch);
    app.update();
    assert_eq!(shown(&mut app, dimension, THERE).map(|[_, block]| block), Some(14));
    order(&mut app, dimension, THERE.column(), RegionOrder::Halt);
    update_until(&mut app, "it is taken back", |world| {
        !world.resource::<PublishedColumns>().is_predicted(dimension, THERE)
    });
    assert_ne!(shown(&mut app, dimension, THERE).map(|[_, block]| block), Some(14));
}

/// Promise, light: Light is right again after ground was unloaded and loaded, and after a restart.
#[test]
fn light_is_right_after_ground_comes_back() {
    let store = Arc::new(MemoryStore::new());
    let (mut app, dimension, torch) = world(lockstep_on(&store));
    let walking = viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, THERE).is_some());
    cover(&mut app, dimension, 20, 24);
    set(&mut app, dimension, THERE, torch);
    update(&mut app, 5);
    settle(&mut app, dimension);
    // The torch's column goes while that beside it stays, and comes back.
    for x in [64.0, 16.0, 80.0, 0.0] {
        move_viewer(&mut app, walking, x, 0.0);
        update(&mut app, 60);
        settle(&mut app, dimension);
    }
    assert_eq!(shown(&mut app, dimension, THERE.offset(3, 0, 0)).map(|[_, block]| block), Some(11));
    let mut app = reopen(app, || {
        let (mut app, dimension, _) = world(lockstep_on(&store));
        viewer(&mut app, dimension, 0.0, 0.0, 2);
        start(&mut app);
        app
    });
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, THERE) == Some(torch));
    settle(&mut app, dimension);
    assert_eq!(shown(&mut app, dimension, THERE.offset(3, 0, 0)).map(|[_, block]| block), Some(11));
}

/// Promise, light: Light crosses the seam of two regions once they have merged, and follows both when they split.
#[test]
fn light_follows_regions_that_merge_and_split() {
    let (mut app, dimension, torch) = world(TerranePlugin { regionizer: parting_soon(), ..lockstep() });
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    let walking = viewer(&mut app, dimension, 16.0 * 60.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 20);
    let regions = |app: &App| app.world().resource::<WorldStatistics>().regions.len();
    assert_eq!(regions(&app), 2);
    cover(&mut app, dimension, 20, 40);
    update(&mut app, 5);
    let mut fewest = 2;
    for step in (8..40).rev().chain(8..80) {
        move_viewer(&mut app, walking, 16.0 * step as f32, 0.0);
        update(&mut app, 4);
        // Torches along the way, where one region ends and the other begins.
        set(&mut app, dimension, BlockPos::new(16 * step - 1, 3, 0), torch);
        update(&mut app, 3);
        fewest = fewest.min(regions(&app));
        if fewest == 1 && step % 8 == 0 {
            settle(&mut app, dimension);
        }
    }
    update(&mut app, 60);
    assert_eq!((fewest, regions(&app)), (1, 2));
    settle(&mut app, dimension);
}

/// Promise, light: The ground of a region that waits for a neighbor's tick is a border of light, until the two have merged.
#[test]
fn a_region_that_waits_beside_a_ticking_one_is_a_border() {
    let (mut app, dimension, torch) = world(TerranePlugin::in_memory());
    let gate = Gate::default();
    let copy = gate.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, |gate: Res<Gate>, blocks: RegionBlocks| {
            if blocks.block(THERE).is_ok() {
                gate.pass();
            }
        });
    });
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, THERE).is_some());
    // Dark below a roof, with a torch at the edge of the ground, so that light has a way to go into the other region.
    cover(&mut app, dimension, 20, 24);
    let edge = BlockPos::new(16 * 3 - 1, 3, 8);
    set(&mut app, dimension, edge, torch);
    settle(&mut app, dimension);

    gate.close();
    update_until(&mut app, "the region is in its tick", |_| gate.waiting() == 1);
    viewer(&mut app, dimension, 16.0 * 5.0, 0.0, 2);
    update_until(&mut app, "the other region waits for it", |world| {
        let regions = &world.resource::<WorldStatistics>().regions;
        regions.iter().any(|region| region.state == RegionState::Transient)
    });
    for _ in 0..20 {
        app.update();
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(gate.waiting(), 1);
    assert_eq!(shown(&mut app, dimension, edge).map(|[_, block]| block), Some(14));
    gate.open();
    let beyond = BlockPos::new(16 * 3 + 2, 3, 8);
    update_until(&mut app, "the ground beyond is there", |world| block_at(world, dimension, beyond).is_some());
    settle(&mut app, dimension);
    assert_eq!(shown(&mut app, dimension, beyond).map(|[_, block]| block), Some(11));
}

/// Promise, light: Relighting that does not fit into a tick goes on in the next ones.
#[test]
fn much_light_takes_several_ticks_and_ends() {
    let (mut app, dimension, _) = world(TerranePlugin { light: 1e-6, ..lockstep() });
    viewer(&mut app, dimension, 0.0, 0.0, 7);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| world.resource::<PublishedColumns>().len() > 140);
    settle(&mut app, dimension);
    let stone = id_of(app.world(), "terrane:stone");
    ask_region(&mut app, dimension, THERE, move |mut blocks: RegionBlocks| {
        for (x, z) in (-100..100).flat_map(|x| (-100..100).map(move |z| (x, z))) {
            // The corners are not loaded.
            _ = blocks.set_block(BlockPos::new(x, 60, z), stone);
        }
    });
    let mut wrong = 0;
    update_until(&mut app, "the light is right", |world| {
        let is_wrong = wrong_light(world, dimension, -4..20).is_some();
        wrong += u32::from(is_wrong);
        wrong > 0 && !is_wrong
    });
    assert!(wrong > 1, "{wrong}");
}

/// Promise, light: Restored ground is lit as it was, whether few or most of its blocks have changed.
#[test]
fn restored_ground_is_lit() {
    let (mut app, dimension, torch) = lit(lockstep());
    let area = BlockBox::new(BlockPos::new(-20, -4, -20), BlockPos::new(19, 40, 19));
    let open = capture(&mut app, CaptureSnapshot::new(dimension, area));
    cover(&mut app, dimension, 20, 20);
    set(&mut app, dimension, THERE, torch);
    update(&mut app, 3);
    settle(&mut app, dimension);
    let covered = capture(&mut app, CaptureSnapshot::new(dimension, area));
    let here = BlockPos::new(-3, 3, -3);
    for (snapshot, sky) in [(&open, 15), (&covered, 0)] {
        restore(&mut app, RestoreSnapshot::new(dimension, snapshot.clone()));
        settle(&mut app, dimension);
        assert_eq!(shown(&mut app, dimension, here).map(|[sky, _]| sky), Some(sky));
    }
    assert_eq!(shown(&mut app, dimension, THERE.offset(3, 0, 0)).map(|[_, block]| block), Some(11));
    // A hole in the roof: a single block.
    set(&mut app, dimension, BlockPos::new(-3, 20, -3), BlockId::AIR);
    update(&mut app, 3);
    settle(&mut app, dimension);
    assert_eq!(shown(&mut app, dimension, here).map(|[sky, _]| sky), Some(15));
    restore(&mut app, RestoreSnapshot::new(dimension, covered));
    settle(&mut app, dimension);
    assert_eq!(shown(&mut app, dimension, here).map(|[sky, _]| sky), Some(0));
}

/// Promise, light: A world without light counts as lit by the open sky everywhere, and publishes no light.
#[test]
fn a_world_without_light_is_under_the_open_sky() {
    let (mut app, dimension, _) = world(TerranePlugin { light: 0.0, ..lockstep() });
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, THERE).is_some());
    update(&mut app, 5);
    assert_eq!(shown(&mut app, dimension, THERE), None);
    let below = BlockPos::new(3, -20, 3);
    let light = ask_region(&mut app, dimension, THERE, move |blocks: RegionBlocks| blocks.light(below));
    assert_eq!(light, Ok(Light { sky: 15, block: 0, now: 15 }));
}

/// Promise, light: Ground that a region loads within its tick is lit.
#[test]
fn ground_that_a_system_loads_is_lit() {
    let (mut app, dimension, _) = lit(lockstep());
    let near = BlockPos::new(16 * 3 + 1, 5, 0);
    let sky = ask_region(&mut app, dimension, THERE, move |mut blocks: RegionBlocks| {
        blocks.load(near).map(|_| ()).map_err(|error| error.to_string())?;
        blocks.light(near).map(|light| light.sky).map_err(|error| error.to_string())
    });
    assert_eq!(sky, Ok(15));
    update(&mut app, 5);
    settle(&mut app, dimension);
}
