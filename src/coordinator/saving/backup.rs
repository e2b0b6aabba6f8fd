//! Backups of the running world: everything is saved first, then a thread of its own makes the backup while the game goes on.
//! The game asks for them by a message, and the program `terrane` by a file in the world's folder, which the storage thread
//! looks for each second.

use crate::coordinator::desk::Desk;
use crate::coordinator::events::{BackupFailed, SaveFailed, WorldBackedUp, WorldEvent, WorldSaved};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saving::save::Saves;
use crate::coordinator::snapshots;
use crate::coordinator::threads::{Place, WorkError};
use crate::region::RegionId;
use crate::space::DimensionId;
use crate::storage::upkeep::FoundRequest;
use crate::storage::{Backup, CommitError, WorldStore};

use bevy::prelude::*;
use std::mem;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// The time between two looks for requests.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Saves everything, and makes a backup of it while the game goes on. [`WorldBackedUp`] or [`BackupFailed`] with the same
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

/// Saves everything now. [`WorldSaved`] with the same number answers when it is durable, or [`SaveFailed`] if a region halted
/// before it had handed out what was unsaved.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveWorld {
    /// A number of the game's choice, to know the answer by.
    pub request: u64,
}

pub(crate) fn save_world(In(SaveWorld { request }): In<SaveWorld>, mut saves: ResMut<Saves>) {
    saves.requested.push(SaveRequest::Message(request));
}

pub(crate) fn back_up_world(In(backup): In<BackupWorld>, mut saves: ResMut<Saves>) {
    saves.requested.push(SaveRequest::Backup(backup.into()));
}

/// Why not everything is saved, or there is no backup of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SaveError {
    /// The store could not write.
    #[error(transparent)]
    Commit(#[from] CommitError),
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
    /// A backup follows it.
    Backup(BackupOrder),
    /// A restore is done, whose record is there.
    Restore(PathBuf),
}

/// A backup that is to be made.
#[derive(Debug)]
pub struct BackupOrder {
    pub folder: PathBuf,
    pub keep: Option<NonZeroU32>,
    asker: Asker,
}

/// Who asked for a backup.
#[derive(Debug)]
enum Asker {
    /// The game, with this number.
    Game(u64),
    /// Another process.
    Process(FoundRequest),
}

impl From<BackupWorld> for BackupOrder {
    fn from(BackupWorld { request, folder, keep }: BackupWorld) -> Self {
        Self { folder, keep, asker: Asker::Game(request) }
    }
}

impl From<FoundRequest> for BackupOrder {
    fn from(found: FoundRequest) -> Self {
        Self { folder: found.folder.clone(), keep: found.keep, asker: Asker::Process(found) }
    }
}

impl BackupOrder {
    /// Answers another process; for the game it gives the answer.
    pub fn answer(self, result: Result<Backup, SaveError>) -> Option<WorldEvent> {
        match self.asker {
            Asker::Process(found) => {
                match &result {
                    Ok(backup) => info!("backup {} was made in {}", backup.number, self.folder.display()),
                    Err(error) => warn!("no backup was made in {}: {error}", self.folder.display()),
                }
                found.answer(result.as_ref().map_err(ToString::to_string));
                None
            }
            Asker::Game(request) => Some(match result {
                Ok(Backup { number, bytes, .. }) => WorldBackedUp { request, number, bytes }.into(),
                Err(error) => BackupFailed { request, error }.into(),
            }),
        }
    }
}

/// When the storage thread looks for requests of other processes.
#[derive(Resource, Default)]
pub struct BackupLook {
    next_at: Duration,
}

pub fn look_for_requests(desk: Desk, mut look: ResMut<BackupLook>) {
    let now = desk.clock.now;
    if now >= look.next_at
        && desk.store.0.folder().is_some()
        && desk.threads.ask_when_idle(find_requests, |world, found| {
            let found = found.into_iter().map(|found| SaveRequest::Backup(found.into()));
            world.resource_mut::<Saves>().requested.extend(found);
        })
    {
        look.next_at = now.saturating_add(LOOK_PERIOD);
    }
}

/// Looks for backups that other processes ask for.
fn find_requests(store: &WorldStore) -> Vec<FoundRequest> {
    store.folder().map_or(Ok(Vec::new()), FoundRequest::find).unwrap_or_else(|error| {
        warn!("nobody can ask for a backup of the running world: {error}");
        Vec::new()
    })
}

impl Desk<'_> {
    /// Makes a backup of what is stored; an event tells when it is done.
    fn back_up(&mut self, order: BackupOrder) {
        let (folder, keep) = (order.folder.clone(), order.keep);
        self.threads.ask(
            Place::Beside("terrane backup"),
            move |store, _| store.back_up(&folder, keep).map_err(WorkError::from),
            |world, made| {
                if let Some(event) = order.answer(made.flatten().map_err(SaveError::from)) {
                    world.resource_mut::<Publisher>().event(event);
                }
            },
        );
    }

    /// Everything that was asked to be saved is durable.
    pub fn answer_saves(&mut self) {
        for request in mem::take(&mut self.saves.answers) {
            match request {
                SaveRequest::Message(request) => self.publisher.event(WorldSaved { request }),
                SaveRequest::Backup(order) => self.back_up(order),
                SaveRequest::Restore(record) => snapshots::forget_restore(&mut self.threads, record),
            }
        }
    }

    /// Not everything could be saved.
    pub fn fail_saves(&mut self, requests: Vec<SaveRequest>, error: SaveError) {
        let mut numbers = Vec::new();
        for request in requests {
            match request {
                SaveRequest::Message(number) => numbers.push(number),
                SaveRequest::Backup(order) => {
                    if let Some(event) = order.answer(Err(error.clone())) {
                        self.publisher.event(event);
                    }
                }
                SaveRequest::Restore(record) => snapshots::keep_restore(&self.threads, record),
            }
        }
        self.publisher.event(SaveFailed { error, requests: numbers });
    }
}
