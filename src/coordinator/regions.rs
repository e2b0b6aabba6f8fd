//! The regions of a dimension, and the coordinator's data of each.

use crate::coordinator::clock::DimensionTime;
use crate::coordinator::figures::history::TickHistory;
use crate::coordinator::messages::faults::RegionFault;
use crate::region::{RegionData, RegionId, RegionPart, Regionizer};
use crate::simulation::{Inbox, RegionNumbers, RegionWorld, TaskProgress};
use crate::space::SectionPos;
use bevy::platform::cell::SyncCell;
use rustc_hash::{FxHashMap, FxHashSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// The regions of a dimension.
pub struct Regions {
    pub regionizer: Regionizer<Box<RegionSlot>>,
    /// Everything that arrives for a region while it ticks.
    pub waiting: SyncCell<FxHashMap<RegionId, Inbox>>,
    /// `true` if some regions may be idle while others tick: paused, halted or slow.
    pub has_idle: bool,
    /// Merged regions, each with its absorber, until that one has taken over their contents.
    successors: FxHashMap<RegionId, RegionId>,
}

impl Regions {
    pub fn new(regionizer: Regionizer<Box<RegionSlot>>) -> Self {
        let (waiting, successors) = (SyncCell::new(FxHashMap::default()), FxHashMap::default());
        Self { regionizer, waiting, has_idle: false, successors }
    }

    pub fn note_merge(&mut self, from: RegionId, into: RegionId) {
        self.successors.values_mut().filter(|region| **region == from).for_each(|region| *region = into);
        self.successors.insert(from, into);
    }

    /// The region, and those that merged into it and are not yet reported as part of it.
    pub fn all_predecessors(&self, region: RegionId) -> Vec<RegionId> {
        let merged = self.successors.iter().filter(|(_, into)| **into == region).map(|(from, _)| *from);
        merged.chain([region]).collect()
    }

    /// Notes that the region has absorbed its merged regions, so that all their contents are reported as its own.
    pub fn note_absorbed(&mut self, into: RegionId) {
        self.successors.retain(|_, region| *region != into);
    }

    /// The region, or the one that absorbed it.
    pub fn successor(&self, region: RegionId) -> RegionId {
        self.successors.get(&region).copied().unwrap_or(region)
    }
}

/// The coordinator's data of a region that is not ticking.
pub struct RegionSlot {
    pub parked: SyncCell<Parked>,
    /// The time of its next tick, on the coordinator's clock.
    pub due: Duration,
    /// The time of its next save.
    pub save_due: Option<Duration>,
    /// When it last handed out everything unsaved.
    pub saved_at: Option<Duration>,
    pub control: Control,
    /// The dimension's clock at its last tick; `None` if a pause came in between.
    pub last_clock: Option<Duration>,
    /// The dimension's single steps that it has made; `None` until the coordinator knows the region.
    pub made_steps: Option<u64>,
    /// Parts that split off and are not handed over yet.
    pub parts: Vec<RegionPart>,
    pub halted: Option<Halted>,
    pub history: TickHistory,
    /// The part of its period that a tick takes, averaged over the last ticks.
    tick_share: f64,
    pub numbers: RegionNumbers,
    /// The current activity of its task, set by the region thread.
    pub progress: Arc<TaskProgress>,
    /// Its sections, sorted; cached until they change.
    pub listed_sections: Option<Arc<[SectionPos]>>,
}

impl Parked {
    /// Its inbox.
    pub fn inbox(&mut self) -> &mut Inbox {
        self.inbox.get_or_insert_default()
    }

    /// Takes what is in its inbox.
    pub fn take_inbox(&mut self) -> Inbox {
        self.inbox.take().map(|inbox| *inbox).unwrap_or_default()
    }

    /// The sections that the world knows as its own, or will know when it is made.
    fn sections(&mut self) -> &mut FxHashSet<SectionPos> {
        match self.worlds.first_mut() {
            Some(world) => world.sections(),
            None => &mut self.inbox.get_or_insert_default().sections,
        }
    }
}

/// The game's orders for one region.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Control {
    /// Its own tick rate in ticks per second.
    pub ticks_per_second: Option<f64>,
    pub paused: bool,
    /// Single steps that it may still make while it is paused.
    pub steps: u32,
}

impl Control {
    fn merge(&mut self, other: Self) {
        self.ticks_per_second = self.ticks_per_second.or(other.ticks_per_second);
        self.paused &= other.paused;
    }
}

/// The reason why a region does not tick until it is restarted or merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halted {
    /// `true` if regions that merge with it halt too.
    pub holds_others: bool,
    pub fault: Arc<RegionFault>,
}

impl RegionSlot {
    /// Returns `true` if it may tick now.
    pub fn may_tick(&self, time: &DimensionTime) -> bool {
        if self.halted.is_some() {
            false
        } else if self.control.paused {
            self.control.steps > 0
        } else {
            !time.settings.paused || self.made_steps.is_none_or(|made| made < time.steps)
        }
    }

