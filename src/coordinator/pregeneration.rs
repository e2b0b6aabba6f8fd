//! Pre-generation: areas that are generated and stored without being loaded into a region.
//!
//! A job walks over the batches of its area, nearest to the centre first, and orders what the stored graph misses. What
//! is stored is what counts as done, whoever made it; so nothing is lost but a place in the order when the process ends
//! at any moment. A dimension's jobs run one after the other, those of several dimensions beside each other. Viewers come
//! first: a job orders only where they leave room.

mod job;
pub(super) mod jobs;
pub(super) mod progress;

use super::CoordinatorConfig;
use super::dimension::{Dimension, Dimensions};
use super::events::ColumnFailed;
use super::publish::Publisher;
use super::saving::save::Saves;
use super::streaming::orders::Orders;
use crate::space::{ColumnArea, DimensionId};
use crate::storage::StoredPregeneration;
use bevy::prelude::*;
use job::{Job, JobView, TRIES};
use std::mem;
use std::time::Duration;

pub use progress::{PregenerationOrder, PregenerationProgress, PregenerationState, PregenerationStatus};

/// Batches that a job looks at in one pass for something to order.
const MAX_LOOKED_AT: usize = 1 << 14;
/// Columns that may be on order for each generation thread, unless a setting says otherwise.
const IN_FLIGHT_PER_THREAD: usize = 64;

/// Orders what the jobs of all dimensions miss, and tells how far they are.
pub fn pregenerate(
    config: Res<CoordinatorConfig>,
    mut dimensions: ResMut<Dimensions>,
    mut orders: ResMut<Orders>,
    mut saves: ResMut<Saves>,
    mut publisher: ResMut<Publisher>,
) {
    let has_jobs = |open: &&mut Dimension| !open.is_closing() && !open.pregenerations.jobs.is_empty();
    let busy = dimensions.open.values_mut().filter(has_jobs);
    busy.for_each(|dimension| dimension.settle_pregenerations(&mut publisher));
    let mut room = room_for_jobs(&config, &dimensions, &orders, &saves);
    let mut busy: Vec<&mut Dimension> = dimensions.open.values_mut().filter(has_jobs).collect();
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
