//! Why a region halted.

use crate::space::ColumnPos;

/// Why a region halted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionFault {
    /// What the panic said.
    pub reason: String,
    /// Where in the source it was raised; `None` if a system returned an error, and for an order to halt.
    pub location: Option<String>,
    /// The system that panicked, where its name is known.
    pub system: Option<String>,
    /// The lowest of the region's columns then.
    pub column: Option<ColumnPos>,
}

impl RegionFault {
    /// A fault of which nothing else is known.
    pub(in crate::coordinator) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), location: None, system: None, column: None }
    }
}
