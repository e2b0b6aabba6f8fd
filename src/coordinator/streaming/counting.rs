//! Counts what is there of what viewers want.

use super::progress::{completion, coverage};
use crate::coordinator::dimension::Dimension;
use crate::coordinator::dimension::column_state::ColumnState;
use crate::coordinator::statistics::DimensionStatistics;
use std::time::Duration;

impl Dimension {
    /// Counts how far loading and generating have come. Takes time in proportion to the number of viewers and to what is
    /// open within their radii.
    pub fn count_progress(&mut self) {
        let viewers = &self.viewers;
        let [load, generation] = self.coverage.get_or_insert_with(|| coverage(viewers.values()));
        let to_generate = completion(&self.stored, generation);
        let mut to_load = completion(&self.resident, load);
        // What is on order, or cannot be read for now, is not there yet.
        let is_awaited = |(column, state): &(_, _)| match state {
            ColumnState::Ordered(_) => true,
            ColumnState::Failed(_) => self.resident.is_completed(*column),
            _ => false,
        };
        let awaited = self.columns.iter().filter(is_awaited).count();
        to_load.missing = (to_load.missing + awaited as u64).min(to_load.total);
        self.progress = Some([to_load, to_generate]);
    }

    pub fn statistics(&mut self) -> DimensionStatistics {
        if self.progress.is_none() {
            self.count_progress();
        }
        let [to_load, to_generate] = self.progress.unwrap_or_default();
        let now = self.real_now;
        let is_waiting = |(column, due): &(_, Duration)| *due < Duration::MAX && !self.stored.is_completed(*column);
        let failing = self.columns.failed().filter(is_waiting).count();
        let generation = &mut self.generation;
        generation.rate.push(now, generation.generated);
        let generated_per_second = generation.rate.per_second();
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
