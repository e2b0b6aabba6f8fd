//! The time of day: it follows the clock, is saved, and decides what the light of the sky is worth.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{Durability, Family, KeyValueStore, MemoryStore, WriteBatch};
use std::sync::{Arc, Mutex};

/// A day of 200 ticks.
const NOON: TimeOfDay = TimeOfDay { days: 0.5, seconds_per_day: 10.0 };
const TICK: f64 = 0.005;
const PAUSED: DimensionClock = DimensionClock { ticks_per_second: 20.0, rate: 1.0, paused: true };
/// A place in the air.
const THERE: BlockPos = BlockPos::new(5, 3, 5);

/// The time of day that regions saw in their last tick, and the light of the open sky.
#[derive(Resource, Clone, Default)]
struct Seen(Arc<Mutex<Option<(Option<TimeOfDay>, u8)>>>);

fn world(plugin: TerranePlugin, time: impl Bundle) -> (App, DimensionId, Seen) {
    let mut app = game(plugin);
    let seen = Seen::default();
    let copy = seen.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, |blocks: RegionBlocks, seen: Res<Seen>| {
            let light = blocks.light(THERE).map_or(0, |light| light.now);
            *seen.0.lock().unwrap() = Some((blocks.time_of_day(), light));
        });
    });
    let dimension = spawn_dimension(&mut app, (Dimension::new("overworld", Flat::new()), time));
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update_until(&mut app, "the ground is lit", |world| {
        world.resource::<PublishedColumns>().light(dimension, THERE.column()).is_some()
    });
    update(&mut app, 5);
    (app, dimension, seen)
}

fn days(app: &mut App, dimension: DimensionId) -> f64 {
    let entity = dimension_entity(app.world_mut(), dimension);
    app.world().get::<TimeOfDay>(entity).expect("it has a time of day").days
}

fn set_days(app: &mut App, dimension: DimensionId, days: f64) {
    let entity = dimension_entity(app.world_mut(), dimension);
    app.world_mut().get_mut::<TimeOfDay>(entity).expect("it has a time of day").days = days;
}

fn shown_light(app: &mut App, dimension: DimensionId) -> u8 {
    let light = |In(dimension): In<DimensionId>, blocks: PublishedBlocks| blocks.light(dimension, THERE);
    app.world_mut().run_system_cached_with(light, dimension).unwrap().expect("it is lit").now
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 2.5 * TICK, "{found} instead of {expected}");
}

/// Promise, light: The time of day follows the clock of its dimension, and a game can set it.
#[test]
fn the_time_of_day_follows_the_clock() {
    let (mut app, dimension, seen) = world(lockstep(), NOON);
    let before = days(&mut app, dimension);
    update(&mut app, 40);
    let after = days(&mut app, dimension);
    assert!((after - before - 40.0 * TICK).abs() < 1e-9, "from {before} to {after}");
    let in_region = seen.0.lock().unwrap().unwrap().0.unwrap();
    assert_near(in_region.days, after);

    clock(&mut app, dimension, PAUSED);
    update(&mut app, 3);
    let paused = days(&mut app, dimension);
    update(&mut app, 40);
    assert_eq!(days(&mut app, dimension), paused);
    clock(&mut app, dimension, DimensionClock::default());

    set_days(&mut app, dimension, 7.25);
    update(&mut app, 10);
    assert_near(days(&mut app, dimension), 7.25 + 10.0 * TICK);
    assert_near(seen.0.lock().unwrap().unwrap().0.unwrap().days, 7.25 + 10.0 * TICK);
}

/// Promise, light: The light of the sky fades at night, in regions and in the main world, and without a time of day it is always day.
#[test]
fn the_light_of_the_sky_fades_at_night() {
    let still = |days: f64| TimeOfDay { days, seconds_per_day: 0.0 };
    let (mut app, dimension, seen) = world(lockstep(), still(0.5));
    let lights = |app: &mut App| {
        update(app, 3);
        (seen.0.lock().unwrap().unwrap().1, shown_light(app, dimension))
    };
    assert_eq!(lights(&mut app), (15, 15));
    set_days(&mut app, dimension, 4.0);
    assert_eq!(lights(&mut app), (4, 4));
    set_days(&mut app, dimension, 4.0 + TimeOfDay::SUNRISE);
    let (in_region, dawn) = lights(&mut app);
    assert!(in_region == dawn && (5..15).contains(&dawn), "{in_region} {dawn}");
    set_days(&mut app, dimension, 0.0);
    assert_eq!(lights(&mut app), (4, 4));
    let entity = dimension_entity(app.world_mut(), dimension);
    app.world_mut().entity_mut(entity).remove::<TimeOfDay>();
    assert_eq!(lights(&mut app), (15, 15));
    assert_eq!(seen.0.lock().unwrap().unwrap().0, None);
    app.world_mut().entity_mut(entity).insert(still(0.0));
    assert_eq!(lights(&mut app), (4, 4));
}

/// Promise, light: The time of day is saved, and continues after a restart.
#[test]
fn the_time_of_day_continues_after_a_restart() {
    let store = Arc::new(MemoryStore::new());
    let (mut app, dimension, _) = world(lockstep_on(&store), NOON);
    set_days(&mut app, dimension, 41.3);
    update(&mut app, 20);
    let before = days(&mut app, dimension);
    assert_near(before, 41.3 + 20.0 * TICK);
    // Its days are longer now, and the time of day of the entity is that of a new world.
    let slower = TimeOfDay { seconds_per_day: 1e9, ..NOON };
    let (mut app, dimension, seen) = reopen(app, || world(lockstep_on(&store), slower));
    assert_near(days(&mut app, dimension), before);
    assert_near(seen.0.lock().unwrap().unwrap().0.unwrap().days, before);
    // A session without a time of day loses nothing.
    let (app, ..) = reopen(app, || world(lockstep_on(&store), ()));
    let (mut app, dimension, _) = reopen(app, || world(lockstep_on(&store), slower));
    assert_near(days(&mut app, dimension), before);
}

/// Promise, light: A damaged time of day starts again, and costs nothing else.
#[test]
fn a_damaged_time_of_day_starts_again() {
    let store = Arc::new(MemoryStore::new());
    let (mut app, dimension, _) = world(lockstep_on(&store), NOON);
    let stone = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: THERE, block: stone });
    set_days(&mut app, dimension, 9.0);
    update(&mut app, 20);
    drop(app);
    let mut batch = WriteBatch::default();
    let key = [b"days:".as_slice(), &dimension.0.to_be_bytes()].concat();
    assert!(store.get(Family::Meta, &key).unwrap().is_some());
    batch.put(Family::Meta, key, b"damaged".to_vec());
    store.write(batch, Durability::Process).unwrap();
    let still = TimeOfDay { seconds_per_day: 0.0, ..NOON };
    let (mut app, dimension, _) = world(lockstep_on(&store), still);
    assert_eq!(days(&mut app, dimension), 0.5);
    assert_eq!(block_at(app.world(), dimension, THERE), Some(stone));
}

/// Promise, light: A time of day that is no number counts as noon, and is never saved.
#[test]
fn a_time_of_day_that_is_no_number_counts_as_noon() {
    let store = Arc::new(MemoryStore::new());
    let (mut app, dimension, _) = world(lockstep_on(&store), TimeOfDay { days: f64::NAN, ..NOON });
    assert_eq!(shown_light(&mut app, dimension), 15);
    let (mut app, dimension, _) =
        reopen(app, || world(lockstep_on(&store), TimeOfDay { seconds_per_day: 0.0, days: 0.25 }));
    assert_eq!(days(&mut app, dimension), 0.25);
}
