//! Checks that a database's files are unchanged before RocksDB opens them, since it may drop data that it cannot read.
//!
//! | the database was | guarantee | evidence |
//! |---|---|---|
//! | closed | all data | its log is empty, and there is a list of its files |
//! | killed, or lost power | all synced data, up to the torn end of the log | all other records of log and MANIFEST have their checksums, and the newest log exists |
//! | closed without support for lists | as if killed | as if killed |
//!
//! A loss of power can leave more than a torn end in unsynced data: zeros followed by whole records, or a torn log with
//! a newer log behind it. Both look like damage. So the number of the last [synced] write is noted in a file. If all
//! writes up to this number are there, the database is opened without the [rest](lost) of its logs. Otherwise, or if the
//! number is unknown, it is refused.
//!
//! The list is the file `files.terrane` in the database's folder: an [envelope] around the [record] of a [`Note`]. It
//! is written when the database is closed. When the database is opened for writing, it is replaced by a note that only
//! names the newest log, so a killed database has no list. Older logs do not matter then, since opening moves their
//! data into tables. RocksDB begins a new MANIFEST whenever it opens a database for writing. If the MANIFEST is newer
//! than the list, a program without support for lists has opened the database, and the list is ignored. A damaged list
//! is ignored as well: the database is checked like a killed one.
//!
//! RocksDB recovers a log up to the first unreadable record (its mode is *point in time*), and drops everything behind it.
//! That is right only at a torn end, so RocksDB never gets to see any other bad record. It would also skip zeros, and
//! continue behind them. RocksDB's other modes do not help: those that refuse bad records take a damaged length at the end
//! for a torn record, and one of them continues behind the damage.

mod lost;
mod synced;
#[cfg(test)]
mod tests;

pub(super) use synced::Synced;

use super::log_file::{LogEnd, LogFile};
use crate::bytes::record;
use crate::work::{FileError, if_exists, sync_folder};
use crate::{Family, LostWrites, StoreError, envelope};
use lost::Gap;
use rocksdb::{DB, FlushOptions};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The number of repeated counts of blob files before one is considered lost, and the time between them.
const BLOB_LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(25);

const LIST: &str = "files.terrane";
const NEW_LIST: &str = "files.terrane.new";
const CURRENT: &str = "CURRENT";
/// A property without a constant in the `rocksdb` crate.
const BLOB_FILES: &CStr = c"rocksdb.num-blob-files";
/// RocksDB's message for a missing file.
const MISSING: &str = "No such file or directory";

/// The contents of the file beside a database's own files.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Note {
    /// The database is open or was killed. `log` is the number of its newest log when it was opened.
    Open {
        log: u64,
    },
    Closed(Closed),
}

/// The state of a database when it was closed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Closed {
    last_write: u64,
    /// The names and lengths of its files, without empty ones.
    files: BTreeMap<String, u64>,
    tables: Vec<Table>,
}

/// RocksDB's information about a table.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Table {
    file: String,
    family: String,
    bytes: u64,
    entries: u64,
    deletions: u64,
}

