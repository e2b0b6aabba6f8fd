//! What the system refuses.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The system refused something to be done with a file or a folder, for instance because the disk is full.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: cannot {action} it: {message}", path.display())]
pub struct FileError {
    /// The file or the folder.
    pub path: PathBuf,
    /// What was being done.
    pub action: &'static str,
    /// What kind of failure.
    pub kind: io::ErrorKind,
    /// What the system says.
    pub message: String,
}

impl FileError {
    /// What the system said, with what was being done.
    #[doc(hidden)]
    pub fn of(path: &Path, action: &'static str) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |error| Self { path: path.clone(), action, kind: error.kind(), message: error.to_string() }
    }
}

/// What the system says of something that may not be there; `None` if it is not.
#[doc(hidden)]
pub fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Sees to it that names in a folder survive a loss of power.
#[doc(hidden)]
pub fn sync_folder(folder: &Path) -> Result<(), FileError> {
    // Elsewhere a folder cannot be opened as a file, and a rename is safe without.
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(FileError::of(folder, "sync"))
}
