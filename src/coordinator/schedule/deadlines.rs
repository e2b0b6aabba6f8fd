//! When regions are due, and which regions are away.

use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::messages::clocks::ControlRegion;
use crate::coordinator::regions::{Parked, RegionSlot};
use crate::coordinator::saves::Saves;
use crate::coordinator::schedule::control::Couplings;
use crate::coordinator::threads::Threads;
use crate::coordinator::threads::regions::RegionJob;
use crate::region::{RegionId, RegionPart};
use crate::simulation::{Assignment, Letter, Task};
use crate::space::DimensionId;
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::mem;
use std::time::Duration;

/// A region that is away: on a region thread, or waiting for a split to end.
pub struct Running {
    pub slot: Box<RegionSlot>,
    pub is_tick: bool,
    /// The saving round for which it hands out its unsaved changes.
    pub saves: Option<u64>,
    /// The parts of its split, which wait with the region.
    pub parts: Vec<RegionId>,
    /// How many of its limits the watchdog has already reported.
    pub told: u32,
    /// Its part of the load on the region threads.
    pub load: Duration,
}

impl Running {
    pub fn waiting(slot: Box<RegionSlot>) -> Self {
        Self { slot, is_tick: false, saves: None, parts: Vec::new(), told: 0, load: Duration::ZERO }
    }
}

/// The load of a long task, or of one whose duration is not known.
const FULL_LOAD: Duration = Duration::from_micros(800);
/// The least load of a tick, with what the coordinator does for it. Many short ticks can wait for a thread, so that threads and
/// coordinator need not wake each other for each of them.
const SHORTEST_TICK: Duration = Duration::from_micros(50);
/// The load that a thread may have at least: one long task runs, and one waits.
const LEAST_LOAD: Duration = FULL_LOAD.saturating_mul(2);
/// The load that a thread may have if it would otherwise wait for the coordinator.
const MOST_LOAD: Duration = Duration::from_millis(25);

/// When regions are due, and which regions are away.
#[derive(Resource, Default)]
pub struct Deadlines {
    pub heap: BinaryHeap<Reverse<(Duration, DimensionId, RegionId)>>,
    assignments: u64,
    /// The time that the tasks which run or wait on the region threads will take, where a long task counts as `FULL_LOAD`.
    pub load: Duration,
    /// The part of it that came since ticks were last begun.
    begun: Duration,
    /// The load when tasks were last handed to the threads.
    load_at_hand_over: Duration,
    /// How much work a region thread may have at a time: so much that it need not wait for the coordinator, and so little that the
    /// order of deadlines is kept.
    thread_load: Duration,
    /// The threads got as much as they may have when ticks were last begun.
    is_full: bool,
    pub running: AwayRegions,
    /// Regions that are due and wait for a coupled region that is still in its last tick.
    pub held: Vec<(DimensionId, RegionId)>,
    /// Jobs that are about to go to the region threads.
    jobs: Jobs,
    /// Regions to halt once they are back, and restarts that were ordered after that.
    pub to_halt: Vec<ControlRegion>,
    /// The largest part of its period that a region took for a tick, since the last call of `take_slowest`.
    slowest: f64,
}

struct Jobs(SyncCell<VecDeque<RegionJob>>);

impl Default for Jobs {
    fn default() -> Self {
        Self(SyncCell::new(VecDeque::new()))
    }
}

/// Regions that are away, by dimension and id.
pub type AwayRegions = FxHashMap<(DimensionId, RegionId), Running>;

impl Deadlines {
    /// Plans a region. An entry that no longer matches the region's deadline is skipped when it comes up.
    pub fn plan(&mut self, due: Duration, dimension: DimensionId, region: RegionId) {
        self.heap.push(Reverse((due, dimension, region)));
    }

