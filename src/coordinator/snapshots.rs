//! Snapshot jobs: captures and restores of a box of the running world, column by column.
//!
//! A job sends its work as letters to the columns, so regions may merge and split meanwhile, and columns that are not loaded
//! are loaded for it and let go again. A few columns are under way at a time; the regions do the work at the end of their
//! ticks, and send back what does not fit into the budget. A restore goes in phases, each when the one before is done:
//! the blocks and whoever stood there, in the order that it was asked for, then the entities of the snapshot, and with them
//! the word that a column is done. A capture looks again, at its end, for entities that have crossed from columns that were
//! still to come into such as were captured; a restore removes those who have crossed so.
//!
//! A restore is remembered on disk before it changes anything, until all that it changed is saved (see [`records`]): what the
//! end of the process cuts short goes on, or is taken back, when its dimension is opened again.

mod error;
mod files;
mod job;
mod order;
mod progress;
mod records;
mod sightings;
mod stragglers;

use super::CoordinatorConfig;
use super::clocks::clock::Clock;
use super::dimension::Dimensions;
use super::exchange::Teller;
use super::publish::Publisher;
use super::saving::request::SaveRequest;
use super::saving::save::Saves;
use super::threads::{Place, Threads, WorkError};
use super::travel::letters::{Directory, Post};
use crate::simulation::{ColumnAnswer, WorkBudget};
use crate::space::{ColumnPos, DimensionId};
use crate::storage::{StoredDimension, WorldStore};
use bevy::prelude::*;
use files::{FileAnswer, FileWork};
use job::{Job, Limits, RecordEnd, Step, Surroundings};
use records::FoundRecord;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use uuid::Uuid;

pub use error::SnapshotJobError;
pub(super) use job::StoredPlaces;
pub use order::{
    AfterCrash, CaptureSnapshot, EntityRestore, RestoreSnapshot, SnapshotOrder, SnapshotSource, StoreSnapshot,
    UngeneratedGround,
};
pub use progress::{
    ColumnOutcome, ColumnResult, SnapshotJobId, SnapshotJobState, SnapshotJobStatus, SnapshotOutcome, SnapshotProgress,
};
pub(super) use records::RestoreRecords;
pub(super) use sightings::Sightings;

/// How much snapshot jobs may take of the world.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotConfig {
    /// Jobs that run at a time; the others wait in their order.
    pub jobs: usize,
    /// Columns that a job has under way at a time. Work on one waits for a tick of its region, so with few of them a job takes
    /// many ticks, however little there is to do.
    pub columns: usize,
    /// Those of them that nobody had loaded: so many are held loaded for a job.
    pub loading: usize,
    /// The part of a region's tick that work on columns may take, from 0 to 1. The first column of a tick is worked on in any
    /// case. In lockstep it does not count.
    pub tick_share: f64,
    /// Chunks that may be changed in a region's tick.
    pub chunks: usize,
    /// Where arenas are stored, and restores remembered that are under way; `None` for the folder `snapshots` in that of the world. A world
    /// that is not on disk has none of both without a folder.
    pub folder: Option<PathBuf>,
    /// Blocks along each side of an arena at the most.
    pub arena_side: u64,
}

impl Default for SnapshotConfig {
    /// One job at a time, 1,024 columns and 128 that are loaded for it, 60 % of a tick, 4,096 chunks; arenas of 1,024 blocks a side.
    fn default() -> Self {
        Self { jobs: 1, columns: 1_024, loading: 128, tick_share: 0.6, chunks: 4_096, folder: None, arena_side: 1_024 }
    }
}

impl SnapshotConfig {
    /// Where snapshots of a world are.
    pub(super) fn folder_in(&self, store: &WorldStore) -> Option<PathBuf> {
        self.folder.clone().or_else(|| store.snapshot_folder())
    }
}