/// Opens a database for writing, unless that would lose synced data or one of the first `needed` writes. Other unsynced writes
/// behind the damage of a loss of power are removed. `read` opens it for reading, with its own logs or with those in another folder.
///
/// # Errors
/// [`StoreError::DamagedFile`] for a missing or damaged file, and errors of `open`.
pub(super) fn open(
    path: &Path,
    create: bool,
    needed: u64,
    open: impl FnOnce() -> Result<DB, StoreError>,
    read: impl Fn(Option<&Path>) -> Result<DB, StoreError>,
) -> Result<(DB, Synced, Option<LostWrites>), StoreError> {
    let files = Files::list(path)?;
    // A database whose creation was interrupted before it had a `CURRENT` is empty, and is created again.
    let has_begun = files.found.keys().any(|name| name == CURRENT || is_data(name));
    let is_there = if create { has_begun } else { files.are_there() };
    let mut lost = None;
    if is_there {
        let checked = files.check()?;
        if let Some(synced) = checked.doubted()
            && let (whole, Some((gap, found))) = files.read_synced(&checked, synced, read)?
        {
            let last = whole.latest_sequence_number();
            drop(whole);
            if last < needed {
                return Err(files.damaged("", format!("it ends with write {last}, but write {needed} was made")));
            }
            tracing::warn!("{found}");
            files.cut(&gap)?;
            lost = Some(found);
        }
    }
    let database = open().map_err(|error| if is_there { files.damage(error) } else { error })?;
    // Data of the log may be in new files by now.
    let files = expect_blobs(path, &database)?;
    let log = files.logs().last().map(|(number, _)| number).ok_or_else(|| files.damaged("", "it has no log"))?;
    // Written before the first write, which makes the note of the last closing invalid.
    write(path, &Note::Open { log })?;
    let synced = Synced::begin(path, log, database.latest_sequence_number());
    let synced = synced.map_err(FileError::of(path, "write to")).and_then(|synced| sync_folder(path).map(|()| synced));
    Ok((database, synced.map_err(failed(path))?, lost))
}

/// Opens a database for reading.
///
/// # Errors
/// The same as those of [`open`].
pub(super) fn open_to_read(
    path: &Path,
    read: impl Fn(Option<&Path>) -> Result<DB, StoreError>,
) -> Result<(DB, Option<LostWrites>), StoreError> {
    let files = Files::list(path)?;
    if !files.are_there() {
        return Ok((read(None)?, None));
    }
    let checked = files.check()?;
    let (database, lost) = match checked.doubted() {
        Some(synced) => files.read_synced(&checked, synced, read)?,
        None => (read(None).map_err(|error| files.damage(error))?, None),
    };
    expect_blobs(path, &database)?;
    checked.closed.map_or(Ok(()), |closed| files.compare(&database, &closed))?;
    Ok((database, lost.map(|(_, lost)| lost)))
}

/// Closes a writable database: all data is moved from the log into tables, and its files are listed. If the disk does
/// not allow that, the database is like a killed one.
pub(super) fn close(database: DB, path: &Path) {
    let closed = Closed::of(&database);
    drop(database);
    let closed = closed.map_err(|error| StoreError::backend("sync", None, path, error));
    if let Err(error) = closed.and_then(|closed| closed.note(path)) {
        tracing::warn!("{error}; saves stay in the log until the world is opened again");
    }
}

/// The files that a database had when it was closed and that are now missing, if there is a list: the path and the
/// content of each.
pub(super) fn missing(path: &Path) -> Vec<LostFile> {
    let Ok(files) = Files::list(path) else { return Vec::new() };
    let Some(Note::Closed(closed)) = files.note() else { return Vec::new() };
    let missing = closed.files.keys().filter(|name| !files.found.contains_key(*name));
    let told = missing.map(|name| {
        let table = closed.tables.iter().find(|table| table.file == *name);
        let entries =
            table.map_or(String::new(), |table| format!(", and {} entries of {}", table.entries, table.family));
        (path.join(name), format!("it is missing{entries}"))
    });
    told.collect()
}

/// Lists the files of an open database, and checks that no blob file is missing: RocksDB opens a blob file only when it
/// reads a value in it.
fn expect_blobs<'a>(path: &'a Path, database: &DB) -> Result<Files<'a>, StoreError> {
    let mut looks = 0..BLOB_LOOKS;
    loop {
        let files = Files::list(path)?;
        let handles = Family::ALL.into_iter().filter_map(|family| database.cf_handle(family.name()));
        let needed = handles.map(|handle| Ok(database.property_int_value_cf(handle, BLOB_FILES)?.unwrap_or(0)));
        let needed: u64 =
            needed.sum::<Result<_, rocksdb::Error>>().map_err(|error| files.damaged("", error.into_string()))?;
        let found = files.found.keys().filter(|name| number(name, "", ".blob").is_some()).count() as u64;
        match found < needed {
            false => return Ok(files),
            // A background job of RocksDB may have created one between the two counts.
            true if looks.next().is_some() => thread::sleep(BETWEEN_LOOKS),
            true => {
                return Err(files.damaged("", format!("{needed} blob files belong to it, but only {found} are there")));
            }
        }
    }
}

