//! Columns are generated nearest first, within the requested radius and rate; failures hold up nothing else.

use crate::support::ground::{Watched, disc};
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::view::{DimensionGeneration, DimensionStatistics, Pacing, Pregeneration, RetryColumns};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

fn progress(world: &World, dimension: DimensionId) -> DimensionStatistics {
    let statistics = &world.resource::<WorldStatistics>().dimensions;
    statistics.iter().find(|statistics| statistics.dimension == dimension).cloned().unwrap_or_default()
}

fn is_generated(world: &World, dimension: DimensionId) -> bool {
    let progress = progress(world, dimension);
    progress.to_generate.total > 0 && progress.to_generate.missing == 0
}

fn further_viewer(app: &mut App, dimension: DimensionId, x: f32, radius: u32, generation_radius: u32) -> Entity {
    let viewer = Viewer::in_dimension(dimension).with_radius(radius).with_generation_radius(generation_radius);
    app.world_mut().spawn((viewer, Transform::from_xyz(x, 0.0, 0.0))).id()
}

fn near(column: &ColumnPos, center: ColumnPos, radius: u128) -> bool {
    column.distance_squared(center) <= radius * radius
}

const HOME: ColumnPos = ColumnPos::new(0, 0);

/// Promise, worlds: Columns between a viewer's load radius and its generation radius are generated and stored, not loaded.
#[test]
fn columns_between_the_radii_are_generated_and_stored_and_not_loaded() {
    let watched = Watched::default();
    let mut app = game(lockstep());
    let dimension = spawn_dimension(&mut app, watched.dimension("overworld"));
    let viewer = further_viewer(&mut app, dimension, 8.0, 2, 9);
    start(&mut app);
    update_until(&mut app, "all is generated", |world| is_generated(world, dimension));
    let asked: BTreeSet<_> = watched.asked().into_iter().collect();
    assert!(asked.is_superset(&disc(HOME, 9)));
    assert_eq!(asked.len(), watched.asked().len(), "each once");
    assert!(asked.iter().all(|column| near(column, HOME, 9 + 5)));
    let loaded: BTreeSet<_> = app.world().resource::<PublishedColumns>().iter().map(|(_, it)| it.pos()).collect();
    assert!(loaded.is_superset(&disc(HOME, 2)) && loaded.is_subset(&disc(HOME, 4)), "{loaded:?}");

    // Both radii can be changed at any time. Generated columns are loaded, not generated again.
    let mut changed = app.world_mut().get_mut::<Viewer>(viewer).unwrap();
    (changed.radius, changed.generation_radius) = (5, 14);
    update(&mut app, 10);
    update_until(&mut app, "more is generated", |world| is_generated(world, dimension));
    update_until(&mut app, "more is loaded", |world| world.resource::<PublishedColumns>().len() >= disc(HOME, 5).len());
    assert!(watched.take_calls().values().all(|calls| *calls == 1));
}

#[test]
fn a_viewer_of_a_region_has_its_radii_again_after_a_restart() {
    let watched = Watched::default();
    let disk = Arc::<MemoryStore>::default();
    let far = ColumnPos::new(100, 0);
    for run in 0..2 {
        let mut app = game(lockstep_on(&disk));
        let dimension = spawn_dimension(&mut app, watched.dimension("overworld"));
        start(&mut app);
        app.update();
        if run == 0 {
            let scout = (walker("scout", 0.0), Viewer::new().with_radius(1).with_generation_radius(7));
            spawn_in_region(&mut app, dimension, far.chunk(0).min_block(), scout);
        }
        update(&mut app, 20);
        update_until(&mut app, "all is generated", |world| is_generated(world, dimension));
        assert_eq!(progress(app.world(), dimension).to_generate.total, disc(far, 7).len() as u64, "run {run}");
    }
    let calls = watched.take_calls();
    assert!(disc(far, 7).iter().all(|column| calls[column] == 1));
}

