//! Backups of an open world.

#[cfg(feature = "rocksdb")]
use super::snapshot_files;
#[cfg(feature = "rocksdb")]
use crate::storage::RocksStore;
use crate::storage::{Backup, StoreError, WorldStore};
use std::num::NonZeroU32;
use std::path::Path;

impl WorldStore {
    /// Adds a backup of what is stored at this moment to those in `folder`, which is made if it is not there, and removes
    /// all but the newest `keep` of them, if that is given. What did not change since the last one takes no room. Loading
    /// and saving go on meanwhile. The world's snapshots are part of it.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the folder cannot be written, or the world is not on disk;
    /// [`StoreError::NotWritable`] if it was opened only to be read.
    pub fn back_up(&self, folder: &Path, keep: Option<NonZeroU32>) -> Result<Backup, StoreError> {
        #[cfg(feature = "rocksdb")]
        if let Some(snapshots) = self.snapshot_folder() {
            return snapshot_files::back_up(&snapshots, folder, || {
                let made = self.store.back_up(folder, keep)?;
                Ok((made, RocksStore::backups(folder)?))
            });
        }
        self.store.back_up(folder, keep)
    }
}
