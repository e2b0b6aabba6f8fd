//! Ground that lives in a whole world: liquids, falling blocks, updates and random ticks, over restarts and merging regions.

use crate::support::*;
use bevy_terrane::block::tags;
use bevy_terrane::liquid::{LiquidRules, liquid_states};
use bevy_terrane::plugin::{FallingBlocksPlugin, GrowthPlugin, LiquidsPlugin};
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::{BlockChanged, FallingBlock, GrowthRule, RandomTick, RuleLoop};
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::view::RegionMerged;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// A game with water and sand.
fn living(plugin: TerranePlugin) -> App {
    let mut app = game(plugin);
    app.register_block_states(liquid_states(BlockType::new("game:water").transparent())).unwrap();
    let sand = BlockType::new("game:sand").with_tag(tags::FALLS).with_tag(tags::NOTICES);
    app.register_block(sand).unwrap();
    app.register_block(BlockType::new("game:bell").with_tag(tags::NOTICES)).unwrap();
    app.register_block(BlockType::new("game:moss").with_tag(tags::RANDOM_TICKS)).unwrap();
    app.add_plugins((
        LiquidsPlugin::new([LiquidRules::new("game:water").renewing()]),
        FallingBlocksPlugin,
        GrowthPlugin::new([GrowthRule::spreading("game:moss", "terrane:grass").with_light(1..=15)]),
    ));
    app
}

fn place(app: &mut App, dimension: DimensionId, position: BlockPos, name: &str) {
    let block = id_of(app.world(), name);
    app.world_mut().write_message(SetBlock { dimension, position, block });
}

fn name_at(app: &App, dimension: DimensionId, position: BlockPos) -> Option<String> {
    let block = block_at(app.world(), dimension, position)?;
    Some(app.world().resource::<BlockTypes>().block(block).name().to_owned())
}

/// The liquid cells in a box, by place.
fn water(app: &App, dimension: DimensionId, [x, y, z]: [Range<i64>; 3]) -> BTreeMap<BlockPos, BlockId> {
    // The states have successive ids.
    let first = id_of(app.world(), "game:water").index();
    let mut found = BTreeMap::new();
    for (x, z) in x.flat_map(|x| z.clone().map(move |z| (x, z))) {
        for place in y.clone().map(|y| BlockPos::new(x, y, z)) {
            let block = block_at(app.world(), dimension, place);
            found.extend(block.filter(|block| (first..first + 9).contains(&block.index())).map(|block| (place, block)));
        }
    }
    found
}

/// Promise, liquids: A flood over regions that merge ends as in one region, in a whole world.
#[test]
fn a_flood_over_regions_that_merge_is_that_of_one_region() {
    let flood = |is_one: bool| {
        let mut app = living(lockstep());
        listen::<RegionMerged>(&mut app);
        let dimension = spawn_dimension(&mut app, Dimension::new("overworld", Hills::seeded(5)));
        // Springs on a line of hills; those of the second run are in regions of their own at first.
        let centers = [-960.0, -320.0, 320.0, 960.0];
        for x in centers {
            viewer(&mut app, dimension, x, 0.0, 6);
        }
        let bridge = |app: &mut App| {
            for x in [-640.0, 0.0, 640.0] {
                viewer(app, dimension, x, 0.0, 16);
            }
        };
        if is_one {
            bridge(&mut app);
        }
        start(&mut app);
        update_until(&mut app, "the ground is there", |world| {
            centers.iter().all(|x| block_at(world, dimension, BlockPos::new(*x as i64, 0, 0)).is_some())
                && world.resource::<WorldStatistics>().remaining == 0
        });
        for x in centers {
            place(&mut app, dimension, BlockPos::new(x as i64, 70, 3), "game:water");
            place(&mut app, dimension, BlockPos::new(x as i64 + 40, 70, 3), "game:water");
        }
        update(&mut app, 60);
        if !is_one {
            assert_eq!(app.world().resource::<WorldStatistics>().regions.len(), 4);
            bridge(&mut app);
        }
        update(&mut app, 1_500);
        assert_eq!(app.world().resource::<WorldStatistics>().regions.len(), 1);
        assert_eq!(heard::<RegionMerged>(&app).len() >= 3, !is_one);
        let around = |x: f32| x as i64 - 80..x as i64 + 120;
        centers.map(|x| water(&app, dimension, [around(x), -40..72, -80..80]))
    };
    let one = flood(true);
    assert!(one.iter().all(|flood| flood.len() > 100), "{:?} cells", one.each_ref().map(BTreeMap::len));
    assert!(flood(false) == one);
}

