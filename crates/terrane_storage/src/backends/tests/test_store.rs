//! A store that tests can inspect, damage and cause to fail.

use crate::{Durability, Family, FamilySize, KeyValue, KeyValueStore, MemoryStore, StoreError, WorldStore, WriteBatch};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A handle to a store in memory. Like a disk, the store outlives the world on it.
#[derive(Clone, Default)]
pub(crate) struct TestStore(Arc<Inner>);

type Meanwhile = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Inner {
    memory: MemoryStore,
    fails_writes: AtomicBool,
    fails_reads: AtomicBool,
    /// The number of writes before all others fail; `None` if writes do not fail.
    good_writes: Mutex<Option<usize>>,
    history: Mutex<Option<Vec<MemoryStore>>>,
    scans: AtomicUsize,
    delays_writes: AtomicBool,
    /// The number of scans before delayed writes happen; `None` if they wait for a write.
    lands_after: Mutex<Option<usize>>,
    /// Writes that failed and still happen, and what others do right after that.
    late: Mutex<(Vec<WriteBatch>, Option<Meanwhile>)>,
    /// The keys in damaged blocks.
    unreadable: Mutex<BTreeSet<(Family, Vec<u8>)>>,
}

impl TestStore {
    pub(crate) fn world(&self) -> WorldStore {
        WorldStore::from_store(Arc::new(self.clone())).unwrap()
    }

    pub(crate) fn fail_writes(&self, fail: bool) {
        self.0.fails_writes.store(fail, Ordering::SeqCst);
    }

    /// Sets whether reads of single keys fail.
    pub(crate) fn fail_reads(&self, fail: bool) {
        self.0.fails_reads.store(fail, Ordering::SeqCst);
    }

    /// Lets this number of writes succeed, and fails all later ones.
    pub(crate) fn fail_writes_after(&self, writes: usize) {
        *self.0.good_writes.lock().unwrap() = Some(writes);
    }

    /// Sets whether writes fail and happen all the same, just before the next one that does not fail.
    pub(crate) fn delay_writes(&self, delay: bool) {
        self.0.delays_writes.store(delay, Ordering::SeqCst);
    }

    /// Lets delayed writes happen now.
    pub(crate) fn land_writes(&self) {
        let (late, meanwhile) = std::mem::take(&mut *self.0.late.lock().unwrap());
        for batch in late {
            // It may be refused; its answer is lost in any case.
            let _ = self.0.memory.write(batch, Durability::Process);
        }
        meanwhile.into_iter().for_each(|meanwhile| meanwhile());
    }

    /// Lets delayed writes happen right after this number of scans.
    pub(crate) fn land_writes_after(&self, scans: usize) {
        *self.0.lands_after.lock().unwrap() = Some(scans);
    }

    /// Sets what others do right after the delayed writes have happened.
    pub(crate) fn after_landing(&self, meanwhile: impl FnOnce() + Send + 'static) {
        self.0.late.lock().unwrap().1 = Some(Box::new(meanwhile));
    }

    pub(crate) fn on(memory: MemoryStore) -> Self {
        Self(Arc::new(Inner { memory, ..Inner::default() }))
    }

    /// Starts to record the contents after each write.
    pub(crate) fn record_writes(&self) {
        *self.0.history.lock().unwrap() = Some(Vec::new());
    }

    /// The contents after each write since then: the states of a disk when the process ends.
    pub(crate) fn take_history(&self) -> Vec<MemoryStore> {
        self.0.history.lock().unwrap().take().unwrap_or_default()
    }

    pub(crate) fn snapshot(&self) -> MemoryStore {
        self.0.memory.snapshot()
    }

    /// The number of scans since the last call.
    pub(crate) fn take_scans(&self) -> usize {
        self.0.scans.swap(0, Ordering::SeqCst)
    }

