//! Messages and closures reach the owner of their target, once and in order, during merges and splits too.

use crate::support::*;
use bevy_terrane::plugin::LetterLimits;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::Address;
use bevy_terrane::view::{LetterLost, RegionMerged, RegionSplit};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// A numbered message; each sender counts its own.
#[derive(Clone, Debug, PartialEq)]
struct Note {
    sender: u32,
    number: u32,
}

/// The arrivals: the messages that each target received, in order, and the returned ones.
#[derive(Resource, Clone, Default)]
struct Ledger(Arc<Mutex<Records>>);

#[derive(Default)]
struct Records {
    received: Vec<(Address, Option<Uuid>, Note)>,
    returned: Vec<(Note, Undeliverable)>,
}

fn keep_ledger(
    mut received: MessageReader<Received<Note>>,
    mut returned: MessageReader<Returned<Note>>,
    ids: Query<&StableId>,
    ledger: Res<Ledger>,
) {
    let mut records = ledger.0.lock().unwrap();
    for note in received.read() {
        let id = note.entity.and_then(|entity| ids.get(entity).ok()).map(|id| id.0);
        records.received.push((note.to, id, note.message.clone()));
    }
    records.returned.extend(returned.read().map(|note| (note.message.clone(), note.reason)));
}

/// A game whose regions record what they receive; the main world has a ledger of its own.
fn talking(plugin: TerranePlugin) -> (App, Ledger, Ledger) {
    let (regions, main) = (Ledger::default(), Ledger::default());
    let mut app = game(plugin);
    let ledger = regions.clone();
    app.register_region_message::<Note>()
        .insert_resource(main.clone())
        .add_systems(Update, keep_ledger)
        .add_region_plugins(move |region| {
            region.insert_resource(ledger.clone()).add_systems(RegionTick, keep_ledger);
        });
    (app, regions, main)
}

fn note(sender: u32, number: u32) -> Note {
    Note { sender, number }
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

const THERE: BlockPos = BlockPos::new(16 * 100, 5, 0);

/// Two regions far apart.
fn two_regions(app: &mut App) -> DimensionId {
    let dimension = flat(app);
    viewer(app, dimension, 0.0, 0.0, 2);
    viewer(app, dimension, THERE.x as f32, 0.0, 2);
    start(app);
    update(app, 20);
    dimension
}

/// Promise, messages: A region or the main world can send a message to an entity, and an undeliverable message returns.
/// Promise, messages: A region can send a message to the main world.
#[test]
fn a_region_talks_to_a_place_an_entity_the_main_world_and_all_regions() {
    let (mut app, regions, main) = talking(lockstep());
    let dimension = two_regions(&mut app);
    app.world_mut().commands().spawn_in_region(dimension, THERE, (StableId(id(7)), walker("ann", 0.0)));
    update(&mut app, 3);
    in_region(&mut app, dimension, HERE, |region| {
        let dimension = region.resource::<RegionInfo>().dimension;
        let mut post = region.resource_mut::<Post>();
        post.send(Address::Place(dimension, THERE), note(1, 1));
        post.send(Address::Entity(id(7)), note(1, 2));
        post.send(Address::Main, note(1, 3));
        post.send(Address::Regions(Some(dimension)), note(1, 4));
    });
    update(&mut app, 4);
    let records = regions.0.lock().unwrap();
    let numbers = |number: u32| records.received.iter().filter(|(.., note)| note.number == number).count();
    assert_eq!([numbers(1), numbers(2), numbers(3), numbers(4)], [1, 1, 0, 2]);
    let to_ann = records.received.iter().find(|(.., note)| note.number == 2).unwrap();
    assert_eq!(to_ann.1, Some(id(7)));
    let main = main.0.lock().unwrap();
    assert_eq!(main.received, [(Address::Main, None, note(1, 3))]);
}

/// Promise, first game: An entity that the main world spawns at a place is spawned in the region that owns the place.
/// Promise, travel: A `StableId` finds an entity again after it has travelled.
/// Promise, messages: A region or the main world can send a message to all regions.
/// Promise, messages: `Post::run_on` runs a closure on an entity, or calls `retired` if the entity is gone.
#[test]
fn the_main_world_sends_all_kinds_of_letters_and_spawns_in_regions() {
    let (mut app, regions, _) = talking(lockstep());
    let dimension = two_regions(&mut app);
    let mut commands = app.world_mut().commands();
    commands
        .spawn_in_region(dimension, THERE, (StableId(id(7)), walker("ann", 0.0)))
        .send_to_place(dimension, HERE, note(0, 1))
        .send_to_regions(None, note(0, 2));
    app.world_mut().flush();
    update(&mut app, 3);
    assert_eq!(walkers(app.world_mut()).len(), 1);
    let ran = Arc::new(Mutex::new(0));
    let run = ran.clone();
    let mut commands = app.world_mut().commands();
    commands.send_to_entity(id(7), note(0, 3)).run_on_region_entity(
        id(7),
        2,
        move |ann| *run.lock().unwrap() += ann.get::<Walker>().unwrap().name.len(),
        |_, reason| panic!("{reason}"),
    );
    app.world_mut().flush();
    update(&mut app, 6);
    assert_eq!(*ran.lock().unwrap(), 3);
    app.world_mut().commands().despawn_in_region(id(7));
    update(&mut app, 4);
    assert!(walkers(app.world_mut()).is_empty());
    let received = &regions.0.lock().unwrap().received;
    let mut numbers: Vec<_> = received.iter().map(|(.., note)| note.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 2, 3]);
}

