//! Starts the regions that are due, earliest deadline first.

use super::CoordinatorConfig;
use super::clocks::clock::{Clock, LONG_WAIT};
use super::desk::Desk;
use super::dimension::Dimension;
use super::region_slot::RegionSlot;
use super::saving::save::Saves;
use super::threads::RegionJob;
use crate::region::{RegionId, RegionState};
use crate::simulation::{Assignment, Inbox, Letter, Task};
use crate::space::DimensionId;
use bevy::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::mem;
use std::time::Duration;

/// A region that is away: on a region thread, or waiting for a split to end.
pub struct Running {
    pub slot: RegionSlot,
    pub is_tick: bool,
    /// The round of saving for which it hands out what is unsaved.
    pub saves: Option<u64>,
    /// The parts that a split gives, which wait with the region.
    pub parts: Vec<RegionId>,
    /// The watchdog has told of it up to this many of its limits.
    pub told: u32,
    /// What it counts for on the region threads.
    pub load: usize,
}

impl Running {
    pub fn waiting(slot: RegionSlot) -> Self {
        Self { slot, is_tick: false, saves: None, parts: Vec::new(), told: 0, load: 0 }
    }
}

/// When regions are due, and which are away.
#[derive(Resource, Default)]
pub struct Deadlines {
    heap: BinaryHeap<Reverse<(Duration, DimensionId, RegionId)>>,
    assignments: u64,
    /// What all that is on region threads, or waits for one, counts for.
    pub load: usize,
    pub running: AwayRegions,
    /// Due, and waiting for a coupled region that has not come back from their last tick.
    held: Vec<(DimensionId, RegionId)>,
}

/// Regions that are away, by dimension and id.
pub type AwayRegions = BTreeMap<(DimensionId, RegionId), Running>;

impl Deadlines {
    /// An entry that does not match the region's deadline any more is skipped when it comes up.
    pub fn plan(&mut self, due: Duration, dimension: DimensionId, region: RegionId) {
        self.heap.push(Reverse((due, dimension, region)));
    }

    /// What is kept of a region, be it away or not.
    pub fn slot<'a>(&'a self, dimension: &'a Dimension, region: RegionId) -> Option<&'a RegionSlot> {
        let away = self.running.get(&(dimension.id, region)).map(|running| &running.slot);
        away.or_else(|| dimension.regionizer.data(region))
    }

    /// The same, to be changed.
    pub fn slot_mut<'a>(&'a mut self, dimension: &'a mut Dimension, region: RegionId) -> Option<&'a mut RegionSlot> {
        let away = self.running.get_mut(&(dimension.id, region)).map(|running| &mut running.slot);
        away.or_else(|| dimension.regionizer.data_mut(region))
    }

    /// The number of a new assignment.
    pub fn next_assignment(&mut self) -> u64 {
        self.assignments += 1;
        self.assignments
    }
}

/// What a tick counts for, and one of a region whose ticks have been short: of those, many can wait for a thread at the
/// same time, so that threads and coordinator need not wake each other for each.
const FULL_LOAD: usize = 16;
const SHORT_LOAD: usize = 1;
const SHORT_TICK: Duration = Duration::from_micros(50);
/// Full ticks handed over at a time for each region thread: one runs, one waits, the rest stays in the order of deadlines.
const TICKS_PER_THREAD: usize = 2;

/// How often a region that waits for a coupled one is looked at, at least.
const HELD_AGAIN: Duration = Duration::from_millis(5);

pub fn until_next_deadline(world: &mut World) -> Duration {
    if world.resource::<Deadlines>().load >= most_load(world.resource::<CoordinatorConfig>()) {
        // A region that comes back wakes the coordinator.
        return Duration::MAX;
    }
    if world.resource::<Saves>().holds_ticks() {
        // So does a commit that ends.
        return Duration::MAX;
    }
    let now = world.resource::<Clock>().began.elapsed();
    let Deadlines { heap, held, .. } = world.resource::<Deadlines>();
    let next = heap.peek().map_or(Duration::MAX, |Reverse((due, ..))| due.saturating_sub(now));
    if held.is_empty() { next } else { next.min(HELD_AGAIN) }
}

fn most_load(config: &CoordinatorConfig) -> usize {
    config.region_threads.max(1) * TICKS_PER_THREAD * FULL_LOAD
}

