//! Several changes that become one.

use std::collections::BTreeMap;

/// Writes and deletes that become one change: [`ObjectStore::apply`](super::ObjectStore::apply). Of several for one key the
/// last counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectBatch {
    /// Version and bytes; `None` for what is deleted.
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

    /// How many keys it changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}
