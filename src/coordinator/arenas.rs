//! Arenas: boxes with a name whose snapshots are on disk, created, reverted and removed by orders from any world or thread.
//!
//! What may be done when is in [`book`]; what is done are snapshot jobs, which this waits for. Each arena has the folder
//! `arenas/NAME` within that of the snapshots: a stored snapshot with what [`owner_data`] says.

mod arena;
mod book;
mod owner_data;

use super::clocks::clock::Clock;
use super::events::{ArenaCreated, ArenaRefused, ArenaRemoved, ArenaReverted};
use super::exchange::Teller;
use super::publish::Publisher;
use super::snapshots::{
    CaptureSnapshot, ColumnResult, RestoreSnapshot, SnapshotJobError, SnapshotJobState, SnapshotJobStatus,
    SnapshotOutcome, Snapshots, StoreSnapshot,
};
use super::threads::{Place, Threads};
use crate::snapshot::{StoredSnapshot, StoredSnapshotError};
use crate::work::FileError;
use bevy::prelude::*;
use book::{ArenaBook, Stage};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io, mem};

pub use arena::{Arena, ArenaDamage, ArenaError, ArenaOrder, ArenaSettings, ArenaState, ArenaStatus};

/// Creates, reverts and removes arenas, from the main world, from a region's systems or from any thread: a resource in each of
/// these worlds, to be cloned. Messages in the main world tell what came of it: [`ArenaCreated`], [`ArenaReverted`],
/// [`ArenaRemoved`], and [`ArenaRefused`] for what is not done.
#[derive(Resource, Clone)]
pub struct Arenas {
    teller: Teller,
}

impl Arenas {
    pub(super) fn new(teller: Teller) -> Self {
        Self { teller }
    }

    /// Captures the arena as it is now, and stores it.
    pub fn create(&self, arena: Arena) {
        self.send(ArenaEvent::Create(Box::new(arena)));
    }

    /// Makes the arena what it was when it was created.
    pub fn revert(&self, name: impl Into<String>) {
        self.send(ArenaEvent::Revert(name.into()));
    }

    /// Forgets the arena and its snapshot. The ground stays as it is.
    pub fn remove(&self, name: impl Into<String>) {
        self.send(ArenaEvent::Remove(name.into()));
    }

    fn send(&self, event: ArenaEvent) {
        self.teller.tell(|world| world.resource_mut::<ArenaDesk>().events.push(event));
    }
}

/// What the coordinator hears of arenas.
pub enum ArenaEvent {
    Create(Box<Arena>),
    Revert(String),
    Remove(String),
    /// What is stored of it is gone, or not.
    Removed(String, Result<(), SnapshotJobError>),
}

/// The arenas.
#[derive(Resource)]
pub struct ArenaDesk {
    /// `None` if there is no folder for them.
    folder: Option<PathBuf>,
    book: ArenaBook,
    events: Vec<ArenaEvent>,
    /// The main world was told of all that were found.
    is_told: bool,
}

impl ArenaDesk {
    /// Finds the arenas in the folder of all snapshots.
    ///
    /// # Errors
    /// They cannot be listed: a new one could be made over one that is there.
    pub fn open(snapshots: Option<&Path>, most_side: u64) -> Result<Self, FileError> {
        let folder = snapshots.map(|snapshots| snapshots.join("arenas"));
        let mut book = ArenaBook::new(most_side);
        let found = match &folder {
            Some(folder) => folders(folder).map_err(FileError::of(folder, "list"))?,
            None => Vec::new(),
        };
        for (name, path) in found {
            match read(&path) {
                Ok((arena, stored)) if book::key(&arena.name) == name => book.restore(arena, Arc::new(stored)),
                Ok((arena, _)) => book.restore_damaged(name, ArenaDamage::OtherArena { found: arena.name }),
                Err(error) => {
                    error!("arena {name} is damaged: {error}");
                    book.restore_damaged(name, error);
                }
            }
        }
        Ok(Self { folder, book, events: Vec::new(), is_told: false })
    }
}

/// The folders within a folder, by name.
fn folders(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<(Arena, StoredSnapshot), ArenaDamage> {
    let stored = StoredSnapshot::open(path)?;
    let arena = owner_data::read(stored.owner_data(), stored.dimension(), *stored.area())?;
    Ok((arena, stored))
}

/// Removes what is stored of an arena, damaged or not.
fn remove(folder: &Path) -> Result<(), StoredSnapshotError> {
    match StoredSnapshot::open(folder) {
        Ok(stored) => stored.remove(),
        Err(_) => Ok(fs::remove_dir_all(folder).map_err(FileError::of(folder, "remove"))?),
    }
}

/// What the work on arenas touches.
struct Desk<'a> {
    now: Duration,
    threads: &'a mut Threads,
    publisher: &'a mut Publisher,
}

