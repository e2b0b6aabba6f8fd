//! A store in the memory of the process.

use crate::{Durability, Family, FamilySize, KeyValue, KeyValueStore, StoreError, WriteBatch};
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// A [`KeyValueStore`] in memory, for tests and temporary worlds.
#[derive(Debug, Default)]
pub struct MemoryStore {
    // One lock over all families makes a batch atomic for readers.
    families: RwLock<Families>,
}

type Families = [BTreeMap<Vec<u8>, Vec<u8>>; Family::ALL.len()];

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// A separate store with the current contents of this one, which are whole batches only.
    ///
    /// Tests can simulate a loss of power with it: a snapshot holds exactly the data that a disk would hold if the
    /// process ended now. A world opened on the snapshot continues from there without affecting this store.
    pub fn snapshot(&self) -> Self {
        Self { families: RwLock::new(self.read().clone()) }
    }

    // Code that can panic never runs under the lock, so the data behind a poisoned lock is still whole.
    fn read(&self) -> RwLockReadGuard<'_, Families> {
        self.families.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyValueStore for MemoryStore {
    fn path(&self) -> &Path {
        Path::new("in memory")
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.read()[family as usize].get(key).cloned())
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let families = self.read();
        let family = &families[family as usize];
        Ok(keys.iter().map(|key| family.get(*key).cloned()).collect())
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let bounds = (Bound::Included(range.start), Bound::Excluded(range.end));
        let families = self.read();
        let entries = families[family as usize].range::<[u8], _>(bounds);
        Ok(entries.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn write(&self, batch: WriteBatch, _durability: Durability) -> Result<(), StoreError> {
        let mut families = self.families.write().unwrap_or_else(PoisonError::into_inner);
        for required in batch.preconditions() {
            let stored = families[required.family as usize].get(&required.key);
            required.require(stored.map(Vec::as_slice), self.path())?;
        }
        for change in batch.into_changes() {
            let family = &mut families[change.family as usize];
            match change.value {
                Some(value) => family.insert(change.key, value),
                None => family.remove(&change.key),
            };
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn approximate_family(&self, family: Family) -> Result<Option<FamilySize>, StoreError> {
        let families = self.read();
        let entries = &families[family as usize];
        let bytes = entries.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
        Ok(Some(FamilySize { entries: entries.len() as u64, bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    #[test]
    fn it_passes_the_conformance_tests() {
        conformance::check(MemoryStore::new).unwrap();
    }

    #[test]
    fn a_snapshot_and_its_store_go_ways_of_their_own() {
        let store = MemoryStore::new();
        let write = |store: &MemoryStore, value: u8| {
            let mut batch = WriteBatch::default();
            batch.put(Family::Meta, *b"key", vec![value]);
            batch.put(Family::Chunks, vec![value], vec![value]);
            store.write(batch, Durability::Process).unwrap();
        };
        let contents = |store: &MemoryStore| {
            let scan = |family| store.scan(family, &[]..&[0xff; 9], usize::MAX).unwrap();
            Family::ALL.map(scan)
        };
        write(&store, 1);
        let before = contents(&store);
        let snapshot = store.snapshot();
        assert_eq!(contents(&snapshot), before);
        write(&store, 2);
        assert_eq!(contents(&snapshot), before);
        let after = contents(&store);
        write(&snapshot, 3);
        assert_eq!(contents(&store), after);
        assert_eq!(snapshot.get(Family::Meta, b"key"), Ok(Some(vec![3])));
    }

    #[test]
    fn size_follows_the_stored_entries() {
        let store = MemoryStore::new();
        let size = || {
            let size = store.approximate_family(Family::Meta).unwrap().unwrap();
            (size.entries, size.bytes)
        };
        let mut batch = WriteBatch::default();
        batch.put(Family::Meta, *b"key", vec![0; 10]);
        batch.put(Family::Meta, *b"key", vec![0; 4]);
        batch.put(Family::Chunks, *b"other", vec![0; 5]);
        store.write(batch, Durability::Process).unwrap();
        assert_eq!(size(), (1, 3 + 4));
        let mut batch = WriteBatch::default();
        batch.delete(Family::Meta, *b"key");
        batch.delete(Family::Meta, *b"nothing");
        store.write(batch, Durability::Sync).unwrap();
        assert_eq!(size(), (0, 0));
    }
}
