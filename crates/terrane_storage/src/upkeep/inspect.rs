//! One chunk as it is stored.

use crate::chunk::Chunk;
use crate::space::{ChunkPos, DimensionId};
use crate::{StoreError, StoredItem, Tier, WorldStore};

/// A chunk as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct InspectedChunk {
    /// Where it lies.
    pub tier: Tier,
    /// How often it changed.
    pub version: u64,
    /// Bytes of its value, before what the store compresses.
    pub bytes: usize,
    /// What is in it.
    pub chunk: Chunk,
}

impl WorldStore {
    /// One chunk as it is stored, in whatever tier; `None` if it is not.
    ///
    /// # Errors
    /// Those of the store, and of a chunk that is damaged.
    pub fn inspect_chunk(&self, dimension: DimensionId, pos: ChunkPos) -> Result<Option<InspectedChunk>, StoreError> {
        let blocks = self.known_blocks()?;
        let Some((tier, value)) = self.chunk_value(dimension, pos)? else { return Ok(None) };
        let (version, _) = self.open_envelope(&value, || StoredItem::Chunk(dimension, pos))?;
        let chunk = self.decode_chunk(&blocks, (dimension, pos), &value)?;
        Ok(Some(InspectedChunk { tier, version, bytes: value.len(), chunk }))
    }
}
