//! The interface of a storage backend.

use crate::backends::Family;
use crate::{StoreError, keys};
use std::fmt;
use std::num::NonZeroU32;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A key and its value.
pub type KeyValue = (Vec<u8>, Vec<u8>);

/// A set of ordered maps from bytes to bytes, one for each [`Family`], with atomic, crash-safe writes.
///
/// No state stays open between two calls, so a store may be at the other end of a network. Keys and values are
/// arbitrary bytes and may be empty. [`conformance`](super::conformance) checks an implementation.
pub trait KeyValueStore: Send + Sync {
    /// The path of this store, for messages.
    fn path(&self) -> &Path;

    /// The value under `key`.
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// The values under `keys`, in the order of `keys`.
    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// The first `limit` entries of `range`, in ascending order of keys. To continue, start again behind the last key.
    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError>;

    /// The first entries of `range`, in ascending order of keys: at most `limit`, with about `most_bytes` of keys and values.
    /// A store that learns the size of a value only by reading it may return a few more. Empty only if the range is empty.
    fn scan_page(
        &self,
        family: Family,
        range: Range<&[u8]>,
        most_entries: usize,
        most_bytes: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let (mut page, mut bytes, mut start) = (Vec::new(), 0, range.start.to_vec());
        while page.len() < most_entries && bytes < most_bytes {
            let next = self.scan(family, &start[..]..range.end, FEW.min(most_entries - page.len()))?;
            let Some((last, _)) = next.last() else { break };
            start = keys::after(last);
            bytes += next.iter().map(entry_bytes).sum::<usize>();
            page.extend(next);
        }
        Ok(page)
    }

    /// The entries that each of `reads` asks for, in the order of `reads`. A store at the other end of a network should
    /// answer in one round trip.
    fn read(&self, reads: &[Read]) -> Result<Vec<Vec<KeyValue>>, StoreError> {
        let found = reads.iter().map(|read| match read {
            Read::Range(family, range, limit) => self.scan(*family, &range.start..&range.end, *limit),
            Read::Keys(family, keys) => {
                let values = self.multi_get(*family, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
                Ok(keys.iter().zip(values).filter_map(|(key, value)| Some((key.clone(), value?))).collect())
            }
        });
        found.collect()
    }

    /// Writes the whole batch atomically, across all families.
    ///
    /// # Errors
    /// [`StoreError::PreconditionFailed`] if one of the batch's [preconditions](WriteBatch::require) does not hold. The
    /// batch is then not written. No other write happens between the check and the write.
    ///
    /// After any other error, the batch may have been written, or may be written until the next write returns, and never
    /// after that.
    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError>;

    /// Makes all earlier writes survive a loss of power.
    fn sync(&self) -> Result<(), StoreError>;

    /// The unsynced writes that were missing when the store was opened, after a loss of power. A store that was opened for
    /// writing continues without them.
    fn lost_writes(&self) -> Option<&LostWrites> {
        None
    }

    /// The approximate number of entries of a family and their size, for statistics; `None` if only a full scan could tell.
    fn approximate_family(&self, family: Family) -> Result<Option<FamilySize>, StoreError> {
        let _ = family;
        Ok(None)
    }

    /// The lower and upper bound of the number of entries of a family, if the store knows them without a scan. A full
    /// scan that finds a number outside these bounds has missed entries. `None` if the bounds are unknown or entries
    /// may be written meanwhile.
    fn expected_entries(&self, family: Family) -> Result<Option<RangeInclusive<u64>>, StoreError> {
        let _ = family;
        Ok(None)
    }

    /// The number of bytes written to disk since the store was opened, including logs, tables and compactions. `None`
    /// if the backend does not know.
    fn written_bytes(&self) -> Option<u64> {
        None
    }

    /// The bytes that the store holds in memory: its cache, and entries that are not in its tables yet. `None` if the backend does not
    /// know.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }

    /// The approximate size of the entries of a range, for the progress of a scan; `None` if only the scan itself could tell.
    fn approximate_range_bytes(&self, family: Family, range: Range<&[u8]>) -> Result<Option<u64>, StoreError> {
        let _ = (family, range);
        Ok(None)
    }

    /// Reclaims the space of deleted and replaced entries of a family. This may take minutes; reads and writes continue
    /// meanwhile. A store that reclaims space by itself does nothing.
    fn compact(&self, family: Family) -> Result<(), StoreError> {
        let _ = family;
        Ok(())
    }

    /// Adds a backup of the current contents to the backups in `folder`. If `keep` is given, removes all but the newest
    /// `keep` backups. Reads and writes continue meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the backup fails or the store supports no backups.
    fn back_up(&self, folder: &Path, keep: Option<NonZeroU32>) -> Result<Backup, StoreError> {
        let _ = (folder, keep);
        let reason = "this kind of store makes no backups; copy it instead";
        Err(StoreError::backend("back up", None, self.path(), reason))
    }
}

/// A part of a batch of [reads](KeyValueStore::read).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// The entries under these keys, in the order of the keys. Keys without an entry are left out.
    Keys(Family, Vec<Vec<u8>>),
    /// The first entries of a range of keys, in ascending order, and at most this many.
    Range(Family, Range<Vec<u8>>, usize),
}

