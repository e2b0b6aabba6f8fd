//! What a listener of a far view is told.

use crate::chunk::ColumnSummary;
use crate::space::ColumnPos;
use std::sync::Arc;

/// What a listener is told.
#[derive(Clone, Debug)]
pub enum FarNews {
    /// What a column looks like; it replaces what was sent before.
    Column {
        /// The column.
        column: ColumnPos,
        /// What it looks like.
        summary: Arc<ColumnSummary>,
        /// The bytes of the cap that it took.
        bytes: u64,
    },
    /// The column changed or is too far away: the listener is told nothing more of it.
    Gone(ColumnPos),
    /// That holds for all columns of the dimension: the listener left it, or it closes.
    AllGone,
}
