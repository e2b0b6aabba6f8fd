//! Results of jobs.

use crate::coordinator::snapshots::error::JobError;
use crate::simulation::ColumnError;
use crate::snapshot::{Snapshot, StoredSnapshot};
use crate::space::ColumnPos;
use std::sync::Arc;

/// The result for one column, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnOutcome {
    /// The column.
    pub column: ColumnPos,
    /// The result.
    pub result: ColumnResult,
    /// The heights of the changed chunks, in chunks, ascending.
    pub changed: Vec<i64>,
}

/// The result for one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnResult {
    /// The column is done.
    Done,
    /// The job ended first. The chunks that are listed as changed are restored, the others are not changed.
    Unfinished,
    /// The column was not generated, and was left out.
    LeftOut,
    /// The column failed.
    Failed(ColumnError),
}

/// The result of a capture or a restore; empty for other jobs.
#[derive(Clone, Debug, Default)]
pub struct JobOutcome {
    /// The captured snapshot, even if it is incomplete.
    pub snapshot: Option<Arc<Snapshot>>,
    /// The stored snapshot, if the order asked for one.
    pub stored: Option<Arc<StoredSnapshot>>,
    /// The result for each column, ordered by position.
    pub columns: Vec<ColumnOutcome>,
    /// The number of entities of the snapshot that were not added because they are alive elsewhere.
    pub alive_elsewhere: usize,
    /// The error of a failed job.
    pub error: Option<JobError>,
}
