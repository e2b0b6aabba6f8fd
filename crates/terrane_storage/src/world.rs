//! Opening a world, and the values that exist once per world.

mod existing;
#[cfg(test)]
mod tests;

#[cfg(feature = "rocksdb")]
use super::RocksStore;
use super::dimensions::DimensionNames;
#[cfg(feature = "rocksdb")]
use super::folder::WorldFolder;
use super::servers::{self, Incarnation};
use super::tiers::heat::Heat;
#[cfg(feature = "rocksdb")]
use super::upkeep::FoundRequest;
use super::values::{FORMAT, Header};
use super::{
    ChunkGroup, Durability, Family, FamilySize, KeyValueStore, LostWrites, MemoryStore, OpenWait, Read, StoreError,
    StoredItem, WorldOpenError, WriteBatch, keys, values::record,
};
use crate::values::blocks::KnownBlocks;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use existing::Access;

/// The number of attempts to open a world that other processes open at the same moment.
const MAX_OPENING_ATTEMPTS: u32 = 100;

/// The place of a world's data.
#[derive(Clone)]
pub enum StorageConfig {
    /// A folder. Needs the feature `rocksdb`.
    Path(PathBuf),
    /// Memory, until the world is dropped.
    Memory,
    /// A custom backend. The caller must make sure that only one world at a time is open on it. If several are, only
    /// the one that was opened last can write.
    Custom(Arc<dyn KeyValueStore>),
    /// A backend that several servers share, of which this process is one. It must be the same data for all of them, such
    /// as a database.
    Shared {
        /// The backend.
        store: Arc<dyn KeyValueStore>,
        /// Where clients reach this server. The crate does not interpret it.
        address: Vec<u8>,
    },
}

impl fmt::Debug for StorageConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Memory => f.write_str("Memory"),
            Self::Custom(store) => f.debug_tuple("Custom").field(&store.path()).finish(),
            Self::Shared { store, .. } => f.debug_tuple("Shared").field(&store.path()).finish(),
        }
    }
}

/// The storage of one world. It can be shared between threads; writes happen one after another.
pub struct WorldStore {
    // Dropped in this order: the database must be closed before the folder is unlocked for another process.
    pub(super) store: Arc<dyn KeyValueStore>,
    #[cfg(feature = "rocksdb")]
    folder: Option<WorldFolder>,
    writes: Mutex<()>,
    /// `None` until first used or set.
    pub(super) blocks: RwLock<Option<Arc<KnownBlocks>>>,
    /// Write-locked while groups move between tiers. Lookups that search several tiers hold a read lock.
    pub(super) moving: RwLock<()>,
    pub(super) heat: Heat,
    /// Groups that wait for promotion because they were loaded; `None` if loaded groups are not promoted.
    pub(super) loaded: Mutex<Option<BTreeSet<ChunkGroup>>>,
    pub(super) written: AtomicU64,
    pub(super) names: Arc<DimensionNames>,
    header: Header,
    session: Session,
    /// `true` if the last commit with crossings failed and may have happened all the same.
    pub(super) is_unsettled: AtomicBool,
    /// `true` if a write failed and may still happen until the next one.
    has_late_write: AtomicBool,
    /// `true` if that write may move groups.
    pub(super) has_late_move: AtomicBool,
}

/// How this process may write.
enum Session {
    /// Not at all: the world was opened to be read.
    None,
    /// It has the world alone, as long as the stored header is this one.
    Alone(Vec<u8>),
    /// It is one of several servers.
    Server(Incarnation),
}

impl WorldStore {
    /// Opens a world, or creates it if there is none. The world stays open until the returned value is dropped. If something
    /// else has it open, this [waits](OpenWait) for up to 5 s.
    pub fn open(config: &StorageConfig) -> Result<Self, WorldOpenError> {
        Self::open_waiting(config, &mut OpenWait::default())
    }

    /// Like [`open`](Self::open), with a wait of the caller's own.
    pub fn open_waiting(config: &StorageConfig, wait: &mut OpenWait<'_>) -> Result<Self, WorldOpenError> {
        match config {
            StorageConfig::Memory => Self::from_store(Arc::new(MemoryStore::new())),
            StorageConfig::Path(path) => Self::open_path(path, wait),
            StorageConfig::Custom(store) => Self::start_session(store.path(), store.clone(), true, None, wait),
            StorageConfig::Shared { store, address } => Self::join(Arc::clone(store), address),
        }
    }