/// The number of entries read at a time if the sizes of values are unknown in advance.
const FEW: usize = 16;

/// The size of a key and its value in bytes.
pub(crate) fn entry_bytes((key, value): &KeyValue) -> usize {
    key.len() + value.len()
}

/// A backup of a store, as listed by its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The number of the backup, larger than that of any older one in the folder.
    pub number: u32,
    /// The time of the backup.
    pub made_at: SystemTime,
    /// The bytes that the backup restores. Backups share common data, so the folder takes less than their sum.
    pub bytes: u64,
}

/// The last writes of a store, which a loss of power took. None of them was synced, and all synced writes are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostWrites {
    /// The log in which they were.
    pub path: PathBuf,
    /// A description of the damage in the log.
    pub reason: String,
    /// The number of the last write that is there. Each put and each delete counts as one, since the store was made.
    pub last_kept: u64,
    /// The number of the last write that was synced.
    pub last_synced: u64,
    /// The number of lost batches of which a part is still in the log. There may have been more.
    pub batches: u64,
}

impl fmt::Display for LostWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, reason, last_kept, last_synced, batches } = self;
        write!(
            f,
            "the last saves before a loss of power are lost, at least {batches} of them: in {}, {reason}; everything up to \
             write {last_kept} is there, and of that everything up to write {last_synced} was synced",
            path.display()
        )
    }
}

/// The approximate size of a family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FamilySize {
    /// The number of keys.
    pub entries: u64,
    /// The bytes that keys and values take in the store.
    pub bytes: u64,
}

/// The events that a finished write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A write survives a loss of power.
    Sync,
    /// A write survives any end of the process, but not a loss of power.
    Process,
}

/// Puts and deletes that are written together, and the preconditions for writing them. The later of two changes of the
/// same key wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteBatch {
    preconditions: Vec<Entry>,
    changes: Vec<Entry>,
    bytes: u64,
}

/// A key with its new or required value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The family.
    pub family: Family,
    /// The key.
    pub key: Vec<u8>,
    /// The value; `None` for no value.
    pub value: Option<Vec<u8>>,
}

impl Entry {
    /// Compares the value in the store at `path` with the required one.
    ///
    /// # Errors
    /// [`StoreError::PreconditionFailed`] if they differ.
    pub fn require(&self, stored: Option<&[u8]>, path: &Path) -> Result<(), StoreError> {
        if stored == self.value.as_deref() {
            return Ok(());
        }
        Err(StoreError::PreconditionFailed { family: self.family, key: self.key.clone(), path: path.to_path_buf() })
    }
}

impl WriteBatch {
    /// Stores `value` under `key`.
    pub fn put(&mut self, family: Family, key: impl Into<Vec<u8>>, value: Vec<u8>) {
        self.push(Entry { family, key: key.into(), value: Some(value) });
    }

    /// Deletes `key`, if it exists.
    pub fn delete(&mut self, family: Family, key: impl Into<Vec<u8>>) {
        self.push(Entry { family, key: key.into(), value: None });
    }

    /// Adds a precondition: the batch is written only if `expected` is stored under `key` before the batch's own
    /// changes. `None` means that the key must not exist. All preconditions of a batch must hold.
    pub fn require(&mut self, family: Family, key: impl Into<Vec<u8>>, expected: Option<Vec<u8>>) {
        self.preconditions.push(Entry { family, key: key.into(), value: expected });
    }

    fn push(&mut self, change: Entry) {
        self.bytes += (change.key.len() + change.value.as_ref().map_or(0, Vec::len)) as u64;
        self.changes.push(change);
    }

    /// Appends another batch to this one. Its preconditions then count for both.
    pub fn append(&mut self, later: Self) {
        self.bytes += later.bytes;
        self.preconditions.extend(later.preconditions);
        self.changes.extend(later.changes);
    }

    /// The number of puts and deletes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns `true` if there are no puts and deletes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The size of all keys and values that are put or deleted, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The preconditions.
    pub fn preconditions(&self) -> &[Entry] {
        &self.preconditions
    }

    /// The puts and deletes (entries without a value), in order.
    pub fn changes(&self) -> &[Entry] {
        &self.changes
    }

    /// The puts and deletes (entries without a value), in order.
    pub fn into_changes(self) -> Vec<Entry> {
        self.changes
    }
}
