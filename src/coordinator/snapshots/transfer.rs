//! One capture or restore: its next orders, and the results of earlier ones.

pub mod columns;
pub(in crate::coordinator) mod phase;
mod task;
mod work;

use super::records::Record;
use crate::coordinator::messages::jobs::{JobId, JobKind};
use crate::coordinator::messages::snapshots::JobError;
use crate::coordinator::messages::snapshots::SnapshotOrder;
use crate::coordinator::surroundings::Surroundings;
use crate::simulation::ColumnAnswer;
use crate::space::ColumnPos;
use phase::Phase;
use std::mem;
use std::path::Path;
use std::time::Duration;
use task::Task;

/// How long a job that ends early waits for regions that do not tick.
const PATIENCE: Duration = Duration::from_secs(2);

pub struct Transfer {
    pub task: Task,
    pub phase: Phase,
    pub has_begun: bool,
    /// Since when a job that ends early waits for the work in flight.
    ending: Option<Duration>,
}

impl Transfer {
    pub fn new(id: JobId, order: SnapshotOrder, record: Option<Record>) -> Self {
        Self { task: Task::new(id, order, record), phase: Phase::Idle, has_begun: false, ending: None }
    }

    pub fn kind(&self) -> JobKind {
        let Task { dimension, area, is_resumed, .. } = self.task;
        match *self.task.order {
            SnapshotOrder::Capture(_) => JobKind::Capture { dimension, area },
            SnapshotOrder::Restore(_) => JobKind::Restore { dimension, area, resumed: is_resumed },
        }
    }

    /// Returns `true` if the restore needs the snapshot in this folder, now or when it resumes after an interruption.
    pub fn restores_from(&self, folder: &Path) -> bool {
        let record = self.task.record.as_ref();
        record.is_some_and(|record| record.restore.snapshot.folder() == Some(folder))
    }

    /// Takes the record of a restore that has changed something, at its end.
    pub fn take_record(&mut self) -> Option<Record> {
        self.task.record.take_if(|record| record.is_written)
    }

    /// Orders the work that can be done now. Returns `true` at the end of the job.
    pub fn advance(&mut self, world: &mut Surroundings) -> bool {
        let (now, dimension) = (world.clock.now, self.task.dimension);
        self.has_begun = true;
        if world.dimensions.open.get(&dimension).is_none_or(|open| open.is_closing()) {
            self.task.fail(JobError::NotOpen(dimension));
        }
        while self.task.outcome.error.is_none() {
            if !self.phase.work(&mut self.task, world) {
                return false;
            }
            match mem::take(&mut self.phase).next(&mut self.task, world) {
                Some(next) => self.phase = next,
                None => return true,
            }
        }
        self.wind_up(now)
    }

    /// Ends the job early. The work in flight is waited for, up to [`PATIENCE`].
    fn wind_up(&mut self, now: Duration) -> bool {
        self.task.is_void.stop();
        let since = *self.ending.get_or_insert(now);
        // A halted or hung region never does its part.
        let is_late = now >= since.saturating_add(PATIENCE);
        self.phase.is_answered(&self.task) && (is_late || !self.phase.has_columns_under_way())
    }

    /// Takes the answer for a column, and the time that its region spent on it.
    pub fn take(&mut self, column: ColumnPos, answer: ColumnAnswer, took: Duration, now: Duration) {
        self.task.worked += took;
        if let Some(answer) = self.phase.take(column, answer, now) {
            self.task.note(column, answer);
        }
    }
}