fn tables(database: &DB) -> Result<Vec<Table>, rocksdb::Error> {
    let table = |file: rocksdb::LiveFile| Table {
        file: file.name.trim_start_matches('/').into(),
        family: file.column_family_name,
        bytes: file.size as u64,
        entries: file.num_entries,
        deletions: file.num_deletions,
    };
    let mut tables: Vec<_> = database.live_files()?.into_iter().map(table).collect();
    tables.sort_unstable();
    Ok(tables)
}

/// A lost file of a database, and the reason.
pub(super) type LostFile = (PathBuf, String);

/// The result of checking a database's files.
struct Checked {
    /// The list of files, if the database was closed and the list is valid.
    closed: Option<Closed>,
    /// The number of the oldest log that counts.
    oldest_log: u64,
    logs: Logs,
    /// The last write that was synced, if it is known.
    synced: Option<u64>,
}

impl Checked {
    /// The last synced write, unless the logs show that it is there and have no gap.
    fn doubted(&self) -> Option<u64> {
        self.synced.filter(|synced| self.logs.gap.is_some() || self.logs.last_write < Some(*synced))
    }
}

/// The logs of a database, up to the first gap.
#[derive(Debug, PartialEq, Eq)]
struct Logs {
    last_write: Option<u64>,
    gap: Option<Gap>,
}

#[derive(Debug)]
struct Files<'a> {
    path: &'a Path,
    /// Names and lengths.
    found: BTreeMap<String, u64>,
}

impl<'a> Files<'a> {
    fn list(path: &'a Path) -> Result<Self, StoreError> {
        let list = || -> io::Result<_> {
            let mut found = BTreeMap::new();
            for entry in if_exists(fs::read_dir(path))?.into_iter().flatten() {
                let entry = entry?;
                // RocksDB may have just removed it.
                let Some(metadata) = if_exists(entry.metadata())? else { continue };
                if let Ok(name) = entry.file_name().into_string() {
                    found.insert(name, metadata.len());
                }
            }
            Ok(found)
        };
        let found = list().map_err(FileError::of(path, "read")).map_err(failed(path))?;
        Ok(Self { path, found })
    }

    /// Returns `true` if there is a database or a part of one.
    fn are_there(&self) -> bool {
        let is_part = |name: &String| name == CURRENT || number(name, "MANIFEST-", "").is_some() || is_data(name);
        self.found.keys().any(is_part)
    }

    /// Compares the files of a closed database with its list, and checks the MANIFEST and the logs. A gap in the logs is only
    /// accepted if it is known what was synced.
    fn check(&self) -> Result<Checked, StoreError> {
        let manifest = self.manifest()?;
        let note = self.note();
        let synced = match note {
            Some(Note::Open { log }) => Synced::read(self.path, log),
            _ => None,
        };
        let (closed, oldest_log) = match note {
            Some(Note::Closed(closed)) if !self.is_newer_than(&closed, &manifest) => (Some(closed), 0),
            Some(Note::Open { log }) if self.logs().all(|(number, _)| number < log) => {
                return Err(self.damaged(&format!("{log:06}.log"), "it is missing, and no newer log is there"));
            }
            Some(Note::Open { log }) => (None, log),
            _ => (None, 0),
        };
        if let Some(closed) = &closed {
            closed.files.iter().try_for_each(|(name, length)| self.expect_length(name, *length))?;
            if !closed.files.contains_key(&manifest) {
                return Err(
                    self.damaged(CURRENT, format!("it names {manifest}, which did not count when it was closed"))
                );
            }
        }
        match self.read(&manifest)?.end {
            end @ LogEnd::Damaged { .. } => return Err(self.damaged(&manifest, end)),
            end @ LogEnd::Torn { .. } if closed.is_some() => {
                return Err(self.damaged(&manifest, format!("{end}, but the database was closed")));
            }
            _ => {}
        }
        let logs = self.read_logs(oldest_log, synced.is_some())?;
        match &logs.gap {
            Some(gap) if synced.is_none() => Err(self.gap_error(gap, "")),
            _ => Ok(Checked { closed, oldest_log, logs, synced }),
        }
    }

