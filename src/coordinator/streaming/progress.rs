//! How far loading and generating have come around the viewers of a dimension.

use super::holders::ViewerState;
use super::shares::{Share, shares};
use crate::coordinator::dimension::Dimension;
use crate::coordinator::dimension::column_state::ColumnState;
use crate::coordinator::statistics::DimensionStatistics;
use crate::generation::{Completion, DistanceGraph};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the viewers' discs cover together.
pub struct Coverage {
    load: Vec<Share>,
    generation: Vec<Share>,
}

impl Coverage {
    fn new<'a>(viewers: impl Iterator<Item = &'a ViewerState> + Clone) -> Self {
        let load = viewers.clone().map(|viewer| (viewer.center, viewer.radii.load));
        let generation = viewers.map(|viewer| (viewer.center, viewer.radii.generation));
        Self { load: shares(load), generation: shares(generation) }
    }
}

fn completion(graph: &DistanceGraph, shares: &[Share]) -> Completion {
    let missing = |share: &Share| {
        let missing = graph.count_missing_in_disc(share.center, share.radius);
        // Something is missing until nothing is.
        (missing as f64 * share.own).ceil() as u64
    };
    let total = shares.iter().map(|share| share.columns).sum();
    Completion { missing: shares.iter().map(missing).sum(), total }
}

/// How far it has come around the viewers, when it was counted last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    to_load: Completion,
    to_generate: Completion,
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

impl Dimension {
    /// Counts how far loading and generating have come. Takes time in proportion to the number of viewers and to what is
    /// open within their radii.
    pub fn count_progress(&mut self) {
        let viewers = &self.viewers;
        let coverage = self.coverage.get_or_insert_with(|| Arc::new(Coverage::new(viewers.values()))).clone();
        let to_generate = completion(&self.stored, &coverage.generation);
        let mut to_load = completion(&self.resident, &coverage.load);
        // What is on order, or cannot be read for now, is not there yet.
        let is_awaited = |life| matches!(life, ColumnState::Ordered(_) | ColumnState::Failed(_));
        let awaited = self.columns.iter().filter(|(_, life)| is_awaited(*life)).count();
        to_load.missing = (to_load.missing + awaited as u64).min(to_load.total);
        self.progress = Some(Progress { to_load, to_generate });
    }

    pub fn statistics(&mut self) -> DimensionStatistics {
        if self.progress.is_none() {
            self.count_progress();
        }
        let Progress { to_load, to_generate } = self.progress.unwrap_or_default();
        let now = self.real_now;
        let generation = &mut self.generation;
        let generated_per_second = generation.generated.per_second(now);
        let possible = to_generate.missing.saturating_sub(generation.failures.set_aside());
        DimensionStatistics {
            dimension: self.id,
            clock: self.time.settings,
            now: self.time.now,
            generation: generation.settings,
            to_load,
            to_generate,
            in_flight: self.in_flight,
            generated_per_second,
            time_left: generated_per_second.and_then(|rate| time_left(possible, rate)),
            failing: generation.failures.waiting(),
            set_aside: generation.failures.set_aside(),
            failures: generation.failures.list().into(),
        }
    }
}

fn time_left(columns: u64, per_second: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(columns as f64 / per_second).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