    #[cfg(feature = "rocksdb")]
    fn open_path(path: &Path, wait: &mut OpenWait<'_>) -> Result<Self, WorldOpenError> {
        Self::open_folder(path, wait, |database, create| Ok(Arc::new(RocksStore::open(database, create)?)))
    }

    #[cfg(not(feature = "rocksdb"))]
    fn open_path(path: &Path, _wait: &mut OpenWait<'_>) -> Result<Self, WorldOpenError> {
        Err(WorldOpenError::NoBackend { path: path.to_path_buf() })
    }

    /// Opens the world in a folder. `open_database` opens the database, or creates it if requested.
    #[cfg(feature = "rocksdb")]
    fn open_folder(
        path: &Path,
        wait: &mut OpenWait<'_>,
        open_database: impl Fn(&Path, bool) -> Result<Arc<dyn KeyValueStore>, StoreError>,
    ) -> Result<Self, WorldOpenError> {
        let folder = wait.retry(WorldOpenError::is_in_use, || WorldFolder::open(path))?;
        // A process that ends may release its database later than its folder.
        let store = wait.retry(WorldOpenError::is_in_use, || {
            open_database(&folder.database(), folder.is_new())
                .map_err(|source| WorldOpenError::Database { path: path.to_path_buf(), source })
        })?;
        let mut world = Self::start_session(path, store, folder.is_new(), None, wait)?;
        if folder.is_new() {
            folder.finish_creation()?;
        }
        if let Err(error) = FoundRequest::forget_old(path) {
            tracing::warn!("old requests for backups cannot be removed from {}: {error}", path.display());
        }
        world.folder = Some(folder);
        Ok(world)
    }

    /// Opens the world in a custom backend, or creates it there.
    pub fn from_store(store: Arc<dyn KeyValueStore>) -> Result<Self, WorldOpenError> {
        Self::open_waiting(&StorageConfig::Custom(store), &mut OpenWait::default())
    }

    /// Joins the world in a backend as one of several servers, or creates it there. `address` is where clients reach this
    /// server; the crate does not interpret it. A process that has had the world alone can no longer write.
    pub fn join(store: Arc<dyn KeyValueStore>, address: &[u8]) -> Result<Self, WorldOpenError> {
        let path = store.path().to_path_buf();
        Self::start_session(&path, store, true, Some(address), &mut OpenWait::default())
    }

    /// A store whose world has not been read yet.
    fn without_session(store: Arc<dyn KeyValueStore>) -> Self {
        Self {
            store,
            #[cfg(feature = "rocksdb")]
            folder: None,
            writes: Mutex::new(()),
            blocks: RwLock::default(),
            moving: RwLock::new(()),
            heat: Heat::default(),
            loaded: Mutex::default(),
            written: AtomicU64::default(),
            names: Arc::default(),
            header: Header { format: FORMAT, created_at_seconds: 0, sessions: 0 },
            session: Session::None,
            is_unsettled: AtomicBool::new(false),
            has_late_write: AtomicBool::new(false),
            has_late_move: AtomicBool::new(false),
        }
    }

    /// Starts a session: alone, or as a server with an address.
    fn start_session(
        path: &Path,
        store: Arc<dyn KeyValueStore>,
        may_create: bool,
        address: Option<&[u8]>,
        wait: &mut OpenWait<'_>,
    ) -> Result<Self, WorldOpenError> {
        let created_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let header = Header { format: FORMAT, created_at_seconds: created_at.as_secs(), sessions: 0 };
        let mut world = Self::without_session(store);
        world.header = header;
        let damaged = |source| WorldOpenError::Database { path: path.to_path_buf(), source };
        for attempt in 1.. {
            let stored = world.store.get(Family::Meta, keys::HEADER).map_err(damaged)?;
            match stored.as_deref().map(record::decode::<Header>) {
                Some(Ok(header)) if header.format > FORMAT => {
                    return Err(WorldOpenError::NewerFormat {
                        path: path.to_path_buf(),
                        found: header.format,
                        supported: FORMAT,
                    });
                }
                Some(Ok(header)) => world.header = header,
                Some(Err(reason)) => return Err(damaged(world.corrupt(StoredItem::Header, reason))),
                // Data without a header is a damaged world or an unfinished copy.
                None if may_create && world.is_empty().map_err(damaged)? => {}
                // Another process may have created the world just now.
                None if may_create && attempt == 1 => continue,
                None => return Err(damaged(world.corrupt(StoredItem::Header, "it is missing"))),
            }
            world.header.sessions = world.header.sessions.saturating_add(1);
            let fence = record::encode(&world.header);
            let mut writes = WriteBatch::default();
            writes.require(Family::Meta, keys::HEADER, stored);
            // If another process has the world alone, this ends its session.
            writes.put(Family::Meta, keys::HEADER, fence.clone());
            let session = world.new_session(path, address, fence, &mut writes, wait)?;
            match world.store.write(writes, Durability::Sync) {
                // A backend that finds damage in the background refuses one write and then works around the damage.
                Err(StoreError::Backend { .. }) if attempt == 1 => {}
                // Another process opened the world at the same moment. The next attempt gets the session number after
                // that one's.
                Err(StoreError::PreconditionFailed { .. }) if attempt < MAX_OPENING_ATTEMPTS => {}
                written => {
                    written.map_err(damaged)?;
                    world.session = session;
                    break;
                }
            }
        }
        world.resume_play_time().map_err(damaged)?;
        world.read_names().map_err(damaged)?;
        Ok(world)
    }

