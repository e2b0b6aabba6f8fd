//! How many columns may be in flight: as many as frames and regions bear.
//!
//! Additive increase, multiplicative decrease, as TCP finds the speed of a line that it shares with others (Chiu and
//! Jain 1989, "Analysis of the increase and decrease algorithms for congestion avoidance in computer networks"; RFC 5681).
//! The shared resource is the cores: too much generation shows as longer frames and longer ticks. Two more rules come from
//! TCP: after a decrease, nothing changes until the effect can be seen, and an unused limit does not grow (RFC 7661),
//! because it is untested. The limit does not fall while nothing is in flight.

use crate::coordinator::figures::totals::FrameTimes;
use crate::coordinator::messages::generation::Pacing;
use std::sync::Arc;
use std::time::Duration;

/// The time between two decisions.
const PERIOD: Duration = Duration::from_millis(250);
/// The pause between a decrease and the next decision; tick times are averaged over about as long.
const REACTION: Duration = Duration::from_millis(500);
const INCREASE: f64 = 16.0;
const DECREASE: f64 = 0.7;

/// The limit of columns in flight, and the data that it follows. It receives times and measures none.
pub struct InFlightLimit {
    pub settings: Pacing,
    limit: f64,
    /// The time of the next decision.
    decide_at: Duration,
    frames: Arc<FrameTimes>,
    /// The largest part of its period that a region took for a tick since the last decision.
    slowest: f64,
    is_lockstep: bool,
}

impl InFlightLimit {
    /// Begins with the maximum; an unbearable load falls below half of it within a second.
    pub fn new(settings: Pacing, is_lockstep: bool, frames: Arc<FrameTimes>) -> Self {
        let limit = settings.most.max(1) as f64;
        Self { settings, limit, decide_at: Duration::ZERO, frames, slowest: 0.0, is_lockstep }
    }

    pub fn is_lockstep(&self) -> bool {
        self.is_lockstep
    }

    /// The current limit.
    pub fn columns(&self) -> usize {
        match self.is_lockstep {
            // Lockstep must be repeatable, so speed has no influence.
            true => self.settings.most.max(1),
            false => self.limit as usize,
        }
    }

    /// Notes that a region took this part of its period for a tick.
    pub fn note_tick(&mut self, share: f64) {
        self.slowest = self.slowest.max(share);
    }

    /// Decides if that is due, by the measurements since the last decision: the mean frame time, if there was a frame, and the
    /// part of its period that the slowest region's tick took.
    pub fn update(&mut self, now: Duration, in_flight: usize) {
        if self.is_lockstep || now < self.decide_at {
            return;
        }
        let (frame, slowest) = (self.frames.take(), std::mem::take(&mut self.slowest));
        let least = self.settings.least.max(1) as f64;
        let most = (self.settings.most.max(1) as f64).max(least);
        let mut wait = PERIOD;
        if in_flight == 0 {
            // Nothing is in flight, so generation does not make it slow.
        } else if self.settings.is_too_slow(frame, slowest) {
            self.limit *= DECREASE;
            wait = REACTION;
        } else if in_flight as f64 >= self.limit / 2.0 {
            self.limit += INCREASE;
        }
        self.limit = self.limit.clamp(least, most);
        self.decide_at = now.saturating_add(wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::utils::default;

    /// Simulates a world in which a frame takes `base`, plus `each` for every column in flight.
    fn settle(pacing: &Pacing, base: Duration, each: Duration, seconds: u64) -> Vec<usize> {
        let frames = Arc::<FrameTimes>::default();
        let mut limit = InFlightLimit::new(*pacing, false, frames.clone());
        let step = |step| {
            let in_flight = limit.columns();
            frames.note(base + each * in_flight as u32);
            limit.note_tick(0.1);
            limit.update(Duration::from_millis(step * 50), in_flight);
            limit.columns()
        };
        (0..seconds * 20).map(step).collect()
    }

    /// Promise, worlds: `Pacing` keeps generation no faster than frames and ticks can bear.
    #[test]
    fn pacing_stays_near_the_sustainable_rate() {
        let pacing = Pacing::default();
        // 100 columns are just bearable.
        let seen = settle(&pacing, Duration::from_millis(6), Duration::from_micros(100), 60);
        let settled = &seen[200..];
        assert!(settled.iter().all(|limit| (65..=120).contains(limit)), "{settled:?}");
        let mean = settled.iter().sum::<usize>() / settled.len();
        assert!((75..=105).contains(&mean), "{mean}");
    }

    #[test]
    fn it_keeps_within_its_bounds_and_a_fixed_one_never_moves() {
        let pacing = Pacing { least: 32, most: 200, ..default() };
        let slow = settle(&pacing, Duration::from_millis(40), Duration::ZERO, 20);
        assert_eq!(slow.last(), Some(&32));
        let fast = settle(&pacing, Duration::from_millis(1), Duration::ZERO, 20);
        assert!(fast.iter().all(|limit| *limit == 200));
        let fixed = settle(&Pacing::fixed(48), Duration::from_millis(40), Duration::ZERO, 20);
        assert!(fixed.iter().all(|limit| *limit == 48));
    }

    #[test]
    fn slow_ticks_count_like_slow_frames_and_old_ones_are_forgotten() {
        let pacing = Pacing::default();
        let mut limit = InFlightLimit::new(pacing, false, Arc::default());
        let mut now = Duration::ZERO;
        for _ in 0..8 {
            limit.note_tick(0.95);
            limit.note_tick(0.1);
            limit.update(now, 256);
            now += REACTION;
        }
        assert_eq!(limit.columns(), 16);
        for _ in 0..4 {
            limit.note_tick(0.1);
            limit.update(now, limit.columns());
            now += PERIOD;
        }
        assert_eq!(limit.columns(), 16 + 4 * 16);
        // Hardly anything is in flight, so the bearable limit is unknown.
        limit.update(now, 20);
        assert_eq!(limit.columns(), 16 + 4 * 16);
        // Nothing is in flight, so generation does not make it slow.
        limit.note_tick(5.0);
        limit.update(now + PERIOD, 0);
        assert_eq!(limit.columns(), 16 + 4 * 16);
    }

    #[test]
    fn frames_are_averaged_and_in_lockstep_nothing_adapts() {
        let frames = Arc::<FrameTimes>::default();
        let mut limit = InFlightLimit::new(Pacing::default(), true, frames.clone());
        frames.note(Duration::from_millis(10));
        frames.note(Duration::from_millis(90));
        limit.update(Duration::from_secs(1), 256);
        assert_eq!(limit.columns(), 256);
        assert_eq!(frames.take(), Some(Duration::from_millis(50)));
        assert_eq!(frames.take(), None);
    }
}
