//! Columns are loaded where viewers are, and unloaded when they leave.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::MemoryStore;
use std::sync::Arc;

#[test]
fn the_disc_around_a_viewer_is_loaded_and_nothing_far_beyond() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 4);
    start(&mut app);
    update(&mut app, 40);

    let published = app.world().resource::<PublishedColumns>();
    let center = ColumnPos::new(0, 0);
    for x in -8..=8 {
        for z in -8..=8 {
            let column = ColumnPos::new(x, z);
            let distance = column.distance_squared(center);
            if distance <= 4 * 4 {
                assert!(published.column(dimension, column).is_some(), "{column} is missing");
            } else if distance > 6 * 6 {
                assert!(published.column(dimension, column).is_none(), "{column} is too far away");
            }
        }
    }
}

#[test]
fn columns_behind_a_viewer_unload_and_reload_from_the_store() {
    let mut app =
        game(TerranePlugin { saving: SaveSettings::every(std::time::Duration::from_millis(500)), ..lockstep() });
    listen::<ColumnChanged>(&mut app);
    let dimension = flat(&mut app);
    let viewer = viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 30);
    let generated = app.world().resource::<WorldStatistics>().generated;
    assert!(generated >= 13);

    move_viewer(&mut app, viewer, 16.0 * 40.0, 0.0);
    update(&mut app, 60);
    let home = BlockPos::new(0, 0, 0);
    assert_eq!(block_at(app.world_mut(), dimension, home), None);
    let mut changed = heard::<ColumnChanged>(&app).iter();
    assert!(changed.any(|changed| (changed.column, &changed.change) == (home.column(), &ColumnChange::Unloaded)));

    move_viewer(&mut app, viewer, 0.0, 0.0);
    update(&mut app, 60);
    let statistics = app.world().resource::<WorldStatistics>().clone();
    let grass = id_of(app.world(), "terrane:grass");
    assert_eq!(block_at(app.world_mut(), dimension, home), Some(grass));
    assert!(statistics.loaded >= 13, "loaded only {}", statistics.loaded);
    assert!(statistics.generated < 3 * generated, "ground was generated twice");
}

#[test]
fn dimensions_have_ground_of_their_own() {
    let mut app = game(lockstep());
    let overworld = flat(&mut app);
    let void = spawn_dimension(&mut app, Dimension::new("void", Void));
    viewer(&mut app, overworld, 0.0, 0.0, 2);
    viewer(&mut app, void, 0.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 30);

    let ground = BlockPos::new(0, 0, 0);
    let grass = id_of(app.world(), "terrane:grass");
    assert_eq!(block_at(app.world_mut(), overworld, ground), Some(grass));
    assert_eq!(block_at(app.world_mut(), void, ground), Some(BlockId::AIR));
    assert_ne!(overworld, void);
}

#[test]
fn a_dimension_of_a_taken_name_or_without_heights_is_refused() {
    let mut app = game(lockstep());
    listen::<DimensionFailed>(&mut app);
    let first = flat(&mut app);
    start(&mut app);
    update(&mut app, 3);
    let second = app.world_mut().spawn(Dimension::new("overworld", Flat::new())).id();
    let empty = app.world_mut().spawn(Dimension::new("empty", Void).with_height(5..5)).id();
    update(&mut app, 3);

    assert!(is_open(app.world_mut(), first));
    let failed = heard::<DimensionFailed>(&app);
    assert_eq!(failed.iter().map(|failed| failed.entity).collect::<Vec<_>>(), [second, empty]);
    assert!(failed[0].error.to_string().contains("\"overworld\" is already open"));
    assert!(failed[1].error.to_string().contains("height range 5..5"));
}

/// Promise, worlds: A dimension's id exists before the dimension is opened, and is the same in all sessions.
#[test]
fn an_id_is_known_before_its_dimension_is_spawned() {
    let disk = Arc::new(MemoryStore::new());
    let mut app = game(lockstep_on(&disk));
    let ids = app.world().resource::<Dimensions>().clone();
    let [other, overworld] = ["other", "overworld"].map(|name| ids.id(name));
    assert_eq!((ids.find("overworld"), ids.find("nether")), (Some(overworld), None));
    assert_eq!(ids.name(other).as_deref(), Some("other"));
    viewer(&mut app, overworld, 0.0, 0.0, 2);
    assert_eq!(flat(&mut app), overworld);
    start(&mut app);
    update_until(&mut app, "its ground is there", |world| block_at(world, overworld, BlockPos::new(0, 0, 0)).is_some());
    let mut app = reopen(app, || game(lockstep_on(&disk)));
    let ids = app.world().resource::<Dimensions>().clone();
    assert_eq!(["nether", "overworld", "other"].map(|name| ids.id(name).0 < 2), [false, true, true]);
    assert_eq!([ids.id("other"), flat(&mut app)], [other, overworld]);
}

/// Promise, worlds: An entity that goes to a dimension that was never opened waits for it in the store.
#[test]
fn an_entity_that_goes_to_a_dimension_that_was_never_opened_waits_for_it_in_the_store() {
    let disk = Arc::new(MemoryStore::new());
    let mut app = game(lockstep_on(&disk));
    let nether = app.world().resource::<Dimensions>().id("nether");
    let overworld = flat(&mut app);
    viewer(&mut app, overworld, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    spawn_in_region(&mut app, overworld, HERE, walker("scout", 0.0));
    update_until(&mut app, "the scout is there", |world| walkers(world).len() == 1);
    crate::closing::send_off(&mut app, overworld, Position::new(nether, HERE));
    update_until(&mut app, "the scout is gone", |world| walkers(world).is_empty());
    update(&mut app, 20);
    let mut app = reopen(app, || game(lockstep_on(&disk)));
    // Other dimensions get other ids.
    let other = spawn_dimension(&mut app, Dimension::new("other", Void));
    let opened = spawn_dimension(&mut app, Dimension::new("nether", Flat::new()));
    assert!(opened == nether && other != nether);
    viewer(&mut app, nether, 0.0, 0.0, 1);
    start(&mut app);
    update_until(&mut app, "the scout is back", |world| walkers(world).len() == 1);
    assert_eq!(walkers(app.world_mut())[0].1, Position::new(nether, HERE));
}

#[test]
fn a_dimension_that_no_entity_has_is_not_removed_and_keeps_its_id() {
    let mut app = game(lockstep());
    let dimensions = app.world().resource::<Dimensions>().clone();
    let nether = dimensions.id("nether");
    flat(&mut app);
    start(&mut app);
    dimensions.remove(nether);
    dimensions.remove(DimensionId(99));
    update(&mut app, 3);
    assert_eq!(dimensions.find("nether"), Some(nether));
    assert_eq!(dimensions.name(DimensionId(99)), None);
}
