//! The files of snapshots in copies and backups of a world. They are in the folder `snapshots` beside the database.
//!
//! In a folder of backups, the snapshots of backup 7 are in `snapshots/7`. Files that are unchanged since the previous
//! backup are hard links to its files, where the system supports that.

#[cfg(test)]
mod tests;

use crate::work::if_exists;
use crate::{Backup, StoreError};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Serializes the backups of one process.
static ALONE: Mutex<()> = Mutex::new(());
/// The name of the folder in a folder of backups.
pub(super) const FOLDER: &str = "snapshots";
/// The extension of unfinished snapshots, which are not copied.
const UNFINISHED: &str = "new";
/// The number of bytes compared at a time.
const PIECE: usize = 1 << 16;

pub(super) fn of_backup(backups: &Path, number: u32) -> PathBuf {
    backups.join(FOLDER).join(number.to_string())
}

/// Copies the snapshots of a world or a backup to a folder without snapshots. Snapshots that are removed meanwhile are
/// left out.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    copy_folder(from, to, None).map_err(failed(to))
}

/// Adds the snapshots of a world to the backup that `make` makes. `make` returns that backup and all backups in the
/// folder. The snapshots of backups that no longer exist are removed.
///
/// The snapshots are copied before and after `make`, so the backup has the snapshot of any restore that its database
/// shows half done.
pub(super) fn back_up(
    snapshots: &Path,
    backups: &Path,
    make: impl FnOnce() -> Result<(Backup, Vec<Backup>), StoreError>,
) -> Result<Backup, StoreError> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = backups.join(FOLDER);
    let failed = failed(&folder);
    let last = numbers(&folder).map_err(&failed)?.last().map(|number| of_backup(backups, *number));
    let copy = |to: &Path| copy_folder(snapshots, to, last.as_deref());
    let unfinished = folder.join("backup").with_extension(UNFINISHED);
    if_exists(fs::remove_dir_all(&unfinished)).and_then(|_| copy(&unfinished)).map_err(&failed)?;
    let (made, kept) = match make() {
        Ok(made) => made,
        Err(error) => {
            // Best effort: the next backup removes the folder.
            let _ = fs::remove_dir_all(&unfinished);
            return Err(error);
        }
    };
    let finish = || {
        copy(&unfinished)?;
        if_exists(fs::rename(&unfinished, of_backup(backups, made.number)))?;
        for number in numbers(&folder)?.into_iter().filter(|number| kept.iter().all(|kept| kept.number != *number)) {
            fs::remove_dir_all(of_backup(backups, number))?;
        }
        Ok(())
    };
    finish().map_err(failed)?;
    Ok(made)
}

/// The numbers of the backups that have snapshots, ascending.
fn numbers(folder: &Path) -> io::Result<Vec<u32>> {
    let Some(entries) = if_exists(fs::read_dir(folder))? else { return Ok(Vec::new()) };
    let mut numbers = Vec::new();
    for entry in entries {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn failed(path: &Path) -> impl Fn(io::Error) -> StoreError {
    move |error| StoreError::backend("back up", None, path, error.to_string())
}

/// Copies the files of a folder that `to` does not have yet. Files that are equal in `shared`, an earlier copy, become links.
fn copy_folder(from: &Path, to: &Path, shared: Option<&Path>) -> io::Result<()> {
    let Some(entries) = if_exists(fs::read_dir(from))? else { return Ok(()) };
    fs::create_dir_all(to)?;
    for entry in entries {
        let entry = entry?;
        let Some(kind) = if_exists(entry.file_type())? else { continue };
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.extension().is_some_and(|ending| ending == UNFINISHED) {
            continue;
        }
        let shared = shared.map(|shared| shared.join(entry.file_name()));
        match (kind.is_dir(), kind.is_file()) {
            (true, _) => copy_folder(&from, &to, shared.as_deref())?,
            (_, true) => file(&from, &to, shared.as_deref())?,
            _ => {}
        }
    }
    Ok(())
}

fn file(from: &Path, to: &Path, shared: Option<&Path>) -> io::Result<()> {
    if to.exists() {
        return Ok(());
    }
    if let Some(shared) = shared
        && is_same(from, shared).unwrap_or(false)
        && fs::hard_link(shared, to).is_ok()
    {
        return Ok(());
    }
    if if_exists(fs::copy(from, to))?.is_some() {
        File::open(to)?.sync_all()?;
    }
    Ok(())
}

fn is_same(a: &Path, b: &Path) -> io::Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut of_a, mut of_b) = (Vec::with_capacity(PIECE), Vec::with_capacity(PIECE));
    loop {
        (&mut a).take(PIECE as u64).read_to_end(&mut of_a)?;
        (&mut b).take(PIECE as u64).read_to_end(&mut of_b)?;
        if of_a != of_b || of_a.is_empty() {
            return Ok(of_a == of_b);
        }
        of_a.clear();
        of_b.clear();
    }
}
