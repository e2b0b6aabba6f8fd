//! Opening a database, and reopening it after a failure.
//!
//! RocksDB latches an error of its log or of a background job: it still reads but refuses to write, and its Rust and C
//! interfaces offer no way out but reopening it. Reopening requires closing the old one first, and fails as long as the disk
//! does. So the [`Keeper`] first opens a read-only stand-in for readers, which needs no disk space and no lock. Reads and
//! writes report their failures to the keeper. It alone decides when to reopen the database, on a thread of its own:
//!
//! | state | reads from | writes | ends with |
//! |---|---|---|---|
//! | sound | the whole database | are made | a failed write; reads that fail for a while; a lost folder |
//! | failed | the stand-in, the failed database, or nothing | are refused | a successful attempt to reopen, made each second |
//!
//! A lost folder was deleted, moved or replaced by another one. The open files can then still be read and written, but
//! the written data would never be found. So each write checks the folder before and after, and no database is opened
//! or closed in a folder that is not its own: RocksDB would create files there.
//!
//! A damaged table fails in each compaction. So a database with such a table is reopened without compaction: it keeps
//! working, becomes slower with time, and the readable part of the table can be salvaged.

mod folder;
#[cfg(test)]
mod tests;

use super::files;
use super::files::Synced;
use super::options::family_options;
use crate::{Family, LostWrites, StoreError};
use folder::Folder;
use rocksdb::{Cache, ColumnFamilyDescriptor, DB, ErrorKind, Options};
use std::collections::BTreeMap;
use std::fs::File;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The time between two attempts, unless an attempt takes longer: a large database takes a while to read. Also the time
/// for which reads may fail before the database is reopened.
const PAUSE: Duration = Duration::from_secs(1);
/// The maximum time for which reads may fail. The time doubles with each reopening that does not help.
const LONGEST_PATIENCE: Duration = Duration::from_secs(64);

/// The system's message if the process has too many open files. A stand-in and the database together need twice as many.
const NO_FILE_HANDLES: &str = "Too many open files";

/// The beginnings and the end of RocksDB's messages if the database is open already.
const LOCKED_HERE: &str = "IO error: lock hold by current process";
const LOCKED_ELSEWHERE: &str = "IO error: While lock file";
const WOULD_BLOCK: &str = "Resource temporarily unavailable";

/// The open database.
pub(super) enum Database {
    /// Open for reading and writing, or failed and still readable; with the note of what is synced.
    Whole(DB, Synced),
    /// Open for reading in its state at the failure.
    StandIn(DB),
    /// Nothing is open: the disk cannot even be read, or a change is in progress.
    Closed,
}

impl Database {
    pub fn get(&self, path: &Path, operation: &'static str) -> Result<&DB, StoreError> {
        match self {
            Self::Whole(database, _) | Self::StandIn(database) => Ok(database),
            Self::Closed => {
                let reason = "its disk failed, and it cannot be opened again yet";
                Err(StoreError::backend(operation, None, path, reason))
            }
        }
    }
}

/// The paths at which this process has left databases open, and how many. RocksDB has a table of all open databases of a
/// process, by the text of their paths, and such a database never leaves it.
static LEFT_OPEN: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

/// The path in a spelling that is not in RocksDB's table, unless the database is open.
fn free_spelling(path: &Path) -> PathBuf {
    let left_open = LEFT_OPEN.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied().unwrap_or(0);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return path.to_path_buf() };
    match left_open {
        0 => path.to_path_buf(),
        _ => (0..left_open).fold(folder.to_path_buf(), |folder, _| folder.join(".")).join(name),
    }
}

/// Opens the database in this folder, with or without background compaction.
pub(super) fn open(path: &Path, options: &Options, compacts: bool, cache: &Cache) -> Result<DB, StoreError> {
    let families = families(cache, compacts);
    DB::open_cf_descriptors(options, free_spelling(path), families).map_err(cannot_open(path))
}

/// Opens the database for reading beside a writer, with its own logs or those in another folder. The families are given,
/// since a database opened without them may hide their data.
pub(super) fn open_to_read(
    path: &Path,
    logs: Option<&Path>,
    options: &Options,
    cache: &Cache,
) -> Result<DB, StoreError> {
    let mut options = options.clone();
    logs.into_iter().for_each(|logs| options.set_wal_dir(logs));
    DB::open_cf_descriptors_read_only(&options, path, families(cache, false), false).map_err(cannot_open(path))
}

