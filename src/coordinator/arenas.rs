//! Arenas: named boxes with a snapshot on disk, which any world or thread can create, revert and remove.
//!
//! The rules are in [`book`]; the work is done by jobs. Each arena has the folder `arenas/NAME` within the folder of the
//! snapshots: a stored snapshot with the [`owner_data`] of the arena.

mod book;
mod owner_data;

use super::jobs::{JobBook, Jobs};
use super::publish::Publisher;
use super::threads::Threads;
use crate::coordinator::clock::Clock;
use crate::coordinator::messages::events::{ArenaCreated, ArenaRefused, ArenaRemoved, ArenaReverted};
use crate::coordinator::messages::jobs::{JobKind, JobOrder, JobState, JobStatus};
use crate::coordinator::messages::snapshots::JobError;
use crate::coordinator::messages::snapshots::{CaptureSnapshot, RestoreSnapshot, SnapshotOrder, StoreSnapshot};
use crate::coordinator::messages::snapshots::{ColumnResult, JobOutcome};
use bevy::prelude::*;
use std::mem;
use std::path::PathBuf;

pub use crate::coordinator::messages::arenas::{Arena, ArenaError, ArenaOrder, ArenaSettings, ArenaState, ArenaStatus};
pub(super) use book::ArenaBook;

/// Arenas. The results are messages in the main world: [`ArenaCreated`], [`ArenaReverted`], [`ArenaRemoved`], and
/// [`ArenaRefused`] for orders that are refused or fail.
impl Jobs {
    /// Captures the arena as it is now, and stores its snapshot.
    ///
    /// ```
    /// use bevy_terrane::prelude::*;
    /// use bevy_terrane::space::BlockBox;
    /// use bevy_terrane::view::{Arena, ArenaState, ArenaStatus, Jobs};
    ///
    /// fn open_arena(jobs: Res<Jobs>, mut opened: MessageReader<DimensionOpened>) {
    ///     let area = BlockBox::new(BlockPos::new(-64, 0, -64), BlockPos::new(63, 95, 63));
    ///     for DimensionOpened { dimension, .. } in opened.read() {
    ///         jobs.create_arena(Arena::new("spleef", *dimension, area));
    ///     }
    /// }
    ///
    /// fn next_round(jobs: Res<Jobs>, arenas: Query<(&Arena, &ArenaStatus)>) {
    ///     for (arena, status) in &arenas {
    ///         if status.state == ArenaState::Ready {
    ///             jobs.revert_arena(&arena.name);
    ///         }
    ///     }
    /// }
    /// # bevy::ecs::system::assert_is_system(open_arena);
    /// # bevy::ecs::system::assert_is_system(next_round);
    /// ```
    pub fn create_arena(&self, arena: Arena) {
        self.notifier.request(create_arena, arena);
    }

    /// Restores the arena to its state at creation.
    pub fn revert_arena(&self, name: impl Into<String>) {
        self.notifier.request(revert_arena, name.into());
    }

    /// Removes the arena and its snapshot. The blocks in the world stay.
    pub fn remove_arena(&self, name: impl Into<String>) {
        self.notifier.request(remove_arena, name.into());
    }
}

fn create_arena(
    In(arena): In<Arena>,
    mut book: ResMut<ArenaBook>,
    mut jobs: ResMut<JobBook>,
    mut publisher: ResMut<Publisher>,
) {
    let name = arena.name.clone();
    let created = book.check(&arena).map(|folder| {
        let store = StoreSnapshot { owner_data: owner_data::write(&arena), ..StoreSnapshot::at(folder) };
        let capture = CaptureSnapshot { store: Some(store), ..CaptureSnapshot::new(arena.dimension, arena.area) };
        book.begin(arena, jobs.start(SnapshotOrder::Capture(capture)));
    });
    if let Err(error) = created {
        publisher.event(ArenaRefused { name, order: ArenaOrder::Create, error });
    }
}

fn revert_arena(
    In(name): In<String>,
    clock: Res<Clock>,
    mut book: ResMut<ArenaBook>,
    mut jobs: ResMut<JobBook>,
    mut publisher: ResMut<Publisher>,
) {
    let reverting = book.revertible(&name, clock.now).map(|(entry, stored)| {
        let ArenaSettings { sequence, entities, after_crash, timeout, .. } = entry.arena.settings;
        let restore = RestoreSnapshot::new(entry.arena.dimension, stored);
        let restore = RestoreSnapshot { sequence, entities, after_crash, ..restore };
        entry.status.job = Some(jobs.start(SnapshotOrder::Restore(restore)));
        entry.status.state = ArenaState::Reverting;
        entry.until = clock.now.saturating_add(timeout);
    });
    if let Err(error) = reverting {
        publisher.event(ArenaRefused { name, order: ArenaOrder::Revert, error });
    }
}

