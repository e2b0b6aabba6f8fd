//! Letters and entities on their way into a region, or between two, when that halts: they wait, come back, or are reported.

use crate::disk::Disk;
use crate::faults::*;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::Address;
use bevy_terrane::view::{
    Coupling, DimensionClosed, LetterLost, RegionDestroyed, RegionOrder, RegionRestarted, RegionSplit,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq)]
struct Note(u32);

/// The messages that regions read: received, or returned with a reason.
#[derive(Resource, Clone)]
struct Reader(Sender<(u32, Option<Undeliverable>)>);

fn read(mut received: MessageReader<Received<Note>>, mut returned: MessageReader<Returned<Note>>, reader: Res<Reader>) {
    received.read().for_each(|note| reader.0.send((note.message.0, None)).unwrap());
    returned.read().for_each(|note| reader.0.send((note.message.0, Some(note.reason))).unwrap());
}

type Read = Receiver<(u32, Option<Undeliverable>)>;

/// Two regions and a main world that read notes.
fn reading(plugin: TerranePlugin) -> (App, DimensionId, [Entity; 2], Armed, Read) {
    let (sender, receiver) = channel();
    let (app, dimension, viewers, armed) = two_regions_with(plugin, move |app| {
        app.register_region_message::<Note>().add_region_plugins(move |region| {
            region.insert_resource(Reader(sender.clone())).add_systems(RegionTick, read);
        });
        listen::<Returned<Note>>(app);
        listen::<LetterLost>(app);
        listen::<DimensionClosed>(app);
    });
    (app, dimension, viewers, armed, receiver)
}

fn read_all(app: &mut App, read: &Read, count: usize) -> Vec<(u32, Option<Undeliverable>)> {
    let mut found = Vec::new();
    update_until(app, "all is read", |_| {
        found.extend(read.try_iter());
        found.len() >= count
    });
    found
}

/// Promise, messages: Messages delivered in a tick that panics return or are reported, and others wait for the restart.
#[test]
fn letters_delivered_in_a_panicking_tick_are_reported_and_the_others_wait() {
    let (mut app, dimension, _, armed, read) =
        reading(TerranePlugin { clock: DimensionClock { ticks_per_second: 4.0, ..default() }, ..plugin() });
    let region = region_at(app.world(), dimension, HERE.column()).unwrap().region;
    let (sender, ran) = channel();
    let tell = |number: u32| {
        let sender = sender.clone();
        move |_: &mut World| sender.send(number).unwrap()
    };
    let [delayed, early, late] = [tell(1), tell(2), tell(3)];
    let position = BlockPos::new(3, 9, 3);
    let block = id_of(app.world(), "terrane:stone");
    app.world_mut()
        .commands()
        .run_in_region_after(dimension, HERE, 3, delayed)
        .send_to_place(dimension, HERE, Note(1))
        .run_in_region(dimension, HERE, early)
        .run_in_region(dimension, HERE, |_| panic!("a letter bomb"))
        .run_in_region(dimension, HERE, late)
        .send_to_place(dimension, HERE, Note(2));
    app.world_mut().write_message(SetBlock { dimension, position, block });
    wait_halted(&mut app, 1);
    armed.set(false);
    run_for(&mut app, Duration::from_millis(300));
    let halted = Undeliverable::Halted(region);
    let returned: Vec<_> = heard::<Returned<Note>>(&app).iter().map(|note| (note.message.0, note.reason)).collect();
    assert_eq!(returned, [(1, halted)], "its sender hears of it");
    let lost: Vec<_> = heard::<LetterLost>(&app).iter().map(|lost| lost.reason).collect();
    assert_eq!(lost, [halted; 2], "the closure that panicked, and the one before it");
    assert_eq!(ran.try_iter().collect::<Vec<_>>(), [2]);
    let refused: Vec<_> = heard::<BlockRefused>(&app).iter().map(|refused| refused.request.position).collect();
    assert_eq!(refused, [position]);

    restart(&mut app, dimension);
    assert_eq!(read_all(&mut app, &read, 1), [(2, None)]);
    let mut late = Vec::new();
    update_until(&mut app, "both ran", |_| {
        late.extend(ran.try_iter());
        late.len() == 2
    });
    assert_eq!(late, [3, 1]);
}

