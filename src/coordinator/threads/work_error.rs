//! Why work beside the coordinator failed.

use crate::storage::StoreError;
use crate::work::panic_message;
use bevy::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use thiserror::Error;

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