fn remove_arena(
    In(name): In<String>,
    mut book: ResMut<ArenaBook>,
    mut threads: ResMut<Threads>,
    jobs: Res<JobBook>,
    mut publisher: ResMut<Publisher>,
) {
    let removable = book.removable(&name).and_then(|(entry, folder)| {
        // A revert that was interrupted resumes although no order has reverted the arena.
        if jobs.restores_from(&folder) {
            return Err(ArenaError::Busy { name: name.clone(), state: ArenaState::Reverting });
        }
        if let Some(entry) = entry {
            entry.status.state = ArenaState::Removing;
        }
        Ok(folder)
    });
    match removable {
        Ok(folder) => remove_stored(&mut threads, folder, move |world, removed| {
            let gone = world.resource_mut::<ArenaBook>().end_removal(&name, removed.is_ok());
            let mut publisher = world.resource_mut::<Publisher>();
            if let Some(arena) = gone {
                publisher.arena(arena, None);
            }
            match removed {
                Ok(()) => publisher.event(ArenaRemoved { name }),
                Err(source) => {
                    let error = ArenaError::Failed { name: name.clone(), source: source.into() };
                    publisher.event(ArenaRefused { name, order: ArenaOrder::Remove, error });
                }
            }
        }),
        Err(error) => publisher.event(ArenaRefused { name, order: ArenaOrder::Remove, error }),
    }
}

/// Removes the files of an arena on another thread.
fn remove_stored(
    threads: &mut Threads,
    folder: PathBuf,
    then: impl FnOnce(&mut World, Result<(), JobError>) + Send + 'static,
) {
    threads.ask(
        Some("terrane arena"),
        move |_, _| book::remove_folder(&folder).map_err(JobError::from),
        |world, removed| then(world, removed.map_err(JobError::from).flatten()),
    );
}

/// Handles finished jobs, and publishes the status of the arenas.
pub fn tend_arenas(
    clock: Res<Clock>,
    mut book: ResMut<ArenaBook>,
    mut jobs: ResMut<JobBook>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let now = clock.now;
    for JobStatus { job, progress, outcome } in mem::take(&mut jobs.ended) {
        let Some(entry) = book.entries().find(|entry| entry.status.job == Some(job.id)) else { continue };
        let Some(outcome) = outcome else { continue };
        let name = entry.arena.name.clone();
        let failure = failure(progress.state, &outcome);
        if matches!(job.kind, JobKind::Restore { .. }) {
            let error = entry.end_revert(progress.state, failure, now);
            publisher.event(ArenaReverted { name, took: progress.elapsed, outcome, error });
        } else if let (None, Some(stored)) = (&failure, &outcome.stored) {
            entry.end_creation(stored.clone());
            publisher.event(ArenaCreated { name, outcome });
        } else {
            publisher.arena(entry.arena.clone(), None);
            book.remove(&name);
            if let Some(stored) = &outcome.stored {
                let folder = stored.folder().to_owned();
                remove_stored(&mut threads, folder.clone(), move |_, removed| {
                    if let Err(error) = removed {
                        warn!("{}: the remains of an arena stay: {error}", folder.display());
                    }
                });
            }
            let source = failure.unwrap_or(JobError::Cancelled);
            let error = ArenaError::Failed { name: name.clone(), source: source.into() };
            publisher.event(ArenaRefused { name, order: ArenaOrder::Create, error });
        }
    }
    for entry in book.entries() {
        match entry.status {
            ArenaStatus { state: ArenaState::CoolingDown, .. } if now >= entry.until => {
                entry.status.state = ArenaState::Ready;
            }
            ArenaStatus { state: ArenaState::Reverting, job: Some(job), .. } if now >= entry.until => {
                jobs.control(job, JobOrder::Cancel);
            }
            _ => {}
        }
        if entry.told.as_ref() != Some(&entry.status) {
            entry.told = Some(entry.status.clone());
            publisher.arena(entry.arena.clone(), entry.told.clone());
        }
    }
}

/// The reason why a job is incomplete.
fn failure(state: JobState, outcome: &JobOutcome) -> Option<JobError> {
    let failed = outcome.columns.iter().find_map(|column| match &column.result {
        ColumnResult::Failed(error) => Some(error.clone().into()),
        _ => None,
    });
    match state {
        JobState::Finished => failed,
        JobState::Failed => outcome.error.clone(),
        _ => Some(JobError::Cancelled),
    }
}
