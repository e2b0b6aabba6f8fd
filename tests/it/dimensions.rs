//! Columns come to where viewers are, and go when they leave.

use crate::support::*;
use bevy_terrane::prelude::*;

#[test]
fn the_disc_around_a_viewer_is_loaded_and_nothing_far_beyond() {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 4);
    start(&mut app);
    update(&mut app, 40);

    let id = app.world().get::<DimensionOpen>(dimension).expect("open").id;
    let published = app.world().resource::<PublishedColumns>();
    let center = ColumnPos::new(0, 0);
    for x in -8..=8 {
        for z in -8..=8 {
            let column = ColumnPos::new(x, z);
            let distance = column.distance_squared(center);
            if distance <= 4 * 4 {
                assert!(published.column(id, column).is_some(), "{column} is missing");
            } else if distance > 6 * 6 {
                assert!(published.column(id, column).is_none(), "{column} is too far away");
            }
        }
    }
}

#[test]
fn what_a_viewer_leaves_behind_is_unloaded_and_comes_back_from_the_store() {
    let mut app = game(lockstep().with_autosave_period(std::time::Duration::from_millis(500)));
    listen::<ColumnUnloaded>(&mut app);
    let dimension = flat(&mut app);
    let viewer = viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 30);
    let generated = app.world().resource::<WorldStatistics>().generated;
    assert!(generated >= 13);

    app.world_mut().get_mut::<Transform>(viewer).unwrap().translation.x = 16.0 * 40.0;
    update(&mut app, 60);
    let home = BlockPos::new(0, 0, 0);
    assert_eq!(block_at(app.world_mut(), dimension, home), None);
    assert!(heard::<ColumnUnloaded>(&app).iter().any(|unloaded| unloaded.column == home.column()));

    app.world_mut().get_mut::<Transform>(viewer).unwrap().translation.x = 0.0;
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
    let void = app.world_mut().spawn(Dimension::new("void", Void)).id();
    viewer(&mut app, overworld, 0.0, 0.0, 2);
    viewer(&mut app, void, 0.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 30);

    let ground = BlockPos::new(0, 0, 0);
    let grass = id_of(app.world(), "terrane:grass");
    assert_eq!(block_at(app.world_mut(), overworld, ground), Some(grass));
    assert_eq!(block_at(app.world_mut(), void, ground), Some(BlockId::AIR));
    let ids: Vec<_> = [overworld, void].map(|entity| app.world().get::<DimensionOpen>(entity).unwrap().id).into();
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn a_dimension_of_a_taken_name_or_without_heights_is_refused() {
    let mut app = game(lockstep());
    listen::<DimensionFailed>(&mut app);
    let first = flat(&mut app);
    start(&mut app);
    update(&mut app, 3);
    let second = flat(&mut app);
    let empty = app.world_mut().spawn(Dimension::new("empty", Void).with_height(5..5)).id();
    update(&mut app, 3);

    assert!(app.world().get::<DimensionOpen>(first).is_some());
    let failed = heard::<DimensionFailed>(&app);
    assert_eq!(failed.iter().map(|failed| failed.entity).collect::<Vec<_>>(), [second, empty]);
    assert!(failed[0].error.to_string().contains("\"overworld\" is open already"));
    assert!(failed[1].error.to_string().contains("height range 5..5"));
}

/// Letters of the game that the next tests send.
#[derive(Clone, Debug, PartialEq)]
struct Note(u32);

const HERE: BlockPos = BlockPos::new(0, 5, 0);
const DUG: BlockPos = BlockPos::new(3, 9, 3);

/// Nothing is saved but at a close: what is there again was saved by that.
fn closing(plugin: TerranePlugin) -> App {
    let mut app = game(plugin.with_autosave_period(std::time::Duration::from_secs(3_600)));
    app.register_region_message::<Note>();
    listen::<DimensionOpened>(&mut app);
    listen::<DimensionClosed>(&mut app);
    listen::<DimensionRemoved>(&mut app);
    listen::<DimensionFailed>(&mut app);
    listen::<LetterLost>(&mut app);
    listen::<Returned<Note>>(&mut app);
    app
}

fn named(app: &mut App, name: &str) -> Entity {
    app.world_mut().spawn(Dimension::new(name, Flat::new())).id()
}