    /// The slot of a region, away or not.
    pub fn slot<'a>(&'a self, dimension: &'a OpenDimension, region: RegionId) -> Option<&'a RegionSlot> {
        let away = self.running.get(&(dimension.id, region)).map(|running| &*running.slot);
        away.or_else(|| dimension.regions.regionizer.data(region).map(AsRef::as_ref))
    }

    /// The slot of a region, away or not, for changes.
    pub fn slot_mut<'a>(
        &'a mut self,
        dimension: &'a mut OpenDimension,
        region: RegionId,
    ) -> Option<&'a mut RegionSlot> {
        let away = self.running.get_mut(&(dimension.id, region)).map(|running| &mut *running.slot);
        away.or_else(|| dimension.regions.regionizer.data_mut(region).map(AsMut::as_mut))
    }

    /// The regions that are away, in order.
    pub fn away(&self) -> Vec<(DimensionId, RegionId)> {
        let mut away: Vec<_> = self.running.keys().copied().collect();
        away.sort_unstable();
        away
    }

    pub fn next_assignment(&mut self) -> u64 {
        self.assignments += 1;
        self.assignments
    }

    /// The load that the region threads may have.
    pub fn most_load(&self, threads: usize) -> Duration {
        self.thread_load.max(LEAST_LOAD).saturating_mul(threads.max(1) as u32)
    }

    /// Adapts the load of a thread to how far the threads have come since ticks were last begun. If a thread may have run out of
    /// work, each gets twice as much, and a little less while they have more than half of theirs.
    pub fn adapt_load(&mut self, threads: usize) {
        let (most, left) = (self.most_load(threads), self.load.saturating_sub(self.begun));
        if mem::take(&mut self.is_full) && left <= most / 4 {
            self.thread_load = (self.thread_load.max(LEAST_LOAD) * 2).min(MOST_LOAD);
        } else if left > most / 2 {
            self.thread_load = self.thread_load * 7 / 8;
        }
    }

    /// Notes that the ticks of a pass were begun, and whether the threads got as much as they may have.
    pub fn note_begun(&mut self, is_full: bool) {
        (self.begun, self.is_full) = (Duration::ZERO, is_full);
    }

    /// Notes the part of its period that a region's tick takes on average.
    pub fn note_tick_share(&mut self, share: f64) {
        self.slowest = self.slowest.max(share);
    }

    pub fn take_slowest(&mut self) -> f64 {
        mem::take(&mut self.slowest)
    }

    /// Hands the prepared jobs to the region threads.
    pub fn hand_over(&mut self, threads: &Threads) {
        self.load_at_hand_over = self.load;
        if !self.jobs.0.get().is_empty() {
            threads.regions.run(self.jobs.0.get());
        }
    }

    /// Returns `true` if as much is prepared as one full tick: a full tick goes to its thread at once, short ones many at a time.
    pub fn is_ready_to_hand_over(&self) -> bool {
        self.load.saturating_sub(self.load_at_hand_over) >= FULL_LOAD
    }

    /// Takes the region's worlds and inbox for a region thread.
    fn assign(
        &mut self,
        dimension: &OpenDimension,
        region: RegionId,
        mut running: Running,
        task: Task,
        saves: &mut Saves,
    ) -> Assignment {
        let clock = (dimension.time.now, dimension.time.period(running.slot.control.ticks_per_second));
        let parked = mem::take(running.slot.parked.get());
        if !matches!(task, Task::Tick { save: false, .. }) {
            running.slot.saved_at = Some(dimension.time.real_now);
            running.slot.save_due = Some(saves.autosave.next_turn((dimension.id, region), dimension.time.real_now));
        }
        let number = self.next_assignment();
        let progress = running.slot.progress.clone();
        progress.reset();
        let expected = running.slot.expected_tick().filter(|_| running.is_tick);
        running.load = expected.unwrap_or(FULL_LOAD).clamp(SHORTEST_TICK, FULL_LOAD);
        self.load += running.load;
        self.begun += running.load;
        self.running.insert((dimension.id, region), running);
        let Parked { worlds, inbox } = parked;
        let ground = worlds.is_empty().then(|| dimension.ground.clone());
        let (dimension, time_of_day) = (dimension.id, dimension.time.time_of_day);
        Assignment { dimension, region, ground, worlds, inbox, task, number, clock, time_of_day, progress }
    }

    /// Begins a task for a region thread.
    pub fn begin(
        &mut self,
        dimension: &OpenDimension,
        region: RegionId,
        running: Running,
        task: Task,
        saves: &mut Saves,
    ) {
        let assignment = self.assign(dimension, region, running, task, saves);
        self.jobs.0.get().push_back(assignment.into());
    }

    /// Begins the split of a region's world, from which the parts get worlds of their own.
    pub fn begin_split(
        &mut self,
        dimension: &mut OpenDimension,
        region: RegionId,
        mut running: Running,
        parts: Vec<RegionPart>,
        saves: &mut Saves,
    ) {
        // Which letters go with which part depends on the entities, so the letters wait.
        let letters = running.slot.parked.get().inbox.as_mut().map(|inbox| mem::take(&mut inbox.letters));
        if let Some(letters) = letters.filter(|letters| !letters.is_empty()) {
            dimension.inbox(region).letters.extend(letters);
        }
        self.begin(dimension, region, running, Task::Split { parts }, saves);
    }

    /// Begins a task without a tick. Messages and closures wait for the region's next tick.
    pub fn begin_idle(&mut self, dimension: &mut OpenDimension, region: RegionId, task: Task, saves: &mut Saves) {
        let Some(mut slot) = dimension.regions.regionizer.try_begin_tick(region) else { return };
        let letters: Vec<Letter> = match task {
            Task::Save | Task::Leave => slot.parked.get().inbox.as_mut().map(|inbox| mem::take(&mut inbox.letters)),
            _ => None,
        }
        .unwrap_or_default();
        let running = Running { saves: saves.wants(dimension.id, region), ..Running::waiting(slot) };
        self.begin(dimension, region, running, task, saves);
        if !letters.is_empty() {
            // No other letters can have arrived in between.
            dimension.inbox(region).letters.extend(letters);
        }
    }

    /// The due region with the earliest deadline.
    pub fn next_due(&mut self, dimensions: &DimensionBook, now: Duration) -> Option<(DimensionId, RegionId)> {
        loop {
            let &Reverse((due, dimension, region)) = self.heap.peek()?;
            if due > now {
                return None;
            }
            self.heap.pop();
            if dimensions.idle(dimension, region).is_some_and(|slot| slot.due == due) {
                return Some((dimension, region));
            }
        }
    }

    /// Returns `true` if a coupled region is still in a tick, for at most one period. Of two late regions, the first to come back
    /// must not begin alone.
    pub fn awaits_coupled(
        &self,
        dimensions: &DimensionBook,
        couplings: &Couplings,
        (id, region): (DimensionId, RegionId),
    ) -> bool {
        if couplings.places.is_empty() {
            return false;
        }
        let Some(open) = dimensions.open.get(&id) else { return false };
        let Some(slot) = open.regions.regionizer.data(region) else { return false };
        let patience = open.time.real_period(slot.control.ticks_per_second);
        let is_ticking = |other| self.running.get(other).is_some_and(|running| running.is_tick);
        open.time.real_now < slot.due.saturating_add(patience)
            && couplings.group(dimensions, id, region).iter().any(is_ticking)
    }

    /// Begins the tick of a region and of the coupled regions that are due too.
    pub fn begin_group(
        &mut self,
        dimensions: &mut DimensionBook,
        couplings: &Couplings,
        saves: &mut Saves,
        is_lockstep: bool,
        (id, region): (DimensionId, RegionId),
    ) {
        if couplings.places.is_empty() {
            let open = dimensions.open.get_mut(&id);
            let begun = open.and_then(|dimension| self.begin_tick(dimension, region, saves));
            return self.jobs.0.get().extend(begun.map(RegionJob::from));
        }
        let mut group = couplings.group(dimensions, id, region);
        group.retain(|(other_id, other)| {
            let Some(open) = dimensions.open.get(other_id) else { return false };
            let Some(slot) = open.regions.regionizer.data(*other) else { return false };
            // At most half a period early; from then on both are due at the same time.
            let early = open.time.real_period(slot.control.ticks_per_second) / 2;
            (*other_id, *other) == (id, region) || is_lockstep || slot.due <= open.time.real_now.saturating_add(early)
        });
        let begin = |(id, region)| self.begin_tick(dimensions.open.get_mut(&id)?, region, saves);
        let mut begun = group.into_iter().filter_map(begin);
        if let Some(first) = begun.next() {
            let coupled = begun.collect();
            self.jobs.0.get().push_back(RegionJob { first, coupled });
        }
    }

    fn begin_tick(&mut self, dimension: &mut OpenDimension, region: RegionId, saves: &mut Saves) -> Option<Assignment> {
        let (id, now) = (dimension.id, dimension.time.real_now);
        let may_tick = dimension.regions.regionizer.data(region).is_some_and(|slot| slot.may_tick(&dimension.time));
        if !may_tick || dimension.is_closing() {
            return None;
        }
        let mut slot = dimension.regions.regionizer.try_begin_tick(region)?;
        let own_rate = slot.control.ticks_per_second;
        // A late region skips ticks instead of piling them up.
        slot.due = slot.due.saturating_add(dimension.time.real_period(own_rate)).max(now);
        let (clock, delta) = slot.begin_tick(&dimension.time, dimension.time.period(own_rate));
        let wanted = saves.wants(id, region);
        let save = saves.is_due(&mut slot.save_due, (id, region), now) || wanted.is_some();
        let running = Running { is_tick: true, saves: wanted, ..Running::waiting(slot) };
        Some(self.assign(dimension, region, running, Task::Tick { clock, delta, save }, saves))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREADS: usize = 2;

    /// The load after a pass that finds `left` of the last one, which filled the threads or not.
    fn adapted(deadlines: &mut Deadlines, left: Duration, is_full: bool) -> Duration {
        deadlines.note_begun(is_full);
        deadlines.load = left;
        deadlines.adapt_load(THREADS);
        deadlines.most_load(THREADS)
    }

    #[test]
    fn threads_that_run_out_of_work_get_more_at_a_time() {
        let mut deadlines = Deadlines::default();
        let least = deadlines.most_load(THREADS);
        assert_eq!(adapted(&mut deadlines, Duration::ZERO, false), least, "no region waits");
        assert_eq!(adapted(&mut deadlines, least / 2, true), least, "the threads have enough");
        assert_eq!(
            adapted(&mut deadlines, FULL_LOAD, true),
            2 * least,
            "one thread has a long task, the other has none"
        );
        for _ in 0..10 {
            adapted(&mut deadlines, Duration::ZERO, true);
        }
        assert_eq!(deadlines.most_load(THREADS), 2 * MOST_LOAD);
        assert_eq!(adapted(&mut deadlines, MOST_LOAD, true), 2 * MOST_LOAD, "half is left");
        deadlines.note_begun(true);
        (deadlines.load, deadlines.begun) = (2 * MOST_LOAD, 2 * MOST_LOAD);
        deadlines.adapt_load(THREADS);
        assert_eq!(deadlines.most_load(THREADS), 2 * MOST_LOAD, "tasks of this pass do not count");
        assert!(adapted(&mut deadlines, 2 * MOST_LOAD, true) < 2 * MOST_LOAD);
        for _ in 0..50 {
            let most = deadlines.most_load(THREADS);
            adapted(&mut deadlines, most, true);
        }
        assert_eq!(deadlines.most_load(THREADS), least);
    }
}
