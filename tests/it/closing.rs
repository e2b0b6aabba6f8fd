//! A dimension that closes is saved, and continues under its name.

use crate::support::gate::Gate;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{DimensionClosed, DimensionOpen, DimensionRemoved, LetterLost};

/// A letter of the game that is closed.
#[derive(Clone, Debug, PartialEq)]
pub struct Note(pub u32);

pub const DUG: BlockPos = BlockPos::new(3, 9, 3);

/// Saves happen only at a close, so anything that is restored was saved by it.
pub fn closing(plugin: TerranePlugin) -> App {
    let mut app = game(TerranePlugin { saving: SaveSettings::every(std::time::Duration::from_secs(3_600)), ..plugin });
    app.register_region_message::<Note>();
    listen::<DimensionOpened>(&mut app);
    listen::<DimensionClosed>(&mut app);
    listen::<DimensionRemoved>(&mut app);
    listen::<DimensionFailed>(&mut app);
    listen::<LetterLost>(&mut app);
    listen::<Returned<Note>>(&mut app);
    app
}

pub fn named(app: &mut App, name: &str) -> DimensionId {
    spawn_dimension(app, Dimension::new(name, Flat::new()))
}

/// Two dimensions with columns around a viewer in each.
pub fn two_dimensions(app: &mut App) -> [DimensionId; 2] {
    let dimensions = ["overworld", "other"].map(|name| named(app, name));
    for dimension in dimensions {
        viewer(app, dimension, 0.0, 0.0, 1);
    }
    start(app);
    update_until(app, "both are loaded", |world| {
        let is_known = |dimension: &DimensionId| region_at(world, *dimension, HERE.column()).is_some();
        dimensions.iter().all(is_known) && world.resource::<WorldStatistics>().remaining == 0
    });
    dimensions
}

pub fn dig(app: &mut App, dimension: DimensionId) -> BlockId {
    let block = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: DUG, block });
    update_until(app, "it is dug", |world| block_at(world, dimension, DUG) == Some(block));
    block
}

pub fn wait_closed(app: &mut App, times: usize) {
    update_until(app, "it is closed", |world| world.resource::<Heard<DimensionClosed>>().0.len() >= times);
}

/// Moves the walker in the region at `HERE` to another dimension.
pub fn send_off(app: &mut App, from: DimensionId, to: Position) {
    in_region(app, from, HERE, move |region: &mut World| {
        let mut walker = region.query_filtered::<&mut Position, With<Walker>>().single_mut(region).unwrap();
        *walker = to;
    });
}

#[test]
fn a_despawned_dimension_is_saved_and_can_be_reopened_while_others_tick() {
    for plugin in [lockstep(), TerranePlugin::in_memory()] {
        let mut app = closing(plugin);
        let [first, other] = two_dimensions(&mut app);
        let stone = dig(&mut app, first);
        spawn_in_region(&mut app, first, HERE, walker("bob", 0.0));
        update_until(&mut app, "bob is there", |world| walkers(world).len() == 1);
        let entity = dimension_entity(app.world_mut(), first);
        despawn_dimension(&mut app, first);
        wait_closed(&mut app, 1);
        let closed = &heard::<DimensionClosed>(&app)[0];
        assert_eq!((closed.entity, closed.dimension, closed.name.as_str()), (entity, first, "overworld"));
        let published = app.world().resource::<PublishedColumns>();
        assert_eq!(published.iter().filter(|(dimension, _)| *dimension == first).count(), 0);
        assert_eq!(names(&mut app), [""; 0]);
        let before = region_at(app.world(), other, HERE.column()).unwrap().ticks;
        update_until(&mut app, "the other ticks on", |world| {
            region_at(world, other, HERE.column()).is_some_and(|region| region.ticks > before + 10)
        });
        let statistics = app.world().resource::<WorldStatistics>().clone();
        assert!(statistics.regions.iter().all(|region| region.dimension != first));

        let second = named(&mut app, "overworld");
        viewer(&mut app, second, 0.0, 0.0, 1);
        update_until(&mut app, "bob is back", |world| {
            walkers(world).len() == 1 && block_at(world, second, DUG) == Some(stone)
        });
        assert_eq!(second, first);
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
        // Orders from the same frame are carried out first.
        let block = id_of(app.world(), "terrane:stone");
        app.world_mut().write_message(SetBlock { dimension: first, position: DUG, block });
        despawn_dimension(&mut app, first);
        let paused = DimensionClock { paused: true, ..default() };
        let second = spawn_dimension(&mut app, (Dimension::new("overworld", Flat::new()), paused));
        viewer(&mut app, second, 0.0, 0.0, 1);
        // Until then the edit may only be predicted.
        wait_closed(&mut app, 1);
        update_until(&mut app, "it goes on", |world| block_at(world, second, DUG) == Some(block));
        assert!(heard::<DimensionFailed>(&app).is_empty());
        assert_eq!(heard::<DimensionClosed>(&app).len(), 1);
        let region = |world: &mut World| region_at(world, second, HERE.column());
        update_until(&mut app, "its clock is known too", |world| region(world).is_some_and(|region| region.paused));

        // A dimension that still waits for its name disappears without a trace.
        despawn_dimension(&mut app, second);
        let third = named(&mut app, "overworld");
        app.update();
        despawn_dimension(&mut app, third);
        wait_closed(&mut app, 2);
        update(&mut app, 20);
        let fourth = named(&mut app, "overworld");
        update_until(&mut app, "it is open", |world| is_open(world, fourth));
        assert!(heard::<DimensionFailed>(&app).is_empty());
    }
}

