//! A server and a client of it, in one process.

use super::*;
use bevy_terrane::view::{ChunkSyncClient, ChunkSyncPeer, ForTransport};
use std::collections::VecDeque;

/// The number of the server's dimension on clients.
pub const REMOTE: DimensionId = DimensionId(1 << 32);

/// A server and a client, with messages that take some updates each way.
pub struct Session {
    pub server: App,
    pub client: App,
    pub dimension: DimensionId,
    /// The entity of the client with the `ChunkSyncClient`.
    pub view: Entity,
    /// The entity of the server with the `ChunkSyncPeer`.
    pub peer: Entity,
    /// The updates that a message takes each way.
    pub delay: usize,
    pub up: VecDeque<Vec<Vec<u8>>>,
    pub down: VecDeque<Vec<Vec<u8>>>,
    /// The packets each way.
    pub packets: [FaultyLink; 2],
}

impl Session {
    /// Starts a client of this server, whose blocks have other numbers than on the server. `build` adds to the client.
    pub fn start(server: App, dimension: DimensionId, peer: Entity, build: impl FnOnce(&mut App)) -> Self {
        let mut client = App::new();
        client.add_plugins((MinimalPlugins, TerranePlugin { basic_blocks: false, ..lockstep() }));
        for name in ["game:own", "terrane:dirt", "terrane:stone"] {
            client.register_block(BlockType::new(name)).unwrap();
        }
        build(&mut client);
        listen::<BlockRefused>(&mut client);
        let view = ChunkSyncClient::new(REMOTE).with_radius(1);
        let view = client.world_mut().spawn((view, Transform::default())).id();
        start(&mut client);
        let (up, down) = Default::default();
        let packets = [1, 2].map(FaultyLink::new);
        let mut session = Self { server, client, dimension, view, peer, delay: 0, up, down, packets };
        session
            .run_until("the ground is there", |session| session.view().is_complete() && session.shown(HERE).is_some());
        session
    }

    pub fn view(&mut self) -> Mut<'_, ChunkSyncClient> {
        self.client.world_mut().get_mut(self.view).expect("a view")
    }

    pub fn peer(&mut self) -> Mut<'_, ChunkSyncPeer> {
        self.server.world_mut().get_mut(self.peer).expect("a peer")
    }

    /// Updates both, and exchanges their messages.
    pub fn step(&mut self) {
        let ForTransport { messages, packets } = self.peer().port().take();
        let [packets_up, packets_down] = &mut self.packets;
        packets_down.send(ForTransport { messages: Vec::new(), packets });
        let packets = packets_up.step().packets;
        packets.iter().for_each(|packet| self.peer().receive(packet).unwrap());
        if self.up.len() > self.delay {
            let messages = self.up.pop_front().unwrap();
            messages.iter().for_each(|message| self.peer().receive(message).unwrap());
        }
        self.down.push_back(messages);
        self.server.update();
        while self.down.len() > self.delay {
            let messages = self.down.pop_front().unwrap();
            messages.into_iter().for_each(|message| self.view().receive(message));
        }
        let packets = self.packets[1].step().packets;
        packets.into_iter().for_each(|packet| self.view().receive(packet));
        self.client.update();
        let packets = self.view().take_packet().into_iter().collect();
        self.packets[0].send(ForTransport { messages: Vec::new(), packets });
        let messages = self.view().take_messages();
        self.up.push_back(messages);
        // The client's thread works beside the updates.
        std::thread::sleep(Duration::from_millis(2));
    }

    #[track_caller]
    pub fn run_until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..2_000 {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("waited in vain until {what}");
    }

    /// The connection is lost, with the messages on it. The client goes on with another peer.
    pub fn reconnect(&mut self, peer: Entity) {
        self.peer = peer;
        self.up.clear();
        self.down.clear();
        self.packets.iter_mut().for_each(FaultyLink::cut);
        self.view().disconnected();
    }

    /// The block that the client shows at a place.
    pub fn shown(&self, place: BlockPos) -> Option<BlockId> {
        block_at(self.client.world(), REMOTE, place)
    }
}
