//! Profiles of a region: the time of each of its systems, measured while it ticks.

use super::RegionInfo;
use crate::region::RegionId;
use crate::space::DimensionId;
use bevy::ecs::schedule::{InternedScheduleLabel, SystemKey, SystemWithAccess};
use bevy::ecs::system::{Adapt, AdapterSystem, RunSystemError, System};
use bevy::prelude::*;
use bevy::utils::prelude::DebugName;
use std::any::TypeId;
use std::cmp::Reverse;
use std::fmt::{self, Debug, Formatter};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Makes profiles of the region that has it. While no profile is being made, that costs next to nothing: one look at a flag for
/// each system.
///
/// `terrane_inspect` asks for profiles from the main world.
#[derive(Resource, Clone, Default, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(opaque)]
#[reflect(Resource, Clone, Default)]
pub struct RegionProfiler(Arc<Shared>);

/// Where the time of a region's ticks went.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionProfile {
    /// The region.
    pub region: RegionId,
    /// Its dimension.
    pub dimension: DimensionId,
    /// The number of ticks.
    pub ticks: u32,
    /// The time from the order to the end of the profile.
    pub elapsed: Duration,
    /// The time that the ticks took together.
    pub busy: Duration,
    /// The parts of the ticks, the longest first. Systems in schedules that were added after the region was made are not measured: their
    /// time is in the part of commands and run conditions. A system that runs another schedule counts with that schedule's systems.
    pub parts: Vec<ProfilePart>,
}

/// A part of the ticks in a [`RegionProfile`]: a system, or a step of the crate.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfilePart {
    /// The schedule of the system; empty for a step of the crate.
    pub schedule: String,
    /// The name of the system or step.
    pub name: String,
    /// How often it ran.
    pub runs: u32,
    /// The time that it took. For a system, the commands that it queued do not count: they are a step of their own.
    pub time: Duration,
}

impl RegionProfile {
    /// The share of the ticks' time that the part took, from 0 to 1. If the region runs systems in parallel, the shares add up to
    /// more than 1.
    pub fn share(&self, part: &ProfilePart) -> f64 {
        part.time.as_secs_f64() / self.busy.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// The steps of a tick beside the game's systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProfiledStep {
    Receive,
    Schedules,
    Work,
    Send,
}

/// The names of the steps. That of the schedules is what their systems leave of it.
const STEPS: [&str; 4] = [
    "arrivals, edits and letters",
    "commands of systems, run conditions",
    "captures and restores",
    "handing out changes and unsaved data",
];

/// The counts of the systems, shared with them.
#[derive(Default)]
struct Shared {
    /// `true` while a profile is being made; it begins and ends with a tick.
    is_wanted: AtomicBool,
    /// `true` while a tick is measured.
    is_on: AtomicBool,
    systems: Vec<Counter>,
    run: Mutex<Option<Run>>,
}

struct Counter {
    schedule: InternedScheduleLabel,
    name: DebugName,
    runs: AtomicU32,
    /// In nanoseconds.
    time: AtomicU64,
}

/// A profile that is being made.
struct Run {
    began: Instant,
    length: Duration,
    ticks: u32,
    steps: [Duration; STEPS.len()],
    done: Box<dyn FnOnce(RegionProfile) + Send>,
}

/// Measures a system while a profile is being made.
struct Timer {
    shared: Arc<Shared>,
    system: usize,
}

impl Adapt<SystemWithAccess> for Timer {
    type In = ();
    type Out = ();

    fn adapt(&mut self, (): (), run: impl FnOnce(()) -> Result<(), RunSystemError>) -> Result<(), RunSystemError> {
        // Nothing else in memory depends on the counts.
        if !self.shared.is_on.load(Ordering::Relaxed) {
            return run(());
        }
        let began = Instant::now();
        let result = run(());
        let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let counter = &self.shared.systems[self.system];
        counter.runs.fetch_add(1, Ordering::Relaxed);
        counter.time.fetch_add(took, Ordering::Relaxed);
        result
    }
}

impl Debug for RegionProfiler {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegionProfiler").field("is_on", &self.is_on()).finish_non_exhaustive()
    }
}

impl RegionProfiler {
    /// Puts a timer around each system of a world that has not run yet.
    pub(super) fn install(schedules: &mut Schedules, region_tick: &mut Schedule) -> Self {
        let mut all: Vec<&mut Schedule> = schedules.iter_mut().map(|(_, schedule)| schedule).collect();
        all.push(region_tick);
        let counter = |schedule: &Schedule, key| {
            let name = schedule.graph().systems.get(key)?.name();
            Some(Counter { schedule: schedule.label(), name, runs: AtomicU32::new(0), time: AtomicU64::new(0) })
        };
        let counters = all.iter().flat_map(|schedule| {
            timed(schedule).into_iter().filter_map(|key| counter(schedule, key)).collect::<Vec<_>>()
        });
        let shared = Arc::new(Shared { systems: counters.collect(), ..Shared::default() });
        let mut number = 0..;
        for schedule in all {
            for key in timed(schedule) {
                let systems = &mut schedule.graph_mut().systems;
                let Some((place, system)) = systems.get_mut(key).zip(number.next()) else { continue };
                let name = place.name();
                let bare = mem::replace(place, SystemWithAccess::new(Box::new(ApplyDeferred)));
                let timer = Timer { shared: shared.clone(), system };
                *place = SystemWithAccess::new(Box::new(AdapterSystem::new(timer, bare, name)));
            }
        }
        Self(shared)
    }

