//! Looking after a stored world: what is in it, whether it is whole, copies, backups, and room given back. What the program
//! `terrane` does, for a game to do as well.
//!
//! All of it can take minutes. Each walk tells how far it is, can be stopped between two pages, and holds a few megabytes.
//!
//! Work that was stopped says so in one of two ways, here and in [`snapshot`](terrane_world::snapshot): with the error `Cancelled` if
//! nothing of it is left, and with a report that is not `finished` if the report tells what was done. What can be gone on with
//! goes on with the same call.

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
#[cfg(feature = "rocksdb")]
mod snapshot_files;
mod verify;

#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use backup_request::FoundRequest;
pub use backup_request::{BackupProgress, BackupRequest};
pub use copy::copy_store;
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
