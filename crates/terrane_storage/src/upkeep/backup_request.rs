//! Backups of a world that another process has open: requested and answered by files in the world's folder.
//!
//! ```text
//! backup.1234.request   what process 1234 asks for; the process that has the world open looks for it each second
//! backup.1234.running   the same, once it was found
//! backup.1234.answer    the result; the asking process removes it
//! ```
//!
//! Each file is written under another name first, so that readers always find the whole file. Files left over from an
//! ended process are removed when the world is opened to be played.

use crate::work::if_exists;
use crate::{Backup, values::record};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// A longer file is not a file of this protocol.
const MAX_BYTES: u64 = 1 << 16;

/// A request for a backup by the process that has the world open. Dropping it withdraws the request, unless that
/// process has already begun the backup.
#[derive(Debug)]
pub struct BackupRequest {
    files: Files,
}

/// The state of a [`BackupRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupProgress {
    /// The other process has not seen the request yet.
    Unseen,
    /// The world is being saved, or the backup is being made.
    Running,
    /// The backup is done.
    Done(Backup),
    /// The backup failed for this reason.
    Failed(String),
    /// The other process ended without an answer.
    Lost,
}

/// A request in the folder of the world that this process has open. It is always answered: dropping it answers that the
/// world was closed.
#[derive(Debug)]
pub struct FoundRequest {
    /// The folder for the backup.
    pub folder: PathBuf,
    /// The number of backups to keep there; `None` for all.
    pub keep: Option<NonZeroU32>,
    files: Files,
    is_answered: bool,
}

/// The contents of a request: the folder, and the number of backups to keep.
type Wish = (PathBuf, Option<NonZeroU32>);

/// The contents of an answer: the backup's number, bytes and time since 1970, or the reason for the failure.
type Answer = Result<(u32, u64, Duration), String>;

#[derive(Clone, Debug)]
struct Files {
    world: PathBuf,
    /// The id of the requesting process, and the number of its earlier requests.
    name: String,
}

impl BackupRequest {
    /// Requests a backup of the world in the folder `world`, as made by [`WorldStore::back_up`](crate::WorldStore::back_up). A
    /// relative `folder` is relative to the current folder of this process.
    ///
    /// # Errors
    /// The world's folder cannot be written, or `folder` is not a valid path.
    pub fn send(world: &Path, folder: &Path, keep: Option<NonZeroU32>) -> io::Result<Self> {
        static SENT: AtomicU32 = AtomicU32::new(0);
        let number = SENT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let files = Files { world: world.to_path_buf(), name };
        let wish: Wish = (std::path::absolute(folder)?, keep);
        // A left-over answer to an earlier process with the same id.
        files.remove("answer");
        files.write("request", &wish)?;
        Ok(Self { files })
    }

    /// The state of the request. A final answer is returned only once.
    ///
    /// # Errors
    /// The world's folder cannot be read.
    pub fn progress(&self) -> io::Result<BackupProgress> {
        // In the order in which the other process renames the files.
        for (kind, progress) in [("request", BackupProgress::Unseen), ("running", BackupProgress::Running)] {
            if self.files.path(kind).try_exists()? {
                return Ok(progress);
            }
        }
        let Some(answer) = if_exists(self.files.read::<Answer>("answer"))? else { return Ok(BackupProgress::Lost) };
        self.files.remove("answer");
        Ok(match answer {
            Ok((number, bytes, made_at)) => {
                BackupProgress::Done(Backup { number, bytes, made_at: SystemTime::UNIX_EPOCH + made_at })
            }
            Err(reason) => BackupProgress::Failed(reason),
        })
    }
}

impl Drop for BackupRequest {
    fn drop(&mut self) {
        self.files.remove("request");
        self.files.remove("answer");
    }
}

impl FoundRequest {
    /// The requests in the folder of a world that this process has open. Unreadable requests are answered at once.
    pub fn find(world: &Path) -> io::Result<Vec<Self>> {
        let mut found = Vec::new();
        for files in Files::all(world, "request")? {
            let wish = files.read::<Wish>("request");
            // The request can no longer be withdrawn.
            if if_exists(fs::rename(files.path("request"), files.path("running")))?.is_none() {
                continue;
            }
            let mut request = Self { folder: PathBuf::new(), keep: None, files, is_answered: false };
            match wish {
                Ok(wish) => {
                    (request.folder, request.keep) = wish;
                    found.push(request);
                }
                Err(error) => request.answer(Err(error.to_string())),
            }
        }
        Ok(found)
    }

    /// Removes the files of earlier processes from the folder of a world that this process has just opened.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn forget_old(world: &Path) -> io::Result<()> {
        for kind in ["request", "running", "answer"] {
            Files::all(world, kind)?.iter().for_each(|files| files.remove(kind));
        }
        Ok(())
    }

    /// Answers the request.
    pub fn answer(mut self, result: Result<&Backup, String>) {
        self.write_answer(result);
    }

    fn write_answer(&mut self, result: Result<&Backup, String>) {
        self.is_answered = true;
        let answer: Answer = result.map(|Backup { number, bytes, made_at }| {
            (*number, *bytes, made_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
        });
        if let Err(error) = self.files.write("answer", &answer) {
            tracing::warn!("the answer to a backup request cannot be written: {error}");
        }
        self.files.remove("running");
    }
}

