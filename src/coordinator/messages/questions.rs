//! The main world's questions about the ground.

use crate::coordinator::messages::faults::WorkError;
use crate::space::{BatchPos, ChunkPos, DimensionId};
use bevy::prelude::*;
use std::sync::Arc;

/// Asks which blocks of 64 x 64 block columns are opaque, loaded or not: the height of the ground, covered places, places
/// that see the sky. An [`OpacityAnswer`](crate::view::OpacityAnswer) with the same number answers it.
///
/// A loading thread reads it from the store's opacity map. The answer includes unsaved and published changes.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskOpacity {
    /// A number of the game's choice that identifies the answer.
    pub request: u64,
    /// The dimension.
    pub dimension: DimensionId,
    /// The columns.
    pub batch: BatchPos,
}

/// The reason why a question about the ground has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The dimension is not open.
    #[error("the dimension is not open")]
    NotOpen,
    /// No thread was available, or the store cannot be read.
    #[error(transparent)]
    Work(#[from] WorkError),
}

/// Asks for the contents and versions of chunks, loaded or not. A [`ChunksAnswer`](crate::view::ChunksAnswer) with the same
/// number answers it.
///
/// A loading thread reads them from the store. The answer includes unsaved and published changes.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct AskChunks {
    /// A number of the game's choice that identifies the answer.
    pub request: u64,
    /// The dimension.
    pub dimension: DimensionId,
    /// The chunks.
    pub chunks: Vec<ChunkPos>,
}

/// The current state of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkState {
    /// The number of saves that changed it: 0 as generated. With unsaved changes, the version that it will have.
    pub version: u64,
    /// `true` if the current state is saved.
    pub saved: bool,
    /// The CRC-32 of its bytes, because two histories of a world may give a chunk the same version.
    pub checksum: u32,
    /// Its bytes, in the [chunk format](mod@crate::chunk::format), with the ids of the world.
    pub bytes: Arc<[u8]>,
}

impl ChunkState {
    pub(in crate::coordinator) fn new(version: u64, saved: bool, bytes: Arc<[u8]>) -> Self {
        Self { version, saved, checksum: crc32fast::hash(&bytes), bytes }
    }
}
