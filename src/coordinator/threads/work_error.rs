//! Why work beside the coordinator has no result.

use crate::storage::StoreError;
use crate::work::panic_message;
use bevy::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use thiserror::Error;

/// Why work beside the simulation has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkError {
    /// There is no thread to do it.
    #[error("the system gives no thread for it")]
    NoThread,
    /// It panicked, in the game's code perhaps: a migration, for instance.
    #[error("it panicked: {0}")]
    Panicked(String),
    /// The store cannot be read or written, or what it holds is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Does work that may panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, WorkError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| WorkError::Panicked(panic_message(&*payload)))
}