    /// Makes a region that may tick due no later than one period from now; one that makes single steps is due at once.
    pub fn hasten(&mut self, time: &DimensionTime, now: Duration) {
        if !self.may_tick(time) {
            return;
        }
        let latest = match self.control.paused || time.settings.paused {
            true => now,
            false => now.saturating_add(time.real_period(self.control.ticks_per_second)),
        };
        self.due = self.due.min(latest);
    }

    /// Returns `true` if it does not tick before `soon`, so that any other work with it is done without a tick.
    pub fn is_idle(&self, time: &DimensionTime, soon: Duration) -> bool {
        !self.may_tick(time) || self.due > soon
    }

    /// Returns `true` if it may be idle by itself while the regions around it tick.
    pub fn may_be_idle(&self, time: &DimensionTime) -> bool {
        self.control.paused || self.halted.is_some() || time.is_slow(self.control.ticks_per_second)
    }

    /// Notes that a tick begins. Returns the dimension's clock at it, and the time since the previous tick as systems see it.
    pub fn begin_tick(&mut self, time: &DimensionTime, period: Duration) -> (Duration, Duration) {
        let made = self.made_steps.unwrap_or(time.steps);
        let is_step = time.settings.paused && !self.control.paused;
        let clock = if is_step { time.at_step(made) } else { time.now };
        self.made_steps = Some(if is_step { made + 1 } else { time.steps });
        self.control.steps = self.control.steps.saturating_sub(1);
        // The clock may have moved between the steps of a pause, and no system may see that.
        let before = self.last_clock.filter(|_| !self.control.paused && !is_step);
        self.last_clock = Some(clock);
        (clock, before.map_or(period, |before| clock.saturating_sub(before)))
    }

    /// Returns `true` if it has neither ticked nor been given an order. Such regions come and go beside a region that is away.
    fn is_new(&self) -> bool {
        self.history.ticks() == 0 && self.control == Control::default()
    }

    /// Takes over the contents of another region, and what its world was about to do.
    fn take_contents(&mut self, other: &mut Self) {
        let (own, taken) = (self.parked.get(), mem::take(other.parked.get()));
        own.worlds.extend(taken.worlds);
        if let Some(inbox) = taken.inbox {
            own.inbox().append(*inbox);
        }
        self.due = self.due.max(other.due);
        // From now on this region saves the other's unsaved changes.
        self.save_due = [self.save_due, other.save_due].into_iter().flatten().min();
        self.saved_at = self.saved_at.and_then(|at| Some(at.min(other.saved_at?)));
        // A pause of one of them is not a long tick of both.
        self.last_clock = self.last_clock.max(other.last_clock);
        self.made_steps = self.made_steps.max(other.made_steps);
    }

    /// Hands a part of this region's world, which a region thread takes out of it, to a region of its own.
    fn hand_part(&mut self, own: &mut Self, part: &RegionPart) {
        // The region thread divides the sections of the world itself.
        if let Some(inbox) = &mut self.parked.get().inbox {
            for section in &part.sections {
                inbox.sections.remove(section);
            }
        }
        own.parked.get().inbox().sections = part.sections.iter().copied().collect();
        own.follow(self);
    }

    /// Notes that the region was in the world of another one until now.
    pub fn follow(&mut self, other: &Self) {
        self.due = other.due;
        self.save_due = other.save_due;
        self.saved_at = other.saved_at;
        self.last_clock = other.last_clock;
        self.made_steps = other.made_steps;
        self.tick_share = other.tick_share;
        self.progress.reset();
    }

    /// Notes how long a tick took. Returns the part of its period that a tick takes, averaged over about the last eight, as TCP
    /// smooths round-trip times (RFC 6298).
    pub fn note_tick_share(&mut self, took: Duration, period: Duration) -> f64 {
        let share = took.as_secs_f64() / period.as_secs_f64().max(1e-9);
        self.tick_share += (share - self.tick_share) / 8.0;
        self.tick_share
    }

    /// How long its next tick will take, by the median of the recent ones: a tick that had to wait for a processor is not long.
    pub fn expected_tick(&self) -> Option<Duration> {
        let recent = self.history.windows().iter().find(|window| window.ticks > 0);
        recent.map(|recent| recent.median)
    }
}

/// A region's contents while it does not tick.
#[derive(Default)]
pub struct Parked {
    /// Its world, if it has one, followed by those of regions that merged into it; its next task absorbs them.
    pub worlds: Vec<RegionWorld>,
    /// `None` if it is empty.
    pub inbox: Option<Box<Inbox>>,
}

impl RegionData for RegionSlot {
    fn new(_: RegionId) -> Self {
        Self {
            parked: SyncCell::new(Parked::default()),
            due: Duration::ZERO,
            save_due: None,
            saved_at: None,
            control: Control::default(),
            last_clock: None,
            made_steps: None,
            parts: Vec::new(),
            halted: None,
            history: TickHistory::default(),
            tick_share: 0.0,
            numbers: RegionNumbers::default(),
            progress: Arc::default(),
            listed_sections: None,
        }
    }

