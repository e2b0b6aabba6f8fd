//! Backups, and worlds made from them.

use super::display::with_progress;
use super::outcome::{End, Outcome, Result};
use super::storage::{self, Opening};
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::ops::ControlFlow;
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
pub fn back_up(world: &Path, folder: &Path, keep: Option<NonZeroU32>, opening: &Opening<'_>) -> Result<Outcome> {
    if storage::address(world).is_some() {
        return of_database(world, folder, keep, opening);
    }
    // A game is asked at once. A lock without a process belongs to a program that only reads and makes no backups.
    let opened = match at_once(opening).open(world, Access::Maintain) {
        Err(locked @ WorldOpenError::Locked { process: Some(_), .. }) => {
            match ask_for(world, folder, keep, &locked, opening)? {
                ControlFlow::Break(Some(backup)) => return Ok(Outcome::new(End::Well, as_json(&backup))),
                ControlFlow::Break(None) => {
                    return Ok(Outcome::stopped("a backup that the game has begun is made all the same"));
                }
                // The game has ended.
                ControlFlow::Continue(()) => opening.open(world, Access::Maintain),
            }
        }
        Err(error) if error.is_in_use() => opening.open(world, Access::Maintain),
        opened => opened,
    };
    let store = opened?;
    if opening.stop.is_stopped() {
        return Ok(Outcome::stopped("no backup was made"));
    }
    Ok(Outcome::new(End::Well, as_json(&store.back_up(folder, keep)?)))
}

/// Does not wait for a world that something else has open.
fn at_once<'a>(opening: &Opening<'a>) -> Opening<'a> {
    Opening { longest: Duration::ZERO, ..*opening }
}

/// Copies a world out of a database, and makes a backup of the copy. A game may go on meanwhile.
fn of_database(world: &Path, folder: &Path, keep: Option<NonZeroU32>, opening: &Opening<'_>) -> Result<Outcome> {
    let store = opening.open(world, Access::Read)?;
    let failed = |error: io::Error| format!("cannot write to {}: {error}", folder.display());
    // The folder of backups may hold nothing else.
    let mut copy = folder.as_os_str().to_owned();
    copy.push(".unfinished");
    let copy = PathBuf::from(copy);
    // That of a backup that was killed.
    remove(&copy).map_err(failed)?;
    match with_progress("copying", "values", opening.stop, |tell| copy_world(&store, &copy, tell)) {
        Err(UpkeepError::Cancelled) => return Ok(Outcome::stopped("no backup was made")),
        copied => copied?,
    };
    let backup = opening.open(&copy, Access::Maintain).map(|copy| copy.back_up(folder, keep));
    remove(&copy).map_err(failed)?;
    let backup = backup??;
    Ok(Outcome::new(End::Well, as_json(&backup)))
}

fn remove(folder: &Path) -> io::Result<()> {
    if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) }
}

/// Asks the process that has the world open for the backup, and waits for it. Breaks with the backup, or with `None` if
/// stopped; continues if the process has closed the world without an answer.
fn ask_for(
    world: &Path,
    folder: &Path,
    keep: Option<NonZeroU32>,
    locked: &WorldOpenError,
    opening: &Opening<'_>,
) -> Result<ControlFlow<Option<Backup>>> {
    let failed = |error: io::Error| format!("{locked}, and it cannot be asked for a backup: {error}");
    let request = BackupRequest::send(world, folder, keep).map_err(failed)?;
    eprintln!("a running game has the world open: waiting for the backup that it makes");
    let asked = Instant::now();
    loop {
        match request.progress().map_err(failed)? {
            BackupProgress::Done(backup) => return Ok(ControlFlow::Break(Some(backup))),
            BackupProgress::Failed(reason) => return Err(reason.into()),
            BackupProgress::Lost => return Ok(ControlFlow::Continue(())),
            BackupProgress::Unseen if asked.elapsed() > PATIENCE => {
                let text =
                    format!("{locked}: that process did not answer the request for a backup within {PATIENCE:?}");
                return Err(text.into());
            }
            BackupProgress::Unseen | BackupProgress::Running if !is_open_elsewhere(world, opening) => {
                // It may have answered just now.
                return Ok(match request.progress().map_err(failed)? {
                    BackupProgress::Done(backup) => ControlFlow::Break(Some(backup)),
                    _ => ControlFlow::Continue(()),
                });
            }
            _ if opening.stop.is_stopped() => return Ok(ControlFlow::Break(None)),
            _ => std::thread::sleep(POLL_PERIOD),
        }
    }
}

fn is_open_elsewhere(world: &Path, opening: &Opening<'_>) -> bool {
    matches!(at_once(opening).open(world, Access::Read), Err(WorldOpenError::Locked { .. }))
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
