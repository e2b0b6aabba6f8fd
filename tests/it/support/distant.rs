//! A store at the other end of a network.

use bevy_terrane::storage::{Durability, Family, KeyValue, KeyValueStore, Read, StoreError, WriteBatch};
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The time to the database in a test, in milliseconds: `own`, or `TERRANE_DELAY`.
pub fn delay(own: u64) -> Duration {
    let chosen = std::env::var("TERRANE_DELAY").ok().and_then(|delay| delay.parse().ok());
    Duration::from_millis(chosen.unwrap_or(own))
}

/// A store whose questions and answers take a while each, give or take a half.
pub struct Distant<S> {
    store: Arc<S>,
    delay: Duration,
}

impl<S: KeyValueStore> Distant<S> {
    pub fn new(store: &Arc<S>, delay: Duration) -> Self {
        Self { store: store.clone(), delay }
    }

    fn ask<T>(&self, ask: impl FnOnce(&S) -> T) -> T {
        self.travel();
        let answer = ask(&self.store);
        self.travel();
        answer
    }

    fn travel(&self) {
        let jitter = (RandomState::new().hash_one(self.delay) % 1_001) as u32;
        thread::sleep(self.delay / 2 + self.delay * jitter / 1_000);
    }
}

impl<S: KeyValueStore> KeyValueStore for Distant<S> {
    fn path(&self) -> &Path {
        self.store.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.ask(|store| store.get(family, key))
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.ask(|store| store.multi_get(family, keys))
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        self.ask(|store| store.scan(family, range, limit))
    }

    fn scan_page(
        &self,
        family: Family,
        range: Range<&[u8]>,
        most_entries: usize,
        most_bytes: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        self.ask(|store| store.scan_page(family, range, most_entries, most_bytes))
    }

    fn read(&self, reads: &[Read]) -> Result<Vec<Vec<KeyValue>>, StoreError> {
        self.ask(|store| store.read(reads))
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        self.ask(|store| store.write(batch, durability))
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.ask(|store| store.sync())
    }
}
