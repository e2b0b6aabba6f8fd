//! Common parts of long work and of work on files: progress, stopping, I/O errors and panic messages, and
//! returning freed memory to the system.

use std::any::Any;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;

/// The message of a panic, from its payload.
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Makes the allocator return freed memory to the system.
///
/// By itself, glibc only returns memory at the end of an arena, and with thousands of regions something is always left
/// there. This takes about a tenth of a second per gigabyte, during which threads that need memory may wait.
/// Allocators of other systems return memory by themselves.
#[doc(hidden)]
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: This is how glibc declares it. Any thread may call it at any time.
        unsafe extern "C" {
            safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // The result does not matter: it is 1 if any memory was returned.
        let _ = malloc_trim(0);
    }
}

/// The progress of long work. The unit depends on the work: entries, chunks, columns or blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// The number of finished units.
    pub done: u64,
    /// Their size in bytes, if it is counted.
    pub bytes: u64,
    /// The approximate fraction of all work that is done, 0 to 1; `None` if it is unknown.
    pub fraction: Option<f64>,
}

/// A callback that gets the progress of the work and may cancel it.
pub type Tell<'a> = &'a mut dyn FnMut(&Progress) -> ControlFlow<()>;

impl Progress {
    /// The progress of `done` units out of `total`, without a size.
    pub fn of(done: u64, total: u64) -> Self {
        Self { done, bytes: 0, fraction: (total > 0).then(|| done as f64 / total as f64) }
    }

    /// The estimated remaining time at the speed so far; `None` if it is unknown.
    pub fn time_left(&self, elapsed: Duration) -> Option<Duration> {
        let fraction = self.fraction.filter(|fraction| *fraction > 0.0)?;
        Duration::try_from_secs_f64(elapsed.as_secs_f64() * (1.0 - fraction) / fraction).ok()
    }
}

/// Ends long work early, from any of its clones.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Stops the work at the next opportunity.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the work was stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The return value for a progress callback.
    pub fn go_on(&self) -> ControlFlow<()> {
        if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

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
#[doc(hidden)]
pub fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Makes names in a folder survive a loss of power.
#[doc(hidden)]
pub fn sync_folder(folder: &Path) -> Result<(), FileError> {
    // On other systems a folder cannot be opened as a file, and renames are safe without it.
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(FileError::of(folder, "sync"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_estimated_from_known_progress() {
        let elapsed = Duration::from_secs(8);
        assert_eq!(Progress::of(1, 4).time_left(elapsed), Some(Duration::from_secs(24)));
        assert_eq!(Progress::of(4, 4).time_left(elapsed), Some(Duration::ZERO));
        assert_eq!(Progress::of(0, 4).time_left(elapsed), None);
        assert_eq!(Progress::of(4, 0).time_left(elapsed), None);
    }
}