/// Promise, worlds: Columns are generated nearest first over all viewers and dimensions, and no viewer starves.
#[test]
fn a_crowd_that_moves_on_and_on_does_not_starve_a_lone_viewer() {
    let watched = Watched::default();
    let settings = DimensionGeneration { columns_per_second: Some(320.0), ..default() };
    let mut app = game(TerranePlugin { generation: settings, ..lockstep() });
    let dimension = spawn_dimension(&mut app, watched.dimension("overworld"));
    let lone = ColumnPos::new(-10_000, 0);
    further_viewer(&mut app, dimension, -160_000.0, 0, 40);
    start(&mut app);
    // The columns left for it are further away than all that the crowd wants.
    update(&mut app, 60);
    watched.take_calls();
    let crowd: Vec<_> = (0..20).map(|_| viewer(&mut app, dimension, 0.0, 0.0, 4)).collect();
    for round in 0..100 {
        for (number, viewer) in crowd.iter().enumerate() {
            move_viewer(&mut app, *viewer, 16.0 * (1_000 * round + number % 3) as f32, 0.0);
        }
        app.update();
    }
    let calls = watched.take_calls();
    let for_lone = calls.keys().filter(|column| near(column, lone, 50)).count();
    assert!(for_lone * 10 >= calls.len(), "{for_lone} of {}", calls.len());
    assert!(for_lone * 2 <= calls.len(), "{for_lone} of {}: the nearest come first", calls.len());
}

/// Promise, worlds: Columns are generated nearest first over all viewers and dimensions, and no viewer starves.
#[test]
fn several_dimensions_are_generated_at_a_time() {
    let watched = [Watched::default(), Watched::default(), Watched::default()];
    let mut app = game(TerranePlugin { pacing: Pacing::fixed(16), ..lockstep() });
    for (number, watched) in watched.iter().enumerate() {
        let dimension = spawn_dimension(&mut app, watched.dimension(&format!("dimension {number}")));
        further_viewer(&mut app, dimension, 0.0, 1, 20);
    }
    start(&mut app);
    update(&mut app, 120);
    let counts = watched.each_ref().map(|watched| watched.asked().len());
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(*least > 64 && most - least <= 32, "{counts:?}");
}

#[test]
fn work_ahead_of_a_viewer_that_moves_counts_as_nearer() {
    let ahead_of = |heading_weight: f64| {
        let watched = Watched::default();
        let settings = DimensionGeneration { columns_per_second: Some(80.0), heading_weight, ..default() };
        let mut app = game(TerranePlugin { generation: settings, ..lockstep() });
        let dimension = spawn_dimension(&mut app, watched.dimension("overworld"));
        let walker = further_viewer(&mut app, dimension, 0.0, 0, 24);
        start(&mut app);
        let mut ahead = 0_i64;
        for step in 0..100 {
            // Two columns per second.
            let x = step as f32 * 1.6;
            move_viewer(&mut app, walker, x, 0.0);
            app.update();
            let here = (x / 16.0) as i64;
            ahead += watched.take_calls().keys().map(|column| (column.x - here).signum()).sum::<i64>();
        }
        ahead
    };
    let (without, with) = (ahead_of(0.0), ahead_of(1.0));
    assert!(with > without + 50, "{without} without, {with} with a weight");
}

