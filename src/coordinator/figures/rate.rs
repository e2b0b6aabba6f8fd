//! Rates: per second, over the last ten seconds, and the times of the main world's frames.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
