//! What can be asked of saving, and why it is not done.

use crate::coordinator::threads::work_error::WorkError;
use crate::region::RegionId;
use crate::space::DimensionId;
use crate::storage::StoreError;
use crate::storage::upkeep::FoundRequest;
use bevy::prelude::*;
use std::num::NonZeroU32;
use std::path::PathBuf;
use thiserror::Error;

/// Saves everything, and makes a backup of it while the game goes on. [`WorldBackedUp`](crate::view::WorldBackedUp) or [`BackupFailed`](crate::view::BackupFailed) with the same
/// number answers.
///
/// An app that ends meanwhile waits for the backup, which then takes as long as it takes to copy what changed.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct BackupWorld {
    /// A number of the game's choice, to know the answer by.
    pub request: u64,
    /// The folder of backups; it is made if it is not there. What did not change since the last backup in it takes no room.
    pub folder: PathBuf,
    /// Of the backups in the folder all but so many of the newest are removed; `None` keeps all.
    pub keep: Option<NonZeroU32>,
}

/// Saves everything now. [`WorldSaved`](crate::view::WorldSaved) with the same number answers when it is durable, or [`SaveFailed`](crate::view::SaveFailed) if a region halted
/// before it had handed out what was unsaved.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveWorld {
    /// A number of the game's choice, to know the answer by.
    pub request: u64,
}

/// Why not everything is saved, or there is no backup of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SaveError {
    /// The store could not write.
    #[error(transparent)]
    Commit(#[from] StoreError),
    /// A region halted before it had handed out what was to be saved.
    #[error("{region} of {dimension} halted: what it changed since its last save is lost")]
    Halted {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        region: RegionId,
    },
    /// There was no time for it.
    #[error("the app ended before all was saved")]
    Ended,
    /// All is saved, and the backup could not be made.
    #[error(transparent)]
    Backup(#[from] WorkError),
}

/// Whom a save is for.
#[derive(Debug)]
pub enum SaveRequest {
    /// A message with this number answers it.
    Message(u64),
    /// A backup follows it, for the game.
    Backup(BackupWorld),
    /// A backup follows it, for another process.
    ProcessBackup(FoundRequest),
    /// A restore is done, whose record is there.
    Restore(PathBuf),
}
