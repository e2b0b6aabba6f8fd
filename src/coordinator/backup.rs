//! Backups of the running world: everything is saved first, then a thread of its own makes the backup while the game goes on.

use super::collect::Desk;
use super::events::{BackupFailed, SaveFailed, WorldSaved};
use bevy::prelude::*;
use std::mem;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Saves everything, and makes a backup of it while the game goes on. [`WorldBackedUp`](super::WorldBackedUp) or [`BackupFailed`] with the same
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

/// Whom a save is for.
#[derive(Clone, Debug)]
pub(super) enum SaveRequest {
    /// A message with this number answers it.
    Message(u64),
    /// A backup follows it.
    Backup(BackupWorld),
}

impl Desk<'_> {
    /// Everything that was asked to be saved is durable.
    pub fn answer_saves(&mut self) {
        for request in mem::take(&mut self.saves.answers) {
            match request {
                SaveRequest::Message(request) => self.publisher.event(WorldSaved { request }),
                SaveRequest::Backup(backup) => self.threads.back_up(backup),
            }
        }
    }

    /// Not everything could be saved.
    pub fn fail_saves(&mut self, requests: Vec<SaveRequest>, error: String) {
        let mut numbers = Vec::new();
        for request in requests {
            match request {
                SaveRequest::Message(number) => numbers.push(number),
                SaveRequest::Backup(BackupWorld { request, .. }) => {
                    self.publisher.event(BackupFailed { request, error: error.clone() });
                }
            }
        }
        self.publisher.event(SaveFailed { error, requests: numbers });
    }
}
