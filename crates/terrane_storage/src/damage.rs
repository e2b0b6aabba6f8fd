//! What is stored and cannot be read: found key by key, and kept aside when something whole takes its place.

use super::commit::Commit;
use super::tiers::LOST_CHUNK;
use super::{CommitReport, Durability, Entry, Family, SaveBatch, StoreError, StoredItem, WorldStore, WriteBatch, keys};
use crate::chunk::Chunk;
use crate::space::{ChunkPos, DimensionId};
use std::sync::Arc;

impl WorldStore {
    /// The damaged values that something whole took the place of, each as it was found. They are kept for whoever can
    /// still make something of them. Those that the backend could not read at all are not among them.
    pub fn set_aside(&self) -> Result<Vec<Entry>, StoreError> {
        self.list_meta(keys::range_of(keys::DAMAGED), |key, value| {
            let (family, original) = self.parsed(Family::Meta, key, keys::parse_damaged_key)?;
            Ok(Some(Entry { family, key: original.to_vec(), value: Some(value.to_vec()) }))
        })
    }

    /// Stores these blocks in the place of a chunk that cannot be read, and keeps a copy of what can be had of that. Says
    /// whether it was so: somebody may have stored a whole one meanwhile, and that stays.
    #[doc(hidden)]
    pub fn replace_damaged(
        &self,
        dimension: DimensionId,
        chunk: ChunkPos,
        blocks: Arc<Chunk>,
    ) -> Result<bool, StoreError> {
        let _writing = self.lock_writes();
        match self.chunk_value(dimension, chunk) {
            // The commit keeps what it finds.
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
            Ok(None) => return Ok(false),
            Ok(Some((_, value))) => {
                let known = self.known_blocks()?;
                match self.decode_chunk(&known, (dimension, chunk), &value) {
                    Err(StoreError::Corrupt { .. }) => {}
                    Err(error) => return Err(error),
                    Ok(_) => return Ok(false),
                }
                if value != LOST_CHUNK {
                    // Its checksum may be right, and then the commit would keep nothing of it.
                    let key = keys::damaged_key(Family::Chunks, &keys::chunk_key(dimension, chunk), &value);
                    let mut writes = WriteBatch::default();
                    writes.put(Family::Meta, key, value);
                    self.write(writes, Durability::Process)?;
                }
            }
        }
        let chunks = [((dimension, chunk), blocks)].into();
        let batch = SaveBatch { chunks, ..SaveBatch::default() };
        self.finish_commit(&batch, Commit::default(), Durability::Sync)?;
        Ok(true)
    }

    /// The values under these keys, in their order. One that the backend finds damaged is named; others in the same part of
    /// its files do not get in the way of those that are whole.
    pub(super) fn read_named(
        &self,
        family: Family,
        keys: &[&[u8]],
        item: impl Fn(usize) -> StoredItem,
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.read_each(family, keys, |index, error| match error {
            StoreError::Damaged { reason, .. } => Err(self.corrupt(item(index), reason)),
            error => Err(error),
        })
    }

    /// The values under these keys, for what is to take their place. One that the backend finds damaged is reported, and
    /// stands here as an empty one, which nothing is stored as: damaged, like any other.
    pub(super) fn read_to_replace(
        &self,
        family: Family,
        keys: &[&[u8]],
        report: &mut CommitReport,
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.read_each(family, keys, |_, error| {
            report.replaced.push(error);
            Ok(Some(Vec::new()))
        })
    }

    /// The values under these keys, in their order. What stands for one that the backend finds damaged is up to `damaged`.
    fn read_each(
        &self,
        family: Family,
        keys: &[&[u8]],
        mut damaged: impl FnMut(usize, StoreError) -> Result<Option<Vec<u8>>, StoreError>,
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        match self.store.multi_get(family, keys) {
            Err(StoreError::Damaged { .. }) => {}
            values => return values,
        }
        let mut read = |(index, key): (usize, &&[u8])| match self.store.get(family, key) {
            Err(error @ StoreError::Damaged { .. }) => damaged(index, error),
            value => value,
        };
        keys.iter().enumerate().map(&mut read).collect()
    }
}

impl Commit {
    /// Keeps a copy of a damaged value that is replaced in this commit.
    pub fn set_aside(&mut self, family: Family, key: &[u8], value: &[u8]) {
        if !value.is_empty() {
            self.writes.put(Family::Meta, keys::damaged_key(family, key, value), value.to_vec());
        }
    }
}

#[cfg(test)]
mod tests;
