//! Keeps the chunks around a multiplayer client up to date. A client sends the hashes of its chunks, and the server
//! only sends chunks that it does not have, and then the blocks that change.
//!
//! There is no transport: messages are bytes, for any network that delivers them reliably and in order.
//!
//! * [`SyncClient`] tracks the chunks nearby, immediately provides those in its [`ChunkCache`], and asks the server
//!   about all of them, nearest first.
//! * [`SyncServer`] represents one client on the server. It answers "current", a chunk, or "gone", nearest first,
//!   within a number of bytes per second, and reports later changes of these chunks.
//! * The client can ask for edits of these chunks, if the server takes them. The server answers an accepted edit after it has
//!   sent the chunk with it. A client that shows its edits until they are answered
//!   ([`Predictions`](crate::chunk::Predictions)) never sees a block revert on which both sides agree.
//!
//! * The same holds for actions, which the game defines. They are bytes here, as are the news of the entity that acts for the client.
//!
//! A chunk is current if the [hash](ChunkHash) of its bytes matches, so no chunk seems current after the server is restored from a
//! backup, or loses its latest changes in a crash. The bytes are in the [chunk format](mod@crate::chunk::format) with the numbers of the
//! server's world; the server's first message gives their meaning. A [change](ChunkChange) of a few blocks has some ten bytes. It is
//! encoded once for all clients, and the hash of the changed chunk checks it.
//!
//! In an app, `ChunkSyncPeer` and `ChunkSyncClient` connect these types with the world. Without an app, the caller
//! passes messages on.

mod budget;
mod cache;
mod changes;
mod client;
mod messages;
mod server;
#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use budget::Budget;
pub use cache::{CachedChunk, ChunkCache};
pub use changes::{ChunkChange, ChunkChanges};
pub use client::{SyncClient, SyncNews, SyncProgress};
pub use messages::{
    ActionRequests, ActorNews, ChunkHash, ChunkNews, ChunkQuestions, ClientMessage, EditAnswer, EditMessage,
    EditRequests, MAX_ACTION_BYTES, MAX_QUESTIONS, PROTOCOL, ServerMessage, SyncAction, SyncArea, SyncEdit, SyncError,
    SyncWelcome,
};
pub use server::{FoundChunk, SyncLimits, SyncServer, SyncServerProgress, SyncWish};