    /// The name of the current MANIFEST.
    fn manifest(&self) -> Result<String, StoreError> {
        let path = self.path.join(CURRENT);
        let text = if_exists(fs::read(&path)).map_err(FileError::of(&path, "read")).map_err(failed(self.path))?;
        let text = text.ok_or_else(|| self.damaged(CURRENT, "it is missing"))?;
        let name = str::from_utf8(&text).ok().and_then(|text| text.strip_suffix('\n'));
        let Some(name) = name.filter(|name| number(name, "MANIFEST-", "").is_some()) else {
            return Err(self.damaged(CURRENT, "it names no MANIFEST"));
        };
        match self.found.contains_key(name) {
            true => Ok(name.into()),
            false => Err(self.damaged(name, "it is missing, and CURRENT names it")),
        }
    }

    /// Returns `true` if the database was opened after `closed` was written, without updating the note.
    fn is_newer_than(&self, closed: &Closed, manifest: &str) -> bool {
        let numbers = |name: &String| number(name, "MANIFEST-", "").or_else(|| number(name, "", ".log"));
        let newest = closed.files.keys().filter_map(numbers).max();
        let is_newer = |number: Option<u64>| number > newest;
        is_newer(number(manifest, "MANIFEST-", ""))
            || self.logs().any(|(number, name)| is_newer(Some(number)) && self.found[name] > 0)
    }

    fn note(&self) -> Option<Note> {
        let bytes = fs::read(self.path.join(LIST)).ok()?;
        let note = envelope::open(&bytes).and_then(|(_, payload)| record::decode(payload));
        note.inspect_err(|reason| {
            tracing::warn!("{} is damaged and ignored: {reason}", self.path.join(LIST).display());
        })
        .ok()
    }

    fn expect_length(&self, name: &str, length: u64) -> Result<(), StoreError> {
        match self.found.get(name) {
            Some(found) if *found == length => Ok(()),
            Some(found) => {
                Err(self.damaged(name, format!("it has {found} bytes, but had {length} when it was closed")))
            }
            None => Err(self.damaged(name, "it is missing")),
        }
    }

    /// The logs, oldest first, with their numbers.
    fn logs(&self) -> impl Iterator<Item = (u64, &String)> {
        let mut logs: Vec<_> = self.found.keys().filter_map(|name| Some((number(name, "", ".log")?, name))).collect();
        logs.sort_unstable();
        logs.into_iter()
    }

    /// Reads the logs up to the first gap. Logs before `oldest` are ignored. A log that follows a torn one must continue it,
    /// unless the database was opened in between and recovered up to there. If all logs are of one opening, each must
    /// continue the one before.
    fn read_logs(&self, oldest: u64, is_one_opening: bool) -> Result<Logs, StoreError> {
        let mut logs = Logs { last_write: None, gap: None };
        // The end of the logs so far.
        let mut last = None::<(Gap, LogEnd)>;
        for (number, name) in self.logs().filter(|(number, _)| *number >= oldest) {
            let log = self.read(name)?;
            if let Some(writes) = &log.writes {
                if let Some((mut gap, end)) = last.take() {
                    let must_continue =
                        is_one_opening || matches!(end, LogEnd::Torn { .. }) && logs.last_write.is_some();
                    if must_continue && logs.last_write.map(|last| last + 1) != Some(writes.start) {
                        gap.reason += &format!(", and {name} does not continue from there");
                        return Ok(Logs { gap: Some(gap), ..logs });
                    }
                }
                logs.last_write = Some(writes.end.saturating_sub(1));
            }
            let gap = Gap { log: number, at: log.end.at(self.found[name]), reason: log.end.to_string() };
            if matches!(log.end, LogEnd::Damaged { .. }) {
                return Ok(Logs { gap: Some(gap), ..logs });
            }
            // An empty log may follow the torn one.
            if last.is_none() || log.writes.is_some() || log.end != LogEnd::Whole {
                last = Some((gap, log.end));
            }
        }
        Ok(logs)
    }

