//! Autosaves: spread over the period, never late, synced as the settings say, and held back by a slow disk.

use crate::disk::Disk;
use crate::support::*;
use bevy_terrane::plugin::SaveDurability;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::RegionColumns;
use bevy_terrane::storage::WorldStore;
use bevy_terrane::view::{Backlog, Pacing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const REGIONS: i64 = 24;
/// Updates in lockstep, 20 per second.
const PERIOD: usize = 80;

/// The block at the middle of a region.
fn place(number: i64) -> BlockPos {
    BlockPos::new(number * 16 * 200, 5, 0)
}

/// A change in every tick: it rises.
fn rise(mut walkers: Query<(&Walker, &mut Position)>) {
    for (walker, mut position) in &mut walkers {
        if walker.name == "riser" {
            position.block.y += 1;
        }
    }
}

/// A world in lockstep with a rising entity in each of its regions.
fn risers(plugin: TerranePlugin) -> (App, DimensionId) {
    let plugin = TerranePlugin { tick_mode: TickMode::Lockstep, ..plugin };
    let mut app = game(plugin);
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, rise);
    });
    listen::<WorldSaved>(&mut app);
    let dimension = flat(&mut app);
    for number in 0..REGIONS {
        viewer(&mut app, dimension, place(number).x as f32, 0.0, 0);
    }
    start(&mut app);
    update(&mut app, 20);
    for number in 0..REGIONS {
        spawn_in_region(&mut app, dimension, place(number), walker("riser", 0.0));
    }
    update(&mut app, 3 * PERIOD);
    assert_eq!(app.world().resource::<WorldStatistics>().regions.len(), REGIONS as usize);
    (app, dimension)
}

/// Promise, crashes: Autosave saves the regions in turns, spread over its period.
#[test]
fn the_saves_of_a_period_are_spread_over_it() {
    let disk = Disk::default();
    let (mut app, _) = risers(TerranePlugin { saving: SaveSettings::every(Duration::from_secs(4)), ..disk.plugin() });
    disk.take_log();
    let periods = 10;
    update(&mut app, periods * PERIOD);
    // Each commit also has the dimension's clock.
    let changes: Vec<_> = disk.take_log().iter().map(|wrote| wrote.changes - 1).collect();
    // Only the risers change: one put for each that a region hands out, and each region does so once in seven eighths of a
    // period. Commits come each eighth: so 3 or 4 of the 24 are due, and two more if they coincide.
    let most = changes.iter().max().copied().unwrap_or_default();
    assert!(most <= REGIONS as usize / 7 + 3, "{changes:?}");
    let commits = changes.len();
    assert!((7 * periods..=8 * periods + 1).contains(&commits), "{commits} commits");
    let handed_out: usize = changes.iter().sum();
    let expected = REGIONS as usize * periods * 8 / 7;
    assert!(handed_out.abs_diff(expected) <= REGIONS as usize, "{handed_out} of {expected}");
}

/// Promise, crashes: By default everything that changed is saved within the autosave period.
#[test]
fn nothing_is_unsaved_for_longer_than_the_period_and_two_ticks() {
    let disk = Disk::default();
    let (mut app, dimension) =
        risers(TerranePlugin { saving: SaveSettings::every(Duration::from_secs(4)), ..disk.plugin() });
    let id = dimension;
    let mut oldest = 0;
    for _ in 0..2 * PERIOD {
        app.update();
        let store = WorldStore::open(&disk.copy().storage()).unwrap();
        let live: Vec<_> = walkers(app.world_mut()).into_iter().map(|(_, position)| position.block).collect();
        assert_eq!(live.len(), REGIONS as usize);
        for block in live {
            let column = block.column();
            let stored = store.load_batch(id, column.batch(), &[column], 0..0).unwrap();
            let age = block.y - stored[0].entities[0].block.y;
            oldest = oldest.max(age);
        }
    }
    // The mirrors arrive with the next update.
    assert!(oldest <= PERIOD as i64 + 2, "{oldest} ticks");
    assert!(oldest >= PERIOD as i64 / 2, "the test sees what is unsaved");
}

/// Updates the app. Returns the updates after which something was synced, and the number of saves.
fn synced(app: &mut App, disk: &Disk, updates: usize) -> (Vec<usize>, usize) {
    let (mut synced, mut saves) = (Vec::new(), 0);
    disk.take_log();
    for number in 0..updates {
        app.update();
        let log = disk.take_log();
        saves += log.iter().filter(|wrote| wrote.changes > 0).count();
        if log.iter().any(|wrote| wrote.is_synced) {
            synced.push(number);
        }
    }
    (synced, saves)
}

