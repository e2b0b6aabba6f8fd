//! The coordinator's counts over its whole run, recent rates, frame times, and the end of a burst.

use crate::coordinator::figures::history::TickHistory;
use crate::coordinator::messages::statistics::WorldStatistics;
use bevy::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// The approximate bytes of a region's world, and of a column in it and in the main world, measured with a small game and
/// [`Flat`](crate::generation::Flat).
const REGION_BYTES: usize = 256 << 10;
const COLUMN_BYTES: usize = 16 << 10;
/// Smaller amounts are not worth the time.
const LEAST_BYTES: usize = 32 << 20;
/// A burst is over after this many statistics (one second) without a decrease.
const CALM: u32 = 4;

/// Detects the end of a burst of regions and columns, so that its memory returns to the system. A plain data structure.
#[derive(Debug, Default)]
pub struct Burst {
    /// The maximum since memory was last returned.
    most: usize,
    last: usize,
    /// The number of statistics without a decrease.
    calm: u32,
}

impl Burst {
    /// Notes the current number of regions and columns. Returns `true` if at least half of the memory is free again.
    pub fn is_over(&mut self, regions: usize, columns: usize) -> bool {
        self.is_over_at(regions * REGION_BYTES + columns * COLUMN_BYTES)
    }

    /// Notes the bytes in use now. Returns `true` if at least half of the memory is free again.
    fn is_over_at(&mut self, now: usize) -> bool {
        self.calm = if now < self.last { 0 } else { self.calm.saturating_add(1) };
        self.last = now;
        self.most = self.most.max(now);
        let is_over = self.calm >= CALM && now <= self.most / 2 && self.most - now >= LEAST_BYTES;
        if is_over {
            self.most = now;
        }
        is_over
    }
}

/// The span of the rate.
const SPAN: Duration = Duration::from_secs(10);
/// The shortest time for a meaningful rate.
const LEAST: Duration = Duration::from_secs(1);

/// The totals at recent times. A plain data structure.
#[derive(Clone, Debug, Default)]
pub struct RecentRate(VecDeque<(Duration, u64)>);

impl RecentRate {
    /// Notes the current total. A span without an increase does not count.
    pub fn push(&mut self, now: Duration, total: u64) {
        // The entry at the far edge of the span stays.
        while self.0.get(1).is_some_and(|(at, _)| *at + SPAN <= now) {
            self.0.pop_front();
        }
        if self.0.front().is_some_and(|(_, before)| *before == total) {
            self.0.clear();
        }
        self.0.push_back((now, total));
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The rate per second; `None` without an increase in the whole span, or before there is enough time.
    pub fn per_second(&self) -> Option<f64> {
        let ((first, before), (last, total)) = (self.0.front()?, self.0.back()?);
        let span = last.saturating_sub(*first);
        (span >= LEAST).then(|| total.saturating_sub(*before) as f64 / span.as_secs_f64())
    }
}

/// The times of the main world's frames since the last call of `take`.
#[derive(Debug, Default)]
pub struct FrameTimes {
    nanoseconds: AtomicU64,
    frames: AtomicU64,
}

impl FrameTimes {
    pub fn note(&self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.frames.fetch_add(1, Ordering::Relaxed);
    }

    /// The mean. A frame noted at the same moment may count in only one of the two sums, which hardly moves a mean of many.
    pub fn take(&self) -> Option<Duration> {
        let frames = self.frames.swap(0, Ordering::Relaxed);
        let nanoseconds = self.nanoseconds.swap(0, Ordering::Relaxed);
        Some(Duration::from_nanos(nanoseconds.checked_div(frames)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBIBYTE: usize = 1 << 20;

    /// Counts the ends of bursts, with so many mebibytes in use each time.
    fn ends(burst: &mut Burst, mebibytes: impl IntoIterator<Item = usize>) -> usize {
        mebibytes.into_iter().filter(|now| burst.is_over_at(now * MEBIBYTE)).count()
    }

    /// Promise, worlds: After a burst of regions, glibc returns the freed memory to the system.
    #[test]
    fn a_burst_is_over_once_when_less_is_in_use_for_a_second() {
        let mut burst = Burst::default();
        assert_eq!(ends(&mut burst, (0..500).chain([500; 9])), 0, "it grows");
        assert_eq!(ends(&mut burst, (10..500).rev()), 0, "it becomes less");
        assert_eq!(ends(&mut burst, [10; 9]), 1, "it is over");
        assert_eq!(ends(&mut burst, [10; 99]), 0, "once");
        assert_eq!(ends(&mut burst, [100, 100, 10, 10, 10, 10, 10]), 1, "the next one");
    }

    #[test]
    fn ordinary_play_is_not_a_burst() {
        let mut burst = Burst::default();
        assert_eq!(ends(&mut burst, [400, 300, 300, 300, 300, 300, 300, 400, 201].repeat(9)), 0, "not half of it");
        let mut burst = Burst::default();
        assert_eq!(ends(&mut burst, [33, 2, 2, 2, 2, 2, 2].repeat(9)), 0, "too little");
    }

    /// Pushes four times a second for a constant stream.
    fn watch(rate: &mut RecentRate, seconds: std::ops::Range<u64>, total: &mut u64, each_look: u64) -> Option<f64> {
        for look in seconds.start * 4..seconds.end * 4 {
            *total += each_look;
            rate.push(Duration::from_millis(look * 250), *total);
        }
        rate.per_second()
    }

    #[test]
    fn the_rate_is_that_of_the_last_ten_seconds_and_ends() {
        let (mut rate, mut total) = (RecentRate::default(), 100);
        assert_eq!(rate.per_second(), None);
        assert_eq!(watch(&mut rate, 100..140, &mut total, 12), Some(48.0));
        assert_eq!(watch(&mut rate, 140..150, &mut total, 5), Some(20.0));
        assert!(rate.0.len() <= 41);
        let half = watch(&mut rate, 150..155, &mut total, 0).unwrap();
        assert!((9.0..=11.0).contains(&half), "{half}");
        assert_eq!(watch(&mut rate, 155..161, &mut total, 0), None);
    }

    #[test]
    fn a_rate_needs_a_minimum_of_time() {
        let (mut rate, mut total) = (RecentRate::default(), 0);
        assert_eq!(watch(&mut rate, 0..500, &mut total, 0), None);
        assert_eq!(watch(&mut rate, 500..502, &mut total, 3), Some(12.0));
        let mut begun = RecentRate::default();
        assert_eq!(watch(&mut begun, 500..501, &mut total, 3), None);
    }
}
