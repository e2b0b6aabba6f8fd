//! Pre-generation: areas that are generated and stored without being loaded into a region.
//!
//! A job walks over the batches of its area, nearest to the centre first, and orders what the stored graph misses. What
//! is stored is what counts as done, whoever made it; so nothing is lost but a place in the order when the process ends
//! at any moment. A dimension's jobs run one after the other, those of several dimensions beside each other. Viewers come
//! first: a job orders only where they leave room.

mod job;
mod progress;

use super::desk::Desk;
use super::dimension::Dimension;
use super::events::ColumnFailed;
use crate::generation::DistanceGraph;
use crate::simulation::ColumnError;
use crate::space::{ColumnArea, ColumnPos, DimensionId};
use crate::storage::{PregenerationEntry, StoredPregeneration};
use bevy::prelude::*;
use job::{Job, JobView, TRIES};
use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;

pub use progress::{PregenerationProgress, PregenerationState};

/// What a pre-generation can be told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PregenerationOrder {
    /// Order nothing more until it is resumed. What is on its way is still stored.
    Pause,
    /// Go on.
    Resume,
    /// Stop, and be forgotten. What is stored stays.
    Cancel,
}

/// A pre-generation as the coordinator knows it.
#[derive(Clone, Debug)]
pub struct PregenerationStatus {
    /// Its entity in the main world; `None` if it was found in the store and has none yet.
    pub entity: Option<Entity>,
    /// The entity of its dimension.
    pub dimension: Entity,
    /// What it generates.
    pub area: ColumnArea,
    /// How far it is.
    pub progress: PregenerationProgress,
}

/// The time between two looks at a job by the main world, and between two of its saves.
const PROGRESS_PERIOD: Duration = Duration::from_millis(250);
/// Batches that a job looks at in one pass for something to order.
const MAX_LOOKED_AT: usize = 1 << 14;
/// Columns that may be on order for each generation thread, unless a setting says otherwise.
const IN_FLIGHT_PER_THREAD: usize = 64;

/// The jobs of a dimension.
#[derive(Default)]
pub struct Pregenerations {
    jobs: BTreeMap<u64, Job>,
    last_number: u64,
    /// Columns that failed since the jobs looked last, and why.
    failures: BTreeMap<ColumnPos, ColumnError>,
    /// The numbers of stored jobs that cannot be read.
    damaged: Vec<u64>,
}

impl Pregenerations {
    /// The jobs that the store remembers.
    pub fn restore(entries: Vec<PregenerationEntry>, stored: &DistanceGraph) -> Self {
        let mut restored = Self::default();
        for (number, entry) in entries {
            restored.last_number = restored.last_number.max(number);
            match entry {
                Ok(entry) => drop(restored.jobs.insert(number, Job::restore(entry, stored))),
                Err(error) => {
                    warn!("a pre-generation is forgotten, what it made is not: {error}");
                    restored.damaged.push(number);
                }
            }
        }
        restored
    }

    /// A column could not be made for the store; says whether a job had ordered it.
    pub fn note_failure(&mut self, column: ColumnPos, error: &ColumnError) -> bool {
        let is_of_job = self.jobs.values().any(|job| job.has_ordered(column));
        if is_of_job {
            self.failures.insert(column, error.clone());
        }
        is_of_job
    }

    /// Columns that the jobs have on order.
    pub fn in_flight(&self) -> usize {
        self.jobs.values().map(Job::in_flight).sum()
    }

    /// The first job that may run does.
    fn assign_states(&mut self) {
        let mut first = PregenerationState::Running;
        for job in self.jobs.values_mut() {
            let state = if job.is_paused {
                PregenerationState::Paused
            } else {
                mem::replace(&mut first, PregenerationState::Waiting)
            };
            job.set_state(state);
        }
    }

    /// The job of the entity, or one of the same area that the store remembers and nobody asked for yet.
    fn find(&mut self, entity: Entity, area: ColumnArea) -> Option<&mut Job> {
        let is_own = |job: &Job| job.entity == Some(entity);
        let number = self.jobs.iter().find(|(_, job)| is_own(job)).map(|(number, _)| *number).or_else(|| {
            let is_same = |job: &Job| job.entity.is_none() && job.area == area;
            self.jobs.iter().find(|(_, job)| is_same(job)).map(|(number, _)| *number)
        });
        self.jobs.get_mut(&number?)
    }
}

