//! Starts the regions that are due, earliest deadline first.

use super::CoordinatorConfig;
use super::clocks::clock::{Clock, LONG_WAIT};
use super::clocks::control::ControlRegion;
use super::clocks::coupling::Couplings;
use super::collect::tasks::TaskEnds;
use super::dimension::{Dimension, Dimensions};
use super::exchange::Inbound;
use super::publish::Publisher;
use super::region_slot::RegionSlot;
use super::saving::save::Saves;
use super::threads::{RegionJob, Threads};
use super::travel::letters::{Directory, Post};
use crate::region::{RegionId, RegionState};
use crate::simulation::{Assignment, Exclusive, Inbox, Letter, Task};
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
    /// What the region threads are to be given.
    jobs: Exclusive<Vec<RegionJob>>,
    /// Regions that the game wants to halt as soon as they are back.
    pub to_halt: Vec<ControlRegion>,
    /// The largest part of its period that a region took for a tick, since somebody asked last.
    slowest: f64,
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

    /// A region took this part of its period for a tick, on average.
    pub fn note_tick_share(&mut self, share: f64) {
        self.slowest = self.slowest.max(share);
    }

    pub fn take_slowest(&mut self) -> f64 {
        mem::take(&mut self.slowest)
    }

    /// Hands what has begun to the region threads.
    pub fn hand_over(&mut self, threads: &Threads) {
        self.jobs.get().drain(..).for_each(|job| threads.regions.run(job));
    }

    /// Takes the region's world and what waits for it, for a region thread.
    fn assign(
        &mut self,
        dimension: &Dimension,
        region: RegionId,
        mut running: Running,
        task: Task,
        saves: &mut Saves,
    ) -> Assignment {
        let clock = (dimension.time.now, dimension.time.period(running.slot.control.ticks_per_second));
        let parked = mem::take(running.slot.parked.get());
        if !matches!(task, Task::Tick { save: false, .. }) {
            saves.autosave.end_turn(&mut running.slot.save_turn, dimension.real_now);
        }
        let number = self.next_assignment();
        let progress = running.slot.progress.clone();
        progress.reset();
        let is_short = running.is_tick && running.slot.ticks_within(SHORT_TICK);
        running.load = if is_short { SHORT_LOAD } else { FULL_LOAD };
        self.load += running.load;
        self.running.insert((dimension.id, region), running);
        let home = dimension.home.clone();
        Assignment { region, home, world: parked.world, inbox: parked.inbox, task, number, clock, progress }
    }

    /// Begins a task for a region thread.
    pub fn begin(&mut self, dimension: &Dimension, region: RegionId, running: Running, task: Task, saves: &mut Saves) {
        let assignment = self.assign(dimension, region, running, task, saves);
        self.jobs.get().push([assignment].into());
    }

    /// Begins a task without a tick. Messages and closures wait for the region's next tick.
    pub fn begin_idle(&mut self, dimension: &mut Dimension, region: RegionId, task: Task, saves: &mut Saves) {
        let Some(mut slot) = dimension.regionizer.try_begin_tick(region) else { return };
        let letters: Vec<Letter> = match task {
            Task::Save => mem::take(&mut slot.parked.get().inbox.letters),
            _ => Vec::new(),
        };
        let running = Running { saves: saves.wants(dimension.id, region), ..Running::waiting(slot) };
        self.begin(dimension, region, running, task, saves);
        // Nothing can have come in between.
        dimension.inbox(region).letters.extend(letters);
    }

    /// The region with the earliest deadline, if that is over.
    fn next_due(&mut self, dimensions: &Dimensions, now: Duration) -> Option<(DimensionId, RegionId)> {
        loop {
            let &Reverse((due, dimension, region)) = self.heap.peek()?;
            if due > now {
                return None;
            }
            self.heap.pop();
            if dimensions.slot(dimension, region).is_some_and(|slot| slot.due == due) {
                return Some((dimension, region));
            }
        }
    }

    /// Whether a region that is coupled with this one is still in a tick, for a period at most: of two that are late, the one
    /// that comes back first must not begin alone.
    fn awaits_coupled(
        &self,
        dimensions: &Dimensions,
        couplings: &Couplings,
        (id, region): (DimensionId, RegionId),
    ) -> bool {
        if couplings.places.is_empty() {
            return false;
        }
        let Some(open) = dimensions.open.get(&id) else { return false };
        let Some(slot) = open.regionizer.data(region) else { return false };
        let patience = open.time.real_period(slot.control.ticks_per_second);
        let is_ticking = |other| self.running.get(other).is_some_and(|running| running.is_tick);
        open.real_now < slot.due.saturating_add(patience)
            && couplings.group(dimensions, id, region).iter().any(is_ticking)
    }

    /// Begins the tick of a region, and of those that are coupled with it and due as well.
    fn begin_group(
        &mut self,
        dimensions: &mut Dimensions,
        couplings: &Couplings,
        saves: &mut Saves,
        is_lockstep: bool,
        (id, region): (DimensionId, RegionId),
    ) {
        let mut group = couplings.group(dimensions, id, region);
        group.retain(|(other_id, other)| {
            let Some(open) = dimensions.open.get(other_id) else { return false };
            let Some(slot) = open.regionizer.data(*other) else { return false };
            // Half a period early at most: from then on the two are due at the same time.
            let early = open.time.real_period(slot.control.ticks_per_second) / 2;
            (*other_id, *other) == (id, region) || is_lockstep || slot.due <= open.real_now.saturating_add(early)
        });
        let begin = |(id, region)| self.begin_tick(dimensions.open.get_mut(&id)?, region, saves);
        let job: RegionJob = group.into_iter().filter_map(begin).collect();
        if !job.is_empty() {
            self.jobs.get().push(job);
        }
    }

    fn begin_tick(&mut self, dimension: &mut Dimension, region: RegionId, saves: &mut Saves) -> Option<Assignment> {
        let (id, now) = (dimension.id, dimension.real_now);
        let is_ready = dimension.regionizer.state(region) == Some(RegionState::Ready);
        let may_tick = dimension.regionizer.data(region).is_some_and(|slot| slot.may_tick(&dimension.time));
        if !is_ready || !may_tick || dimension.is_closing() {
            return None;
        }
        let mut slot = dimension.regionizer.try_begin_tick(region)?;
        let own_rate = slot.control.ticks_per_second;
        // A late region skips ticks; it does not pile them up.
        slot.due = slot.due.saturating_add(dimension.time.real_period(own_rate)).max(now);
        let (clock, delta) = slot.begin_tick(&dimension.time, dimension.time.period(own_rate));
        let wanted = saves.wants(id, region);
        let save = saves.is_due(&mut slot.save_turn, now) || wanted.is_some();
        let running = Running { is_tick: true, saves: wanted, ..Running::waiting(slot) };
        Some(self.assign(dimension, region, running, Task::Tick { clock, delta, save }, saves))
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

pub fn dispatch(
    config: Res<CoordinatorConfig>,
    clock: Res<Clock>,
    mut dimensions: ResMut<Dimensions>,
    mut deadlines: ResMut<Deadlines>,
    mut saves: ResMut<Saves>,
    couplings: Res<Couplings>,
    threads: Res<Threads>,
) {
    let (deadlines, dimensions) = (&mut *deadlines, &mut *dimensions);
    if saves.holds_ticks() {
        return;
    }
    if config.mode.is_lockstep() {
        // Everything is due.
        deadlines.heap.clear();
        for region in dimensions.regions() {
            deadlines.begin_group(dimensions, &couplings, &mut saves, true, region);
        }
        return deadlines.hand_over(&threads);
    }
    for (dimension, region) in mem::take(&mut deadlines.held) {
        if let Some(slot) = dimensions.slot(dimension, region) {
            deadlines.plan(slot.due, dimension, region);
        }
    }
    let most = most_load(&config);
    while deadlines.load < most
        && let Some(region) = deadlines.next_due(dimensions, clock.now)
    {
        match deadlines.awaits_coupled(dimensions, &couplings, region) {
            true => deadlines.held.push(region),
            false => deadlines.begin_group(dimensions, &couplings, &mut saves, false, region),
        }
        deadlines.hand_over(&threads);
    }
}

/// Ticks that are further away than this, on the coordinator's clock, leave a region idle until then. In lockstep everything
/// ticks at once.
pub fn soon(config: &CoordinatorConfig, clock: &Clock) -> Duration {
    if config.mode.is_lockstep() { Duration::MAX } else { clock.now.saturating_add(LONG_WAIT) }
}

/// Regions that do not tick for a while are saved, take in columns and give them up all the same.
pub fn tend_idle(
    config: Res<CoordinatorConfig>,
    clock: Res<Clock>,
    mut dimensions: ResMut<Dimensions>,
    mut deadlines: ResMut<Deadlines>,
    mut saves: ResMut<Saves>,
    threads: Res<Threads>,
) {
    let soon = soon(&config, &clock);
    for (id, dimension) in &mut dimensions.open {
        if dimension.is_closing() || !dimension.may_be_idle() {
            continue;
        }
        dimension.has_idle_regions = false;
        for region in dimension.regionizer.regions() {
            let known = deadlines.slot(dimension, region);
            dimension.has_idle_regions |= known.is_some_and(|slot| slot.may_be_idle(&dimension.time));
            let Some(slot) = dimension.regionizer.data_mut(region) else { continue };
            if !slot.is_idle(&dimension.time, soon) {
                continue;
            }
            let Inbox { columns, give_up, cut, absorbed, .. } = &slot.parked.get().inbox;
            let has_work = !columns.is_empty() || !give_up.is_empty() || !cut.is_empty() || !absorbed.is_empty();
            let has_world = slot.parked.get().world.is_some();
            let is_due = saves.is_due(&mut slot.save_turn, clock.now);
            let is_asked = is_due || saves.wants(*id, region).is_some();
            if (slot.halted.is_none() || has_world) && (has_work || is_asked) {
                deadlines.begin_idle(dimension, region, Task::Save, &mut saves);
            }
        }
    }
    deadlines.hand_over(&threads);
}

/// In lockstep every task that was started ends within the pass.
pub fn finish_lockstep(
    config: Res<CoordinatorConfig>,
    mut inbound: ResMut<Inbound>,
    mut dimensions: ResMut<Dimensions>,
    mut deadlines: ResMut<Deadlines>,
    mut saves: ResMut<Saves>,
    mut directory: ResMut<Directory>,
    mut post: ResMut<Post>,
    mut publisher: ResMut<Publisher>,
    threads: Res<Threads>,
) {
    if !config.mode.is_lockstep() {
        return;
    }
    loop {
        // Only when all are back, they end in an order that is always the same.
        let begun = deadlines.running.values().filter(|running| running.load > 0).count();
        let mut done = mem::take(inbound.tasks.get());
        done.extend(threads.regions.wait_for(begun.saturating_sub(done.len())));
        if done.is_empty() {
            break;
        }
        let (dimensions, deadlines, saves) = (&mut *dimensions, &mut *deadlines, &mut *saves);
        let (directory, post, publisher) = (&mut *directory, &mut *post, &mut *publisher);
        let mut ends = TaskEnds { config: &config, dimensions, deadlines, saves, directory, post, publisher };
        ends.finish_all(done);
        deadlines.hand_over(&threads);
    }
    if let Some(payload) = publisher.take_panic() {
        std::panic::resume_unwind(payload);
    }
}
