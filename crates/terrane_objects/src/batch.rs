//! [`ObjectBatch`]: several changes that are applied as one.

use std::collections::BTreeMap;

/// Writes and deletes that [`ObjectStore::apply`](super::ObjectStore::apply) applies as one change. The last one for a
/// key wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectBatch {
    /// Version and bytes; `None` for a delete.
    pub(super) changes: BTreeMap<String, Option<(u64, Vec<u8>)>>,
}

impl ObjectBatch {
    /// Adds a write.
    pub fn write(&mut self, key: impl Into<String>, version: u64, data: impl Into<Vec<u8>>) -> &mut Self {
        self.changes.insert(key.into(), Some((version, data.into())));
        self
    }

    /// Adds a delete.
    pub fn delete(&mut self, key: impl Into<String>) -> &mut Self {
        self.changes.insert(key.into(), None);
        self
    }

    /// The number of keys that the batch changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns `true` if the batch changes nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}
