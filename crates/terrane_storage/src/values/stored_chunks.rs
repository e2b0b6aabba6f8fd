//! Chunks as they are stored, with their versions, for whoever passes them on.

use crate::space::{ChunkPos, DimensionId};
use crate::tiers::GroupReader;
use crate::{ChunkGroup, Family, StoreError, StoredItem, WorldStore, keys};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A chunk as it is stored: how often it was saved changed, 0 as first stored; and its bytes in the
/// [chunk format](mod@crate::chunk::format), with the numbers of the world.
pub type StoredChunk = (u64, Arc<[u8]>);

impl WorldStore {
    /// Chunks as they are stored, in whatever tier, each for itself and in the order asked for; `None` for those that are not:
    /// they are air if their column [is stored](Self::is_stored), and were not generated otherwise. It does not count as an
    /// access: what is cold stays so.
    ///
    /// # Errors
    /// For each chunk those of the store, and that it is damaged.
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
        // A group that moves from one tier to another while they are searched would be found in neither.
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
