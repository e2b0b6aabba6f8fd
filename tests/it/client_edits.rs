//! Clients of a server edit its ground, and see their edits at once.

use crate::support::session::{REMOTE, Session};
use crate::support::*;
use bevy_terrane::chunk_sync::SyncLimits;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{ChunkSyncPeer, ClientEdit};

/// A place in the air, beside the viewer.
const THERE: BlockPos = BlockPos::new(3, 2, 5);

fn limits(edits_per_second: u32) -> SyncLimits {
    SyncLimits { bytes_per_second: u64::MAX >> 1, edits_per_second, ..SyncLimits::default() }
}

impl Session {
    fn new(limits: SyncLimits, build: impl FnOnce(&mut App)) -> Self {
        let mut server = game(lockstep());
        let dimension = flat(&mut server);
        let viewer = viewer(&mut server, dimension, 0.0, 0.0, 2);
        build(&mut server);
        server.world_mut().entity_mut(viewer).insert(ChunkSyncPeer::new(dimension).with_limits(limits));
        start(&mut server);
        update(&mut server, 40);
        Self::start(server, dimension, viewer, |_| ())
    }

    fn set(&mut self, position: BlockPos, name: &str) -> BlockId {
        let block = id_of(self.client.world(), name);
        self.client.world_mut().write_message(SetBlock { dimension: REMOTE, position, block });
        block
    }

    fn is_predicted(&self, position: BlockPos) -> bool {
        self.client.world().resource::<PublishedColumns>().is_predicted(REMOTE, position)
    }

    fn on_server(&self, position: BlockPos) -> String {
        let block = block_at(self.server.world(), self.dimension, position).unwrap();
        self.server.world().resource::<BlockTypes>().block(block).name().to_owned()
    }

    fn refused(&self) -> Vec<BlockAccessError> {
        heard::<BlockRefused>(&self.client).iter().map(|refused| refused.error).collect()
    }

    fn settle(&mut self, position: BlockPos) {
        self.step();
        self.run_until("it is decided", |session| !session.is_predicted(position));
        self.step();
    }
}

/// Promise, multiplayer: A client shows its edit at once, and never without it if the server agrees, at 200 ms of delay.
/// Promise, chunk sync: A client may make no edits unless the server takes them, and no more per second than it allows.
#[test]
fn a_client_sees_its_edit_at_once_and_the_server_makes_it() {
    let mut session = Session::new(limits(1_000), |_| ());
    session.run_until("edits are taken", |session| session.view().takes_edits());
    // At 60 updates per second: 200 ms there and back.
    session.delay = 6;
    for round in 0..6 {
        let name = ["terrane:stone", "terrane:air", "terrane:dirt"][round % 3];
        let block = session.set(THERE, name);
        let mut updates = 0;
        loop {
            session.step();
            updates += 1;
            assert_eq!(session.shown(THERE), Some(block), "round {round}, update {updates}");
            if !session.is_predicted(THERE) {
                break;
            }
        }
        assert!(updates > 12, "it was decided after {updates} updates");
        assert_eq!(session.on_server(THERE), name);
        for _ in 0..3 {
            session.step();
            assert_eq!(session.shown(THERE), Some(block));
        }
    }
    assert!(session.refused().is_empty());
}

#[derive(Resource, Default)]
struct Asked(Vec<(Entity, SetBlock)>);