fn with_durability(durability: SaveDurability) -> (App, Disk) {
    let disk = Disk::default();
    let saving = SaveSettings { durability, ..SaveSettings::every(Duration::from_secs(4)) };
    let plugin = TerranePlugin { saving, ..disk.plugin() };
    (risers(plugin).0, disk)
}

/// Promise, crashes: By `SaveDurability`, a loss of power costs nothing, a second, or everything since the last `SaveWorld`.
#[test]
fn each_save_is_synced_unless_the_game_says_otherwise() {
    assert_eq!(SaveDurability::default(), SaveDurability::EachSave);
    let (mut app, disk) = with_durability(SaveDurability::EachSave);
    let (synced, saves) = synced(&mut app, &disk, 2 * PERIOD);
    assert_eq!(synced.len(), saves);
    assert!(saves >= 14);
}

/// Promise, crashes: By `SaveDurability`, a loss of power costs nothing, a second, or everything since the last `SaveWorld`.
#[test]
fn saves_are_synced_once_a_second_by_a_setting_also_the_last_one() {
    let (mut app, disk) = with_durability(SaveDurability::EachSecond);
    let (times, saves) = synced(&mut app, &disk, 200);
    assert!(times.len() * 3 <= saves * 2, "{} syncs for {saves} saves", times.len());
    for pair in times.windows(2) {
        // A save may be due up to an eighth of the period after the second is over.
        assert!((20..=31).contains(&(pair[1] - pair[0])), "{times:?}");
    }
    // Nothing changes any more, and the last save is still synced.
    let dimensions: Vec<_> =
        app.world_mut().query::<&Dimension>().iter(app.world()).filter_map(Dimension::id).collect();
    for dimension in dimensions {
        clock(&mut app, dimension, DimensionClock { paused: true, ..default() });
    }
    let mut unsynced = false;
    for _ in 0..3 * PERIOD {
        app.update();
        unsynced = disk.take_log().last().map_or(unsynced, |last| !last.is_synced);
    }
    assert!(!unsynced);
    let (times, saves) = synced(&mut app, &disk, PERIOD);
    assert_eq!((times, saves), (Vec::new(), 0), "and then the disk is left alone");
}

/// Promise, crashes: By `SaveDurability`, a loss of power costs nothing, a second, or everything since the last `SaveWorld`.
#[test]
fn by_a_setting_only_requested_saves_and_the_end_sync() {
    let (mut app, disk) = with_durability(SaveDurability::AtShutdown);
    let (times, saves) = synced(&mut app, &disk, 2 * PERIOD);
    assert!(times.is_empty() && saves >= 14, "{times:?} of {saves}");

    // The second one finds nothing to write if nothing moves, and is answered when the first one's neighbors are synced.
    for request in 0..5 {
        app.world_mut().write_message(SaveWorld { request });
        let mut is_synced = false;
        for _ in 0..10 {
            app.update();
            is_synced |= disk.take_log().iter().any(|wrote| wrote.is_synced);
            if heard::<WorldSaved>(&app).len() as u64 > request {
                break;
            }
        }
        assert!(is_synced, "answered, and not durable");
        assert_eq!(heard::<WorldSaved>(&app).len() as u64, request + 1);
    }

    update(&mut app, PERIOD);
    disk.take_log();
    drop(app);
    assert_eq!(disk.take_log().last().map(|wrote| wrote.is_synced), Some(true), "the end syncs");
}

#[test]
fn a_save_that_finds_nothing_unsaved_is_answered_when_the_saves_before_it_are_synced() {
    let disk = Disk::default();
    let saving = SaveSettings { durability: SaveDurability::AtShutdown, ..SaveSettings::every(Duration::from_secs(4)) };
    let mut app = game(TerranePlugin { tick_mode: TickMode::Lockstep, saving, ..disk.plugin() });
    listen::<WorldSaved>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 3 * PERIOD);
    let log = disk.take_log();
    assert_eq!(app.world().resource::<WorldStatistics>().unsaved, 0, "the new ground is saved");
    assert!(log.iter().any(|wrote| wrote.changes > 0));
    // The second time everything is synced already. The store is asked anyway, since its disk may be gone by then.
    for request in [1, 2] {
        app.world_mut().write_message(SaveWorld { request });
        update(&mut app, 5);
        assert_eq!(heard::<WorldSaved>(&app).len() as u64, request);
        let syncs = disk.take_log().iter().filter(|wrote| wrote.is_synced).count();
        assert_eq!(syncs, 1, "request {request}");
    }
}

