//! Why a job fails.

use crate::coordinator::threads::work_error::WorkError;
use crate::simulation::ColumnError;
use crate::snapshot::StoredSnapshotError;
use crate::space::DimensionId;
use thiserror::Error;

/// Why a job has not done all that it should.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JobError {
    /// The box reaches too far.
    #[error("the box reaches {columns} columns, and at most {limit} are possible")]
    TooManyColumns {
        /// Columns that it reaches.
        columns: u128,
        /// The most that are possible.
        limit: u128,
    },
    /// The box is too high to be restored in a sequence.
    #[error("a restore in a sequence reaches at most {limit} chunk heights")]
    TooManyHeights {
        /// The most that are possible.
        limit: u64,
    },
    /// The dimension is not open, or was closed meanwhile.
    #[error("{0} is not open")]
    NotOpen(DimensionId),
    /// A stored snapshot cannot be read or written.
    #[error(transparent)]
    Stored(#[from] StoredSnapshotError),
    /// Work beside the simulation failed.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// A column could not be worked on.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// It ended before all was done.
    #[error("it was cancelled")]
    Cancelled,
}
