//! Backups of the running world: everything is saved first, then a thread of its own makes the backup while the game runs.
//! The game asks for backups by a message, and the program `terrane` by a file in the world's folder, which the storage thread
//! checks every second.

use crate::coordinator::clock::Clock;
use crate::coordinator::messages::events::{BackupFailed, SaveFailed, WorldBackedUp, WorldSaved};
use crate::coordinator::messages::faults::WorkError;
use crate::coordinator::messages::saving::{BackupWorld, SaveError, SaveRequest, SaveWorld};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::coordinator::snapshots::forget_restore;
use crate::coordinator::threads::Threads;
use crate::storage::upkeep::FoundRequest;
use crate::storage::{Backup, WorldStore};

use bevy::prelude::*;
use std::mem;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// The time between two checks for requests.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

pub(crate) fn save_world(In(SaveWorld { request }): In<SaveWorld>, mut saves: ResMut<Saves>) {
    saves.requested.push(SaveRequest::Message(request));
}

pub(crate) fn back_up_world(In(backup): In<BackupWorld>, mut saves: ResMut<Saves>) {
    saves.requested.push(SaveRequest::Backup(backup));
}

/// Sends the result of a backup to the game.
fn tell_game(request: u64, made: Result<Backup, SaveError>, publisher: &mut Publisher) {
    match made {
        Ok(Backup { number, bytes, .. }) => publisher.event(WorldBackedUp { request, number, bytes }),
        Err(error) => publisher.event(BackupFailed { request, error }),
    }
}

/// Sends the result of a backup to another process.
fn tell_process(found: FoundRequest, made: &Result<Backup, SaveError>) {
    match made {
        Ok(backup) => info!("backup {} was made in {}", backup.number, found.folder.display()),
        Err(error) => warn!("no backup was made in {}: {error}", found.folder.display()),
    }
    found.answer(made.as_ref().map_err(ToString::to_string));
}

pub fn look_for_requests(clock: Res<Clock>, threads: Res<Threads>, mut saves: ResMut<Saves>) {
    if clock.now < saves.next_look || threads.store.folder().is_none() {
        return;
    }
    let is_asked = threads.ask_when_idle(find_requests, |world, found| {
        let found = found.into_iter().map(SaveRequest::ProcessBackup);
        world.resource_mut::<Saves>().requested.extend(found);
    });
    if is_asked {
        saves.next_look = clock.now.saturating_add(LOOK_PERIOD);
    }
}

/// Finds the requests of other processes.
fn find_requests(store: &WorldStore) -> Vec<FoundRequest> {
    store.folder().map_or(Ok(Vec::new()), FoundRequest::find).unwrap_or_else(|error| {
        warn!("backups of the running world cannot be requested: {error}");
        Vec::new()
    })
}

/// Makes a backup of the store.
fn back_up(
    folder: PathBuf,
    keep: Option<NonZeroU32>,
    threads: &mut Threads,
    tell: impl FnOnce(Result<Backup, SaveError>, &mut Publisher) + Send + 'static,
) {
    threads.ask(
        Some("terrane backup"),
        move |store, _| store.back_up(&folder, keep).map_err(WorkError::from),
        |world, made| tell(made.flatten().map_err(SaveError::from), &mut world.resource_mut::<Publisher>()),
    );
}

impl Saves {
    /// Answers the requests for which everything is durable.
    pub fn answer(&mut self, threads: &mut Threads, publisher: &mut Publisher) {
        for request in mem::take(&mut self.to_answer) {
            match request {
                SaveRequest::Message(request) => publisher.event(WorldSaved { request }),
                SaveRequest::Backup(BackupWorld { request, folder, keep }) => {
                    back_up(folder, keep, threads, move |made, publisher| tell_game(request, made, publisher));
                }
                SaveRequest::ProcessBackup(found) => {
                    back_up(found.folder.clone(), found.keep, threads, move |made, _| tell_process(found, &made));
                }
                SaveRequest::Restore(record) => forget_restore(record, threads),
            }
        }
    }

    /// Fails the requests, since not everything could be saved.
    pub fn fail(&mut self, requests: Vec<SaveRequest>, error: SaveError, publisher: &mut Publisher) {
        let mut numbers = Vec::new();
        for request in requests {
            match request {
                SaveRequest::Message(number) => numbers.push(number),
                SaveRequest::Backup(backup) => tell_game(backup.request, Err(error.clone()), publisher),
                SaveRequest::ProcessBackup(found) => tell_process(found, &Err(error.clone())),
                SaveRequest::Restore(record) => self.unsaved_restores.push(record),
            }
        }
        publisher.event(SaveFailed { error, requests: numbers });
    }
}
