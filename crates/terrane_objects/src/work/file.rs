//! [`FileError`].

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The error of a failed operation on a file or a folder, for instance because the disk is full.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: cannot {action} it: {message}", path.display())]
pub struct FileError {
    /// The file or the folder.
    pub path: PathBuf,
    /// The operation.
    pub action: &'static str,
    /// The kind of failure.
    pub kind: io::ErrorKind,
    /// The system's message.
    pub message: String,
}

impl FileError {
    /// Adds the path and the operation to an I/O error.
    #[doc(hidden)]
    pub fn of(path: &Path, action: &'static str) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |error| Self { path: path.clone(), action, kind: error.kind(), message: error.to_string() }
    }
}

/// Turns an error for a missing file into `None`.
pub fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Makes names in a folder survive a loss of power.
pub fn sync_folder(folder: &Path) -> Result<(), FileError> {
    // On other systems a folder cannot be opened as a file, and renames are safe without it.
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(FileError::of(folder, "sync"))
}