/// Promise, liquids: A flood goes on after a restart, and ends as without one.
#[test]
fn a_flood_goes_on_after_a_restart() {
    let flood = |restarts: usize| {
        let store = Arc::new(MemoryStore::new());
        let open = || {
            let mut app = living(lockstep_on(&store));
            let dimension = flat(&mut app);
            viewer(&mut app, dimension, 0.0, 0.0, 3);
            start(&mut app);
            update_until(&mut app, "it is loaded", |world| {
                [-20, 20].iter().all(|at| block_at(world, dimension, BlockPos::new(*at, 0, *at)).is_some())
            });
            (app, dimension)
        };
        let (mut app, mut dimension) = open();
        place(&mut app, dimension, BlockPos::new(0, 9, 0), "game:water");
        for _ in 0..restarts {
            update(&mut app, 12);
            (app, dimension) = reopen(app, open);
        }
        update(&mut app, 200);
        water(&app, dimension, [-30..30, -8..12, -30..30])
    };
    let once = flood(0);
    // A column of nine cells, and a diamond around its foot.
    assert_eq!(once.len(), 9 + 2 * 7 * 8);
    assert_eq!(flood(4), once);
}

/// Promise, liquids: In a whole world, water in a layer of a slab flows out of it, through a porous fence, and dries, over restarts too.
#[test]
fn water_in_a_layer_flows_out_and_dries() {
    let store = Arc::new(MemoryStore::new());
    let open = || {
        let mut app = living(lockstep_on(&store));
        app.register_block(BlockType::new("game:slab").with_shape(BlockShape::slab())).unwrap();
        let fence = BlockType::new("game:fence").with_shape(BlockShape::fence()).with_tag(tags::POROUS);
        app.register_block(fence).unwrap();
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 0.0, 0.0, 2);
        start(&mut app);
        update_until(&mut app, "it is loaded", |world| block_at(world, dimension, BlockPos::new(3, 0, 3)).is_some());
        (app, dimension)
    };
    let (slab, fence) = (BlockPos::new(3, 1, 3), BlockPos::new(4, 1, 3));
    let layers = |app: &mut App, dimension: DimensionId, place: BlockPos| {
        ask_region(app, dimension, place, move |blocks: RegionBlocks, types: Res<BlockTypes>| {
            let blocks = (0..).map_while(|layer| blocks.block_at(place, layer).unwrap());
            blocks.map(|block| types.block(block).name().to_owned()).collect::<Vec<_>>()
        })
    };
    let (mut app, dimension) = open();
    place(&mut app, dimension, slab, "game:slab");
    place(&mut app, dimension, fence, "game:fence");
    let water = id_of(app.world(), "game:water");
    update(&mut app, 2);
    ask_region(&mut app, dimension, slab, move |mut blocks: RegionBlocks| blocks.set_block_at(slab, 1, water).unwrap());
    update(&mut app, 12);
    let (mut app, dimension) = reopen(app, open);
    update(&mut app, 60);
    assert_eq!(layers(&mut app, dimension, slab), ["game:slab", "game:water[level=8]"]);
    assert_eq!(layers(&mut app, dimension, fence), ["game:fence", "game:water[level=7]"]);
    let beyond = fence.offset(1, 0, 0);
    assert_eq!(layers(&mut app, dimension, beyond), ["game:water[level=6]"]);
    ask_region(&mut app, dimension, slab, move |mut blocks: RegionBlocks| blocks.remove_block(slab, 1).unwrap());
    update(&mut app, 12);
    let (mut app, dimension) = reopen(app, open);
    update(&mut app, 100);
    assert_eq!(layers(&mut app, dimension, slab), ["game:slab"]);
    assert_eq!(layers(&mut app, dimension, fence), ["game:fence"]);
    assert_eq!(self::water(&app, dimension, [-12..16, 0..4, -12..16]).len(), 0);
}

