//! Captures and restores of a box of the running world: the jobs that work column by column.
//!
//! A job sends its work as letters to the columns, so regions may merge and split meanwhile, and columns that are not loaded
//! are loaded for it and let go again. A few columns are under way at a time; the regions do the work at the end of their
//! ticks, and send back what does not fit into the budget. A restore goes in phases, each when the one before is done:
//! the blocks and whoever stood there, in the order that it was asked for, then the entities of the snapshot, and with them
//! the word that a column is done. A capture looks again, at its end, for entities that have crossed from columns that were
//! still to come into such as were captured; a restore removes those who have crossed so.
//!
//! A restore is remembered on disk before it changes anything, until all that it changed is saved (see [`records`]): what the
//! end of the process cuts short goes on, or is taken back, when its dimension is opened again.

pub(super) mod error;
mod files;
pub(super) mod order;
pub(super) mod outcome;
pub(super) mod records;
pub(super) mod sightings;
pub(super) mod transfer;

use super::saving::save::Saves;
use super::threads::Threads;
use bevy::prelude::*;
use std::path::PathBuf;

pub use error::JobError;
pub use order::{
    AfterCrash, CaptureSnapshot, EntityRestore, RestoreSnapshot, SnapshotConfig, SnapshotSource, StoreSnapshot,
};
pub use outcome::{ColumnOutcome, ColumnResult, JobOutcome};
pub(super) use records::{RestoreRecords, remove as remove_record};

/// All that a restore changed is saved.
pub fn forget_restore(record: PathBuf, threads: &mut Threads) {
    let path = record.clone();
    threads.ask(
        Some("terrane snapshot"),
        move |_, _| {
            if let Err(error) = records::remove(&path) {
                warn!("{}: a restore that is done cannot be forgotten, and is done again: {error}", path.display());
            }
        },
        |world, done| {
            if let Err(error) = done {
                warn!("{}: a restore that is done is forgotten later: {error}", record.display());
                world.resource_mut::<Saves>().unsaved_restores.push(record);
            }
        },
    );
}
