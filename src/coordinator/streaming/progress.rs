//! How far loading and generating have come around the viewers of a dimension.

use super::holders::ViewerState;
use super::shares::{Share, shares};
use crate::generation::{Completion, DistanceGraph};
use crate::space::ColumnArea;
use std::time::Instant;

/// What the viewers' discs cover together: those that are loaded, and those that are generated.
pub fn coverage<'a>(viewers: impl Iterator<Item = &'a ViewerState> + Clone) -> [Vec<Share>; 2] {
    let load = viewers.clone().map(|viewer| (viewer.center, viewer.radii.load));
    let generation = viewers.map(|viewer| (viewer.center, viewer.radii.generation));
    [shares(load), shares(generation)]
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

/// Counting may take one of so many parts of the time.
const SHARE: u32 = 20;

/// When it is counted again, if it was counted from `began` to `now`.
pub fn count_again_at(began: Instant, now: Instant) -> Option<Instant> {
    now.checked_add(now.saturating_duration_since(began).saturating_mul(SHARE - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn counting_takes_a_twentieth_of_the_time_at_most() {
        let start = Instant::now();
        let mut due = start;
        let (mut now, mut counting) = (start, Duration::ZERO);
        let end = start + Duration::from_secs(60);
        while now < end {
            now += Duration::from_millis(250);
            if due <= now {
                let took = Duration::from_millis(80);
                due = count_again_at(now, now + took).unwrap();
                (now, counting) = (now + took, counting + took);
            }
        }
        let share = counting.as_secs_f64() / (now - start).as_secs_f64();
        assert!((0.03..=0.051).contains(&share), "{share}");
        // What takes next to nothing is counted each time.
        let due = count_again_at(now, now + Duration::from_micros(500)).unwrap();
        assert!(due <= now + Duration::from_millis(250));
    }
}
