//! Clients see the entities around them, and move their own bodies at once.

use crate::support::session::{REMOTE, Session};
use crate::support::*;
use bevy_terrane::chunk_sync::{ChunkQuestions, SyncArea, SyncLimits};
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::SplitMix64;
use bevy_terrane::simulation::Steering;
use bevy_terrane::view::{ChunkSyncPeer, OwnStep};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const ANN: Uuid = Uuid::from_u128(0xa22);
const BOB: Uuid = Uuid::from_u128(0xb0b);

/// What everybody may know.
#[derive(Component, Clone, PartialEq, Debug, Serialize, Deserialize, TypePath)]
struct Coat(String);

/// What only the own client may know.
#[derive(Component, Clone, PartialEq, Debug, Serialize, Deserialize, TypePath)]
struct Bag(u32);

fn register(app: &mut App) {
    app.add_plugins(BodyPlugin)
        .register_saved_component::<Coat>()
        .replicate_region_component::<Coat>()
        .register_saved_component::<Bag>()
        .replicate_region_component_to_owner::<Bag>()
        .replicate_region_component::<Intent>()
        .register_action::<SetBlock>();
}

/// A server with Bob, and a client that acts for Ann.
fn session(plugin: TerranePlugin) -> Session {
    let mut server = game(plugin);
    register(&mut server);
    let dimension = flat(&mut server);
    viewer(&mut server, dimension, 0.0, 0.0, 3);
    start(&mut server);
    let limits = SyncLimits { bytes_per_second: u64::MAX >> 1, ..SyncLimits::default() };
    let peer = ChunkSyncPeer::new(dimension).with_limits(limits).untied().with_actor(ANN);
    let peer = server.world_mut().spawn(peer).id();
    let mut session = Session::start(server, dimension, peer, register);
    for (id, coat, x) in [(ANN, "red", 3), (BOB, "blue", 6)] {
        let entity = (StableId(id), Actor::default(), Coat(coat.into()), Bag(7));
        spawn_in_region(&mut session.server, dimension, BlockPos::new(x, 1, 3), entity);
    }
    session.run_until("both are there", |session| has(session, BOB) && has(session, ANN));
    session
}

fn shown(session: &Session, id: Uuid) -> Option<EntityRef<'_>> {
    let world = session.client.world();
    Some(world.entity(world.resource::<MirrorIndex>().entity(id)?))
}

fn has(session: &Session, id: Uuid) -> bool {
    shown(session, id).is_some()
}

/// Runs a closure on an entity in its region.
fn change(session: &mut Session, id: Uuid, change: impl FnOnce(&mut EntityWorldMut) + Send + 'static) {
    let world = session.server.world();
    let mirror = world.resource::<MirrorIndex>().entity(id).expect("it is mirrored");
    let Position { dimension, block, .. } = world.get::<Mirror>(mirror).unwrap().current.0;
    in_region(&mut session.server, dimension, block, move |region| {
        let entity = region.resource::<EntityIndex>().entity(id).expect("it is here");
        change(&mut region.entity_mut(entity));
    });
}

