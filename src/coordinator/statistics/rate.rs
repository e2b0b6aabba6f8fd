//! How many a second, over the last ten seconds.

use std::collections::VecDeque;
use std::time::Duration;

/// The span that is looked back over.
const SPAN: Duration = Duration::from_secs(10);
/// Time is cut into slots of this length.
const SLOT: Duration = Duration::from_millis(500);
/// Rates over less than this say nothing.
const LEAST: Duration = Duration::from_secs(1);

/// Counts what happens. A plain data structure of at most 21 numbers.
#[derive(Clone, Debug, Default)]
pub struct RecentRate {
    /// When each slot began, and how many there were in it; the oldest first.
    slots: VecDeque<(Duration, u64)>,
    /// When the first one was counted after a time without any.
    since: Option<Duration>,
}

impl RecentRate {
    /// One happened.
    pub fn count(&mut self, now: Duration) {
        self.forget(now);
        self.since.get_or_insert(now);
        match self.slots.back_mut() {
            Some((began, count)) if now < *began + SLOT => *count += 1,
            _ => self.slots.push_back((now, 1)),
        }
    }

    /// How many a second; `None` if there were none for the whole span, or not for long enough to say.
    pub fn per_second(&mut self, now: Duration) -> Option<f64> {
        self.forget(now);
        let since = self.since?.max(now.saturating_sub(SPAN));
        let span = now.saturating_sub(since);
        let count: u64 = self.slots.iter().map(|(_, count)| *count).sum();
        (span >= LEAST).then(|| count as f64 / span.as_secs_f64())
    }

    fn forget(&mut self, now: Duration) {
        while self.slots.front().is_some_and(|(began, _)| now.saturating_sub(*began) > SPAN) {
            self.slots.pop_front();
        }
        if self.slots.is_empty() {
            self.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_is_told_as_it_is_and_ends() {
        let mut rate = RecentRate::default();
        assert_eq!(rate.per_second(Duration::ZERO), None);
        let mut now = Duration::from_secs(100);
        for _ in 0..2_000 {
            now += Duration::from_millis(20);
            rate.count(now);
        }
        let told = rate.per_second(now).unwrap();
        assert!((48.0..=52.5).contains(&told), "{told}");
        let half = rate.per_second(now + Duration::from_secs(5)).unwrap();
        assert!((22.0..=28.0).contains(&half), "{half}");
        assert_eq!(rate.per_second(now + Duration::from_secs(11)), None);
        assert!(rate.slots.len() <= 21);
    }

    #[test]
    fn what_has_just_begun_is_not_told_as_slow() {
        let mut rate = RecentRate::default();
        for step in 0..=20 {
            rate.count(Duration::from_millis(500_000 + step * 100));
        }
        let told = rate.per_second(Duration::from_millis(502_000)).unwrap();
        assert!((9.0..=11.0).contains(&told), "{told}");
        assert_eq!(rate.per_second(Duration::from_millis(500_900)), None);
    }
}
