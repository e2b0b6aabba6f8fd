//! Chunk sync for multiplayer clients: [`ChunkSyncPeer`] on the server, [`ChunkSyncClient`] on the client.

mod actors;
mod client;
mod edits;
mod peer;
mod worker;

pub use client::ChunkSyncClient;
pub use edits::ClientEdit;
pub use peer::ChunkSyncPeer;

pub(super) use actors::{tell_of_actors, tell_of_settled};
pub(super) use client::{apply_results, end_clients, follow_clients, start_clients};
pub(super) use edits::judge_edits;
pub(super) use peer::{apply_answers, apply_changes, ask, send};

use crate::coordinator::messages::AskChunks;
use bevy::prelude::*;

pub(super) fn build(app: &mut App) {
    app.init_resource::<client::SyncThreads>().init_resource::<peer::Questions>().add_message::<AskChunks>();
}
