//! The reason why a region halted.

use crate::space::ColumnPos;

/// The reason why a region halted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionFault {
    /// The panic message.
    pub reason: String,
    /// The place in the source where it was raised; `None` if a system returned an error, and for an order to halt.
    pub location: Option<String>,
    /// The system that panicked, if its name is known.
    pub system: Option<String>,
    /// The lowest column of the region at that time.
    pub column: Option<ColumnPos>,
}

impl RegionFault {
    /// A fault with only a reason.
    pub(in crate::coordinator) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), location: None, system: None, column: None }
    }
}
