//! Inspection of single stored chunks.

use crate::chunk::Chunk;
use crate::space::{ChunkPos, DimensionId};
use crate::{StoreError, StoredItem, Tier, WorldStore};

/// A stored chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct InspectedChunk {
    /// The chunk's tier.
    pub tier: Tier,
    /// The number of times that the chunk changed.
    pub version: u64,
    /// The size of the value in bytes, before compression by the store.
    pub bytes: usize,
    /// The contents.
    pub chunk: Chunk,
}

impl WorldStore {
    /// The stored chunk at `pos`, from any tier; `None` if it is not stored.
    ///
    /// # Errors
    /// Errors of the store, and damage of the chunk.
    pub fn inspect_chunk(&self, dimension: DimensionId, pos: ChunkPos) -> Result<Option<InspectedChunk>, StoreError> {
        let blocks = self.known_blocks()?;
        let Some((tier, value)) = self.chunk_value(dimension, pos)? else { return Ok(None) };
        let (version, _) = self.open_envelope(&value, || StoredItem::Chunk(dimension, pos))?;
        let chunk = self.decode_chunk(&blocks, (dimension, pos), &value)?;
        Ok(Some(InspectedChunk { tier, version, bytes: value.len(), chunk }))
    }
}
