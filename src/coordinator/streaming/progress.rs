//! How far loading and generating have come around the viewers of a dimension.

use super::holders::ViewerState;
use super::shares::{Share, shares};
use crate::generation::{Completion, DistanceGraph};
use crate::space::ColumnArea;
use std::time::Instant;

/// What the viewers' discs cover together.
pub struct Coverage {
    pub load: Vec<Share>,
    pub generation: Vec<Share>,
}

impl Coverage {
    pub fn new<'a>(viewers: impl Iterator<Item = &'a ViewerState> + Clone) -> Self {
        let load = viewers.clone().map(|viewer| (viewer.center, viewer.radii.load));
        let generation = viewers.map(|viewer| (viewer.center, viewer.radii.generation));
        Self { load: shares(load), generation: shares(generation) }
    }
}

pub fn completion(graph: &DistanceGraph, shares: &[Share]) -> Completion {
    let missing = |share: &Share| {
        let disc = ColumnArea::Disc { center: share.center, radius: share.radius };
        let missing = graph.count_missing_in(&disc);
        // Something is missing until nothing is.
        (missing as f64 * (share.columns as f64 / share.all as f64)).ceil() as u64
    };
    let total = shares.iter().map(|share| share.columns).sum();
    Completion { missing: shares.iter().map(missing).sum(), total }
}

/// How far it has come around the viewers, when it was counted last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    pub to_load: Completion,
    pub to_generate: Completion,
}

/// When it is counted again: that may take a [`SHARE`] of the time at most.
#[derive(Debug, Default)]
pub struct CountTimer {
    due: Option<Instant>,
}

/// One of so many parts of the time.
const SHARE: u32 = 20;

impl CountTimer {
    pub fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| due <= now)
    }

    /// It was counted from then to now.
    pub fn note(&mut self, began: Instant, now: Instant) {
        let took = now.saturating_duration_since(began);
        self.due = now.checked_add(took.saturating_mul(SHARE - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn counting_takes_a_twentieth_of_the_time_at_most() {
        let mut timer = CountTimer::default();
        let start = Instant::now();
        let (mut now, mut counting) = (start, Duration::ZERO);
        let end = start + Duration::from_secs(60);
        while now < end {
            now += Duration::from_millis(250);
            if timer.is_due(now) {
                let took = Duration::from_millis(80);
                timer.note(now, now + took);
                (now, counting) = (now + took, counting + took);
            }
        }
        let share = counting.as_secs_f64() / (now - start).as_secs_f64();
        assert!((0.03..=0.051).contains(&share), "{share}");
        // What takes next to nothing is counted each time.
        timer.note(now, now + Duration::from_micros(500));
        assert!(timer.is_due(now + Duration::from_millis(250)));
    }
}
