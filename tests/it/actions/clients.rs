//! Clients of a server act: they see the result at once, and the server does it once.

use super::*;
use crate::disk::Disk;
use crate::support::session::{REMOTE, Session};
use bevy_terrane::chunk_sync::SyncLimits;
use bevy_terrane::view::ChunkSyncPeer;

fn server(plugin: TerranePlugin) -> (App, DimensionId, Entity) {
    let (mut server, dimension) = world(plugin);
    let peer = connect(&mut server, dimension);
    (server, dimension, peer)
}

fn connect(server: &mut App, dimension: DimensionId) -> Entity {
    let limits = SyncLimits { bytes_per_second: u64::MAX >> 1, edits_per_second: 1_000, ..SyncLimits::default() };
    let peer = ChunkSyncPeer::new(dimension).with_limits(limits).untied().with_actor(ANN);
    server.world_mut().spawn(peer).id()
}

impl Session {
    fn of_ann() -> Self {
        Self::of_ann_on(lockstep())
    }

    /// A client that acts for Ann, on a new server.
    fn of_ann_on(plugin: TerranePlugin) -> Self {
        let (mut server, dimension, peer) = server(plugin);
        spawn_in_region(&mut server, dimension, HERE, (StableId(ANN), Actor::default(), Bag(0)));
        update(&mut server, 40);
        let mut session = Self::start(server, dimension, peer, |client| {
            register_chest(client);
            client
                .register_saved_component::<Bag>()
                .replicate_region_component_to_owner::<Bag>()
                .register_action::<Dig>()
                .register_action::<Build>()
                .register_action::<Drop>()
                .register_action::<Unknown>()
                .register_action::<Long>();
            listen::<ActionAnswer>(client);
        });
        session.run_until("Ann is there", |session| mirror(session.client.world(), ANN).is_some());
        session
    }

    fn act(&mut self, action: impl Action) -> ActionId {
        act(&mut self.client, ANN, action)
    }

    fn outcome_of(&mut self, action: ActionId) -> ActionOutcome {
        self.run_until("the action is decided", |session| !outcomes(&session.client, action).is_empty());
        outcomes(&self.client, action)[0].clone()
    }
}

/// Returns `true` if Ann is mirrored, and has so many blocks.
fn has_bag(app: &App, blocks: u32) -> bool {
    mirror(app.world(), ANN).is_some_and(|ann| ann.get::<Bag>() == Some(&Bag(blocks)))
}

/// Is too large for a message.
#[derive(Serialize, Deserialize, TypePath)]
struct Long(Vec<u8>);

