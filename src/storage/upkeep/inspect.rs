//! One chunk as it is stored.

use crate::chunk::Chunk;
use crate::chunk::format::cluster::ClusterScale;
use crate::space::{ChunkPos, DimensionId};
use crate::storage::tiers::PackedGroups;
use crate::storage::{ChunkGroup, Family, StoreError, StoredItem, Tier, WorldStore, envelope, keys};

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
        let _resting = self.groups_at_rest();
        let damaged = |reason: String| self.corrupt(StoredItem::Chunk(dimension, pos), reason);
        let found = match self.store.get(Family::Chunks, &keys::chunk_key(dimension, pos))? {
            Some(value) => Some((Tier::Hot, value)),
            None => match PackedGroups::new(self).find(ChunkGroup::of(dimension, pos))? {
                Some(packed) => {
                    let place = ClusterScale::Small.place(pos);
                    if packed.part.chunks >> place & 1 == 0 {
                        return Ok(None);
                    }
                    let unpacked = packed.part.unpack().map_err(|error| damaged(error.to_string()))?;
                    let value = unpacked.values().find(|(found, _)| *found == place);
                    value.map(|(_, value)| (packed.tier, value.to_vec()))
                }
                None => None,
            },
        };
        let Some((tier, value)) = found else { return Ok(None) };
        let opened = envelope::open(&value).map_err(|error| damaged(error.to_string()))?;
        let chunk = self.decode_chunk(&blocks, (dimension, pos), &value)?;
        Ok(Some(InspectedChunk { tier, version: opened.version, bytes: value.len(), chunk }))
    }
}
