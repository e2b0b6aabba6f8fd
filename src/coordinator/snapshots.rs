//! Snapshot jobs: captures and restores of a box of the running world, column by column.
//!
//! A job sends its work as letters to the columns, so regions may merge and split meanwhile, and columns that are not loaded
//! are loaded for it and let go again. A few columns are under way at a time; the regions do the work at the end of their
//! ticks, and send back what does not fit into the budget. A restore goes in phases, each when the one before is done:
//! the blocks and whoever stood there, in the order that it was asked for, then the entities of the snapshot, and with them
//! the word that a column is done. A capture looks again, at its end, for entities that have crossed from columns that were
//! still to come into such as were captured.

mod job;
mod order;
mod progress;
mod sightings;
mod stragglers;

use super::collect::Desk;
use super::exchange::Event;
use crate::simulation::{ColumnAnswer, WorkBudget};
use crate::space::ColumnPos;
use bevy::prelude::*;
use crossbeam_channel::Sender;
use job::{Job, Step, Surroundings};
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(super) use job::StoredPlaces;
pub use order::{CaptureSnapshot, EntityRestore, RestoreSnapshot, SnapshotTask, UngeneratedGround};
pub use progress::{
    ColumnOutcome, ColumnResult, SnapshotJobId, SnapshotJobState, SnapshotJobStatus, SnapshotOutcome, SnapshotProgress,
};
pub(super) use sightings::Sightings;

/// How much snapshot jobs may take of the world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SnapshotSettings {
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
}

impl Default for SnapshotSettings {
    /// One job at a time, 1,024 columns and 128 that are loaded for it, 60 % of a tick, 4,096 chunks.
    fn default() -> Self {
        Self { jobs: 1, columns: 1_024, loading: 128, tick_share: 0.6, chunks: 4_096 }
    }
}

/// Queues snapshot jobs, from the main world, from a region's systems or from any thread: a resource in each of these worlds,
/// to be cloned.
///
/// Each job has an entity with [`SnapshotProgress`] in the main world as long as it lasts.
#[derive(Resource, Clone)]
pub struct SnapshotJobs {
    events: Sender<Event>,
    last: Arc<AtomicU64>,
}

impl SnapshotJobs {
    pub(super) fn new(events: Sender<Event>) -> Self {
        Self { events, last: Arc::default() }
    }

    /// Queues a capture.
    pub fn capture(&self, capture: CaptureSnapshot) -> SnapshotJobId {
        self.queue(SnapshotTask::Capture(capture))
    }

    /// Queues a restore.
    pub fn restore(&self, restore: RestoreSnapshot) -> SnapshotJobId {
        self.queue(SnapshotTask::Restore(restore))
    }

    /// Cancels a job. What is under way at this moment is finished: each chunk is as it was, or restored.
    pub fn cancel(&self, job: SnapshotJobId) {
        // The coordinator is gone only while the app shuts down.
        let _ = self.events.send(Event::Snapshot(SnapshotEvent::Cancelled(job)));
    }

    fn queue(&self, task: SnapshotTask) -> SnapshotJobId {
        let id = SnapshotJobId(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let _ = self.events.send(Event::Snapshot(SnapshotEvent::Queued(id, Box::new(task))));
        id
    }
}

/// What the coordinator hears of snapshot jobs.
pub(super) enum SnapshotEvent {
    Queued(SnapshotJobId, Box<SnapshotTask>),
    Cancelled(SnapshotJobId),
    /// A column was worked on for so long.
    Worked(SnapshotJobId, ColumnPos, Box<ColumnAnswer>, Duration),
    /// Where entities are stored.
    Found(SnapshotJobId, Result<StoredPlaces, String>),
}

/// The jobs.
#[derive(Resource, Default)]
pub(super) struct Snapshots {
    waiting: VecDeque<Job>,
    running: BTreeMap<SnapshotJobId, Job>,
}

/// Takes in what came of the work, and orders more.
pub(super) fn work_on_snapshots(mut desk: Desk, mut snapshots: ResMut<Snapshots>) {
    let Snapshots { waiting, running } = &mut *snapshots;
    let now = desk.clock.now;
    let mut worked = Vec::new();
    for event in mem::take(&mut desk.inbound.snapshots) {
        match event {
            SnapshotEvent::Queued(id, task) => waiting.push_back(Job::new(id, *task)),
            SnapshotEvent::Cancelled(id) => {
                waiting.iter_mut().chain(running.values_mut()).filter(|job| job.id == id).for_each(Job::cancel);
            }
            SnapshotEvent::Worked(id, column, answer, took) => worked.push((id, column, answer, took)),
            SnapshotEvent::Found(id, places) => {
                if let Some(job) = running.get_mut(&id) {
                    job.take_stored(places);
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
    let (gone, kept): (Vec<_>, Vec<_>) = mem::take(waiting).into_iter().partition(Job::is_cancelled);
    *waiting = kept.into();
    gone.into_iter().for_each(|job| desk.publisher.snapshot(job.end()));
    while running.len() < desk.config.snapshots.jobs.max(1)
        && let Some(job) = waiting.pop_front()
    {
        if job.is_watching() {
            desk.sightings.watch(job.id, job.dimension(), job.area());
        }
        running.insert(job.id, job);
    }
    let mut ended = Vec::new();
    for (id, job) in running.iter_mut() {
        job.note_left(desk.sightings.take(*id));
        if desk.advance(job) {
            desk.sightings.end(*id);
            ended.push(*id);
        }
    }
    for job in ended.into_iter().filter_map(|id| running.remove(&id)) {
        desk.publisher.snapshot(job.end());
    }
    for job in waiting.iter_mut().chain(running.values_mut()) {
        if let Some(status) = job.tell(now) {
            desk.publisher.snapshot(status);
        }
    }
}

impl Desk<'_> {
    /// Orders what the job wants now; says whether it has come to its end.
    fn advance(&mut self, job: &mut Job) -> bool {
        let (now, settings) = (self.clock.now, self.config.snapshots);
        let share = (!self.config.mode.is_lockstep()).then_some(settings.tick_share);
        let budget = WorkBudget { share, chunks: settings.chunks.max(1) };
        loop {
            let mut world =
                Surroundings { dimensions: &mut self.dimensions, directory: &self.directory, saves: &self.saves };
            match job.next(now, &settings, &mut world) {
                Step::Work(column, work) => {
                    let (id, sender) = (job.id, self.threads.sender());
                    let tell = move |answer, took| {
                        let event = SnapshotEvent::Worked(id, column, Box::new(answer), took);
                        drop(sender.send(Event::Snapshot(event)));
                    };
                    self.post(work.letter(job.dimension(), job.place_of(column), budget, job.is_void(), tell));
                }
                Step::FindStored(entities) => self.threads.find_stored(job.id, entities),
                Step::Wait => return false,
                Step::End => return true,
            }
        }
    }
}
