//! Backups of an open world.

#[cfg(feature = "rocksdb")]
use super::snapshot_files;
#[cfg(feature = "rocksdb")]
use crate::RocksStore;
#[cfg(feature = "rocksdb")]
use crate::work::if_there;
use crate::{Backup, StoreError, WorldStore};
#[cfg(feature = "rocksdb")]
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

impl WorldStore {
    /// Adds a backup of what is stored at this moment to those in `folder`, which is made if it is not there, and removes
    /// all but the newest `keep` of them, if that is given. What did not change since the last one takes no room. Loading
    /// and saving go on meanwhile. The world's snapshots are part of it.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the folder cannot be written or holds something else, or the world is not on disk;
    /// [`StoreError::NotWritable`] if it was opened only to be read.
    pub fn back_up(&self, folder: &Path, keep: Option<NonZeroU32>) -> Result<Backup, StoreError> {
        #[cfg(feature = "rocksdb")]
        if let Some(snapshots) = self.snapshot_folder() {
            expect_backups(folder)?;
            return snapshot_files::back_up(&snapshots, folder, || {
                let made = self.store.back_up(folder, keep)?;
                Ok((made, RocksStore::backups(folder)?))
            });
        }
        self.store.back_up(folder, keep)
    }
}

/// What a folder of backups has in it.
#[cfg(feature = "rocksdb")]
const NAMES: [&str; 5] = ["meta", "private", "shared", "shared_checksum", snapshot_files::FOLDER];

/// A folder may get a backup if it is not there yet, is empty, or has backups already: other files may not be mixed with those.
/// Hidden files may: desktops make some in any folder that is looked at.
#[cfg(feature = "rocksdb")]
fn expect_backups(folder: &Path) -> Result<(), StoreError> {
    let failed = |reason: String| StoreError::backend("back up", None, folder, reason);
    let entries = if_there(fs::read_dir(folder));
    let entries = entries.map_err(|error| failed(format!("its folder cannot be read: {error}")))?;
    for entry in entries.into_iter().flatten() {
        let name = entry.map_err(|error| failed(error.to_string()))?.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if !is_hidden && !NAMES.iter().any(|known| *known == name) {
            let reason =
                format!("the folder holds {name:?}, which is no part of a backup; choose an empty or a new one");
            return Err(failed(reason));
        }
    }
    Ok(())
}
