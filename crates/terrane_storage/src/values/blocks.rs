//! The block types of a world, stored and in memory: the layout of its chunks, and which blocks are opaque.

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

/// The block types, as the game has registered them or as they are stored.
#[derive(Debug)]
pub(crate) struct KnownBlocks {
    pub registry: Arc<BlockRegistry>,
    /// For each type, by its id, `true` if it is opaque. Empty before the game has registered its types, since opacity is not stored.
    pub opaque: Vec<bool>,
}

impl KnownBlocks {
    /// Returns `true` if the game has registered its types.
    pub fn are_registered(&self) -> bool {
        !self.opaque.is_empty()
    }

    /// Returns `true` if a block hides the blocks behind it. Blocks of unknown types do.
    pub fn is_opaque(&self, block: BlockId) -> bool {
        self.opaque.get(block.index() as usize).copied().unwrap_or(block != BlockId::AIR)
    }

    /// A checksum of the types that are not opaque. An opacity map with another one is outdated. Opaque types that are
    /// added later do not change it.
    pub fn fingerprint(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        let transparent = (0_u32..).zip(&self.opaque).filter(|(_, is_opaque)| !**is_opaque);
        transparent.for_each(|(id, _)| hasher.update(&id.to_le_bytes()));
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise, world format: The fingerprint of an opacity map is that of the block types that are not opaque.
    #[test]
    fn the_fingerprint_is_that_of_the_types_that_are_not_opaque() {
        let registry = Arc::new(BlockRegistry::new());
        let known = |opaque: &[bool]| KnownBlocks { registry: registry.clone(), opaque: opaque.to_vec() };
        let fingerprint = |opaque: &[bool]| known(opaque).fingerprint();
        let expected = crc32fast::hash(&[0, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(fingerprint(&[false, true, false]), expected);
        assert_eq!(fingerprint(&[false, true, false, true]), expected, "an opaque type that came later");
        assert_ne!(fingerprint(&[false, true, false, false]), expected);
        assert_ne!(fingerprint(&[false, false, true]), expected);
    }
}