/// Two dimensions with ground around a viewer in each.
fn two_dimensions(app: &mut App) -> [Entity; 2] {
    let dimensions = ["overworld", "other"].map(|name| named(app, name));
    for dimension in dimensions {
        viewer(app, dimension, 0.0, 0.0, 1);
    }
    start(app);
    update_until(app, "both are loaded", |world| {
        dimensions.iter().all(|dimension| block_at(world, *dimension, HERE).is_some())
    });
    dimensions
}

fn dig(app: &mut App, dimension: Entity) -> BlockId {
    let block = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: DUG, block });
    update_until(app, "it is dug", |world| block_at(world, dimension, DUG) == Some(block));
    block
}

fn wait_closed(app: &mut App, times: usize) {
    update_until(app, "it is closed", |world| world.resource::<Heard<DimensionClosed>>().0.len() >= times);
}

fn names(app: &mut App) -> Vec<String> {
    walkers(app.world_mut()).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_despawned_dimension_is_saved_and_its_name_goes_on_where_it_was_while_others_tick() {
    for plugin in [lockstep(), TerranePlugin::in_memory()] {
        let mut app = closing(plugin);
        let [first, other] = two_dimensions(&mut app);
        let stone = dig(&mut app, first);
        spawn_in_region(&mut app, first, HERE, walker("bob", 0.0));
        update_until(&mut app, "bob is there", |world| walkers(world).len() == 1);
        let id = dimension_id(&app, first);
        app.world_mut().despawn(first);
        wait_closed(&mut app, 1);
        let closed = &heard::<DimensionClosed>(&app)[0];
        assert_eq!((closed.entity, closed.dimension, closed.name.as_str()), (first, id, "overworld"));
        let published = app.world().resource::<PublishedColumns>();
        assert_eq!(published.iter().filter(|(dimension, _)| *dimension == id).count(), 0);
        assert_eq!(names(&mut app), [""; 0]);
        let before = region_at(app.world(), other, HERE.column()).unwrap().ticks;
        update_until(&mut app, "the other ticks on", |world| {
            region_at(world, other, HERE.column()).is_some_and(|region| region.ticks > before + 10)
        });
        let statistics = app.world().resource::<WorldStatistics>().clone();
        assert!(statistics.regions.iter().all(|region| region.dimension != id));

        let second = named(&mut app, "overworld");
        viewer(&mut app, second, 0.0, 0.0, 1);
        update_until(&mut app, "bob is back", |world| {
            walkers(world).len() == 1 && block_at(world, second, DUG) == Some(stone)
        });
        assert_eq!(dimension_id(&app, second), id);
        update_until(&mut app, "statistics are new", |world| {
            world.resource::<WorldStatistics>().loaded > statistics.loaded
        });
        let generated = app.world().resource::<WorldStatistics>().generated;
        assert_eq!(generated, statistics.generated, "nothing is generated again");
        assert!(heard::<DimensionFailed>(&app).is_empty());
    }
}

#[test]
fn the_same_name_can_be_spawned_in_the_frame_of_the_despawn() {
    for plugin in [lockstep(), TerranePlugin::in_memory()] {
        let mut app = closing(plugin);
        let [first, _] = two_dimensions(&mut app);
        // What was ordered in the frame itself is done before.
        let block = id_of(app.world(), "terrane:stone");
        app.world_mut().write_message(SetBlock { dimension: first, position: DUG, block });
        app.world_mut().despawn(first);
        let paused = DimensionClock { paused: true, ..default() };
        let second = app.world_mut().spawn((Dimension::new("overworld", Flat::new()), paused)).id();
        viewer(&mut app, second, 0.0, 0.0, 1);
        update_until(&mut app, "it goes on", |world| block_at(world, second, DUG) == Some(block));
        assert!(heard::<DimensionFailed>(&app).is_empty());
        assert_eq!(heard::<DimensionClosed>(&app).len(), 1);
        let region = |world: &mut World| region_at(world, second, HERE.column());
        update_until(&mut app, "its clock is known too", |world| region(world).is_some_and(|region| region.paused));

        // One that still waits for its name goes as it came.
        app.world_mut().despawn(second);
        let third = named(&mut app, "overworld");
        app.update();
        app.world_mut().despawn(third);
        wait_closed(&mut app, 2);
        update(&mut app, 20);
        let fourth = named(&mut app, "overworld");
        update_until(&mut app, "it is open", |world| world.get::<DimensionOpen>(fourth).is_some());
        assert!(heard::<DimensionFailed>(&app).is_empty());
    }
}

#[test]
fn viewers_of_regions_and_entities_in_transit_are_there_again_when_it_is_opened_again() {
    let mut app = closing(lockstep());
    let [first, _] = two_dimensions(&mut app);
    let far = BlockPos::new(16 * 100, 5, 0);
    spawn_in_region(&mut app, first, far, (walker("scout", 0.0), Viewer::new().with_radius(1)));
    // Out of all loaded ground within a few ticks: it waits where nothing is.
    spawn_in_region(&mut app, first, HERE, walker("runner", 40.0));
    update(&mut app, 30);
    assert_eq!(names(&mut app), ["runner", "scout"]);
    let place = walkers(app.world_mut())[0].1.block;
    assert_eq!(block_at(app.world_mut(), first, place), None);
    app.world_mut().despawn(first);
    wait_closed(&mut app, 1);
    assert_eq!(names(&mut app), [""; 0]);
    assert!(app.world().resource::<MirrorIndex>().is_empty());

    let second = named(&mut app, "overworld");
    update(&mut app, 30);
    assert_eq!(heard::<DimensionOpened>(&app).last().unwrap().viewers, 1);
    assert_eq!(names(&mut app), ["scout"], "its ground is loaded for it");
    assert!(block_at(app.world_mut(), second, far).is_some());
    viewer(&mut app, second, place.x as f32, 0.0, 1);
    update_until(&mut app, "the runner runs on", |world| walkers(world).len() == 2);
}

/// Puts the walker that is in the region at `HERE` into another dimension.
fn send_off(app: &mut App, from: Entity, to: Position) {
    in_region(app, from, HERE, move |region: &mut World| {
        let mut walker = region.query_filtered::<&mut Position, With<Walker>>().single_mut(region).unwrap();
        *walker = to;
    });
}

#[test]
fn an_entity_that_went_to_a_dimension_while_it_closed_or_was_closed_is_there_when_it_is_opened_again() {
    let far = BlockPos::new(16 * 100, 5, 0);
    for (leaves, reopens) in [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (0, 20), (10, 20), (20, 20)] {
        let mut app = closing(lockstep());
        let [first, other] = two_dimensions(&mut app);
        let id = dimension_id(&app, first);
        spawn_in_region(&mut app, other, HERE, (walker("scout", 0.0), Viewer::new().with_radius(1)));
        update(&mut app, 5);
        app.world_mut().despawn(first);
        let mut second = None;
        for frame in 0..=20 {
            if frame == leaves {
                send_off(&mut app, other, Position::new(id, far));
            }
            if frame == reopens {
                second = Some(named(&mut app, "overworld"));
            }
            app.update();
        }
        let second = second.unwrap();
        update(&mut app, 30);
        let case = format!("it left {leaves} frames after the end, {reopens} later the name was asked for");
        assert_eq!(names(&mut app), ["scout"], "{case}");
        assert_eq!(dimension_id(&app, second), id);
        assert!(block_at(app.world_mut(), second, far).is_some(), "{case}: it holds its ground");
        assert!(heard::<DimensionFailed>(&app).is_empty());
    }
}

#[test]
fn an_entity_that_goes_to_a_dimension_that_is_removed_goes_with_it() {
    use bevy_terrane::storage::{KeyValueStore, MemoryStore, WorldStore};
    use std::sync::Arc;
    for leaves in [0, 1, 2, 3, 4, 20] {
        let disk = Arc::new(MemoryStore::new()) as Arc<dyn KeyValueStore>;
        let disk = StorageConfig::Custom(disk);
        let mut app = closing(TerranePlugin::stored_in(disk.clone()).with_tick_mode(TickMode::Lockstep));
        let [first, other] = two_dimensions(&mut app);
        let (id, scout) = (dimension_id(&app, first), uuid::Uuid::from_u128(7));
        spawn_in_region(&mut app, other, HERE, (walker("scout", 0.0), StableId(scout)));
        update(&mut app, 5);
        app.world_mut().write_message(RemoveDimension { dimension: first });
        app.world_mut().despawn(first);
        update(&mut app, leaves);
        send_off(&mut app, other, Position::new(id, HERE));
        update_until(&mut app, "it is removed", |world| !world.resource::<Heard<DimensionRemoved>>().0.is_empty());
        update(&mut app, 10);
        assert_eq!(names(&mut app), [""; 0]);
        drop(app);
        let store = WorldStore::open(&disk).unwrap();
        assert_eq!(store.entity(scout).unwrap(), None, "it left after {leaves} frames");
    }
}

#[test]
fn letters_of_a_dimension_that_closes_come_back_or_are_reported() {
    use std::sync::mpsc::channel;
    let mut app = closing(lockstep());
    let [first, other] = two_dimensions(&mut app);
    let id = dimension_id(&app, first);
    let bob = uuid::Uuid::from_u128(7);
    app.world_mut().commands().spawn_in_region(first, HERE, (StableId(bob), walker("bob", 0.0)));
    update(&mut app, 3);
    let (sender, retired) = channel();
    app.world_mut()
        .commands()
        .run_in_region_after(first, HERE, 1_000, |_| panic!("not in this test"))
        .run_on_region_entity(bob, 1_000, |_| panic!("nor this"), move |_, reason| sender.send(reason).unwrap())
        // To ground that is not there yet.
        .send_to_place(first, BlockPos::new(9_000, 0, 0), Note(1));
    update(&mut app, 2);
    app.world_mut().despawn(first);
    app.update();
    // While it closes and afterwards, from here and from the regions of others.
    app.world_mut().commands().send_to_place(first, HERE, Note(2));
    let (sender, returned) = channel();
    in_region(&mut app, other, HERE, move |region| {
        region.resource_mut::<Post>().run_on(
            bob,
            0,
            |_| panic!("bob is not there"),
            move |_, reason| sender.send(reason).unwrap(),
        );
    });
    wait_closed(&mut app, 1);
    app.world_mut().commands().send_to_entity(bob, Note(3));
    update(&mut app, 20);
    let lost: Vec<_> = heard::<LetterLost>(&app).iter().map(|lost| lost.reason).collect();
    assert_eq!(lost, [Undeliverable::Unloaded(HERE.column())]);
    assert_eq!(retired.try_iter().collect::<Vec<_>>(), [Undeliverable::NoSuchEntity(bob)]);
    assert_eq!(returned.try_iter().collect::<Vec<_>>(), [Undeliverable::NoSuchEntity(bob)]);
    let back = heard::<Returned<Note>>(&app).iter().map(|back| (back.message.0, back.reason)).collect::<Vec<_>>();
    assert!(back.contains(&(1, Undeliverable::DimensionNotOpen(id))), "{back:?}");
    assert!(back.iter().any(|(number, _)| *number == 2) && back.iter().any(|(number, _)| *number == 3), "{back:?}");
    assert_eq!(back.len(), 3);
}

#[test]
fn a_dimension_closes_after_its_slow_region_and_with_a_halted_one() {
    fn misbehave(walkers: Query<&Walker>) {
        for walker in &walkers {
            assert!(walker.name != "bomb", "a bomb went off");
            if walker.name == "slow" {
                std::thread::sleep(std::time::Duration::from_millis(400));
            }
        }
    }
    let mut app = closing(TerranePlugin::in_memory());
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, misbehave);
    });
    listen::<RegionHalted>(&mut app);
    listen::<WorldSaved>(&mut app);
    let [first, other] = two_dimensions(&mut app);
    let far = BlockPos::new(16 * 100, 5, 0);
    viewer(&mut app, first, far.x as f32, 0.0, 1);
    update_until(&mut app, "both regions are there", |world| block_at(world, first, far).is_some());
    spawn_in_region(&mut app, first, far, walker("slow", 0.0));
    spawn_in_region(&mut app, first, HERE, walker("saved", 0.0));
    update_until(&mut app, "both are there", |world| walkers(world).len() == 2);
    app.world_mut().write_message(SaveWorld { request: 0 });
    update_until(&mut app, "it is saved", |world| !world.resource::<Heard<WorldSaved>>().0.is_empty());
    spawn_in_region(&mut app, first, HERE, walker("bomb", 0.0));
    update_until(&mut app, "one halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
    // It waits for a restart that does not come.
    app.world_mut().commands().send_to_place(first, HERE, Note(1));
    let block = id_of(app.world(), "terrane:stone");
    let dug = BlockPos::new(far.x, 9, 0);
    app.world_mut().write_message(SetBlock { dimension: first, position: dug, block });
    update(&mut app, 2);
    app.world_mut().despawn(first);
    wait_closed(&mut app, 1);
    update_until(&mut app, "its letter is back", |world| !world.resource::<Heard<Returned<Note>>>().0.is_empty());
    assert_eq!(names(&mut app), [""; 0]);
    assert!(block_at(app.world_mut(), other, HERE).is_some());

    let second = named(&mut app, "overworld");
    for place in [HERE, far] {
        viewer(&mut app, second, place.x as f32, 0.0, 1);
    }
    update_until(&mut app, "all is as it was saved", |world| {
        walkers(world).len() == 2 && block_at(world, second, dug) == Some(block)
    });
    assert_eq!(names(&mut app), ["saved", "slow"]);
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
        let id = dimension_id(&app, first);
        app.world_mut().write_message(RemoveDimension { dimension: first });
        app.world_mut().despawn(first);
        update_until(&mut app, "it is removed", |world| !world.resource::<Heard<DimensionRemoved>>().0.is_empty());
        let removed = &heard::<DimensionRemoved>(&app)[0];
        assert_eq!((removed.entity, removed.name.as_str()), (first, "overworld"));
        assert!(removed.error.is_none() && removed.entries > 0, "{removed:?}");
        assert_eq!(heard::<DimensionClosed>(&app).len(), 1);

        // Another generator would be refused if anything of the old one were left.
        let second = app.world_mut().spawn(Dimension::new("overworld", Void)).id();
        viewer(&mut app, second, 0.0, 0.0, 1);
        update_until(&mut app, "it is loaded", |world| block_at(world, second, DUG).is_some());
        assert_eq!(block_at(app.world_mut(), second, DUG), Some(BlockId::AIR));
        assert_ne!(dimension_id(&app, second), id);
        let opened = heard::<DimensionOpened>(&app).last().unwrap();
        assert_eq!((opened.stored_columns, opened.viewers), (0, 0));
        assert_eq!(block_at(app.world_mut(), other, DUG), Some(stone), "the other has what it had");
        update(&mut app, 20);
        assert_eq!(names(&mut app), ["bob"]);
    }
}

