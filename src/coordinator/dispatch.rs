//! Starts the regions that are due, earliest deadline first.

use super::CoordinatorConfig;
use super::collect::{Desk, region_info};
use super::dimension::RegionSlot;
use super::threads::RegionJob;
use crate::region::{RegionId, RegionState};
use crate::simulation::{Assignment, Task};
use crate::space::DimensionId;
use bevy::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::mem;
use std::time::{Duration, Instant};

/// The coordinator's clock: the time since it began; in lockstep one tick a pass.
#[derive(Resource)]
pub(super) struct Clock {
    pub now: Duration,
    pub pass: u64,
    began: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self { now: Duration::ZERO, pass: 0, began: Instant::now() }
    }
}

pub(super) fn advance_clock(mut clock: ResMut<Clock>, config: Res<CoordinatorConfig>) {
    clock.pass += 1;
    clock.now =
        if config.mode.is_lockstep() { clock.now.saturating_add(config.tick_period) } else { clock.began.elapsed() };
}

/// A region that is away: on a region thread, or waiting for a split to end.
pub(super) struct Running {
    pub slot: RegionSlot,
    pub is_tick: bool,
    /// The round of saving for which it hands out what is unsaved.
    pub saves: Option<u64>,
    /// The parts that a split gives, which wait with the region.
    pub parts: Vec<RegionId>,
}

impl Running {
    pub fn waiting(slot: RegionSlot) -> Self {
        Self { slot, is_tick: false, saves: None, parts: Vec::new() }
    }
}

/// When regions are due, and which are away.
#[derive(Resource, Default)]
pub(super) struct Deadlines {
    heap: BinaryHeap<Reverse<(Duration, DimensionId, RegionId)>>,
    assignments: u64,
    pub running: AwayRegions,
}

/// Regions that are away, by dimension and id.
pub(super) type AwayRegions = BTreeMap<(DimensionId, RegionId), Running>;

impl Deadlines {
    /// An entry that does not match the region's deadline any more is skipped when it comes up.
    pub fn plan(&mut self, due: Duration, dimension: DimensionId, region: RegionId) {
        self.heap.push(Reverse((due, dimension, region)));
    }

    /// The number of a new assignment.
    pub fn next_assignment(&mut self) -> u64 {
        self.assignments += 1;
        self.assignments
    }

    fn is_full(&self, config: &CoordinatorConfig) -> bool {
        self.running.len() >= config.region_threads.max(1) * JOBS_PER_THREAD
    }
}

pub(super) fn until_next_deadline(world: &mut World) -> Duration {
    let deadlines = world.resource::<Deadlines>();
    if deadlines.is_full(world.resource::<CoordinatorConfig>()) {
        // A region that comes back wakes the coordinator.
        return Duration::MAX;
    }
    let now = world.resource::<Clock>().began.elapsed();
    let next = deadlines.heap.peek().map(|Reverse((due, ..))| *due);
    next.map_or(Duration::MAX, |due| due.saturating_sub(now))
}

/// Ticks handed over at a time for each region thread: one runs, one waits, the rest stays in the order of deadlines.
const JOBS_PER_THREAD: usize = 2;

pub(super) fn dispatch(mut desk: Desk) {
    if desk.config.mode.is_lockstep() {
        // Everything is due.
        desk.deadlines.heap.clear();
        let all = desk.dimensions.open.iter();
        let all: Vec<_> =
            all.flat_map(|(id, open)| open.regionizer.regions().into_iter().map(|region| (*id, region))).collect();
        for (dimension, region) in all {
            desk.begin_tick(dimension, region);
        }
        return;
    }
    while !desk.deadlines.is_full(&desk.config) {
        let now = desk.clock.now;
        let Some(&Reverse((due, dimension, region))) = desk.deadlines.heap.peek() else { return };
        if due > now {
            return;
        }
        desk.deadlines.heap.pop();
        let open = desk.dimensions.open.get(&dimension);
        if open.and_then(|open| open.regionizer.data(region)).is_some_and(|slot| slot.due == due) {
            desk.begin_tick(dimension, region);
        }
    }
}

impl Desk<'_> {
    fn begin_tick(&mut self, id: DimensionId, region: RegionId) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        if dimension.regionizer.state(region) != Some(RegionState::Ready)
            || dimension.regionizer.data(region).is_none_or(|slot| slot.halted)
        {
            return;
        }
        let Some(mut slot) = dimension.regionizer.try_begin_tick(region) else { return };
        // A late region skips ticks; it does not pile them up.
        slot.due = slot.due.saturating_add(self.config.tick_period).max(self.clock.now);
        let saves = self.saves.wants(id, region);
        let parked = mem::take(slot.parked.get());
        let task = Task::Tick { clock: self.clock.now, period: self.config.tick_period, save: saves.is_some() };
        let info = region_info(dimension, region);
        let number = self.deadlines.next_assignment();
        let assignment = Assignment { info, world: parked.world, inbox: parked.inbox, task, number };
        self.deadlines.running.insert((id, region), Running { is_tick: true, saves, ..Running::waiting(slot) });
        self.threads.run_region(RegionJob { dimension: id, region, assignment });
    }
}

/// In lockstep every task that was started ends within the pass.
pub(super) fn finish_lockstep(mut desk: Desk) {
    if !desk.config.mode.is_lockstep() {
        return;
    }
    while desk.threads.jobs_out() > desk.inbound.tasks.get().len() || !desk.inbound.tasks.get().is_empty() {
        if desk.threads.jobs_out() > desk.inbound.tasks.get().len() {
            let Ok(event) = desk.threads.events.recv() else { return };
            desk.inbound.push(event);
        } else {
            desk.finish_tasks();
        }
    }
    if let Some(payload) = desk.inbound.panic.get().take() {
        std::panic::resume_unwind(payload);
    }
}
