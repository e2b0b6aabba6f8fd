//! Captures and restores of a box of the running world: the jobs that work column by column.
//!
//! A job sends its work as letters to the columns, so regions may merge and split meanwhile, and unloaded columns are loaded
//! for it and unloaded again. A few columns are in flight at a time. The regions do the work at the end of their ticks, and
//! send back whatever exceeds the budget. A restore goes in phases, each after the one before: first the blocks and the
//! entities that stood there, in the requested order, then the entities of the snapshot together with the word that a column
//! is done. At its end, a capture looks again for entities that crossed from columns not captured yet into captured ones; a
//! restore removes such entities.
//!
//! A restore is recorded on disk before it changes anything, until all its changes are saved (see [`records`]). If the
//! process ends in between, the restore resumes or is taken back when its dimension is opened again.

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

/// Removes the record of a restore whose changes are all saved.
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