/// Promise, messages: A region or the main world can send a message to an entity, and an undeliverable message returns.
/// Promise, messages: `Post::run_on` runs a closure on an entity, or calls `retired` if the entity is gone.
#[test]
fn undeliverable_messages_return_to_their_sender() {
    let (mut app, regions, main) = talking(lockstep());
    let dimension = two_regions(&mut app);
    in_region(&mut app, dimension, HERE, |region| {
        let nowhere = DimensionId(99);
        let mut post = region.resource_mut::<Post>();
        post.send(Address::Entity(id(404)), note(1, 1));
        post.send(Address::Place(nowhere, HERE), note(1, 2));
        post.run_on(
            id(404),
            0,
            |_| panic!("there is no such entity"),
            |region, reason| {
                let ledger = region.resource::<Ledger>().clone();
                ledger.0.lock().unwrap().returned.push((note(1, 3), reason));
            },
        );
    });
    app.world_mut().commands().send_to_entity(id(404), note(0, 4));
    update(&mut app, 6);
    let gone = Undeliverable::NoSuchEntity(id(404));
    let mut returned = regions.0.lock().unwrap().returned.clone();
    returned.sort_by_key(|(note, _)| note.number);
    let not_open = Undeliverable::DimensionNotOpen(DimensionId(99));
    assert_eq!(returned, [(note(1, 1), gone), (note(1, 2), not_open), (note(1, 3), gone)]);
    assert_eq!(main.0.lock().unwrap().returned, [(note(0, 4), gone)]);
}

/// Promise, messages: Messages beyond a sender's limit return, so no sender can fill the memory.
#[test]
fn a_sender_of_too_many_letters_has_the_rest_back() {
    let limits = LetterLimits { sender_bytes: 64 << 10, ..LetterLimits::default() };
    let (mut app, regions, main) =
        talking(TerranePlugin { limits: Limits { letters: limits, ..default() }, ..lockstep() });
    let dimension = two_regions(&mut app);
    for round in 0..3 {
        in_region(&mut app, dimension, HERE, move |region| {
            let mut post = region.resource_mut::<Post>();
            (0..2_000).for_each(|number| post.send(Address::Main, note(round, number)));
        });
        update(&mut app, 4);
    }
    let (received, returned) = (&main.0.lock().unwrap().received, &regions.0.lock().unwrap().returned);
    assert!(returned.iter().all(|(_, reason)| *reason == Undeliverable::TooManyLetters));
    for round in 0..3 {
        let arrived = received.iter().map(|(.., note)| note).filter(|note| note.sender == round);
        let back = returned.iter().map(|(note, _)| note).filter(|note| note.sender == round);
        let (arrived, back): (Vec<_>, Vec<_>) = (arrived.collect(), back.collect());
        // Each time the first ones are sent, as far as there is room, and none is lost.
        assert!((150..600).contains(&arrived.len()), "{} in round {round}", arrived.len());
        assert!(arrived.iter().chain(&back).map(|note| note.number).eq(0..2_000));
    }
}

/// Promise, messages: `Post::run_at` runs a closure at a place, after a delay.
#[test]
fn a_delayed_closure_waits_for_its_tick_and_one_lost_at_an_unload_is_reported() {
    let (mut app, regions, _) = talking(lockstep());
    listen::<LetterLost>(&mut app);
    let dimension = flat(&mut app);
    let camera = viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    in_region(&mut app, dimension, HERE, |region| {
        let mut post = region.resource_mut::<Post>();
        for (number, delay) in [(1, 8), (2, 3), (3, 3), (4, 1_000)] {
            post.run_at(HERE, delay, move |region: &mut World| {
                let tick = region.resource::<RegionInfo>().ticks as u32;
                let ledger = region.resource::<Ledger>().clone();
                ledger.0.lock().unwrap().returned.push((note(tick, number), Undeliverable::NoSuchEntity(id(0))));
            });
        }
    });
    update(&mut app, 20);
    let ran: Vec<_> = regions.0.lock().unwrap().returned.iter().map(|(note, _)| (note.number, note.sender)).collect();
    let first = ran[0].1;
    assert_eq!(ran, [(2, first), (3, first), (1, first + 5)]);
    move_viewer(&mut app, camera, 5_000.0, 0.0);
    update(&mut app, 20);
    let lost = heard::<LetterLost>(&app);
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].reason, Undeliverable::Unloaded(HERE.column()));
}

