//! Pre-generation: areas that are generated and stored without being loaded into a region.
//!
//! A job walks over the batches of its area, nearest to the centre first, and orders what the stored graph misses. What
//! is stored is what counts as done, whoever made it; so nothing is lost but a place in the order when the process ends
//! at any moment. A dimension's jobs run one after the other, those of several dimensions beside each other. Viewers come
//! first: a job orders only where they leave room.

mod job;
mod progress;

use super::CoordinatorConfig;
use super::dimension::{Dimension, Dimensions};
use super::events::ColumnFailed;
use super::publish::Publisher;
use super::saving::save::Saves;
use super::streaming::orders::Orders;
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

    /// The number of the job that runs.
    fn running(&self) -> Option<u64> {
        let is_running = |(_, job): &(&u64, &Job)| job.state() == PregenerationState::Running;
        self.jobs.iter().find(is_running).map(|(number, _)| *number)
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
pub fn pregenerate(
    config: Res<CoordinatorConfig>,
    mut dimensions: ResMut<Dimensions>,
    mut orders: ResMut<Orders>,
    mut saves: ResMut<Saves>,
    mut publisher: ResMut<Publisher>,
) {
    let has_jobs = |open: &&mut Dimension| !open.is_closing() && !open.pregenerations.jobs.is_empty();
    let mut room = room_for_jobs(&config, &dimensions, &orders, &saves);
    let mut busy: Vec<&mut Dimension> = dimensions.open.values_mut().filter(has_jobs).collect();
    busy.iter_mut().for_each(|dimension| dimension.settle_pregenerations(&mut publisher));
    // The room that viewers leave goes to one job of each dimension.
    let mut runners: Vec<_> =
        busy.iter_mut().filter_map(|dimension| Some((dimension.pregenerations.running()?, dimension))).collect();
    if !runners.is_empty() {
        // Whoever comes first gets what cannot be divided.
        let first = orders.pass % runners.len() as u64;
        runners.rotate_left(first as usize);
    }
    let mut left = runners.len();
    for (number, dimension) in runners {
        let share = room.div_ceil(left);
        left -= 1;
        room = room.saturating_sub(dimension.order_for_job(number, share, &mut orders));
    }
    busy.into_iter().for_each(|dimension| dimension.tell_pregenerations(&mut saves, &mut publisher));
}

/// Columns that may be ordered for the store now. If viewers have as much on order as they may, they want more.
fn room_for_jobs(config: &CoordinatorConfig, dimensions: &Dimensions, orders: &Orders, saves: &Saves) -> usize {
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
        self.open.values().map(|dimension| dimension.pregenerations.in_flight()).sum()
    }
}

