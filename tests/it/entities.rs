//! Entities travel between regions and are mirrored in the main world.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::MemoryStore;
use std::sync::Arc;
use std::time::Duration;

/// Promise, first game: A mirrored component of an entity in a region is shown in the main world.
#[test]
fn an_entity_of_a_region_is_mirrored_while_it_moves_and_until_it_is_despawned() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 3);
    start(&mut app);
    update(&mut app, 20);
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), walker("bob", 0.5));
    update(&mut app, 3);
    let before = walkers(app.world_mut());
    update(&mut app, 10);
    let after = walkers(app.world_mut());
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].0, "bob");
    let moved = after[0].1.relative_to(before[0].1.block) - before[0].1.relative_to(before[0].1.block);
    assert_eq!(moved, Vec3::new(5.0, 0.0, 0.0));
    let mirror = *app.world_mut().query::<&Mirror>().single(app.world()).unwrap();
    assert_eq!(mirror.current.1 - mirror.previous.1, Duration::from_millis(50));

    let place = after[0].1.block;
    app.world_mut().commands().run_in_region(dimension, place, |region: &mut World| {
        let walker = region.query_filtered::<Entity, With<Walker>>().single(region).unwrap();
        region.despawn(walker);
    });
    app.world_mut().flush();
    update(&mut app, 3);
    assert!(walkers(app.world_mut()).is_empty());
    assert!(app.world().resource::<MirrorIndex>().is_empty());
}

/// Promise, worlds: An entity that leaves its region travels to the region that owns the new place.
/// Promise, travel: A component registered with `register_region_component` travels with its entity.
#[test]
fn an_entity_that_jumps_to_another_region_arrives_whole_and_once() {
    #[derive(Component, Clone, PartialEq)]
    struct Luggage(Vec<u32>);
    #[derive(Component)]
    struct Jump(BlockPos);
    fn jump(mut commands: Commands, mut jumpers: Query<(Entity, &Jump, &mut Position)>) {
        for (entity, to, mut position) in &mut jumpers {
            *position = Position::new(position.dimension, to.0);
            commands.entity(entity).remove::<Jump>();
        }
    }
    let mut app = game(lockstep());
    app.register_region_component::<Luggage>().mirror_region_component::<Luggage>().add_region_plugins(|region| {
        region.add_systems(RegionTick, jump);
    });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    viewer(&mut app, dimension, 16.0 * 100.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 20);
    let there = BlockPos::new(16 * 100, 5, 3);
    app.world_mut().commands().run_in_region(dimension, BlockPos::new(0, 5, 0), move |region: &mut World| {
        let dimension = region.resource::<RegionInfo>().dimension;
        let position = Position::new(dimension, BlockPos::new(0, 5, 0));
        let parent = region.spawn((walker("jumper", 0.0), Luggage(vec![1, 2, 3]), Jump(there), position)).id();
        region.spawn((Name::new("rider"), ChildOf(parent)));
    });
    app.world_mut().flush();
    update(&mut app, 10);

    let found = walkers(app.world_mut());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1.block, there);
    let luggage = app.world_mut().query_filtered::<&Luggage, With<Mirror>>().single(app.world()).unwrap().clone();
    assert!(luggage == Luggage(vec![1, 2, 3]));

    let seen = Arc::new(std::sync::Mutex::new((0, 0)));
    let report = seen.clone();
    app.world_mut().commands().run_in_region(dimension, there, move |region: &mut World| {
        let riders =
            region.query::<(&Name, &ChildOf)>().iter(region).map(|(_, parent)| parent.parent()).collect::<Vec<_>>();
        let luggage = riders.iter().filter(|parent| region.get::<Luggage>(**parent).is_some()).count();
        *report.lock().unwrap() = (riders.len(), luggage);
    });
    app.world_mut().flush();
    update(&mut app, 3);
    assert_eq!(*seen.lock().unwrap(), (1, 1), "the child came along and hangs on its parent");
}

