//! What a backend must be able to do.

use crate::{StoreError, keys};
use std::fmt;
use std::num::NonZeroU32;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::time::SystemTime;

/// A key and its value.
pub type KeyValue = (Vec<u8>, Vec<u8>);

/// Ordered maps from bytes to bytes, one for each [`Family`], that are written atomically and survive a crash.
///
/// Nothing stays open between two calls, so a store may be at the other end of a network. Keys and values are any bytes,
/// none of them included. What an implementation must do is checked by [`conformance`](super::conformance).
pub trait KeyValueStore: Send + Sync {
    /// Where this store is, for messages.
    fn path(&self) -> &Path;

    /// The value under `key`.
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// The values under `keys`, in their order.
    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// The first `limit` entries of `range`, keys ascending. To go on, start again behind the last key.
    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError>;

    /// The first entries of `range`, keys ascending: at most so many, and with about `most_bytes` of keys and values: a few
    /// more if the store does not know how large a value is before it reads it. Empty only if there are none.
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

    /// Writes the whole batch, or nothing of it, over all families.
    ///
    /// # Errors
    /// [`StoreError::PreconditionFailed`] if one of the batch's [preconditions](WriteBatch::require) does not hold: then
    /// nothing is written. Nobody else's write comes between the check and the write.
    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError>;

    /// Makes everything written so far survive a loss of power.
    fn sync(&self) -> Result<(), StoreError>;

    /// About how many entries a family has and how much room they take, for statistics; `None` if nobody can tell without
    /// looking at all of them.
    fn approximate_family(&self, family: Family) -> Result<Option<FamilySize>, StoreError> {
        let _ = family;
        Ok(None)
    }

    /// How many entries a family has at least and at most, if the store knows that without looking at them; a walk over all of
    /// them that comes to another number did not see all. `None` if it does not know, or if entries may be written
    /// meanwhile.
    fn expected_entries(&self, family: Family) -> Result<Option<RangeInclusive<u64>>, StoreError> {
        let _ = family;
        Ok(None)
    }

    /// The bytes that were written to the disk since the store was opened, whatever for: logs, tables, and what is written
    /// again to tidy up. `None` if the backend does not know.
    fn written_bytes(&self) -> Option<u64> {
        None
    }

    /// About how much room the entries of a range take, to tell how far a walk over it is; `None` if nobody can tell
    /// without that walk.
    fn approximate_range_bytes(&self, family: Family, range: Range<&[u8]>) -> Result<Option<u64>, StoreError> {
        let _ = (family, range);
        Ok(None)
    }

    /// Gives back the room of what was deleted or replaced in a family. That may take minutes; reading and writing go on
    /// meanwhile. A store that sees to it by itself does nothing.
    fn compact(&self, family: Family) -> Result<(), StoreError> {
        let _ = family;
        Ok(())
    }

    /// Adds a backup of all that is stored at this moment to those in `folder`, and removes all but the newest `keep` of
    /// them, if that is given. Reading and writing go on meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if that fails, or if the store has no backups of its own.
    fn back_up(&self, folder: &Path, keep: Option<NonZeroU32>) -> Result<Backup, StoreError> {
        let _ = (folder, keep);
        let reason = "this kind of store makes no backups; copy it instead";
        Err(StoreError::backend("back up", None, self.path(), reason))
    }
}

/// Entries that are read at a time where the size of values cannot be known before.
const FEW: usize = 16;

/// The bytes of a key and its value.
pub(crate) fn entry_bytes((key, value): &KeyValue) -> usize {
    key.len() + value.len()
}

/// A backup of a store, by what stands in its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Its number, larger than that of any older one in the folder.
    pub number: u32,
    /// When it was made.
    pub made_at: SystemTime,
    /// The bytes that it restores. Backups share what they have in common, so the folder takes less than their sum.
    pub bytes: u64,
}

/// How much there is in a family, about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FamilySize {
    /// Keys.
    pub entries: u64,
    /// Bytes that they and their values take in the store.
    pub bytes: u64,
}

/// One of the ordered maps of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Chunks that are read and written one by one.
    Chunks,
    /// Entities by UUID.
    Entities,
    /// Lists that give names their numbers: one list a key.
    Registry,
    /// The world's header, dimensions, graphs, and where entities are.
    Meta,
    /// Which blocks are opaque.
    Opacity,
    /// Chunks that nobody needed for a while: 4 x 4 x 4 of them in a value.
    WarmChunks,
    /// Chunks that nobody may ever need again: up to 16 x 16 x 16 of them in a value.
    ColdChunks,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 7] =
        [Self::Chunks, Self::Entities, Self::Registry, Self::Meta, Self::Opacity, Self::WarmChunks, Self::ColdChunks];

    /// What is in it, in a few words.
    pub const fn purpose(self) -> &'static str {
        match self {
            Self::Chunks => "hot chunks",
            Self::Entities => "entities",
            Self::Registry => "lists of types",
            Self::Meta => "what is known of everything else",
            Self::Opacity => "opacity map",
            Self::WarmChunks => "warm chunks, 4x4x4 a value",
            Self::ColdChunks => "cold chunks, up to 16x16x16 a value",
        }
    }

    /// The family's name on disk.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chunks => "chunkl0",
            Self::Entities => "entities",
            Self::Registry => "registry",
            Self::Meta => "meta",
            Self::Opacity => "opacity",
            Self::WarmChunks => "chunkl1",
            Self::ColdChunks => "chunkl2",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a write outlives once it has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A loss of power.
    Sync,
    /// The end of the process, however sudden, but not a loss of power.
    Process,
}

/// Puts and deletes that belong together, and what must be stored for them to be made. Of two changes of the same key the
/// later one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteBatch {
    preconditions: Vec<Entry>,
    changes: Vec<Entry>,
    bytes: u64,
}

/// A key and what is to be there, or must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// In which family.
    pub family: Family,
    /// The key.
    pub key: Vec<u8>,
    /// What is under it; `None` for nothing.
    pub value: Option<Vec<u8>>,
}

impl Entry {
    /// Compares what is stored in the store at `path` with what must be there.
    ///
    /// # Errors
    /// [`StoreError::PreconditionFailed`] if that is something else.
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

    /// Removes `key`, if it is there.
    pub fn delete(&mut self, family: Family, key: impl Into<Vec<u8>>) {
        self.push(Entry { family, key: key.into(), value: None });
    }

    /// The batch is written only if `expected` is stored under `key` at that moment, before the batch's own changes.
    /// `None` stands for nothing. All preconditions of a batch must hold.
    pub fn require(&mut self, family: Family, key: impl Into<Vec<u8>>, expected: Option<Vec<u8>>) {
        self.preconditions.push(Entry { family, key: key.into(), value: expected });
    }

    fn push(&mut self, change: Entry) {
        self.bytes += (change.key.len() + change.value.as_ref().map_or(0, Vec::len)) as u64;
        self.changes.push(change);
    }

    /// Adds all of another batch behind what is here.
    pub fn append(&mut self, later: Self) {
        self.bytes += later.bytes;
        self.changes.extend(later.changes);
    }

    /// The number of puts and deletes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The bytes of all keys and values that are put or deleted.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What must be stored.
    pub fn preconditions(&self) -> &[Entry] {
        &self.preconditions
    }

    /// The puts and, without a value, deletes, in their order.
    pub fn changes(&self) -> &[Entry] {
        &self.changes
    }

    /// The puts and, without a value, deletes, in their order.
    pub fn into_changes(self) -> Vec<Entry> {
        self.changes
    }
}