#[test]
fn a_dimension_can_be_made_anew_in_the_frame_of_its_removal() {
    let mut app = closing(lockstep());
    let [first, _] = two_dimensions(&mut app);
    dig(&mut app, first);
    app.world_mut().write_message(RemoveDimension { dimension: first });
    let second = app.world_mut().spawn(Dimension::new("overworld", Void)).id();
    viewer(&mut app, second, 0.0, 0.0, 1);
    update_until(&mut app, "it is loaded", |world| block_at(world, second, DUG) == Some(BlockId::AIR));
    assert!(heard::<DimensionFailed>(&app).is_empty());
    assert_eq!(heard::<DimensionRemoved>(&app).len(), 1);
}

#[cfg(feature = "rocksdb")]
#[test]
fn a_removal_that_the_end_of_the_app_broke_off_goes_on_when_the_name_is_asked_for() {
    use bevy_terrane::storage::WorldStore;
    use std::ops::ControlFlow;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    let mut app = closing(TerranePlugin::at(&path));
    let [first, other] = two_dimensions(&mut app);
    let stone = dig(&mut app, first);
    dig(&mut app, other);
    drop(app);
    let store = WorldStore::open(&StorageConfig::Path(path.clone())).unwrap();
    let removed = store.remove_dimension("overworld", |_| ControlFlow::Break(())).unwrap();
    assert!(!removed.finished, "the end came in the middle of it");
    drop(store);

    let mut app = closing(TerranePlugin::at(&path));
    let [first, other] = two_dimensions(&mut app);
    assert_eq!(heard::<DimensionRemoved>(&app).len(), 1);
    assert!(heard::<DimensionFailed>(&app).is_empty());
    assert_eq!(block_at(app.world_mut(), first, DUG), Some(BlockId::AIR));
    assert_eq!(block_at(app.world_mut(), other, DUG), Some(stone));
}