const LIMIT: usize = 200;
/// The new entities in each tick that leave for the other region.
const EMIGRANTS: u64 = 10;

/// The number of births.
#[derive(Resource, Clone, Default)]
struct Births(Arc<AtomicU64>);

fn emigrate(mut commands: Commands, births: Res<Births>, columns: Res<RegionColumns>, info: Res<RegionInfo>) {
    if !columns.contains(place(0).column()) {
        return;
    }
    for _ in 0..EMIGRANTS {
        let number = births.0.fetch_add(1, Ordering::SeqCst);
        commands.spawn((Position::new(info.dimension, place(1)), walker(&format!("emigrant {number}"), 0.0)));
    }
}

/// Promise, crashes: A slow disk slows the world down before memory grows.
#[test]
fn the_world_waits_for_a_stalled_disk_and_loses_nothing() {
    let disk = Disk::default();
    let plugin = || {
        let saving = SaveSettings { unsaved_limit: LIMIT, ..SaveSettings::every(Duration::from_millis(200)) };
        TerranePlugin { saving, pacing: Pacing::fixed(16), ..disk.plugin() }
    };
    let births = Births::default();
    let copy = births.clone();
    let mut app = game(plugin());
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, emigrate);
    });
    listen::<SaveFailed>(&mut app);
    let dimension = flat(&mut app);
    let [_, _, flying] = [0, 1, 2].map(|number| viewer(&mut app, dimension, place(number).x as f32, 0.0, 1));
    start(&mut app);
    let seen = |world: &mut World, number: i64| block_at(world, dimension, place(number)).is_some();
    update_until(&mut app, "the ground is there", |world| (0..3).all(|number| seen(world, number)));
    disk.gate().close();

    let stone = id_of(app.world(), "terrane:stone");
    let mut edits = Vec::new();
    let (mut most, mut slowed) = (0, false);
    // A player edits and another one flies on while the disk stalls.
    let mut go_on = |world: &mut World, edits: &mut Vec<BlockPos>| {
        let number = edits.len() as i64;
        let position = BlockPos::new(number % 16, 10 + number / 16 % 50, 3);
        world.write_message(SetBlock { dimension, position, block: stone });
        edits.push(position);
        world.get_mut::<Transform>(flying).unwrap().translation.x += 4.0;
        let statistics = world.resource::<WorldStatistics>();
        most = most.max(statistics.unsaved);
        slowed |= statistics.backlog == Backlog::OrdersWait;
        statistics.backlog
    };
    update_until(&mut app, "the world waits", |world| go_on(world, &mut edits) == Backlog::TicksWait);
    // Running ticks have ended by then.
    run_for(&mut app, Duration::from_millis(500));
    let (born, ticks) = (births.0.load(Ordering::SeqCst), app.world().resource::<WorldStatistics>().ticks);
    let end = Instant::now() + Duration::from_millis(300);
    update_until(&mut app, "the time is over", |world| {
        go_on(world, &mut edits);
        Instant::now() >= end
    });
    assert_eq!(births.0.load(Ordering::SeqCst), born);
    assert_eq!(app.world().resource::<WorldStatistics>().ticks, ticks);
    // Beyond twice the limit there is only the work in flight: a tick of each region, and the columns in flight.
    let under_way = 16 * 6 + 3 * EMIGRANTS as usize;
    assert!(slowed && most > 2 * LIMIT && most <= 2 * LIMIT + under_way, "{most}");

    disk.gate().open();
    update_until(&mut app, "the world goes on", |world| {
        let statistics = world.resource::<WorldStatistics>();
        statistics.backlog == Backlog::None && statistics.ticks > ticks + 30
    });
    assert!(births.0.load(Ordering::SeqCst) > born);
    let last = *edits.last().unwrap();
    update_until(&mut app, "the edits are made", |world| block_at(world, dimension, last) == Some(stone));
    assert!(heard::<SaveFailed>(&app).is_empty());
    drop(app);

    let born = births.0.load(Ordering::SeqCst);
    let mut app = game(plugin());
    let dimension = flat(&mut app);
    for number in [0, 1] {
        viewer(&mut app, dimension, place(number).x as f32, 0.0, 1);
    }
    start(&mut app);
    update_until(&mut app, "all emigrants are there", |world| walkers(world).len() as u64 >= born);
    let names: std::collections::BTreeSet<_> = walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len() as u64, born, "each once");
    update_until(&mut app, "the ground is there", |world| block_at(world, dimension, last).is_some());
    assert!(edits.iter().all(|edit| block_at(app.world_mut(), dimension, *edit) == Some(stone)));
}
