//! Errors of jobs.

use crate::coordinator::threads::work_error::WorkError;
use crate::simulation::ColumnError;
use crate::snapshot::StoredSnapshotError;
use crate::space::DimensionId;
use thiserror::Error;

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JobError {
    /// The box reaches into too many columns.
    #[error("the box reaches {columns} columns, and at most {limit} are possible")]
    TooManyColumns {
        /// The number of columns in the box.
        columns: u128,
        /// The limit.
        limit: u128,
    },
    /// The box is too high to be restored in a sequence.
    #[error("a restore in a sequence reaches at most {limit} chunk heights")]
    TooManyHeights {
        /// The limit.
        limit: u64,
    },
    /// The dimension is not open, or was closed while the job ran.
    #[error("{0} is not open")]
    NotOpen(DimensionId),
    /// A stored snapshot cannot be read or written.
    #[error(transparent)]
    Stored(#[from] StoredSnapshotError),
    /// Work outside of the regions failed.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// A column could not be worked on.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// The job was cancelled.
    #[error("it was cancelled")]
    Cancelled,
}