impl Action for Long {
    fn apply(&self, _: &mut ActionContext) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Promise, actions: A client sees blocks and components of its actions at once. In each frame they fit together, at 0 to 300 ms of delay.
#[test]
fn a_client_sees_its_actions_at_once_and_nothing_flickers() {
    let mut session = Session::of_ann();
    let mut random = noise(11);
    let places: Vec<BlockPos> = (0..6).flat_map(|x| (0..4).map(move |z| top(x, z))).collect();
    let stones =
        |session: &Session| places.iter().filter(|place| session.shown(**place) != Some(BlockId::AIR)).count() as u32;
    // At 60 updates per second, from nothing to 300 ms there and back.
    for delay in [0, 1, 4, 9] {
        session.delay = delay;
        let mut made = Vec::new();
        for frame in 0..160 {
            if frame < 100 && frame % 4 == 0 {
                let place = places[(random() % places.len() as u64) as usize];
                let (before, is_air) = (bag(&session.client), session.shown(place) == Some(BlockId::AIR));
                let is_possible = if is_air { before > 0 } else { true };
                made.push(match is_air {
                    true => session.act(Build(place)),
                    false => session.act(Dig(place)),
                });
                session.step();
                let after = (bag(&session.client), session.shown(place) == Some(BlockId::AIR));
                let expected = match (is_possible, is_air) {
                    (false, _) => (before, is_air),
                    (true, true) => (before - 1, false),
                    (true, false) => (before + 1, true),
                };
                assert_eq!(after, expected, "frame {frame}, delay {delay}: at once");
            } else {
                session.step();
            }
            assert_eq!(stones(&session) + bag(&session.client), places.len() as u32, "frame {frame}, delay {delay}");
        }
        for action in made {
            session.outcome_of(action);
        }
        session.run_until("nothing is predicted", |session| {
            let published = session.client.world().resource::<PublishedColumns>();
            places.iter().all(|place| !published.is_predicted(REMOTE, *place))
        });
        let dimension = session.dimension;
        assert_eq!(in_region_bag(&mut session.server, dimension), bag(&session.client), "delay {delay}");
    }
}

/// Promise, actions: A client's actions and edits are made in their order, and refusals come with their reasons.
#[test]
fn a_clients_actions_and_edits_are_made_in_order_and_refused_with_reasons() {
    let mut session = Session::of_ann();
    session.delay = 3;
    let stone = id_of(session.client.world(), "terrane:stone");
    let dig = session.act(Dig(top(1, 1)));
    session.client.world_mut().write_message(SetBlock { dimension: REMOTE, position: top(1, 1), block: stone });
    session.step();
    let again = session.act(Dig(top(1, 1)));
    assert_eq!(session.outcome_of(again), ActionOutcome::Done);
    assert_eq!(outcomes(&session.client, dig), [ActionOutcome::Done]);
    assert_eq!((bag(&session.client), session.shown(top(1, 1))), (2, Some(BlockId::AIR)));
    assert!(heard::<BlockRefused>(&session.client).is_empty());

    let far = top(12, 14);
    let cases = [
        (session.act(Dig(far)), Refusal::OutOfReach(far)),
        (session.act(Dig(BlockPos::new(0, 9, 0))), Refusal::because("there is nothing to dig")),
        (session.act(Unknown), Refusal::Unregistered(Unknown::type_path().to_owned())),
        (session.act(Long(vec![0; 2_000])), Refusal::TooLarge),
    ];
    for (action, refusal) in cases {
        assert_eq!(session.outcome_of(action), ActionOutcome::Refused(refusal));
    }
    // An edit out of the entity's reach.
    session.client.world_mut().write_message(SetBlock { dimension: REMOTE, position: far, block: stone });
    session.run_until("it is refused", |session| heard::<BlockRefused>(&session.client).len() == 1);

    // What the server does for the entity is not counted as the client's.
    let drop = act(&mut session.server, ANN, Drop { explodes: false });
    assert_eq!(outcome_of(&mut session.server, drop), ActionOutcome::Done);
    session.run_until("the client knows", |session| bag(&session.client) == 0);
    let dig = session.act(Dig(top(2, 2)));
    assert_eq!(session.outcome_of(dig), ActionOutcome::Done);
}

/// Promise, actions: After a crash of the server, a client learns which of its actions are lost, and drops what was not decided.
#[test]
fn after_a_crash_of_the_server_a_client_learns_what_is_lost() {
    let disk = Disk::default();
    let saving = SaveSettings::every(std::time::Duration::from_secs(3_600));
    let plugin = |disk: &Disk| TerranePlugin { tick_mode: TickMode::Lockstep, saving, ..disk.plugin() };
    let mut session = Session::of_ann_on(plugin(&disk));
    let kept = session.act(Dig(top(1, 1)));
    assert_eq!(session.outcome_of(kept), ActionOutcome::Done);
    save(&mut session.server);
    session.run_until("it is durable", |session| outcomes(&session.client, kept).len() == 2);
    assert_eq!(outcomes(&session.client, kept), [ActionOutcome::Done, ActionOutcome::Durable]);
    let lost = session.act(Dig(top(2, 1)));
    assert_eq!(session.outcome_of(lost), ActionOutcome::Done);
    session.delay = 5;
    let undecided = session.act(Dig(top(3, 1)));
    session.step();
    assert_eq!((bag(&session.client), session.shown(top(3, 1))), (3, Some(BlockId::AIR)));

    let (app, dimension, peer) = server(plugin(&disk.copy()));
    (session.server, session.dimension) = (app, dimension);
    session.reconnect(peer);
    assert_eq!(session.outcome_of(undecided), ActionOutcome::Refused(Refusal::Unanswered));
    session.run_until("it knows what is lost", |session| outcomes(&session.client, lost).len() == 2);
    assert_eq!(outcomes(&session.client, lost), [ActionOutcome::Done, ActionOutcome::Lost]);
    assert_eq!(outcomes(&session.client, kept).len(), 2);
    session.run_until("the ground is as the world remembers it", |session| {
        session.shown(top(2, 1)) != Some(BlockId::AIR) && has_bag(&session.client, 1)
    });
    assert_eq!(session.shown(top(1, 1)), Some(BlockId::AIR));
    let dig = session.act(Dig(top(2, 1)));
    assert_eq!(session.outcome_of(dig), ActionOutcome::Done);
    assert_eq!(bag(&session.client), 2);
}

/// Promise, actions: A client acts for its own entity only, and an action that is sent again is done once.
#[test]
fn a_client_acts_for_its_own_entity_and_each_number_once() {
    let mut session = Session::of_ann();
    let dig = session.act(Dig(top(1, 1)));
    // All that the client has sent comes a second time.
    for _ in 0..60 {
        let messages: Vec<Vec<u8>> = session.up.iter().flatten().cloned().collect();
        session.step();
        messages.iter().for_each(|message| session.peer().receive(message).unwrap());
    }
    assert_eq!(outcomes(&session.client, dig)[0], ActionOutcome::Done);
    let dimension = session.dimension;
    assert_eq!((in_region_bag(&mut session.server, dimension), bag(&session.client)), (1, 1));

    // Another client of the same entity: its numbers begin anew, and none of its actions is one of the first.
    let other = connect(&mut session.server, session.dimension);
    session.server.world_mut().despawn(session.peer);
    session.reconnect(other);
    session.run_until("it is connected again", |session| session.view().takes_edits() && has_bag(&session.client, 1));
    let build = session.act(Build(top(1, 1)));
    assert_eq!(session.outcome_of(build), ActionOutcome::Done);
    // Without an actor it cannot act.
    session.server.world_mut().get_mut::<ChunkSyncPeer>(other).unwrap().set_actor(None);
    session.run_until("its actor is gone", |session| mirror(session.client.world(), ANN).is_none());
    let dig = session.act(Dig(top(1, 1)));
    assert_eq!(session.outcome_of(dig), ActionOutcome::Refused(Refusal::NotHere));
}

/// Promise, actions: A client sees at once what it puts into a chest.
#[test]
fn a_client_sees_its_chest_filled_at_once() {
    let mut session = Session::of_ann();
    let chest = BlockPos::new(1, 0, 1);
    let block = id_of(session.server.world(), CHEST);
    let set = SetBlock { dimension: session.dimension, position: chest, block };
    session.server.world_mut().write_message(set);
    session.run_until("the chest is there", |session| in_chest(session.client.world(), REMOTE, chest) == Some(0));
    session.delay = 6;
    let dig = session.act(Dig(top(2, 2)));
    let fill = session.act(Fill(chest, 1));
    session.step();
    for _ in 0..40 {
        assert_eq!((in_chest(session.client.world(), REMOTE, chest), bag(&session.client)), (Some(1), 0));
        session.step();
    }
    assert_eq!([dig, fill].map(|action| session.outcome_of(action)), [ActionOutcome::Done, ActionOutcome::Done]);
    assert_eq!(in_chest(session.server.world(), session.dimension, chest), Some(1));
}

/// Promise, actions: What an older connection of the same player still sends is not done once a newer one acts.
#[test]
fn a_new_connection_of_a_player_replaces_the_old_one() {
    let mut session = Session::of_ann();
    let old = session.peer;
    session.delay = 500;
    let stale = session.act(Dig(top(1, 1)));
    (0..60).for_each(|_| session.step());
    assert_eq!(bag(&session.client), 1, "shown");
    let late: Vec<Vec<u8>> = session.up.drain(..).flatten().collect();
    assert!(!late.is_empty());
    session.delay = 0;
    let newer = connect(&mut session.server, session.dimension);
    session.reconnect(newer);
    session.run_until("it is connected again", |session| session.view().takes_edits() && has_bag(&session.client, 0));
    assert_eq!(outcomes(&session.client, stale), [ActionOutcome::Refused(Refusal::Unanswered)]);
    let dig = session.act(Dig(top(2, 2)));
    assert_eq!(session.outcome_of(dig), ActionOutcome::Done);
    let mut peer = session.server.world_mut().get_mut::<ChunkSyncPeer>(old).unwrap();
    late.iter().for_each(|message| peer.receive(message).unwrap());
    (0..60).for_each(|_| session.step());
    let dimension = session.dimension;
    assert_eq!((in_region_bag(&mut session.server, dimension), bag(&session.client)), (1, 1));
    assert_ne!(session.shown(top(1, 1)), Some(BlockId::AIR));
}

/// Promise, actions: The server keeps little for a client that does not read, and goes on with it when it reads again.
#[test]
fn little_is_kept_for_a_client_that_does_not_read() {
    let mut session = Session::of_ann();
    for tick in 0..400 {
        let place = top(tick / 2 % 5, 3);
        match tick % 2 {
            0 => act(&mut session.server, ANN, Dig(place)),
            _ => act(&mut session.server, ANN, Build(place)),
        };
        session.server.update();
    }
    act(&mut session.server, ANN, Dig(top(0, 5)));
    session.server.update();
    let waiting = session.peer().take_messages();
    let size: usize = waiting.iter().map(Vec::len).sum();
    assert!(waiting.len() < 100 && size < 200_000, "{} messages of {size} bytes", waiting.len());
    session.down.push_back(waiting);
    session.run_until("it knows its bag", |session| has_bag(&session.client, 1));
}

/// Promise, actions: A client does a limited number of actions in a second, whatever the regions allow.
#[test]
fn too_many_actions_of_a_client_are_refused() {
    let limits = Limits { actions_per_second: 10_000, ..default() };
    let mut session = Session::of_ann_on(TerranePlugin { limits, ..lockstep() });
    let places = (-10..10).flat_map(|x| (-10..10).map(move |z| top(x, z)));
    let made: Vec<_> = places.map(|place| session.act(Dig(place))).collect();
    let answers: Vec<_> = made.iter().map(|action| session.outcome_of(*action)).collect();
    let done = answers.iter().filter(|answer| **answer == ActionOutcome::Done).count();
    let refused = answers.iter().filter(|answer| **answer == ActionOutcome::Refused(Refusal::TooMany)).count();
    assert!((256..400).contains(&done) && done + refused == 400, "{done} done, {refused} refused");
    let dimension = session.dimension;
    assert_eq!(in_region_bag(&mut session.server, dimension), done as u32);
}

/// Promise, actions: A slow client hears that an action is done before it hears that it is durable.
#[test]
fn a_slow_client_hears_of_done_before_durable() {
    let saving = SaveSettings::every(std::time::Duration::from_millis(50));
    let mut session = Session::of_ann_on(TerranePlugin { saving, ..lockstep() });
    session.delay = 9;
    let mut made = Vec::new();
    for x in 0..12 {
        made.push(session.act(Dig(top(x, 1))));
        session.step();
    }
    for action in made {
        session.run_until("it is durable", |session| outcomes(&session.client, action).len() == 2);
        assert_eq!(outcomes(&session.client, action), [ActionOutcome::Done, ActionOutcome::Durable]);
    }
}
