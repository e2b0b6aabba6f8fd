//! The files of snapshots in copies and backups of a world: what is in the folder `snapshots` beside the database.
//!
//! In a folder of backups that of backup 7 is in `snapshots/7`. Files that are the same as in the backup before it are links
//! to those, where the system can make them.

#[cfg(test)]
mod tests;

use crate::work::if_there;
use crate::{Backup, StoreError};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Backups of one process come one after the other.
static ALONE: Mutex<()> = Mutex::new(());
/// Its name in a folder of backups.
pub(super) const FOLDER: &str = "snapshots";
/// What is not finished is not copied.
const UNFINISHED: &str = "new";
/// Bytes that are compared at a time.
const PIECE: usize = 1 << 16;

/// Where the snapshots of a backup are.
pub(super) fn of_backup(backups: &Path, number: u32) -> PathBuf {
    backups.join(FOLDER).join(number.to_string())
}

/// Copies the snapshots of a world, or of a backup, to where there are none. Those that are removed meanwhile are left out.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    copy_folder(from, to, None).map_err(failed(to))
}

/// Adds the snapshots of a world to the backup that `make` makes, which gives it and all that are there then. The snapshots of
/// backups that are gone are removed.
///
/// They are copied before and after: whatever the backup's database was half restored by is among them.
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
    if_there(fs::remove_dir_all(&unfinished)).and_then(|_| copy(&unfinished)).map_err(&failed)?;
    let (made, kept) = match make() {
        Ok(made) => made,
        Err(error) => {
            // As far as possible: the next one removes it.
            let _ = fs::remove_dir_all(&unfinished);
            return Err(error);
        }
    };
    let finish = || {
        copy(&unfinished)?;
        if_there(fs::rename(&unfinished, of_backup(backups, made.number)))?;
        for number in numbers(&folder)?.into_iter().filter(|number| kept.iter().all(|kept| kept.number != *number)) {
            fs::remove_dir_all(of_backup(backups, number))?;
        }
        Ok(())
    };
    finish().map_err(failed)?;
    Ok(made)
}

/// The backups whose snapshots are there, ascending.
fn numbers(folder: &Path) -> io::Result<Vec<u32>> {
    let Some(entries) = if_there(fs::read_dir(folder))? else { return Ok(Vec::new()) };
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

/// Copies what is in a folder to where it is not yet. Files that are the same in `shared`, a copy from before, become links.
fn copy_folder(from: &Path, to: &Path, shared: Option<&Path>) -> io::Result<()> {
    let Some(entries) = if_there(fs::read_dir(from))? else { return Ok(()) };
    fs::create_dir_all(to)?;
    for entry in entries {
        let entry = entry?;
        let Some(kind) = if_there(entry.file_type())? else { continue };
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
    if if_there(fs::copy(from, to))?.is_some() {
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