pub fn dispatch(mut desk: Desk) {
    desk.tend_idle();
    if desk.saves.holds_ticks() {
        return;
    }
    if desk.config.mode.is_lockstep() {
        // Everything is due.
        desk.deadlines.heap.clear();
        let all = desk.dimensions.open.iter();
        let all: Vec<_> =
            all.flat_map(|(id, open)| open.regionizer.regions().into_iter().map(|region| (*id, region))).collect();
        for (dimension, region) in all {
            desk.run_group(dimension, region);
        }
        return;
    }
    for (dimension, region) in mem::take(&mut desk.deadlines.held) {
        if let Some(slot) = desk.dimensions.open.get(&dimension).and_then(|open| open.regionizer.data(region)) {
            desk.deadlines.plan(slot.due, dimension, region);
        }
    }
    let most = most_load(&desk.config);
    while desk.deadlines.load < most
        && let Some((dimension, region)) = desk.next_due()
    {
        if desk.awaits_coupled(dimension, region) {
            desk.deadlines.held.push((dimension, region));
            continue;
        }
        desk.run_group(dimension, region);
    }
}

impl Desk<'_> {
    /// The region with the earliest deadline, if that is over.
    fn next_due(&mut self) -> Option<(DimensionId, RegionId)> {
        loop {
            let &Reverse((due, dimension, region)) = self.deadlines.heap.peek()?;
            if due > self.clock.now {
                return None;
            }
            self.deadlines.heap.pop();
            let open = self.dimensions.open.get(&dimension);
            if open.and_then(|open| open.regionizer.data(region)).is_some_and(|slot| slot.due == due) {
                return Some((dimension, region));
            }
        }
    }

    /// Whether a region that is coupled with this one is still in a tick, for a period at most: of two that are late, the one
    /// that comes back first must not begin alone.
    fn awaits_coupled(&self, id: DimensionId, region: RegionId) -> bool {
        if self.couplings.places.is_empty() {
            return false;
        }
        let Some(open) = self.dimensions.open.get(&id) else { return false };
        let Some(slot) = open.regionizer.data(region) else { return false };
        let patience = open.time.real_period(slot.control.ticks_per_second);
        let is_ticking = |other| self.deadlines.running.get(other).is_some_and(|running| running.is_tick);
        self.clock.now < slot.due.saturating_add(patience)
            && self.couplings.group(&self.dimensions, id, region).iter().any(is_ticking)
    }

    /// Begins the tick of a region, and of those that are coupled with it and due as well.
    fn run_group(&mut self, id: DimensionId, region: RegionId) {
        let group = self.couplings.group(&self.dimensions, id, region);
        let now = self.clock.now;
        let is_lockstep = self.config.mode.is_lockstep();
        let joins = |(other_id, other): &(DimensionId, RegionId)| {
            let Some(open) = self.dimensions.open.get(other_id) else { return false };
            let Some(slot) = open.regionizer.data(*other) else { return false };
            // Half a period early at most: from then on the two are due at the same time.
            let early = open.time.real_period(slot.control.ticks_per_second) / 2;
            (*other_id, *other) == (id, region) || is_lockstep || slot.due <= now.saturating_add(early)
        };
        let group: Vec<_> = group.into_iter().filter(joins).collect();
        let tasks: RegionJob = group.into_iter().filter_map(|(id, region)| self.begin_tick(id, region)).collect();
        if !tasks.is_empty() {
            self.threads.regions.run(tasks);
        }
    }

    fn begin_tick(&mut self, id: DimensionId, region: RegionId) -> Option<Assignment> {
        let dimension = self.dimensions.open.get_mut(&id)?;
        let is_ready = dimension.regionizer.state(region) == Some(RegionState::Ready);
        let may_tick = dimension.regionizer.data(region).is_some_and(|slot| slot.may_tick(&dimension.time));
        if !is_ready || !may_tick || dimension.is_closing() {
            return None;
        }
        let mut slot = dimension.regionizer.try_begin_tick(region)?;
        let own_rate = slot.control.ticks_per_second;
        // A late region skips ticks; it does not pile them up.
        slot.due = slot.due.saturating_add(dimension.time.real_period(own_rate)).max(self.clock.now);
        let (clock, delta) = slot.begin_tick(&dimension.time, dimension.time.period(own_rate));
        let saves = self.saves.wants(id, region);
        let save = self.saves.is_due(&mut slot.save_turn, self.clock.now) || saves.is_some();
        let task = Task::Tick { clock, delta, save };
        let running = Running { is_tick: true, saves, ..Running::waiting(slot) };
        self.begin_task(id, region, running, task)
    }

    /// Takes the region's world and what waits for it, for a region thread.
    pub fn begin_task(
        &mut self,
        id: DimensionId,
        region: RegionId,
        mut running: Running,
        task: Task,
    ) -> Option<Assignment> {
        let dimension = self.dimensions.open.get(&id)?;
        let home = dimension.home.clone();
        let clock = (dimension.time.now, dimension.time.period(running.slot.control.ticks_per_second));
        let parked = mem::take(running.slot.parked.get());
        if !matches!(task, Task::Tick { save: false, .. }) {
            self.saves.autosave.end_turn(&mut running.slot.save_turn, self.clock.now);
        }
        let number = self.deadlines.next_assignment();
        let progress = running.slot.progress.clone();
        progress.reset();
        let is_short = running.is_tick && running.slot.ticks_within(SHORT_TICK);
        running.load = if is_short { SHORT_LOAD } else { FULL_LOAD };
        self.deadlines.load += running.load;
        self.deadlines.running.insert((id, region), running);
        Some(Assignment { region, home, world: parked.world, inbox: parked.inbox, task, number, clock, progress })
    }

    /// What ticks later than this, on the coordinator's clock, is idle until then. In lockstep everything ticks at once.
    pub fn soon(&self) -> Duration {
        match self.config.mode.is_lockstep() {
            true => Duration::MAX,
            false => self.clock.now.saturating_add(LONG_WAIT),
        }
    }

    /// Regions that do not tick for a while are saved, take in columns and give them up all the same.
    fn tend_idle(&mut self) {
        let soon = self.soon();
        let mut idle = Vec::new();
        for (id, dimension) in &mut self.dimensions.open {
            if dimension.is_closing() || !dimension.may_be_idle() {
                continue;
            }
            dimension.has_idle_regions = false;
            for region in dimension.regionizer.regions() {
                let known = self.deadlines.slot(dimension, region);
                dimension.has_idle_regions |= known.is_some_and(|slot| slot.may_be_idle(&dimension.time));
                let Some(slot) = dimension.regionizer.data_mut(region) else { continue };
                if !slot.is_idle(&dimension.time, soon) {
                    continue;
                }
                let Inbox { columns, give_up, cut, absorbed, .. } = &slot.parked.get().inbox;
                let has_work = !columns.is_empty() || !give_up.is_empty() || !cut.is_empty() || !absorbed.is_empty();
                let has_world = slot.parked.get().world.is_some();
                let is_due = self.saves.is_due(&mut slot.save_turn, self.clock.now);
                let is_asked = is_due || self.saves.wants(*id, region).is_some();
                if (slot.halted.is_none() || has_world) && (has_work || is_asked) {
                    idle.push((*id, region));
                }
            }
        }
        for (id, region) in idle {
            let Some(task) = self.begin_idle_task(id, region, Task::Save) else { continue };
            self.threads.regions.run([task]);
        }
    }

    /// A task without a tick. Messages and closures wait for the region's next tick.
    pub fn begin_idle_task(&mut self, id: DimensionId, region: RegionId, task: Task) -> Option<Assignment> {
        let saves = self.saves.wants(id, region);
        let dimension = self.dimensions.open.get_mut(&id)?;
        let mut slot = dimension.regionizer.try_begin_tick(region)?;
        let letters: Vec<Letter> = match task {
            Task::Save => mem::take(&mut slot.parked.get().inbox.letters),
            _ => Vec::new(),
        };
        let running = Running { saves, ..Running::waiting(slot) };
        let task = self.begin_task(id, region, running, task);
        let waiting = &mut self.dimensions.open.get_mut(&id)?.inbox(region).letters;
        // Nothing can have come in between.
        waiting.extend(letters);
        task
    }
}

/// In lockstep every task that was started ends within the pass.
pub fn finish_lockstep(mut desk: Desk) {
    if !desk.config.mode.is_lockstep() {
        return;
    }
    loop {
        // Only when all are back, they end in an order that is always the same.
        let begun = desk.deadlines.running.values().filter(|running| running.load > 0).count();
        let back = desk.inbound.tasks.get().len();
        let others = desk.threads.regions.wait_for(begun.saturating_sub(back));
        desk.inbound.tasks.get().extend(others);
        if desk.inbound.tasks.get().is_empty() {
            break;
        }
        desk.finish_tasks();
    }
    if let Some(payload) = desk.inbound.panic.get().take() {
        std::panic::resume_unwind(payload);
    }
}
