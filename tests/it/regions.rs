//! Regions merge and split together with their contents.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{RegionCreated, RegionMerged, RegionSplit};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

fn regions_in_statistics(app: &App) -> usize {
    app.world().resource::<WorldStatistics>().regions.len()
}

/// Promise, overview: Regions merge and split as players move.
#[test]
fn a_viewer_that_walks_merges_regions_and_parts_them_again_with_their_entities() {
    let mut app = game(TerranePlugin { regionizer: parting_soon(), ..lockstep() });
    listen::<RegionCreated>(&mut app);
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
    assert!(heard::<RegionCreated>(&app).len() >= 2);

    for step in (20..60).rev() {
        move_viewer(&mut app, walking, 16.0 * step as f32, 0.0);
        update(&mut app, 4);
    }
    move_viewer(&mut app, walking, 16.0 * 8.0, 0.0);
    update(&mut app, 40);
    assert_eq!(regions_in_statistics(&app), 1, "they are near each other");
    assert!(!heard::<RegionMerged>(&app).is_empty());
    spawn_in_region(&mut app, dimension, BlockPos::new(16 * 8, 5, 3), walker("guest", 0.0));
    update(&mut app, 4);
    assert_eq!(walkers(app.world_mut()).len(), 3);

    for step in 8..80 {
        move_viewer(&mut app, walking, 16.0 * step as f32, 0.0);
        update(&mut app, 4);
    }
    update(&mut app, 40);
    assert!(!heard::<RegionSplit>(&app).is_empty(), "they are far apart again");
    assert_eq!(regions_in_statistics(&app), 2);
    let left: Vec<_> = walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["also home", "home"], "the guest's column was evicted and stored with it");
}

/// The threads that a system ran on.
#[derive(Resource, Clone, Default)]
struct Threads(Arc<Mutex<BTreeSet<String>>>);

#[test]
fn a_crowded_region_runs_its_systems_on_the_compute_threads_and_an_empty_one_does_not() {
    for (entities, is_parallel) in [(1, false), (30, true)] {
        let threads = Threads::default();
        let mut app = game(TerranePlugin {
            threads: ThreadSettings { parallel_systems_from: Some(20), ..default() },
            ..lockstep()
        });
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