impl Drop for FoundRequest {
    fn drop(&mut self) {
        if !self.is_answered {
            self.write_answer(Err("the world was closed".into()));
        }
    }
}

impl Files {
    /// The files of all requests that have a file of this kind.
    fn all(world: &Path, kind: &str) -> io::Result<Vec<Self>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(world)? {
            let file = entry?.file_name();
            let name =
                file.to_str().and_then(|file| file.strip_prefix("backup.")?.strip_suffix(kind)?.strip_suffix('.'));
            found.extend(name.map(|name| Self { world: world.to_path_buf(), name: name.into() }));
        }
        Ok(found)
    }

    fn path(&self, kind: &str) -> PathBuf {
        self.world.join(format!("backup.{}.{kind}", self.name))
    }

    fn write(&self, kind: &str, value: &impl Serialize) -> io::Result<()> {
        let bytes = record::try_encode(value).map_err(io::Error::other)?;
        let unfinished = self.path(&format!("{kind}.new"));
        fs::write(&unfinished, bytes)?;
        fs::rename(unfinished, self.path(kind))
    }

    fn read<T: for<'a> Deserialize<'a>>(&self, kind: &str) -> io::Result<T> {
        let path = self.path(kind);
        let what = |reason: String| io::Error::new(ErrorKind::InvalidData, format!("{}: {reason}", path.display()));
        if fs::metadata(&path)?.len() > MAX_BYTES {
            return Err(what("it is too long".into()));
        }
        record::decode(&fs::read(&path)?).map_err(what)
    }

    fn remove(&self, kind: &str) {
        // Usually the file does not exist.
        _ = fs::remove_file(self.path(kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backup() -> Backup {
        Backup { number: 7, bytes: 99, made_at: SystemTime::UNIX_EPOCH + Duration::from_secs(5) }
    }

    #[test]
    fn a_request_is_found_once_and_answered_once() {
        let world = tempfile::tempdir().unwrap();
        let keep = NonZeroU32::new(3);
        let request = BackupRequest::send(world.path(), Path::new("backups"), keep).unwrap();
        assert_eq!(request.progress().unwrap(), BackupProgress::Unseen);
        let mut found = FoundRequest::find(world.path()).unwrap();
        assert!(FoundRequest::find(world.path()).unwrap().is_empty());
        assert_eq!(request.progress().unwrap(), BackupProgress::Running);
        let found = found.remove(0);
        assert!(found.folder.is_absolute() && found.folder.ends_with("backups"), "{found:?}");
        assert_eq!(found.keep, keep);
        found.answer(Ok(&backup()));
        assert_eq!(request.progress().unwrap(), BackupProgress::Done(backup()));
        assert_eq!(request.progress().unwrap(), BackupProgress::Lost);
        assert_eq!(fs::read_dir(world.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_failed_request_returns_the_error() {
        let world = tempfile::tempdir().unwrap();
        let requests = [(); 3].map(|()| BackupRequest::send(world.path(), world.path(), None).unwrap());
        fs::write(requests[1].files.path("request"), b"no request").unwrap();
        let mut found = FoundRequest::find(world.path()).unwrap();
        found.sort_unstable_by_key(|found| found.files.name.clone());
        assert_eq!(found.len(), 2);
        found.remove(0).answer(Err("the disk is full".into()));
        drop(found);
        let [failed, broken, closed] = requests.each_ref().map(|request| request.progress().unwrap());
        assert_eq!(failed, BackupProgress::Failed("the disk is full".into()));
        assert!(matches!(&broken, BackupProgress::Failed(reason) if reason.contains("format")), "{broken:?}");
        assert_eq!(closed, BackupProgress::Failed("the world was closed".into()));
        assert_eq!(fs::read_dir(world.path()).unwrap().count(), 0);
    }

    #[cfg(feature = "rocksdb")]
    #[test]
    fn leftover_request_files_are_removed() {
        let world = tempfile::tempdir().unwrap();
        fs::write(world.path().join("world.terrane"), "").unwrap();
        let taken_back = BackupRequest::send(world.path(), world.path(), None).unwrap();
        drop(taken_back);
        assert!(FoundRequest::find(world.path()).unwrap().is_empty());
        let request = BackupRequest::send(world.path(), world.path(), None).unwrap();
        std::mem::forget(FoundRequest::find(world.path()).unwrap());
        std::mem::forget(BackupRequest::send(world.path(), world.path(), None).unwrap());
        FoundRequest::forget_old(world.path()).unwrap();
        assert_eq!(request.progress().unwrap(), BackupProgress::Lost);
        assert_eq!(fs::read_dir(world.path()).unwrap().count(), 1);
    }
}