    /// The surviving region keeps its rate and its history, if it has them, and is paused only if both are. A new region does not
    /// count.
    fn merge(&mut self, _: RegionId, mut other: Self) {
        self.listed_sections = None;
        let has_world = !other.parked.get().worlds.is_empty();
        self.take_contents(&mut other);
        match (self.is_new(), other.is_new()) {
            (true, _) => self.control = other.control,
            (false, true) => {}
            (false, false) => self.control.merge(other.control),
        }
        self.halted = match (self.halted.take(), other.halted) {
            (Some(halted), Some(_)) => Some(halted),
            (one, other) => one.or(other).filter(|halted| halted.holds_others),
        };
        if !has_world {
            // Its numbers are those of a world that is gone.
            other.numbers = RegionNumbers::default();
        }
        self.numbers += other.numbers;
        if self.history.ticks() == 0 {
            self.history = other.history;
        }
    }

    /// A part begins with a copy of the region's clock, rate and history.
    fn split(&mut self, parts: &[RegionPart]) -> Vec<Self> {
        self.listed_sections = None;
        self.parts = parts.to_vec();
        let part = |part: &RegionPart| {
            let mut own = Self {
                control: self.control.clone(),
                halted: self.halted.clone(),
                history: self.history.clone(),
                ..Self::new(part.id)
            };
            self.hand_part(&mut own, part);
            own
        };
        parts.iter().map(part).collect()
    }

    fn grow(&mut self, sections: &[SectionPos]) {
        self.listed_sections = None;
        self.parked.get().sections().extend(sections);
    }

    fn shrink(&mut self, sections: &[SectionPos]) {
        self.listed_sections = None;
        let Parked { worlds, inbox } = self.parked.get();
        let inbox = inbox.as_mut().map(|inbox| &mut inbox.sections);
        for known in worlds.iter_mut().map(|world| world.sections()).chain(inbox) {
            for section in sections {
                known.remove(section);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::messages::clocks::DimensionClock;

    fn slot() -> RegionSlot {
        RegionSlot::new(RegionId::new(0))
    }

    /// Promise, clocks and faults: `Time` in a region never sees a pause.
    #[test]
    fn a_pause_is_no_long_tick() {
        let period = Duration::from_millis(50);
        let mut time = DimensionTime::new(DimensionClock::default());
        let mut slot = slot();
        time.now = Duration::from_secs(1);
        assert_eq!(slot.begin_tick(&time, period), (time.now, period));
        time.now += period * 3;
        assert_eq!(slot.begin_tick(&time, period), (time.now, period * 3), "skipped ticks are made up for");
        slot.control.paused = true;
        slot.control.steps = 1;
        time.now += Duration::from_secs(60);
        assert!(slot.may_tick(&time));
        assert_eq!(slot.begin_tick(&time, period), (time.now, period));
        assert!(!slot.may_tick(&time));
    }

    #[test]
    fn steps_of_a_dimension_are_made_by_each_region() {
        let period = Duration::from_millis(50);
        let mut time = DimensionTime::new(DimensionClock { paused: true, ..Default::default() });
        let mut slot = slot();
        slot.made_steps = Some(0);
        assert!(!slot.may_tick(&time));
        time.step(2);
        for step in 1..=2 {
            assert!(slot.may_tick(&time));
            assert_eq!(slot.begin_tick(&time, period), (period * (step + 1), period));
        }
        assert!(!slot.may_tick(&time));
    }

    #[test]
    fn ground_that_appears_beside_a_paused_region_does_not_wake_it() {
        let ticked = |paused| {
            let mut slot = slot();
            slot.history.push(Duration::from_secs(1), Duration::from_millis(1));
            slot.control = Control { paused, ticks_per_second: paused.then_some(5.0), steps: 0 };
            slot
        };
        for (mut into, from, paused) in [
            (ticked(true), slot(), true),
            (slot(), ticked(true), true),
            (ticked(true), ticked(false), false),
            (ticked(false), ticked(true), false),
            (ticked(true), ticked(true), true),
        ] {
            into.merge(RegionId::new(1), from);
            assert_eq!((into.control.paused, into.control.ticks_per_second), (paused, Some(5.0)));
        }
    }

    #[test]
    fn a_halted_region_revives_by_merging_unless_halts_spread() {
        for holds_others in [false, true] {
            let fault = Arc::new(RegionFault::new("a bomb went off"));
            let halted = || RegionSlot { halted: Some(Halted { holds_others, fault: fault.clone() }), ..slot() };
            for (mut into, from) in [(slot(), halted()), (halted(), slot())] {
                into.merge(RegionId::new(1), from);
                assert_eq!(into.halted.is_some(), holds_others);
            }
            let mut both = halted();
            both.merge(RegionId::new(1), halted());
            assert!(both.halted.is_some());
        }
    }
}
