//! Opening existing worlds, with a session only if they are to be changed.

use super::WorldStore;
use crate::values::{FORMAT, Header};
use crate::{Family, KeyValueStore, OpenWait, StorageConfig, StoreError, WorldOpenError, keys, values::record};
#[cfg(feature = "rocksdb")]
use crate::{RocksStore, folder::WorldFolder};
use std::path::Path;
use std::sync::Arc;

/// The purpose for which an existing world is [opened](WorldStore::open_existing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading, shared with other readers. Nothing in the world changes, so it may be on a read-only disk, and each
    /// write is refused. A damaged header is not an error.
    Read,
    /// Compaction or backup. Stored data does not change, and each write is refused. A damaged header is not an error.
    Maintain,
    /// Changes, which count as a session.
    Write,
}

impl WorldStore {
    /// Opens an existing world. The world stays open until the returned value is dropped. If something else has it open, this
    /// [waits](OpenWait) for up to 5 s.
    ///
    /// # Errors
    /// [`WorldOpenError::NoWorld`] if it does not exist. It is not created.
    pub fn open_existing(config: &StorageConfig, access: Access) -> Result<Self, WorldOpenError> {
        Self::open_existing_waiting(config, access, &mut OpenWait::default())
    }

    /// Like [`open_existing`](Self::open_existing), with a wait of the caller's own.
    ///
    /// # Errors
    /// The same as those of [`open_existing`](Self::open_existing).
    pub fn open_existing_waiting(
        config: &StorageConfig,
        access: Access,
        wait: &mut OpenWait<'_>,
    ) -> Result<Self, WorldOpenError> {
        match config {
            StorageConfig::Memory => Err(WorldOpenError::NoWorld { path: "in memory".into() }),
            StorageConfig::Path(path) => Self::open_existing_path(path, access, wait),
            StorageConfig::Custom(store) => Self::begin(Arc::clone(store), access, wait),
            StorageConfig::Shared { store, address } if access == Access::Write => {
                Self::join(Arc::clone(store), address)
            }
            StorageConfig::Shared { store, .. } => Self::begin(Arc::clone(store), access, wait),
        }
    }

    #[cfg(feature = "rocksdb")]
    fn open_existing_path(path: &Path, access: Access, wait: &mut OpenWait<'_>) -> Result<Self, WorldOpenError> {
        let folder = wait.retry(WorldOpenError::is_in_use, || match access {
            Access::Read => WorldFolder::open_to_read(path),
            Access::Maintain | Access::Write => WorldFolder::open_existing(path),
        })?;
        let database = folder.database();
        let store = wait.retry(WorldOpenError::is_in_use, || {
            let store = match access {
                Access::Read => RocksStore::open_to_read(&database),
                Access::Maintain | Access::Write => RocksStore::open(&database, false),
            };
            store.map_err(|source| WorldOpenError::Database { path: path.to_path_buf(), source })
        })?;
        let mut world = Self::begin(Arc::new(store), access, wait)?;
        world.folder = Some(folder);
        Ok(world)
    }

    #[cfg(not(feature = "rocksdb"))]
    fn open_existing_path(path: &Path, _access: Access, _wait: &mut OpenWait<'_>) -> Result<Self, WorldOpenError> {
        Err(WorldOpenError::NoBackend { path: path.to_path_buf() })
    }

    fn begin(store: Arc<dyn KeyValueStore>, access: Access, wait: &mut OpenWait<'_>) -> Result<Self, WorldOpenError> {
        let path = store.path().to_path_buf();
        let failed = |source| WorldOpenError::Database { path: path.clone(), source };
        let has_header = match store.get(Family::Meta, keys::HEADER) {
            Err(StoreError::Damaged { .. }) if access != Access::Write => true,
            header => header.map_err(failed)?.is_some(),
        };
        if !has_header && store.scan(Family::Meta, &[]..&[u8::MAX], 1).map_err(failed)?.is_empty() {
            return Err(WorldOpenError::NoWorld { path });
        }
        match access {
            Access::Write => Self::start_session(&path, store, false, None, wait),
            Access::Read | Access::Maintain => Self::look_at(store),
        }
    }

    /// Opens a world with possibly missing or damaged data for reading.
    pub(crate) fn look_at(store: Arc<dyn KeyValueStore>) -> Result<Self, WorldOpenError> {
        let path = store.path().to_path_buf();
        let mut world = Self::without_session(store);
        let header = match world.store.get(Family::Meta, keys::HEADER) {
            Err(StoreError::Damaged { .. }) => None,
            header => header.map_err(|source| WorldOpenError::Database { path: path.clone(), source })?,
        };
        // The format in a damaged header is unknown. The damage is found by verification.
        if let Some(Ok(header)) = header.as_deref().map(record::decode::<Header>) {
            if header.format > FORMAT {
                return Err(WorldOpenError::NewerFormat { path, found: header.format, supported: FORMAT });
            }
            world.header = header;
        }
        match world.resume_play_time() {
            Err(source) if !source.is_damage() => Err(WorldOpenError::Database { path, source }),
            _ => Ok(world),
        }
    }
}
