//! Damaged values: reading around them, and keeping copies when whole values replace them.

use super::commit::Commit;
use super::envelope;
use super::tiers::{Entries, LOST_CHUNK};
use super::{CommitReport, Durability, Entry, Family, Read, SaveBatch, StoreError, StoredItem, WorldStore, keys};
use crate::chunk::Chunk;
use crate::space::{ChunkPos, DimensionId};
use std::slice;
use std::sync::Arc;

impl WorldStore {
    /// The damaged values that were replaced by whole ones, as they were found. They are kept for later repair. Values
    /// that the backend could not read at all are not included.
    pub fn set_aside(&self) -> Result<Vec<Entry>, StoreError> {
        self.list_meta(keys::range_of(keys::DAMAGED), |key, value| {
            let (family, original) = self.parsed(Family::Meta, key, keys::parse_damaged_key)?;
            Ok(Some(Entry { family, key: original.to_vec(), value: Some(value.to_vec()) }))
        })
    }

    /// Replaces an unreadable chunk with these blocks, and keeps a copy of its readable bytes. Returns `false` if
    /// nothing was replaced because the chunk is readable, not stored, or on another server's ground; a whole one may have been
    /// stored meanwhile.
    #[doc(hidden)]
    pub fn replace_damaged(
        &self,
        dimension: DimensionId,
        chunk: ChunkPos,
        blocks: Arc<Chunk>,
    ) -> Result<bool, StoreError> {
        let _writing = self.lock_writes()?;
        let mut commit = Commit::default();
        if let Some(incarnation) = self.incarnation() {
            let plot = (dimension, chunk.column().tile());
            // As long as this row is stored, no other server has replaced the chunk.
            let Some(row) = incarnation.own_row(plot)? else { return Ok(false) };
            commit.writes.require(Family::Meta, keys::plot_key(plot.0, plot.1), Some(row));
        }
        match self.chunk_value(dimension, chunk) {
            // The commit keeps the copy.
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
                    // The checksum may be right, and then the commit would keep no copy.
                    let key = keys::damaged_key(Family::Chunks, &keys::chunk_key(dimension, chunk), &value);
                    commit.writes.put(Family::Meta, key, value);
                }
            }
        }
        let chunks = [((dimension, chunk), blocks)].into();
        let batch = SaveBatch { chunks, ..SaveBatch::default() };
        match self.finish_commit(&batch, commit, Durability::Sync) {
            // The plot has gone to another server meanwhile.
            Err(StoreError::PreconditionFailed { .. }) => Ok(false),
            committed => committed.map(|_| true),
        }
    }

    /// The values under these keys, in the same order. If the backend finds one damaged, the error names it. Whole
    /// values are returned even if others in the same part of a file are damaged.
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

    /// The values under these keys, which are about to be replaced. A value that the backend finds damaged is reported,
    /// and is empty here. An empty value is never stored, so it counts as damaged.
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

    /// The entries that each of `reads` asks for, from one read of the store if nothing is damaged.
    pub(super) fn read_apart(&self, reads: &[Read]) -> Result<Vec<Entries>, StoreError> {
        match self.store.read(reads) {
            Err(StoreError::Damaged { .. }) => {}
            found => return Ok(found?.into_iter().map(Ok).collect()),
        }
        let alone = reads.iter().map(|read| match self.store.read(slice::from_ref(read)) {
            Err(error @ StoreError::Damaged { .. }) => Ok(Err(error)),
            found => Ok(Ok(found?.pop().unwrap_or_default())),
        });
        alone.collect()
    }

    /// The values under these keys, in the same order. `damaged` gives the result for values that the backend finds damaged.
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
    /// Keeps a copy of a damaged value that this commit replaces.
    pub fn set_aside(&mut self, family: Family, key: &[u8], value: &[u8]) {
        if !value.is_empty() {
            self.writes.put(Family::Meta, keys::damaged_key(family, key, value), value.to_vec());
        }
    }
}

impl WorldStore {
    /// Opens the stored value of `item`. If the value is damaged, the error names the item.
    pub(super) fn open_envelope<'a>(
        &self,
        value: &'a [u8],
        item: impl FnOnce() -> StoredItem,
    ) -> Result<(u64, &'a [u8]), StoreError> {
        envelope::open(value).map_err(|reason| self.corrupt(item(), reason))
    }

    /// Decodes the enveloped value of `item`. If the value is damaged, the error names the item.
    pub(super) fn open_as<T, E: ToString>(
        &self,
        value: &[u8],
        item: StoredItem,
        read: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        let read = envelope::open(value).and_then(|(_, payload)| read(payload).map_err(|error| error.to_string()));
        read.map_err(|reason| self.corrupt(item, reason))
    }
}

#[cfg(test)]
mod tests;