/// Does what was asked, and takes in what came of the jobs.
pub fn tend_arenas(
    clock: Res<Clock>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
    mut arenas: ResMut<ArenaDesk>,
    mut snapshots: ResMut<Snapshots>,
) {
    let arenas = &mut *arenas;
    let desk = &mut Desk { now: clock.now, threads: &mut threads, publisher: &mut publisher };
    if !mem::replace(&mut arenas.is_told, true) {
        for entry in arenas.book.entries() {
            desk.publisher.arena(entry.arena.clone(), Some(entry.status()));
        }
    }
    for ended in mem::take(&mut snapshots.ended) {
        desk.end_arena_job(arenas, &ended);
    }
    for event in mem::take(&mut arenas.events) {
        let refused = match event {
            ArenaEvent::Create(arena) => {
                let name = arena.name.clone();
                desk.create_arena(arenas, &snapshots, *arena).map_err(|error| (name, ArenaOrder::Create, error))
            }
            ArenaEvent::Revert(name) => {
                desk.revert_arena(arenas, &snapshots, &name).map_err(|error| (name.clone(), ArenaOrder::Revert, error))
            }
            ArenaEvent::Remove(name) => {
                desk.remove_arena(arenas, &snapshots, &name).map_err(|error| (name.clone(), ArenaOrder::Remove, error))
            }
            ArenaEvent::Removed(name, result) => {
                desk.end_removal_of_arena(arenas, name, result);
                Ok(())
            }
        };
        if let Err((name, order, error)) = refused {
            desk.publisher.event(ArenaRefused { name, order, error });
        }
    }
    let now = desk.now;
    for entry in arenas.book.entries() {
        match &mut entry.stage {
            Stage::CoolingDown(until) if now >= *until => {
                entry.stage = Stage::Ready;
                desk.publisher.arena(entry.arena.clone(), Some(entry.status()));
            }
            Stage::Reverting { job, until, is_late } if now >= *until && !*is_late => {
                *is_late = true;
                snapshots.jobs().cancel(*job);
            }
            _ => {}
        }
    }
}

