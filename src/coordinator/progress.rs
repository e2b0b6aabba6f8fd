//! How far loading and generating have come around the viewers of a dimension.

use super::coverage::{Share, shares};
use super::dimension::{Dimension, Stage, ViewerState};
use super::statistics::DimensionStatistics;
use crate::generation::{Completion, DistanceGraph};
use std::sync::Arc;
use std::time::Duration;

/// What the viewers' discs cover together.
pub(super) struct Coverage {
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

impl Dimension {
    /// Takes time in proportion to the number of viewers and, when they moved, to their radii; not to the columns.
    pub fn statistics(&mut self) -> DimensionStatistics {
        let viewers = &self.viewers;
        let coverage = self.coverage.get_or_insert_with(|| Arc::new(Coverage::new(viewers.values()))).clone();
        let now = self.real_now;
        let generation = &mut self.generation;
        let to_generate = completion(&self.stored, &coverage.generation);
        let mut to_load = completion(&self.resident, &coverage.load);
        // What is on order, or cannot be read for now, is not there yet.
        let on_order = self.columns.values().filter(|stage| matches!(stage, Stage::Claimed(_))).count();
        to_load.missing = (to_load.missing + (on_order + self.failed.len()) as u64).min(to_load.total);
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
