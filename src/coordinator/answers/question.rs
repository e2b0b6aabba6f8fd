//! What the main world can ask of the ground.

use crate::coordinator::threads::work_error::WorkError;
use crate::space::{BatchPos, ChunkPos};
use bevy::prelude::*;
use std::sync::Arc;

/// Asks which blocks of 64 x 64 block columns are opaque, loaded or not: how high the ground is, what is covered, from where
/// the sky can be seen. An [`OpacityAnswer`](crate::view::OpacityAnswer) with the same number tells.
///
/// It is read from the store's opacity map on a loading thread; what is not saved yet, and what is published, is in it.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskOpacity {
    /// A number of the game's choice, to know the answer by.
    pub request: u64,
    /// The dimension's entity.
    pub dimension: Entity,
    /// The columns.
    pub batch: BatchPos,
}

/// Why a question of the main world about the ground has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The dimension is not open.
    #[error("the dimension is not open")]
    NotOpen,
    /// No thread could look, or the store cannot be read.
    #[error(transparent)]
    Work(#[from] WorkError),
}

/// Asks what chunks are and which versions they have, loaded or not. A [`ChunksAnswer`](crate::view::ChunksAnswer) with the same asker tells.
///
/// They are read from the store on a loading thread; what is not saved yet, and what is published, counts.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct AskChunks {
    /// An entity of the game's choice, to know the answer by.
    pub asker: Entity,
    /// The dimension's entity.
    pub dimension: Entity,
    /// The chunks.
    pub chunks: Vec<ChunkPos>,
}

/// What a chunk is at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkState {
    /// How often it was saved changed: 0 as generated. If it is not saved as it is now, the version that it will have.
    pub version: u64,
    /// Whether it is saved as it is now.
    pub is_saved: bool,
    /// The CRC-32 of its bytes: two histories of a world may have the same version of a chunk.
    pub checksum: u32,
    /// Its bytes, in the [chunk format](mod@crate::chunk::format), with the numbers of the world.
    pub bytes: Arc<[u8]>,
}

impl ChunkState {
    pub(super) fn new(version: u64, is_saved: bool, bytes: Arc<[u8]>) -> Self {
        Self { version, is_saved, checksum: crc32fast::hash(&bytes), bytes }
    }
}
