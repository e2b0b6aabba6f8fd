//! Messages to the listener of a far view.

use crate::chunk::ColumnSummary;
use crate::space::ColumnPos;
use std::sync::Arc;

/// A message to a listener.
#[derive(Clone, Debug)]
pub enum FarNews {
    /// The summary of a column. It replaces the one that was sent before.
    Column {
        /// The column.
        column: ColumnPos,
        /// The summary.
        summary: Arc<ColumnSummary>,
        /// The number of bytes that it used of the cap.
        bytes: u64,
    },
    /// The column changed or is too far away. The listener gets no further changes of it.
    Gone(ColumnPos),
    /// All columns of the dimension are gone: the listener left it, or it closes.
    AllGone,
}