fn families(cache: &Cache, compacts: bool) -> impl Iterator<Item = ColumnFamilyDescriptor> {
    Family::ALL.into_iter().map(move |family| {
        let mut options = family_options(family, cache);
        options.set_disable_auto_compactions(!compacts);
        ColumnFamilyDescriptor::new(family.name(), options)
    })
}

fn cannot_open(path: &Path) -> impl Fn(rocksdb::Error) -> StoreError {
    move |error| {
        let text: &str = error.as_ref();
        let reason = match text {
            _ if text.starts_with(LOCKED_HERE) => {
                "this process has it open, or another one that was in this folder; close that first"
            }
            _ if text.starts_with(LOCKED_ELSEWHERE) && text.ends_with(WOULD_BLOCK) => {
                "another process has it open; close it there first"
            }
            _ => return StoreError::backend("open", None, path, error),
        };
        StoreError::InUse { path: path.to_path_buf(), reason: reason.to_owned() }
    }
}

/// Keeps a database open, and reopens it after a failure.
pub(super) struct Keeper {
    pub path: PathBuf,
    /// The options of the database, which hold its counters.
    pub options: Options,
    cache: Cache,
    // Locked for reading during reads and writes, and for writing during changes.
    database: RwLock<Database>,
    health: Mutex<Health>,
    /// Notified when an attempt has ended or the keeper is closing.
    changed: Condvar,
}

struct Health {
    failure: Option<Failure>,
    /// The folder of the last opening; `None` if the database is only read.
    folder: Option<Folder>,
    /// Prevents changes of the folder's numbers.
    _pin: Option<File>,
    /// The number of the last successful write.
    written: u64,
    /// The start of the failed reads since the last write.
    reads_fail_since: Option<Instant>,
    /// The time for which reads may fail before the database is reopened.
    patience: Duration,
    mender: Option<JoinHandle<()>>,
    is_mending: bool,
    is_closing: bool,
}

struct Failure {
    error: StoreError,
    is_damage: bool,
    /// `true` if the stand-in can no longer be read.
    renews_stand_in: bool,
    attempts: u32,
}

impl Failure {
    fn refusal(&self, path: &Path) -> StoreError {
        match &self.error {
            lost @ StoreError::FolderLost { .. } => lost.clone(),
            error => StoreError::ReadOnly { path: path.to_path_buf(), reason: error.to_string() },
        }
    }
}

impl Keeper {
    /// Opens the database in the folder `path` for writing, or creates one there if `create` is `true`.
    pub fn open(
        path: &Path,
        create: bool,
        mut options: Options,
        cache: Cache,
    ) -> Result<(Self, Option<LostWrites>), StoreError> {
        let read = |logs: Option<&Path>| open_to_read(path, logs, &options, &cache);
        let (database, note, lost) = files::open(path, create, 0, || open(path, &options, true, &cache), read)?;
        let folder = Folder::at(path)?;
        // A database that is missing later is lost and must not be created again.
        options.create_if_missing(false);
        let written = database.latest_sequence_number();
        Ok((Self::new(path, options, cache, Database::Whole(database, note), Some(folder), written), lost))
    }

    /// Opens the database only for reading. It is never reopened.
    pub fn open_to_read(path: &Path, options: Options, cache: Cache) -> Result<(Self, Option<LostWrites>), StoreError> {
        let (database, lost) = files::open_to_read(path, |logs| open_to_read(path, logs, &options, &cache))?;
        Ok((Self::to_read(path, options, cache, database), lost))
    }

    /// Like [`open_to_read`](Self::open_to_read), for a database that is already open.
    pub fn to_read(path: &Path, options: Options, cache: Cache, database: DB) -> Self {
        Self::new(path, options, cache, Database::StandIn(database), None, 0)
    }

    fn new(
        path: &Path,
        options: Options,
        cache: Cache,
        database: Database,
        folder: Option<Folder>,
        written: u64,
    ) -> Self {
        let health = Health {
            failure: None,
            _pin: folder.and_then(|_| folder::pin(path)),
            folder,
            written,
            reads_fail_since: None,
            patience: PAUSE,
            mender: None,
            is_mending: false,
            is_closing: false,
        };
        let (path, health) = (path.to_path_buf(), Mutex::new(health));
        Self { path, options, cache, database: RwLock::new(database), health, changed: Condvar::new() }
    }

