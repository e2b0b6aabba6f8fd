//! The stored columns of a dimension are searched for while all other dimensions continue.

use crate::disk::Disk;
use crate::support::gate::Gate;
use crate::support::{Heard, despawn_dimension, heard, is_open, listen, spawn_dimension, start, update_until, viewer};
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{Durability, Family, KeyValueStore, WriteBatch, keys};
use bevy_terrane::view::{DimensionRemoved, SaveWorld, WorldSaved, WorldStatistics};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const LOST: &str = "lost";
const SOUND: &str = "sound";
const LOST_ID: DimensionId = DimensionId(0);

/// A disk with a gate at which a scan of the whole first dimension waits.
struct SlowDisk {
    disk: Disk,
    gate: Gate,
    /// The number of pages that were read.
    pages: Arc<AtomicUsize>,
}

impl SlowDisk {
    fn new() -> Self {
        let slow = Self { disk: Disk::default(), gate: Gate::default(), pages: Arc::default() };
        let (gate, pages) = (slow.gate.clone(), slow.pages.clone());
        slow.disk.on_scan(move |family, range, limit| {
            let all = match family {
                Family::Chunks => keys::dimension_range(keys::CHUNK, LOST_ID),
                Family::Meta => keys::dimension_range(keys::SUMMARY, LOST_ID),
                _ => return Ok(()),
            };
            // A look for a single entry is not a search.
            if limit > 1 && range.end == all.end {
                pages.fetch_add(1, Ordering::SeqCst);
                gate.pass();
            }
            Ok(())
        });
        slow
    }
}

fn app(disk: &SlowDisk) -> App {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, disk.disk.plugin()));
    listen::<WorldSaved>(&mut app);
    listen::<DimensionFailed>(&mut app);
    listen::<DimensionRemoved>(&mut app);
    app
}

fn dimension(app: &mut App, name: &str) -> DimensionId {
    spawn_dimension(app, Dimension::new(name, Flat::new()))
}

/// A world of two dimensions in which the graph of the first one is lost.
fn damaged() -> SlowDisk {
    let disk = SlowDisk::new();
    let mut app = app(&disk);
    let lost = dimension(&mut app, LOST);
    viewer(&mut app, lost, 0.0, 0.0, 3);
    start(&mut app);
    update_until(&mut app, "the first dimension is open", |world| is_open(world, lost));
    let sound = dimension(&mut app, SOUND);
    update_until(&mut app, "both are open", |world| is_open(world, sound));
    update_until(&mut app, "all is loaded", |world| {
        world.resource::<WorldStatistics>().remaining == 0 && world.resource::<WorldStatistics>().columns > 20
    });
    drop(app);
    lose_graph(&disk);
    disk
}

fn lose_graph(disk: &SlowDisk) {
    let mut gone = WriteBatch::default();
    let range = keys::dimension_range(keys::TILE, LOST_ID);
    let tiles = disk.disk.scan(Family::Meta, &range.start..&range.end, usize::MAX).unwrap();
    assert!(!tiles.is_empty());
    tiles.into_iter().for_each(|(key, _)| gone.delete(Family::Meta, key));
    disk.disk.write(gone, Durability::Sync).unwrap();
}

/// Adds so many columns of air to the first dimension.
fn add_columns(disk: &SlowDisk, columns: i64) {
    let mut batch = WriteBatch::default();
    for x in 0..columns {
        batch.put(Family::Meta, keys::summary_key(LOST_ID, ColumnPos::new(x, 1_000)), Vec::new());
    }
    disk.disk.write(batch, Durability::Sync).unwrap();
}

/// Starts the app, and waits until it searches for the first dimension's columns.
fn search(disk: &SlowDisk) -> (App, DimensionId) {
    disk.pages.store(0, Ordering::SeqCst);
    let mut app = app(disk);
    let lost = dimension(&mut app, LOST);
    start(&mut app);
    update_until(&mut app, "the search has begun", |_| disk.pages.load(Ordering::SeqCst) > 0);
    (app, lost)
}

fn has_saved(world: &World, request: u64) -> bool {
    world.resource::<Heard<WorldSaved>>().0.iter().any(|saved| saved.request == request)
}

/// Promise, crashes: A dimension's lost list of columns is rebuilt while other dimensions keep running.
#[test]
fn other_dimensions_tick_and_are_saved_while_the_columns_of_one_are_searched_for() {
    let disk = damaged();
    disk.gate.close();
    let (mut app, lost) = search(&disk);
    let sound = dimension(&mut app, SOUND);
    viewer(&mut app, sound, 0.0, 0.0, 3);
    viewer(&mut app, lost, 0.0, 0.0, 3);
    update_until(&mut app, "the other dimension ticks", |world| {
        is_open(world, sound) && world.resource::<WorldStatistics>().ticks > 20
    });
    app.world_mut().write_message(SaveWorld { request: 7 });
    update_until(&mut app, "all is saved", |world| has_saved(world, 7));
    assert!(!is_open(app.world_mut(), lost));

    let generated = app.world().resource::<WorldStatistics>().generated;
    disk.gate.open();
    update_until(&mut app, "the dimension is open", |world| is_open(world, lost));
    update_until(&mut app, "all is loaded", |world| {
        let statistics = world.resource::<WorldStatistics>();
        statistics.dimensions.len() == 2 && statistics.remaining == 0
    });
    let statistics = app.world().resource::<WorldStatistics>();
    assert_eq!(statistics.generated, generated, "what is stored is not generated again");
    assert!(heard::<DimensionFailed>(&app).is_empty());
}

#[test]
fn the_end_of_the_app_ends_the_search_and_the_next_session_begins_it_again() {
    let disk = damaged();
    add_columns(&disk, 200_000);
    disk.gate.close();
    let (app, _) = search(&disk);
    let gate = disk.gate.clone();
    let opener = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        gate.open();
    });
    drop(app);
    opener.join().unwrap();
    let pages = disk.pages.load(Ordering::SeqCst);
    assert!(!disk.disk.is_in_use());

    let (mut app, lost) = search(&disk);
    update_until(&mut app, "the dimension is open", |world| is_open(world, lost));
    let all = disk.pages.load(Ordering::SeqCst);
    assert!(pages < all / 2, "{pages} of {all} were read though the end had begun");
}

#[test]
fn a_dimension_that_goes_before_it_is_found_out_leaves_its_name_free() {
    let disk = damaged();
    add_columns(&disk, 20_000);
    disk.gate.close();
    let (mut app, lost) = search(&disk);
    despawn_dimension(&mut app, lost);
    app.update();
    let again = dimension(&mut app, LOST);
    app.update();
    disk.gate.open();
    update_until(&mut app, "the new one is open", |world| is_open(world, again));
}

#[test]
fn a_dimension_can_be_removed_while_its_columns_are_searched_for() {
    let disk = damaged();
    disk.gate.close();
    let (mut app, lost) = search(&disk);
    app.world().resource::<Dimensions>().remove(lost);
    app.update();
    despawn_dimension(&mut app, lost);
    app.update();
    disk.gate.open();
    update_until(&mut app, "it is removed", |world| !world.resource::<Heard<DimensionRemoved>>().0.is_empty());
    assert_eq!(heard::<DimensionRemoved>(&app).len(), 1);
    assert_eq!(heard::<DimensionRemoved>(&app)[0].error, None);
    for range in [keys::dimension_range(keys::TILE, LOST_ID), keys::dimension_range(keys::SUMMARY, LOST_ID)] {
        assert!(disk.disk.scan(Family::Meta, &range.start..&range.end, 1).unwrap().is_empty());
    }
}
