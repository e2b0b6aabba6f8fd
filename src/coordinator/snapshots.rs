//! Captures and restores of a box of the running world: jobs that work column by column.
//!
//! A job sends its work to the columns as letters, so regions may merge and split meanwhile. Columns that are not loaded
//! are loaded for the job and evicted afterwards. Only a few columns are in flight at a time. The regions do the work at the
//! end of their ticks and send back the part that exceeds their budget. A restore runs in phases: first the blocks are
//! restored in the requested sequence and the entities in the box are removed, then the entities of the snapshot are added
//! and the columns are reported as done. At its end, a capture looks again for entities that crossed from a column that was
//! not captured yet into one that was. A restore removes such entities.
//!
//! A restore is recorded on disk from before its first change until all of its changes are saved (see [`records`]). A restore
//! that the end of the process interrupts is continued or undone when its dimension is opened again.

mod files;
pub mod records;
pub mod transfer;

use super::threads::Threads;
use crate::coordinator::saves::Saves;
use bevy::prelude::*;
use std::path::PathBuf;

pub(super) use records::{RestoreRecords, remove as remove_record};

/// Removes the record of a restore whose changes are all saved.
pub fn forget_restore(record: PathBuf, threads: &mut Threads) {
    let path = record.clone();
    threads.ask(
        Some("terrane snapshot"),
        move |_, _| {
            if let Err(error) = records::remove(&path) {
                warn!(
                    "{}: the record of a finished restore cannot be removed, so the restore is repeated: {error}",
                    path.display()
                );
            }
        },
        |world, done| {
            if let Err(error) = done {
                warn!("{}: the record of a finished restore is removed later: {error}", record.display());
                world.resource_mut::<Saves>().unsaved_restores.push(record);
            }
        },
    );
}
