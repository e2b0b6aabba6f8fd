//! [`ConnectedClient`]: a client on the server.

use crate::wire::ToClient;
use bevy::prelude::*;
use bevy_terrane::view::{ClientPort, LogIn};
use quinn::Connection;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use uuid::Uuid;

/// A client that is connected, on an entity of the main world. While its player is in the world, a
/// [`ChunkSyncPeer`](bevy_terrane::view::ChunkSyncPeer) is beside it. Despawning the entity ends the connection.
#[derive(Component, Debug)]
pub struct ConnectedClient {
    pub(super) log_in: LogIn,
    /// The number of the client's connection, which stays the same when it comes back.
    pub(super) session: Uuid,
    /// When the client has asked to play, and when its log-in is due: `None` while it is not.
    pub(super) asked: Duration,
    pub(super) due: Option<Duration>,
    pub(super) player: Option<Uuid>,
    /// The number of the dimensions in which it has been.
    pub(super) stay: u32,
    pub(super) control: Sender<ForClient>,
    pub(super) connection: Connection,
}

impl ConnectedClient {
    /// The name of its player.
    pub fn name(&self) -> &str {
        &self.log_in.name
    }

    /// Its network address.
    pub fn address(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    /// The stable id of its player; `None` until the player is in the world.
    pub fn player(&self) -> Option<Uuid> {
        self.player
    }

    /// The time of a packet to the client and back, as measured lately.
    pub fn round_trip(&self) -> Duration {
        self.connection.rtt()
    }

    /// The bytes that were sent to the client, as the network counts them: encrypted, with all that QUIC adds, and those sent again.
    pub fn bytes_sent(&self) -> u64 {
        self.connection.stats().udp_tx.bytes
    }

    pub(crate) fn tell(&self, message: ToClient) {
        self.order(ForClient::Tell(message));
    }

    pub(super) fn order(&self, order: ForClient) {
        // The connection may be gone already.
        if let Err(TrySendError::Full(_)) = self.control.try_send(order) {
            self.connection.close(3_u32.into(), b"the client reads too slowly");
        }
    }
}

/// For the task of a connection.
#[derive(Debug)]
pub(super) enum ForClient {
    Tell(ToClient),
    /// The messages of this port belong to this stay.
    Stay(u32, ClientPort),
}
