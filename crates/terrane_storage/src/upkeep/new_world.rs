//! Creation of worlds on disk from other data. Each is built under another name and becomes a world only when it is complete.

use super::copy::copy_store;
use super::exports::check_export;
use super::salvage::salvage_rest;
use super::{Damage, ImportOptions, ImportReport, Listed, UpkeepError, VerifyReport};
use super::{snapshot_check, snapshot_files};
use crate::backends::rocks::remains::Remains;
use crate::folder::WorldFolder;
use crate::work::{Progress, Stop, Tell};
use crate::{
    Access, Backup, KeyValueStore, LostWrites, OpenWait, RocksStore, StorageConfig, StoreError, WorldOpenError,
    WorldStore,
};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Copies a world into the folder `path`, which must be empty or missing. If the copy is stopped, nothing is left there.
///
/// # Errors
/// The same as those of [`copy_store`]; also if the folder is not empty, or a file of a snapshot is damaged.
pub fn copy_world(
    from: &WorldStore,
    path: &Path,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress, UpkeepError> {
    let new = NewWorld::begin(path, &mut wait(&mut progress))?;
    let mut damage = None;
    let mut note = |found| _ = damage.get_or_insert(found);
    let snapshots = snapshot_check::check_world(from, &mut progress, &mut note)?.ok_or(UpkeepError::Cancelled)?;
    if let Some(damage) = damage {
        return Err(snapshot_check::error_of(damage).into());
    }
    let copied = copy_store(&*from.store, &new.create()?, |rest| progress(&snapshots.and(rest)))?;
    new.copy_snapshots(from.snapshot_folder())?;
    new.finish()?;
    Ok(copied)
}

/// [Salvages](super::salvage) the world in the folder `damaged` into the folder `path`, which must be empty or missing.
/// If the salvage is stopped, nothing is left there.
///
/// A world that cannot be opened is salvaged too: if its marker is missing or damaged, or if RocksDB refuses its
/// database because a manifest, tables, blob files or logs are missing or damaged. The remaining files are then read,
/// and the losses are reported as damage.
///
/// # Errors
/// The same as those of [`salvage`](super::salvage); also if the folder is not empty, or nothing of the world is left.
pub fn salvage_world(
    damaged: &Path,
    path: &Path,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<VerifyReport, UpkeepError> {
    let mut opening = wait(&mut progress);
    let (folder, marker) = opening.retry(WorldOpenError::is_in_use, || WorldFolder::open_to_salvage(damaged))?;
    let new = NewWorld::begin(path, &mut opening)?;
    drop(opening);
    let mut lost = Listed::default();
    let database = open_database(&folder.database(), &new.folder.remains(), &mut lost)?;
    let from = WorldStore::look_at(database)?;
    let mut report = salvage_rest(&from, &new.create()?, lost, &mut progress)?;
    if let Some(WorldOpenError::MarkerDamaged { path, reason }) = marker {
        report.damage.add(Damage::File { path, reason });
    }
    drop(from);
    let snapshots = folder.snapshots();
    let VerifyReport { read, damage, .. } = &mut report;
    let mut tell = |bytes| {
        read.bytes += bytes;
        progress(read)
    };
    if snapshot_check::check(&snapshots, &mut tell, &mut |found| damage.add(found)).is_break() {
        return Err(UpkeepError::Cancelled);
    }
    if let Err(error) = new.copy_snapshots(Some(snapshots.clone())) {
        report.damage.add(Damage::File { path: snapshots, reason: format!("not all of it was copied: {error}") });
    }
    new.finish()?;
    Ok(report)
}

/// Opens the database in a folder, or the remains of it.
fn open_database(path: &Path, scratch: &Path, lost: &mut Listed<Damage>) -> Result<Arc<dyn KeyValueStore>, StoreError> {
    let error = match RocksStore::open_to_read(path) {
        Ok(store) => match store.lost_writes() {
            None => return Ok(Arc::new(store)),
            // Behind a gap there may be more.
            Some(LostWrites { path, reason, .. }) => {
                StoreError::DamagedFile { path: path.clone(), reason: reason.clone() }
            }
        },
        Err(error) => error,
    };
    let (first, reason) = match error {
        StoreError::DamagedFile { path, reason } => (path, reason),
        StoreError::Backend { reason, .. } => (path.to_path_buf(), format!("it cannot be opened: {reason}")),
        error => (path.to_path_buf(), error.to_string()),
    };
    lost.add(Damage::File { path: first.clone(), reason });
    let (remains, files) = Remains::open(path, scratch)?;
    let others = files.into_iter().filter(|(path, _)| *path != first);
    others.for_each(|(path, reason)| lost.add(Damage::File { path, reason }));
    Ok(Arc::new(remains))
}

/// Restores a backup as a world in the folder `path`, which must be empty or missing. The backup is the newest one in
/// `backups`, or the one with this number. `stop` is checked once the database is restored, which is one long step.
///
/// # Errors
/// The same as those of [`RocksStore::restore`], [`UpkeepError::Cancelled`], and if the folder is not empty or the
/// backup holds no world that this version of the crate can open. Nothing is left in the folder then.
pub fn restore_world(backups: &Path, number: Option<u32>, path: &Path, stop: &Stop) -> Result<Backup, UpkeepError> {
    let new = NewWorld::begin(path, &mut wait(&mut |_| stop.go_on()))?;
    let restored = RocksStore::restore(backups, number, &new.database)?;
    end_if_stopped(stop)?;
    let store = Arc::new(RocksStore::open_to_read(&new.database)?);
    drop(WorldStore::open_existing(&StorageConfig::Custom(store), Access::Read)?);
    new.copy_snapshots(Some(snapshot_files::of_backup(backups, restored.number)))?;
    end_if_stopped(stop)?;
    new.finish()?;
    Ok(restored)
}

/// [Imports](WorldStore::import_dimension) an export into the world in the folder `path`, which is created if
/// necessary. If the import fails, a world that was created for it is removed. If it is stopped, the world stays, and
/// the same call continues the import.
///
/// # Errors
/// The same as those of [`WorldStore::import_dimension`], and [`UpkeepError::Open`] if the world cannot be opened or created.
pub fn import_world(
    export: &Path,
    path: &Path,
    options: &ImportOptions,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<ImportReport, UpkeepError> {
    // Checked first, so that no world is created for a useless file.
    check_export(export, options.leaves_damaged)?;
    let (made, is_new) = (missing_folders(path), !WorldFolder::holds_world(path));
    let world = WorldStore::open_waiting(&StorageConfig::Path(path.to_path_buf()), &mut wait(&mut progress));
    let world = world.inspect_err(|_| remove_empty(&made))?;
    // Another process may have made the world while this one waited for it.
    let is_new = is_new && world.session() == 1;
    let imported = world.import_dimension(export, options, progress);
    drop(world);
    if imported.is_err() && is_new {
        // Best effort: the error of the import matters more.
        let _ = WorldFolder::remove_world(path);
        remove_empty(&made);
    }
    imported
}

/// The wait of an opening that the work's progress may break.
fn wait<'a>(progress: Tell<'a>) -> OpenWait<'a> {
    OpenWait::new(OpenWait::LONGEST, |_| progress(&Progress::default()))
}

fn end_if_stopped(stop: &Stop) -> Result<(), UpkeepError> {
    if stop.is_stopped() { Err(UpkeepError::Cancelled) } else { Ok(()) }
}

/// A world under construction. Unless it is [finished](Self::finish), dropping it removes everything.
struct NewWorld {
    folder: WorldFolder,
    /// The folders that were created for it.
    made: Vec<PathBuf>,
    /// The database, under a name that no world uses.
    database: PathBuf,
    is_finished: bool,
}

impl NewWorld {
    fn begin(path: &Path, wait: &mut OpenWait<'_>) -> Result<Self, WorldOpenError> {
        // Checked before the lock is taken, because `path` may be the source world, which is locked.
        if WorldFolder::holds_world(path) {
            return Err(WorldOpenError::Exists { path: path.to_path_buf() });
        }
        let made = missing_folders(path);
        let folder = wait.retry(WorldOpenError::is_in_use, || WorldFolder::open_to_fill(path))?;
        if !folder.is_new() {
            return Err(WorldOpenError::Exists { path: path.to_path_buf() });
        }
        let database = folder.unfinished_database();
        Ok(Self { folder, made, database, is_finished: false })
    }

    fn create(&self) -> Result<RocksStore, StoreError> {
        RocksStore::open(&self.database, true)
    }

    /// Copies the snapshots of another world, if it has any.
    fn copy_snapshots(&self, from: Option<PathBuf>) -> Result<(), StoreError> {
        from.map_or(Ok(()), |from| snapshot_files::copy(&from, &self.folder.snapshots()))
    }

    /// Completes the world. Its database must be closed.
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
        // Best effort: the next attempt reports any file that is in the way.
        let _ = self.folder.clear().and_then(|()| self.folder.forget());
        remove_empty(&self.made);
    }
}

/// The folders that do not exist yet and are needed for a world in `path`, innermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let missing = path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    missing.map(Path::to_path_buf).collect()
}

/// Removes the folders, innermost first, up to the first that is not empty.
fn remove_empty(folders: &[PathBuf]) {
    folders.iter().map_while(|folder| fs::remove_dir(folder).ok()).for_each(drop);
}