#[test]
fn viewers_of_regions_and_entities_in_transit_are_there_again_when_it_is_opened_again() {
    let mut app = closing(lockstep());
    let [first, _] = two_dimensions(&mut app);
    let far = BlockPos::new(16 * 100, 5, 0);
    spawn_in_region(&mut app, first, far, (walker("scout", 0.0), Viewer::new().with_radius(1)));
    // It leaves all loaded columns within a few ticks, and waits where nothing is loaded.
    spawn_in_region(&mut app, first, HERE, walker("runner", 40.0));
    update(&mut app, 30);
    assert_eq!(names(&mut app), ["runner", "scout"]);
    let place = walkers(app.world_mut())[0].1.block;
    assert_eq!(block_at(app.world_mut(), first, place), None);
    despawn_dimension(&mut app, first);
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

#[test]
fn an_entity_that_went_to_a_dimension_while_it_closed_or_was_closed_is_there_when_it_is_opened_again() {
    let far = BlockPos::new(16 * 100, 5, 0);
    for (leaves, reopens) in [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (0, 20), (10, 20), (20, 20)] {
        let mut app = closing(lockstep());
        let [first, other] = two_dimensions(&mut app);
        spawn_in_region(&mut app, other, HERE, (walker("scout", 0.0), Viewer::new().with_radius(1)));
        update(&mut app, 5);
        despawn_dimension(&mut app, first);
        let mut second = None;
        for frame in 0..=20 {
            if frame == leaves {
                send_off(&mut app, other, Position::new(first, far));
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
        assert_eq!(second, first);
        assert!(block_at(app.world_mut(), second, far).is_some(), "{case}: it holds its ground");
        assert!(heard::<DimensionFailed>(&app).is_empty());
    }
}

#[test]
fn letters_of_a_dimension_that_closes_come_back_or_are_reported() {
    use std::sync::mpsc::channel;
    let mut app = closing(lockstep());
    let [first, other] = two_dimensions(&mut app);
    let bob = uuid::Uuid::from_u128(7);
    app.world_mut().commands().spawn_in_region(first, HERE, (StableId(bob), walker("bob", 0.0)));
    update(&mut app, 3);
    let (sender, retired) = channel();
    app.world_mut()
        .commands()
        .run_in_region_after(first, HERE, 1_000, |_| panic!("not in this test"))
        .run_on_region_entity(bob, 1_000, |_| panic!("nor this"), move |_, reason| sender.send(reason).unwrap())
        // To columns that are not there yet.
        .send_to_place(first, BlockPos::new(9_000, 0, 0), Note(1));
    update(&mut app, 2);
    despawn_dimension(&mut app, first);
    app.update();
    // During and after the close, from the main world and from other regions.
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
    assert!(back.contains(&(1, Undeliverable::DimensionNotOpen(first))), "{back:?}");
    assert!(back.iter().any(|(number, _)| *number == 2) && back.iter().any(|(number, _)| *number == 3), "{back:?}");
    assert_eq!(back.len(), 3);
}

#[test]
fn a_dimension_closes_after_its_slow_region_and_with_a_halted_one() {
    fn misbehave(gate: Res<Gate>, walkers: Query<&Walker>) {
        for walker in &walkers {
            assert!(walker.name != "bomb", "a bomb went off");
            if walker.name == "slow" {
                gate.pass();
            }
        }
    }
    let mut app = closing(TerranePlugin::in_memory());
    let gate = Gate::default();
    let copy = gate.clone();
    app.add_region_plugins(move |region| {
        region.insert_resource(copy.clone()).add_systems(RegionTick, misbehave);
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
    // The letter waits for a restart that never comes.
    app.world_mut().commands().send_to_place(first, HERE, Note(1));
    let block = id_of(app.world(), "terrane:stone");
    let dug = BlockPos::new(far.x, 9, 0);
    app.world_mut().write_message(SetBlock { dimension: first, position: dug, block });
    update(&mut app, 2);
    gate.close();
    update_until(&mut app, "it ticks", |_| gate.waiting() == 1);
    despawn_dimension(&mut app, first);
    update(&mut app, 5);
    assert!(heard::<DimensionClosed>(&app).is_empty(), "it waits for its slow region");
    gate.open();
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
fn a_dimension_that_takes_the_place_of_another_on_its_entity_is_open_after_that_is_closed() {
    for plugin in [lockstep(), TerranePlugin::in_memory()] {
        for (name, generator) in [("another", Flat::new()), ("overworld", Flat::new())] {
            let mut app = closing(plugin.clone());
            let [first, _] = two_dimensions(&mut app);
            let entity = dimension_entity(app.world_mut(), first);
            app.world_mut().entity_mut(entity).remove::<Dimension>().insert(Dimension::new(name, generator));
            wait_closed(&mut app, 1);
            let again = app.world().resource::<Dimensions>().id(name);
            assert_eq!(again == first, name == "overworld");
            viewer(&mut app, again, 0.0, 0.0, 1);
            update_until(&mut app, "the new one is open", |world| {
                world.get::<DimensionOpen>(entity).is_some_and(|open| open.id == again)
                    && block_at(world, again, HERE).is_some()
            });
            update(&mut app, 30);
            assert_eq!(heard::<DimensionClosed>(&app).len(), 1);
            assert_eq!(dimension_entity(app.world_mut(), again), entity);
            assert!(heard::<DimensionFailed>(&app).is_empty());
        }
    }
}