    /// Returns `true` if a profile is being made.
    pub fn is_on(&self) -> bool {
        self.0.is_wanted.load(Ordering::Relaxed)
    }

    /// Begins a profile of this length with the next tick. It ends with the first tick after that time. The profile that was being made is
    /// dropped, and so is this one if its region ends before, for example by a merge.
    pub fn begin(&self, length: Duration, done: impl FnOnce(RegionProfile) + Send + 'static) {
        let mut run = self.run();
        for counter in &self.0.systems {
            counter.runs.store(0, Ordering::Relaxed);
            counter.time.store(0, Ordering::Relaxed);
        }
        let (ticks, steps, done) = (0, Default::default(), Box::new(done));
        *run = Some(Run { began: Instant::now(), length, ticks, steps, done });
        // A tick that is under way has not measured what it did so far.
        self.0.is_on.store(false, Ordering::Relaxed);
        self.0.is_wanted.store(true, Ordering::Relaxed);
    }

    fn run(&self) -> MutexGuard<'_, Option<Run>> {
        self.0.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a tick, with the time of each of its steps. Ends the profile if it is long enough.
    fn add(&self, info: &RegionInfo, steps: [Duration; STEPS.len()]) {
        self.0.is_on.store(false, Ordering::Relaxed);
        let mut run = self.run();
        let Some(now) = run.as_mut() else { return };
        now.ticks += 1;
        now.steps.iter_mut().zip(steps).for_each(|(sum, step)| *sum += step);
        let elapsed = now.began.elapsed();
        if elapsed < now.length {
            return;
        }
        self.0.is_wanted.store(false, Ordering::Relaxed);
        let Some(Run { ticks, mut steps, done, .. }) = run.take() else { return };
        drop(run);
        let busy = steps.iter().sum();
        let systems = self.0.systems.iter().map(Counter::part);
        let mut parts: Vec<_> = systems.filter(|part| part.runs > 0).collect();
        let schedules = &mut steps[ProfiledStep::Schedules as usize];
        *schedules = schedules.saturating_sub(parts.iter().map(|part| part.time).sum());
        let own = STEPS.into_iter().zip(steps).filter(|(_, time)| !time.is_zero());
        parts.extend(own.map(|(name, time)| ProfilePart {
            schedule: String::new(),
            name: name.to_owned(),
            runs: ticks,
            time,
        }));
        parts.sort_by_key(|part| Reverse(part.time));
        done(RegionProfile { region: info.region, dimension: info.dimension, ticks, elapsed, busy, parts });
    }
}

/// The systems of a schedule that are measured: all but those that only apply commands.
fn timed(schedule: &Schedule) -> Vec<SystemKey> {
    let systems = schedule.graph().systems.iter();
    // Bevy knows these by their type.
    let systems = systems.filter(|(_, system, _)| system.system_type() != TypeId::of::<ApplyDeferred>());
    systems.map(|(key, ..)| key).collect()
}

impl Counter {
    fn part(&self) -> ProfilePart {
        ProfilePart {
            schedule: format!("{:?}", self.schedule),
            name: self.name.to_string(),
            runs: self.runs.load(Ordering::Relaxed),
            time: Duration::from_nanos(self.time.load(Ordering::Relaxed)),
        }
    }
}

/// The time of each step of one tick. It measures nothing unless a profile is being made.
#[derive(Default)]
pub(super) struct StepTimes {
    last: Option<Instant>,
    steps: [Duration; STEPS.len()],
}

impl StepTimes {
    /// Begins a task. One without a tick is not measured.
    pub fn begin(profiler: &RegionProfiler, is_tick: bool) -> Self {
        if !is_tick || !profiler.is_on() {
            return Self::default();
        }
        profiler.0.is_on.store(true, Ordering::Relaxed);
        Self { last: Some(Instant::now()), ..Self::default() }
    }

    /// Ends a step: the time since the end of the last one was for this.
    pub fn end(&mut self, step: ProfiledStep) {
        if let Some(last) = &mut self.last {
            let now = Instant::now();
            self.steps[step as usize] += now.duration_since(*last);
            *last = now;
        }
    }

    /// Ends the tick.
    pub fn finish(self, profiler: &RegionProfiler, world: &World) {
        // A profile that was begun during this tick begins with the next one.
        if self.last.is_some() && profiler.0.is_on.load(Ordering::Relaxed) {
            profiler.add(world.resource::<RegionInfo>(), self.steps);
        }
    }
}
