//! What the main world knows of a job: which one it is, how far it has come, and its outcome.

use crate::coordinator::snapshots::outcome::JobOutcome;
use crate::space::{BlockBox, ColumnArea, DimensionId};
use bevy::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// The number of a job, never used twice while the world is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Reflect)]
#[type_path = "bevy_terrane"]
pub struct JobId(pub(in crate::coordinator) u64);

/// A job that waits or runs. The main world has an entity for each, with its [`JobProgress`], also for a job that a region or
/// another thread began. A [`JobEnded`](crate::view::JobEnded) tells of its end. The entity of a capture or a
/// restore is then despawned; that of a [`Pregeneration`] or a [`FarView`](crate::view::FarView) stays and loses this. An entity is one
/// job at a time.
///
/// Despawning the entity cancels the job. [`ControlJob`](crate::view::ControlJob) pauses, resumes or cancels it.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable)]
#[require(JobProgress)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// What it does.
    pub kind: JobKind,
}

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// It captures a box: [`Jobs::capture`](super::Jobs::capture).
    Capture {
        /// The dimension.
        dimension: DimensionId,
        /// The box.
        area: BlockBox,
    },
    /// It restores a box: [`Jobs::restore`](super::Jobs::restore).
    Restore {
        /// The dimension.
        dimension: DimensionId,
        /// The box.
        area: BlockBox,
        /// Whether the end of the process, or of its dimension, cut it short before.
        is_resumed: bool,
    },
    /// It generates an area.
    Pregeneration(Pregeneration),
    /// It tells a [`FarView`](crate::view::FarView) what ground looks like. It has no end.
    FarView,
}

/// An area of a dimension that is to be generated and stored, without being loaded into a region: spawn it in the main
/// world, and see its [`JobProgress`] beside it.
///
/// Columns that are stored already count as done. Of a sparse dimension the ground around sea level is generated, as
/// far as a viewer's default vertical radius reaches, in columns of which nothing is stored. Several of one dimension
/// run one after the other, in the order in which they were spawned; those of several dimensions run beside each other.
/// Viewers come first. A column that cannot be generated is tried three times, told of by
/// [`ColumnFailed`](crate::view::ColumnFailed) and counted; the rest goes on.
///
/// Its entity stays when it has come to its end. Until then the store remembers it: when its dimension is opened again, in a
/// later session too, it goes on where it was, paused or not. It then has the entity that the game spawned for the same area,
/// or else a new one. It waits while its dimension is closed. If the dimension's entity is despawned, so is that of the
/// pre-generation. Despawning both in the same frame does not cancel it.
///
/// ```
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::view::{JobProgress, Pregeneration};
///
/// fn prepare_spawn(mut commands: Commands, dimension: Single<Entity, Added<Dimension>>) {
///     let area = ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: 64 };
///     commands.spawn(Pregeneration { dimension: *dimension, area });
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
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable)]
#[require(JobProgress)]
pub struct Pregeneration {
    /// The dimension's entity.
    pub dimension: Entity,
    /// The area that is generated.
    pub area: ColumnArea,
}

/// What a job can be told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOrder {
    /// Order nothing more until it is resumed. Work that is on its way is still done. A pre-generation stays paused in later
    /// sessions; a restore that the end of the process cuts short goes on in the next one.
    Pause,
    /// Go on.
    Resume,
    /// Stop, and be forgotten. Work that is under way at this moment is finished: each chunk is as it was, or restored. Stored
    /// columns stay.
    Cancel,
}

/// What a job does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Reflect)]
#[type_path = "bevy_terrane"]
pub enum JobState {
    /// Others come first, or its dimension is not open.
    #[default]
    Waiting,
    /// It works.
    Running,
    /// It was told to pause.
    Paused,
    /// It has done all that could be done.
    Finished,
    /// It was told to stop, or its dimension was removed. A far view has left then.
    Cancelled,
    /// It could not go on, for instance because its dimension was closed.
    Failed,
}

impl JobState {
    /// Whether it has come to its end.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled | Self::Failed)
    }
}

/// How far a job is, as it was told last: four times a second, and when its state changes.
#[derive(Component, Clone, Debug, Default, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Clone, Default)]
pub struct JobProgress {
    /// What it does.
    pub state: JobState,
    /// Pieces of work that are done. Of a pre-generation: columns of its area that are stored, also those that were generated
    /// for viewers; the save that is under way is included. Of a capture or a restore: columns, each once for every phase,
    /// phases that read and write files included. Of a far view: columns that its listener has.
    pub done: u64,
    /// Pieces of work in all, as far as that is known; of a far view, which has no end, the columns of its disc.
    pub total: u128,
    /// Columns that a pre-generation tried several times and that failed each time.
    pub failed: u64,
    /// Pieces of work a second, over the last ten seconds. `None` while the job does not run, before there is a second to
    /// measure, and after ten seconds without progress.
    pub per_second: Option<f64>,
    /// How long it has been running; for a pre-generation, earlier sessions are included.
    pub elapsed: Duration,
    /// The time that regions have worked for it within their ticks.
    pub worked: Duration,
    /// Chunks that it changed.
    pub chunks_changed: usize,
}

impl JobProgress {
    /// Pieces of work that are neither done nor failed.
    pub fn remaining(&self) -> u128 {
        self.total.saturating_sub(self.done.into()).saturating_sub(self.failed.into())
    }

    /// The part that is done, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.total == 0 { 1.0 } else { self.done as f64 / self.total as f64 }
    }

    /// How much longer it takes if it goes on as fast; `None` if that is not known.
    pub fn time_left(&self) -> Option<Duration> {
        if self.remaining() == 0 {
            return Some(Duration::ZERO);
        }
        let rate = self.per_second.filter(|rate| *rate > 0.0)?;
        Duration::try_from_secs_f64(self.remaining() as f64 / rate).ok()
    }
}

/// What the main world is told of a job.
#[derive(Clone, Debug)]
pub struct JobStatus {
    /// Which one.
    pub job: Job,
    /// How far it is.
    pub progress: JobProgress,
    /// Its outcome, at its end.
    pub outcome: Option<Arc<JobOutcome>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_the_rate() {
        let progress = JobProgress { done: 30, total: 100, failed: 10, ..default() };
        assert_eq!((progress.remaining(), progress.fraction(), progress.time_left()), (60, 0.3, None));
        let running = JobProgress { per_second: Some(20.0), ..progress.clone() };
        assert_eq!(running.time_left(), Some(Duration::from_secs(3)));
        // It is over in more time than there is.
        let slow = JobProgress { per_second: Some(1e-300), ..progress.clone() };
        assert_eq!(slow.time_left(), None);
        assert_eq!(JobProgress { done: 90, ..progress }.time_left(), Some(Duration::ZERO));
    }
}