#[test]
fn a_system_that_panics_takes_no_letter_along_that_has_to_wait() {
    let (mut app, dimension, _, armed, read) = reading(plugin());
    let (sender, ran) = channel();
    let retired = sender.clone();
    let bob = Uuid::from_u128(7);
    spawn_in_region(&mut app, dimension, HERE, (walker("bob", 0.0), StableId(bob)));
    update_until(&mut app, "bob is there", |world| walkers(world).len() == 1);
    save(&mut app);
    app.world_mut()
        .commands()
        .run_in_region_after(dimension, HERE, 60, move |_| sender.send("ran").unwrap())
        .run_on_region_entity(
            bob,
            60,
            move |bob| assert_eq!(bob.get::<Walker>().unwrap().name, "bob"),
            move |_, reason| panic!("{reason}"),
        );
    run_for(&mut app, Duration::from_millis(200));
    bomb(&mut app, dimension);
    armed.set(false);
    app.world_mut().commands().run_on_region_entity(bob, 0, |_| {}, move |_, _| retired.send("gone").unwrap());
    update_until(&mut app, "nobody is there now", |_| ran.try_recv() == Ok("gone"));
    restart(&mut app, dimension);
    update_until(&mut app, "the closure ran", |_| ran.try_recv() == Ok("ran"));
    run_for(&mut app, Duration::from_millis(300));
    assert_eq!(heard::<RegionHalted>(&app).len(), 1, "the one for bob found him");
    assert!(heard::<LetterLost>(&app).iter().all(|lost| matches!(lost.reason, Undeliverable::Halted(_))));
    assert_eq!(read.try_iter().count(), 0);
}

#[test]
fn letters_from_a_coupled_region_come_back_or_wait() {
    for (from, to) in [(HERE, THERE), (THERE, HERE)] {
        let (mut app, dimension, _, _, read) = reading(plugin());
        app.world_mut().spawn(Coupling { ends: [(dimension, HERE), (dimension, THERE)] });
        update(&mut app, 5);
        let region = region_at(app.world(), dimension, to.column()).unwrap().region;
        in_region(&mut app, dimension, from, move |region| {
            let mut post = region.resource_mut::<Post>();
            post.send(Address::Place(dimension, to), Note(1));
            post.run_at(to, 0, |_| panic!("a letter bomb"));
            post.send(Address::Place(dimension, to), Note(2));
        });
        wait_halted(&mut app, 1);
        assert_eq!(read_all(&mut app, &read, 1), [(1, Some(Undeliverable::Halted(region)))]);
        let count = heard::<RegionRestarted>(&app).len();
        order(&mut app, dimension, to.column(), RegionOrder::Restart);
        update_until(&mut app, "it began again", |world| world.resource::<Heard<RegionRestarted>>().0.len() > count);
        assert_eq!(read_all(&mut app, &read, 1), [(2, None)]);
    }
}

/// Panics when an entity arrives.
fn refuse_arrivals(app: &mut App, armed: Arc<AtomicBool>) {
    app.add_region_plugins(move |region| {
        let armed = armed.clone();
        region.world_mut().add_observer(move |moved: On<EntityMoved>, places: Query<&Position>| {
            let is_here = places.get(moved.entity).is_ok_and(|place| place.block.x < 1_000);
            assert!(!is_here || !armed.load(Ordering::SeqCst), "nobody is welcome here");
        });
    });
}

#[test]
fn letters_to_an_entity_that_arrives_in_a_panicking_tick_reach_it_after_the_restart() {
    let armed = Arc::new(AtomicBool::new(true));
    let (sender, read) = channel();
    let trap = armed.clone();
    let (mut app, dimension, ..) = two_regions_with(plugin(), move |app| {
        refuse_arrivals(app, trap);
        app.register_region_message::<Note>().add_region_plugins(move |region| {
            region.insert_resource(Reader(sender.clone())).add_systems(RegionTick, self::read);
        });
    });
    let [saved, unsaved] = [8, 9].map(Uuid::from_u128);
    spawn_in_region(&mut app, dimension, THERE, (walker("saved", 0.0), StableId(saved)));
    spawn_in_region(&mut app, dimension, THERE, StableId(unsaved));
    update_until(&mut app, "it is there", |world| walkers(world).len() == 1);
    in_region(&mut app, dimension, THERE, move |region| {
        let mut places = region.query::<(&StableId, &mut Position)>();
        for (_, mut place) in places.iter_mut(region).filter(|(id, _)| [saved, unsaved].contains(&id.0)) {
            place.block = HERE;
        }
        let mut post = region.resource_mut::<Post>();
        post.send(Address::Entity(saved), Note(1));
    });
    wait_halted(&mut app, 1);
    armed.store(false, Ordering::SeqCst);
    // It was never saved, so it does not come back, and the message returns to its sender.
    in_region(&mut app, dimension, THERE, move |region| {
        region.resource_mut::<Post>().send(Address::Entity(unsaved), Note(2));
    });
    let gone = Undeliverable::NoSuchEntity(unsaved);
    assert_eq!(read_all(&mut app, &read, 1), [(2, Some(gone))]);
    restart(&mut app, dimension);
    assert_eq!(read_all(&mut app, &read, 1), [(1, None)]);
    update_until(&mut app, "it arrived", |world| is_at(world, "saved", HERE));
}

