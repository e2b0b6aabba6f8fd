//! Jobs: captures, restores, pre-generations and far views. All of them share one path for starting, taking turns, pausing,
//! cancelling and reporting.
//!
//! [`Jobs`] hands a job to the coordinator, from any world or thread; [`JobBook`] holds all jobs. In each pass
//! [`work_on_jobs`] gives every job the results of its work, shares the room that viewers leave among the jobs that have a
//! turn, ends the finished ones, and reports the progress of the others to the main world and the store.

mod entry;
mod sweep;

use super::dimension::DimensionBook;
use super::far_view::{Listener, note_edits};
use super::publish::Publisher;
use super::snapshots::remove_record;
use crate::coordinator::clock::Clock;
use crate::coordinator::far_view::FarAnswers;
use crate::coordinator::messages::far_views::FarView;
use crate::coordinator::messages::faults::WorkError;
use crate::coordinator::messages::jobs::{JobId, JobOrder, JobStatus, Pregeneration};
use crate::coordinator::messages::saving::SaveRequest;
use crate::coordinator::messages::snapshots::JobError;
use crate::coordinator::messages::snapshots::{AfterCrash, CaptureSnapshot, RestoreSnapshot, SnapshotOrder};
use crate::coordinator::saves::Saves;
use crate::coordinator::snapshots::records::{Record, RestoreRecords};
use crate::coordinator::snapshots::transfer::Transfer;
use crate::coordinator::snapshots::transfer::columns::ColumnAnswers;
use crate::coordinator::snapshots::transfer::phase::Answers;
use crate::coordinator::surroundings::Surroundings;
use crate::coordinator::threads::exchange::{MainLink, Notifier};
use crate::simulation::ColumnAnswer;
use crate::space::{ColumnPos, DimensionId};
use crate::storage::{StoreError, StoredDimension, WorldStore};
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use entry::{Entry, Work};
use std::collections::BTreeMap;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Columns in flight for each generation thread, unless a setting says otherwise.
const IN_FLIGHT_PER_THREAD: usize = 64;

/// Starts and controls jobs, and creates, reverts and removes arenas, from the main world, from a region's systems or from any
/// thread. It is a resource in each of these worlds and can be cloned.
///
/// While a job lasts, the main world has an entity with its [`Job`](crate::view::Job) and
/// [`JobProgress`](crate::view::JobProgress).
#[derive(Resource, Clone, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(opaque)]
#[reflect(Resource, Clone)]
pub struct Jobs {
    pub(super) notifier: Notifier,
    last: Arc<AtomicU64>,
}

impl Jobs {
    /// Starts a capture.
    pub fn capture(&self, capture: CaptureSnapshot) -> JobId {
        self.begin(|book, id, _| book.transfer_entry(id, SnapshotOrder::Capture(capture)))
    }

    /// Starts a restore.
    pub fn restore(&self, restore: RestoreSnapshot) -> JobId {
        self.begin(|book, id, _| book.transfer_entry(id, SnapshotOrder::Restore(restore)))
    }

    /// Starts a pre-generation that was spawned in the main world.
    pub(crate) fn pregenerate(&self, order: Pregeneration) -> JobId {
        self.begin(move |_, id, _| Entry::pregeneration(id, order))
    }

    /// Starts a far view.
    pub(crate) fn listen(&self, view: FarView, at: Option<(DimensionId, ColumnPos)>) -> JobId {
        self.begin(move |_, id, now| Entry::far_view(id, Listener::new(view, at, now)))
    }

    /// Calls a function with the listener of a far view.
    pub(crate) fn to_listener(&self, job: JobId, tell: impl FnOnce(&mut Listener) + Send + 'static) {
        self.notifier.run(move |world| _ = world.resource_mut::<JobBook>().listener(job).map(tell));
    }

    /// Pauses, resumes or cancels a job.
    pub fn control(&self, job: JobId, order: JobOrder) {
        self.notifier.run(move |world| world.resource_mut::<JobBook>().control(job, order));
    }