/// Orders what the jobs of all dimensions miss, and tells how far they are.
pub fn pregenerate(mut desk: Desk) {
    let has_jobs = |dimension: &&Dimension| !dimension.is_closing() && !dimension.pregenerations.jobs.is_empty();
    let ids: Vec<_> = desk.dimensions.open.values().filter(has_jobs).map(|dimension| dimension.id).collect();
    for id in &ids {
        desk.settle_pregenerations(*id);
    }
    desk.order_for_pregenerations(&ids);
    for id in ids {
        desk.tell_pregenerations(id);
    }
}

/// A pre-generation was spawned in the main world, perhaps paused.
pub(crate) fn start_pregeneration(
    In((entity, dimension, area, is_paused)): In<(Entity, Entity, ColumnArea, bool)>,
    mut desk: Desk,
) {
    desk.start_pregeneration(entity, dimension, area, is_paused);
}

pub(crate) fn adopt_pregeneration(In((entity, dimension, number)): In<(Entity, DimensionId, u64)>, mut desk: Desk) {
    desk.adopt_pregeneration(entity, dimension, number);
}

pub(crate) fn control_pregeneration(In((entity, order)): In<(Entity, PregenerationOrder)>, mut desk: Desk) {
    desk.control_pregeneration(entity, order);
}

