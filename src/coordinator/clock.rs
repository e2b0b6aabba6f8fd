//! Clocks: the coordinator's own, and one for each dimension, which can be slowed, paused and stepped.

use crate::coordinator::messages::clocks::{DimensionClock, period};
use crate::simulation::{ClockedTimeOfDay, TimeOfDay};
use bevy::prelude::*;
use std::time::{Duration, Instant};

/// A region whose next tick is further away is dispatched in between, because an autosave does not wait so long.
pub const LONG_WAIT: Duration = Duration::from_secs(1);

/// The most seconds of a dimension's clock per real second. With it and the longest period, no dimension gets to the end of
/// [`Duration`], where its clock would stand still for ever.
const FASTEST: f64 = 1e6;

/// The coordinator's clock: the time since its start; in lockstep it advances one tick per pass.
#[derive(Resource)]
pub struct Clock {
    pub now: Duration,
    pub began: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self { now: Duration::ZERO, began: Instant::now() }
    }
}

impl Clock {
    /// The time until which a region counts as not idle: it is idle if its next tick is later, on the coordinator's clock. In
    /// lockstep no region is idle for its deadline.
    pub fn soon(&self, is_lockstep: bool) -> Duration {
        if is_lockstep { Duration::MAX } else { self.now.saturating_add(LONG_WAIT) }
    }
}

/// The time of one dimension.
#[derive(Clone, Debug)]
pub struct DimensionTime {
    pub settings: DimensionClock,
    pub now: Duration,
    /// The time of day, as it was last set.
    pub time_of_day: Option<ClockedTimeOfDay>,
    /// The time of day that was stored when it was opened, in days.
    pub stored_days: Option<f64>,
    /// The time of the coordinator's clock.
    pub real_now: Duration,
    /// Single steps granted since it was opened; each region counts the steps that it has made.
    pub steps: u64,
}

impl DimensionTime {
    pub fn new(settings: DimensionClock) -> Self {
        Self::resumed(settings, Duration::ZERO)
    }

    /// Continues where an earlier session ended.
    pub fn resumed(settings: DimensionClock, before: Duration) -> Self {
        // The first tick comes after a whole period.
        let (now, real_now) = (before.saturating_add(settings.period()), Duration::ZERO);
        Self { settings, now, real_now, time_of_day: None, stored_days: None, steps: 0 }
    }

    /// Sets the time of day.
    pub fn set_time_of_day(&mut self, time: Option<TimeOfDay>) {
        self.time_of_day = time.map(|time| ClockedTimeOfDay { time, clock: self.now });
    }

    /// The time of day in days, if there is one.
    pub fn days(&self) -> Option<f64> {
        self.time_of_day.map(|time| time.at(self.now).days).filter(|days| days.is_finite())
    }

    /// The period of a region on the dimension's clock.
    pub fn period(&self, own_rate: Option<f64>) -> Duration {
        own_rate.and_then(period).unwrap_or_else(|| self.settings.period())
    }

    /// The period of a region on the coordinator's clock.
    pub fn real_period(&self, own_rate: Option<f64>) -> Duration {
        let seconds = self.period(own_rate).as_secs_f64() / self.rate();
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).max(Duration::from_nanos(1))
    }

    /// Returns `true` if a region waits long between its ticks.
    pub fn is_slow(&self, own_rate: Option<f64>) -> bool {
        self.real_period(own_rate) > LONG_WAIT
    }

    fn rate(&self) -> f64 {
        let rate = self.settings.rate;
        if rate > 0.0 && rate.is_finite() { rate.min(FASTEST) } else { 1.0 }
    }

    pub fn advance(&mut self, real: Duration, is_lockstep: bool) {
        if self.settings.paused {
            return;
        }
        let passed = match is_lockstep {
            true => self.settings.period(),
            false => Duration::try_from_secs_f64(real.as_secs_f64() * self.rate()).unwrap_or_default(),
        };
        self.now = self.now.saturating_add(passed);
    }

    /// Lets each region tick this many times although the clock stands still.
    pub fn step(&mut self, ticks: u32) {
        self.steps += u64::from(ticks);
        self.now = self.now.saturating_add(self.settings.period().saturating_mul(ticks));
    }

    /// The clock at a region's next tick, if it makes single steps and has made `done` of them.
    pub fn at_step(&self, done: u64) -> Duration {
        let behind = self.steps.saturating_sub(done).saturating_sub(1);
        let behind = u32::try_from(behind).unwrap_or(u32::MAX);
        self.now.saturating_sub(self.settings.period().saturating_mul(behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_changes_how_often_and_not_how_long_a_tick_is() {
        let mut time = DimensionTime::new(DimensionClock { ticks_per_second: 10.0, rate: 4.0, paused: false });
        assert_eq!(time.period(None), Duration::from_millis(100));
        assert_eq!(time.real_period(None), Duration::from_millis(25));
        assert_eq!(time.real_period(Some(40.0)), Duration::from_micros(6_250));
        time.advance(Duration::from_secs(1), false);
        assert_eq!(time.now, Duration::from_millis(4_100));
    }

    #[test]
    fn a_paused_clock_moves_by_steps_alone() {
        let mut time = DimensionTime::new(DimensionClock { paused: true, ..default() });
        time.advance(Duration::from_secs(1), false);
        assert_eq!(time.now, Duration::from_millis(50));
        time.step(3);
        assert_eq!(time.now, Duration::from_millis(200));
        let clocks: Vec<_> = (0..3).map(|done| time.at_step(done).as_millis()).collect();
        assert_eq!(clocks, [100, 150, 200]);
    }

    #[test]
    fn settings_that_are_no_numbers_stop_nothing_and_panic_nowhere() {
        for bad in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            let mut time = DimensionTime::new(DimensionClock { ticks_per_second: bad, rate: bad, paused: false });
            assert_eq!(time.period(None), Duration::from_millis(50), "{bad}");
            assert!(time.real_period(Some(bad)) > Duration::ZERO);
            time.advance(Duration::from_secs(1), false);
        }
        let slow = DimensionTime::new(DimensionClock { ticks_per_second: 1e-300, rate: 1e-300, paused: false });
        assert_eq!(slow.real_period(None), Duration::MAX);
    }

    /// Promise, clocks and faults: No tick rate, no multiplier and no number of steps brings a clock to an end.
    #[test]
    fn a_clock_goes_on_after_any_settings_and_steps() {
        let extreme = DimensionClock { ticks_per_second: 1e-300, rate: f64::MAX, paused: false };
        let mut time = DimensionTime::new(extreme);
        for is_lockstep in [true, false] {
            for _ in 0..1_000 {
                time.advance(Duration::from_secs(3_600), is_lockstep);
                time.step(u32::MAX);
            }
        }
        let before = time.now;
        time.settings = DimensionClock::default();
        time.advance(Duration::from_secs(1), false);
        assert_eq!(time.now - before, Duration::from_secs(1));
        time.advance(Duration::ZERO, true);
        assert_eq!(time.now - before, Duration::from_millis(1_050));
    }
}
