//! What is stored and cannot be read: found key by key, and kept aside when something whole takes its place.

use super::commit::Commit;
use super::{CommitReport, Durability, Family, StoreError, StoredItem, WorldStore, WriteBatch, keys};
use crate::space::{ChunkPos, DimensionId};

/// A damaged value that something whole took the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// In which family it was.
    pub family: Family,
    /// Under which key.
    pub key: Vec<u8>,
    /// What was there.
    pub value: Vec<u8>,
}

impl WorldStore {
    /// The damaged values that something whole took the place of, each as it was found. They are kept for whoever can
    /// still make something of them. Those that the backend could not read at all are not among them.
    pub fn set_aside(&self) -> Result<Vec<SetAside>, StoreError> {
        let mut found = Vec::new();
        self.scan_all(Family::Meta, keys::damaged_range(), |key, value| {
            let (family, original) = keys::parse_damaged_key(key).ok_or_else(|| self.unknown_key(Family::Meta, key))?;
            found.push(SetAside { family, key: original.to_vec(), value: value.to_vec() });
            Ok(())
        })?;
        Ok(found)
    }

    /// Keeps a copy of what is stored of a chunk, before something else takes its place though its checksum may be right.
    pub fn keep_copy(&self, dimension: DimensionId, chunk: ChunkPos) -> Result<(), StoreError> {
        let _writing = self.lock_writes();
        let value = match self.chunk_value(dimension, chunk) {
            // Whatever replaces it keeps what can be read of it.
            Err(StoreError::Corrupt { .. } | StoreError::Damaged { .. }) => return Ok(()),
            value => value?,
        };
        let Some((_, value)) = value else { return Ok(()) };
        let mut writes = WriteBatch::default();
        let key = keys::damaged_key(Family::Chunks, &keys::chunk_key(dimension, chunk), &value);
        writes.put(Family::Meta, key, value);
        self.write(writes, Durability::Process)
    }

    /// The values under these keys, in their order. One that the backend finds damaged is named; others in the same part of
    /// its files do not get in the way of those that are whole.
    pub(super) fn read_named(
        &self,
        family: Family,
        keys: &[&[u8]],
        item: impl Fn(usize) -> StoredItem,
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        match self.store.multi_get(family, keys) {
            Err(StoreError::Damaged { .. }) => {}
            values => return values,
        }
        let read = |(index, key): (usize, &&[u8])| match self.store.get(family, key) {
            Err(StoreError::Damaged { reason, .. }) => Err(self.corrupt(item(index), reason)),
            value => value,
        };
        keys.iter().enumerate().map(read).collect()
    }

    /// The values under these keys, for what is to take their place. One that the backend finds damaged is reported, and
    /// stands here as an empty one, which nothing is stored as: damaged, like any other.
    pub(super) fn read_to_replace(
        &self,
        family: Family,
        keys: &[&[u8]],
        report: &mut CommitReport,
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        match self.store.multi_get(family, keys) {
            Err(StoreError::Damaged { .. }) => {}
            values => return values,
        }
        let mut read = |key: &&[u8]| match self.store.get(family, key) {
            Err(error @ StoreError::Damaged { .. }) => {
                report.replaced.push(error);
                Ok(Some(Vec::new()))
            }
            value => value,
        };
        keys.iter().map(&mut read).collect()
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