    /// A session that begins with this batch.
    fn new_session(
        &self,
        path: &Path,
        address: Option<&[u8]>,
        fence: Vec<u8>,
        writes: &mut WriteBatch,
        wait: &mut OpenWait<'_>,
    ) -> Result<Session, WorldOpenError> {
        let damaged = |source| WorldOpenError::Database { path: path.to_path_buf(), source };
        if let Some(address) = address {
            return Incarnation::announce(self.store.clone(), address, writes).map(Session::Server).map_err(damaged);
        }
        match servers::end_silent(&*self.store, None, writes, wait).map_err(damaged)? {
            0 => Ok(Session::Alone(fence)),
            servers => Err(WorldOpenError::Shared { path: path.to_path_buf(), servers }),
        }
    }

    /// Returns `true` if nothing is stored.
    fn is_empty(&self) -> Result<bool, StoreError> {
        let all = || keys::range_of(b"");
        let reads = Family::ALL.map(|family| Read::Range(family, all(), 1));
        Ok(self.store.read(&reads)?.iter().all(Vec::is_empty))
    }

    /// The world's folder, if it is on disk.
    pub fn folder(&self) -> Option<&Path> {
        #[cfg(feature = "rocksdb")]
        return self.folder.as_ref().map(WorldFolder::path);
        #[cfg(not(feature = "rocksdb"))]
        None
    }

    /// The folder of the world's snapshots, if the world is on disk.
    pub fn snapshot_folder(&self) -> Option<PathBuf> {
        #[cfg(feature = "rocksdb")]
        return self.folder.as_ref().map(WorldFolder::snapshots);
        #[cfg(not(feature = "rocksdb"))]
        None
    }

    /// Writes a batch if this session has not ended. The header holds the number of the last session that has the world
    /// alone, and every batch requires that header. So a session that has been superseded can never change the world, not
    /// even by a delayed write. The batch of a server requires the server's own row instead.
    pub(super) fn write(&self, mut batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        let written = match &self.session {
            Session::None => return Err(StoreError::NotWritable { path: self.path().to_path_buf() }),
            Session::Alone(fence) => {
                batch.require(Family::Meta, keys::HEADER, Some(fence.clone()));
                self.store.write(batch, durability).map_err(|error| match error {
                    StoreError::PreconditionFailed { key, path, .. } if key == keys::HEADER => {
                        StoreError::Superseded { session: self.session(), path }
                    }
                    error => error,
                })
            }
            Session::Server(incarnation) => incarnation.write(batch),
        };
        match &written {
            // The batch is written, or never will be.
            Ok(()) | Err(StoreError::PreconditionFailed { .. } | StoreError::Superseded { .. }) => {}
            Err(_) => self.has_late_write.store(true, Ordering::Release),
        }
        self.written.fetch_add(1, Ordering::Release);
        written
    }

    /// This run of a server, if several servers share the world.
    pub fn incarnation(&self) -> Option<&Incarnation> {
        if let Session::Server(incarnation) = &self.session { Some(incarnation) } else { None }
    }

    /// Refuses what is only possible for a process that has the world alone.
    ///
    /// # Errors
    /// [`StoreError::Shared`] if several servers share the world.
    pub fn require_alone(&self, what: &'static str) -> Result<(), StoreError> {
        match self.session {
            Session::Server(_) => Err(StoreError::Shared { what, path: self.path().to_path_buf() }),
            Session::None | Session::Alone(_) => Ok(()),
        }
    }

    /// The path of the world, for messages.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// The number of this session, which counts how often the world has been opened.
    pub fn session(&self) -> u64 {
        self.header.sessions
    }

