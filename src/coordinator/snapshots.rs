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

use super::exchange::{MainLink, Teller};
use super::publish::Publisher;
use super::saving::request::SaveRequest;
use super::threads::{Place, Threads};
use crate::space::DimensionId;
use crate::storage::{StoredDimension, WorldStore};
use bevy::prelude::*;
use job::{Job, Surroundings};
use records::Record;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use error::SnapshotJobError;
pub(super) use job::{ColumnAnswers, PhaseAnswers};
pub use order::{
    AfterCrash, CaptureSnapshot, EntityRestore, RestoreSnapshot, SnapshotConfig, SnapshotOrder, SnapshotSource,
    StoreSnapshot, UngeneratedGround,
};
pub use progress::{
    ColumnOutcome, ColumnResult, SnapshotJob, SnapshotJobId, SnapshotJobState, SnapshotJobStatus, SnapshotOutcome,
    SnapshotProgress,
};
pub(super) use records::RestoreRecords;
pub(super) use sightings::Sightings;

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
        self.teller.tell(move |world| world.resource_mut::<Snapshots>().cancel(job));
    }

    fn next_id(&self) -> SnapshotJobId {
        SnapshotJobId(self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn queue(&self, order: SnapshotOrder) -> SnapshotJobId {
        let id = self.next_id();
        self.teller.tell(move |world| world.resource_mut::<Snapshots>().add(id, order));
        id
    }
}

impl MainLink {
    /// Queues snapshot jobs.
    pub fn snapshot_jobs(&self) -> SnapshotJobs {
        SnapshotJobs { teller: self.teller.clone(), last: self.last_job.clone() }
    }
}

/// The jobs.
#[derive(Resource)]
pub struct Snapshots {
    handle: SnapshotJobs,
    /// Those that run, and then those that wait, in their order.
    jobs: Vec<Job>,
    /// `None` if nothing is remembered.
    records: Option<RestoreRecords>,
    /// Restores that wait until their dimension is opened again.
    interrupted: Vec<Record>,
    /// The records of restores that are done and not saved, as far as nobody was asked to save them.
    done: Vec<PathBuf>,
    /// When that is asked for.
    save_at: Duration,
    /// The jobs that came to their end in this pass.
    pub ended: Vec<SnapshotJobStatus>,
}

impl Snapshots {
    /// Takes up what earlier sessions did not end.
    pub fn open(handle: SnapshotJobs, records: Option<(RestoreRecords, Vec<Record>)>, store: &WorldStore) -> Self {
        let (records, found) = records.unzip();
        let mut interrupted = found.unwrap_or_default();
        let known = store.dimensions();
        let is_gone = |id: DimensionId| {
            let is_it = |known: &StoredDimension| known.id == id && !known.being_removed;
            known.as_ref().is_ok_and(|known| !known.iter().any(is_it))
        };
        for Record { path, .. } in interrupted.extract_if(.., |record| is_gone(record.restore.dimension)) {
            if let Err(error) = records::remove(&path) {
                warn!("{}: a restore in a dimension that is gone stays: {error}", path.display());
            }
        }
        let (jobs, done, ended) = Default::default();
        Self { handle, jobs, records, interrupted, done, save_at: Duration::ZERO, ended }
    }

    /// Queues a job.
    pub fn start(&mut self, order: SnapshotOrder) -> SnapshotJobId {
        let id = self.handle.next_id();
        self.add(id, order);
        id
    }

    fn add(&mut self, id: SnapshotJobId, order: SnapshotOrder) {
        let record = match (&order, &mut self.records) {
            (SnapshotOrder::Restore(restore), Some(records)) if restore.after_crash != AfterCrash::Leave => {
                Some(records.next(restore.clone()))
            }
            _ => None,
        };
        self.jobs.push(Job::new(id, order, record));
    }

    pub fn cancel(&mut self, job: SnapshotJobId) {
        self.job(job).into_iter().for_each(Job::cancel);
    }

    fn job(&mut self, id: SnapshotJobId) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.task.job.id == id)
    }

    /// Whether a restore needs what is stored there, or will when it goes on.
    pub fn restores_from(&self, folder: &Path) -> bool {
        let records = self.jobs.iter().filter_map(|job| job.task.record.as_ref());
        let mut records = records.chain(&self.interrupted);
        records.any(|record| record.restore.snapshot.folder() == Some(folder))
    }

    /// Records of restores that are done, to be removed when all is saved.
    pub fn take_done(&mut self) -> impl Iterator<Item = SaveRequest> {
        mem::take(&mut self.done).into_iter().map(SaveRequest::Restore)
    }

    /// The restores of dimensions that are open now go on, before all others.
    fn resume(&mut self, is_open: impl Fn(DimensionId) -> bool) {
        let place = self.jobs.iter().take_while(|job| job.has_begun()).count();
        let resumed = self.interrupted.extract_if(.., |record| is_open(record.restore.dimension));
        let job = |record: Record| {
            Job::new(self.handle.next_id(), SnapshotOrder::Restore(record.restore.clone()), Some(record))
        };
        drop(self.jobs.splice(place..place, resumed.map(job)));
    }

    /// The jobs take in what came of that which they asked for; in lockstep in the same order on every machine, whichever region
    /// was first.
    fn take_answers(&mut self, columns: &mut ColumnAnswers, phases: &mut PhaseAnswers, now: Duration) {
        for (id, answer) in mem::take(phases.0.get()) {
            if let Some(job) = self.job(id) {
                job.hear(answer);
            }
        }
        let mut answers = mem::take(&mut columns.0);
        answers.sort_by_key(|(id, column, ..)| (*id, *column));
        for (id, column, answer, took) in answers {
            if let Some(job) = self.job(id) {
                job.take(column, answer, took, now);
            }
        }
    }

    /// A job is over.
    fn end(&mut self, mut job: Job) -> SnapshotJobStatus {
        if let Some(record) = job.task.record.take_if(|record| record.is_written) {
            match job.task.outcome.error {
                None | Some(SnapshotJobError::Cancelled) => self.done.push(record.path),
                Some(SnapshotJobError::NotOpen(_)) => self.interrupted.push(record),
                // The next session tries it again.
                Some(_) => {}
            }
        }
        let status = job.task.end();
        self.ended.push(status.clone());
        status
    }
}