/// Queues snapshot jobs, from the main world, from a region's systems or from any thread: a resource in each of these worlds,
/// to be cloned.
///
/// Each job has an entity with [`SnapshotProgress`] in the main world as long as it lasts.
#[derive(Resource, Clone)]
pub struct SnapshotJobs {
    teller: Teller,
    last: Arc<AtomicU64>,
}

impl SnapshotJobs {
    pub(super) fn new(teller: Teller) -> Self {
        Self { teller, last: Arc::default() }
    }

    /// Queues a capture.
    pub fn capture(&self, capture: CaptureSnapshot) -> SnapshotJobId {
        self.queue(SnapshotOrder::Capture(capture))
    }

    /// Queues a restore.
    pub fn restore(&self, restore: RestoreSnapshot) -> SnapshotJobId {
        self.queue(SnapshotOrder::Restore(restore))
    }

    /// Cancels a job. What is under way at this moment is finished: each chunk is as it was, or restored.
    pub fn cancel(&self, job: SnapshotJobId) {
        self.teller.tell(SnapshotEvent::Cancelled(job).tell());
    }

    fn next_id(&self) -> SnapshotJobId {
        SnapshotJobId(self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn queue(&self, task: SnapshotOrder) -> SnapshotJobId {
        let id = self.next_id();
        self.teller.tell(SnapshotEvent::Queued(id, Box::new(task)).tell());
        id
    }
}

/// What the coordinator hears of snapshot jobs.
pub enum SnapshotEvent {
    Queued(SnapshotJobId, Box<SnapshotOrder>),
    Cancelled(SnapshotJobId),
    /// A column was worked on for so long.
    Worked(SnapshotJobId, ColumnPos, Box<ColumnAnswer>, Duration),
    /// Where entities are stored.
    Found(SnapshotJobId, Result<StoredPlaces, WorkError>),
    /// What came of work on files.
    Files(SnapshotJobId, Result<FileAnswer, SnapshotJobError>),
}

impl SnapshotEvent {
    fn tell(self) -> impl FnOnce(&mut World) + Send + 'static {
        move |world: &mut World| world.resource_mut::<Snapshots>().events.push(self)
    }
}

/// The jobs.
#[derive(Resource)]
pub struct Snapshots {
    jobs: SnapshotJobs,
    waiting: VecDeque<Job>,
    running: BTreeMap<SnapshotJobId, Job>,
    events: Vec<SnapshotEvent>,
    /// `None` if nothing is remembered.
    records: Option<RestoreRecords>,
    /// Restores that wait until their dimension is opened again.
    interrupted: Vec<(PathBuf, Box<RestoreSnapshot>)>,
    /// The records of restores that are done and not saved, as far as nobody was asked to save them.
    done: Vec<PathBuf>,
    /// When that is asked for.
    save_at: Duration,
    /// The jobs that came to their end in this pass.
    pub ended: Vec<SnapshotJobStatus>,
}

impl Snapshots {
    /// Takes up what earlier sessions did not end.
    pub fn open(jobs: SnapshotJobs, records: Option<(RestoreRecords, Vec<FoundRecord>)>, store: &WorldStore) -> Self {
        let (records, found) = records.unzip();
        let known = store.dimensions();
        let is_gone = |id: DimensionId| {
            let is_it = |known: &StoredDimension| known.id == id && !known.being_removed;
            known.as_ref().is_ok_and(|known| !known.iter().any(is_it))
        };
        let mut interrupted = Vec::new();
        for (path, restore) in found.unwrap_or_default() {
            match restore {
                Ok(restore) if is_gone(restore.dimension) => {
                    if let Err(error) = records::remove(&path) {
                        warn!("{}: a restore in a dimension that is gone stays: {error}", path.display());
                    }
                }
                Ok(restore) => interrupted.push((path, Box::new(restore))),
                Err(error) => error!("a restore was cut short and cannot go on: {error}"),
            }
        }
        let (waiting, running, events, done, ended) = Default::default();
        Self { jobs, waiting, running, events, records, interrupted, done, save_at: Duration::ZERO, ended }
    }

