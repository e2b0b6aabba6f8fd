//! What a backend must be able to do.

use super::StoreError;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A key and its value.
pub type KeyValue = (Vec<u8>, Vec<u8>);

/// Ordered maps from bytes to bytes, one for each [`Family`], that are written atomically and survive a crash.
pub trait KeyValueStore: Send + Sync {
    /// Where this store is, for messages.
    fn path(&self) -> &Path;

    /// The value under `key`.
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// The values under `keys`, in their order.
    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// The first `limit` entries of `range`, keys ascending. To go on, start again behind the last key.
    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError>;

    /// Writes the whole batch, or nothing of it, over all families.
    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError>;

    /// Makes everything written so far survive a loss of power.
    fn sync(&self) -> Result<(), StoreError>;

    /// About how much room all entries take, for statistics.
    fn approximate_bytes(&self) -> Result<u64, StoreError>;

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
}

/// A store that others have a handle to as well.
impl<S: KeyValueStore + ?Sized> KeyValueStore for Arc<S> {
    fn path(&self) -> &Path {
        (**self).path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        (**self).get(family, key)
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        (**self).multi_get(family, keys)
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        (**self).scan(family, range, limit)
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        (**self).write(batch, durability)
    }

    fn sync(&self) -> Result<(), StoreError> {
        (**self).sync()
    }

    fn approximate_bytes(&self) -> Result<u64, StoreError> {
        (**self).approximate_bytes()
    }

    fn written_bytes(&self) -> Option<u64> {
        (**self).written_bytes()
    }

    fn approximate_range_bytes(&self, family: Family, range: Range<&[u8]>) -> Result<Option<u64>, StoreError> {
        (**self).approximate_range_bytes(family, range)
    }
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
}

impl Family {
    /// All families.
    pub const ALL: [Self; 5] = [Self::Chunks, Self::Entities, Self::Registry, Self::Meta, Self::Opacity];

    /// The family's name on disk.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chunks => "chunkl0",
            Self::Entities => "entities",
            Self::Registry => "registry",
            Self::Meta => "meta",
            Self::Opacity => "opacity",
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

/// Puts and deletes that belong together. Of two on the same key the later one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteBatch {
    changes: Vec<Change>,
    bytes: u64,
}

/// One put, or with no value one delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) family: Family,
    pub(super) key: Vec<u8>,
    pub(super) value: Option<Vec<u8>>,
}

impl WriteBatch {
    /// Stores `value` under `key`.
    pub fn put(&mut self, family: Family, key: impl Into<Vec<u8>>, value: Vec<u8>) {
        self.push(Change { family, key: key.into(), value: Some(value) });
    }

    /// Removes `key`, if it is there.
    pub fn delete(&mut self, family: Family, key: impl Into<Vec<u8>>) {
        self.push(Change { family, key: key.into(), value: None });
    }

    fn push(&mut self, change: Change) {
        self.bytes += (change.key.len() + change.value.as_ref().map_or(0, Vec::len)) as u64;
        self.changes.push(change);
    }

    /// The number of puts and deletes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The bytes of all keys and values.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn into_changes(self) -> Vec<Change> {
        self.changes
    }
}
