//! Regions merge and split with what is in them.

use crate::support::*;
use bevy_terrane::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Dead sections are cleared away soon, so that regions that part do so within a test.
fn config() -> RegionizerConfig {
    RegionizerConfig { recalculation_section_count: 4, max_dead_section_percent: 0.1, ..default() }
}

fn regions_in_statistics(app: &App) -> usize {
    app.world().resource::<WorldStatistics>().regions.len()
}

#[test]
fn regions_far_apart_are_two_and_near_ones_are_one() {
    let mut app = game(lockstep());
    listen::<RegionCreated>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    viewer(&mut app, dimension, 16.0 * 100.0, 0.0, 2);
    viewer(&mut app, dimension, 16.0 * 108.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 30);
    assert_eq!(regions_in_statistics(&app), 2);
    assert!(heard::<RegionCreated>(&app).len() >= 2);
}

#[test]
fn a_viewer_that_walks_merges_regions_and_parts_them_again_with_their_entities() {
    let mut app = game(lockstep().with_regionizer(config()));
    listen::<RegionMerged>(&mut app);
    listen::<RegionSplit>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    let walking = viewer(&mut app, dimension, 16.0 * 60.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 20);
    spawn_in_region(&mut app, dimension, BlockPos::new(3, 5, 3), (walker("home", 0.0), Name::new("home")));
    spawn_in_region(&mut app, dimension, BlockPos::new(8, 5, 8), walker("also home", 0.0));
    update(&mut app, 10);
    assert_eq!(regions_in_statistics(&app), 2);

    for step in (20..60).rev() {
        app.world_mut().get_mut::<Transform>(walking).unwrap().translation.x = 16.0 * step as f32;
        update(&mut app, 4);
    }
    app.world_mut().get_mut::<Transform>(walking).unwrap().translation.x = 16.0 * 8.0;
    update(&mut app, 40);
    assert_eq!(regions_in_statistics(&app), 1, "they are near each other");
    assert!(!heard::<RegionMerged>(&app).is_empty());
    spawn_in_region(&mut app, dimension, BlockPos::new(16 * 8, 5, 3), walker("guest", 0.0));
    update(&mut app, 4);
    assert_eq!(walkers(app.world_mut()).len(), 3);

    for step in 8..80 {
        app.world_mut().get_mut::<Transform>(walking).unwrap().translation.x = 16.0 * step as f32;
        update(&mut app, 4);
    }
    update(&mut app, 40);
    assert!(!heard::<RegionSplit>(&app).is_empty(), "they are far apart again");
    assert_eq!(regions_in_statistics(&app), 2);
    let left: Vec<_> = walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["also home", "home"], "the guest's ground was given up and stored with it");
}

#[test]
fn a_panic_halts_its_region_and_no_other() {
    fn fail(walkers: Query<&Walker>) {
        assert!(walkers.iter().all(|walker| walker.name != "bomb"), "a bomb went off");
    }
    let mut app = game(TerranePlugin::in_memory());
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, fail);
    });
    listen::<RegionHalted>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    viewer(&mut app, dimension, 16.0 * 200.0, 0.0, 1);
    start(&mut app);
    update_until(&mut app, "two regions tick", |world| {
        world.resource::<WorldStatistics>().regions.iter().filter(|region| region.ticks > 0).count() == 2
    });
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), walker("bomb", 0.0));
    update_until(&mut app, "a region halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
    assert!(heard::<RegionHalted>(&app)[0].reason.contains("a bomb went off"));
    let before = app.world().resource::<WorldStatistics>().ticks;
    update_until(&mut app, "the other ticks on", |world| world.resource::<WorldStatistics>().ticks > before + 10);
    let statistics = app.world().resource::<WorldStatistics>().clone();
    assert_eq!(statistics.regions.iter().filter(|region| region.halted).count(), 1);
    assert_eq!(statistics.regions.len(), 2);
}

#[test]
fn a_halted_region_comes_back_from_the_store_when_a_live_one_takes_over() {
    fn fail(walkers: Query<&Walker>) {
        assert!(walkers.iter().all(|walker| walker.name != "bomb"), "a bomb went off");
    }
    let mut app = game(TerranePlugin::in_memory().with_autosave_period(Duration::from_millis(200)));
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, fail);
    });
    listen::<RegionHalted>(&mut app);
    listen::<WorldSaved>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    let other = viewer(&mut app, dimension, 16.0 * 200.0, 0.0, 1);
    start(&mut app);
    let stone = BlockPos::new(2, 9, 2);
    update_until(&mut app, "home is loaded", |world| block_at(world, dimension, stone).is_some());
    let block = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: stone, block });
    app.update();
    app.world_mut().write_message(SaveWorld { request: 1 });
    update_until(&mut app, "it is saved", |world| !world.resource::<Heard<WorldSaved>>().0.is_empty());
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), walker("bomb", 0.0));
    update_until(&mut app, "a region halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());

    // A viewer walks into the halted region: its own, live one meets the halted one on the way.
    for column in (4..40).rev() {
        app.world_mut().get_mut::<Transform>(other).unwrap().translation.x = 16.0 * column as f32;
        let place = BlockPos::new(16 * column, 0, 0);
        update_until(&mut app, "the ground under the walking viewer is there", |world| {
            block_at(world, dimension, place).is_some() || column < 36
        });
        update(&mut app, 20);
    }
    let dug = BlockPos::new(3, 9, 3);
    update_until(&mut app, "one live region is left", |world| {
        let regions = &world.resource::<WorldStatistics>().regions;
        regions.len() == 1 && !regions[0].halted && regions[0].ticks > 0
    });
    update_until(&mut app, "its blocks can be edited again", |world| {
        world.write_message(SetBlock { dimension, position: dug, block });
        block_at(world, dimension, dug) == Some(block)
    });
    assert_eq!(block_at(app.world_mut(), dimension, stone), Some(block), "what was saved is there");
}

/// The threads that a system ran on.
#[derive(Resource, Clone, Default)]
struct Threads(Arc<Mutex<BTreeSet<String>>>);

#[test]
fn a_crowded_region_runs_its_systems_on_the_compute_threads_and_an_empty_one_does_not() {
    for (entities, is_parallel) in [(1, false), (30, true)] {
        let threads = Threads::default();
        let mut app = game(lockstep().with_parallel_systems_from(20));
        let shared = threads.clone();
        app.add_region_plugins(move |region| {
            let note = |walkers: Query<&Walker>, threads: Res<Threads>| {
                if !walkers.is_empty() {
                    let name = std::thread::current().name().unwrap_or_default().to_owned();
                    threads.0.lock().unwrap().insert(name);
                }
            };
            region.insert_resource(shared.clone()).add_systems(RegionTick, note);
        });
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 0.0, 0.0, 1);
        start(&mut app);
        update(&mut app, 10);
        for _ in 0..entities {
            app.world_mut().commands().spawn_in_region(dimension, BlockPos::new(0, 5, 0), walker("", 0.0));
        }
        update(&mut app, 4);
        let threads = threads.0.lock().unwrap();
        let on_compute = threads.iter().any(|name| name.starts_with("Compute Task Pool"));
        assert_eq!(on_compute, is_parallel, "{entities} entities: {threads:?}");
    }
}
