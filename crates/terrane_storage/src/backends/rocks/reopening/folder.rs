//! The folder of a database, as the system knows it: whether the path still leads to it.

use crate::StoreError;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::time::SystemTime;

/// A file that RocksDB writes once, when a database is made.
const IDENTITY: &str = "IDENTITY";

/// What tells a database's folder from any other, also from a copy: its file `IDENTITY` as it lies on the disk. To look at
/// it takes a microsecond and no file handle. On a file system that makes up the numbers of its files (exFAT, some of FUSE), it
/// holds as long as the file is [open](pin): where such a disk was mounted again, the folder counts as another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Folder {
    device: u64,
    file: u64,
    modified: Option<SystemTime>,
}

impl Folder {
    /// The folder that `path` leads to now.
    ///
    /// # Errors
    /// [`StoreError::FolderLost`] if there is no database, and [`StoreError::Backend`] if nobody can tell.
    pub fn at(path: &Path) -> Result<Self, StoreError> {
        match fs::metadata(path.join(IDENTITY)) {
            Ok(metadata) => {
                let (device, file) = numbers(&metadata);
                Ok(Self { device, file, modified: metadata.modified().ok() })
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(StoreError::FolderLost { path: path.to_path_buf() })
            }
            Err(error) => Err(StoreError::backend("open", None, path, error.to_string())),
        }
    }

    /// Whether it is the same one, perhaps on a disk or a share that was mounted again.
    pub fn is_same_after_mounting(&self, other: &Self) -> bool {
        *self == Self { device: self.device, ..*other }
    }
}

/// Opens the file, so that the system does not number it anew. Best effort: there may be no file handle for it.
pub(super) fn pin(path: &Path) -> Option<File> {
    File::open(path.join(IDENTITY)).ok()
}

#[cfg(unix)]
fn numbers(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Elsewhere a folder with open files can neither be moved nor be deleted.
#[cfg(not(unix))]
fn numbers(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_told_from_its_copy_and_found_again_where_it_was() {
        let root = tempfile::tempdir().unwrap();
        let (path, away) = (root.path().join("db"), root.path().join("away"));
        let make = || {
            fs::create_dir(&path).unwrap();
            fs::write(path.join(IDENTITY), "3f1c").unwrap();
        };
        make();
        let first = Folder::at(&path).unwrap();
        assert_eq!(Folder::at(&path), Ok(first));
        fs::rename(&path, &away).unwrap();
        let lost = Err(StoreError::FolderLost { path: path.clone() });
        assert_eq!(Folder::at(&path), lost);
        fs::write(&path, "a file").unwrap();
        assert_eq!(Folder::at(&path), lost);
        fs::remove_file(&path).unwrap();
        make();
        let other = Folder::at(&path).unwrap();
        assert!(other != first && !other.is_same_after_mounting(&first));
        fs::remove_dir_all(&path).unwrap();
        fs::rename(&away, &path).unwrap();
        assert_eq!(Folder::at(&path), Ok(first));
        assert!(Folder { device: first.device + 1, ..first }.is_same_after_mounting(&first));
    }
}
