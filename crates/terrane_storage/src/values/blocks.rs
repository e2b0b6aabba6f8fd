//! The block types of a world: the layout of its chunks, and which blocks are opaque.

use super::known_blocks::KnownBlocks;
use crate::block::{BlockId, BlockRegistry, BlockRegistryError};
use crate::chunk::{Chunk, format};
use crate::space::{ChunkPos, DimensionId};
use crate::{StoreError, StoredItem, WorldStore};
use std::sync::{Arc, PoisonError};

impl WorldStore {
    /// Sets the block types that the game has registered. Call this after they are [stored](Self::save_registry_lists).
    /// From then on chunks are loaded with these types, and opacity maps are stored. Before, chunks are read and written
    /// with the stored lists.
    pub fn set_blocks(&self, registry: Arc<BlockRegistry>) {
        let opaque = (0..registry.len()).map(|id| registry.block(BlockId::new(id as u32)).is_opaque()).collect();
        self.know_blocks(KnownBlocks { registry, opaque });
    }

    /// The block types as [registered](Self::set_blocks) by the game, or else as stored.
    pub fn blocks(&self) -> Result<Arc<BlockRegistry>, StoreError> {
        Ok(self.known_blocks()?.registry.clone())
    }

    pub(crate) fn known_blocks(&self) -> Result<Arc<KnownBlocks>, StoreError> {
        if let Some(known) = &*self.blocks.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(known.clone());
        }
        let lists = self.registry_lists()?;
        let registry = match lists.blocks.is_empty() {
            true => BlockRegistry::new(),
            false => BlockRegistry::from_records(lists.blocks, lists.components)
                .map_err(|error| self.corrupt(StoredItem::Registry("blocks".into()), error))?,
        };
        Ok(self.know_blocks(KnownBlocks { registry: Arc::new(registry), opaque: Vec::new() }))
    }

    /// Drops the block types that were read from the stored lists, which have changed.
    pub(crate) fn forget_stored_blocks(&self) {
        let mut known = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        known.take_if(|known| !known.are_registered());
    }

    fn know_blocks(&self, known: KnownBlocks) -> Arc<KnownBlocks> {
        let known = Arc::new(known);
        *self.blocks.write().unwrap_or_else(PoisonError::into_inner) = Some(known.clone());
        known
    }

    /// Appends the stored form of a chunk.
    pub(crate) fn encode_chunk(
        &self,
        blocks: &KnownBlocks,
        (dimension, pos): (DimensionId, ChunkPos),
        chunk: &Chunk,
        out: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let unfit = |error| self.corrupt(StoredItem::Chunk(dimension, pos), error);
        format::encode(&*blocks.registry, chunk, &[], out).map_err(unfit)
    }

    /// Decodes the stored value of a chunk with the current block types.
    pub(crate) fn decode_chunk(
        &self,
        blocks: &KnownBlocks,
        (dimension, pos): (DimensionId, ChunkPos),
        value: &[u8],
    ) -> Result<Chunk, StoreError> {
        let item = || StoredItem::Chunk(dimension, pos);
        let (chunk, _) = self.open_as(value, item(), |payload| format::decode(&*blocks.registry, payload))?;
        let unmigrated = |error: BlockRegistryError| StoreError::Unmigrated {
            what: item(),
            path: self.path().to_path_buf(),
            reason: error.to_string(),
        };
        let upgraded = chunk.upgraded(&blocks.registry).map_err(unmigrated)?;
        Ok(upgraded.unwrap_or(chunk))
    }
}
