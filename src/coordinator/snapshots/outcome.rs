//! What has come of a job.

use crate::coordinator::snapshots::error::JobError;
use crate::simulation::ColumnError;
use crate::snapshot::{Snapshot, StoredSnapshot};
use crate::space::ColumnPos;
use std::sync::Arc;

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

/// What has come of a capture or a restore; it is empty for other jobs.
#[derive(Clone, Debug, Default)]
pub struct JobOutcome {
    /// What was captured, also if it is not all.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Where it was stored, if that was asked for.
    pub stored: Option<Arc<StoredSnapshot>>,
    /// What came of each column, in the order of their positions.
    pub columns: Vec<ColumnOutcome>,
    /// Entities of the snapshot that were not brought back, since they are alive elsewhere.
    pub alive_elsewhere: usize,
    /// Why it failed, if it did.
    pub error: Option<JobError>,
}
