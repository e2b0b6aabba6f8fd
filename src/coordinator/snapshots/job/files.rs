//! What a job does with files, and how a restore is remembered.

use super::Job;
use super::phase::{FileStep, Phase};
use crate::coordinator::snapshots::files::{FileAnswer, FileWork};
use crate::coordinator::snapshots::{
    AfterCrash, EntityRestore, RestoreSnapshot, SnapshotJobError, SnapshotOrder, SnapshotSource,
};
use crate::snapshot::Snapshot;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;

/// Whether something is to be done with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    None,
    Wanted(FileStep),
    UnderWay,
}

/// The record of a restore on disk.
pub struct Record {
    pub(super) path: PathBuf,
    pub(super) is_written: bool,
    /// What the next session does.
    pub(super) recovery: RestoreSnapshot,
}

/// What becomes of the record of a restore that has come to its end.
pub(in crate::coordinator::snapshots) enum RecordEnd {
    /// It is removed once all is saved.
    Remove(PathBuf),
    /// The restore goes on when its dimension is opened again.
    Keep(PathBuf, Box<RestoreSnapshot>),
}

impl Job {
    /// What is to be done in this step.
    pub(super) fn file_work(&mut self, step: FileStep) -> Option<FileWork> {
        let captured = Arc::new(mem::replace(&mut self.captured, Snapshot::new(self.task.area())));
        match (step, &self.task) {
            (FileStep::Read, SnapshotOrder::Restore(restore)) => match &restore.snapshot {
                SnapshotSource::Stored(stored) => Some(FileWork::Read(stored.clone())),
                SnapshotSource::Held(_) => None,
            },
            (FileStep::Store, SnapshotOrder::Capture(capture)) => {
                self.snapshot = Some(captured.clone());
                Some(FileWork::Store(capture.store.clone()?, capture.dimension, captured))
            }
            (FileStep::Record, SnapshotOrder::Restore(restore)) => {
                let record = self.record.as_mut()?;
                if restore.after_crash == AfterCrash::Undo {
                    let entities = match restore.entities {
                        EntityRestore::Keep => EntityRestore::Keep,
                        EntityRestore::Add | EntityRestore::Replace => EntityRestore::Replace,
                    };
                    record.recovery = RestoreSnapshot { entities, ..RestoreSnapshot::new(restore.dimension, captured) };
                }
                Some(FileWork::Record(record.path.clone(), Box::new(record.recovery.clone())))
            }
            _ => None,
        }
    }

    /// What came of the work on files.
    pub fn take_files(&mut self, answer: Result<FileAnswer, SnapshotJobError>) {
        self.files = Files::None;
        self.of_files = Arc::default();
        if let (Ok(_), Some(Phase::Files(_, columns))) = (&answer, &self.phase) {
            self.progress.done += columns;
        }
        match answer {
            Ok(FileAnswer::Read(snapshot)) => {
                if let SnapshotOrder::Restore(restore) = &mut self.task {
                    restore.snapshot = SnapshotSource::Held(snapshot);
                }
                self.add_restore();
            }
            Ok(FileAnswer::Stored(stored)) => self.stored_snapshot = Some(stored),
            Ok(FileAnswer::Recorded) => {
                if let Some(record) = &mut self.record {
                    record.is_written = true;
                }
            }
            Err(error) => self.fail(error),
        }
    }

    /// What is done if it is cut short.
    pub fn recovery(&self) -> Option<&RestoreSnapshot> {
        self.record.as_ref().map(|record| &record.recovery)
    }

    /// What becomes of its record on disk, if it has one.
    pub fn take_record(&mut self) -> Option<RecordEnd> {
        let Record { path, recovery, .. } = self.record.take().filter(|record| record.is_written)?;
        match (self.is_cancelled, self.is_interrupted, &self.error) {
            (false, true, _) => Some(RecordEnd::Keep(path, Box::new(recovery))),
            // The next session tries it again.
            (false, false, Some(_)) => None,
            _ => Some(RecordEnd::Remove(path)),
        }
    }
}