/// Promise, multiplayer: A game decides on each edit of a client: it can make it, refuse it, or set another block.
#[test]
fn the_game_refuses_edits_or_changes_them() {
    fn no_dirt(mut edit: On<ClientEdit>, types: Res<BlockTypes>, mut asked: ResMut<Asked>) {
        asked.0.push((edit.peer, edit.request));
        match types.block(edit.request.block).name() {
            "terrane:dirt" => edit.refuse(),
            "terrane:stone" => edit.request.block = types.id("terrane:sand").unwrap(),
            _ => {}
        }
    }
    let mut session = Session::new(limits(1_000), |app| _ = app.init_resource::<Asked>().add_observer(no_dirt));
    session.run_until("edits are taken", |session| session.view().takes_edits());
    let dirt = session.set(THERE, "terrane:dirt");
    session.step();
    assert_eq!(session.shown(THERE), Some(dirt));
    session.settle(THERE);
    assert_eq!((session.shown(THERE), session.on_server(THERE)), (Some(BlockId::AIR), "terrane:air".to_owned()));
    assert_eq!(session.refused(), [BlockAccessError::RefusedByServer(THERE)]);
    session.set(THERE, "terrane:stone");
    session.settle(THERE);
    assert_eq!(session.on_server(THERE), "terrane:sand");
    let placeholder = id_of(session.client.world(), "terrane:placeholder");
    assert_eq!(session.shown(THERE), Some(placeholder), "the client has no sand");
    let asked = &session.server.world().resource::<Asked>().0;
    assert!(asked.len() == 2 && asked.iter().all(|(peer, _)| *peer == session.peer));
}

/// Promise, multiplayer: A client edits only blocks that are in reach of its viewer and that its server takes.
#[test]
fn edits_out_of_reach_and_of_unknown_blocks_are_refused() {
    let mut session = Session::new(limits(1_000), |_| ());
    session.run_until("edits are taken", |session| session.view().takes_edits());
    let far = BlockPos::new(3, 2, 14);
    session.set(far, "terrane:stone");
    session.step();
    assert!(session.is_predicted(far));
    session.settle(far);
    assert_eq!(session.on_server(far), "terrane:air");
    session.set(THERE, "game:own");
    session.settle(THERE);
    assert_eq!(session.on_server(THERE), "terrane:air");
    assert_eq!(session.refused().len(), 2);
    // The region refuses it.
    let low = BlockPos::new(0, -1, 0);
    session.set(low, "terrane:stone");
    session.settle(low);
    assert_eq!(session.on_server(low), "terrane:stone");
}

#[test]
fn a_server_that_takes_no_edits_is_asked_for_none() {
    let mut session = Session::new(limits(0), |_| ());
    session.set(THERE, "terrane:stone");
    for _ in 0..20 {
        session.step();
        assert_eq!((session.shown(THERE), session.is_predicted(THERE)), (Some(BlockId::AIR), false));
    }
    assert_eq!(session.refused(), [BlockAccessError::RefusedByServer(THERE)]);
}

/// Promise, predicted edits: An edit whose answer does not come, or whose connection is lost, is taken back.
#[test]
fn a_lost_connection_takes_edits_back() {
    let mut session = Session::new(limits(1_000), |_| ());
    session.run_until("edits are taken", |session| session.view().takes_edits());
    session.delay = 1_000;
    let stone = session.set(THERE, "terrane:stone");
    session.step();
    assert_eq!(session.shown(THERE), Some(stone));
    session.view().disconnected();
    session.settle(THERE);
    assert_eq!(session.shown(THERE), Some(BlockId::AIR));
    assert_eq!(session.refused(), [BlockAccessError::RefusedByServer(THERE)]);
}

/// Promise, predicted edits: No block on which a client and its server agree ever reverts in between, at any delay.
#[test]
fn a_change_of_the_viewers_radius_loses_no_edit() {
    let mut session = Session::new(limits(1_000), |_| ());
    session.run_until("edits are taken", |session| session.view().takes_edits());
    session.delay = 6;
    for round in 0..24 {
        let block = session.set(THERE, ["terrane:stone", "terrane:dirt"][round % 2]);
        if round % 3 == 0 {
            // The client gets a new first message.
            session.server.world_mut().get_mut::<Viewer>(session.peer).unwrap().generation_radius =
                2 + round as u32 / 3;
        }
        for _ in 0..1 + round % 5 {
            session.step();
            assert_eq!(session.shown(THERE), Some(block), "round {round}");
        }
    }
    let shown = session.shown(THERE);
    while session.is_predicted(THERE) {
        session.step();
        assert_eq!(session.shown(THERE), shown);
    }
    assert_eq!((session.on_server(THERE).as_str(), session.refused().len()), ("terrane:dirt", 0));
}
