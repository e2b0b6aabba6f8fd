//! Maintenance of a stored world: listing and checking its contents, copies, backups and reclaiming space. The program
//! `terrane` is built on these functions, and games can use them too.
//!
//! All of them can take minutes. Each walk reports its progress, can be stopped between two pages, and holds a few megabytes.
//!
//! Stopped work is reported in one of two ways, here and in [`snapshot`](terrane_world::snapshot): by the error
//! `Cancelled` if no result is left, or by a report that is not `finished` and lists the work done. Work that can be
//! continued is continued by the same call.

mod backup;
mod backup_request;
mod check;
mod copy;
mod error;
mod exports;
mod info;
#[cfg(feature = "rocksdb")]
mod new_world;
mod prune;
mod salvage;
pub mod schematics;
mod snapshot_check;
#[cfg(feature = "rocksdb")]
mod snapshot_files;
#[cfg(test)]
mod tests;
mod verify;

#[doc(hidden)]
pub use backup_request::FoundRequest;
pub use backup_request::{BackupProgress, BackupRequest};
pub use copy::{copy_store, copy_world_into};
pub use error::UpkeepError;
pub use exports::{
    EXPORT_SIGNATURE, ExistingGround, ExportOptions, ExportReport, ImportOptions, ImportReport, LostObject, export_file,
};
pub use info::{InspectedChunk, StoredPlayer, WorldInfo};
#[cfg(feature = "rocksdb")]
pub use new_world::{copy_world, import_world, restore_world, salvage_world};
pub use prune::{KeptEntity, PruneReport};
pub use salvage::salvage;
pub use verify::{Damage, VerifyReport};

use serde::{Deserialize, Serialize};

/// The maximum length of a list: reports are held in memory, and some are written repeatedly.
const MAX_LISTED: usize = 1_000;

/// A list of findings, cut off after the first thousand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed<T> {
    /// The first thousand, in the order in which they were found.
    pub first: Vec<T>,
    /// The number of further findings.
    pub more: u64,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { first: Vec::new(), more: 0 }
    }
}

impl<T> Listed<T> {
    pub(super) fn add(&mut self, found: T) {
        match self.first.len() < MAX_LISTED {
            true => self.first.push(found),
            false => self.more += 1,
        }
    }

    pub(super) fn append(&mut self, other: Self) {
        other.first.into_iter().for_each(|found| self.add(found));
        self.more += other.more;
    }

    /// The total number of findings.
    pub fn count(&self) -> u64 {
        self.first.len() as u64 + self.more
    }

    /// Returns `true` if there are no findings.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}