#[test]
fn an_entity_that_walks_to_where_nothing_is_loaded_waits_there() {
    // Once it is saved, it stays in the store only.
    let mut app = game(TerranePlugin { saving: SaveSettings::every(Duration::from_secs(3_600)), ..lockstep() });
    let dimension = flat(&mut app);
    let camera = viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    // Sixteen blocks per tick: beyond the loaded columns within a few ticks.
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), walker("runner", 16.0));
    update(&mut app, 20);
    let gone = walkers(app.world_mut())[0].1.column();
    assert!(gone.x > 1, "it ran off to {gone}");
    let waiting = walkers(app.world_mut());
    update(&mut app, 20);
    assert_eq!(walkers(app.world_mut()), waiting, "nothing ticks where nothing is loaded");

    move_viewer(&mut app, camera, (gone.x * 16) as f32, 0.0);
    update(&mut app, 20);
    let found = walkers(app.world_mut());
    assert_eq!(found.len(), 1);
    assert!(found[0].1.column().x > gone.x, "it runs on as soon as it can");
}

/// A game that saves twice a second, with a viewer at the origin.
fn saving_often(radius: u32) -> (App, DimensionId, Entity) {
    let mut app = game(TerranePlugin { saving: SaveSettings::every(Duration::from_millis(500)), ..lockstep() });
    let dimension = flat(&mut app);
    let camera = viewer(&mut app, dimension, 0.0, 0.0, radius);
    start(&mut app);
    update(&mut app, 20);
    (app, dimension, camera)
}

/// Promise, travel: An entity without a `Viewer` that walks onto unloaded ground is stored until its column loads. Until then it
/// has no mirror, and messages to it return.
#[test]
fn an_entity_without_a_viewer_that_walks_to_where_nothing_is_loaded_is_left_to_the_store() {
    let (mut app, dimension, camera) = saving_often(1);
    let id = uuid::Uuid::from_u128(7);
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), (StableId(id), walker("runner", 16.0)));
    let mut last = None;
    update_until(&mut app, "it is stored", |world| {
        let now = walkers(world).first().map(|(_, place)| place.column());
        let is_gone = last.is_some() && now.is_none();
        last = now.or(last);
        is_gone
    });
    assert!(app.world().resource::<MirrorIndex>().is_empty());
    let (sender, retired) = std::sync::mpsc::channel();
    app.world_mut().commands().run_on_region_entity(
        id,
        0,
        |_| panic!("it is not loaded"),
        move |_, reason| sender.send(reason).unwrap(),
    );
    update(&mut app, 60);
    assert_eq!(retired.try_recv(), Ok(Undeliverable::NoSuchEntity(id)));
    assert!(walkers(app.world_mut()).is_empty(), "nobody has taken it in");

    let gone = last.unwrap();
    move_viewer(&mut app, camera, (gone.x * 16) as f32, 0.0);
    update_until(&mut app, "it runs on as soon as it can", |world| {
        let found = walkers(world);
        assert!(found.len() <= 1);
        found.first().is_some_and(|(_, place)| place.column().x > gone.x)
    });
}

#[test]
fn an_entity_that_goes_to_ground_while_that_comes_or_goes_is_there_once() {
    let there = BlockPos::new(16 * 50, 5, 0);
    // The columns are new or stored, and the viewer comes before, with and after the save.
    for (was_there, delay) in
        [false, true].into_iter().flat_map(|was_there| (0..14).map(move |delay| (was_there, delay)))
    {
        let (mut app, dimension, camera) = saving_often(1);
        if was_there {
            move_viewer(&mut app, camera, there.x as f32, 0.0);
            update(&mut app, 20);
            move_viewer(&mut app, camera, 0.0, 0.0);
            update(&mut app, 20);
        }
        spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), walker("jumper", 0.0));
        update(&mut app, 2);
        in_region(&mut app, dimension, BlockPos::new(0, 5, 0), move |region: &mut World| {
            let mut jumper = region.query_filtered::<&mut Position, With<Walker>>().single_mut(region).unwrap();
            *jumper = Position::new(jumper.dimension, there);
        });
        update(&mut app, delay);
        let traveller = viewer(&mut app, dimension, there.x as f32, 0.0, 1);
        // Gone again before the columns are loaded, and back.
        update(&mut app, 2);
        move_viewer(&mut app, traveller, 0.0, 0.0);
        update(&mut app, delay);
        move_viewer(&mut app, traveller, there.x as f32, 0.0);
        update(&mut app, 30);
        let found: Vec<_> = walkers(app.world_mut()).into_iter().map(|(_, place)| place.block).collect();
        assert_eq!(found, [there], "stored before: {was_there}, after {delay}");
        let (sender, count) = std::sync::mpsc::channel();
        in_region(&mut app, dimension, there, move |region: &mut World| {
            sender.send(region.query::<&Walker>().iter(region).count()).unwrap();
        });
        update(&mut app, 3);
        assert_eq!(count.try_recv(), Ok(1), "stored before: {was_there}, after {delay}");
    }
}

