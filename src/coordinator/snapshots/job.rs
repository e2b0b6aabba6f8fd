//! One snapshot job: what it orders next, and what came of what it ordered.

mod columns;
mod phase;
mod surroundings;
mod task;
mod work;

use super::records::Record;
use super::{SnapshotJob, SnapshotJobError, SnapshotJobId, SnapshotJobState, SnapshotJobStatus, SnapshotOrder};
use crate::simulation::ColumnAnswer;
use crate::space::ColumnPos;
pub use columns::ColumnAnswers;
use phase::Phase;
pub use phase::{PhaseAnswer, PhaseAnswers};
use std::mem;
use std::time::Duration;
pub use surroundings::Surroundings;
use task::Task;

/// What ends before all is done waits no longer for a region that does not tick.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time between two looks at a job by the main world.
const PROGRESS_PERIOD: Duration = Duration::from_millis(100);

pub struct Job {
    pub task: Task,
    phase: Phase,
    began: Option<Duration>,
    /// Since when the job waits for the rest of what is under way, as it ends before all is done.
    ending: Option<Duration>,
    /// The state that was told last, and when.
    told: Option<(SnapshotJobState, Duration)>,
}

impl Job {
    /// A job, with the record of a restore that is remembered. If the record is written already, the job goes on with what was
    /// cut short.
    pub fn new(id: SnapshotJobId, order: SnapshotOrder, record: Option<Record>) -> Self {
        Self { task: Task::new(id, order, record), phase: Phase::Idle, began: None, ending: None, told: None }
    }

    pub fn has_begun(&self) -> bool {
        self.began.is_some()
    }

    /// What is under way is still answered.
    pub fn cancel(&mut self) {
        self.task.outcome.error = Some(SnapshotJobError::Cancelled);
    }

    pub fn is_cancelled(&self) -> bool {
        self.task.outcome.error == Some(SnapshotJobError::Cancelled)
    }

    /// Orders what can be done now; says whether the job has come to its end.
    pub fn advance(&mut self, world: &mut Surroundings) -> bool {
        let now = world.clock.now;
        let began = *self.began.get_or_insert(now);
        self.task.progress.state = SnapshotJobState::Running;
        self.task.progress.elapsed = now.saturating_sub(began);
        let SnapshotJob { dimension, .. } = self.task.job;
        if world.dimensions.open.get(&dimension).is_none_or(|open| open.is_closing()) {
            self.task.give_up(SnapshotJobError::NotOpen(dimension));
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

    /// The job ends before all is done: with what is under way, as long as that may take.
    fn wind_up(&mut self, now: Duration) -> bool {
        self.task.is_void.stop();
        let since = *self.ending.get_or_insert(now);
        // A region that is halted or hangs does nothing of it later.
        let is_late = now >= since.saturating_add(PATIENCE);
        self.phase.is_answered(&self.task) && (is_late || !self.phase.has_columns_under_way())
    }

    /// What came of a column, and how long a region worked on it.
    pub fn take(&mut self, column: ColumnPos, answer: ColumnAnswer, took: Duration, now: Duration) {
        self.task.progress.worked += took;
        if let Some(answer) = self.phase.take(column, answer, now) {
            self.task.note(column, answer);
        }
    }

    /// What came of that which the phase asked for elsewhere.
    pub fn hear(&mut self, answer: PhaseAnswer) {
        answer(&mut self.task, &mut self.phase);
    }

    /// What the main world is to be told, if it is time.
    pub fn tell(&mut self, now: Duration) -> Option<SnapshotJobStatus> {
        let state = self.task.progress.state;
        let is_news = self.told.is_none_or(|(told, at)| told != state || now >= at + PROGRESS_PERIOD);
        is_news.then(|| {
            self.told = Some((state, now));
            self.task.status()
        })
    }
}
