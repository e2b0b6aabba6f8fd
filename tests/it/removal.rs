//! A removed dimension leaves nothing behind, and its name is free.

use crate::closing::*;
use crate::disk::Disk;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{StorageConfig, WorldStore};
use bevy_terrane::view::{DimensionClosed, DimensionError, DimensionRemoved, WorkError};
use std::ops::ControlFlow;

#[test]
fn an_entity_that_goes_to_a_dimension_that_is_removed_goes_with_it() {
    for leaves in [0, 1, 2, 3, 4, 20] {
        let disk = Disk::default();
        let mut app = closing(TerranePlugin { tick_mode: TickMode::Lockstep, ..disk.plugin() });
        let [first, other] = two_dimensions(&mut app);
        let scout = uuid::Uuid::from_u128(7);
        spawn_in_region(&mut app, other, HERE, (walker("scout", 0.0), StableId(scout)));
        update(&mut app, 5);
        app.world().resource::<Dimensions>().remove(first);
        despawn_dimension(&mut app, first);
        update(&mut app, leaves);
        send_off(&mut app, other, Position::new(first, HERE));
        update_until(&mut app, "it is removed", |world| !world.resource::<Heard<DimensionRemoved>>().0.is_empty());
        update(&mut app, 10);
        assert_eq!(names(&mut app), [""; 0]);
        drop(app);
        let store = WorldStore::open(&disk.storage()).unwrap();
        assert_eq!(store.entity(scout).unwrap(), None, "it left after {leaves} frames");
    }
}

#[test]
fn removing_a_dimension_erases_all_of_it_and_frees_its_name() {
    for plugin in [lockstep(), TerranePlugin::in_memory()] {
        let mut app = closing(plugin);
        let [first, other] = two_dimensions(&mut app);
        let stone = dig(&mut app, first);
        dig(&mut app, other);
        for dimension in [first, other] {
            spawn_in_region(&mut app, dimension, HERE, (walker("bob", 0.0), Viewer::new().with_radius(1)));
        }
        update_until(&mut app, "both are there", |world| walkers(world).len() == 2);
        let entity = dimension_entity(app.world_mut(), first);
        app.world().resource::<Dimensions>().remove(first);
        despawn_dimension(&mut app, first);
        update_until(&mut app, "it is removed", |world| !world.resource::<Heard<DimensionRemoved>>().0.is_empty());
        let removed = &heard::<DimensionRemoved>(&app)[0];
        assert_eq!((removed.entity, removed.name.as_str()), (entity, "overworld"));
        assert!(removed.error.is_none() && removed.entries > 0, "{removed:?}");
        assert_eq!(heard::<DimensionClosed>(&app).len(), 1);

        // Another generator would be refused if anything of the old dimension were left.
        let second = spawn_dimension(&mut app, Dimension::new("overworld", Void));
        viewer(&mut app, second, 0.0, 0.0, 1);
        update_until(&mut app, "it is loaded", |world| block_at(world, second, DUG).is_some());
        assert_eq!(block_at(app.world_mut(), second, DUG), Some(BlockId::AIR));
        assert_ne!(second, first);
        let opened = heard::<DimensionOpened>(&app).last().unwrap();
        assert_eq!((opened.stored_columns, opened.viewers), (0, 0));
        assert_eq!(block_at(app.world_mut(), other, DUG), Some(stone), "the other has what it had");
        update(&mut app, 20);
        assert_eq!(names(&mut app), ["bob"]);
    }
}

#[test]
fn a_dimension_can_be_spawned_again_in_the_frame_of_its_removal() {
    let mut app = closing(lockstep());
    let [first, _] = two_dimensions(&mut app);
    dig(&mut app, first);
    app.world().resource::<Dimensions>().remove(first);
    let second = spawn_dimension(&mut app, Dimension::new("overworld", Void));
    viewer(&mut app, second, 0.0, 0.0, 1);
    update_until(&mut app, "it is loaded", |world| block_at(world, second, DUG) == Some(BlockId::AIR));
    assert!(heard::<DimensionFailed>(&app).is_empty());
    assert_eq!(heard::<DimensionRemoved>(&app).len(), 1);
}

#[cfg(feature = "rocksdb")]
#[test]
fn a_removal_interrupted_by_the_end_of_the_app_continues_with_the_next_use_of_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    let mut app = closing(TerranePlugin::at(&path));
    let [first, other] = two_dimensions(&mut app);
    let stone = dig(&mut app, first);
    dig(&mut app, other);
    drop(app);
    let store = WorldStore::open(&StorageConfig::Path(path.clone())).unwrap();
    let removed = store.remove_dimension("overworld", |_| ControlFlow::Break(())).unwrap();
    assert!(removed.is_none(), "the end came in the middle of it");
    drop(store);

    let mut app = closing(TerranePlugin::at(&path));
    let [first, other] = two_dimensions(&mut app);
    assert_eq!(heard::<DimensionRemoved>(&app).len(), 1);
    assert!(heard::<DimensionFailed>(&app).is_empty());
    assert_eq!(block_at(app.world_mut(), first, DUG), Some(BlockId::AIR));
    assert_eq!(block_at(app.world_mut(), other, DUG), Some(stone));
}