/// Promise, travel: A `Viewer` that walks onto unloaded ground loads it.
#[test]
fn a_viewer_in_a_region_takes_its_ground_along() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    start(&mut app);
    update(&mut app, 3);
    spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), (walker("scout", 2.0), Viewer::new().with_radius(3)));
    update(&mut app, 400);
    let found = walkers(app.world_mut());
    assert_eq!(found.len(), 1);
    let column = found[0].1.column();
    assert!(column.x > 30, "it walked only to {column}");
    assert!(block_at(app.world_mut(), dimension, found[0].1.block).is_some(), "its ground is loaded");
    assert_eq!(block_at(app.world_mut(), dimension, BlockPos::new(0, 0, 0)), None, "its trail is not");
}

#[test]
fn columns_unload_when_a_viewer_is_despawned_or_removed() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    start(&mut app);
    update(&mut app, 3);
    let places = [BlockPos::new(0, 5, 0), BlockPos::new(5_000, 5, 0)];
    for place in places {
        spawn_in_region(&mut app, dimension, place, (walker("scout", 0.0), Viewer::new().with_radius(1)));
    }
    update(&mut app, 30);
    assert!(places.iter().all(|place| block_at(app.world_mut(), dimension, *place).is_some()));
    let command = |app: &mut App, place: BlockPos, run: fn(EntityWorldMut)| {
        app.world_mut().commands().run_in_region(dimension, place, move |region: &mut World| {
            let scout = region.query_filtered::<Entity, With<Walker>>().single(region).unwrap();
            run(region.entity_mut(scout));
        });
        app.world_mut().flush();
    };
    command(&mut app, places[0], |scout| scout.despawn());
    command(&mut app, places[1], |mut scout| {
        scout.remove::<Viewer>();
    });
    update(&mut app, 30);
    assert!(places.iter().all(|place| block_at(app.world_mut(), dimension, *place).is_none()));
}

#[test]
fn entities_of_different_dimensions_and_ticks_never_share_an_id() {
    let mut app = game(lockstep());
    let dimensions = ["one", "two", "three"].map(|name| spawn_dimension(&mut app, Dimension::new(name, Void)));
    for dimension in dimensions {
        viewer(&mut app, dimension, 0.0, 0.0, 1);
    }
    start(&mut app);
    for number in 0..20 {
        for dimension in dimensions {
            spawn_in_region(&mut app, dimension, BlockPos::new(0, 5, 0), walker(&number.to_string(), 0.0));
        }
        app.update();
    }
    update(&mut app, 10);
    assert_eq!(app.world().resource::<MirrorIndex>().len(), 60);
}

#[test]
fn a_viewer_that_hangs_on_a_parent_holds_ground_where_the_parent_is() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    start(&mut app);
    update(&mut app, 3);
    let place = BlockPos::new(0, 5, 0);
    app.world_mut().commands().run_in_region(dimension, place, move |region: &mut World| {
        let dimension = region.resource::<RegionInfo>().dimension;
        let boat = region.spawn((walker("boat", 2.0), Position::new(dimension, place))).id();
        region.spawn((Viewer::new().with_radius(2), ChildOf(boat)));
    });
    update(&mut app, 300);
    let boat = walkers(app.world_mut())[0].1;
    assert!(boat.block.x > 300, "it came only to {}", boat.block);
    assert!(block_at(app.world_mut(), dimension, boat.block).is_some());
}