#[test]
fn the_columns_of_a_saved_viewer_stay_and_those_of_an_unsaved_one_unload() {
    for is_saved in [false, true] {
        let (mut app, dimension, [here, _], armed) = two_regions(plugin());
        let region = region_at(app.world(), dimension, HERE.column()).unwrap().region;
        spawn_in_region(&mut app, dimension, HERE, (walker("guest", 0.0), Viewer::new().with_radius(1)));
        update_until(&mut app, "it is there", |world| walkers(world).len() == 1);
        if is_saved {
            save(&mut app);
        }
        app.world_mut().despawn(here);
        run_for(&mut app, Duration::from_millis(200));
        spawn_in_region(&mut app, dimension, HERE, walker("bomb", 0.0));
        update_until(&mut app, "it halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
        armed.set(false);
        let is_gone =
            move |world: &World| world.resource::<Heard<RegionDestroyed>>().0.iter().any(|gone| gone.region == region);
        if is_saved {
            run_for(&mut app, Duration::from_millis(300));
            assert!(!is_gone(app.world()));
            restart(&mut app, dimension);
            update_until(&mut app, "it is back", |world| is_at(world, "guest", HERE));
        } else {
            update_until(&mut app, "its ground is gone", |world| is_gone(world));
        }
    }
}

/// Loads a column in each tick on request, and reports its content.
#[derive(Resource, Clone)]
struct Loader {
    is_on: Arc<AtomicBool>,
    found: Sender<BlockId>,
}

const SAVED: BlockPos = BlockPos::new(2, 9, 2);
const DUG: BlockPos = BlockPos::new(4, 9, 2);

fn load(loader: Res<Loader>, mut blocks: RegionBlocks) -> Result {
    if loader.is_on.load(Ordering::SeqCst) && blocks.is_owned(SAVED) && !blocks.contains(SAVED) {
        blocks.load(SAVED)?;
        loader.found.send(blocks.block(SAVED)?)?;
        blocks.set_block(DUG, blocks.block(SAVED)?)?;
    }
    Ok(())
}

#[test]
fn a_column_fetched_from_a_halted_region_has_its_pending_save() {
    let disk = Disk::default();
    let (found, seen) = channel();
    let loader = Loader { is_on: Arc::default(), found };
    let copy = loader.clone();
    let plugin = TerranePlugin { saving: SaveSettings::every(Duration::from_secs(3_600)), ..disk.plugin() };
    let (mut app, dimension, _, armed) = two_regions_with(plugin, move |app| {
        listen::<SaveFailed>(app);
        app.add_region_plugins(move |region| {
            region.insert_resource(copy.clone()).add_systems(RegionTick, load);
        });
    });
    save(&mut app);
    set(&mut app, dimension, SAVED, "terrane:stone");
    disk.set_full(true);
    app.world_mut().write_message(SaveWorld { request: 9 });
    update_until(&mut app, "it is handed out", |world| !world.resource::<Heard<SaveFailed>>().0.is_empty());
    bomb(&mut app, dimension);
    armed.set(false);
    loader.is_on.store(true, Ordering::SeqCst);
    let stone = id_of(app.world(), "terrane:stone");
    order(&mut app, dimension, HERE.column(), RegionOrder::Restart);
    update_until(&mut app, "it is fetched", |_| seen.try_recv().is_ok_and(|block| block == stone));
    disk.set_full(false);
    update_until(&mut app, "all is there", |world| block_at(world, dimension, DUG) == Some(stone));
    run_for(&mut app, Duration::from_millis(300));
    assert_eq!(block_at(app.world_mut(), dimension, DUG), Some(stone), "what is read again is not newer");
    assert_eq!(block_at(app.world_mut(), dimension, SAVED), Some(stone));
    assert_eq!(heard::<RegionHalted>(&app).len(), 1);
}

/// Panics when an entity of the game is removed from a region's world, or only when it moves to another one.
fn refuse_departures(app: &mut App, armed: Arc<AtomicBool>) {
    app.add_region_plugins(move |region| {
        let armed = armed.clone();
        region.world_mut().add_observer(move |_: On<Remove, Walker>, migration: Option<Res<Moving>>| {
            assert!(migration.is_none() || !armed.load(Ordering::SeqCst), "nobody leaves");
        });
    });
}

#[test]
fn a_panic_in_a_save_without_a_tick_halts_only_that_region_and_keeps_the_last_save() {
    let armed = Arc::<AtomicBool>::default();
    let trap = armed.clone();
    let (mut app, dimension, [here, _], bombs) = two_regions_with(plugin(), |app| refuse_departures(app, trap));
    bombs.set(false);
    set(&mut app, dimension, SAVED, "terrane:stone");
    spawn_in_region(&mut app, dimension, HERE, walker("bob", 0.0));
    update_until(&mut app, "bob is there", |world| walkers(world).len() == 1);
    save(&mut app);
    order(&mut app, dimension, HERE.column(), RegionOrder::Pause);
    update_until(&mut app, "it is paused", |world| region_at(world, dimension, HERE.column()).unwrap().paused);
    let (sender, ran) = channel();
    // Not to bob's own column, because the letter would keep it loaded.
    in_region(&mut app, dimension, BlockPos::new(16, 5, 0), move |_| sender.send(()).unwrap());
    run_for(&mut app, Duration::from_millis(100));
    armed.store(true, Ordering::SeqCst);
    // Its columns are evicted in a task without a tick.
    app.world_mut().despawn(here);
    update_until(&mut app, "it halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
    assert_eq!(heard::<RegionHalted>(&app)[0].fault.reason, "nobody leaves");
    armed.store(false, Ordering::SeqCst);
    let before = region_at(app.world(), dimension, THERE.column()).unwrap().ticks;
    update_until(&mut app, "the other ticks on", |world| {
        region_at(world, dimension, THERE.column()).is_some_and(|region| region.ticks > before + 5)
    });
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    update_until(&mut app, "it is gone or halted", |world| {
        region_at(world, dimension, HERE.column()).is_none_or(|region| region.halted)
    });
    if region_at(app.world(), dimension, HERE.column()).is_some() {
        order(&mut app, dimension, HERE.column(), RegionOrder::Restart);
        order(&mut app, dimension, HERE.column(), RegionOrder::Resume);
    }
    let stone = id_of(app.world(), "terrane:stone");
    update_until(&mut app, "all is back", |world| {
        is_at(world, "bob", HERE) && block_at(world, dimension, SAVED) == Some(stone)
    });
    drop(ran);
}

#[test]
fn a_panic_of_an_observer_in_a_split_loses_nothing() {
    let armed = Arc::<AtomicBool>::default();
    let trap = armed.clone();
    let (mut app, dimension, viewers, bombs) =
        two_regions_with(TerranePlugin { regionizer: parting_soon(), ..plugin() }, |app| refuse_departures(app, trap));
    bombs.set(false);
    listen::<RegionSplit>(&mut app);
    // A viewer between them merges the two.
    let east = BlockPos::new(16 * 40, 5, 0);
    move_viewer(&mut app, viewers[1], east.x as f32, 0.0);
    let bridge = viewer(&mut app, dimension, 16.0 * 20.0, 0.0, 19);
    update_until(&mut app, "they are one", |world| {
        let regions = &world.resource::<WorldStatistics>().regions;
        regions.len() == 1 && block_at(world, dimension, east).is_some()
    });
    spawn_in_region(&mut app, dimension, HERE, walker("west", 0.0));
    spawn_in_region(&mut app, dimension, east, walker("east", 0.0));
    update_until(&mut app, "both are there", |world| walkers(world).len() == 2);
    armed.store(true, Ordering::SeqCst);
    app.world_mut().despawn(bridge);
    update_until(&mut app, "it halted", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
    armed.store(false, Ordering::SeqCst);
    assert!(!heard::<RegionSplit>(&app).is_empty(), "{:?}", heard::<RegionHalted>(&app));
    update_until(&mut app, "the statistics know it", |world| {
        let statistics = world.resource::<WorldStatistics>();
        statistics.regions.len() == 2 && statistics.regions.iter().any(|region| region.halted)
    });
    for place in [HERE, east] {
        if region_at(app.world(), dimension, place.column()).unwrap().halted {
            order(&mut app, dimension, place.column(), RegionOrder::Restart);
        }
    }
    update_until(&mut app, "both are there again", |world| is_at(world, "west", HERE) && is_at(world, "east", east));
    assert_eq!(names(&mut app).len(), 2);
}

#[test]
fn letters_of_a_regions_last_task_are_delivered() {
    let (mut app, dimension, ..) = two_regions(plugin());
    clock(&mut app, dimension, DimensionClock { paused: true, ..default() });
    update_until(&mut app, "it is paused", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.paused)
    });
    let (sender, ran) = channel();
    for (from, to) in [(HERE, THERE), (THERE, HERE)] {
        let sender = sender.clone();
        in_region(&mut app, dimension, from, move |region| {
            region.resource_mut::<Post>().run_at(to, 0, move |region: &mut World| {
                let back = sender.clone();
                sender.send(1).unwrap();
                region.resource_mut::<Post>().run_at(from, 0, move |_: &mut World| back.send(2).unwrap());
            });
        });
    }
    update(&mut app, 5);
    drop(app);
    let mut ran: Vec<_> = ran.try_iter().collect();
    ran.sort_unstable();
    assert_eq!(ran, [1, 1, 2, 2]);
}

#[test]
fn letters_that_return_to_a_destroyed_region_are_reported() {
    let (mut app, dimension, _, _, _read) = reading(plugin());
    clock(&mut app, dimension, DimensionClock { paused: true, ..default() });
    update_until(&mut app, "it is paused", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.paused)
    });
    let nobody = Uuid::from_u128(404);
    in_region(&mut app, dimension, HERE, move |region| {
        region.resource_mut::<Post>().send(Address::Entity(nobody), Note(1));
    });
    // The closure was sent before the save, so it waits in the region by then, and runs in its last task.
    save(&mut app);
    despawn_dimension(&mut app, dimension);
    update_until(&mut app, "it is closed", |world| !world.resource::<Heard<DimensionClosed>>().0.is_empty());
    update(&mut app, 5);
    let lost: Vec<_> = heard::<LetterLost>(&app).iter().map(|lost| (lost.what, lost.to, lost.reason)).collect();
    let gone = Undeliverable::NoSuchEntity(nobody);
    assert_eq!(lost, [(std::any::type_name::<Note>(), Address::Entity(nobody), gone)]);
}