#[test]
fn a_dimension_that_waits_for_its_name_can_be_removed() {
    let mut app = closing(lockstep());
    let [first, _] = two_dimensions(&mut app);
    dig(&mut app, first);
    despawn_dimension(&mut app, first);
    let second = named(&mut app, "overworld");
    app.update();
    assert!(heard::<DimensionClosed>(&app).is_empty(), "it still waits");
    let entity = dimension_entity(app.world_mut(), second);
    app.world().resource::<Dimensions>().remove(second);
    despawn_dimension(&mut app, second);
    update_until(&mut app, "it is removed", |world| {
        world.resource::<Heard<DimensionRemoved>>().0.iter().any(|removed| removed.entity == entity)
    });
    let third = spawn_dimension(&mut app, Dimension::new("overworld", Void));
    viewer(&mut app, third, 0.0, 0.0, 1);
    update_until(&mut app, "nothing is left", |world| block_at(world, third, DUG) == Some(BlockId::AIR));
    assert!(heard::<DimensionFailed>(&app).is_empty());
}

#[test]
fn a_removal_waits_for_entities_on_their_way_and_removes_them_too() {
    let disk = Disk::default();
    let mut app = closing(TerranePlugin { tick_mode: TickMode::Lockstep, ..disk.plugin() });
    let [first, other] = two_dimensions(&mut app);
    let scout = uuid::Uuid::from_u128(7);
    spawn_in_region(&mut app, other, HERE, (walker("scout", 0.0), StableId(scout)));
    update(&mut app, 5);
    despawn_dimension(&mut app, first);
    wait_closed(&mut app, 1);
    send_off(&mut app, other, Position::new(first, HERE));
    update_until(&mut app, "the scout waits in the store", |world| walkers(world).is_empty());
    let spawn = |app: &mut App| app.world_mut().spawn(Dimension::new("overworld", Flat::new())).id();
    let [second, _] = [(); 2].map(|()| spawn(&mut app));
    app.update();
    assert!(!is_open(app.world_mut(), first), "it waits for the scout");
    app.world().resource::<Dimensions>().remove(first);
    app.world_mut().despawn(second);
    let third = app.world().resource::<Dimensions>().id("overworld");
    update_until(&mut app, "another is open", |world| is_open(world, third));
    let removed = heard::<DimensionRemoved>(&app);
    assert!(removed.len() == 1 && removed[0].entity == second && removed[0].error.is_none(), "{removed:?}");
    assert!(removed[0].entries > 0 && third != first);
    drop(app);
    assert_eq!(WorldStore::open(&disk.storage()).unwrap().entity(scout).unwrap(), None);
}

#[test]
fn a_failing_removal_is_reported_and_not_retried_forever() {
    let disk = Disk::default();
    // A dimension with contents, so that a removal can be interrupted.
    let mut app = closing(disk.plugin());
    let first = named(&mut app, "overworld");
    viewer(&mut app, first, 0.0, 0.0, 1);
    start(&mut app);
    update_until(&mut app, "it is loaded", |world| block_at(world, first, HERE).is_some());
    drop(app);
    let store = WorldStore::open(&disk.storage()).unwrap();
    assert_eq!(store.remove_dimension("overworld", |_| ControlFlow::Break(())), Ok(None));
    drop(store);

    let mut app = closing(disk.plugin());
    start(&mut app);
    update(&mut app, 3);
    disk.set_full(true);
    let second = named(&mut app, "overworld");
    update_until(&mut app, "it failed", |world| !world.resource::<Heard<DimensionFailed>>().0.is_empty());
    let clock = |world: &World| world.resource::<WorldStatistics>().clock;
    let soon = clock(app.world()) + std::time::Duration::from_secs(1);
    update_until(&mut app, "it could have been tried again", |world| clock(world) > soon);
    assert_eq!(heard::<DimensionRemoved>(&app).len(), 1);
    let second_entity = dimension_entity(app.world_mut(), second);
    let failed = heard::<DimensionFailed>(&app);
    assert_eq!((failed.len(), failed[0].entity), (1, second_entity));
    let DimensionError::NotRemoved { source: WorkError::Store(error), .. } = &failed[0].error else {
        panic!("{}", failed[0].error)
    };
    assert!(error.to_string().contains("no space left"), "{error}");
    disk.set_full(false);
    despawn_dimension(&mut app, second);
    let third = named(&mut app, "overworld");
    update_until(&mut app, "it is open", |world| is_open(world, third));
}