    fn read(&self, name: &str) -> Result<LogFile, StoreError> {
        let read = || LogFile::read(File::open(self.path.join(name))?);
        read().map_err(FileError::of(&self.path.join(name), "read")).map_err(failed(self.path))
    }

    /// Compares a database that is open for reading with its state when it was closed.
    fn compare(&self, database: &DB, closed: &Closed) -> Result<(), StoreError> {
        let last_write = database.latest_sequence_number();
        if last_write != closed.last_write {
            let reason = format!("its last write is {last_write}, but was {} when it was closed", closed.last_write);
            return Err(self.damaged("", reason));
        }
        let tables = tables(database).map_err(|error| self.damaged("", error.into_string()))?;
        let differs = |table: &&Table| !closed.tables.contains(table) || !tables.contains(table);
        match closed.tables.iter().chain(&tables).find(differs) {
            Some(table) => Err(self.damaged(&table.file, "it is another table than when the database was closed")),
            None => Ok(()),
        }
    }

    /// Converts an error of opening a database to damage if it concerns its files.
    fn damage(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Backend { reason, .. } if reason.starts_with("Corruption") || reason.contains(MISSING) => {
                self.damaged("", reason)
            }
            error => error,
        }
    }

    fn damaged(&self, name: &str, reason: impl ToString) -> StoreError {
        let path = if name.is_empty() { self.path.to_path_buf() } else { self.path.join(name) };
        StoreError::DamagedFile { path, reason: reason.to_string() }
    }
}

impl Closed {
    /// Flushes a database and stops its background work, so that nothing in the list changes any more.
    fn of(database: &DB) -> Result<Self, rocksdb::Error> {
        let families = Family::ALL.into_iter().filter_map(|family| database.cf_handle(family.name()));
        database.flush_cfs_opt(&families.collect::<Vec<_>>(), &FlushOptions::default())?;
        database.cancel_all_background_work(true);
        let (last_write, files) = (database.latest_sequence_number(), BTreeMap::new());
        Ok(Self { last_write, files, tables: tables(database)? })
    }

    /// Writes the list, once the database is closed.
    fn note(mut self, path: &Path) -> Result<(), StoreError> {
        let files = Files::list(path)?;
        let manifest = files.manifest()?;
        let is_live = |name: &String| {
            [CURRENT, &manifest].contains(&name.as_str())
                || [".log", ".blob"].iter().any(|kind| number(name, "", kind).is_some())
                || self.tables.iter().any(|table| table.file == *name)
        };
        self.files = files.found.into_iter().filter(|(name, length)| *length > 0 && is_live(name)).collect();
        write(path, &Note::Closed(self))
    }
}

fn write(path: &Path, note: &Note) -> Result<(), StoreError> {
    let new = path.join(NEW_LIST);
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(&envelope::sealed(0, &record::encode(note)))?;
        file.sync_all()?;
        fs::rename(&new, path.join(LIST))
    };
    let written = write().map_err(FileError::of(&path.join(LIST), "write")).and_then(|()| sync_folder(path));
    written.map_err(failed(path))
}

/// Makes a file available in another folder, which may be on another disk.
pub(super) fn link(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::symlink(from, to);
    #[cfg(not(unix))]
    return fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop));
}

fn failed(path: &Path) -> impl Fn(FileError) -> StoreError {
    move |error| StoreError::backend("open", None, path, error.to_string())
}

fn number(name: &str, before: &str, behind: &str) -> Option<u64> {
    let digits = name.strip_prefix(before)?.strip_suffix(behind)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn is_data(name: &str) -> bool {
    [".sst", ".blob", ".log"].into_iter().any(|kind| number(name, "", kind).is_some())
}
