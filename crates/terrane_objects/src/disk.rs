//! [`Disk`]: a file, or in tests a failing disk.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The storage of an object store.
///
/// Writes may reach the medium in any order, in parts, or not at all, until [`sync`](Self::sync) returns successfully.
pub trait Disk {
    /// Fills the buffer from this offset. Fails if there are not enough bytes.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all bytes at this offset. The file grows if they reach beyond its end.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes all earlier writes survive a loss of power.
    fn sync(&mut self) -> io::Result<()>;

    /// The size of the file in bytes.
    fn len(&self) -> io::Result<u64>;

    /// The path, for errors.
    fn path(&self) -> &Path;
}

/// A file on disk.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    path: PathBuf,
}

impl FileDisk {
    pub(super) fn new(file: File, path: &Path) -> Self {
        Self { file, path: path.to_path_buf() }
    }

    /// Records the new name of a renamed file.
    pub(super) fn rename(&mut self, path: &Path) {
        self.path = path.to_path_buf();
    }
}

impl Drop for FileDisk {
    fn drop(&mut self) {
        // Otherwise the lock would last until all other holders of the file close it, such as a process that is being
        // started.
        let _ = self.file.unlock();
    }
}

impl Disk for FileDisk {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, offset);
        #[cfg(windows)]
        {
            let (mut offset, mut rest) = (offset, buffer);
            while !rest.is_empty() {
                match std::os::windows::fs::FileExt::seek_read(&self.file, rest, offset)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    read => (offset, rest) = (offset + read as u64, &mut rest[read..]),
                }
            }
            Ok(())
        }
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset);
        #[cfg(windows)]
        {
            let (mut offset, mut rest) = (offset, bytes);
            while !rest.is_empty() {
                let written = std::os::windows::fs::FileExt::seek_write(&self.file, rest, offset)?;
                (offset, rest) = (offset + written as u64, &rest[written..]);
            }
            Ok(())
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