/// Sand lies on a slab that has water in the layer below it, and takes the place of all layers of liquid.
#[test]
fn sand_lies_on_what_any_layer_has() {
    let mut app = living(lockstep());
    app.register_block(BlockType::new("game:slab").with_shape(BlockShape::slab())).unwrap();
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    let (slab, bare) = (BlockPos::new(3, 1, 3), BlockPos::new(9, 1, 3));
    update_until(&mut app, "it is loaded", |world| block_at(world, dimension, slab).is_some());
    ask_region(&mut app, dimension, slab, move |mut blocks: RegionBlocks, types: Res<BlockTypes>| {
        let [slab_id, water] = ["game:slab", "terrane:water"].map(|name| types.id(name).unwrap());
        blocks.set_block(slab, types.id("game:water").unwrap()).unwrap();
        blocks.set_block_at(slab, 1, slab_id).unwrap();
        blocks.set_block_at(bare, 1, water).unwrap();
    });
    for cell in [slab, bare] {
        place(&mut app, dimension, cell.offset(0, 3, 0), "game:sand");
    }
    update(&mut app, 60);
    assert_eq!(name_at(&app, dimension, slab.offset(0, 1, 0)).as_deref(), Some("game:sand"));
    let layers = ask_region(&mut app, dimension, bare, move |blocks: RegionBlocks| blocks.layer_count(bare).unwrap());
    assert_eq!((name_at(&app, dimension, bare).as_deref(), layers), (Some("game:sand"), 1));
}

/// The blocks that heard of a change.
#[derive(Resource, Clone, Default)]
struct Rung(Arc<Mutex<Vec<BlockPos>>>);

fn ring(mut changed: MessageReader<BlockChanged>, rung: Res<Rung>) {
    rung.0.lock().unwrap().extend(changed.read().map(|changed| changed.block));
}

/// Promise, ground: A change at a border is heard beyond it after the neighbor was loaded, also after a restart.
#[test]
fn a_change_at_a_border_is_heard_after_the_neighbor_comes() {
    let store = Arc::new(MemoryStore::new());
    // The last column of the area, and a bell in the first column beyond.
    let (edge, bell) = (BlockPos::new(47, 1, 5), BlockPos::new(48, 1, 5));
    let open = |radius: u32| {
        let mut app = living(lockstep_on(&store));
        let rung = Rung::default();
        let shared = rung.clone();
        app.add_region_plugins(move |region| {
            region.insert_resource(shared.clone()).add_systems(RegionTick, ring);
        });
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 0.0, 0.0, radius);
        start(&mut app);
        update_until(&mut app, "it is loaded", |world| block_at(world, dimension, edge).is_some());
        (app, dimension, rung)
    };
    let (mut app, dimension, _) = open(4);
    update_until(&mut app, "the bell's column is loaded", |world| block_at(world, dimension, bell).is_some());
    place(&mut app, dimension, bell, "game:bell");
    update(&mut app, 10);
    let (mut app, dimension, rung) = reopen(app, || open(2));
    update(&mut app, 10);
    assert_eq!(block_at(app.world(), dimension, bell), None);
    place(&mut app, dimension, edge, "terrane:stone");
    update(&mut app, 50);
    assert!(rung.0.lock().unwrap().is_empty());
    let (mut app, dimension, rung) = reopen(app, || open(4));
    update_until(&mut app, "the bell's column is loaded", |world| block_at(world, dimension, bell).is_some());
    update(&mut app, 60);
    assert_eq!(*rung.0.lock().unwrap(), [bell]);
}