/// Promise, messages: A message whose type was not registered is an early error that names the type.
#[test]
fn a_message_type_that_was_not_registered_is_an_early_error() {
    #[derive(Clone)]
    struct Unheard;
    let mut app = game(TerranePlugin::in_memory());
    listen::<RegionHalted>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    in_region(&mut app, dimension, HERE, |region| region.resource_mut::<Post>().send(Address::Main, Unheard));
    update_until(&mut app, "the region halts", |world| !world.resource::<Heard<RegionHalted>>().0.is_empty());
    let reason = heard::<RegionHalted>(&app)[0].fault.reason.clone();
    assert!(reason.contains("Unheard") && reason.contains("register_region_message"), "{reason}");
}

/// Makes entities jump about while messages are sent to them.
fn jump(mut random: ResMut<RegionRandom>, mut walkers: Query<&mut Position, With<Walker>>) {
    for mut position in &mut walkers {
        if random.0.below(10) == 0 {
            let mut place = || i64::from(random.0.below(AREA * 16)) - i64::from(AREA * 8);
            *position = Position::new(position.dimension, BlockPos::new(place(), 5, place()));
        }
    }
}

/// Each entity writes to the others and to some places, and numbers its messages to each.
#[derive(Component, Clone, Default)]
struct Pen(BTreeMap<u128, u32>);

fn write(mut post: ResMut<Post>, mut random: ResMut<RegionRandom>, mut pens: Query<(&StableId, &mut Pen)>) {
    let mut pens: Vec<_> = pens.iter_mut().collect();
    pens.sort_by_key(|(id, _)| id.0);
    for (from, mut pen) in pens {
        let target = u128::from(random.0.below(ENTITIES as u32));
        let number = pen.0.entry(target).or_default();
        *number += 1;
        let to = match target {
            // Some targets are places that are loaded and evicted all the time.
            0..4 => {
                let x = target as i64 * 100 - 200;
                Address::Place(DimensionId(0), BlockPos::new(x, 0, 0))
            }
            _ => Address::Entity(id(target)),
        };
        let sender = from.0.as_u128() as u32;
        post.send(to, Note { sender: sender * 1_000 + target as u32, number: *number });
    }
}

const ENTITIES: u128 = 16;
/// The width of the area in which they jump about, in columns.
const AREA: u32 = 100;

/// Promise, messages: Messages arrive in order before the target region's next tick, through merges, splits and journeys.
#[test]
fn messages_arrive_once_and_in_order_across_merges_splits_and_journeys() {
    let seeds = rounds(3);
    let (mut changes, mut arrived) = (0, 0);
    for seed in 0..seeds {
        let (mut app, regions, _) = talking(TerranePlugin { seed, regionizer: parting_soon(), ..lockstep() });
        app.register_region_component::<Pen>().add_region_plugins(|region| {
            region.add_systems(RegionTick, (jump, write).chain());
        });
        listen::<RegionMerged>(&mut app);
        listen::<RegionSplit>(&mut app);
        let dimension = flat(&mut app);
        let viewers: Vec<_> = (0..3).map(|_| viewer(&mut app, dimension, 0.0, 0.0, 2)).collect();
        start(&mut app);
        update(&mut app, 20);
        for number in 4..ENTITIES {
            let bundle = (StableId(id(number)), walker("", 0.0), Pen::default(), Viewer::new().with_radius(1));
            app.world_mut().commands().spawn_in_region(dimension, HERE, bundle);
        }
        let mut random = bevy_terrane::simulation::SplitMix64::new(seed);
        for step in 0..300 {
            if step % 15 == 0 {
                for viewer in &viewers {
                    let mut place = || (i64::from(random.below(AREA)) - i64::from(AREA / 2)) as f32 * 16.0;
                    let mut transform = app.world_mut().get_mut::<Transform>(*viewer).unwrap();
                    (transform.translation.x, transform.translation.z) = (place(), place());
                }
            }
            app.update();
        }
        changes += heard::<RegionMerged>(&app).len() + heard::<RegionSplit>(&app).len();
        let records = regions.0.lock().unwrap();
        let mut last: BTreeMap<u32, u32> = BTreeMap::new();
        for (to, entity, Note { sender, number }) in &records.received {
            let before = last.insert(*sender, *number).unwrap_or_default();
            assert_eq!(*number, before + 1, "seed {seed}: from {} to {to}", sender / 1_000);
            if let Address::Entity(id) = to {
                assert_eq!(*entity, Some(*id));
            }
        }
        arrived += records.received.len();
        // Every entity exists at all times.
        assert_eq!(records.returned, [], "seed {seed}");
    }
    assert!(changes as u64 > 10 * seeds, "regions merged and split only {changes} times");
    assert!(arrived as u64 > 2_000 * seeds, "only {arrived} messages arrived");
}
