//! Counts what is there of what viewers want.

use super::progress::{Coverage, Progress, completion};
use crate::coordinator::dimension::Dimension;
use crate::coordinator::dimension::column_state::ColumnState;
use crate::coordinator::statistics::DimensionStatistics;
use std::sync::Arc;
use std::time::Duration;

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
        let is_waiting = |(column, due): &(_, Duration)| *due < Duration::MAX && !self.stored.is_completed(*column);
        let failing = self.columns.failed().filter(is_waiting).count();
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
            failing,
            set_aside: generation.failures.set_aside(),
            failures: generation.failures.list().into(),
        }
    }
}

fn time_left(columns: u64, per_second: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(columns as f64 / per_second).ok()
}
