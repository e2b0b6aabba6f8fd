//! Stores in files: the signature line and the lock.

use super::error::MAX_SIGNATURE_BYTES;
use super::{FileDisk, ObjectStore, ObjectStoreError, ObjectStoreOptions};
use crate::work::{FileError, sync_folder};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::path::Path;

/// The prefix of the signature in the first line. Later formats have another number.
const FORMAT: &str = "bevy_terrane objects 1 ";
const MAGIC: &str = "bevy_terrane objects ";
const MAX_LINE_BYTES: usize = FORMAT.len() + MAX_SIGNATURE_BYTES + 1;

type Result<T> = std::result::Result<T, ObjectStoreError>;

impl ObjectStore<FileDisk> {
    /// Reads the signature of a store from its first line, and nothing else.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is not a store of this format.
    pub fn signature_of(path: &Path) -> Result<String> {
        let file = File::open(path).map_err(FileError::of(path, "open"))?;
        let mut line = Vec::with_capacity(MAX_LINE_BYTES);
        file.take(MAX_LINE_BYTES as u64).read_to_end(&mut line).map_err(FileError::of(path, "read"))?;
        parse(path, &line)
    }

    /// Creates a store. No other process can open the file until the store is closed.
    ///
    /// # Errors
    /// Fails if the file already exists, with [`ErrorKind::AlreadyExists`](std::io::ErrorKind::AlreadyExists), if the
    /// signature is not a line of 1 to 256 bytes, and on I/O errors.
    pub fn create(path: &Path, signature: &str, options: ObjectStoreOptions) -> Result<Self> {
        line(signature)?;
        let created = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = created.map_err(FileError::of(path, "create"))?;
        lock(file.try_lock(), path)?;
        let made = Self::create_on(FileDisk::new(file, path), signature, options);
        if made.is_err() {
            // It contains no data of the game yet.
            let _ = std::fs::remove_file(path);
        }
        sync_folder_of(path);
        made
    }

    /// Opens a store for reading and writing. No other process can open it until the store is closed.
    ///
    /// # Errors
    /// Fails if the signature differs, if the file is open elsewhere, and on I/O errors. A lost index is not
    /// an error: it is rebuilt, as [`recovery`](Self::recovery) reports.
    pub fn open(path: &Path, signature: &str, options: ObjectStoreOptions) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(FileError::of(path, "open"))?;
        lock(file.try_lock(), path)?;
        Self::open_on(FileDisk::new(file, path), signature, options, true)
    }

    /// Opens a store read-only. Others may open it read-only at the same time, but not for writing until all have closed it.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_to_read(path: &Path, signature: &str) -> Result<Self> {
        let file = File::open(path).map_err(FileError::of(path, "open"))?;
        lock(file.try_lock_shared(), path)?;
        Self::open_on(FileDisk::new(file, path), signature, ObjectStoreOptions::default(), false)
    }

    /// Opens a damaged store, such as a truncated one, to read all undamaged objects. The index is rebuilt, and
    /// objects count even if their batch is incomplete.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_to_salvage(path: &Path, signature: &str) -> Result<Self> {
        let file = File::open(path).map_err(FileError::of(path, "open"))?;
        lock(file.try_lock_shared(), path)?;
        Self::salvage_on(FileDisk::new(file, path), signature)
    }
}

pub(super) fn line(signature: &str) -> Result<String> {
    let is_line = !signature.is_empty() && signature.len() <= MAX_SIGNATURE_BYTES && !signature.contains(['\n', '\r']);
    match is_line {
        true => Ok(format!("{FORMAT}{signature}\n")),
        false => Err(ObjectStoreError::InvalidSignature { signature: signature.to_owned() }),
    }
}

/// The length in bytes of the first line of a store with this signature.
pub(super) const fn line_bytes(signature: &str) -> usize {
    FORMAT.len() + signature.len() + 1
}

pub(super) fn parse(path: &Path, beginning: &[u8]) -> Result<String> {
    let not_a_store = |reason| ObjectStoreError::NotAStore { path: path.to_path_buf(), reason };
    let end = beginning.iter().take(MAX_LINE_BYTES).position(|byte| *byte == b'\n');
    let line = end.and_then(|end| str::from_utf8(&beginning[..end]).ok());
    let line = line.ok_or_else(|| not_a_store("it does not begin with a line of text"))?;
    match line.strip_prefix(FORMAT) {
        Some(signature) => Ok(signature.to_owned()),
        None if line.starts_with(MAGIC) => Err(not_a_store("it has a format that this version does not know")),
        None => Err(not_a_store("its first line is not that of one")),
    }
}

fn lock(result: std::result::Result<(), TryLockError>, path: &Path) -> Result<()> {
    match result {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(ObjectStoreError::Locked { path: path.to_path_buf() }),
        Err(TryLockError::Error(error)) => Err(FileError::of(path, "lock")(error).into()),
    }
}

/// Makes a new file survive a loss of power.
pub(super) fn sync_folder_of(path: &Path) {
    // Some folders cannot be opened for this.
    let _ = path.parent().map(sync_folder);
}