/// Promise, company: A client sees the entities around it as mirrors with the components that are for all, and each of their changes.
/// Promise, company: A component that is removed in the region is removed from the mirrors of the server and of clients.
#[test]
fn entities_come_change_and_go() {
    let mut session = session(lockstep());
    let bob = shown(&session, BOB).unwrap();
    assert_eq!(
        (bob.get::<Coat>(), bob.get::<Bag>()),
        (Some(&Coat("blue".into())), None),
        "a bag is nobody else's affair"
    );
    let ann = shown(&session, ANN).unwrap();
    assert_eq!((ann.get::<Coat>(), ann.get::<Bag>()), (Some(&Coat("red".into())), Some(&Bag(7))));
    let entity = bob.id();

    change(&mut session, BOB, |bob| {
        bob.insert((Coat("green".into()), Intent { look: Vec2::new(1.0, 0.5), ..Intent::default() }));
        let mut position = bob.get_mut::<Position>().unwrap();
        position.translate(Vec3::new(1.5, 0.0, 0.25));
    });
    session.run_until("all of it is seen", |session| {
        let bob = shown(session, BOB).unwrap();
        let place = bob.get::<Mirror>().unwrap().current.0;
        let mirror = session.server.world().resource::<MirrorIndex>().entity(BOB).unwrap();
        let there = session.server.world().get::<Mirror>(mirror).unwrap().current.0;
        let apart = place.relative_to(there.block).distance(there.offset);
        let look = bob.get::<Intent>().map_or(Vec2::ZERO, |intent| intent.look);
        bob.get::<Coat>() == Some(&Coat("green".into())) && apart < 0.01 && look.distance(Vec2::new(1.0, 0.5)) < 0.03
    });
    assert_eq!(shown(&session, BOB).unwrap().get::<Position>().unwrap().dimension, REMOTE);

    change(&mut session, BOB, |bob| _ = bob.remove::<Intent>());
    change(&mut session, ANN, |ann| _ = ann.remove::<Bag>());
    session.run_until("the bag is gone", |session| !shown(session, ANN).unwrap().contains::<Bag>());
    let server = session.server.world();
    let of_ann = server.resource::<MirrorIndex>().entity(ANN).unwrap();
    assert!(!server.entity(of_ann).contains::<Bag>() && server.entity(of_ann).contains::<Coat>());
    assert_eq!(shown(&session, BOB).unwrap().id(), entity, "the mirror is the same");

    change(&mut session, BOB, |bob| _ = bob.remove::<Coat>());
    session.run_until("nothing of Bob is for all", |session| !has(session, BOB));
    change(&mut session, BOB, |bob| _ = bob.insert(Coat("white".into())));
    session.run_until("Bob is back", |session| has(session, BOB));
    in_region(&mut session.server, session.dimension, BlockPos::new(6, 1, 3), |region| {
        let bob = region.resource::<EntityIndex>().entity(BOB).unwrap();
        region.despawn(bob);
    });
    session.run_until("Bob is gone", |session| !has(session, BOB));
}

