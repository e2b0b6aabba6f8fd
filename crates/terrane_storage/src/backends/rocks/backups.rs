//! Incremental backups of an open database, and restoring them. RocksDB's backup engine shares unchanged files between
//! backups, and checks each file that it copies.

use super::RocksStore;
use crate::{Backup, KeyValueStore, StoreError};
use rocksdb::Env;
use rocksdb::backup::{BackupEngine, BackupEngineInfo, BackupEngineOptions, RestoreOptions};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, UNIX_EPOCH};

impl RocksStore {
    /// If the disk fails during the backup, writes resume only after its end.
    pub(super) fn add_backup(&self, folder: &Path, keep: Option<NonZeroU32>) -> Result<Backup, StoreError> {
        self.expect_sound()?;
        let failed = failed("back up", folder);
        let _alone = self.backing_up.lock().unwrap_or_else(PoisonError::into_inner);
        let mut engine = open(folder, &failed)?;
        {
            let database = self.keeper.database();
            let database = database.get(self.path(), "back up")?;
            engine.create_new_backup_flush(database, true).map_err(&failed)?;
        }
        let made = engine.get_backup_info().into_iter().map(backup).max_by_key(|backup| backup.number);
        if let Some(keep) = keep {
            engine.purge_old_backups(usize::try_from(keep.get()).unwrap_or(usize::MAX)).map_err(&failed)?;
        }
        made.ok_or_else(|| missing("back up", folder, "the backup that was made"))
    }

    /// The backups in a folder, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if there is no folder with backups.
    pub fn backups(folder: &Path) -> Result<Vec<Backup>, StoreError> {
        let engine = open_existing(folder)?;
        let mut backups: Vec<Backup> = engine.get_backup_info().into_iter().map(backup).collect();
        backups.sort_unstable_by_key(|backup| backup.number);
        Ok(backups)
    }

    /// Checks a backup and restores it as a database in the folder `path`: the newest backup, or the one with this
    /// number. Existing data in `path` is lost.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the backup does not exist, if one of its files is missing or damaged, or if the new
    /// database cannot be written.
    pub fn restore(folder: &Path, number: Option<u32>, path: &Path) -> Result<Backup, StoreError> {
        let failed = failed("restore", folder);
        let mut engine = open_existing(folder)?;
        let backups = engine.get_backup_info().into_iter().map(backup);
        let wanted = backups.filter(|backup| number.is_none_or(|number| backup.number == number));
        let wanted = wanted.max_by_key(|backup| backup.number).ok_or_else(|| {
            let what = number.map_or_else(|| "a backup".to_owned(), |number| format!("backup {number}"));
            missing("restore", folder, &what)
        })?;
        engine.verify_backup(wanted.number).map_err(&failed)?;
        // This compares the checksums of all files.
        engine.restore_from_backup(path, path, &RestoreOptions::default(), wanted.number).map_err(&failed)?;
        Ok(wanted)
    }
}

/// Opens the engine only if there are backups. Otherwise it would create a folder for them.
fn open_existing(folder: &Path) -> Result<BackupEngine, StoreError> {
    match folder.join("meta").is_dir() {
        true => open(folder, failed("restore", folder)),
        false => Err(missing("restore", folder, "a backup")),
    }
}

fn open(folder: &Path, failed: impl Fn(rocksdb::Error) -> StoreError) -> Result<BackupEngine, StoreError> {
    let options = BackupEngineOptions::new(folder).map_err(&failed)?;
    let environment = Env::new().map_err(&failed)?;
    BackupEngine::open(&options, &environment).map_err(failed)
}

fn backup(info: BackupEngineInfo) -> Backup {
    let seconds = u64::try_from(info.timestamp).unwrap_or(0);
    let made_at = UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH);
    Backup { number: info.backup_id, made_at, bytes: info.size }
}

fn failed(operation: &'static str, folder: &Path) -> impl Fn(rocksdb::Error) -> StoreError {
    move |error| StoreError::backend(operation, None, folder, error)
}

fn missing(operation: &'static str, folder: &Path, what: &str) -> StoreError {
    let reason = format!("there is no folder with {what} in it");
    StoreError::backend(operation, None, folder, reason)
}