    /// The open database.
    pub fn database(&self) -> RwLockReadGuard<'_, Database> {
        self.database.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Code that can panic never runs under this lock.
    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Must be called before each write. After a failure it waits for the first attempt to reopen the database.
    ///
    /// # Errors
    /// [`StoreError::FolderLost`] or [`StoreError::ReadOnly`] as long as the database cannot be written.
    pub fn expect_sound(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut health = self.health();
        self.start_mending(&mut health);
        let is_first = |health: &mut Health| {
            health.is_mending && health.failure.as_ref().is_some_and(|failure| failure.attempts == 0)
        };
        let health = self.changed.wait_while(health, is_first).unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = &health.failure {
            return Err(failure.refusal(&self.path));
        }
        drop(health);
        self.expect_folder()
    }

    /// The reason why nothing can be written at the moment.
    pub fn refusal(&self) -> StoreError {
        let now = || StoreError::ReadOnly { path: self.path.clone(), reason: "it is being opened again".into() };
        self.health().failure.as_ref().map_or_else(now, |failure| failure.refusal(&self.path))
    }

    /// Notes the number of a successful write. If the folder is lost, the data is lost too, even if the system reported success.
    pub fn note_written(self: &Arc<Self>, written: u64) -> Result<(), StoreError> {
        self.expect_folder()?;
        let mut health = self.health();
        health.written = written;
        (health.reads_fail_since, health.patience) = (None, PAUSE);
        Ok(())
    }

    fn expect_folder(self: &Arc<Self>) -> Result<(), StoreError> {
        let Some(opened) = self.health().folder else { return Ok(()) };
        let error = match Folder::at(&self.path) {
            Ok(found) if found == opened => return Ok(()),
            Ok(_) => StoreError::FolderLost { path: self.path.clone() },
            Err(error) => error,
        };
        self.fail(error.clone(), false);
        Err(error)
    }

    /// Notes a failed write. All later ones will fail too.
    pub fn note_failed_write(self: &Arc<Self>, error: &StoreError, kind: ErrorKind) {
        self.fail(error.clone(), kind == ErrorKind::Corruption);
    }

    /// Notes a failed read. The disk may recover by itself, so the database is reopened only if reads keep failing.
    pub fn note_failed_read(self: &Arc<Self>, error: &StoreError) {
        let mut health = self.health();
        if health.folder.is_none() {
            return;
        }
        if let Some(failure) = &mut health.failure {
            failure.renews_stand_in = true;
            return;
        }
        let since = *health.reads_fail_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= health.patience {
            health.reads_fail_since = None;
            health.patience = health.patience.saturating_mul(2).min(LONGEST_PATIENCE);
            drop(health);
            self.fail(error.clone(), false);
        }
    }

    fn fail(self: &Arc<Self>, error: StoreError, is_damage: bool) {
        let mut health = self.health();
        if health.failure.is_none() {
            tracing::error!("the store failed and will be opened again as soon as possible: {error}");
            health.failure = Some(Failure { error, is_damage, renews_stand_in: false, attempts: 0 });
            self.start_mending(&mut health);
        }
    }

    /// If the system cannot start a thread now, the next write retries.
    fn start_mending(self: &Arc<Self>, health: &mut Health) {
        if health.failure.is_none() || health.is_mending || health.is_closing {
            return;
        }
        let keeper = Arc::clone(self);
        health.mender = Builder::new().name("terrane reopening".into()).spawn(move || keeper.mend()).ok();
        health.is_mending = health.mender.is_some();
    }