/// A pre-generation was spawned in the main world, perhaps paused.
pub(crate) fn start_pregeneration(
    In((entity, dimension, area, is_paused)): In<(Entity, Entity, ColumnArea, bool)>,
    mut dimensions: ResMut<Dimensions>,
) {
    let Some(dimension) = dimensions.by_entity(dimension).filter(|open| !open.is_closing()) else { return };
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
pub(crate) fn adopt_pregeneration(
    In((entity, dimension, number)): In<(Entity, DimensionId, u64)>,
    mut dimensions: ResMut<Dimensions>,
) {
    let Some(dimension) = dimensions.open.get_mut(&dimension) else { return };
    if let Some(job) = dimension.pregenerations.jobs.get_mut(&number) {
        job.entity.get_or_insert(entity);
    }
}

/// An order for the job with this entity. If its dimension closes, that is how it is found when it is opened again.
pub(crate) fn control_pregeneration(
    In((entity, order)): In<(Entity, PregenerationOrder)>,
    mut dimensions: ResMut<Dimensions>,
    mut saves: ResMut<Saves>,
    mut publisher: ResMut<Publisher>,
) {
    let found = dimensions.open.values_mut().find_map(|dimension| {
        let jobs = &mut dimension.pregenerations.jobs;
        let number = *jobs.iter().find(|(_, job)| job.entity == Some(entity))?.0;
        Some((dimension, number))
    });
    let Some((dimension, number)) = found else { return };
    let job = dimension.pregenerations.jobs.get_mut(&number);
    match (order, job) {
        (PregenerationOrder::Pause, Some(job)) => job.is_paused = true,
        (PregenerationOrder::Resume, Some(job)) => job.is_paused = false,
        _ => dimension.end_pregeneration(number, PregenerationState::Cancelled, &mut saves, &mut publisher),
    }
    if let Some(closing) = &mut dimension.closing {
        // Saved once more, and closed when that is stored.
        closing.until = None;
        dimension.save_pregenerations(&mut saves);
    }
}

impl Dimension {
    /// What is damaged in the store is forgotten there.
    pub fn forget_damaged_pregenerations(&mut self, saves: &mut Saves) {
        let damaged = mem::take(&mut self.pregenerations.damaged);
        let forgotten = damaged.into_iter().map(|number| ((self.id, number), None));
        saves.pending.pregenerations.extend(forgotten);
    }

    /// What came of the columns that the jobs ordered.
    fn settle_pregenerations(&mut self, publisher: &mut Publisher) {
        let (id, now) = (self.id, self.real_now);
        let Dimension { pregenerations, stored, columns, .. } = self;
        let ground = JobView { stored, columns };
        let failures = mem::take(&mut pregenerations.failures);
        pregenerations.assign_states();
        for job in pregenerations.jobs.values_mut() {
            job.pass_time(now);
            for (column, error) in job.settle(now, &ground, &failures) {
                if job.may_complain() {
                    error!("{id}: left out of the pre-generation: {error}");
                }
                publisher.event(ColumnFailed { dimension: id, column, error, attempts: TRIES, given_up: true });
            }
        }
    }

    fn order_for_job(&mut self, number: u64, share: usize, orders: &mut Orders) -> usize {
        let now = self.real_now;
        let (mut ordered, mut looks) = (0, MAX_LOOKED_AT);
        let share = share.min(self.generation.allowance(now));
        while ordered < share {
            let Dimension { pregenerations, stored, columns, .. } = self;
            let Some(job) = pregenerations.jobs.get_mut(&number) else { break };
            let Some((batch, wanted)) = job.next_order(now, &JobView { stored, columns }, &mut looks) else {
                break;
            };
            ordered += wanted.len();
            self.generation.bucket.take(wanted.len());
            orders.order_for_store(self, batch, wanted);
        }
        ordered
    }

    /// Ends the jobs that have come to their end, and publishes and saves what changed of the others.
    fn tell_pregenerations(&mut self, saves: &mut Saves, publisher: &mut Publisher) {
        let (id, now) = (self.id, self.real_now);
        let Dimension { pregenerations, stored, .. } = self;
        let finished = |(number, job): (&u64, &mut Job)| job.is_finished(stored).then_some(*number);
        let ended: Vec<_> = pregenerations.jobs.iter_mut().filter_map(finished).collect();
        for (number, job) in &mut pregenerations.jobs {
            if ended.contains(number) || !job.is_due(now, stored) {
                continue;
            }
            saves.pending.pregenerations.insert((id, *number), Some(job.to_stored()));
            publisher.pregeneration((id, *number), job.status(self.spec.entity));
        }
        for number in ended {
            self.end_pregeneration(number, PregenerationState::Finished, saves, publisher);
        }
    }

    fn end_pregeneration(
        &mut self,
        number: u64,
        state: PregenerationState,
        saves: &mut Saves,
        publisher: &mut Publisher,
    ) {
        let Some(mut job) = self.pregenerations.jobs.remove(&number) else { return };
        job.recount(&self.stored);
        job.set_state(state);
        saves.pending.pregenerations.insert((self.id, number), None);
        publisher.pregeneration((self.id, number), job.status(self.spec.entity));
    }

    /// The jobs of a dimension as they are now join the pending save.
    pub fn save_pregenerations(&self, saves: &mut Saves) {
        let jobs = self.pregenerations.jobs.iter().map(|(number, job)| ((self.id, *number), Some(job.to_stored())));
        saves.pending.pregenerations.extend(jobs);
    }

    /// The jobs end with all that is stored of their dimension.
    pub fn drop_pregenerations(&mut self, publisher: &mut Publisher) {
        for (number, mut job) in mem::take(&mut self.pregenerations.jobs) {
            job.set_state(PregenerationState::Cancelled);
            publisher.pregeneration((self.id, number), job.status(self.spec.entity));
        }
    }
}