impl Desk<'_> {
    /// What is damaged in the store is forgotten there.
    pub fn forget_damaged_pregenerations(&mut self, dimension: &mut Dimension) {
        let damaged = mem::take(&mut dimension.pregenerations.damaged);
        let forgotten = damaged.into_iter().map(|number| ((dimension.id, number), None));
        self.saves.pending.pregenerations.extend(forgotten);
    }

    /// A pre-generation that was spawned in the main world.
    pub fn start_pregeneration(&mut self, entity: Entity, dimension: Entity, area: ColumnArea, is_paused: bool) {
        let Some(dimension) = self.dimensions.by_entity(dimension).filter(|open| !open.is_closing()) else { return };
        let Dimension { pregenerations, stored, .. } = dimension;
        if let Some(job) = pregenerations.find(entity, area) {
            job.entity = Some(entity);
            job.is_paused |= is_paused;
            job.tell();
            return;
        }
        pregenerations.last_number += 1;
        let entry = StoredPregeneration { area, cursor: Default::default(), is_paused, elapsed: Duration::ZERO };
        let mut job = Job::restore(entry, stored);
        job.entity = Some(entity);
        pregenerations.jobs.insert(pregenerations.last_number, job);
    }

    /// The main world has an entity for a job that the store remembered.
    pub fn adopt_pregeneration(&mut self, entity: Entity, dimension: DimensionId, number: u64) {
        let Some(dimension) = self.dimensions.open.get_mut(&dimension) else { return };
        if let Some(job) = dimension.pregenerations.jobs.get_mut(&number) {
            job.entity.get_or_insert(entity);
        }
    }

    /// An order for the job with this entity. If its dimension closes, that is how it is found when it is opened again.
    pub fn control_pregeneration(&mut self, entity: Entity, order: PregenerationOrder) {
        let found = self.dimensions.open.values_mut().find_map(|dimension| {
            let jobs = &mut dimension.pregenerations.jobs;
            let (number, job) = jobs.iter_mut().find(|(_, job)| job.entity == Some(entity))?;
            match order {
                PregenerationOrder::Pause => job.is_paused = true,
                PregenerationOrder::Resume => job.is_paused = false,
                PregenerationOrder::Cancel => {}
            }
            Some((dimension.id, *number))
        });
        let Some((id, number)) = found else { return };
        if order == PregenerationOrder::Cancel {
            self.end_pregeneration(id, number, PregenerationState::Cancelled);
        }
        let closing = self.dimensions.open.get_mut(&id).and_then(|dimension| dimension.closing.as_mut());
        if let Some(closing) = closing {
            // Saved once more, and closed when that is stored.
            closing.until = None;
            self.save_pregenerations(id);
        }
    }

    /// What came of the columns that the jobs ordered.
    fn settle_pregenerations(&mut self, id: DimensionId) {
        let now = self.clock.now;
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let Dimension { pregenerations, stored, columns, .. } = dimension;
        let ground = JobView { stored, columns };
        let failures = mem::take(&mut pregenerations.failures);
        pregenerations.assign_states();
        for job in pregenerations.jobs.values_mut() {
            job.pass_time(now);
            for (column, error) in job.settle(now, &ground, &failures) {
                if job.may_complain() {
                    error!("{id}: left out of the pre-generation: {error}");
                }
                self.publisher.event(ColumnFailed { dimension: id, column, error, attempts: TRIES, given_up: true });
            }
        }
    }

    /// Hands the room that viewers leave to one job of each dimension.
    fn order_for_pregenerations(&mut self, ids: &[DimensionId]) {
        let mut room = self.room_for_pregenerations();
        let mut runners: Vec<_> = ids.iter().filter_map(|id| Some((*id, self.running_pregeneration(*id)?))).collect();
        if !runners.is_empty() {
            // Whoever comes first gets what cannot be divided.
            let first = self.clock.pass % runners.len() as u64;
            runners.rotate_left(first as usize);
        }
        for (place, (id, number)) in runners.iter().enumerate() {
            let share = room.div_ceil(runners.len() - place);
            room = room.saturating_sub(self.order_for_job(*id, *number, share));
        }
    }

    fn running_pregeneration(&self, id: DimensionId) -> Option<u64> {
        let jobs = &self.dimensions.open.get(&id)?.pregenerations.jobs;
        jobs.iter().find(|(_, job)| job.state() == PregenerationState::Running).map(|(number, _)| *number)
    }

    /// Columns that may be ordered for the store now. If viewers have as much on order as they may, they want more.
    fn room_for_pregenerations(&self) -> usize {
        if self.saves.is_behind() || self.room().generate == 0 {
            return 0;
        }
        // In lockstep the same on every machine.
        let threads = if self.config.mode.is_lockstep() { 1 } else { self.config.generation_threads.max(1) };
        let usual = IN_FLIGHT_PER_THREAD * threads;
        self.config.pregeneration_in_flight.unwrap_or(usual).max(1).saturating_sub(self.totals.in_flight)
    }

    /// Columns that the jobs of all dimensions have on order.
    pub fn in_flight_for_pregenerations(&self) -> usize {
        self.dimensions.open.values().map(|dimension| dimension.pregenerations.in_flight()).sum()
    }

    fn order_for_job(&mut self, id: DimensionId, number: u64, share: usize) -> usize {
        let now = self.clock.now;
        let (mut ordered, mut looks) = (0, MAX_LOOKED_AT);
        let allowance = self.dimensions.open.get_mut(&id).map_or(0, |open| open.generation.allowance(now));
        let share = share.min(allowance);
        while ordered < share {
            let Some(dimension) = self.dimensions.open.get_mut(&id) else { break };
            let Dimension { pregenerations, stored, columns, .. } = dimension;
            let Some(job) = pregenerations.jobs.get_mut(&number) else { break };
            let Some((batch, wanted)) = job.next_order(now, &JobView { stored, columns }, &mut looks) else {
                break;
            };
            ordered += wanted.len();
            dimension.generation.bucket.take(wanted.len());
            self.order_for_store(id, batch, wanted);
        }
        ordered
    }

    /// Ends the jobs that have come to their end, and publishes and saves what changed of the others.
    fn tell_pregenerations(&mut self, id: DimensionId) {
        let now = self.clock.now;
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let Dimension { pregenerations, stored, .. } = dimension;
        let finished = |(number, job): (&u64, &mut Job)| job.is_finished(stored).then_some(*number);
        let ended: Vec<_> = pregenerations.jobs.iter_mut().filter_map(finished).collect();
        for (number, job) in &mut pregenerations.jobs {
            if ended.contains(number) || !job.is_due(now, stored) {
                continue;
            }
            self.saves.pending.pregenerations.insert((id, *number), Some(job.to_stored()));
            self.publisher.pregeneration((id, *number), job.status(dimension.spec.entity));
        }
        for number in ended {
            self.end_pregeneration(id, number, PregenerationState::Finished);
        }
    }

    fn end_pregeneration(&mut self, id: DimensionId, number: u64, state: PregenerationState) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let Some(mut job) = dimension.pregenerations.jobs.remove(&number) else { return };
        job.recount(&dimension.stored);
        job.set_state(state);
        self.saves.pending.pregenerations.insert((id, number), None);
        self.publisher.pregeneration((id, number), job.status(dimension.spec.entity));
    }

    /// The jobs of a dimension as they are now join the pending save.
    pub fn save_pregenerations(&mut self, id: DimensionId) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let jobs = dimension.pregenerations.jobs.iter().map(|(number, job)| ((id, *number), Some(job.to_stored())));
        self.saves.pending.pregenerations.extend(jobs);
    }

    /// The jobs end with all that is stored of their dimension.
    pub fn drop_pregenerations(&mut self, dimension: &mut Dimension) {
        for (number, mut job) in mem::take(&mut dimension.pregenerations.jobs) {
            job.set_state(PregenerationState::Cancelled);
            self.publisher.pregeneration((dimension.id, number), job.status(dimension.spec.entity));
        }
    }
}
