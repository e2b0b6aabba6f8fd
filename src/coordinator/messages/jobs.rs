//! Jobs as the main world sees them: identity, progress and outcome.

use crate::coordinator::messages::snapshots::JobOutcome;
use crate::space::{BlockBox, ColumnArea, DimensionId};
use bevy::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// The number of a job. Numbers are never reused while the world is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Reflect)]
#[type_path = "bevy_terrane"]
pub struct JobId(pub(in crate::coordinator) u64);

/// A job that waits or runs. The main world has an entity for each job, with its [`JobProgress`], even if a region or another
/// thread started the job. A [`JobEnded`](crate::view::JobEnded) reports its end. The entity of a capture or a restore is
/// then despawned; the entity of a [`Pregeneration`] or a [`FarView`](crate::view::FarView) stays and loses this component.
/// An entity belongs to at most one job at a time.
///
/// Despawning the entity cancels the job. [`ControlJob`](crate::view::ControlJob) pauses, resumes or cancels it.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
#[component(immutable)]
#[require(JobProgress)]
#[reflect(Component, Clone)]
pub struct Job {
    /// The number of the job.
    pub id: JobId,
    /// The kind of the job.
    pub kind: JobKind,
}

/// The kind of a job, with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
pub enum JobKind {
    /// A capture of a box: [`Jobs::capture`](crate::view::Jobs::capture).
    Capture {
        /// The dimension.
        dimension: DimensionId,
        /// The box.
        area: BlockBox,
    },
    /// A restore of a box: [`Jobs::restore`](crate::view::Jobs::restore).
    Restore {
        /// The dimension.
        dimension: DimensionId,
        /// The box.
        area: BlockBox,
        /// `true` if the end of the process or of the dimension interrupted the restore before.
        resumed: bool,
    },
    /// A pre-generation of an area.
    Pregeneration(Pregeneration),
    /// A [`FarView`](crate::view::FarView), which has no end.
    FarView,
}

/// An area of a dimension that is generated and stored without being loaded into a region. Spawn it in the main world;
/// [`JobProgress`] on the same entity shows its progress.
///
/// Columns that are stored already count as done. In a sparse dimension, columns without any stored slab are generated
/// around sea level, as far up and down as a viewer's default vertical radius. The pre-generations of one dimension run one
/// after the other, in the order in which they were spawned; different dimensions run in parallel. Viewers have priority. A
/// column that cannot be generated is tried three times; then it is reported by
/// [`ColumnFailed`](crate::view::ColumnFailed) and counted, and the job continues.
///
/// The entity stays after the end of the job. Until the end the job is stored: when the dimension is opened again, in a later
/// session too, the job continues where it was, paused or not. Its entity is then the one that the game spawned for the same
/// area, or else a new one. While the dimension is closed, the job waits. Despawning the dimension's entity also despawns
/// the entity of the pre-generation. Despawning both in the same frame does not cancel the job.
///
/// ```
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::space::ColumnArea;
/// use bevy_terrane::view::{JobProgress, Pregeneration};
///
/// fn prepare_spawn(mut commands: Commands, dimensions: Res<Dimensions>) {
///     let area = ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: 64 };
///     commands.spawn(Pregeneration { dimension: dimensions.id("overworld"), area });
/// }
///
/// fn tell(jobs: Query<(&Pregeneration, &JobProgress), Changed<JobProgress>>) {
///     for (job, progress) in &jobs {
///         info!("{}: {} of {} columns, {:?} left", job.area, progress.done, progress.total, progress.time_left());
///     }
/// }
/// # bevy::ecs::system::assert_is_system(prepare_spawn);
/// # bevy::ecs::system::assert_is_system(tell);
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
#[component(immutable)]
#[require(JobProgress)]
#[reflect(Component, Clone)]
pub struct Pregeneration {
    /// The dimension.
    pub dimension: DimensionId,
    /// The area that is generated.
    pub area: ColumnArea,
}

/// An order for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOrder {
    /// Order nothing more until the job is resumed. Work in flight is still done. A pre-generation stays paused in later
    /// sessions; a restore that the end of the process interrupts resumes in the next one.
    Pause,
    /// Continue.
    Resume,
    /// Stop and forget the job. Work in flight is finished, so each chunk is either unchanged or restored. Stored columns
    /// stay.
    Cancel,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Reflect)]
#[type_path = "bevy_terrane"]
pub enum JobState {
    /// Other jobs come first, or the dimension is not open.
    #[default]
    Waiting,
    /// The job works.
    Running,
    /// The job is paused by an order.
    Paused,
    /// The job has done everything that could be done.
    Finished,
    /// The job was cancelled, or its dimension was removed. A far view also ends in this state.
    Cancelled,
    /// The job could not continue, for instance because its dimension was closed.
    Failed,
}

impl JobState {
    /// Returns `true` if the job has ended.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled | Self::Failed)
    }
}

/// The latest published progress of a job: four times a second, and when its state changes.
#[derive(Component, Clone, Debug, Default, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone, Default)]
pub struct JobProgress {
    /// The state.
    pub state: JobState,
    /// The number of finished pieces of work. For a pre-generation: stored columns of its area, including those that were
    /// generated for viewers or are in the save in flight. For a capture or a restore: columns, each counted once for every
    /// phase, including phases that read and write files. For a far view: columns that its listener has.
    pub done: u64,
    /// The total number of pieces of work, as far as known; for a far view, which has no end, the columns of its disc.
    pub total: u128,
    /// The number of columns that a pre-generation tried several times without success.
    pub failed: u64,
    /// Pieces of work per second, over the last ten seconds. `None` while the job does not run, in its first second, and
    /// after ten seconds without progress.
    pub per_second: Option<f64>,
    /// How long the job has been running, including earlier sessions of a pre-generation.
    pub elapsed: Duration,
    /// The time that regions spent on the job within their ticks.
    pub worked: Duration,
    /// The number of chunks that the job changed.
    pub chunks_changed: usize,
}

impl JobProgress {
    /// The number of pieces of work that are neither done nor failed.
    pub fn remaining(&self) -> u128 {
        self.total.saturating_sub(self.done.into()).saturating_sub(self.failed.into())
    }

    /// The finished part, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.total == 0 { 1.0 } else { self.done as f64 / self.total as f64 }
    }

    /// The estimated time to the end at the present rate; `None` if unknown.
    pub fn time_left(&self) -> Option<Duration> {
        if self.remaining() == 0 {
            return Some(Duration::ZERO);
        }
        let rate = self.per_second.filter(|rate| *rate > 0.0)?;
        Duration::try_from_secs_f64(self.remaining() as f64 / rate).ok()
    }
}

/// A report of a job to the main world.
#[derive(Clone, Debug)]
pub struct JobStatus {
    /// The job.
    pub job: Job,
    /// Its progress.
    pub progress: JobProgress,
    /// Its outcome, if it has ended.
    pub outcome: Option<Arc<JobOutcome>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_rate() {
        let progress = JobProgress { done: 30, total: 100, failed: 10, ..default() };
        assert_eq!((progress.remaining(), progress.fraction(), progress.time_left()), (60, 0.3, None));
        let running = JobProgress { per_second: Some(20.0), ..progress.clone() };
        assert_eq!(running.time_left(), Some(Duration::from_secs(3)));
        // The estimate exceeds the largest duration.
        let slow = JobProgress { per_second: Some(1e-300), ..progress.clone() };
        assert_eq!(slow.time_left(), None);
        assert_eq!(JobProgress { done: 90, ..progress }.time_left(), Some(Duration::ZERO));
    }
}
