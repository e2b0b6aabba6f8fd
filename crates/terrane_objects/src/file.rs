//! Stores in files: the first line, and the lock.

use super::{FileDisk, ObjectStore, ObjectStoreError, ObjectStoreOptions};
use crate::work::{FileError, sync_folder};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::path::Path;

/// Before the signature of whoever made the file. A later format has another number.
const FORMAT: &str = "bevy_terrane objects 1 ";
const MAGIC: &str = "bevy_terrane objects ";
pub(super) const MAX_SIGNATURE_BYTES: usize = 256;
const MAX_LINE_BYTES: usize = FORMAT.len() + MAX_SIGNATURE_BYTES + 1;

type Result<T> = std::result::Result<T, ObjectStoreError>;

impl ObjectStore<FileDisk> {
    /// The signature of a store, from its first line. Nothing else is read.
    ///
    /// # Errors
    /// A file that cannot be read, or is no store of this format.
    pub fn signature_of(path: &Path) -> Result<String> {
        let file = File::open(path).map_err(FileError::of(path, "open"))?;
        let mut line = Vec::with_capacity(MAX_LINE_BYTES);
        file.take(MAX_LINE_BYTES as u64).read_to_end(&mut line).map_err(FileError::of(path, "read"))?;
        parse(path, &line)
    }

    /// Makes a store. Nobody else can open the file until it is closed.
    ///
    /// # Errors
    /// A file that is there already, as [`ErrorKind::AlreadyExists`](std::io::ErrorKind::AlreadyExists); a signature that is no line of 1 to 256 bytes; what the system says.
    pub fn create(path: &Path, signature: &str, options: ObjectStoreOptions) -> Result<Self> {
        line(signature)?;
        let created = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = created.map_err(FileError::of(path, "create"))?;
        lock(file.try_lock(), path)?;
        let made = Self::create_on(FileDisk::new(file, path), signature, options);
        if made.is_err() {
            // Nothing of the game is in it.
            let _ = std::fs::remove_file(path);
        }
        sync_folder_of(path);
        made
    }

    /// Opens a store to read and to write it. Nobody else can open it until it is closed.
    ///
    /// # Errors
    /// Another signature; a file that somebody has open; what the system says. A lost index is no error: it is made anew, and
    /// [`recovery`](Self::recovery) tells.
    pub fn open(path: &Path, signature: &str, options: ObjectStoreOptions) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(FileError::of(path, "open"))?;
        lock(file.try_lock(), path)?;
        Self::open_on(FileDisk::new(file, path), signature, options, true)
    }

    /// Opens a store to read it, as others may at the same time. Nobody can write until all have closed it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_to_read(path: &Path, signature: &str) -> Result<Self> {
        let file = File::open(path).map_err(FileError::of(path, "open"))?;
        lock(file.try_lock_shared(), path)?;
        Self::open_on(FileDisk::new(file, path), signature, ObjectStoreOptions::default(), false)
    }

    /// Opens a damaged store, such as one that was cut short, to read all objects that are whole. The index is made anew, and an
    /// object counts even if the batch that it was written in is not whole.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_to_salvage(path: &Path, signature: &str) -> Result<Self> {
        let file = File::open(path).map_err(FileError::of(path, "open"))?;
        lock(file.try_lock_shared(), path)?;
        Self::salvage_on(FileDisk::new(file, path), signature)
    }
}

/// The first line of a store with this signature.
pub(super) fn line(signature: &str) -> Result<String> {
    let is_line = !signature.is_empty() && signature.len() <= MAX_SIGNATURE_BYTES && !signature.contains(['\n', '\r']);
    match is_line {
        true => Ok(format!("{FORMAT}{signature}\n")),
        false => Err(ObjectStoreError::InvalidSignature { signature: signature.to_owned() }),
    }
}

/// Bytes of the first line of a store with this signature.
pub(super) const fn line_bytes(signature: &str) -> usize {
    FORMAT.len() + signature.len() + 1
}

/// The signature in what a file begins with.
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

/// A new file outlives a loss of power.
pub(super) fn sync_folder_of(path: &Path) {
    // Not every folder may be opened for it.
    let _ = path.parent().map(sync_folder);
}