#[test]
fn a_dimension_that_takes_the_place_of_another_on_its_entity_is_open_after_that_is_closed() {
    for plugin in [lockstep(), TerranePlugin::in_memory()] {
        for (name, generator) in [("another", Flat::new()), ("overworld", Flat::new())] {
            let mut app = closing(plugin.clone());
            let [entity, _] = two_dimensions(&mut app);
            let before = dimension_id(&app, entity);
            app.world_mut().entity_mut(entity).remove::<Dimension>().insert(Dimension::new(name, generator));
            wait_closed(&mut app, 1);
            let is_again = name == "overworld";
            update_until(&mut app, "the new one is open", |world| {
                let open = world.get::<DimensionOpen>(entity).map(|open| open.id);
                open.is_some_and(|id| (id == before) == is_again) && block_at(world, entity, HERE).is_some()
            });
            update(&mut app, 30);
            assert_eq!(heard::<DimensionClosed>(&app).len(), 1);
            assert_eq!(dimension_id(&app, entity) == before, is_again);
            assert!(heard::<DimensionFailed>(&app).is_empty());
        }
    }
}

#[test]
fn what_waits_for_its_name_can_be_removed_and_hears_of_it() {
    let mut app = closing(lockstep());
    let [first, _] = two_dimensions(&mut app);
    dig(&mut app, first);
    app.world_mut().despawn(first);
    let second = named(&mut app, "overworld");
    app.update();
    assert!(heard::<DimensionClosed>(&app).is_empty(), "it still waits");
    app.world_mut().write_message(RemoveDimension { dimension: second });
    app.world_mut().despawn(second);
    update_until(&mut app, "it is removed", |world| {
        world.resource::<Heard<DimensionRemoved>>().0.iter().any(|removed| removed.entity == second)
    });
    let third = app.world_mut().spawn(Dimension::new("overworld", Void)).id();
    viewer(&mut app, third, 0.0, 0.0, 1);
    update_until(&mut app, "nothing is left", |world| block_at(world, third, DUG) == Some(BlockId::AIR));
    assert!(heard::<DimensionFailed>(&app).is_empty());
}

