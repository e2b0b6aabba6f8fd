//! Backups, and worlds made from them.

use super::display::with_progress;
use super::outcome::{End, Outcome, Result};
use super::storage::{self, open};
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};
use std::{fs, io};
use terrane_objects::work::Stop;
use terrane_storage::upkeep::{BackupProgress, BackupRequest, UpkeepError, copy_world, restore_world};
use terrane_storage::{Access, Backup, RocksStore, WorldOpenError};

/// The time limit for an answer. A game looks for requests each second when it is not saving, but not while it is paused
/// in a debugger.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL_PERIOD: Duration = Duration::from_millis(100);

/// Makes a backup, or asks the game that has the world open to make it.
pub fn back_up(world: &Path, folder: &Path, keep: Option<NonZeroU32>, stop: &Stop) -> Result<Outcome> {
    if storage::address(world).is_some() {
        return of_database(world, folder, keep, stop);
    }
    let backup = match open(world, Access::Maintain) {
        Ok(_) if stop.is_stopped() => return Ok(Outcome::stopped("no backup was made")),
        Ok(store) => store.back_up(folder, keep)?,
        // A lock without a process belongs to a program that only reads and makes no backups.
        Err(locked @ WorldOpenError::Locked { process: Some(_), .. }) => {
            match ask_for(world, folder, keep, &locked, stop)? {
                Some(backup) => backup,
                None => return Ok(Outcome::stopped("a backup that the game has begun is made all the same")),
            }
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Outcome::new(End::Well, as_json(&backup)))
}

/// Copies a world out of a database, and makes a backup of the copy. A game may go on meanwhile.
fn of_database(world: &Path, folder: &Path, keep: Option<NonZeroU32>, stop: &Stop) -> Result<Outcome> {
    let store = open(world, Access::Read)?;
    let failed = |error: io::Error| format!("cannot write to {}: {error}", folder.display());
    // The folder of backups may hold nothing else.
    let mut copy = folder.as_os_str().to_owned();
    copy.push(".unfinished");
    let copy = PathBuf::from(copy);
    // That of a backup that was killed.
    remove(&copy).map_err(failed)?;
    match with_progress("copying", "values", stop, |tell| copy_world(&store, &copy, tell)) {
        Err(UpkeepError::Cancelled) => return Ok(Outcome::stopped("no backup was made")),
        copied => copied?,
    };
    let backup = open(&copy, Access::Maintain).map(|copy| copy.back_up(folder, keep));
    remove(&copy).map_err(failed)?;
    let backup = backup??;
    Ok(Outcome::new(End::Well, as_json(&backup)))
}

fn remove(folder: &Path) -> io::Result<()> {
    if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) }
}

/// Asks the process that has the world open for the backup, and waits for it; `None` if stopped.
fn ask_for(
    world: &Path,
    folder: &Path,
    keep: Option<NonZeroU32>,
    locked: &WorldOpenError,
    stop: &Stop,
) -> Result<Option<Backup>> {
    let failed = |error: io::Error| format!("{locked}, and it cannot be asked for a backup: {error}");
    let request = BackupRequest::send(world, folder, keep).map_err(failed)?;
    eprintln!("a running game has the world open: waiting for the backup that it makes");
    let asked = Instant::now();
    loop {
        match request.progress().map_err(failed)? {
            BackupProgress::Done(backup) => return Ok(Some(backup)),
            BackupProgress::Failed(reason) => return Err(reason.into()),
            BackupProgress::Lost => return Err("the world was closed before the backup was made".into()),
            BackupProgress::Unseen if asked.elapsed() > PATIENCE => {
                let text =
                    format!("{locked}: that process did not answer the request for a backup within {PATIENCE:?}");
                return Err(text.into());
            }
            BackupProgress::Running if !is_open_elsewhere(world) => {
                // It may have answered just now.
                match request.progress().map_err(failed)? {
                    BackupProgress::Done(backup) => return Ok(Some(backup)),
                    _ => return Err("the process that had the world open ended before the backup was made".into()),
                }
            }
            _ if stop.is_stopped() => return Ok(None),
            _ => std::thread::sleep(POLL_PERIOD),
        }
    }
}

fn is_open_elsewhere(world: &Path) -> bool {
    matches!(open(world, Access::Read), Err(WorldOpenError::Locked { .. }))
}

pub fn restore(folder: &Path, world: &Path, number: Option<u32>, stop: &Stop) -> Result<Outcome> {
    let backup = match restore_world(folder, number, storage::folder(world)?, stop) {
        Err(UpkeepError::Cancelled) => return Ok(Outcome::stopped("no world was made")),
        restored => restored?,
    };
    Ok(Outcome::new(End::Well, as_json(&backup)))
}

pub fn list(folder: &Path) -> Result<Outcome> {
    let backups: Vec<Value> = RocksStore::backups(folder)?.iter().map(as_json).collect();
    Ok(Outcome::new(End::Well, json!({ "backups": backups })))
}

fn as_json(backup: &Backup) -> Value {
    let made_at = backup.made_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    json!({ "number": backup.number, "bytes": backup.bytes, "made_at_unix_seconds": made_at })
}
