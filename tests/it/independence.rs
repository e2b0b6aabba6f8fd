//! No region waits for another region, or for a frame.

use crate::support::*;
use bevy_terrane::prelude::*;
use std::time::{Duration, Instant};

/// Three regions far apart, one of them at x = 0.
fn three_regions(plugin: TerranePlugin) -> (App, DimensionId) {
    let mut app = game(plugin);
    let dimension = flat(&mut app);
    for x in [0.0, 2_000.0, 4_000.0] {
        viewer(&mut app, dimension, x, 0.0, 1);
    }
    (app, dimension)
}

fn ticks(app: &App) -> Vec<u64> {
    app.world().resource::<WorldStatistics>().regions.iter().map(|region| region.ticks).collect()
}

/// The number of windows to measure until one is good: other load on the machine spoils some, and a region that waits for
/// another spoils all.
const WINDOWS: usize = 4;

/// The ticks per second of each region while the app is updated for `span`, with a frame every `frame`.
fn rates(app: &mut App, span: Duration, frame: Duration) -> Vec<f64> {
    let (before, since) = (ticks(app), app.world().resource::<WorldStatistics>().clock);
    let end = Instant::now() + span;
    while Instant::now() < end {
        app.update();
        std::thread::sleep(frame);
    }
    let clock = app.world().resource::<WorldStatistics>().clock;
    let span = (clock - since).as_secs_f64();
    ticks(app).iter().zip(before).map(|(after, before)| (after - before) as f64 / span).collect()
}

fn is_steady(rate: &f64) -> bool {
    (19.0..21.5).contains(rate)
}

/// Measures windows until the regions' rates, slowest first, are good in one of them.
fn some_window(app: &mut App, frame: Duration, is_good: impl Fn(&[f64; 3]) -> bool) {
    let mut measured = Vec::new();
    for _ in 0..WINDOWS {
        let mut rates = rates(app, Duration::from_secs(3), frame);
        rates.sort_by(f64::total_cmp);
        let rates = rates.try_into().expect("three regions");
        measured.push(rates);
        if is_good(&rates) {
            return;
        }
    }
    panic!("ticks a second: {measured:?}");
}

fn all_three_tick(world: &mut World) -> bool {
    let regions = &world.resource::<WorldStatistics>().regions;
    regions.len() == 3 && regions.iter().all(|region| region.ticks > 5 && region.columns >= 5)
}

/// Promise, overview: A region ticks on its own clock and waits for no other region and no frame.
#[test]
fn a_region_that_sleeps_does_not_slow_the_others() {
    fn sleep(sleepers: Query<&Walker>) {
        if sleepers.iter().any(|walker| walker.name == "sleeper") {
            std::thread::sleep(Duration::from_millis(300));
        }
    }
    let (mut app, dimension) = three_regions(TerranePlugin {
        threads: ThreadSettings { regions: 2, ..default() },
        ..TerranePlugin::in_memory()
    });
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, sleep);
    });
    start(&mut app);
    update_until(&mut app, "three regions tick", all_three_tick);
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), walker("sleeper", 0.0));
    update_until(&mut app, "the sleeper sleeps", |world| {
        world.resource::<WorldStatistics>().tick_time_worst >= Duration::from_millis(300)
    });
    some_window(&mut app, Duration::from_millis(5), |[slow, rest @ ..]| *slow < 5.0 && rest.iter().all(is_steady));
}

/// Promise, overview: A region ticks on its own clock and waits for no other region and no frame.
/// Promise, worlds: A slow frame does not slow the simulation.
#[test]
fn a_frame_that_sleeps_does_not_slow_the_regions() {
    let (mut app, _) = three_regions(TerranePlugin::in_memory());
    start(&mut app);
    update_until(&mut app, "three regions tick", all_three_tick);
    some_window(&mut app, Duration::from_millis(300), |rates| rates.iter().all(is_steady));
}
