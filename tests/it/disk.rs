//! A disk that tests can inspect, stop, fill, disturb, and copy in the state that a crash would leave.

use crate::support::gate::Gate;
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::SplitMix64;
use bevy_terrane::storage::servers::Incarnation;
use bevy_terrane::storage::{
    Durability, Family, KeyValue, KeyValueStore, MemoryStore, StorageConfig, StoreError, WriteBatch,
};
use bevy_terrane::view::RegionOrder;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

type OnRead = Box<dyn Fn(Family, &[&[u8]], &mut [Option<Vec<u8>>]) -> Result<(), StoreError> + Send + Sync>;
type OnScan = Box<dyn Fn(Family, &Range<&[u8]>, usize) -> Result<(), StoreError> + Send + Sync>;

/// A handle to a store in memory that outlives its world.
#[derive(Clone, Default)]
pub struct Disk(Arc<Inner>);

#[derive(Default)]
struct Inner {
    store: MemoryStore,
    gate: Gate,
    commits: Gate,
    answers: Gate,
    loads: Gate,
    is_full: AtomicBool,
    is_unreadable: AtomicBool,
    on_read: OnceLock<OnRead>,
    on_scan: OnceLock<OnScan>,
    keeps_copies: AtomicBool,
    log: Mutex<Vec<Wrote>>,
    copies: Mutex<Vec<MemoryStore>>,
}

/// A write to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrote {
    /// The number of puts and deletes; 0 for a sync only.
    pub changes: usize,
    pub is_synced: bool,
}

impl Disk {
    pub fn plugin(&self) -> TerranePlugin {
        TerranePlugin::stored_in(self.storage())
    }

    pub fn storage(&self) -> StorageConfig {
        StorageConfig::Custom(Arc::new(self.clone()))
    }

    /// A disk with this content.
    pub fn with(store: MemoryStore) -> Self {
        Self(Arc::new(Inner { store, ..Inner::default() }))
    }

    /// A separate disk with the present content.
    pub fn copy(&self) -> Self {
        Self::with(self.0.store.snapshot())
    }

    /// Ends the servers that a crash has left, as another one would after a while.
    pub fn end_servers(&self) {
        let observer = Incarnation::join(Arc::new(self.clone()), b"observer").unwrap();
        for sign in observer.signs().unwrap() {
            assert!(sign.incarnation == observer.number() || observer.end(&sign).unwrap());
        }
        observer.leave().unwrap();
    }

    /// The gate at which writes wait.
    pub fn gate(&self) -> &Gate {
        &self.0.gate
    }

    /// The gate at which commits wait. Other writes pass.
    pub fn commits(&self) -> &Gate {
        &self.0.commits
    }

    /// The gate at which the coordinator's questions about entities wait after they have read, like answers that are on their way.
    pub fn answers(&self) -> &Gate {
        &self.0.answers
    }

    /// The gate at which loading columns waits before it reads.
    pub fn loads(&self) -> &Gate {
        &self.0.loads
    }

    /// Sets whether the disk is full, so that writes fail.
    pub fn set_full(&self, is_full: bool) {
        self.0.is_full.store(is_full, Ordering::SeqCst);
    }

    /// Sets whether ranges are unreadable. Single keys stay readable, as a commit needs them.
    pub fn set_unreadable(&self, is_unreadable: bool) {
        self.0.is_unreadable.store(is_unreadable, Ordering::SeqCst);
    }

    /// Keeps a copy of the content after each write from now on.
    pub fn keep_copies(&self) {
        self.0.keeps_copies.store(true, Ordering::SeqCst);
    }

    /// The copies after each write since the last call.
    pub fn take_copies(&self) -> Vec<Self> {
        self.0.copies.lock().unwrap().drain(..).map(Self::with).collect()
    }

    /// The writes since the last call.
    pub fn take_log(&self) -> Vec<Wrote> {
        self.0.log.lock().unwrap().drain(..).collect()
    }

    /// Settings for lockstep on this disk, with another time between saves for each of four seeds.
    pub fn lockstep(&self, seed: u64) -> TerranePlugin {
        let period = Duration::from_millis([100, 350, 900, 3_600_000][seed as usize % 4]);
        let saving = SaveSettings::every(period);
        TerranePlugin { tick_mode: TickMode::Lockstep, saving, seed, ..self.plugin() }
    }

