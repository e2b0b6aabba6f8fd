//! The coordinator's counts over its whole run.

use crate::coordinator::figures::burst::Burst;
use crate::coordinator::figures::history::TickHistory;
use crate::coordinator::messages::statistics::WorldStatistics;
use bevy::prelude::*;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The coordinator's counts over its whole run.
#[derive(Default)]
pub struct Totals {
    pub generated: u64,
    pub loaded: u64,
    pub merges: u64,
    pub splits: u64,
    history: TickHistory,
    /// The durations of the last passes.
    passes: VecDeque<Duration>,
    /// The time of the next count of missing columns.
    pub count_at: Option<Instant>,
    pub burst: Burst,
    pub due: Duration,
}

impl Totals {
    pub fn note_pass(&mut self, took: Duration) {
        if self.passes.len() == PASSES {
            self.passes.pop_front();
        }
        self.passes.push_back(took);
    }

    /// Returns the median duration of the last passes, and their 99th percentile.
    fn pass_times(&self) -> (Duration, Duration) {
        let mut passes: Vec<_> = self.passes.iter().copied().collect();
        passes.sort_unstable();
        let pass = |share: usize| passes.get(passes.len() * share / 100).copied().unwrap_or_default();
        (pass(50), pass(99))
    }

    pub fn statistics(&mut self, now: Duration) -> WorldStatistics {
        self.history.refresh(now);
        let [recent, ..] = *self.history.windows();
        WorldStatistics {
            clock: now,
            generated: self.generated,
            loaded: self.loaded,
            ticks: self.history.ticks(),
            tick_time_median: recent.median,
            tick_time_worst: recent.worst,
            pass_times: self.pass_times(),
            merges: self.merges,
            splits: self.splits,
            ..WorldStatistics::default()
        }
    }

    pub fn tick(&mut self, now: Duration, took: Duration) {
        self.history.push(now, took);
    }
}

/// The time between two statistics.
pub const PERIOD: Duration = Duration::from_millis(250);
/// The number of passes in the statistics.
const PASSES: usize = 1_024;