impl Desk<'_> {
    fn create_arena(&mut self, arenas: &mut ArenaDesk, snapshots: &Snapshots, arena: Arena) -> Result<(), ArenaError> {
        let folder = arenas.folder.as_ref().ok_or(ArenaError::NoFolder)?.join(book::key(&arena.name));
        arenas.book.check(&arena)?;
        let store = StoreSnapshot { owner_data: owner_data::write(&arena), ..StoreSnapshot::at(folder) };
        let capture = CaptureSnapshot { store: Some(store), ..CaptureSnapshot::new(arena.dimension, arena.area) };
        let (name, job) = (arena.name.clone(), snapshots.jobs().capture(capture));
        arenas.book.begin(arena, job);
        self.tell_arena(arenas, &name);
        Ok(())
    }

    fn revert_arena(&mut self, arenas: &mut ArenaDesk, snapshots: &Snapshots, name: &str) -> Result<(), ArenaError> {
        let now = self.now;
        let (entry, stored) = arenas.book.revertible(name, now)?;
        let ArenaSettings { sequence, entities, after_crash, timeout, .. } = entry.arena.settings;
        let restore = RestoreSnapshot::new(entry.arena.dimension, stored);
        let job = snapshots.jobs().restore(RestoreSnapshot { sequence, entities, after_crash, ..restore });
        entry.stage = Stage::Reverting { job, until: now.saturating_add(timeout), is_late: false };
        self.tell_arena(arenas, name);
        Ok(())
    }

    fn remove_arena(&mut self, arenas: &mut ArenaDesk, snapshots: &Snapshots, name: &str) -> Result<(), ArenaError> {
        let folder = arenas.folder.as_ref().ok_or(ArenaError::NoFolder)?.join(book::key(name));
        let entry = arenas.book.removable(name)?;
        // One that was cut short goes on without the arena being reverted by anybody.
        if snapshots.restores_from(&folder) {
            return Err(ArenaError::Busy { name: name.to_owned(), state: ArenaState::Reverting });
        }
        if let Some(entry) = entry {
            entry.stage = Stage::Removing;
        }
        self.tell_arena(arenas, name);
        let arena = name.to_owned();
        self.threads.ask(
            Place::Beside("terrane arena"),
            move |_, _| remove(&folder).map_err(SnapshotJobError::from),
            |world, removed| {
                let removed = removed.unwrap_or_else(|error| Err(error.into()));
                world.resource_mut::<ArenaDesk>().events.push(ArenaEvent::Removed(arena, removed));
            },
        );
        Ok(())
    }

    fn end_removal_of_arena(&mut self, arenas: &mut ArenaDesk, name: String, result: Result<(), SnapshotJobError>) {
        let arena = arenas.book.get_mut(&name).map(|entry| entry.arena.clone());
        match result {
            Ok(()) => {
                arenas.book.remove(&name);
                if let Some(arena) = arena {
                    self.publisher.arena(arena, None);
                }
                self.publisher.event(ArenaRemoved { name });
            }
            Err(source) => {
                if let Some(entry) = arenas.book.get_mut(&name) {
                    entry.stage = Stage::Ready;
                }
                self.tell_arena(arenas, &name);
                let error = ArenaError::Failed { name: name.clone(), source: source.into() };
                self.publisher.event(ArenaRefused { name, order: ArenaOrder::Remove, error });
            }
        }
    }

    /// A job has come to its end: perhaps one of an arena.
    fn end_arena_job(&mut self, arenas: &mut ArenaDesk, status: &SnapshotJobStatus) {
        let is_own = |stage: Stage| match stage {
            Stage::Creating(job) | Stage::Reverting { job, .. } => job == status.id,
            _ => false,
        };
        let now = self.now;
        let Some(entry) = arenas.book.entries().find(|entry| is_own(entry.stage)) else { return };
        let Some(outcome) = status.outcome.clone() else { return };
        let name = entry.arena.name.clone();
        if let Stage::Reverting { is_late, .. } = entry.stage {
            entry.stage = Stage::CoolingDown(now.saturating_add(entry.arena.settings.cooldown));
            entry.reverts += 1;
            let error = match failure(status.progress.state, &outcome) {
                _ if is_late => {
                    Some(ArenaError::TimedOut { name: name.clone(), timeout: entry.arena.settings.timeout })
                }
                Some(source) => Some(ArenaError::Failed { name: name.clone(), source: source.into() }),
                None => None,
            };
            self.tell_arena(arenas, &name);
            let took = status.progress.elapsed;
            self.publisher.event(ArenaReverted { name, took, outcome, error });
            return;
        }
        match (failure(status.progress.state, &outcome), outcome.stored.clone()) {
            (None, Some(stored)) => {
                (entry.stage, entry.stored) = (Stage::Ready, Some(stored));
                self.tell_arena(arenas, &name);
                self.publisher.event(ArenaCreated { name, outcome });
            }
            (error, stored) => {
                let arena = entry.arena.clone();
                arenas.book.remove(&name);
                self.publisher.arena(arena, None);
                if let Some(stored) = stored {
                    let folder = stored.folder().to_owned();
                    self.threads.ask(
                        Place::Beside("terrane arena"),
                        move |_, _| remove(stored.folder()).map_err(SnapshotJobError::from),
                        move |_, removed| {
                            if let Err(error) = removed.unwrap_or_else(|error| Err(error.into())) {
                                warn!("{}: what is left of an arena stays: {error}", folder.display());
                            }
                        },
                    );
                }
                let source = error.unwrap_or(SnapshotJobError::Cancelled);
                let error = ArenaError::Failed { name: name.clone(), source: source.into() };
                self.publisher.event(ArenaRefused { name, order: ArenaOrder::Create, error });
            }
        }
    }

    fn tell_arena(&mut self, arenas: &mut ArenaDesk, name: &str) {
        if let Some(entry) = arenas.book.get_mut(name) {
            self.publisher.arena(entry.arena.clone(), Some(entry.status()));
        }
    }
}

/// Why a job has not done all that it should.
fn failure(state: SnapshotJobState, outcome: &SnapshotOutcome) -> Option<SnapshotJobError> {
    let failed = outcome.columns.iter().find_map(|column| match &column.result {
        ColumnResult::Failed(error) => Some(error.clone().into()),
        _ => None,
    });
    match state {
        SnapshotJobState::Finished => failed,
        SnapshotJobState::Failed => outcome.error.clone(),
        _ => Some(SnapshotJobError::Cancelled),
    }
}
