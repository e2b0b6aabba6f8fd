//! Chunk sync for multiplayer clients: [`ChunkSyncPeer`] on the server, [`ChunkSyncClient`] on the client.

mod actors;
mod bodies;
mod client;
mod edits;
mod hub;
mod packets;
mod peer;
mod port;
mod worker;

pub use client::ChunkSyncClient;
pub use edits::ClientEdit;
pub use peer::ChunkSyncPeer;
pub use port::{ClientPort, ForTransport};

pub(super) use actors::{tell_of_actors, tell_of_settled};
pub(crate) use bodies::send_own_steps;
pub(super) use client::{apply_results, end_clients, follow_clients, start_clients};
pub(super) use edits::judge_edits;
pub(super) use peer::{apply_answers, apply_changes, ask, send, start_hub};

use crate::coordinator::messages::AskChunks;
use bevy::prelude::*;

pub(super) fn build(app: &mut App) {
    app.init_resource::<client::SyncThreads>().add_message::<AskChunks>();
}