#[test]
fn a_viewer_that_hangs_on_a_parent_holds_ground_again_after_a_restart() {
    let disk = Arc::new(MemoryStore::new());
    let place = BlockPos::new(3_000, 5, 0);
    for run in 0..2 {
        let mut app = game(lockstep_on(&disk));
        let dimension = flat(&mut app);
        start(&mut app);
        update(&mut app, 3);
        if run == 0 {
            app.world_mut().commands().run_in_region(dimension, place, move |region: &mut World| {
                let dimension = region.resource::<RegionInfo>().dimension;
                let boat = region.spawn((walker("boat", 0.0), Position::new(dimension, place))).id();
                region.spawn((walker("captain", 0.0), Viewer::new().with_radius(2), ChildOf(boat)));
            });
        }
        // Long enough for unneeded columns to be evicted.
        update(&mut app, 100);
        assert!(block_at(app.world_mut(), dimension, place).is_some(), "run {run}");
        assert_eq!(walkers(app.world_mut()).iter().filter(|(name, _)| name == "boat").count(), 1, "run {run}");
    }
}

/// Promise, first game: A component registered with `register_saved_component` travels with its entity, and is saved.
#[cfg(feature = "rocksdb")]
#[test]
fn an_entity_that_lost_its_saved_components_does_not_return() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = || {
        let plugin = TerranePlugin { tick_mode: TickMode::Lockstep, ..TerranePlugin::at(folder.path().join("world")) };
        TerranePlugin { saving: SaveSettings::every(Duration::from_millis(500)), ..plugin }
    };
    let open = |app: &mut App| {
        let dimension = flat(app);
        viewer(app, dimension, 0.0, 0.0, 1);
        start(app);
        update(app, 20);
        dimension
    };
    let mut app = game(plugin());
    let dimension = open(&mut app);
    let place = BlockPos::new(0, 5, 0);
    for name in ["stays", "stripped", "dies"] {
        spawn_in_region(&mut app, dimension, place, walker(name, 0.0));
    }
    update(&mut app, 30);
    app.world_mut().commands().run_in_region(dimension, place, |region: &mut World| {
        let all: Vec<_> =
            region.query::<(Entity, &Walker)>().iter(region).map(|(at, it)| (at, it.name.clone())).collect();
        for (entity, name) in all {
            match name.as_str() {
                "stripped" => {
                    region.entity_mut(entity).remove::<Walker>();
                }
                "dies" => {
                    region.despawn(entity);
                }
                _ => {}
            }
        }
    });
    update(&mut app, 5);
    assert_eq!(walkers(app.world_mut()).len(), 1, "the mirrors follow");
    drop(app);

    let mut app = game(plugin());
    open(&mut app);
    let names: Vec<_> = walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["stays"]);
}

/// Promise, clocks and faults: A dimension's `Time` continues after a restart of the app, and mirrors show it.
#[test]
fn after_a_restart_mirrors_show_the_time_of_their_dimension_that_has_gone_on() {
    let disk = Arc::new(MemoryStore::new());
    let mut last = Duration::ZERO;
    for session in 0..3 {
        let mut app = game(lockstep_on(&disk));
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 0.0, 0.0, 1);
        start(&mut app);
        if session == 0 {
            update(&mut app, 20);
            spawn_in_region(&mut app, dimension, HERE, walker("bob", 0.001));
        }
        update_until(&mut app, "bob is there", |world| !walkers(world).is_empty());
        let mut clocks = app.world_mut().query::<&Mirror>();
        let first = clocks.single(app.world()).unwrap().current.1;
        assert!(first > last, "session {session}: {first:?} after {last:?}");
        assert!(first < last + Duration::from_secs(5), "session {session}: {first:?} after {last:?}");
        // A tick is 50 ms of its clock.
        update(&mut app, 200);
        last = clocks.single(app.world()).unwrap().current.1;
        assert!(last >= first + Duration::from_secs(9), "session {session}: {last:?} after {first:?}");
        let seen = ask_region(&mut app, dimension, HERE, |time: Res<Time>| time.elapsed());
        assert!(seen >= last, "the region has the same time");
    }
}
