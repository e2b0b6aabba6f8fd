//! Worlds on disk that are made of others: they are put together under another name, and are worlds only when they are whole.

use super::UpkeepError;
use super::copy::{CopyReport, copy_store};
use super::salvage::{SalvageReport, salvage};
use super::snapshot_files;
use crate::storage::folder::WorldFolder;
use crate::storage::{Access, Backup, RocksStore, StoreError, WorldOpenError, WorldStore};
use crate::work::{Progress, Stop};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Copies a world into the folder `path`, which must be empty or not there yet. If it is stopped, nothing is left there.
///
/// # Errors
/// As [`copy_store`], and if there is something in the folder.
pub fn copy_world(
    from: &WorldStore,
    path: &Path,
    progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<CopyReport, UpkeepError> {
    let new = NewWorld::begin(path)?;
    let report = copy_store(&*from.store, &new.create()?, progress)?;
    if report.finished {
        new.copy_snapshots(from.snapshot_folder())?;
        new.finish()?;
    }
    Ok(report)
}

/// [Salvages](salvage) a world into the folder `path`, which must be empty or not there yet. If it is stopped, nothing is left
/// there.
///
/// # Errors
/// As [`salvage`], and if there is something in the folder.
pub fn salvage_world(
    from: &WorldStore,
    path: &Path,
    progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<SalvageReport, UpkeepError> {
    let new = NewWorld::begin(path)?;
    let report = salvage(from, &new.create()?, progress)?;
    if report.finished {
        new.copy_snapshots(from.snapshot_folder())?;
        new.finish()?;
    }
    Ok(report)
}

/// Makes a world of a backup, in the folder `path`, which must be empty or not there yet: of the newest one in `backups`, or
/// of the one with this number. It looks at `stop` when the database is there, which is one long step.
///
/// # Errors
/// As [`RocksStore::restore`], [`UpkeepError::Cancelled`], and if there is something in the folder, or no world in the backup
/// that this version of the crate can open. Nothing is left in the folder then.
pub fn restore_world(backups: &Path, number: Option<u32>, path: &Path, stop: &Stop) -> Result<Backup, UpkeepError> {
    let new = NewWorld::begin(path)?;
    let restored = RocksStore::restore(backups, number, &new.database)?;
    end_if_stopped(stop)?;
    let store = Arc::new(RocksStore::open_to_read(&new.database)?);
    drop(WorldStore::open_existing(&crate::storage::StorageConfig::Custom(store), Access::Read)?);
    new.copy_snapshots(Some(snapshot_files::of_backup(backups, restored.number)))?;
    end_if_stopped(stop)?;
    new.finish()?;
    Ok(restored)
}

fn end_if_stopped(stop: &Stop) -> Result<(), UpkeepError> {
    if stop.is_stopped() { Err(UpkeepError::Cancelled) } else { Ok(()) }
}

/// A world that is being put together. Without [`finish`](Self::finish) nothing is left of it.
struct NewWorld {
    folder: WorldFolder,
    path: PathBuf,
    /// The folder is there only for it.
    made_folder: bool,
    /// Nobody takes it for that of a world.
    database: PathBuf,
    is_finished: bool,
}

impl NewWorld {
    fn begin(path: &Path) -> Result<Self, WorldOpenError> {
        let made_folder = !path.exists();
        let folder = WorldFolder::open_to_fill(path)?;
        if !folder.is_new() || folder.database().exists() {
            return Err(WorldOpenError::Exists { path: path.to_path_buf() });
        }
        let database = folder.unfinished_database();
        Ok(Self { folder, path: path.to_path_buf(), made_folder, database, is_finished: false })
    }

    fn create(&self) -> Result<RocksStore, StoreError> {
        RocksStore::open(&self.database, true)
    }

    /// Copies the snapshots of another world, if it has any.
    fn copy_snapshots(&self, from: Option<PathBuf>) -> Result<(), StoreError> {
        from.map_or(Ok(()), |from| snapshot_files::copy(&from, &self.folder.snapshots()))
    }

    /// Makes it a world. Its database must be closed.
    fn finish(mut self) -> Result<(), WorldOpenError> {
        self.folder.finish_database()?;
        self.folder.finish_creation()?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for NewWorld {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        // As far as possible: who tries again is told what is in the way.
        let _ = self.folder.clear().and_then(|()| self.folder.forget());
        if self.made_folder {
            let _ = fs::remove_dir(&self.path);
        }
    }
}
