//! Jobs: captures, restores and pre-generations. All of them begin, take turns, are paused, cancelled and told of on one path.
//!
//! [`Jobs`] hands a job to the coordinator, from any world or thread; [`JobBook`] has all of them. In each pass
//! [`work_on_jobs`] has every job take in what came of its work, gives those whose turn it is their share of the room that
//! viewers leave, ends what has come to its end, and tells the main world and the store how far the others are.

mod entry;
pub(super) mod job;
mod sweep;

use super::dimension::Dimensions;
use super::exchange::{MainLink, Teller};
use super::publish::Publisher;
use super::saving::request::SaveRequest;
use super::saving::save::Saves;
use super::snapshots::{
    AfterCrash, CaptureSnapshot, ColumnAnswers, JobError, PhaseAnswers, Record, RestoreRecords, RestoreSnapshot,
    SnapshotOrder, Surroundings, remove_record,
};
use crate::space::DimensionId;
use crate::storage::{StoredDimension, WorldStore};
use bevy::prelude::*;
use entry::{Entry, Lane, Work};
use job::{JobId, JobOrder, JobStatus, Pregeneration};
use std::collections::BTreeMap;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Columns that may be on order for each generation thread, unless a setting says otherwise.
const IN_FLIGHT_PER_THREAD: usize = 64;

/// Begins jobs and controls them, from the main world, from a region's systems or from any thread: a resource in each of these
/// worlds, to be cloned.
///
/// Each job has an entity with a [`Job`] and its [`JobProgress`](crate::view::JobProgress) in the main world as long as it lasts.
#[derive(Resource, Clone)]
pub struct Jobs {
    teller: Teller,
    last: Arc<AtomicU64>,
}

impl Jobs {
    /// Begins a capture.
    pub fn capture(&self, capture: CaptureSnapshot) -> JobId {
        self.begin(|book, id| book.transfer(id, SnapshotOrder::Capture(capture)))
    }

    /// Begins a restore.
    pub fn restore(&self, restore: RestoreSnapshot) -> JobId {
        self.begin(|book, id| book.transfer(id, SnapshotOrder::Restore(restore)))
    }

    /// Begins what was spawned in the main world.
    pub(crate) fn pregenerate(&self, order: Pregeneration) -> JobId {
        self.begin(move |book, id| book.entries.push(Entry::pregeneration(id, order)))
    }

    /// Tells a job what to do.
    pub fn control(&self, job: JobId, order: JobOrder) {
        self.teller.tell(move |world| world.resource_mut::<JobBook>().control(job, order));
    }

    fn next_id(&self) -> JobId {
        JobId(self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn begin(&self, begin: impl FnOnce(&mut JobBook, JobId) + Send + 'static) -> JobId {
        let id = self.next_id();
        self.teller.tell(move |world| begin(&mut world.resource_mut::<JobBook>(), id));
        id
    }
}

impl MainLink {
    /// Begins jobs.
    pub fn jobs(&self) -> Jobs {
        Jobs { teller: self.teller.clone(), last: self.last_job.clone() }
    }
}

/// All jobs.
#[derive(Resource)]
pub struct JobBook {
    handle: Jobs,
    entries: Vec<Entry>,
    /// The last number under which a pre-generation of each dimension was stored.
    numbers: BTreeMap<DimensionId, u64>,
    /// Restores are remembered in there; `None` if nothing is remembered.
    records: Option<RestoreRecords>,
    /// The records of restores that are done and not saved, as far as nobody was asked to save them.
    pub done: Vec<PathBuf>,
    /// When that is asked for.
    save_at: Duration,
    /// The jobs that came to their end in this pass.
    pub ended: Vec<JobStatus>,
}

impl JobBook {
    /// Takes up the restores that earlier sessions did not end.
    pub fn open(handle: Jobs, records: Option<(RestoreRecords, Vec<Record>)>, store: &WorldStore) -> Self {
        let (records, found) = records.unzip();
        let (entries, numbers, done, ended) = Default::default();
        let mut book = Self { handle, entries, numbers, records, done, save_at: Duration::ZERO, ended };
        let known = store.dimensions();
        let is_gone = |id: DimensionId| {
            let is_it = |known: &StoredDimension| known.id == id && !known.being_removed;
            known.as_ref().is_ok_and(|known| !known.iter().any(is_it))
        };
        for record in found.into_iter().flatten() {
            if !is_gone(record.restore.dimension) {
                book.resume(record);
            } else if let Err(error) = remove_record(&record.path) {
                warn!("{}: a restore in a dimension that is gone stays: {error}", record.path.display());
            }
        }
        book
    }

    /// Begins a capture or a restore.
    pub fn start(&mut self, order: SnapshotOrder) -> JobId {
        let id = self.handle.next_id();
        self.transfer(id, order);
        id
    }

    fn transfer(&mut self, id: JobId, order: SnapshotOrder) {
        let record = match (&order, &mut self.records) {
            (SnapshotOrder::Restore(restore), Some(records)) if restore.after_crash != AfterCrash::Leave => {
                Some(records.next(restore.clone()))
            }
            _ => None,
        };
        self.entries.push(Entry::transfer(id, order, record));
    }

    /// A restore that was cut short goes on when its dimension is open.
    fn resume(&mut self, record: Record) {
        let order = SnapshotOrder::Restore(record.restore.clone());
        self.entries.push(Entry::transfer(self.handle.next_id(), order, Some(record)));
    }

    pub fn control(&mut self, job: JobId, order: JobOrder) {
        self.entry(job).into_iter().for_each(|entry| entry.control(order));
    }

    fn entry(&mut self, id: JobId) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.job.id == id)
    }

