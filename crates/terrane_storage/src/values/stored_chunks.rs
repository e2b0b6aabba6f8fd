//! Stored chunks with their versions, to be passed on unchanged.

use crate::space::{ChunkPos, DimensionId};
use crate::tiers::GroupReader;
use crate::{ChunkGroup, Family, StoreError, StoredItem, WorldStore, keys};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A stored chunk: its version, which counts saved changes and is 0 at first, and its bytes in the [chunk
/// format](mod@crate::chunk::format), with the numbers of the world.
pub type StoredChunk = (u64, Arc<[u8]>);

impl WorldStore {
    /// Stored chunks from any tier, in the order of the request. A chunk that is not stored is `None`: it is air if its
    /// column [is stored](Self::is_stored), and was not generated otherwise. Reading them does not count as an access,
    /// so cold chunks stay cold.
    ///
    /// # Errors
    /// For each chunk, errors of the store and damage of the chunk.
    #[doc(hidden)]
    pub fn stored_chunks(
        &self,
        dimension: DimensionId,
        chunks: &[ChunkPos],
    ) -> Vec<Result<Option<StoredChunk>, StoreError>> {
        let mut groups: BTreeMap<ChunkGroup, Vec<usize>> = BTreeMap::new();
        for (index, chunk) in chunks.iter().enumerate() {
            groups.entry(ChunkGroup::of(dimension, *chunk)).or_default().push(index);
        }
        let mut found: Vec<_> = chunks.iter().map(|_| Ok(None)).collect();
        // A lookup without the lock could miss a group that moves between tiers meanwhile.
        let _resting = self.groups_at_rest();
        let mut packed = GroupReader::new(self);
        for (group, members) in groups {
            let mut is_hot = false;
            for &index in &members {
                let value = self.store.get(Family::Chunks, &keys::chunk_key(dimension, chunks[index]));
                is_hot |= !matches!(value, Ok(None));
                found[index] = value.and_then(|value| self.opened(dimension, chunks[index], value.as_deref()));
            }
            if !is_hot {
                let is_wanted = |chunk: ChunkPos| members.iter().any(|index| chunks[*index] == chunk);
                let values = packed.packed_values(group, is_wanted);
                let values = values.map(|found| found.into_iter().flat_map(|(_, values)| values).collect());
                let values: Result<BTreeMap<ChunkPos, Vec<u8>>, StoreError> = values;
                for &index in &members {
                    let value = values.as_ref().map_err(Clone::clone).map(|values| values.get(&chunks[index]));
                    found[index] =
                        value.and_then(|value| self.opened(dimension, chunks[index], value.map(Vec::as_slice)));
                }
            }
        }
        found
    }

    fn opened(
        &self,
        dimension: DimensionId,
        chunk: ChunkPos,
        value: Option<&[u8]>,
    ) -> Result<Option<StoredChunk>, StoreError> {
        let Some(value) = value else { return Ok(None) };
        let (version, bytes) = self.open_envelope(value, || StoredItem::Chunk(dimension, chunk))?;
        Ok(Some((version, bytes.into())))
    }
}
