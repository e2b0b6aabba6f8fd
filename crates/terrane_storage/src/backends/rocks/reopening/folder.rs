//! The identity of a database's folder, to check that the path still leads to it.

use crate::StoreError;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::time::SystemTime;

/// A file that RocksDB writes once, when a database is made.
const IDENTITY: &str = "IDENTITY";

/// The identity of a database's folder, different even from that of a copy: its file `IDENTITY` on the disk. Checking it takes
/// a microsecond and no file handle. On a file system that invents file numbers (exFAT, some of FUSE), the identity lasts as
/// long as the file is [open](pin): after such a disk is mounted again, the folder counts as another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Folder {
    device: u64,
    file: u64,
    modified: Option<SystemTime>,
}

impl Folder {
    /// The identity of the folder at `path`.
    ///
    /// # Errors
    /// [`StoreError::FolderLost`] if there is no database, and [`StoreError::Backend`] if that is unknown.
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

    /// Returns `true` if it is the same folder, possibly on a disk or share that was mounted again.
    pub fn is_same_after_mounting(&self, other: &Self) -> bool {
        *self == Self { device: self.device, ..*other }
    }
}

/// Opens the file, so that the system keeps its number. Best effort: there may be no free file handle.
pub(super) fn pin(path: &Path) -> Option<File> {
    File::open(path.join(IDENTITY)).ok()
}

#[cfg(unix)]
fn numbers(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// On other systems a folder with open files can neither be moved nor deleted.
#[cfg(not(unix))]
fn numbers(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_distinguished_from_its_copy_and_recognised_after_a_move_back() {
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