    /// Updates an app so many times, each after `step`, with saves at random. Sometimes, if it `halts`, the region at one of two homes
    /// halts, and is restarted from the store. `check` gets the disk as a crash after each write would leave it. Returns the number of
    /// these moments.
    pub fn play(
        &self,
        app: &mut App,
        (dimension, homes): (DimensionId, [BlockPos; 2]),
        (updates, halts): (u64, bool),
        random: &mut SplitMix64,
        mut step: impl FnMut(&mut App, &mut SplitMix64),
        check: impl Fn(&Self, u64),
    ) -> u64 {
        self.keep_copies();
        let mut moments = 0;
        let mut halted: Option<(ColumnPos, u64)> = None;
        for number in 0..updates {
            if random.below(9) == 0 {
                app.world_mut().write_message(SaveWorld { request: number + 1 });
            }
            match halted {
                None if halts && random.below(9) == 0 => {
                    let column = homes[random.below(2) as usize].column();
                    order(app, dimension, column, RegionOrder::Halt);
                    halted = Some((column, number + 6 + u64::from(random.below(6))));
                }
                Some((column, until)) if until <= number => {
                    order(app, dimension, column, RegionOrder::Restart);
                    halted = None;
                }
                _ => {}
            }
            step(app, random);
            app.update();
            for copy in self.take_copies() {
                check(&copy, number);
                moments += 1;
            }
        }
        if let Some((column, _)) = halted {
            order(app, dimension, column, RegionOrder::Restart);
        }
        moments
    }

    /// Sets a function that is called with the results of reads of many keys. It may change them, or fail.
    pub fn on_read(
        &self,
        on_read: impl Fn(Family, &[&[u8]], &mut [Option<Vec<u8>>]) -> Result<(), StoreError> + Send + Sync + 'static,
    ) {
        assert!(self.0.on_read.set(Box::new(on_read)).is_ok());
    }

    /// Sets a function that is called before a range is read, with the read's limit. It may wait, or fail.
    pub fn on_scan(
        &self,
        on_scan: impl Fn(Family, &Range<&[u8]>, usize) -> Result<(), StoreError> + Send + Sync + 'static,
    ) {
        assert!(self.0.on_scan.set(Box::new(on_scan)).is_ok());
    }

    /// Returns `true` if there is another handle to the disk.
    pub fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    fn fail_if(&self, fails: &AtomicBool, operation: &'static str, reason: &str) -> Result<(), StoreError> {
        let error = || StoreError::Backend { operation, family: None, path: self.path().into(), reason: reason.into() };
        if fails.load(Ordering::SeqCst) { Err(error()) } else { Ok(()) }
    }

    /// Reads, and waits at the gates for it.
    fn read_at_gates<T>(&self, family: Family, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let is_on = |name: &str| thread::current().name().is_some_and(|thread| thread.starts_with(name));
        if is_on("terrane loading") {
            self.0.loads.pass();
        }
        let result = read();
        if is_on("terrane answers") && family == Family::Entities {
            self.0.answers.pass();
        }
        result
    }

    fn note(&self, changes: usize, is_synced: bool) {
        self.0.log.lock().unwrap().push(Wrote { changes, is_synced });
    }
}

impl KeyValueStore for Disk {
    fn path(&self) -> &Path {
        self.0.store.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_at_gates(family, || self.0.store.get(family, key))
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut values = self.read_at_gates(family, || self.0.store.multi_get(family, keys))?;
        self.0.on_read.get().map_or(Ok(()), |on_read| on_read(family, keys, &mut values))?;
        Ok(values)
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        self.fail_if(&self.0.is_unreadable, "scan", "a bad sector")?;
        self.0.on_scan.get().map_or(Ok(()), |on_scan| on_scan(family, &range, limit))?;
        self.read_at_gates(family, || self.0.store.scan(family, range, limit))
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        self.fail_if(&self.0.is_full, "write", "no space left on device")?;
        self.0.gate.pass();
        if thread::current().name() == Some("terrane storage") {
            self.0.commits.pass();
        }
        let changes = batch.len();
        self.0.store.write(batch, durability)?;
        self.note(changes, durability == Durability::Sync);
        if self.0.keeps_copies.load(Ordering::SeqCst) {
            self.0.copies.lock().unwrap().push(self.0.store.snapshot());
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.note(0, true);
        self.0.store.sync()
    }
}
