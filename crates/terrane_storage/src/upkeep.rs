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
mod inspect;
mod listed;
#[cfg(feature = "rocksdb")]
mod new_world;
mod prune;
mod salvage;
pub mod schematics;
mod snapshot_check;
#[cfg(feature = "rocksdb")]
mod snapshot_files;
mod verify;

#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use backup_request::FoundRequest;
pub use backup_request::{BackupProgress, BackupRequest};
pub use copy::{copy_store, copy_world_into};
pub use error::UpkeepError;
pub use exports::{
    EXPORT_SIGNATURE, ExistingGround, ExportOptions, ExportReport, ImportOptions, ImportReport, LostObject, export_file,
};
pub use info::{StoredPlayer, WorldInfo};
pub use inspect::InspectedChunk;
pub use listed::Listed;
#[cfg(feature = "rocksdb")]
pub use new_world::{copy_world, import_world, restore_world, salvage_world};
pub use prune::{KeptEntity, PruneReport};
pub use salvage::salvage;
pub use verify::{Damage, VerifyReport};
