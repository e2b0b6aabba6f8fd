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

mod error;
mod files;
mod order;
mod outcome;
mod records;
mod sightings;
mod transfer;

use super::jobs::JobBook;
use super::threads::{Place, Threads};
use bevy::prelude::*;
use std::path::PathBuf;

pub use error::JobError;
pub use order::{
    AfterCrash, CaptureSnapshot, EntityRestore, RestoreSnapshot, SnapshotConfig, SnapshotOrder, SnapshotSource,
    StoreSnapshot, UngeneratedGround,
};
pub use outcome::{ColumnOutcome, ColumnResult, JobOutcome};
pub(super) use records::{Record, RestoreRecords, remove as remove_record};
pub(super) use sightings::Sightings;
pub(super) use transfer::{Surroundings, Transfer};

/// All that a restore changed is saved.
pub fn forget_restore(record: PathBuf, threads: &mut Threads) {
    let path = record.clone();
    threads.ask(
        Place::Beside("terrane snapshot"),
        move |_, _| {
            if let Err(error) = records::remove(&path) {
                warn!("{}: a restore that is done cannot be forgotten, and is done again: {error}", path.display());
            }
        },
        |world, done| {
            if let Err(error) = done {
                warn!("{}: a restore that is done is forgotten later: {error}", record.display());
                world.resource_mut::<JobBook>().done.push(record);
            }
        },
    );
}
