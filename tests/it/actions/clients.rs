//! Clients of a server act: they see the result at once, and the server does it once.

use super::*;
use crate::disk::Disk;
use bevy_terrane::chunk_sync::SyncLimits;
use bevy_terrane::view::{ChunkSyncClient, ChunkSyncPeer};
use std::collections::VecDeque;

/// The number of the server's dimension on clients.
const REMOTE: DimensionId = DimensionId(1 << 32);

/// A server and a client, with messages that take some updates each way.
struct Session {
    server: App,
    client: App,
    dimension: DimensionId,
    view: Entity,
    peer: Entity,
    delay: usize,
    up: VecDeque<Vec<Vec<u8>>>,
    down: VecDeque<Vec<Vec<u8>>>,
}

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
    fn new() -> Self {
        let (mut server, dimension, peer) = server(lockstep());
        spawn_in_region(&mut server, dimension, HERE, (StableId(ANN), Actor::default(), Bag(0)));
        update(&mut server, 40);
        Self::with_server(server, dimension, peer)
    }

    fn with_server(server: App, dimension: DimensionId, peer: Entity) -> Self {
        let mut client = App::new();
        client.add_plugins((MinimalPlugins, TerranePlugin { basic_blocks: false, ..lockstep() }));
        // Blocks have other numbers than on the server.
        for name in ["game:own", "terrane:dirt", "terrane:stone"] {
            client.register_block(BlockType::new(name)).unwrap();
        }
        client
            .register_saved_component::<Bag>()
            .mirror_region_component::<Bag>()
            .register_action::<Dig>()
            .register_action::<Build>()
            .register_action::<Drop>()
            .register_action::<Unknown>()
            .register_action::<Long>();
        listen::<ActionAnswer>(&mut client);
        listen::<BlockRefused>(&mut client);
        let view = ChunkSyncClient::new(REMOTE).with_radius(1);
        let view = client.world_mut().spawn((view, Transform::default())).id();
        start(&mut client);
        let (up, down) = Default::default();
        let mut session = Self { server, client, dimension, view, peer, delay: 0, up, down };
        session.run_until("Ann and the ground are there", |session| {
            session.view().is_complete()
                && mirror(session.client.world(), ANN).is_some()
                && block_at(session.client.world(), REMOTE, top(0, 0)).is_some()
        });
        session
    }

    fn view(&mut self) -> Mut<'_, ChunkSyncClient> {
        self.client.world_mut().get_mut(self.view).expect("a view")
    }

    fn step(&mut self) {
        let mut peer = self.server.world_mut().get_mut::<ChunkSyncPeer>(self.peer).unwrap();
        let messages = peer.take_messages();
        if self.up.len() > self.delay {
            self.up.pop_front().unwrap().iter().for_each(|message| peer.receive(message).unwrap());
        }
        self.down.push_back(messages);
        self.server.update();
        while self.down.len() > self.delay {
            let messages = self.down.pop_front().unwrap();
            messages.into_iter().for_each(|message| self.view().receive(message));
        }
        self.client.update();
        let messages = self.view().take_messages();
        self.up.push_back(messages);
        // The client's thread works beside the updates.
        std::thread::sleep(std::time::Duration::from_millis(2));
    }

    #[track_caller]
    fn run_until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..2_000 {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("waited in vain until {what}");
    }

    fn act(&mut self, action: impl Action) -> ActionId {
        act(&mut self.client, ANN, action)
    }

    fn outcome_of(&mut self, action: ActionId) -> ActionOutcome {
        self.run_until("the action is decided", |session| !outcomes(&session.client, action).is_empty());
        outcomes(&self.client, action)[0].clone()
    }

    fn shown(&self, place: BlockPos) -> BlockId {
        block_at(self.client.world(), REMOTE, place).unwrap()
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
    let mut session = Session::new();
    let mut random = noise(11);
    let places: Vec<BlockPos> = (0..6).flat_map(|x| (0..4).map(move |z| top(x, z))).collect();
    let stones =
        |session: &Session| places.iter().filter(|place| session.shown(**place) != BlockId::AIR).count() as u32;
    // At 60 updates per second, from nothing to 300 ms there and back.
    for delay in [0, 1, 4, 9] {
        session.delay = delay;
        let mut made = Vec::new();
        for frame in 0..160 {
            if frame < 100 && frame % 4 == 0 {
                let place = places[(random() % places.len() as u64) as usize];
                let (before, is_air) = (bag(&session.client), session.shown(place) == BlockId::AIR);
                let is_possible = if is_air { before > 0 } else { true };
                made.push(match is_air {
                    true => session.act(Build(place)),
                    false => session.act(Dig(place)),
                });
                session.step();
                let after = (bag(&session.client), session.shown(place) == BlockId::AIR);
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
    let mut session = Session::new();
    session.delay = 3;
    let stone = id_of(session.client.world(), "terrane:stone");
    let dig = session.act(Dig(top(1, 1)));
    session.client.world_mut().write_message(SetBlock { dimension: REMOTE, position: top(1, 1), block: stone });
    session.step();
    let again = session.act(Dig(top(1, 1)));
    assert_eq!(session.outcome_of(again), ActionOutcome::Done);
    assert_eq!(outcomes(&session.client, dig), [ActionOutcome::Done]);
    assert_eq!((bag(&session.client), session.shown(top(1, 1))), (2, BlockId::AIR));
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
    let (mut app, dimension, peer) = server(plugin(&disk));
    spawn_in_region(&mut app, dimension, HERE, (StableId(ANN), Actor::default(), Bag(0)));
    update(&mut app, 40);
    let mut session = Session::with_server(app, dimension, peer);
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
    assert_eq!((bag(&session.client), session.shown(top(3, 1))), (3, BlockId::AIR));

    let (app, dimension, peer) = server(plugin(&disk.copy()));
    (session.server, session.dimension, session.peer) = (app, dimension, peer);
    session.up.clear();
    session.down.clear();
    session.view().disconnected();
    assert_eq!(session.outcome_of(undecided), ActionOutcome::Refused(Refusal::Unanswered));
    session.run_until("it knows what is lost", |session| outcomes(&session.client, lost).len() == 2);
    assert_eq!(outcomes(&session.client, lost), [ActionOutcome::Done, ActionOutcome::Lost]);
    assert_eq!(outcomes(&session.client, kept).len(), 2);
    session.run_until("the ground is as the world remembers it", |session| {
        session.shown(top(2, 1)) != BlockId::AIR && has_bag(&session.client, 1)
    });
    assert_eq!(session.shown(top(1, 1)), BlockId::AIR);
    let dig = session.act(Dig(top(2, 1)));
    assert_eq!(session.outcome_of(dig), ActionOutcome::Done);
    assert_eq!(bag(&session.client), 2);
}

/// Promise, actions: A client acts for its own entity only, and an action that is sent again is done once.
#[test]
fn a_client_acts_for_its_own_entity_and_each_number_once() {
    let mut session = Session::new();
    let dig = session.act(Dig(top(1, 1)));
    // All that the client has sent comes a second time.
    for _ in 0..60 {
        let messages: Vec<Vec<u8>> = session.up.iter().flatten().cloned().collect();
        session.step();
        let mut peer = session.server.world_mut().get_mut::<ChunkSyncPeer>(session.peer).unwrap();
        messages.iter().for_each(|message| peer.receive(message).unwrap());
    }
    assert_eq!(outcomes(&session.client, dig)[0], ActionOutcome::Done);
    let dimension = session.dimension;
    assert_eq!((in_region_bag(&mut session.server, dimension), bag(&session.client)), (1, 1));

    // Another client of the same entity: its numbers begin anew, and none of its actions is one of the first.
    let other = connect(&mut session.server, session.dimension);
    session.server.world_mut().despawn(session.peer);
    session.peer = other;
    session.up.clear();
    session.down.clear();
    session.view().disconnected();
    session.run_until("it is connected again", |session| session.view().takes_edits() && has_bag(&session.client, 1));
    let build = session.act(Build(top(1, 1)));
    assert_eq!(session.outcome_of(build), ActionOutcome::Done);
    // Without an actor it cannot act.
    session.server.world_mut().get_mut::<ChunkSyncPeer>(other).unwrap().set_actor(None);
    session.run_until("its actor is gone", |session| mirror(session.client.world(), ANN).is_none());
    let dig = session.act(Dig(top(1, 1)));
    assert_eq!(session.outcome_of(dig), ActionOutcome::Refused(Refusal::NotHere));
}
