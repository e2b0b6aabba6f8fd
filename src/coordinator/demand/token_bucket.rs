//! A token bucket: limits a rate per second on average, and the number at once.

use std::time::Duration;

/// The part of a second for which unused tokens are kept.
const BURST: f64 = 0.25;

/// The number of things that may begin now under a rate limit.
#[derive(Clone, Debug, Default)]
pub struct TokenBucket {
    tokens: f64,
    filled: Option<Duration>,
}

impl TokenBucket {
    /// The tokens at `now`; unlimited without a limit. A limit that is not a positive number gives none.
    pub fn available(&mut self, per_second: Option<f64>, now: Duration) -> usize {
        let Some(per_second) = per_second else {
            self.filled = None;
            return usize::MAX;
        };
        let per_second = if per_second > 0.0 { per_second } else { 0.0 };
        // A slow stream keeps one token and the begun part of the next.
        let most = (per_second * BURST).max(2.0);
        let before = self.filled.replace(now);
        // A new limit begins with a full bucket.
        let gained = before.map_or(most, |before| per_second * now.saturating_sub(before).as_secs_f64());
        self.tokens = if per_second > 0.0 { (self.tokens + gained).min(most) } else { 0.0 };
        self.tokens as usize
    }

    /// Takes tokens for things that began.
    pub fn take(&mut self, tokens: usize) {
        if self.filled.is_some() {
            self.tokens -= tokens as f64;
        }
    }

    /// Returns tokens for things that began and were cancelled.
    pub fn give_back(&mut self, tokens: usize) {
        if self.filled.is_some() {
            self.tokens += tokens as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(per_second: f64, times: impl Iterator<Item = Duration>) -> usize {
        let mut bucket = TokenBucket::default();
        let mut begun = 0;
        for now in times {
            let tokens = bucket.available(Some(per_second), now);
            bucket.take(tokens);
            begun += tokens;
        }
        begun
    }

    #[test]
    fn over_a_while_as_many_begin_as_are_allowed_however_often_it_is_asked() {
        for (per_second, millis) in [(10.0, 50), (10.0, 7), (3.0, 100), (0.5, 50), (1_000.0, 50), (7.5, 1)] {
            let times = (0..=60_000 / millis).map(|step| Duration::from_millis(step * millis));
            let expected = per_second * 60.0;
            let found = begun(per_second, times) as f64;
            assert!((found - expected).abs() <= expected.mul_add(0.01, 2.0), "{per_second} each {millis}: {found}");
        }
    }

    #[test]
    fn unused_budget_is_kept_for_a_quarter_of_a_second() {
        let mut bucket = TokenBucket::default();
        assert_eq!(bucket.available(Some(100.0), Duration::ZERO), 25);
        assert_eq!(bucket.available(Some(100.0), Duration::from_secs(60)), 25);
        bucket.take(25);
        assert_eq!(bucket.available(Some(100.0), Duration::from_secs(60)), 0);
        bucket.give_back(5);
        assert_eq!(bucket.available(Some(100.0), Duration::from_secs(60)), 5);
    }

    #[test]
    fn no_limit_is_none_and_nonsense_lets_nothing_through() {
        let mut bucket = TokenBucket::default();
        assert_eq!(bucket.available(None, Duration::ZERO), usize::MAX);
        bucket.take(1_000_000);
        assert_eq!(bucket.available(Some(4.0), Duration::from_secs(1)), 2);
        for nothing in [0.0, -1.0, f64::NAN] {
            assert_eq!(bucket.available(Some(nothing), Duration::from_secs(2)), 0);
        }
        assert_eq!(bucket.available(Some(f64::INFINITY), Duration::from_secs(3)), usize::MAX);
    }
}