/// Promise, company: A thread makes the messages of clients, so a frame of the server does not.
#[test]
fn a_thread_makes_the_messages_of_clients() {
    let mut session = session(TerranePlugin::in_memory());
    change(&mut session, BOB, |bob| bob.get_mut::<Position>().unwrap().translate(Vec3::new(1.5, 0.0, 0.25)));
    let (dimension, position) = (session.dimension, BlockPos::new(2, 9, 3));
    let block = id_of(session.server.world(), "terrane:stone");
    session.server.world_mut().write_message(SetBlock { dimension, position, block });
    session.run_until("the step and the block are seen", |session| {
        let place = shown(session, BOB).unwrap().get::<Mirror>().unwrap().current.0;
        let stone = id_of(session.client.world(), "terrane:stone");
        place.block == BlockPos::new(8, 1, 3) && session.shown(position) == Some(stone)
    });
    // It goes on while the frames of the server stand still: a client that looks elsewhere is told that Bob is out of sight.
    let port = session.peer().port().clone();
    port.take();
    let area = SyncArea { center: BlockPos::new(5_000, 0, 0).chunk(), radius: 1, vertical: 1 };
    port.receive(&ChunkQuestions { area, questions: Vec::new() }.encode()).unwrap();
    let began = std::time::Instant::now();
    while port.take().messages.is_empty() {
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "the thread says nothing");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Promise, company: An entity that crosses from region to region is never despawned on a client.
#[test]
fn who_crosses_regions_stays() {
    let mut session = session(TerranePlugin { regionizer: parting_soon(), ..lockstep() });
    let limits = SyncLimits { entity_radius: 64, bytes_per_second: u64::MAX >> 1, ..SyncLimits::default() };
    let peer = ChunkSyncPeer::new(session.dimension).with_limits(limits).untied().with_actor(ANN);
    let entity = shown(&session, BOB).unwrap().id();
    session.server.world_mut().entity_mut(session.peer).despawn();
    let peer = session.server.world_mut().spawn(peer).id();
    session.reconnect(peer);
    (0..60).for_each(|_| {
        session.step();
        assert!(has(&session, BOB), "not even while the connection is lost");
    });
    // A second region, which Bob visits.
    let there = 40 * 16;
    viewer(&mut session.server, session.dimension, there as f32, 0.0, 2);
    session.run_until("there are two regions", |session| {
        let (world, dimension) = (session.server.world(), session.dimension);
        let region = |x: i64| region_at(world, dimension, BlockPos::new(x, 0, 0).column()).map(|region| region.region);
        region(there).is_some() && region(there) != region(0)
    });
    for x in [there, 4, there + 3, 9] {
        change(&mut session, BOB, move |bob| {
            let dimension = bob.get::<Position>().unwrap().dimension;
            bob.insert(Position::new(dimension, BlockPos::new(x, 1, 3)));
        });
        session.run_until("Bob is there", |session| {
            assert_eq!(shown(session, BOB).map(|bob| bob.id()), Some(entity), "it is never despawned");
            shown(session, BOB).unwrap().get::<Mirror>().unwrap().current.0.block.x == x
        });
    }
}

/// Promise, company: At 200 ms and 5 % loss, the own body of a client is where the server has it after the same step.
#[test]
fn an_own_body_agrees_with_the_server_over_a_bad_line() {
    let mut session = session(lockstep());
    change(&mut session, ANN, |ann| _ = ann.insert((BlockBody::new(0.6, 1.8), CharacterController::default())));
    // 200 ms each way, at 20 steps a second.
    session.delay = 4;
    for link in &mut session.packets {
        (link.delay, link.jitter, link.loss, link.repeats) = (4, 2, 0.05, 0.02);
    }
    let body = session.client.world_mut().spawn(OwnBody::new(ANN)).id();
    session.run_until("the body is known", |session| {
        session.client.world().get::<OwnBody>(body).unwrap().state().is_some()
    });
    let mut random = SplitMix64::new(5);
    let (mut steps, mut wrong, mut moved) = (0, 0, 0.0_f32);
    // Where the client had the body after each step, and the last step that the server has made.
    let (mut places, mut made) = (std::collections::BTreeMap::<u32, Position>::new(), 0);
    for _ in 0..800 {
        let own = |session: &Session| session.client.world().get::<OwnBody>(body).unwrap().state().unwrap().position;
        if random.below(9) == 0 {
            let turn = random.unit() * std::f32::consts::TAU;
            let place = own(&session);
            let home = Vec3::new(8.0, 0.0, 8.0) - place.relative_to(BlockPos::new(0, place.block.y, 0));
            // It stays on the ground that the client sees.
            let direction = if home.length() > 4.0 { home.normalize() } else { Vec3::new(turn.cos(), 0.0, turn.sin()) };
            let jumps = random.below(5) == 0;
            *session.client.world_mut().get_mut::<Intent>(body).unwrap() =
                Intent { direction, jumps, look: Vec2::new(turn, 0.0), ..Intent::default() };
        }
        session.step();
        let place = own(&session);
        let sent = session.client.world().resource::<Messages<OwnStep>>();
        if let Some(step) = sent.iter_current_update_messages().last() {
            moved +=
                places.values().next_back().map_or(0.0, |last| place.relative_to(last.block).distance(last.offset));
            places.insert(step.step.number, place);
        }
        let mirror = session.server.world().resource::<MirrorIndex>().entity(ANN).unwrap();
        let there = session.server.world().get::<Steering>(mirror).and_then(Steering::state).copied();
        if let Some(there) = there.filter(|there| there.number > made)
            && let Some(place) = places.get(&there.number)
        {
            made = there.number;
            steps += 1;
            let apart = place.relative_to(there.state.position.block).distance(there.state.position.offset);
            wrong += usize::from(apart > 0.05);
        }
    }
    assert!(steps > 400, "the server makes the steps: {steps}");
    assert!(moved > 100.0, "it walks: {moved}");
    assert!(wrong * 100 < steps, "{wrong} of {steps} steps are off");
}
