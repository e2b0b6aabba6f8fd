use super::collect::Desk;
use super::dimension::{Holder, Stage};
use crate::region::{RegionId, RegionState};
use crate::space::{ColumnPos, DimensionId, SectionPos};
use bevy::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What the coordinator counts over its whole run.
#[derive(Resource, Default)]
pub(super) struct Totals {
    pub generated: u64,
    pub loaded: u64,
    pub merges: u64,
    pub splits: u64,
    pub in_flight: usize,
    /// Orders that are out, and the pass in which each was made.
    pub claims: BTreeMap<u64, u64>,
    last_claim: u64,
    ticks: u64,
    recent: VecDeque<(Duration, Duration)>,
}

impl Totals {
    pub fn next_claim(&mut self, pass: u64) -> u64 {
        self.last_claim += 1;
        self.claims.insert(self.last_claim, pass);
        self.last_claim
    }

    pub fn tick(&mut self, now: Duration, took: Duration) {
        self.ticks += 1;
        self.recent.push_back((now, took));
        while self.recent.front().is_some_and(|(ended, _)| *ended + Duration::from_secs(5) < now) {
            self.recent.pop_front();
        }
    }
}

/// The state of the whole simulation, taken four times a second.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// The coordinator's clock.
    pub clock: Duration,
    /// Columns generated since the app began.
    pub generated: u64,
    /// Columns loaded from the store since the app began.
    pub loaded: u64,
    /// Columns in regions now.
    pub columns: usize,
    /// Columns that are generated or loaded at this moment.
    pub in_flight: usize,
    /// Columns within the viewers' radii that are not there yet.
    pub remaining: usize,
    /// Region ticks since the app began.
    pub ticks: u64,
    /// The time of a region's tick, median over all regions and the last five seconds.
    pub tick_time_median: Duration,
    /// The longest tick of the last five seconds.
    pub tick_time_worst: Duration,
    /// Merges of regions since the app began.
    pub merges: u64,
    /// Splits of regions since the app began.
    pub splits: u64,
    /// Commits since the app began.
    pub saves: u64,
    /// Bytes handed to the store since the app began.
    pub bytes_saved: u64,
    /// Time the commits took.
    pub save_time: Duration,
    /// Things that wait for the next commit.
    pub unsaved: usize,
    /// Every region, by dimension and id.
    pub regions: Vec<RegionStatistics>,
    /// Where viewers are.
    pub viewers: Vec<(DimensionId, ColumnPos, u32)>,
    /// Columns to a section, as a power of two.
    pub section_shift: u32,
}

impl Statistics {
    /// The least ticks a second of all regions, over five seconds; `None` before there is enough to count.
    pub fn slowest_region(&self) -> Option<f64> {
        self.regions.iter().filter_map(|region| region.ticks_per_second).min_by(f64::total_cmp)
    }

    /// The median of the regions' ticks a second, over five seconds.
    pub fn median_region(&self) -> Option<f64> {
        let mut rates: Vec<f64> = self.regions.iter().filter_map(|region| region.ticks_per_second).collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    }
}

/// One region in the [`Statistics`].
#[derive(Clone, Debug)]
pub struct RegionStatistics {
    /// Its dimension.
    pub dimension: DimensionId,
    /// Its id.
    pub region: RegionId,
    /// What it may do.
    pub state: RegionState,
    /// Its tick panicked.
    pub halted: bool,
    /// It was told to pause.
    pub paused: bool,
    /// Its columns.
    pub columns: usize,
    /// Entities with a stable id in it.
    pub entities: usize,
    /// Viewers in it.
    pub viewers: usize,
    /// Ticks since it was created.
    pub ticks: u64,
    /// Ticks a second over five seconds; `None` before there is enough to count.
    pub ticks_per_second: Option<f64>,
    /// The median time of a tick over five seconds.
    pub tick_time_median: Duration,
    /// The longest tick of the last five seconds.
    pub tick_time_worst: Duration,
    /// Its sections, sorted, buffer and dead ones included.
    pub sections: Vec<SectionPos>,
}

fn median_and_worst(ticks: &VecDeque<(Duration, Duration)>) -> (Duration, Duration) {
    let mut times: Vec<_> = ticks.iter().map(|(_, took)| *took).collect();
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    (median, times.last().copied().unwrap_or_default())
}

impl Desk<'_> {
    pub fn statistics(&self) -> Statistics {
        let now = self.clock.now;
        let mut regions = Vec::new();
        let mut viewers = Vec::new();
        let (mut columns, mut remaining) = (0, 0);
        for (id, dimension) in &self.dimensions.open {
            columns += dimension.columns.values().filter(|stage| **stage != Stage::Claimed).count();
            remaining += dimension.remaining();
            let seen = dimension.viewers.iter().filter(|(holder, _)| !matches!(holder, Holder::Letters(_)));
            viewers.extend(seen.map(|(_, viewer)| (*id, viewer.center, viewer.radius)));
            for region in dimension.regionizer.regions() {
                let away = self.deadlines.running.get(&(*id, region)).map(|running| &running.slot);
                let Some(slot) = away.or_else(|| dimension.regionizer.data(region)) else { continue };
                let (tick_time_median, tick_time_worst) = median_and_worst(&slot.history.ticks);
                let mut sections: Vec<_> = dimension.regionizer.sections(region).collect();
                sections.sort_unstable();
                regions.push(RegionStatistics {
                    dimension: *id,
                    region,
                    state: dimension.regionizer.state(region).unwrap_or(RegionState::Dead),
                    halted: slot.halted.is_some(),
                    paused: slot.control.paused,
                    columns: slot.columns,
                    entities: slot.entities,
                    viewers: slot.viewers,
                    ticks: slot.history.total,
                    ticks_per_second: slot.history.ticks_per_second(now),
                    tick_time_median,
                    tick_time_worst,
                    sections,
                });
            }
        }
        let (tick_time_median, tick_time_worst) = median_and_worst(&self.totals.recent);
        Statistics {
            clock: now,
            generated: self.totals.generated,
            loaded: self.totals.loaded,
            columns,
            in_flight: self.totals.in_flight,
            remaining,
            ticks: self.totals.ticks,
            tick_time_median,
            tick_time_worst,
            merges: self.totals.merges,
            splits: self.totals.splits,
            saves: self.saves.count,
            bytes_saved: self.saves.bytes,
            save_time: self.saves.time,
            unsaved: self.saves.pending.len(),
            regions,
            viewers,
            section_shift: self.config.regionizer.section_shift,
        }
    }
}
