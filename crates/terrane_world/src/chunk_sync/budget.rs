//! A limit of bytes per second.

use std::time::Duration;

/// The time for which unused bytes are kept.
const BURST: Duration = Duration::from_millis(250);

/// The bytes that may be sent to a listener.
///
/// In any span of time, the listener gets at most its rate times that span, plus a quarter of a second's worth and one
/// message.
#[derive(Debug, Default)]
pub struct Budget {
    rate: u64,
    saved: f64,
    refilled: Duration,
    /// The size of the next message, which must be possible to save up.
    wanted: u64,
}

impl Budget {
    /// A budget that starts now, without savings.
    pub fn new(now: Duration) -> Self {
        Self { refilled: now, ..Self::default() }
    }

    /// Adds the bytes for the time since the last call, at this rate per second.
    pub fn refill(&mut self, now: Duration, rate: u64) {
        let most = rate as f64 * BURST.as_secs_f64() + self.wanted as f64;
        let brought = rate as f64 * now.saturating_sub(self.refilled).as_secs_f64();
        self.saved = (self.saved + brought).min(most);
        self.refilled = now;
        self.rate = rate;
    }

    /// Spends this many bytes, if available.
    pub fn spend(&mut self, bytes: u64) -> bool {
        if self.rate > 0 && self.saved >= bytes as f64 {
            self.saved -= bytes as f64;
            self.wanted = 0;
            return true;
        }
        self.wanted = bytes;
        false
    }

    /// The number of bytes that become available within this time.
    pub fn in_time(&self, time: Duration) -> u64 {
        (self.rate as f64 * time.as_secs_f64()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Promise, multiplayer: A client is sent no more bytes a second than the server's cap.
        /// Promise, chunk sync: In any span of time, a server sends at most its rate, a quarter of a second's bytes, and one
        /// message.
        #[test]
        fn no_span_holds_more_than_the_rate_and_a_burst(
            rate in 1..100_000u64, waits in prop::collection::vec((0..2_000u64, 1..700u64), 1..80),
        ) {
            let mut budget = Budget::default();
            let mut now = Duration::ZERO;
            let mut spent: Vec<(Duration, u64)> = Vec::new();
            for (wait, bytes) in waits {
                now += Duration::from_millis(wait);
                budget.refill(now, rate);
                if budget.spend(bytes) {
                    spent.push((now, bytes));
                }
            }
            for begin in 0..spent.len() {
                let mut sum = 0;
                for (at, bytes) in &spent[begin..] {
                    sum += bytes;
                    let span = (*at - spent[begin].0) + BURST;
                    prop_assert!(sum as f64 <= rate as f64 * span.as_secs_f64() + 700.0);
                }
            }
        }
    }

    #[test]
    fn a_message_larger_than_a_burst_goes_when_it_is_saved_for() {
        let mut budget = Budget::default();
        let second = |second| Duration::from_secs(second);
        budget.refill(second(1), 100);
        assert!(!budget.spend(250) && !budget.spend(250));
        budget.refill(second(2), 100);
        budget.refill(second(4), 100);
        assert!(budget.spend(250) && !budget.spend(250));
        budget.refill(second(9), 0);
        assert!(!budget.spend(1), "nothing is sent at no bytes a second");
    }
}