    /// Whether a restore needs what is stored there, or will when it goes on.
    pub fn restores_from(&self, folder: &Path) -> bool {
        self.entries
            .iter()
            .any(|entry| matches!(&entry.work, Work::Transfer(transfer) if transfer.restores_from(folder)))
    }

    /// Records of restores that are done, to be removed when all is saved.
    pub fn take_done(&mut self) -> impl Iterator<Item = SaveRequest> {
        mem::take(&mut self.done).into_iter().map(SaveRequest::Restore)
    }

    /// The pre-generations of open dimensions: those that the store remembers go on, and new ones get their numbers.
    fn begin_sweeps(&mut self, dimensions: &mut Dimensions, saves: &mut Saves) {
        for (id, dimension) in dimensions.open.iter_mut().filter(|(_, open)| !open.is_closing()) {
            for (number, stored) in mem::take(&mut dimension.stored_jobs) {
                let last = self.numbers.entry(*id).or_default();
                *last = number.max(*last);
                match stored {
                    Ok(stored) => {
                        let order = Pregeneration { dimension: dimension.spec.entity, area: stored.area };
                        self.stored_sweep((*id, number), order).begin_sweep(dimension, number, Some(stored));
                    }
                    Err(error) => {
                        warn!("a pre-generation is forgotten, what it made is not: {error}");
                        saves.pending.pregenerations.insert((*id, number), None);
                    }
                }
            }
            let is_new = |entry: &&mut Entry| {
                let sweep = entry.sweep();
                sweep.is_some_and(|sweep| sweep.place.is_none() && sweep.order.dimension == dimension.spec.entity)
            };
            for entry in self.entries.iter_mut().filter(is_new) {
                let last = self.numbers.entry(*id).or_default();
                *last += 1;
                entry.begin_sweep(dimension, *last, None);
            }
        }
    }

    /// The job for what the store remembers: the one that it was before its dimension was closed, one that the game wants of the
    /// same area, or a new one.
    fn stored_sweep(&mut self, place: (DimensionId, u64), order: Pregeneration) -> &mut Entry {
        let find = |is_it: &dyn Fn(&sweep::Sweep) -> bool| {
            self.entries.iter().position(|entry| entry.sweep().is_some_and(is_it))
        };
        let known = find(&|sweep| sweep.place == Some(place))
            .or_else(|| find(&|sweep| sweep.place.is_none() && sweep.order == order));
        let index = known.unwrap_or_else(|| {
            self.entries.push(Entry::pregeneration(self.handle.next_id(), order));
            self.entries.len() - 1
        });
        &mut self.entries[index]
    }

    /// What is stored of a dimension is erased: its pre-generations end.
    pub fn end_sweeps_of(
        &mut self,
        id: DimensionId,
        dimensions: &mut Dimensions,
        saves: &mut Saves,
        publisher: &mut Publisher,
    ) {
        let is_of_it = |entry: &mut Entry| entry.sweep().and_then(|sweep| sweep.place).is_some_and(|(of, _)| of == id);
        for mut entry in self.entries.extract_if(.., is_of_it) {
            entry.control(JobOrder::Cancel);
            publisher.job(entry.end(dimensions, saves));
        }
    }

    /// The jobs take in what came of that which they asked for; in lockstep in the same order on every machine, whichever region
    /// was first.
    fn take_answers(&mut self, columns: &mut ColumnAnswers, phases: &mut PhaseAnswers, world: &mut Surroundings) {
        let now = world.clock.now;
        for (id, answer) in mem::take(phases.0.get()) {
            if let Some(Work::Transfer(transfer)) = self.entry(id).map(|entry| &mut entry.work) {
                transfer.hear(answer);
            }
        }
        let mut answers = mem::take(&mut columns.0);
        answers.sort_by_key(|(id, column, ..)| (*id, *column));
        for (id, column, answer, took) in answers {
            if let Some(Work::Transfer(transfer)) = self.entry(id).map(|entry| &mut entry.work) {
                transfer.take(column, answer, took, now);
            }
        }
        for entry in &mut self.entries {
            if let Work::Sweep(sweep) = &mut entry.work
                && let Some((id, _)) = sweep.place
                && let Some(dimension) = world.dimensions.open.get_mut(&id).filter(|open| !open.is_closing())
            {
                sweep.settle(dimension, &mut world.publisher);
            }
        }
    }

