//! Columns that threads have made or read.

use crate::simulation::{ColumnError, LoadedColumn};
use crate::space::{ColumnPos, DimensionId, HeightSet};

/// A column that is there.
pub struct ReadyColumn {
    pub loaded: LoadedColumn,
    /// In a sparse dimension: the chunk heights that are new.
    pub made: HeightSet,
    /// In a sparse dimension: those that are not stored, and were not to be generated.
    pub left_out: HeightSet,
}

impl From<LoadedColumn> for ReadyColumn {
    fn from(loaded: LoadedColumn) -> Self {
        Self { loaded, made: HeightSet::new(), left_out: HeightSet::new() }
    }
}

/// Columns that are there, or the reason why not.
pub struct ColumnsReady {
    pub claim: u64,
    pub dimension: DimensionId,
    pub generated: bool,
    pub columns: Vec<(ColumnPos, Result<ReadyColumn, ColumnError>)>,
}
