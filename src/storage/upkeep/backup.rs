//! Backups of an open world.

use super::UpkeepError;
#[cfg(feature = "rocksdb")]
use super::snapshot_files;
#[cfg(feature = "rocksdb")]
use crate::storage::RocksStore;
use crate::storage::{Backup, WorldStore};
use crate::work::Stop;
use std::num::NonZeroU32;
use std::path::Path;

impl WorldStore {
    /// Adds a backup of what is stored at this moment to those in `folder`, which is made if it is not there, and removes
    /// all but the newest `keep` of them, if that is given. What did not change since the last one takes no room. Loading
    /// and saving go on meanwhile. The world's snapshots are part of it.
    ///
    /// It looks at `stop` before the database is backed up, which is one long step.
    ///
    /// # Errors
    /// [`StoreError::Backend`](crate::storage::StoreError::Backend) if the folder cannot be written, or the world is not on
    /// disk; [`StoreError::NotWritable`](crate::storage::StoreError::NotWritable) if it was opened only to be read;
    /// [`UpkeepError::Cancelled`] if it was stopped.
    pub fn back_up(&self, folder: &Path, keep: Option<NonZeroU32>, stop: &Stop) -> Result<Backup, UpkeepError> {
        let make = || -> Result<Backup, UpkeepError> {
            UpkeepError::if_stopped(stop)?;
            Ok(self.store.back_up(folder, keep)?)
        };
        #[cfg(feature = "rocksdb")]
        if let Some(snapshots) = self.snapshot_folder() {
            return snapshot_files::back_up(&snapshots, folder, || Ok((make()?, RocksStore::backups(folder)?)));
        }
        make()
    }
}
