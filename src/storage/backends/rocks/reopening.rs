//! Opening a database, and opening it again after it failed.
//!
//! RocksDB latches an error of its log or of a background job: it goes on to read and refuses to write, and its Rust and
//! C interfaces have nothing that would end that but opening it again. That needs the old one closed, and fails as long
//! as the disk does. So readers get a read-only stand-in first, which needs no room on the disk and no lock.
//!
//! A damaged table fails whenever it is compacted. So a database that found one is opened without compaction: it goes on,
//! slower with time, and what can still be read of the table can be salvaged.

use super::{Operation, RocksStore, StoreError};
use crate::storage::Family;
use rocksdb::{Cache, ColumnFamilyDescriptor, DB, ErrorKind, Options};
use std::mem;
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// The time between two attempts to open a database that cannot be opened again. Reading a large one takes a while.
const PAUSE: Duration = Duration::from_millis(500);

/// What is open of a database.
pub(super) enum Database {
    /// It can be read and written.
    Whole(DB),
    /// It can be read as it was when it failed.
    StandIn(DB),
    /// Nothing: the disk cannot even be read, or a change is under way.
    Closed,
}

impl Database {
    pub fn get(&self, path: &Path, operation: Operation) -> Result<&DB, StoreError> {
        match self {
            Self::Whole(database) | Self::StandIn(database) => Ok(database),
            Self::Closed => {
                let reason = "its disk failed, and it cannot be opened again yet";
                Err(StoreError::backend(operation, None, path, reason))
            }
        }
    }
}

/// A database that cannot be written.
#[derive(Debug)]
pub(super) struct Failure {
    reason: String,
    /// A table cannot be read.
    is_damage: bool,
    next_attempt: Instant,
}

impl Failure {
    pub fn new(error: &rocksdb::Error) -> Self {
        let is_damage = error.kind() == ErrorKind::Corruption;
        Self { reason: error.to_string(), is_damage, next_attempt: Instant::now() }
    }
}

/// Opens the database in this folder; it compacts its tables in the background, or leaves them as they are.
pub(super) fn open(path: &Path, options: &Options, compacts: bool, cache: &Cache) -> Result<DB, StoreError> {
    let families = families(cache, compacts);
    DB::open_cf_descriptors(options, path, families).map_err(cannot_open(path))
}

/// Opens it beside whoever can write it. By its families, since opened without them a database may deny what it holds.
pub(super) fn open_to_read(path: &Path, options: &Options, cache: &Cache) -> Result<DB, StoreError> {
    DB::open_cf_descriptors_read_only(options, path, families(cache, false), false).map_err(cannot_open(path))
}

fn families(cache: &Cache, compacts: bool) -> impl Iterator<Item = ColumnFamilyDescriptor> {
    Family::ALL.into_iter().map(move |family| {
        let mut options = super::family_options(family, cache);
        options.set_disable_auto_compactions(!compacts);
        ColumnFamilyDescriptor::new(family.name(), options)
    })
}

fn cannot_open(path: &Path) -> impl Fn(rocksdb::Error) -> StoreError {
    move |error| StoreError::backend(Operation::Open, None, path, error)
}

impl RocksStore {
    /// Opens the database again if a write failed, and not more often than once in a while.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] as long as it cannot be opened.
    pub(super) fn recover(&self, failure: &mut Option<Failure>) -> Result<(), StoreError> {
        let Some(failed) = failure else { return Ok(()) };
        if Instant::now() >= failed.next_attempt {
            match self.reopen(!failed.is_damage) {
                Ok(()) => {
                    *failure = None;
                    return Ok(());
                }
                Err(error) => {
                    failed.reason = error.to_string();
                    failed.next_attempt = Instant::now() + PAUSE;
                }
            }
        }
        Err(StoreError::ReadOnly { path: self.path.clone(), reason: failed.reason.clone() })
    }

    fn reopen(&self, compacts: bool) -> Result<(), StoreError> {
        let is_whole = !matches!(*self.database.read().unwrap_or_else(PoisonError::into_inner), Database::StandIn(_));
        if is_whole {
            let stand_in =
                open_to_read(&self.path, &self.options, &self.cache).map_or(Database::Closed, Database::StandIn);
            drop(self.replace(stand_in));
        }
        let mut options = self.options.clone();
        options.create_if_missing(false);
        let whole = open(&self.path, &options, compacts, &self.cache)?;
        drop(self.replace(Database::Whole(whole)));
        Ok(())
    }

    /// Whatever is read from the old one meanwhile is read to its end.
    fn replace(&self, database: Database) -> Database {
        mem::replace(&mut *self.database.write().unwrap_or_else(PoisonError::into_inner), database)
    }
}