#[test]
fn a_loop_of_rules_is_bounded_and_reported() {
    #[derive(Resource, Clone, Default)]
    struct Loops(Arc<Mutex<(usize, Vec<RuleLoop>)>>);

    /// Two rules that undo each other: what is beside a bell goes, and comes back.
    fn quarrel(
        mut changed: MessageReader<BlockChanged>,
        mut blocks: RegionBlocks,
        types: Res<BlockTypes>,
        loops: Res<Loops>,
    ) {
        let stone = types.id("terrane:stone").unwrap();
        for BlockChanged { block } in changed.read() {
            loops.0.lock().unwrap().0 += 1;
            let beside = block.offset(1, 0, 0);
            let new = if blocks.block(beside).unwrap() == stone { BlockId::AIR } else { stone };
            blocks.set_block(beside, new).unwrap();
        }
    }
    fn note(mut found: MessageReader<RuleLoop>, loops: Res<Loops>) {
        loops.0.lock().unwrap().1.extend(found.read());
    }
    let mut app = living(lockstep());
    let loops = Loops::default();
    let shared = loops.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(shared.clone()).add_systems(RegionTick, (quarrel, note));
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    let bell = BlockPos::new(3, 5, 3);
    place(&mut app, dimension, bell, "game:bell");
    update(&mut app, 640);
    let (updates, found) = loops.0.lock().unwrap().clone();
    assert!((280..=380).contains(&updates), "{updates}");
    assert!((8..=11).contains(&found.len()) && found.iter().all(|found| found.block == bell), "{found:?}");
}

/// Promise, ground: Random ticks are the same on one and on two threads.
#[test]
fn random_ticks_do_not_depend_on_threads() {
    #[derive(Resource, Clone, Default)]
    struct Drawn(Arc<Mutex<Vec<(BlockPos, u64)>>>);

    let run = |regions: usize| {
        let plugin = TerranePlugin { seed: 3, threads: ThreadSettings { regions, ..default() }, ..lockstep() };
        let mut app = living(plugin);
        let drawn = Drawn::default();
        let shared = drawn.clone();
        app.add_region_plugins(move |region| {
            let note = |mut found: MessageReader<RandomTick>, drawn: Res<Drawn>| {
                drawn.0.lock().unwrap().extend(found.read().map(|found| (found.block, found.random)));
            };
            region.insert_resource(shared.clone()).add_systems(RegionTick, note);
        });
        let dimension = flat(&mut app);
        let centers = [0.0, 960.0];
        for x in centers {
            viewer(&mut app, dimension, x, 0.0, 2);
        }
        start(&mut app);
        update(&mut app, 30);
        assert!(drawn.0.lock().unwrap().is_empty(), "nothing asks for them");
        for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (x, z))) {
            for center in centers {
                place(&mut app, dimension, BlockPos::new(center as i64 + x, 0, z), "game:moss");
            }
        }
        update(&mut app, 200);
        let mut drawn = drawn.0.lock().unwrap().clone();
        drawn.sort_unstable();
        drawn
    };
    let one = run(1);
    assert!(one.len() > 20, "{}", one.len());
    assert_eq!(run(2), one);
}

/// Promise, ground: No falling block is lost or doubled over a restart.
#[test]
fn sand_falls_over_restarts_and_none_is_lost() {
    let store = Arc::new(MemoryStore::new());
    let open = || {
        let mut app = living(lockstep_on(&store));
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 0.0, 0.0, 2);
        start(&mut app);
        update_until(&mut app, "it is loaded", |world| block_at(world, dimension, BlockPos::new(3, 0, 3)).is_some());
        (app, dimension)
    };
    let count = |app: &mut App, dimension: DimensionId| {
        update(app, 3);
        let lying = (0..64)
            .filter(|y| name_at(app, dimension, BlockPos::new(3, *y, 3)).as_deref() == Some("game:sand"))
            .count();
        let falling = app.world_mut().query_filtered::<&FallingBlock, With<Mirror>>().iter(app.world()).count();
        (lying, falling)
    };
    let (mut app, mut dimension) = open();
    for y in 40..48 {
        place(&mut app, dimension, BlockPos::new(3, y, 3), "game:sand");
    }
    let mut was_falling = false;
    for _ in 0..6 {
        update(&mut app, 7);
        (app, dimension) = reopen(app, open);
        let (lying, falling) = count(&mut app, dimension);
        assert_eq!(lying + falling, 8);
        was_falling |= falling > 0;
    }
    assert!(was_falling);
    update(&mut app, 150);
    assert_eq!(count(&mut app, dimension), (8, 0));
    assert!((1..=8).all(|y| name_at(&app, dimension, BlockPos::new(3, y, 3)).as_deref() == Some("game:sand")));
}