/// The jobs take in what came of their work, and order more.
pub fn work_on_snapshots(
    mut world: Surroundings,
    mut snapshots: ResMut<Snapshots>,
    mut columns: ResMut<ColumnAnswers>,
    mut phases: ResMut<PhaseAnswers>,
    mut publisher: ResMut<Publisher>,
) {
    let now = world.clock.now;
    snapshots.take_answers(&mut columns, &mut phases, now);
    snapshots.done.append(&mut world.saves.unsaved_restores);
    snapshots.resume(|id| world.dimensions.open.get(&id).is_some_and(|open| !open.is_closing()));
    let mut room = world.config.snapshots.jobs.max(1);
    let is_over = |job: &mut Job| {
        if room == 0 || (!job.has_begun() && job.is_cancelled()) {
            return job.is_cancelled();
        }
        let is_over = job.advance(&mut world);
        room -= usize::from(!is_over);
        is_over
    };
    let ended: Vec<Job> = snapshots.jobs.extract_if(.., is_over).collect();
    for job in ended {
        // A capture that was cut short has its watch still.
        drop(world.directory.sightings.end(job.task.job.id));
        publisher.snapshot(snapshots.end(job));
    }
    for status in snapshots.jobs.iter_mut().filter_map(|job| job.tell(now)) {
        publisher.snapshot(status);
    }
    // Once in a period for all: a save asks every region.
    if !snapshots.done.is_empty() && now >= snapshots.save_at {
        snapshots.save_at = now.saturating_add(world.config.autosave_period);
        world.saves.requested.extend(snapshots.take_done());
    }
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