#[test]
fn an_unsaved_entity_that_walks_into_a_halted_region_revives_with_the_live_one() {
    let (mut app, dimension, [_, walking], armed) = two_regions(plugin());
    bomb(&mut app, dimension);
    armed.set(false);
    let kept = Arc::new(Mutex::new(0));
    spawn_in_region(&mut app, dimension, THERE, walker("unsaved", 0.0));
    update_until(&mut app, "it is there", |world| is_at(world, "unsaved", THERE));
    // Its columns stay held while the viewer approaches the halted region, column by column.
    viewer(&mut app, dimension, THERE.x as f32, 0.0, 1);
    for column in (4..200).rev().step_by(3) {
        move_viewer(&mut app, walking, 16.0 * column as f32, 0.0);
        viewer(&mut app, dimension, 16.0 * column as f32, 0.0, 1);
        run_for(&mut app, Duration::from_millis(20));
    }
    update_until(&mut app, "they are one", |world| {
        let regions = &world.resource::<WorldStatistics>().regions;
        regions.len() == 1 && !regions[0].halted
    });
    assert!(is_at(app.world_mut(), "unsaved", THERE));
    let seen = kept.clone();
    in_region(&mut app, dimension, THERE, move |region| {
        *seen.lock().unwrap() = region.query::<&Walker>().iter(region).count();
    });
    update_until(&mut app, "it is looked after", |_| *kept.lock().unwrap() == 1);
}
