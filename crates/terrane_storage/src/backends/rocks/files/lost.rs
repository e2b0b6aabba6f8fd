//! Recovery after a loss of power: unsynced writes are kept up to the first gap, if nothing behind it was synced.
//!
//! The pages of unsynced writes reach the disk in any order. So the log may have holes with whole records behind them,
//! or end early while a newer log is there. RocksDB itself would continue behind some of these gaps. So the logs are
//! first read up to the gap beside the database, which changes nothing. If all synced writes are there, the rest of the
//! logs is cut off, and the database is opened without it.

use super::{Checked, Files, failed, link};
use crate::backends::rocks::log_file;
use crate::work::{FileError, sync_folder};
use crate::{LostWrites, StoreError};
use rocksdb::{DB, properties};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

/// The place where the logs stop to continue each other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// The number of the log.
    pub log: u64,
    /// The end of its readable records, in bytes.
    pub at: u64,
    pub reason: String,
}

/// Copies of logs up to a gap, in a folder that is removed again.
struct LogsAside(PathBuf);

impl Drop for LogsAside {
    fn drop(&mut self) {
        // Best effort: it is in the system's folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Files<'_> {
    /// Reads a killed database of which it is known what was synced, and returns it open for reading. `read` opens it with its
    /// own logs, or with those in another folder.
    ///
    /// # Errors
    /// [`StoreError::DamagedFile`] if synced writes are missing.
    pub(super) fn read_synced(
        &self,
        checked: &Checked,
        synced: u64,
        read: impl Fn(Option<&Path>) -> Result<DB, StoreError>,
    ) -> Result<(DB, Option<(Gap, LostWrites)>), StoreError> {
        let open = |logs: Option<&Path>, gap: Option<&Gap>| {
            read(logs).map_err(|error| match (self.damage(error), gap) {
                (StoreError::DamagedFile { reason, .. }, Some(gap)) => self.gap_error(gap, &reason),
                (error, _) => error,
            })
        };
        let database = open(None, checked.logs.gap.as_ref())?;
        let oldest = database.property_int_value(properties::MIN_LOG_NUMBER_TO_KEEP);
        let oldest = oldest.map_err(|error| self.damaged("", error.into_string()))?.unwrap_or(0);
        // Older logs are in tables already.
        let logs = self.read_logs(oldest.max(checked.oldest_log), true)?;
        let Some(gap) = logs.gap else {
            let found = database.latest_sequence_number();
            let reason = || format!("it ends with write {found}, but write {synced} was synced");
            return if found < synced { Err(self.damaged("", reason())) } else { Ok((database, None)) };
        };
        drop(database);
        let aside = self.put_aside(&gap).map_err(failed(self.path))?;
        let database = open(Some(&aside.0), Some(&gap))?;
        let found = database.latest_sequence_number();
        if found < synced {
            return Err(
                self.gap_error(&gap, &format!("write {synced} was synced, but write {found} is the last one there"))
            );
        }
        // RocksDB syncs a log before a table has its data, so the gap is not in unsynced writes.
        if logs.last_write.is_some_and(|last| last < found) {
            return Err(self.gap_error(&gap, &format!("a table has later writes, up to {found}")));
        }
        let path = self.log_path(gap.log);
        let batches = self.count_behind(&gap).map_err(FileError::of(&path, "read")).map_err(failed(self.path))?;
        let lost = LostWrites { path, reason: gap.reason.clone(), last_kept: found, last_synced: synced, batches };
        Ok((database, Some((gap, lost))))
    }

    /// Cuts off the logs at a gap.
    pub(super) fn cut(&self, gap: &Gap) -> Result<(), StoreError> {
        let path = self.log_path(gap.log);
        // Newest first, and durably: a newer log behind a log without a gap would look like a continuation.
        let newer: Vec<_> = self.logs().filter(|(number, _)| *number > gap.log).collect();
        for (_, name) in newer.iter().rev() {
            let path = self.path.join(name);
            fs::remove_file(&path).map_err(FileError::of(&path, "remove")).map_err(failed(self.path))?;
        }
        let cut = || {
            OpenOptions::new().write(true).open(&path).and_then(|log| log.set_len(gap.at).and_then(|()| log.sync_all()))
        };
        let cut = sync_folder(self.path).and_then(|()| cut().map_err(FileError::of(&path, "shorten")));
        cut.map_err(failed(self.path))
    }

    pub(super) fn gap_error(&self, gap: &Gap, more: &str) -> StoreError {
        let reason = if more.is_empty() { gap.reason.clone() } else { format!("{}; {more}", gap.reason) };
        StoreError::DamagedFile { path: self.log_path(gap.log), reason }
    }

    fn log_path(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:06}.log"))
    }

    fn put_aside(&self, gap: &Gap) -> Result<LogsAside, FileError> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let folder = std::env::temp_dir().join(format!("terrane-logs-{}-{}", process::id(), time.as_nanos()));
        let failed = FileError::of(&folder, "fill");
        fs::create_dir(&folder).map_err(&failed)?;
        let aside = LogsAside(folder);
        let fill = || {
            let database = std::path::absolute(self.path)?;
            for (number, name) in self.logs().filter(|(number, _)| *number <= gap.log) {
                let (from, to) = (database.join(name), aside.0.join(name));
                match number < gap.log {
                    true => link(&from, &to)?,
                    false => drop(io::copy(&mut File::open(from)?.take(gap.at), &mut File::create(to)?)?),
                }
            }
            Ok(())
        };
        fill().map_err(failed)?;
        Ok(aside)
    }

    /// The number of batches behind a gap, as far as they can be found. There is at least the damaged one.
    fn count_behind(&self, gap: &Gap) -> io::Result<u64> {
        let mut batches = 0;
        for (number, name) in self.logs().filter(|(number, _)| *number >= gap.log) {
            let mut log = File::open(self.path.join(name))?;
            if number == gap.log {
                log.seek(SeekFrom::Start(log_file::next_block(gap.at)))?;
            }
            batches += log_file::count(log)?;
        }
        Ok(batches.max(1))
    }
}
