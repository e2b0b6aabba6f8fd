//! Logs repeated problems at most once a second: in one line, with a count.

use std::fmt::Display;
use std::time::Duration;

/// The time between the first problem and its line.
const PERIOD: Duration = Duration::from_secs(1);

/// Counts the problems since the last line, and keeps the first of them.
#[derive(Debug, Default)]
pub struct Tally {
    count: u64,
    first: String,
    due: Duration,
}

impl Tally {
    /// Notes a problem.
    pub fn note(&mut self, now: Duration, what: impl Display) {
        if self.count == 0 {
            self.first = what.to_string();
            self.due = now.saturating_add(PERIOD);
        }
        self.count += 1;
    }

    /// The line to log now, if any: the first problem, and how many `others` followed.
    pub fn take(&mut self, now: Duration, others: &str) -> Option<String> {
        if self.count == 0 || now < self.due {
            return None;
        }
        let Self { count, first, due: _ } = std::mem::take(self);
        Some(match count {
            1 => first,
            _ => format!("{first} (and {} {others})", count - 1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hundred_and_seven_times_are_one_line() {
        let mut tally = Tally::default();
        let at = Duration::from_millis;
        assert_eq!(tally.take(at(5_000), "more"), None);
        (0..207).for_each(|number| tally.note(at(5_000 + number), format_args!("no {number}")));
        assert_eq!(tally.take(at(5_999), "more"), None);
        assert_eq!(tally.take(at(6_000), "more like it").as_deref(), Some("no 0 (and 206 more like it)"));
        assert_eq!(tally.take(at(9_000), "more"), None);
        tally.note(at(9_500), "once");
        assert_eq!(tally.take(at(10_499), "more"), None);
        assert_eq!(tally.take(Duration::MAX, "more").as_deref(), Some("once"));
    }
}
