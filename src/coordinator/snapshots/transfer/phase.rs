//! The phases of a job, and their order.

use super::columns::{Columns, Round};
use super::task::{StoredPlaces, Task};
use crate::block::BlockRegistry;
use crate::coordinator::messages::faults::WorkError;
use crate::coordinator::messages::jobs::JobId;
use crate::coordinator::messages::snapshots::JobError;
use crate::coordinator::messages::snapshots::{EntityRestore, SnapshotOrder, SnapshotSource, StoreSnapshot};
use crate::coordinator::saves::Saves;
use crate::coordinator::snapshots::{files, records};
use crate::coordinator::surroundings::Surroundings;
use crate::simulation::{ColumnAnswer, ColumnWork};
use crate::snapshot::StoredSnapshot;
use crate::space::{ColumnPos, DimensionId};
use crate::storage::WorldStore;
use crate::work::Progress;
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use uuid::Uuid;

/// Answers for jobs that were not taken yet.
#[derive(Resource, Default)]
pub struct Answers {
    /// The results of work done elsewhere.
    pub elsewhere: Vec<(JobId, SyncCell<Take>)>,
}

/// Hands a result to its job.
pub type Take = Box<dyn FnOnce(&mut Task, &mut Phase) + Send>;

/// The thread for work on files.
const FILES: Option<&str> = Some("terrane snapshot");

/// The current phase of a job, with the data that only this phase needs.
///
/// | phase | work | ends |
/// |---|---|---|
/// | `Idle` | none: other jobs come first, or this one cannot continue | when it is the job's turn |
/// | `Read` | a stored snapshot is read | when it is in memory |
/// | `Capture` | each column is captured | when all have answered |
/// | `Look` | regions with captured columns look for entities that were missed | when each of them has answered or halted |
/// | `Store` | the captured snapshot is stored | when its files are synced |
/// | `Record` | a restore is recorded on disk | when its record is synced |
/// | `Blocks` | blocks are restored and entities are removed | when all have answered; once for each step of the sequence |
/// | `Clear` | regions with restored columns remove entities that crossed into them | when each of them has answered or halted |
/// | `Find` | the stored places of the snapshot's entities are looked up | when they are known |
/// | `Entities` | entities are added, and each column is marked as restored | when all have answered |
///
/// [`Phase::next`] chooses the next phase:
///
/// | job | phases |
/// |---|---|
/// | a capture | `Capture`, `Look` if entities are captured, `Store` if the snapshot is to be stored |
/// | a restore from memory | `Record`, `Blocks`, `Clear` if an entity may have crossed, `Find`, `Entities` |
/// | a restore from disk | `Read`, then the same as from memory |
/// | a restore that can be undone | `Capture` and `Look` before `Record` |
/// | a restore that resumes after an interruption | the same as from disk, without `Record` and the phases for the undo |
///
/// Without a folder for records, or with `AfterCrash::Leave`, there is no `Record`. Entities that are kept are not looked for.
#[derive(Default)]
pub enum Phase {
    #[default]
    Idle,
    Read,
    Capture(Columns),
    /// With the entities that were captured before.
    Look(Round, Arc<FxHashSet<Uuid>>),
    Store,
    Record,
    Blocks(Columns),
    Clear(Round),
    Find(Option<StoredPlaces>),
    /// `None` if no entity is added.
    Entities(Columns, Option<StoredPlaces>),
}

