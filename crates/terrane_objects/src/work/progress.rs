//! [`Progress`] of long work.

use std::ops::ControlFlow;
use std::time::Duration;

/// The progress of long work. The unit depends on the work: entries, chunks, columns or blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// The number of finished units.
    pub done: u64,
    /// Their size in bytes, if it is counted.
    pub bytes: u64,
    /// The approximate fraction of all work that is done, 0 to 1; `None` if it is unknown.
    pub fraction: Option<f64>,
}

/// A callback that gets the progress of the work and may cancel it.
pub type Tell<'a> = &'a mut dyn FnMut(&Progress) -> ControlFlow<()>;

impl Progress {
    /// The progress of `done` units out of `total`, without a size.
    pub fn of(done: u64, total: u64) -> Self {
        Self { done, bytes: 0, fraction: (total > 0).then(|| done as f64 / total as f64) }
    }

    /// The estimated remaining time at the speed so far; `None` if it is unknown.
    pub fn time_left(&self, elapsed: Duration) -> Option<Duration> {
        let fraction = self.fraction.filter(|fraction| *fraction > 0.0)?;
        Duration::try_from_secs_f64(elapsed.as_secs_f64() * (1.0 - fraction) / fraction).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_estimated_from_known_progress() {
        let elapsed = Duration::from_secs(8);
        assert_eq!(Progress::of(1, 4).time_left(elapsed), Some(Duration::from_secs(24)));
        assert_eq!(Progress::of(4, 4).time_left(elapsed), Some(Duration::ZERO));
        assert_eq!(Progress::of(0, 4).time_left(elapsed), None);
        assert_eq!(Progress::of(4, 0).time_left(elapsed), None);
    }
}