#[test]
fn a_removal_that_fails_is_told_of_and_not_tried_for_ever() {
    use crate::failing_store::FullDisk;
    use bevy_terrane::storage::{KeyValueStore, WorldStore};
    use std::ops::ControlFlow;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    let disk = FullDisk::default();
    let is_full = disk.is_full.clone();
    let disk = StorageConfig::Custom(Arc::new(disk) as Arc<dyn KeyValueStore>);
    // One that has something in it, so that a removal can be broken off.
    let mut app = closing(TerranePlugin::stored_in(disk.clone()));
    let first = named(&mut app, "overworld");
    viewer(&mut app, first, 0.0, 0.0, 1);
    start(&mut app);
    update_until(&mut app, "it is loaded", |world| block_at(world, first, HERE).is_some());
    drop(app);
    let store = WorldStore::open(&disk).unwrap();
    assert!(!store.remove_dimension("overworld", |_| ControlFlow::Break(())).unwrap().finished);
    drop(store);

    let mut app = closing(TerranePlugin::stored_in(disk));
    start(&mut app);
    update(&mut app, 3);
    is_full.store(true, Ordering::SeqCst);
    let second = named(&mut app, "overworld");
    update_until(&mut app, "it failed", |world| !world.resource::<Heard<DimensionFailed>>().0.is_empty());
    for _ in 0..100 {
        app.update();
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert_eq!(heard::<DimensionRemoved>(&app).len(), 1);
    let failed = heard::<DimensionFailed>(&app);
    assert_eq!((failed.len(), failed[0].entity), (1, second));
    assert!(failed[0].error.to_string().contains("no space left"), "{}", failed[0].error);
    is_full.store(false, Ordering::SeqCst);
    app.world_mut().despawn(second);
    let third = named(&mut app, "overworld");
    update_until(&mut app, "it is open", |world| world.get::<DimensionOpen>(third).is_some());
}

/// Fails for one column at all times, and counts.
struct Stubborn(std::sync::Arc<std::sync::atomic::AtomicU32>);

impl Generator for Stubborn {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity { name: "stubborn".into(), version: 1, seed: 0 }
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        if request.column == ColumnPos::new(0, 0) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            return Err(GenerateError::Failed { column: request.column, reason: "never".into() });
        }
        Flat::new().generate(request)
    }
}

#[test]
fn a_column_that_failed_and_that_nobody_wants_is_forgotten() {
    let asked = std::sync::Arc::<std::sync::atomic::AtomicU32>::default();
    let asked_so_far = || asked.load(std::sync::atomic::Ordering::Relaxed);
    let mut app = game(lockstep());
    let dimension = app.world_mut().spawn(Dimension::new("stubborn", Stubborn(asked.clone()))).id();
    let camera = viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    // The waits double: 1, 2 and 4 seconds.
    update(&mut app, 20 * 4);
    assert_eq!(asked_so_far(), 3);
    move_viewer(&mut app, camera, 5_000.0, 0.0);
    update(&mut app, 5);
    move_viewer(&mut app, camera, 0.0, 0.0);
    update(&mut app, 10);
    assert_eq!(asked_so_far(), 4, "who comes again does not wait for what failed before");
    update(&mut app, 25);
    assert_eq!(asked_so_far(), 5, "and the waits begin anew");
}