    /// Who runs in this pass.
    fn give_turns(&mut self, world: &Surroundings) {
        self.entries.sort_by_key(Entry::rank);
        let is_open = |id| world.dimensions.open.get(&id).is_some_and(|open| !open.is_closing());
        let mut running: BTreeMap<Lane, usize> = BTreeMap::new();
        for entry in &mut self.entries {
            let has_turn = entry.lane(is_open).is_some_and(|lane| {
                let most = if lane == Lane::Transfers { world.config.snapshots.jobs.max(1) } else { 1 };
                let running = running.entry(lane).or_default();
                *running += 1;
                *running <= most
            });
            entry.pass(world.clock.now, has_turn);
        }
    }

    /// Whoever has a turn works; gives the jobs that have come to their end.
    fn work(&mut self, world: &mut Surroundings) -> Vec<Entry> {
        let mut turns: Vec<&mut Entry> = self.entries.iter_mut().filter(|entry| entry.has_turn()).collect();
        if !turns.is_empty() {
            // Whoever comes first gets what cannot be divided.
            let first = world.orders.pass % turns.len() as u64;
            turns.rotate_left(first as usize);
        }
        let mut sharers = turns.iter().filter(|entry| entry.takes_room()).count();
        let mut room = if sharers == 0 { 0 } else { room_for_jobs(world) };
        let mut over = Vec::new();
        for entry in turns {
            let share = room.div_ceil(sharers.max(1));
            sharers -= usize::from(entry.takes_room());
            if entry.advance(world, &mut room, share) {
                over.push(entry.job.id);
            }
        }
        self.entries.extract_if(.., |entry| over.contains(&entry.job.id)).collect()
    }

    /// A job is over.
    fn end(&mut self, mut entry: Entry, world: &mut Surroundings) {
        let status = entry.end(&mut world.dimensions, &mut world.saves);
        if let Work::Transfer(transfer) = &mut entry.work {
            // A capture that was cut short has its watch still.
            drop(world.directory.sightings.end(entry.job.id));
            if let Some(record) = transfer.take_record() {
                match status.outcome.as_ref().and_then(|outcome| outcome.error.as_ref()) {
                    None => self.done.push(record.path),
                    Some(JobError::NotOpen(_)) => self.resume(record),
                    // The next session tries it again.
                    Some(_) => {}
                }
            }
        }
        self.ended.push(status.clone());
        world.publisher.job(status);
    }
}

/// Columns that may be ordered for the store now. If viewers have as much on order as they may, they want more.
fn room_for_jobs(world: &Surroundings) -> usize {
    let Surroundings { config, orders, saves, dimensions, .. } = world;
    if saves.is_behind() || orders.room(dimensions.in_flight_for_jobs()).generate == 0 {
        return 0;
    }
    // In lockstep the same on every machine.
    let threads = if config.mode.is_lockstep() { 1 } else { config.generation_threads.max(1) };
    let usual = IN_FLIGHT_PER_THREAD * threads;
    config.pregeneration_in_flight.unwrap_or(usual).max(1).saturating_sub(orders.in_flight())
}

impl Dimensions {
    /// Columns that the jobs of all dimensions have on order.
    pub fn in_flight_for_jobs(&self) -> usize {
        self.open.values().map(|dimension| dimension.for_jobs.len()).sum()
    }
}

/// The jobs take in what came of their work, order more, and are told of.
pub fn work_on_jobs(
    mut world: Surroundings,
    mut book: ResMut<JobBook>,
    mut columns: ResMut<ColumnAnswers>,
    mut phases: ResMut<PhaseAnswers>,
) {
    let (world, book) = (&mut world, &mut *book);
    book.begin_sweeps(&mut world.dimensions, &mut world.saves);
    book.take_answers(&mut columns, &mut phases, world);
    book.done.append(&mut world.saves.unsaved_restores);
    book.give_turns(world);
    for entry in book.work(world) {
        book.end(entry, world);
    }
    for entry in &mut book.entries {
        if let Some(status) = entry.tell(world) {
            world.publisher.job(status);
        }
    }
    // Once in a period for all: a save asks every region.
    let now = world.clock.now;
    if !book.done.is_empty() && now >= book.save_at {
        book.save_at = now.saturating_add(world.config.autosave_period);
        world.saves.requested.extend(book.take_done());
    }
}

/// The next session goes on where this one ends.
pub fn keep_jobs(mut book: ResMut<JobBook>, mut dimensions: ResMut<Dimensions>, mut saves: ResMut<Saves>) {
    book.begin_sweeps(&mut dimensions, &mut saves);
    book.entries.iter().for_each(|entry| entry.save(&mut dimensions, &mut saves));
}
