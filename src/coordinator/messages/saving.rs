//! Requests to save or back up the world, and their errors.

use crate::coordinator::messages::faults::WorkError;
use crate::region::RegionId;
use crate::space::DimensionId;
use crate::storage::StoreError;
use crate::storage::upkeep::FoundRequest;
use bevy::prelude::*;
use std::num::NonZeroU32;
use std::path::PathBuf;
use thiserror::Error;

/// Saves everything, and makes a backup while the game continues. [`WorldBackedUp`](crate::view::WorldBackedUp) or
/// [`BackupFailed`](crate::view::BackupFailed) with the same number answers.
///
/// An app that ends meanwhile waits for the backup, which takes as long as copying the changes takes.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct BackupWorld {
    /// A number of the game's choice, which the answer repeats.
    pub request: u64,
    /// The folder of backups, created if necessary. Data that did not change since the last backup in it takes no space.
    pub folder: PathBuf,
    /// How many of the newest backups in the folder are kept; the others are removed. `None` keeps all.
    pub keep: Option<NonZeroU32>,
}

/// Saves everything now. [`WorldSaved`](crate::view::WorldSaved) with the same number answers when it is durable, or
/// [`SaveFailed`](crate::view::SaveFailed) if a region halted with unsaved changes.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveWorld {
    /// A number of the game's choice, which the answer repeats.
    pub request: u64,
}

/// Why a save is incomplete, or has no backup.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SaveError {
    /// The store could not write.
    #[error(transparent)]
    Commit(#[from] StoreError),
    /// A region halted before it handed out its unsaved changes.
    #[error("{region} of {dimension} halted: its changes since the last save are lost")]
    Halted {
        /// The region's dimension.
        dimension: DimensionId,
        /// The region.
        region: RegionId,
    },
    /// The app ended first.
    #[error("the app ended before everything was saved")]
    Ended,
    /// Everything is saved, but the backup failed.
    #[error(transparent)]
    Backup(#[from] WorkError),
}

/// The origin of a save request.
#[derive(Debug)]
pub enum SaveRequest {
    /// A message. The answer has the same number.
    Message(u64),
    /// A backup for the game, which follows the save.
    Backup(BackupWorld),
    /// A backup for another process, which follows the save.
    ProcessBackup(FoundRequest),
    /// A finished restore, with its record.
    Restore(PathBuf),
}
