//! Backups of an open world.

#[cfg(feature = "rocksdb")]
use super::{snapshot_check, snapshot_files};
#[cfg(feature = "rocksdb")]
use crate::RocksStore;
#[cfg(feature = "rocksdb")]
use crate::work::if_exists;
use crate::{Backup, StoreError, WorldStore};
#[cfg(feature = "rocksdb")]
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

impl WorldStore {
    /// Adds a backup of the current contents to the backups in `folder`, and creates the folder if necessary. If `keep`
    /// is given, removes all but the newest `keep` backups. Data that is unchanged since the last backup takes no
    /// space. Loading and saving continue meanwhile. The backup includes the world's snapshots.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the folder cannot be written or holds something else, or if the world is not on disk;
    /// [`StoreError::NotWritable`] if the world was opened only to be read; [`StoreError::DamagedFile`] if a file of a
    /// snapshot is damaged. Older backups, which may have a whole one, then stay.
    pub fn back_up(&self, folder: &Path, keep: Option<NonZeroU32>) -> Result<Backup, StoreError> {
        self.require_alone("a backup")?;
        #[cfg(feature = "rocksdb")]
        if let Some(snapshots) = self.snapshot_folder() {
            expect_backups(folder)?;
            snapshot_check::expect_whole(&snapshots)?;
            return snapshot_files::back_up(&snapshots, folder, || {
                let made = self.store.back_up(folder, keep)?;
                Ok((made, RocksStore::backups(folder)?))
            });
        }
        self.store.back_up(folder, keep)
    }
}

/// The names in a folder of backups.
#[cfg(feature = "rocksdb")]
const NAMES: [&str; 5] = ["meta", "private", "shared", "shared_checksum", snapshot_files::FOLDER];

/// A folder is accepted if it does not exist yet, is empty, or holds backups already, since backups must not be mixed
/// with other files. Hidden files are allowed: desktops create some in any folder that a user opens.
#[cfg(feature = "rocksdb")]
fn expect_backups(folder: &Path) -> Result<(), StoreError> {
    let failed = |reason: String| StoreError::backend("back up", None, folder, reason);
    let entries = if_exists(fs::read_dir(folder));
    let entries = entries.map_err(|error| failed(format!("its folder cannot be read: {error}")))?;
    for entry in entries.into_iter().flatten() {
        let name = entry.map_err(|error| failed(error.to_string()))?.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if !is_hidden && !NAMES.iter().any(|known| *known == name) {
            let reason =
                format!("the folder holds {name:?}, which is not part of a backup; choose an empty or a new one");
            return Err(failed(reason));
        }
    }
    Ok(())
}