impl Phase {
    /// The phase after a finished one; `None` at the end of the job.
    pub fn next(self, task: &mut Task, world: &mut Surroundings) -> Option<Self> {
        use SnapshotOrder::{Capture, Restore};
        if let Self::Look(..) = self {
            task.add_seen(world);
        }
        let order = task.order.clone();
        let next = match (&*order, self) {
            (Capture(_), Self::Idle) => task.begin_capture(world),
            (Capture(capture), Self::Capture(_)) if capture.parts.entities => task.begin_look(world),
            (Capture(capture), Self::Capture(_) | Self::Look(..)) => {
                task.begin_store(capture.store.clone()?, capture.dimension, world)
            }
            (Capture(_), _) => return None,

            (Restore(restore), Self::Idle) if let SnapshotSource::Stored(stored) = &restore.snapshot => {
                task.begin_read(stored.clone(), world)
            }
            (Restore(_), Self::Idle | Self::Read) if task.wants_undo() => task.begin_capture(world),
            (Restore(_), Self::Capture(_)) => task.begin_look(world),
            // A resumed restore has its record already.
            (Restore(_), Self::Idle | Self::Read | Self::Look(..)) if task.wants_record() => task.begin_record(world),
            (Restore(_), Self::Idle | Self::Read | Self::Look(..) | Self::Record) => task.begin_blocks(),
            (Restore(_), Self::Blocks(_)) if !task.steps.is_empty() => task.begin_blocks(),
            (Restore(_), Self::Blocks(_)) if task.wants_clear() => task.begin_clear(world),
            (Restore(restore), Self::Blocks(_) | Self::Clear(_)) if restore.entities != EntityRestore::Keep => {
                task.begin_find(world)
            }
            (Restore(_), Self::Blocks(_) | Self::Clear(_)) => Self::Entities(task.whole_columns(), None),
            (Restore(_), Self::Find(places)) => Self::Entities(task.whole_columns(), places),
            (Restore(_), Self::Store | Self::Entities(..)) => return None,
        };
        Some(next)
    }

    /// Orders the work of this phase that can be done now. Returns `true` if the phase is over.
    pub fn work(&mut self, task: &mut Task, world: &mut Surroundings) -> bool {
        let area = task.area;
        match self {
            Self::Capture(columns) => columns.order(task, world, Task::capture),
            Self::Blocks(columns) => columns.order(task, world, Task::restore),
            Self::Entities(columns, stored) => {
                let stored = stored.as_ref();
                columns.order(task, world, |task, piece, world| task.place_entities(piece, stored, world))
            }
            Self::Look(round, known) => round.order(task, world, || ColumnWork::Look { area, known: known.clone() }),
            Self::Clear(round) => {
                let Some(snapshot) = task.snapshot.clone() else { return true };
                round.order(task, world, || ColumnWork::Clear { area, snapshot: snapshot.clone() })
            }
            Self::Idle | Self::Read | Self::Store | Self::Record | Self::Find(_) => self.is_answered(task),
        }
    }

    /// Keeps the stored places of entities up to date, also while the job is paused: commits are kept for a place that is not.
    pub fn renew_places(&mut self, saves: &mut Saves) {
        if let Self::Find(Some(stored)) | Self::Entities(_, Some(stored)) = self {
            stored.renew(saves);
        }
    }

    /// Returns `true` if no answer from files or from the store is outstanding.
    pub fn is_answered(&self, task: &Task) -> bool {
        match self {
            Self::Read => task.snapshot.is_some(),
            Self::Store => task.outcome.stored.is_some(),
            Self::Record => !task.wants_record(),
            Self::Find(places) => places.is_some(),
            _ => true,
        }
    }

    pub fn has_columns_under_way(&self) -> bool {
        match self {
            Self::Capture(columns) | Self::Blocks(columns) | Self::Entities(columns, _) => columns.has_under_way(),
            Self::Look(round, _) | Self::Clear(round) => round.has_under_way(),
            _ => false,
        }
    }

    /// Takes the answer for a column. Returns it unless the column is retried.
    pub fn take(&mut self, column: ColumnPos, answer: ColumnAnswer, now: Duration) -> Option<ColumnAnswer> {
        match self {
            Self::Capture(columns) | Self::Blocks(columns) | Self::Entities(columns, _) => {
                columns.take(column, answer, now)
            }
            Self::Look(round, _) | Self::Clear(round) => round.take(column, answer),
            _ => None,
        }
    }
}

/// The beginnings of the phases.
impl Task {
    fn begin_capture(&self, world: &mut Surroundings) -> Phase {
        if self.captured.parts().entities {
            world.directory.sightings.watch(self.id, self.dimension, self.area);
        }
        Phase::Capture(self.whole_columns())
    }

