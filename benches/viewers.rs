//! The coordinator's work for many viewers, in a running system. `cargo bench --all-features --bench viewers` prints each
//! figure; an argument names the ones to run.
//!
//! Each figure is printed with the one for a single viewer, so that results of different machines are comparable.

#[path = "shared/choose.rs"]
mod choose;

use bevy_terrane::generation::Void;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::SplitMix64;
use bevy_terrane::testing::{Patience, headless, spawn_dimension, start, update_until_within};
use bevy_terrane::view::{DimensionGeneration, Pacing, PublishedColumns, WorldStatistics};
use std::time::{Duration, Instant};

fn main() {
    choose::run(&[("standing", standing), ("walking", walking), ("waiting", waiting), ("riding", riding)]);
}

/// The CPU time of the coordinator's thread so far.
fn coordinator_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = tasks.filter_map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        if !name.starts_with("terrane coordin") {
            return None;
        }
        std::fs::read_to_string(task.path().join("schedstat")).ok()?.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// An app with this many viewers in a crowd 60 columns wide. They load next to nothing and generate far.
fn crowd(viewers: usize) -> (App, Vec<Entity>) {
    let mut app = headless(TerranePlugin { pacing: Pacing::fixed(256), ..TerranePlugin::in_memory() });
    let dimension = spawn_dimension(&mut app, Dimension::new("void", Void).with_height(0..16));
    let mut random = SplitMix64::new(7);
    let mut place = || (random.next_u64() % 960) as f32 - 480.0;
    let entities = (0..viewers).map(|_| {
        let viewer = Viewer::in_dimension(dimension).with_radius(0).with_generation_radius(100);
        app.world_mut().spawn((viewer, Transform::from_xyz(place(), 0.0, place()))).id()
    });
    let entities = entities.collect();
    start(&mut app);
    (app, entities)
}

const FRAME: Duration = Duration::from_millis(5);

/// Waits until all ground is generated.
fn settle(app: &mut App) {
    let patience = Patience { limit: Duration::from_secs(600), frame: FRAME };
    update_until_within(app, patience, "all ground is generated", |world| {
        let statistics = world.resource::<WorldStatistics>();
        statistics.generated > 1_000 && statistics.dimensions.iter().all(|dimension| dimension.to_generate.missing == 0)
    });
}

/// Updates the app for `time`; `each` is called before each update.
fn run_for(app: &mut App, time: Duration, mut each: impl FnMut(&mut World)) {
    let start = Instant::now();
    while start.elapsed() < time {
        each(app.world_mut());
        app.update();
        std::thread::sleep(FRAME);
    }
}

/// The coordinator's time per column generated for standing viewers.
fn standing() {
    let mut alone = None;
    for viewers in [1, 30, 300, 1_000] {
        let (mut app, _) = crowd(viewers);
        settle(&mut app);
        let columns = app.world().resource::<WorldStatistics>().generated as f64;
        let each = coordinator_time().as_secs_f64() * 1e6 / columns;
        let ratio = each / *alone.get_or_insert(each);
        println!("{viewers:>5} viewers stand {each:>9.1} us a generated column, {ratio:>6.1} times one viewer's");
    }
}

/// The coordinator's load while all viewers walk four columns a second, from generated to new ground.
fn walking() {
    let mut alone = None;
    for viewers in [1, 30, 300, 1_000] {
        let (mut app, entities) = crowd(viewers);
        settle(&mut app);
        let (began, start) = (coordinator_time(), Instant::now());
        let mut last = start;
        run_for(&mut app, Duration::from_secs(5), |world| {
            let step = last.elapsed().as_secs_f32() * 64.0;
            last = Instant::now();
            for (number, viewer) in entities.iter().enumerate() {
                let direction = Vec2::from_angle(number as f32) * step;
                if let Some(mut place) = world.get_mut::<Transform>(*viewer) {
                    place.translation += Vec3::new(direction.x, 0.0, direction.y);
                }
            }
        });
        let share = (coordinator_time() - began).as_secs_f64() / start.elapsed().as_secs_f64();
        let (percent, ratio) = (share * 100.0, share / *alone.get_or_insert(share));
        println!("{viewers:>5} viewers walk  {percent:>9.2} % of its time, {ratio:>6.1} times one viewer's");
    }
}

/// The coordinator's load when nothing is left to do.
fn waiting() {
    for viewers in [1, 1_000] {
        let (mut app, _) = crowd(viewers);
        settle(&mut app);
        let (began, start) = (coordinator_time(), Instant::now());
        run_for(&mut app, Duration::from_secs(3), |_| ());
        let percent = (coordinator_time() - began).as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
        println!("{viewers:>5} viewers wait  {percent:>9.2} % of its time");
    }
}

/// The distance that riders see ahead, in lockstep, with as much new ground per second as they need, a little less, and more.
fn riding() {
    const RIDERS: usize = 20;
    const RADIUS: u32 = 8;
    /// Speed in columns per second.
    const SPEED: f32 = 4.0;
    for each in [40.0, 60.0, 80.0, 120.0] {
        for heading_weight in [0.0, 0.5, 1.0] {
            let settings =
                DimensionGeneration { columns_per_second: Some(each * RIDERS as f64), heading_weight, ..default() };
            let plugin =
                TerranePlugin { tick_mode: TickMode::Lockstep, generation: settings, ..TerranePlugin::in_memory() };
            let mut app = headless(plugin);
            let dimension = spawn_dimension(&mut app, Dimension::new("void", Void).with_height(0..16));
            let mut random = SplitMix64::new(7);
            let mut turn = move || (random.next_u64() % 1_000) as f32 / 1_000.0 * std::f32::consts::TAU;
            let mut riders: Vec<_> = (0..RIDERS)
                .map(|number| {
                    let viewer = Viewer::in_dimension(dimension).with_radius(RADIUS);
                    let place = Vec3::new(number as f32 * 16_000.0, 0.0, 0.0);
                    (app.world_mut().spawn((viewer, Transform::from_translation(place))).id(), turn())
                })
                .collect();
            start(&mut app);
            (0..200).for_each(|_| app.update());
            let (mut samples, mut ahead, mut blind) = (0.0, 0.0, 0.0);
            for step in 0..1_200 {
                for (number, (rider, heading)) in riders.iter_mut().enumerate() {
                    // Each rider turns once in six seconds.
                    if (step + number * 6) % 120 == 0 {
                        *heading = turn();
                    }
                    let Some(mut place) = app.world_mut().get_mut::<Transform>(*rider) else { continue };
                    place.translation += Quat::from_rotation_y(*heading) * Vec3::X * SPEED * 16.0 / 20.0;
                }
                app.update();
                let published = app.world().resource::<PublishedColumns>();
                for (rider, heading) in &riders {
                    let Some(place) = app.world().get::<Transform>(*rider) else { continue };
                    let is_seen = |column: &u32| {
                        let there =
                            place.translation + Quat::from_rotation_y(*heading) * Vec3::X * 16.0 * *column as f32;
                        let (x, z) = ((there.x / 16.0).floor() as i64, (there.z / 16.0).floor() as i64);
                        published.column(DimensionId(0), ColumnPos::new(x, z)).is_some()
                    };
                    let sight = (0..=RADIUS).take_while(is_seen).count() as f64;
                    samples += 1.0;
                    ahead += sight;
                    blind += f64::from(sight < 1.0);
                }
            }
            println!(
                "{each:>5} columns a second, weight {heading_weight:.1}: {:>5.2} of 9 columns ahead are there, {:>5.1} % on none",
                ahead / samples,
                blind / samples * 100.0
            );
        }
    }
}
