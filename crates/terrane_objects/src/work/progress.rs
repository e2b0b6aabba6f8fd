//! How far long work is.

use std::ops::ControlFlow;
use std::time::Duration;

/// How far long work is. What it counts, the work says: entries, chunks, columns, blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// How many are done.
    pub done: u64,
    /// Their bytes, where they are counted.
    pub bytes: u64,
    /// About which part of all there is that was, 0 to 1; `None` if nobody can tell.
    pub fraction: Option<f64>,
}

/// What is told how far the work is, and may break it off.
pub type Tell<'a> = &'a mut dyn FnMut(&Progress) -> ControlFlow<()>;

impl Progress {
    /// So many of so many, whose bytes nobody counts.
    pub fn of(done: u64, total: u64) -> Self {
        Self { done, bytes: 0, fraction: (total > 0).then(|| done as f64 / total as f64) }
    }

    /// How much longer it takes if it goes on as it went until now; `None` if nobody can tell.
    pub fn time_left(&self, elapsed: Duration) -> Option<Duration> {
        let fraction = self.fraction.filter(|fraction| *fraction > 0.0)?;
        Duration::try_from_secs_f64(elapsed.as_secs_f64() * (1.0 - fraction) / fraction).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_known_when_something_is_done_of_what_is_known() {
        let elapsed = Duration::from_secs(8);
        assert_eq!(Progress::of(1, 4).time_left(elapsed), Some(Duration::from_secs(24)));
        assert_eq!(Progress::of(4, 4).time_left(elapsed), Some(Duration::ZERO));
        assert_eq!(Progress::of(0, 4).time_left(elapsed), None);
        assert_eq!(Progress::of(4, 0).time_left(elapsed), None);
    }
}
