//! What the coordinator counts and tells: of itself, of each dimension, of each region.

mod burst;
pub(super) mod history;
pub(super) mod rate;
pub(super) mod take;

use crate::coordinator::clocks::clock::DimensionClock;
use crate::coordinator::config::Backlog;
use crate::coordinator::fault::region_fault::RegionFault;
use crate::coordinator::statistics::history::{TickHistory, TickWindow, TimeWindow};
use crate::coordinator::streaming::failed_columns::FailedColumn;
use crate::coordinator::streaming::generation_control::DimensionGeneration;
use crate::generation::Completion;
use crate::region::{RegionId, RegionState};
use crate::space::{ColumnPos, DimensionId, SectionPos};
use crate::storage::FamilySize;
use bevy::prelude::*;
use burst::Burst;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the coordinator counts over its whole run.
#[derive(Default)]
pub struct Totals {
    pub generated: u64,
    pub loaded: u64,
    pub merges: u64,
    pub splits: u64,
    history: TickHistory,
    /// How long the last passes of the coordinator took.
    passes: VecDeque<Duration>,
    /// When it is counted again what is there.
    count_at: Option<Instant>,
    burst: Burst,
    due: Duration,
}

impl Totals {
    pub fn note_pass(&mut self, took: Duration) {
        if self.passes.len() == PASSES {
            self.passes.pop_front();
        }
        self.passes.push_back(took);
    }

    /// The time of a pass: the median of the last ones, and the longest of 99 in 100.
    fn pass_times(&self) -> (Duration, Duration) {
        let mut passes: Vec<_> = self.passes.iter().copied().collect();
        passes.sort_unstable();
        let pass = |share: usize| passes.get(passes.len() * share / 100).copied().unwrap_or_default();
        (pass(50), pass(99))
    }

    /// What is told of that.
    fn statistics(&mut self, now: Duration) -> WorldStatistics {
        self.history.refresh(now);
        let [recent, ..] = *self.history.windows();
        WorldStatistics {
            clock: now,
            generated: self.generated,
            loaded: self.loaded,
            ticks: self.history.ticks(),
            tick_time_median: recent.median,
            tick_time_worst: recent.worst,
            pass_times: self.pass_times(),
            merges: self.merges,
            splits: self.splits,
            ..WorldStatistics::default()
        }
    }

    pub fn tick(&mut self, now: Duration, took: Duration) {
        self.history.push(now, took);
    }
}

/// The time between two statistics.
const PERIOD: Duration = Duration::from_millis(250);
/// Passes of the coordinator over which their time is told.
const PASSES: usize = 1_024;

/// The newest statistics of the simulation, taken four times a second.
#[derive(Resource, Clone, Debug, Default)]
pub struct WorldStatistics {
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
    /// Columns that may be generated at a time now.
    pub in_flight_limit: usize,
    /// Columns within the viewers' radii that are not there yet: see [`DimensionStatistics::to_load`].
    pub remaining: usize,
    /// Region ticks since the app began.
    pub ticks: u64,
    /// The time of a region's tick, median over all regions and the last five seconds.
    pub tick_time_median: Duration,
    /// The longest tick of the last five seconds.
    pub tick_time_worst: Duration,
    /// The time of a pass of the coordinator: the median of the last 1,024, and what 99 of 100 did not exceed.
    pub pass_times: (Duration, Duration),
    /// Merges of regions since the app began.
    pub merges: u64,
    /// Splits of regions since the app began.
    pub splits: u64,
    /// Commits since the app began.
    pub saves: u64,
    /// Bytes handed to the store since the app began.
    pub bytes_saved: u64,
    /// Bytes that the store really wrote since the app began, with its log and what it writes again to tidy up; `None` if
    /// the backend does not know.
    pub bytes_written: Option<u64>,
    /// Time the commits took.
    pub save_time: Duration,
    /// Things that regions handed out and the store does not have yet.
    pub unsaved: usize,
    /// What the store's tiers hold, and what moves between them.
    pub tiers: TierStatistics,
    /// Whether the world waits for the store.
    pub backlog: Backlog,
    /// Every open dimension, by its number.
    pub dimensions: Vec<DimensionStatistics>,
    /// Every region, by dimension and id.
    pub regions: Vec<RegionStatistics>,
    /// Where viewers are.
    pub viewers: Vec<(DimensionId, ColumnPos, u32)>,
    /// Columns to a section, as a power of two.
    pub section_shift: u32,
}

