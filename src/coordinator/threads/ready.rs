//! Columns that threads generated or read.

use crate::simulation::{ColumnError, FetchedColumn};
use crate::space::{ColumnPos, DimensionId};

/// The columns of an order, or the reasons why they failed.
pub struct ColumnsReady {
    pub claim: u64,
    pub dimension: DimensionId,
    pub generated: bool,
    pub columns: Vec<(ColumnPos, Result<FetchedColumn, ColumnError>)>,
}