    /// Changes the stored value under `key` without the world's knowledge.
    pub(crate) fn tamper(&self, family: Family, key: &[u8], change: impl FnOnce(&mut Vec<u8>)) {
        let mut value = self.0.memory.get(family, key).unwrap().expect("nothing stored");
        change(&mut value);
        let mut batch = WriteBatch::default();
        batch.put(family, key, value);
        self.0.memory.write(batch, Durability::Process).unwrap();
    }

    /// Makes these keys unreadable until they are overwritten.
    pub(crate) fn damage_block(&self, family: Family, keys: &[&[u8]]) {
        self.0.unreadable.lock().unwrap().extend(keys.iter().map(|key| (family, key.to_vec())));
    }

    fn check(&self, family: Family, is_read: impl Fn(&[u8]) -> bool) -> Result<(), StoreError> {
        let unreadable = self.0.unreadable.lock().unwrap();
        match unreadable.iter().any(|(of, key)| *of == family && is_read(key)) {
            true => {
                let reason = "a block's checksum is wrong".into();
                Err(StoreError::Damaged { family, path: self.path().to_path_buf(), reason })
            }
            false => Ok(()),
        }
    }

    fn failed(&self, operation: &'static str, reason: &str) -> StoreError {
        StoreError::backend(operation, None, self.path(), reason)
    }

    pub(crate) fn contents(&self) -> Vec<(Family, KeyValue)> {
        let scan = |family| self.0.memory.scan(family, &[]..&[0xff; 100], usize::MAX).unwrap();
        Family::ALL.into_iter().flat_map(|family| scan(family).into_iter().map(move |entry| (family, entry))).collect()
    }
}

impl KeyValueStore for TestStore {
    fn path(&self) -> &Path {
        self.0.memory.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.check(family, |unreadable| unreadable == key)?;
        if self.0.fails_reads.load(Ordering::SeqCst) {
            return Err(self.failed("read", "the disk does not answer"));
        }
        self.0.memory.get(family, key)
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.check(family, |unreadable| keys.contains(&unreadable))?;
        self.0.memory.multi_get(family, keys)
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        self.0.scans.fetch_add(1, Ordering::SeqCst);
        let found = self.0.memory.scan(family, range.clone(), limit)?;
        let mut left = self.0.lands_after.lock().unwrap();
        *left = left.map(|left| left.saturating_sub(1));
        if left.take_if(|left| *left == 0).is_some() {
            self.land_writes();
        }
        drop(left);
        // A scan that reached its limit does not look at further entries.
        let end = found.last().filter(|_| found.len() == limit).map(|(last, _)| &last[..]);
        let is_read = |key: &[u8]| range.contains(&key) && end.is_none_or(|end| key <= end);
        self.check(family, is_read)?;
        Ok(found)
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        let left = self.0.good_writes.lock().unwrap().take();
        match left.map(|left| left.checked_sub(1)) {
            Some(Some(left)) => self.fail_writes_after(left),
            Some(None) => self.fail_writes(true),
            None => {}
        }
        if self.0.fails_writes.load(Ordering::SeqCst) {
            return Err(self.failed("write", "the disk is full"));
        }
        if self.0.delays_writes.load(Ordering::SeqCst) {
            self.0.late.lock().unwrap().0.push(batch);
            return Err(self.failed("write", "there is no answer"));
        }
        self.land_writes();
        let changed = batch.changes().iter().map(|change| (change.family, change.key.clone())).collect();
        self.0.memory.write(batch, durability)?;
        let mut unreadable = self.0.unreadable.lock().unwrap();
        *unreadable = &*unreadable - &changed;
        drop(unreadable);
        if let Some(history) = &mut *self.0.history.lock().unwrap() {
            history.push(self.0.memory.snapshot());
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.0.memory.sync()
    }

    fn approximate_family(&self, family: Family) -> Result<Option<FamilySize>, StoreError> {
        self.0.memory.approximate_family(family)
    }
}
