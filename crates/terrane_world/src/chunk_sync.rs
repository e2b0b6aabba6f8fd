//! Keeps the chunks around a multiplayer client up to date: a client says which version it has of each chunk, and is sent only
//! what it does not have.
//!
//! No transport is part of it: messages are bytes, which any network carries that delivers them reliably and in order.
//!
//! * [`SyncClient`] knows what is near, shows what its [`ChunkCache`] has of that at once, and asks for all of it, nearest first.
//! * [`SyncServer`] is one client as the server sees it: it answers "current", "here it is" or "gone", nearest first, within so
//!   many bytes a second, and tells of chunks that change later.
//!
//! A chunk is current only if its version *and* the CRC-32 of its bytes are the same, so that a server which was set
//! back to a backup, or lost its last changes in a crash, does not take other ground for current. The bytes are those
//! of the [chunk format](mod@crate::chunk::format) with the numbers of the server's world; the first message of a
//! server says what they mean.
//!
//! In an app, `ChunkSyncPeer` and `ChunkSyncClient` connect this
//! with the world. Here it is plain: whoever has it asks for messages and hands them in.

mod area;
mod budget;
mod cache;
mod client;
mod error;
mod messages;
mod server;
#[cfg(test)]
mod tests;

pub use area::SyncArea;
#[doc(hidden)]
pub use budget::Budget;
pub use cache::{CachedChunk, ChunkCache};
pub use client::{SyncClient, SyncNews, SyncProgress};
pub use error::SyncError;
pub use messages::{ChunkNews, ChunkQuestions, KnownVersion, MAX_QUESTIONS, ServerMessage, SyncWelcome};
pub use server::{SyncLimits, SyncServer, SyncServerProgress};