    pub fn jobs(&self) -> &SnapshotJobs {
        &self.jobs
    }

    /// Whether a restore needs what is stored there, or will when it goes on.
    pub fn restores_from(&self, folder: &Path) -> bool {
        let running = self.waiting.iter().chain(self.running.values()).filter_map(Job::recovery);
        let mut restores = running.chain(self.interrupted.iter().map(|(_, restore)| &**restore));
        restores.any(|restore| restore.snapshot.folder() == Some(folder))
    }

    /// Records of restores that are done, to be removed when all is saved.
    pub fn take_done(&mut self) -> impl Iterator<Item = SaveRequest> {
        mem::take(&mut self.done).into_iter().map(SaveRequest::Restore)
    }

    /// The restores of dimensions that are open now go on, before all others.
    fn resume(&mut self, is_open: impl Fn(DimensionId) -> bool) {
        let resumed: Vec<_> = self.interrupted.extract_if(.., |(_, restore)| is_open(restore.dimension)).collect();
        for (path, restore) in resumed.into_iter().rev() {
            self.waiting.push_front(Job::resumed(self.jobs.next_id(), *restore, path));
        }
    }
}

/// Takes in what came of the work, and orders more.
pub fn work_on_snapshots(
    config: Res<CoordinatorConfig>,
    clock: Res<Clock>,
    mut dimensions: ResMut<Dimensions>,
    mut directory: ResMut<Directory>,
    mut saves: ResMut<Saves>,
    mut post: ResMut<Post>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
    mut snapshots: ResMut<Snapshots>,
) {
    let snapshots = &mut *snapshots;
    let now = clock.now;
    take_events(snapshots, now);
    snapshots.done.append(&mut saves.unsaved_restores);
    snapshots.resume(|id| dimensions.open.get(&id).is_some_and(|open| !open.is_closing()));
    let (gone, kept): (Vec<_>, Vec<_>) = mem::take(&mut snapshots.waiting).into_iter().partition(Job::is_cancelled);
    snapshots.waiting = kept.into();
    while snapshots.running.len() < config.snapshots.jobs.max(1)
        && let Some(job) = snapshots.waiting.pop_front()
    {
        if job.is_watching() {
            directory.sightings.watch(job.id, job.dimension(), job.area());
        }
        snapshots.running.insert(job.id, job);
    }
    let is_over = |_: &SnapshotJobId, job: &mut Job| {
        job.note_left(directory.sightings.take(job.id));
        let mut world = Surroundings { dimensions: &mut dimensions, directory: &directory, saves: &saves };
        advance(job, now, &config, &mut world, &mut post, &mut threads)
    };
    let ended: Vec<_> = snapshots.running.extract_if(.., is_over).map(|(_, job)| job).collect();
    for mut job in gone.into_iter().chain(ended) {
        match job.take_record() {
            Some(RecordEnd::Remove(path)) => snapshots.done.push(path),
            Some(RecordEnd::Keep(path, restore)) => snapshots.interrupted.push((path, restore)),
            None => {}
        }
        directory.sightings.end(job.id);
        let status = job.end();
        snapshots.ended.push(status.clone());
        publisher.snapshot(status);
    }
    for job in snapshots.waiting.iter_mut().chain(snapshots.running.values_mut()) {
        if let Some(status) = job.tell(now) {
            publisher.snapshot(status);
        }
    }
    // Once in a period for all: a save asks every region.
    if !snapshots.done.is_empty() && now >= snapshots.save_at {
        snapshots.save_at = now.saturating_add(config.autosave_period);
        saves.requested.extend(snapshots.take_done());
    }
}

fn take_events(snapshots: &mut Snapshots, now: Duration) {
    let Snapshots { waiting, running, events, .. } = snapshots;
    let mut worked = Vec::new();
    for event in mem::take(events) {
        match event {
            SnapshotEvent::Queued(id, task) => {
                let record = match &*task {
                    SnapshotOrder::Restore(_) => snapshots.records.as_mut().map(RestoreRecords::next_path),
                    SnapshotOrder::Capture(_) => None,
                };
                waiting.push_back(Job::new(id, *task, record));
            }
            SnapshotEvent::Cancelled(id) => {
                waiting.iter_mut().chain(running.values_mut()).filter(|job| job.id == id).for_each(Job::cancel);
            }
            SnapshotEvent::Worked(id, column, answer, took) => worked.push((id, column, answer, took)),
            SnapshotEvent::Found(id, places) => {
                if let Some(job) = running.get_mut(&id) {
                    job.take_stored(places);
                }
            }
            SnapshotEvent::Files(id, answer) => {
                if let Some(job) = running.get_mut(&id) {
                    job.take_files(answer);
                }
            }
        }
    }
    // In lockstep the same on every machine, whichever region thread was first.
    worked.sort_by_key(|(id, column, ..)| (*id, *column));
    for (id, column, answer, took) in worked {
        if let Some(job) = running.get_mut(&id) {
            job.take(column, *answer, took, now);
        }
    }
}

/// Orders what the job wants now; says whether it has come to its end.
fn advance(
    job: &mut Job,
    now: Duration,
    coordinator: &CoordinatorConfig,
    world: &mut Surroundings,
    post: &mut Post,
    threads: &mut Threads,
) -> bool {
    let config = &coordinator.snapshots;
    let limits = Limits { columns: config.columns.max(1), loading: config.loading.max(1) };
    let share = (!coordinator.mode.is_lockstep()).then_some(config.tick_share);
    let budget = WorkBudget { share, chunks: config.chunks.max(1) };
    loop {
        match job.next(now, limits, world) {
            Step::Work(column, work) => {
                let (id, teller) = (job.id, threads.teller());
                let tell = move |answer, took| {
                    let event = SnapshotEvent::Worked(id, column, Box::new(answer), took);
                    teller.tell(event.tell());
                };
                post.send(work.letter(job.dimension(), job.place_of(column), budget, job.is_void(), tell));
            }
            Step::FindStored(entities) => find_stored(job.id, entities, threads),
            Step::Files(work) => work_on_files(job, work, threads),
            Step::Wait => return false,
            Step::End => return true,
        }
    }
}

/// Finds out where entities are stored; an event tells.
fn find_stored(job: SnapshotJobId, entities: Vec<Uuid>, threads: &mut Threads) {
    threads.ask(
        Place::Loading,
        move |store, _| store.entity_places(&entities).map_err(WorkError::from),
        move |world, places| SnapshotEvent::Found(job, places.flatten()).tell()(world),
    );
}

fn work_on_files(job: &Job, work: FileWork, threads: &mut Threads) {
    let (id, is_void, done) = (job.id, job.is_void(), job.of_files());
    threads.ask(
        Place::Beside("terrane snapshot"),
        move |store, blocks| {
            work.expect_place(store)?;
            work.run(blocks, &is_void, &done)
        },
        move |world, done| {
            let done = done.unwrap_or_else(|error| Err(error.into()));
            SnapshotEvent::Files(id, done).tell()(world);
        },
    );
}

/// All that a restore changed is saved.
pub fn forget_restore(record: PathBuf, threads: &mut Threads) {
    let path = record.clone();
    threads.ask(
        Place::Beside("terrane snapshot"),
        move |_, _| {
            if let Err(error) = records::remove(&path) {
                warn!("{}: a restore that is done cannot be forgotten, and is done again: {error}", path.display());
            }
        },
        |world, done| {
            if let Err(error) = done {
                warn!("{}: a restore that is done is forgotten later: {error}", record.display());
                world.resource_mut::<Snapshots>().done.push(record);
            }
        },
    );
}
