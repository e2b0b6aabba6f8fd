//! How far a snapshot job is, and what has come of it.

use super::SnapshotJobError;
use crate::simulation::ColumnError;
use crate::snapshot::{Snapshot, StoredSnapshot};
use crate::space::{BlockBox, ColumnPos, DimensionId};
use bevy::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// The number of a snapshot job, never used twice while the world is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Reflect)]
#[type_path = "bevy_terrane"]
pub struct SnapshotJobId(pub(super) u64);

/// A snapshot job that waits or runs: the main world has an entity for each, with its [`SnapshotProgress`]. It is despawned when
/// the job has come to its end, after [`SnapshotJobEnded`](crate::view::SnapshotJobEnded) has told of that.
///
/// Whoever despawns it cancels the job.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable)]
#[require(SnapshotProgress)]
pub struct SnapshotJob {
    /// Its number.
    pub id: SnapshotJobId,
    /// The dimension.
    pub dimension: DimensionId,
    /// The box.
    pub area: BlockBox,
    /// Whether it restores; else it captures.
    pub is_restore: bool,
    /// Whether it is a restore that the end of the process, or of its dimension, cut short before.
    pub is_resumed: bool,
}

/// What a snapshot job does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Reflect)]
#[type_path = "bevy_terrane"]
pub enum SnapshotJobState {
    /// Others come first.
    #[default]
    Waiting,
    /// It works.
    Running,
    /// It has done all that could be done.
    Finished,
    /// It was told to stop.
    Cancelled,
    /// It could not go on, for instance because its dimension was closed.
    Failed,
}

impl SnapshotJobState {
    /// Whether it has come to its end.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

/// How far a snapshot job is, as it was told last: ten times a second, and when its state changes.
#[derive(Component, Clone, Debug, Default, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone, Default)]
pub struct SnapshotProgress {
    /// What it does.
    pub state: SnapshotJobState,
    /// Pieces of work that are done: columns, each once for every phase, those that read and write files as well.
    pub done: usize,
    /// Pieces of work in all, as far as that is known.
    pub total: usize,
    /// Chunks that were changed.
    pub chunks_changed: usize,
    /// How long it has been running.
    pub elapsed: Duration,
    /// The time that regions have worked for it within their ticks.
    pub worked: Duration,
}

impl SnapshotProgress {
    /// The part that is done, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.total == 0 { 1.0 } else { self.done as f64 / self.total as f64 }
    }

    /// How much longer it takes if it goes on as fast; `None` if nobody can tell.
    pub fn time_left(&self) -> Option<Duration> {
        let left = self.total.saturating_sub(self.done);
        if left == 0 {
            return Some(Duration::ZERO);
        }
        (self.done > 0).then(|| self.elapsed.mul_f64(left as f64 / self.done as f64))
    }
}

/// What came of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnOutcome {
    /// The column.
    pub column: ColumnPos,
    /// What came of it.
    pub result: ColumnResult,
    /// The heights of the chunks that were changed, in chunks, ascending.
    pub changed: Vec<i64>,
}

/// What came of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnResult {
    /// All that was to be done is done.
    Done,
    /// The job ended before all was done. The chunks that are named as changed are restored, the others as they were.
    Unfinished,
    /// It was not generated, and so left out.
    LeftOut,
    /// It could not be done.
    Failed(ColumnError),
}

/// What has come of a snapshot job.
#[derive(Clone, Debug, Default)]
pub struct SnapshotOutcome {
    /// What was captured, also if it is not all.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Where it was stored, if that was asked for.
    pub stored: Option<Arc<StoredSnapshot>>,
    /// What came of each column, in the order of their positions.
    pub columns: Vec<ColumnOutcome>,
    /// Entities of the snapshot that were not brought back, since they are alive elsewhere.
    pub alive_elsewhere: usize,
    /// Why it failed, if it did.
    pub error: Option<SnapshotJobError>,
}

/// How a snapshot job is, as the main world is told.
#[derive(Clone, Debug)]
pub struct SnapshotJobStatus {
    /// Which one.
    pub job: SnapshotJob,
    /// How far it is.
    pub progress: SnapshotProgress,
    /// What has come of it, at its end.
    pub outcome: Option<Arc<SnapshotOutcome>>,
}
