//! Why a region halted, and why work beside the simulation failed.

use crate::space::ColumnPos;
use crate::storage::StoreError;
use crate::work::panic_message;
use bevy::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use thiserror::Error;

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

/// The reason why work beside the simulation failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkError {
    /// No thread could be started for it.
    #[error("the system cannot start a thread for it")]
    NoThread,
    /// It panicked, possibly in the game's code, such as a migration.
    #[error("it panicked: {0}")]
    Panicked(String),
    /// The store cannot be read or written, or its data is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Runs work that may panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, WorkError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| WorkError::Panicked(panic_message(&*payload)))
}
