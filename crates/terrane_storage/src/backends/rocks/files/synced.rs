//! The number of the last synced write, in a file beside the database.
//!
//! It is written and synced after each sync of the log, and before that sync is reported. So everything up to this
//! number was synced, and nothing behind it was ever reported as synced.

use crate::envelope;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;

const FILE: &str = "synced.terrane";
/// The size of the file.
const BYTES: u64 = 20;

/// The open file. It always has the same length and is overwritten in place, which is a single write of a sector.
pub(in crate::backends::rocks) struct Synced {
    file: File,
    /// The newest log when the database was opened, by which the number belongs to this opening.
    log: u64,
}

impl Synced {
    /// Begins with a database that was just opened: all its data is synced.
    pub fn begin(path: &Path, log: u64, last_write: u64) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path.join(FILE))?;
        let synced = Self { file, log };
        synced.note(last_write)?;
        Ok(synced)
    }

    pub fn note(&self, last_write: u64) -> io::Result<()> {
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(&envelope::sealed(last_write, &self.log.to_le_bytes()))?;
        file.sync_data()
    }

    /// The last synced write of a database whose newest log had this number when it was opened; `None` if it is unknown.
    pub fn read(path: &Path, log: u64) -> Option<u64> {
        let path = path.join(FILE);
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(BYTES).read_to_end(&mut bytes));
        let opened = match read {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => Err(error.to_string()),
            Ok(_) => envelope::open(&bytes),
        };
        let opened = opened.inspect_err(|reason| {
            tracing::warn!("{} is damaged and ignored: {reason}", path.display());
        });
        opened.ok().filter(|(_, of)| *of == log.to_le_bytes()).map(|(last_write, _)| last_write)
    }
}