    fn begin_look(&self, world: &mut Surroundings) -> Phase {
        // Entities in a region are seen there, or when they leave it.
        let mut sightings = mem::take(&mut world.directory.sightings);
        sightings.forget(self.id, |id| world.directory.is_in_region(id));
        world.directory.sightings = sightings;
        Phase::Look(Round::of(&self.captured, self.dimension, world), Arc::new(self.captured.entity_ids().collect()))
    }

    fn begin_store(&self, order: StoreSnapshot, dimension: DimensionId, world: &mut Surroundings) -> Phase {
        let (captured, mut tell) = (self.captured.clone(), self.tell_files());
        self.ask(
            world,
            FILES,
            move |store, blocks| {
                files::expect_place(store, &order.folder)?;
                files::store(order, (dimension, &captured), blocks, &mut tell)
            },
            |task, _, stored| task.outcome.stored = Some(stored),
        );
        Phase::Store
    }

    fn begin_read(&self, stored: Arc<StoredSnapshot>, world: &mut Surroundings) -> Phase {
        let (is_void, done) = (self.is_void.clone(), self.done.clone());
        self.ask(
            world,
            FILES,
            move |_, blocks| files::read(&stored, blocks, &is_void, &done),
            |task, _, snapshot| task.snapshot = Some(snapshot),
        );
        Phase::Read
    }

    fn begin_record(&mut self, world: &mut Surroundings) -> Phase {
        self.prepare_record();
        if let Some(record) = self.record.clone() {
            let mut tell = self.tell_files();
            self.ask(
                world,
                FILES,
                move |store, blocks| {
                    files::expect_place(store, &record.path)?;
                    Ok(records::write(&record.path, &record.restore, blocks, &mut tell)?)
                },
                |task, _, ()| task.record.iter_mut().for_each(|record| record.is_written = true),
            );
        }
        Phase::Record
    }

    fn begin_blocks(&mut self) -> Phase {
        Phase::Blocks(Columns::new(self.steps.pop_front().unwrap_or_default()))
    }

    fn begin_clear(&self, world: &Surroundings) -> Phase {
        let snapshot = self.snapshot.as_ref();
        Phase::Clear(snapshot.map(|snapshot| Round::of(snapshot, self.dimension, world)).unwrap_or_default())
    }

    fn begin_find(&self, world: &mut Surroundings) -> Phase {
        let entities = self.snapshot.iter().flat_map(|snapshot| snapshot.entities());
        let entities: Vec<Uuid> = entities.map(|entity| entity.id).collect();
        let moment = world.saves.begin_question();
        self.ask(
            world,
            None,
            move |store, _| {
                let found = store.entity_places(&entities).map_err(WorkError::from)?;
                Ok(StoredPlaces::new(&entities, found, moment))
            },
            |_, phase, places| *phase = Phase::Find(Some(places)),
        );
        Phase::Find(None)
    }

    /// Starts work elsewhere, and hands its result to the job.
    fn ask<T: Send + 'static>(
        &self,
        world: &mut Surroundings,
        thread: Option<&'static str>,
        work: impl FnOnce(&WorldStore, &BlockRegistry) -> Result<T, JobError> + Send + 'static,
        take: fn(&mut Task, &mut Phase, T),
    ) {
        let id = self.id;
        world.threads.ask(thread, work, move |world, result| {
            let take = move |task: &mut Task, phase: &mut Phase| match result.map_err(JobError::from).flatten() {
                Ok(value) => take(task, phase, value),
                Err(error) => {
                    // Work elsewhere has failed, so its answer never comes.
                    *phase = Phase::Idle;
                    task.fail(error);
                }
            };
            world.resource_mut::<Answers>().elsewhere.push((id, SyncCell::new(Box::new(take))));
        });
    }

    /// Counts the columns that work on files has done, and stops that work when the job is void.
    fn tell_files(&self) -> impl FnMut(&Progress) -> ControlFlow<()> + Send + use<> {
        let (is_void, done, mut before) = (self.is_void.clone(), self.done.clone(), 0);
        move |progress: &Progress| {
            done.fetch_add((progress.done - before) as usize, Ordering::Relaxed);
            before = progress.done;
            is_void.go_on()
        }
    }
}