/// Promise, worlds: `DimensionGeneration` pauses or caps the generation of a dimension, while its loading continues.
/// Promise, worlds: `WorldStatistics` shows the remaining work, the rate, the time left and the failures of generation.
#[test]
fn a_cap_and_a_pause_apply_to_generation_and_not_to_loading() {
    let watched = Watched::default();
    let mut app = game(TerranePlugin { saving: SaveSettings::every(Duration::from_millis(100)), ..lockstep() });
    let dimension = spawn_dimension(&mut app, watched.dimension("overworld"));
    let settings = DimensionGeneration { columns_per_second: Some(40.0), ..default() };
    insert_into_dimension(&mut app, dimension, settings);
    let viewer = further_viewer(&mut app, dimension, 0.0, 3, 20);
    start(&mut app);
    update(&mut app, 100);
    let asked = watched.asked().len();
    assert!((180..=210).contains(&asked), "{asked} in five seconds");

    let faster = DimensionGeneration { columns_per_second: Some(100.0), ..settings };
    insert_into_dimension(&mut app, dimension, faster);
    update(&mut app, 100);
    let more = watched.asked().len() - asked;
    assert!((480..=530).contains(&more), "{more} in five seconds");
    let told = progress(app.world(), dimension);
    assert!(told.generated_per_second.is_some_and(|rate| (60.0..=80.0).contains(&rate)), "{told:?}");
    assert!(told.time_left.is_some_and(|left| left > Duration::from_secs(3)), "{told:?}");

    insert_into_dimension(&mut app, dimension, DimensionGeneration { paused: true, ..faster });
    update(&mut app, 20);
    let before = watched.asked().len();
    move_viewer(&mut app, viewer, 16.0 * 8.0, 0.0);
    update(&mut app, 30);
    assert_eq!(watched.asked().len(), before, "nothing is begun");
    assert!(block_at(app.world_mut(), dimension, BlockPos::new(16 * 8, 0, 0)).is_some(), "what is stored is loaded");
    assert!(progress(app.world(), dimension).generation.paused);

    insert_into_dimension(&mut app, dimension, DimensionGeneration::default());
    update_until(&mut app, "all is generated", |world| is_generated(world, dimension));
    update_until(&mut app, "all is loaded", |world| world.resource::<WorldStatistics>().remaining == 0);
    assert!(watched.take_calls().values().all(|calls| *calls == 1));
}

#[test]
fn after_a_leap_the_first_columns_are_near_the_new_place() {
    let watched = Watched::default();
    watched.close_gate_after(0);
    let mut app = game(TerranePlugin {
        threads: ThreadSettings { generation: 1, ..default() },
        pacing: Pacing::fixed(256),
        ..TerranePlugin::in_memory()
    });
    let dimension = spawn_dimension(&mut app, watched.dimension("overworld"));
    let viewer = viewer(&mut app, dimension, 0.0, 0.0, 12);
    start(&mut app);
    update_until(&mut app, "a thread has a batch in hand, and many are on order", |world| {
        !watched.asked().is_empty() && world.resource::<WorldStatistics>().in_flight >= 200
    });
    let there = ColumnPos::new(2_000, 0);
    move_viewer(&mut app, viewer, 16.0 * 2_000.0, 0.0);
    update_until(&mut app, "it is known there", |world| {
        let statistics = world.resource::<WorldStatistics>();
        statistics.viewers.iter().any(|(_, center, _)| *center == there) && statistics.in_flight >= 200
    });
    watched.open_gate();
    update_until(&mut app, "it has ground", |world| {
        let id = dimension;
        disc(there, 3).iter().all(|column| world.resource::<PublishedColumns>().column(id, *column).is_some())
    });
    let asked = watched.asked();
    let in_hand = asked.iter().position(|column| near(column, there, 20)).unwrap();
    assert!(in_hand <= 16, "{in_hand} columns of the old place came first");
    assert!(asked[in_hand..].iter().take(48).all(|column| near(column, there, 10)), "{asked:?}");
    let old = asked.iter().filter(|column| near(column, HOME, 20)).count();
    assert_eq!(old, in_hand, "nobody wants the rest");
}

