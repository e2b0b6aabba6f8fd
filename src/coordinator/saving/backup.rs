//! Backups of the running world: everything is saved first, then a thread of its own makes the backup while the game goes on.
//! The game asks for them by a message, and the program `terrane` by a file in the world's folder, which the storage thread
//! looks for each second.

use super::request::{BackupOrder, BackupWorld, SaveError, SaveRequest, SaveWorld};
use crate::coordinator::clocks::clock::Clock;
use crate::coordinator::dimension::Store;
use crate::coordinator::events::{BackupFailed, SaveFailed, WorldBackedUp, WorldEvent, WorldSaved};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saving::save::Saves;
use crate::coordinator::snapshots::forget_restore;
use crate::coordinator::threads::Threads;
use crate::coordinator::threads::beside::Place;
use crate::coordinator::threads::work_error::WorkError;
use crate::storage::upkeep::FoundRequest;
use crate::storage::{Backup, WorldStore};

use bevy::prelude::*;
use std::mem;
use std::time::Duration;

/// The time between two looks for requests.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

pub(crate) fn save_world(In(SaveWorld { request }): In<SaveWorld>, mut saves: ResMut<Saves>) {
    saves.requested.push(SaveRequest::Message(request));
}

pub(crate) fn back_up_world(In(backup): In<BackupWorld>, mut saves: ResMut<Saves>) {
    saves.requested.push(SaveRequest::Backup(BackupOrder::Game(backup)));
}

impl BackupOrder {
    /// Answers another process; for the game it gives the answer.
    pub fn answer(self, result: Result<Backup, SaveError>) -> Option<WorldEvent> {
        match self {
            Self::Process(found) => {
                match &result {
                    Ok(backup) => info!("backup {} was made in {}", backup.number, found.folder.display()),
                    Err(error) => warn!("no backup was made in {}: {error}", found.folder.display()),
                }
                found.answer(result.as_ref().map_err(ToString::to_string));
                None
            }
            Self::Game(BackupWorld { request, .. }) => Some(match result {
                Ok(Backup { number, bytes, .. }) => WorldBackedUp { request, number, bytes }.into(),
                Err(error) => BackupFailed { request, error }.into(),
            }),
        }
    }
}

pub fn look_for_requests(clock: Res<Clock>, store: Res<Store>, threads: Res<Threads>, mut saves: ResMut<Saves>) {
    if clock.now < saves.next_look || store.0.folder().is_none() {
        return;
    }
    let is_asked = threads.ask_when_idle(find_requests, |world, found| {
        let found = found.into_iter().map(|found| SaveRequest::Backup(BackupOrder::Process(found)));
        world.resource_mut::<Saves>().requested.extend(found);
    });
    if is_asked {
        saves.next_look = clock.now.saturating_add(LOOK_PERIOD);
    }
}

/// Looks for backups that other processes ask for.
fn find_requests(store: &WorldStore) -> Vec<FoundRequest> {
    store.folder().map_or(Ok(Vec::new()), FoundRequest::find).unwrap_or_else(|error| {
        warn!("nobody can ask for a backup of the running world: {error}");
        Vec::new()
    })
}

/// Makes a backup of what is stored.
fn back_up(order: BackupOrder, threads: &mut Threads) {
    let (folder, keep) = match &order {
        BackupOrder::Game(BackupWorld { folder, keep, .. }) => (folder.clone(), *keep),
        BackupOrder::Process(found) => (found.folder.clone(), found.keep),
    };
    threads.ask(
        Place::Beside("terrane backup"),
        move |store, _| store.back_up(&folder, keep).map_err(WorkError::from),
        |world, made| {
            if let Some(event) = order.answer(made.flatten().map_err(SaveError::from)) {
                world.resource_mut::<Publisher>().event(event);
            }
        },
    );
}

impl Saves {
    /// Everything that was asked to be saved is durable.
    pub fn answer(&mut self, threads: &mut Threads, publisher: &mut Publisher) {
        for request in mem::take(&mut self.answered) {
            match request {
                SaveRequest::Message(request) => publisher.event(WorldSaved { request }),
                SaveRequest::Backup(order) => back_up(order, threads),
                SaveRequest::Restore(record) => forget_restore(record, threads),
            }
        }
    }

    /// Not everything could be saved.
    pub fn fail(&mut self, requests: Vec<SaveRequest>, error: SaveError, publisher: &mut Publisher) {
        let mut numbers = Vec::new();
        for request in requests {
            match request {
                SaveRequest::Message(number) => numbers.push(number),
                SaveRequest::Backup(order) => {
                    if let Some(event) = order.answer(Err(error.clone())) {
                        publisher.event(event);
                    }
                }
                SaveRequest::Restore(record) => self.unsaved_restores.push(record),
            }
        }
        publisher.event(SaveFailed { error, requests: numbers });
    }
}