    fn next_id(&self) -> JobId {
        JobId(self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn begin(&self, entry: impl FnOnce(&mut JobBook, JobId, Duration) -> Entry + Send + 'static) -> JobId {
        let id = self.next_id();
        self.notifier.run(move |world| {
            let now = world.resource::<Clock>().now;
            let mut book = world.resource_mut::<JobBook>();
            let entry = entry(&mut book, id, now);
            book.entries.insert(id, entry);
        });
        id
    }
}

impl MainLink {
    pub fn jobs(&self) -> Jobs {
        Jobs { notifier: self.notifier.clone(), last: self.last_job.clone() }
    }
}

#[derive(Resource)]
pub struct JobBook {
    handle: Jobs,
    entries: BTreeMap<JobId, Entry>,
    /// The last number under which a pre-generation of each dimension was stored.
    numbers: BTreeMap<DimensionId, u64>,
    /// The records of running restores; `None` if restores are not recorded.
    records: Option<RestoreRecords>,
    /// The records of finished restores for which no save was requested yet.
    pub done: Vec<PathBuf>,
    /// When the next save is requested for them.
    save_at: Duration,
    /// The jobs that ended in this pass.
    pub ended: Vec<JobStatus>,
    /// Why captures, restores and pre-generations are refused, if they are: several servers share the world.
    refusal: Option<StoreError>,
}

impl JobBook {
    /// Loads the restores that earlier sessions did not finish.
    pub fn open(handle: Jobs, records: Option<(RestoreRecords, Vec<Record>)>, store: &WorldStore) -> Self {
        let (records, found) = records.unzip();
        let (entries, numbers, done, ended) = Default::default();
        let refusal = store.require_alone("captures, restores and pre-generations").err();
        let mut book = Self { handle, entries, numbers, records, done, save_at: Duration::ZERO, ended, refusal };
        let known = store.dimensions();
        let is_gone = |id: DimensionId| {
            let is_it = |known: &StoredDimension| known.id == id && !known.being_removed;
            known.as_ref().is_ok_and(|known| !known.iter().any(is_it))
        };
        for record in found.into_iter().flatten() {
            if !is_gone(record.restore.dimension) {
                book.resume(record);
            } else if let Err(error) = remove_record(&record.path) {
                warn!("{}: the record of a restore in a removed dimension stays: {error}", record.path.display());
            }
        }
        book
    }

    /// Starts a capture or a restore.
    pub fn start(&mut self, order: SnapshotOrder) -> JobId {
        let id = self.handle.next_id();
        let entry = self.transfer_entry(id, order);
        self.entries.insert(id, entry);
        id
    }

    fn transfer_entry(&mut self, id: JobId, order: SnapshotOrder) -> Entry {
        let record = match (&order, &mut self.records) {
            (SnapshotOrder::Restore(restore), Some(records)) if restore.after_crash != AfterCrash::Leave => {
                Some(records.next(restore.clone()))
            }
            _ => None,
        };
        let mut entry = Entry::transfer(id, order, record);
        if let (Some(error), Work::Transfer(transfer)) = (&self.refusal, &mut entry.work) {
            transfer.task.fail(WorkError::from(error.clone()));
        }
        entry
    }

    /// Resumes an interrupted restore when its dimension is open.
    fn resume(&mut self, record: Record) {
        let order = SnapshotOrder::Restore(record.restore.clone());
        let id = self.handle.next_id();
        self.entries.insert(id, Entry::transfer(id, order, Some(record)));
    }

    pub fn control(&mut self, job: JobId, order: JobOrder) {
        self.entries.get_mut(&job).into_iter().for_each(|entry| entry.control(order));
    }

    pub fn transfer(&mut self, id: JobId) -> Option<&mut Transfer> {
        match &mut self.entries.get_mut(&id)?.work {
            Work::Transfer(transfer) => Some(transfer),
            Work::Sweep(_) | Work::FarView(_) => None,
        }
    }

    pub fn listener(&mut self, id: JobId) -> Option<&mut Listener> {
        self.entries.get_mut(&id)?.listener()
    }

    /// Returns `true` if a restore needs the snapshot in this folder, now or when it resumes.
    pub fn restores_from(&self, folder: &Path) -> bool {
        self.entries
            .values()
            .any(|entry| matches!(&entry.work, Work::Transfer(transfer) if transfer.restores_from(folder)))
    }

    /// The records of finished restores, to be removed when everything is saved.
    pub fn take_done(&mut self) -> impl Iterator<Item = SaveRequest> {
        mem::take(&mut self.done).into_iter().map(SaveRequest::Restore)
    }

    /// Begins the pre-generations of open dimensions: stored ones continue, and new ones get their numbers.
    fn begin_sweeps(&mut self, dimensions: &mut DimensionBook, saves: &mut Saves) {
        for (id, dimension) in dimensions.open.iter_mut().filter(|(_, open)| !open.is_closing()) {
            for (number, stored) in mem::take(&mut dimension.orders.stored_jobs) {
                let last = self.numbers.entry(*id).or_default();
                *last = number.max(*last);
                match stored {
                    Ok(stored) => {
                        let order = Pregeneration { dimension: dimension.id, area: stored.area };
                        self.stored_sweep((*id, number), order).begin_sweep(dimension, number, Some(stored));
                    }
                    Err(error) => {
                        warn!("the record of a pre-generation is dropped; its columns stay: {error}");
                        saves.pending.pregenerations.insert((*id, number), None);
                    }
                }
            }
            let is_new = |entry: &&mut Entry| {
                let sweep = entry.sweep();
                sweep.is_some_and(|sweep| sweep.place.is_none() && sweep.order.dimension == dimension.id)
            };
            for entry in self.entries.values_mut().filter(is_new) {
                if let Some(error) = &self.refusal {
                    error!("a pre-generation is cancelled: {error}");
                    entry.control(JobOrder::Cancel);
                    continue;
                }
                let last = self.numbers.entry(*id).or_default();
                *last += 1;
                entry.begin_sweep(dimension, *last, None);
            }
        }
    }

    /// The job for a stored pre-generation: the one from before its dimension was closed, one that the game has just ordered for
    /// the same area, or a new one.
    fn stored_sweep(&mut self, place: (DimensionId, u64), order: Pregeneration) -> &mut Entry {
        let find = |is_it: &dyn Fn(&sweep::Sweep) -> bool| {
            let found = self.entries.iter().find(|(_, entry)| entry.sweep().is_some_and(is_it));
            found.map(|(id, _)| *id)
        };
        let before = find(&|sweep| sweep.place == Some(place));
        let wanted = find(&|sweep| sweep.place.is_none() && sweep.order == order);
        let id = wanted.or(before).unwrap_or_else(|| self.handle.next_id());
        // The game has ordered it again: that is the same job, and earlier orders still count.
        let replaced = before.filter(|before| *before != id).and_then(|before| self.entries.remove(&before));
        let entry = self.entries.entry(id).or_insert_with(|| Entry::pregeneration(id, order));
        replaced.into_iter().for_each(|replaced| entry.take_over(&replaced));
        entry
    }

    /// Ends the jobs of a dimension whose store is erased: its pre-generations end, and restores no longer wait for it.
    pub fn end_jobs_of(
        &mut self,
        id: DimensionId,
        dimensions: &mut DimensionBook,
        saves: &mut Saves,
        publisher: &mut Publisher,
    ) {
        let restores = self.entries.values_mut().filter(|entry| entry.is_restore_in(id));
        restores.for_each(|restore| restore.control(JobOrder::Cancel));
        let is_of_it =
            |_: &JobId, entry: &mut Entry| entry.sweep().and_then(|sweep| sweep.place).is_some_and(|(of, _)| of == id);
        for (_, mut entry) in self.entries.extract_if(.., is_of_it) {
            entry.control(JobOrder::Cancel);
            publisher.job(entry.end(dimensions, saves));
        }
    }

    /// Gives each job the results of its work. In lockstep their order is the same on every machine, regardless of which region
    /// was first.
    fn take_answers(
        &mut self,
        world: &mut Surroundings,
        answers: &mut Answers,
        mut of_columns: Vec<(JobId, ColumnPos, ColumnAnswer, Duration)>,
    ) {
        let now = world.clock.now;
        for (id, take) in mem::take(&mut answers.elsewhere) {
            if let Some(transfer) = self.transfer(id) {
                SyncCell::to_inner(take)(&mut transfer.task, &mut transfer.phase);
            }
        }
        of_columns.sort_by_key(|(id, column, ..)| (*id, *column));
        for (id, column, answer, took) in of_columns {
            if let Some(transfer) = self.transfer(id) {
                transfer.take(column, answer, took, now);
            }
        }
        note_edits(world, self.entries.values_mut().filter_map(Entry::listener));
        for (id, entry) in &mut self.entries {
            // Paused jobs too: the dimension may be another one when the job resumes.
            match &mut entry.work {
                Work::FarView(listener) => listener.move_on(*id, world),
                Work::Transfer(transfer) => transfer.phase.renew_places(&mut world.saves),
                Work::Sweep(sweep) => {
                    let open = sweep.place.and_then(|(id, _)| world.dimensions.open.get_mut(&id));
                    if let Some(dimension) = open.filter(|open| !open.is_closing()) {
                        sweep.settle(dimension, &mut world.publisher);
                    }
                }
            }
        }
    }

    /// Decides which jobs run in this pass.
    fn give_turns(&mut self, world: &Surroundings) {
        let is_open = |id| world.dimensions.open.get(&id).is_some_and(|open| !open.is_closing());
        let (most, mut running) = (world.config.snapshots.jobs.max(1), BTreeMap::new());
        let mut in_order: Vec<&mut Entry> = self.entries.values_mut().collect();
        in_order.sort_by_key(|entry| entry.rank());
        for entry in in_order {
            let has_turn = entry.takes_turn(is_open, most, &mut running);
            entry.pass(world.clock.now, has_turn);
        }
    }

    /// Runs the jobs that have a turn. Returns the finished ones.
    fn work(&mut self, world: &mut Surroundings) -> Vec<Entry> {
        let turns = self.entries.values_mut().filter(|entry| entry.has_turn());
        let (mut sharing, others): (Vec<&mut Entry>, Vec<_>) = turns.partition(|entry| entry.takes_room());
        let mut sharers = sharing.len();
        let mut room = if sharers == 0 { 0 } else { room_for_jobs(world) };
        if sharers > 0 {
            // The first job gets the remainder, and each pass another job is first.
            sharing.rotate_left((world.orders.pass % sharers as u64) as usize);
        }
        let mut over = Vec::new();
        for entry in sharing.into_iter().chain(others) {
            let share = room.div_ceil(sharers.max(1));
            sharers -= usize::from(entry.takes_room());
            if entry.advance(world, &mut room, share) {
                over.push(entry.job.id);
            }
        }
        over.into_iter().filter_map(|id| self.entries.remove(&id)).collect()
    }

    /// Ends a job.
    fn end(&mut self, mut entry: Entry, world: &mut Surroundings) {
        let status = entry.end(&mut world.dimensions, &mut world.saves);
        if let Work::Transfer(transfer) = &mut entry.work {
            // A capture that was interrupted still has its watch.
            drop(world.directory.sightings.end(entry.job.id));
            if let Some(record) = transfer.take_record() {
                match status.outcome.as_ref().and_then(|outcome| outcome.error.as_ref()) {
                    None => self.done.push(record.path),
                    Some(JobError::NotOpen(id)) if world.dimensions.removed.contains(id) => self.done.push(record.path),
                    Some(JobError::NotOpen(_)) => self.resume(record),
                    // The next session tries again.
                    Some(_) => {}
                }
            }
        }
        self.ended.push(status.clone());
        world.publisher.job(status);
    }
}

/// The number of columns that jobs may order now. If viewers have reached their limit, jobs get no room.
fn room_for_jobs(world: &Surroundings) -> usize {
    let Surroundings { config, orders, saves, dimensions, .. } = world;
    if saves.is_behind() || orders.room(dimensions.in_flight_for_jobs()).generate == 0 {
        return 0;
    }
    // In lockstep the number must be the same on every machine.
    let threads = if config.tick_mode.is_lockstep() { 1 } else { config.threads.generation };
    let usual = IN_FLIGHT_PER_THREAD * threads;
    orders.limit.settings.pregeneration.unwrap_or(usual).max(1).saturating_sub(orders.in_flight())
}

/// Processes the results of all jobs, orders more work, and publishes their progress.
pub fn work_on_jobs(
    mut world: Surroundings,
    mut book: ResMut<JobBook>,
    mut answers: ResMut<Answers>,
    mut of_columns: ResMut<ColumnAnswers>,
    mut far: ResMut<FarAnswers>,
) {
    let (world, book) = (&mut world, &mut *book);
    book.begin_sweeps(&mut world.dimensions, &mut world.saves);
    for (job, claim, answers) in far.0.drain(..) {
        if let Some(listener) = book.listener(job) {
            listener.take_answers(claim, answers);
        }
    }
    book.take_answers(world, &mut answers, mem::take(&mut of_columns.0));
    book.done.append(&mut world.saves.unsaved_restores);
    book.give_turns(world);
    for entry in book.work(world) {
        book.end(entry, world);
    }
    for entry in book.entries.values_mut() {
        if let Some(status) = entry.tell(world) {
            world.publisher.job(status);
        }
    }
    // Once a period for all restores together, since a save asks every region.
    let now = world.clock.now;
    if !book.done.is_empty() && now >= book.save_at {
        book.save_at = now.saturating_add(world.config.saving.autosave_period);
        world.saves.requested.extend(book.take_done());
    }
}

/// Saves the jobs, so that the next session continues them.
pub fn keep_jobs(mut book: ResMut<JobBook>, mut dimensions: ResMut<DimensionBook>, mut saves: ResMut<Saves>) {
    book.begin_sweeps(&mut dimensions, &mut saves);
    book.entries.values().for_each(|entry| entry.save(&mut dimensions, &mut saves));
}