impl WorldStatistics {
    /// The region with this id.
    pub fn region(&self, dimension: DimensionId, region: RegionId) -> Option<&RegionStatistics> {
        let place = self.regions.binary_search_by_key(&(dimension, region), |known| (known.dimension, known.region));
        self.regions.get(place.ok()?)
    }

    /// The region that owns the column.
    pub(crate) fn region_at(&self, dimension: DimensionId, column: ColumnPos) -> Option<&RegionStatistics> {
        let section = column.section(self.section_shift);
        self.regions.iter().find(|region| region.dimension == dimension && region.contains(section))
    }

    /// The least ticks a second of all regions that are to tick, over five seconds; `None` before there is enough to
    /// count.
    pub fn slowest_tps(&self) -> Option<f64> {
        let ticking = self.regions.iter().filter(|region| !region.halted && !region.paused);
        ticking.filter_map(RegionStatistics::ticks_per_second).min_by(f64::total_cmp)
    }

    /// How many bytes the store wrote for each that was saved; `None` before anything was saved, or if it does not know.
    pub fn written_per_saved(&self) -> Option<f64> {
        self.bytes_written.filter(|_| self.bytes_saved > 0).map(|written| written as f64 / self.bytes_saved as f64)
    }

    /// The median of the regions' ticks a second, over five seconds.
    pub fn median_tps(&self) -> Option<f64> {
        let mut rates: Vec<f64> = self.regions.iter().filter_map(RegionStatistics::ticks_per_second).collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    }
}

/// One dimension in the [`WorldStatistics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DimensionStatistics {
    /// Its number in the world.
    pub dimension: DimensionId,
    /// How its time passes, whoever said so.
    pub clock: DimensionClock,
    /// What its clock shows.
    pub now: Duration,
    /// How its ground is generated, whoever said so.
    pub generation: DimensionGeneration,
    /// The columns within the viewers' radii, and how many of them are not in regions yet. Where the discs of several
    /// viewers overlap, the missing ones are an estimate, as if they were spread evenly; it is 0 if and only if none was
    /// missing when they were counted. That is done each time, or, if there are so many viewers that it would take more
    /// than a twentieth of the coordinator's time, less often.
    pub to_load: Completion,
    /// The columns within the viewers' generation radii, and how many of them are not generated yet: also those that
    /// failed. An estimate as `to_load`.
    pub to_generate: Completion,
    /// Columns of it that are generated or loaded at this moment.
    pub in_flight: usize,
    /// Columns generated a second, over the last ten seconds; `None` if there were none, or not for a second yet.
    pub generated_per_second: Option<f64>,
    /// How long it takes to generate the rest, if it goes on like this; what is set aside does not count.
    pub time_left: Option<Duration>,
    /// Columns that could not be generated and wait for another try.
    pub failing: usize,
    /// Columns that could not be generated and wait for a [`RetryColumns`](super::RetryColumns).
    pub set_aside: u64,
    /// The last 64 of these at most, those that were set aside first.
    pub failures: Arc<[FailedColumn]>,
}

