//! Columns that threads have made or read.

use crate::simulation::{ColumnError, FetchedColumn};
use crate::space::{ColumnPos, DimensionId};

/// Columns that are there, or the reason why not.
pub struct ColumnsReady {
    pub claim: u64,
    pub dimension: DimensionId,
    pub generated: bool,
    pub columns: Vec<(ColumnPos, Result<FetchedColumn, ColumnError>)>,
}
