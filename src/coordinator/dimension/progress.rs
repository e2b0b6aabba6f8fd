//! The progress of loading and generating around the viewers of a dimension.

use crate::coordinator::columns::ColumnState;
use crate::coordinator::demand::shares::Coverage;
use crate::coordinator::dimension::OpenDimension;
use crate::coordinator::messages::statistics::DimensionStatistics;
use std::time::{Duration, Instant};

impl OpenDimension {
    /// Counts the progress of loading and generating. If viewers moved or columns changed, this takes time proportional to the number
    /// of viewers and of missing columns within their radii.
    pub fn count_progress(&mut self) {
        let viewers = &self.demand.viewers;
        let [load, generation] = self.demand.coverage.get_or_insert_with(|| {
            let load = viewers.values().map(|viewer| (viewer.center, viewer.radii.load));
            let generation = viewers.values().map(|viewer| (viewer.center, viewer.radii.generation));
            [Coverage::new(load), Coverage::new(generation)]
        });
        let to_generate = generation.completion(&self.land.stored);
        let mut to_load = load.completion(&self.land.resident);
        // Columns on order, and those that cannot be read for now, still count as missing.
        let is_awaited = |(column, state): &(_, _)| match state {
            ColumnState::Ordered(_) => true,
            ColumnState::Failed(_) => self.land.resident.is_completed(*column),
            _ => false,
        };
        let awaited = self.columns.iter().filter(is_awaited).count();
        to_load.missing = (to_load.missing + awaited as u64).min(to_load.total);
        self.demand.progress = Some([to_load, to_generate]);
    }

    pub fn statistics(&mut self) -> DimensionStatistics {
        if self.demand.progress.is_none() {
            self.count_progress();
        }
        let [to_load, to_generate] = self.demand.progress.unwrap_or_default();
        let now = self.time.real_now;
        let is_waiting =
            |(column, due): &(_, Duration)| *due < Duration::MAX && !self.land.stored.is_completed(*column);
        let failing = self.columns.failed().filter(is_waiting).count();
        let generation = &mut self.orders.generation;
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
            in_flight: self.orders.in_flight,
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

/// Counting may take one part in this many of the time.
const SHARE: u32 = 20;

/// The time of the next count, after one from `began` to `now`.
pub fn count_again_at(began: Instant, now: Instant) -> Option<Instant> {
    now.checked_add(now.saturating_duration_since(began).saturating_mul(SHARE - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // A fast count is repeated each time.
        let due = count_again_at(now, now + Duration::from_micros(500)).unwrap();
        assert!(due <= now + Duration::from_millis(250));
    }
}