    /// Tries to reopen the database until it succeeds.
    fn mend(&self) {
        let mut health = self.health();
        while !health.is_closing
            && let Some(failure) = &mut health.failure
        {
            let (compacts, renews) = (!failure.is_damage, mem::take(&mut failure.renews_stand_in));
            let (folder, written) = (health.folder, health.written);
            drop(health);
            let began = Instant::now();
            let reopened = self.reopen(compacts, renews, folder, written);
            health = self.health();
            match reopened {
                Ok(folder) => {
                    tracing::info!("the store in {} works again", self.path.display());
                    (health.failure, health.folder, health._pin) = (None, Some(folder), folder::pin(&self.path));
                }
                Err(error) => {
                    if let Some(failure) = &mut health.failure {
                        (failure.error, failure.attempts) = (error, failure.attempts.saturating_add(1));
                    }
                }
            }
            self.changed.notify_all();
            if health.failure.is_some() {
                let is_open = |health: &mut Health| !health.is_closing;
                let pause = self.changed.wait_timeout_while(health, PAUSE.max(began.elapsed()), is_open);
                health = pause.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        health.is_mending = false;
    }

    fn reopen(&self, compacts: bool, renews: bool, folder: Option<Folder>, written: u64) -> Result<Folder, StoreError> {
        self.expect_same_folder(folder).inspect_err(|_| self.retire())?;
        let is_good = |found: &DB| !renews && self.expect_all(found, written).is_ok();
        if !matches!(&*self.database(), Database::StandIn(found) if is_good(found)) {
            let stand_in = open_to_read(&self.path, None, &self.options, &self.cache);
            self.replace(stand_in.map_or(Database::Closed, Database::StandIn));
        }
        if let Database::StandIn(found) = &*self.database() {
            self.expect_all(found, written)?;
        }
        let open = || {
            let read = |logs: Option<&Path>| open_to_read(&self.path, logs, &self.options, &self.cache);
            files::open(&self.path, false, written, || open(&self.path, &self.options, compacts, &self.cache), read)
        };
        let (whole, note, _) = open().or_else(|error| match error.to_string().contains(NO_FILE_HANDLES) {
            // The file handles of the stand-in may be enough.
            true => {
                self.replace(Database::Closed);
                open()
            }
            false => Err(error),
        })?;
        self.expect_all(&whole, written)?;
        let folder = Folder::at(&self.path)?;
        self.replace(Database::Whole(whole, note));
        Ok(folder)
    }

    /// Checks that no successful write is missing, synced or not: the running world builds on all of them. Opening for writing
    /// changes a database, so an incomplete one must be left alone. A restart goes on from the last write that is there.
    fn expect_all(&self, database: &DB, written: u64) -> Result<(), StoreError> {
        let found = database.latest_sequence_number();
        if found >= written {
            return Ok(());
        }
        let reason = format!("it holds only {found} of the {written} saved changes");
        Err(StoreError::backend("open", None, &self.path, reason))
    }

    /// The device may have another number if the disk was removed and mounted again.
    fn expect_same_folder(&self, opened: Option<Folder>) -> Result<(), StoreError> {
        let found = Folder::at(&self.path)?;
        match opened.is_some_and(|opened| found.is_same_after_mounting(&opened)) {
            true => Ok(()),
            false => Err(StoreError::FolderLost { path: self.path.clone() }),
        }
    }

    /// Stops the database from creating and removing files. It can still be read.
    fn retire(&self) {
        if let Database::Whole(database, _) = &*self.database() {
            database.cancel_all_background_work(false);
            // It can only fail when the database is closing.
            _ = database.disable_file_deletions();
        }
    }

    /// Replaces the open database. Reads from the old one are finished first.
    fn replace(&self, database: Database) {
        let old = self.exchange(database);
        // On closing, RocksDB removes files that it does not know, and rewrites its list of files if that has changed.
        // In another database's folder this would destroy data. A database that is never closed takes memory, so other errors
        // than a lost folder are not enough to skip closing.
        let found = || self.expect_same_folder(self.health().folder);
        let is_other = || matches!(found(), Err(StoreError::FolderLost { .. })) && self.path.exists();
        if matches!(old, Database::Whole(..)) && is_other() {
            tracing::warn!("another folder is in the place of {}: its files are left alone", self.path.display());
            mem::forget(old);
            *LEFT_OPEN.lock().unwrap_or_else(PoisonError::into_inner).entry(self.path.clone()).or_insert(0) += 1;
        }
    }

    fn exchange(&self, database: Database) -> Database {
        mem::replace(&mut *self.database.write().unwrap_or_else(PoisonError::into_inner), database)
    }

    /// Closes everything. A sound database is closed properly.
    pub fn close(&self) {
        let mut health = self.health();
        health.is_closing = true;
        let mender = health.mender.take();
        drop(health);
        self.changed.notify_all();
        if let Some(mender) = mender {
            // The thread can only have panicked in RocksDB's interface; then there is nothing to wait for.
            _ = mender.join();
        }
        let health = self.health();
        let (folder, has_failed) = (health.folder, health.failure.is_some());
        drop(health);
        if has_failed || self.expect_same_folder(folder).is_err() {
            return self.replace(Database::Closed);
        }
        if let Database::Whole(database, _) = self.exchange(Database::Closed) {
            files::close(database, &self.path);
        }
    }
}