/// Promise, worlds: A column that cannot be generated is reported, delays no other column, and is retried on demand.
/// Promise, worlds: `WorldStatistics` shows the remaining work, the rate, the time left and the failures of generation.
#[test]
fn a_column_that_fails_is_tried_again_set_aside_and_tried_on_demand() {
    let watched = Watched::default();
    // An error and a panic in columns to load, an error in a column that is only stored.
    let failing = [ColumnPos::new(0, 0), ColumnPos::new(1, 1), ColumnPos::new(6, 0)];
    watched.fail(&failing);
    let settings = DimensionGeneration { attempts: 3, ..default() };
    let mut app = game(TerranePlugin { generation: settings, ..lockstep() });
    listen::<ColumnFailed>(&mut app);
    let dimension = spawn_dimension(&mut app, watched.dimension("overworld"));
    further_viewer(&mut app, dimension, 8.0, 3, 8);
    start(&mut app);
    update(&mut app, 15);
    // The other columns did not wait.
    let others = disc(HOME, 3).into_iter().filter(|column| !failing.contains(column));
    let id = dimension;
    others.for_each(|column| assert!(app.world().resource::<PublishedColumns>().column(id, column).is_some()));
    let told = progress(app.world(), dimension);
    assert_eq!((told.failing, told.to_load.missing), (3, 2), "each is missing once, and one is not to be loaded");

    update(&mut app, 200);
    let told = progress(app.world(), dimension);
    assert_eq!((told.failing, told.set_aside, told.to_generate.missing), (0, 3, 3));
    assert_eq!(told.to_load.missing, 2, "not there is not done");
    assert!(told.failures.iter().all(|failed| failed.attempts == 3 && failed.set_aside));
    let panicked = told.failures.iter().find(|failed| failed.column == failing[1]).expect("listed");
    assert!(panicked.error.contains("an odd column makes it panic"), "{}", panicked.error);
    for column in failing {
        let failed = heard::<ColumnFailed>(&app).iter().filter(|failed| failed.column == column);
        let tries: Vec<_> = failed.map(|failed| (failed.attempts, failed.set_aside)).collect();
        assert_eq!(tries, [(1, false), (2, false), (3, true)], "{column}");
    }

    // They are not retried before a request.
    watched.fail(&failing[1..2]);
    watched.take_calls();
    update(&mut app, 200);
    assert!(watched.asked().is_empty());
    app.world_mut().write_message(RetryColumns { dimension, column: Some(failing[0]) });
    update(&mut app, 15);
    assert_eq!(watched.take_calls().into_keys().collect::<Vec<_>>(), [failing[0]]);
    assert!(block_at(app.world_mut(), dimension, BlockPos::new(0, 0, 0)).is_some());
    app.world_mut().write_message(RetryColumns { dimension, column: None });
    update(&mut app, 15);
    assert_eq!(watched.take_calls().into_keys().collect::<Vec<_>>(), failing[1..]);
    let told = progress(app.world(), dimension);
    assert_eq!((told.failing, told.set_aside, told.to_generate.missing), (1, 0, 1));
    watched.fail(&[]);
    update_until(&mut app, "all is generated", |world| is_generated(world, dimension));
    update_until(&mut app, "all is loaded", |world| world.resource::<WorldStatistics>().remaining == 0);
}

#[test]
fn a_column_that_fails_for_a_viewer_and_for_a_pregeneration_is_generated_as_soon_as_it_can_be() {
    let watched = Watched::default();
    let failing = [ColumnPos::new(0, 0), ColumnPos::new(1, 0), ColumnPos::new(7, 0)];
    watched.fail(&failing);
    let settings = DimensionGeneration { attempts: 1_000, ..default() };
    let mut app = game(TerranePlugin { generation: settings, ..lockstep() });
    let dimension = spawn_dimension(&mut app, watched.dimension("overworld"));
    let viewer = further_viewer(&mut app, dimension, 8.0, 2, 9);
    app.world_mut().spawn(Pregeneration { dimension, area: ColumnArea::Disc { center: HOME, radius: 12 } });
    start(&mut app);
    // Both have tried the columns, the pre-generation for the last time.
    update(&mut app, 200);
    watched.fail(&[]);
    update_until(&mut app, "all is generated", |world| is_generated(world, dimension));
    update_until(&mut app, "all is loaded", |world| world.resource::<WorldStatistics>().remaining == 0);

    // A failed column at the rim of a removed viewer does not hold up a letter.
    let far = ColumnPos::new(100 + 9, 0);
    watched.fail(&[far]);
    move_viewer(&mut app, viewer, 16.0 * 100.0, 0.0);
    update_until(&mut app, "it failed", |world| progress(world, dimension).failing == 1);
    move_viewer(&mut app, viewer, 0.0, 0.0);
    update(&mut app, 100);
    watched.fail(&[]);
    let (sender, arrived) = std::sync::mpsc::channel();
    in_region(&mut app, dimension, BlockPos::new(far.x * 16, 0, 0), move |_| sender.send(()).unwrap());
    update_until(&mut app, "the letter arrives", |_| arrived.try_recv().is_ok());
}