/// One region in the [`WorldStatistics`].
#[derive(Clone, Debug, PartialEq)]
pub struct RegionStatistics {
    /// Its dimension.
    pub dimension: DimensionId,
    /// Its id.
    pub region: RegionId,
    /// What it may do.
    pub state: RegionState,
    /// Its tick panicked, or it is held by a region whose tick did.
    pub halted: bool,
    /// Why it halted, if it did.
    pub fault: Option<Arc<RegionFault>>,
    /// It was told to pause, or its dimension was.
    pub paused: bool,
    /// It was told to pause itself, whatever its dimension does.
    pub paused_itself: bool,
    /// Its own ticks a second, if it was told to have such.
    pub tick_rate: Option<f64>,
    /// How long its task has been running, if that is over the watchdog's limit.
    pub hung: Option<Duration>,
    /// The last marker that it passed, if it is hung: a step of ours, or the game's schedule that runs.
    pub hung_in: Option<String>,
    /// The regions that it is coupled with, directly or through others.
    pub coupled: Vec<(DimensionId, RegionId)>,
    /// Its columns.
    pub columns: usize,
    /// Entities with a stable id in it.
    pub entities: usize,
    /// Viewers in it.
    pub viewers: usize,
    /// Ticks since it was created. A part that splits off counts on from those of the region that it was a part of.
    pub ticks: u64,
    /// Its ticks over 5 seconds, 15 seconds and one minute.
    ///
    /// The region that goes on after a merge keeps its own, if it has ticked before; a part that splits off begins with a
    /// copy of those of the region that it was a part of.
    pub windows: [TickWindow; 3],
    /// Its sections, sorted, buffer and dead ones included.
    pub sections: Arc<[SectionPos]>,
}

impl RegionStatistics {
    /// A region of which nothing is known yet.
    pub fn new(dimension: DimensionId, region: RegionId) -> Self {
        Self {
            dimension,
            region,
            state: RegionState::Ready,
            halted: false,
            fault: None,
            paused: false,
            paused_itself: false,
            tick_rate: None,
            hung: None,
            hung_in: None,
            coupled: Vec::new(),
            columns: 0,
            entities: 0,
            viewers: 0,
            ticks: 0,
            windows: Default::default(),
            sections: Arc::default(),
        }
    }

    /// Its ticks over one of the windows.
    pub fn window(&self, window: TimeWindow) -> &TickWindow {
        &self.windows[window as usize]
    }

    /// Its ticks a second over five seconds; `None` before there is enough to count.
    pub fn ticks_per_second(&self) -> Option<f64> {
        self.windows[0].ticks_per_second
    }

    /// The lowest and the highest section on both axes; `None` if it has none.
    pub fn bounds(&self) -> Option<(SectionPos, SectionPos)> {
        Self::bounds_of(self.sections.iter().copied())
    }

    /// The lowest and the highest of these sections on both axes; `None` without any.
    pub(crate) fn bounds_of(sections: impl IntoIterator<Item = SectionPos>) -> Option<(SectionPos, SectionPos)> {
        sections.into_iter().map(|section| (section, section)).reduce(|(low, high), (section, _)| {
            let low = SectionPos::new(low.x.min(section.x), low.z.min(section.z));
            (low, SectionPos::new(high.x.max(section.x), high.z.max(section.z)))
        })
    }

    /// Whether the section is one of its own.
    pub fn contains(&self, section: SectionPos) -> bool {
        self.sections.binary_search(&section).is_ok()
    }
}

/// What the tiers hold, and what moves between them, in the [`WorldStatistics`](crate::view::WorldStatistics).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TierStatistics {
    /// About how much is stored in each tier, the hottest first: chunks, groups of 4 x 4 x 4, cubes of 16 x 16 x 16; zero if the
    /// backend cannot tell.
    pub sizes: [FamilySize; 3],
    /// Groups that became hot by being loaded, warm and cold since the app began. Those that became hot by being saved do not
    /// count.
    pub moved: [u64; 3],
    /// Bytes of the chunks that were moved, before compression.
    pub moved_bytes: u64,
    /// Bytes that were written for that.
    pub written_bytes: u64,
    /// Groups that could not be moved: too large, or in a damaged cluster.
    pub left: u64,
    /// Groups that have not been loaded for so long that they are to move, as far as they were counted: up to 1,024 a tier.
    pub remaining: usize,
}