    /// The format of the stored data.
    pub fn format(&self) -> u32 {
        self.header.format
    }

    /// The creation time of the world.
    pub fn created_at(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_secs(self.header.created_at_seconds)).unwrap_or(UNIX_EPOCH)
    }

    /// The approximate size of a family, for statistics; `None` if the backend cannot tell.
    pub fn approximate_family(&self, family: Family) -> Result<Option<FamilySize>, StoreError> {
        self.store.approximate_family(family)
    }

    /// The number of bytes written to disk since the world was opened, including logs and compactions; `None` if the
    /// backend does not know.
    pub fn written_bytes(&self) -> Option<u64> {
        self.store.written_bytes()
    }

    /// The bytes that the store holds in memory: its cache, and entries that are not in its tables yet; `None` if the backend does not
    /// know.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.store.memory_bytes()
    }

    /// The unsynced saves that were missing when the world was opened, after a loss of power.
    pub fn lost_writes(&self) -> Option<&LostWrites> {
        self.store.lost_writes()
    }

    /// Makes all earlier commits survive a loss of power.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.store.sync()
    }

    /// Checks that the value under a key that occurs once per world can be read.
    pub(super) fn check_single(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        match key {
            keys::HEADER => self.record::<Header>(value, StoredItem::Header).map(drop),
            keys::LAST_DIMENSION => self.record::<u64>(value, StoredItem::LastDimension).map(drop),
            keys::PLAY_TIME => self.record::<Duration>(value, StoredItem::PlayTime).map(drop),
            // The value is a key of the family of chunks, of any length, or empty.
            keys::ADOPTED => Ok(()),
            _ => Err(self.unknown_key(Family::Meta, key)),
        }
    }

    /// The value of the header, for a store whose header is damaged or lost.
    pub(super) fn header_anew(&self) -> Vec<u8> {
        record::encode(&self.header)
    }

    /// A lock to hold from a read to the write that depends on it. What is read under the lock stays as it is: a failed write
    /// that may still happen is settled first.
    ///
    /// # Errors
    /// The errors of the write that settles it.
    pub(super) fn lock_writes(&self) -> Result<MutexGuard<'_, ()>, StoreError> {
        let writing = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_late_write() {
            // Cleared first, because a failure sets it again.
            self.has_late_write.store(false, Ordering::Release);
            match self.has_late_move.load(Ordering::Acquire) {
                true => self.write_moves(WriteBatch::default(), Durability::Process)?,
                false => self.write(WriteBatch::default(), Durability::Process)?,
            }
        }
        Ok(writing)
    }

    /// Settles a failed move of groups that may still happen: it could do so between two reads that look for a group in several
    /// tiers. A disk that takes no writes is read all the same.
    pub(super) fn settle_moves(&self) -> Result<(), StoreError> {
        match self.has_late_move.load(Ordering::Acquire).then(|| self.lock_writes()) {
            Some(Err(error)) if self.incarnation().is_some() => Err(error),
            _ => Ok(()),
        }
    }

    /// The lock of [`lock_writes`](Self::lock_writes), if that neither waits nor writes.
    pub(super) fn try_lock_writes(&self) -> Option<MutexGuard<'_, ()>> {
        self.writes.try_lock().ok().filter(|_| !self.has_late_write())
    }

    fn has_late_write(&self) -> bool {
        self.has_late_write.load(Ordering::Acquire)
    }

    pub(super) fn corrupt(&self, what: StoredItem, reason: impl ToString) -> StoreError {
        StoreError::Corrupt { what, path: self.path().to_path_buf(), reason: reason.to_string() }
    }

    /// The record of `item` under this key in `meta`.
    pub(super) fn read_record<T: DeserializeOwned>(
        &self,
        key: &[u8],
        item: StoredItem,
    ) -> Result<Option<T>, StoreError> {
        self.store.get(Family::Meta, key)?.map(|value| self.record(&value, item)).transpose()
    }

    /// Decodes the record of `item`. If the record is damaged, the error names the item.
    pub(super) fn record<T: DeserializeOwned>(&self, value: &[u8], item: StoredItem) -> Result<T, StoreError> {
        record::decode(value).map_err(|reason| self.corrupt(item, reason))
    }
}

impl Drop for WorldStore {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.incarnation().map(Incarnation::leave) {
            tracing::warn!("the other servers take this one for living until its term is over: {error}");
        }
    }
}

impl fmt::Debug for WorldStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorldStore").field("path", &self.path()).field("header", &self.header).finish()
    }
}