#[test]
fn a_generator_that_fails_everywhere_comes_to_rest_and_is_never_done() {
    let watched = Watched::default();
    watched.fail_everywhere();
    let settings = DimensionGeneration { attempts: 1, ..default() };
    let mut app = game(TerranePlugin { generation: settings, ..lockstep() });
    let dimension = spawn_dimension(&mut app, watched.dimension("overworld"));
    further_viewer(&mut app, dimension, 8.0, 2, 10);
    start(&mut app);
    update(&mut app, 60);
    let calls = watched.take_calls();
    assert!(disc(HOME, 10).iter().all(|column| calls[column] == 1));
    let told = progress(app.world(), dimension);
    assert_eq!((told.set_aside, told.in_flight), (calls.len() as u64, 0));
    assert_eq!(told.to_generate.missing, told.to_generate.total);
    update(&mut app, 60);
    assert!(watched.asked().is_empty());
}

/// Promise, worlds: `Pacing` keeps generation no faster than frames and ticks can bear.
#[test]
fn the_number_of_columns_in_flight_follows_the_settings_of_the_main_world() {
    // No time counts as too slow.
    let pacing = Pacing { frame_budget: Duration::MAX, tick_share: f64::INFINITY, ..default() };
    let mut app = game(TerranePlugin { pacing, ..TerranePlugin::in_memory() });
    // Columns are in flight all the time.
    let watched = Watched::default();
    watched.close_gate_after(0);
    let dimension = spawn_dimension(&mut app, watched.dimension("overworld"));
    viewer(&mut app, dimension, 0.0, 0.0, 12);
    start(&mut app);
    let limit = |world: &World| world.resource::<WorldStatistics>().in_flight_limit;
    update_until(&mut app, "it begins with the most", |world| limit(world) == 256);
    // Every frame exceeds this budget.
    let pacing = Pacing { least: 40, frame_budget: Duration::ZERO, ..default() };
    app.insert_resource(pacing);
    update_until(&mut app, "it falls", |world| limit(world) == 40);
    app.insert_resource(Pacing::fixed(77));
    update_until(&mut app, "it is fixed", |world| limit(world) == 77);
    watched.open_gate();
}

#[test]
fn an_unneeded_failed_column_is_forgotten() {
    let watched = Watched::default();
    watched.fail(&[HOME]);
    let asked = || watched.asked().into_iter().filter(|column| *column == HOME).count();
    let mut app = game(lockstep());
    let dimension = spawn_dimension(&mut app, watched.dimension("overworld"));
    let camera = viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    // The waits double: 1, 2 and 4 seconds.
    update(&mut app, 20 * 4);
    assert_eq!(asked(), 3);
    move_viewer(&mut app, camera, 5_000.0, 0.0);
    update(&mut app, 5);
    move_viewer(&mut app, camera, 0.0, 0.0);
    update(&mut app, 10);
    assert_eq!(asked(), 4, "who comes again does not wait for what failed before");
    update(&mut app, 25);
    assert_eq!(asked(), 5, "and the waits begin anew");
}
