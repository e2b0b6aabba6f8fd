//! The statistics of the world, of each dimension, region and server, and the order to drain a server.

use crate::coordinator::messages::clocks::DimensionClock;
use crate::coordinator::messages::faults::RegionFault;
use crate::coordinator::messages::generation::{DimensionGeneration, FailedColumn};
use crate::coordinator::messages::settings::Backlog;
use crate::generation::Completion;
use crate::region::{RegionId, RegionState};
use crate::space::{ColumnPos, DimensionId, SectionPos};
use crate::storage::FamilySize;
use crate::storage::servers::Plot;
use bevy::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// The newest statistics of the simulation, taken four times a second.
#[derive(Resource, Clone, Debug, Default, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Resource, Clone, Default)]
pub struct WorldStatistics {
    /// The coordinator's clock.
    pub clock: Duration,
    /// Columns generated since the app began.
    pub generated: u64,
    /// Columns loaded from the store since the app began.
    pub loaded: u64,
    /// Columns in regions now.
    pub columns: usize,
    /// Columns that are being generated or loaded.
    pub in_flight: usize,
    /// The maximum number of columns that may be generated at a time now.
    pub in_flight_limit: usize,
    /// Columns within the viewers' radii that are not loaded yet: see [`DimensionStatistics::to_load`].
    pub remaining: usize,
    /// Region ticks since the app began.
    pub ticks: u64,
    /// The median time of a region's tick, over all regions and the last five seconds.
    pub tick_time_median: Duration,
    /// The longest tick of the last five seconds.
    pub tick_time_worst: Duration,
    /// The time of a pass of the coordinator: the median and the 99th percentile of the last 1,024 passes.
    pub pass_times: (Duration, Duration),
    /// Merges of regions since the app began.
    pub merges: u64,
    /// Splits of regions since the app began.
    pub splits: u64,
    /// Commits since the app began.
    pub saves: u64,
    /// Bytes handed to the store since the app began.
    pub bytes_saved: u64,
    /// Bytes that the store wrote since the app began, including its log and compaction; `None` if the backend does not know.
    pub bytes_written: Option<u64>,
    /// The total time of the commits.
    pub save_time: Duration,
    /// Things that regions handed out and that are not in the store yet.
    pub unsaved: usize,
    /// The contents of the store's tiers, and the movement between them.
    pub tiers: TierStatistics,
    /// How far the world waits for the store.
    pub backlog: Backlog,
    /// Every open dimension, by its number.
    pub dimensions: Vec<DimensionStatistics>,
    /// Every region, by dimension and id.
    pub regions: Vec<RegionStatistics>,
    /// The dimension, column and load radius of each viewer.
    pub viewers: Vec<(DimensionId, ColumnPos, u32)>,
    /// Columns per section side, as a power of two.
    pub section_shift: u32,
    /// The living servers of a shared world, by incarnation; empty if the world is not shared.
    pub servers: Vec<ServerStatistics>,
    /// `true` while regions stand still because the database of a shared world confirms no heartbeat of this server.
    pub is_frozen: bool,
}

impl WorldStatistics {
    /// The region with this id; `None` if it does not exist.
    pub fn region(&self, dimension: DimensionId, region: RegionId) -> Option<&RegionStatistics> {
        let place = self.regions.binary_search_by_key(&(dimension, region), |known| (known.dimension, known.region));
        self.regions.get(place.ok()?)
    }

    /// The region that owns the column; `None` if no region does.
    pub fn region_at(&self, dimension: DimensionId, column: ColumnPos) -> Option<&RegionStatistics> {
        let section = column.section(self.section_shift);
        self.regions.iter().find(|region| region.dimension == dimension && region.contains(section))
    }

    /// The lowest tick rate (ticks per second over five seconds) of all regions that are neither halted nor paused; `None`
    /// before there is enough to count.
    pub fn slowest_tps(&self) -> Option<f64> {
        let ticking = self.regions.iter().filter(|region| !region.halted && !region.paused);
        ticking.filter_map(RegionStatistics::ticks_per_second).min_by(f64::total_cmp)
    }

    /// The bytes that the store wrote per saved byte; `None` before the first save, or if the backend does not know.
    pub fn written_per_saved(&self) -> Option<f64> {
        self.bytes_written.filter(|_| self.bytes_saved > 0).map(|written| written as f64 / self.bytes_saved as f64)
    }

    /// The median of the regions' ticks per second, over five seconds.
    pub fn median_tps(&self) -> Option<f64> {
        let mut rates: Vec<f64> = self.regions.iter().filter_map(RegionStatistics::ticks_per_second).collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    }
}

/// The statistics of one dimension in the [`WorldStatistics`].
#[derive(Clone, Debug, Default, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
pub struct DimensionStatistics {
    /// Its number in the world.
    pub dimension: DimensionId,
    /// The clock settings in force.
    pub clock: DimensionClock,
    /// The time of its clock.
    pub now: Duration,
    /// The generation settings in force.
    pub generation: DimensionGeneration,
    /// The columns within the viewers' radii, and how many of them are not in regions yet. Where the discs of several viewers
    /// overlap, the missing ones are an estimate that assumes an even spread. It is 0 if and only if no column was missing
    /// at the last count. Counts happen each time, or less often if so many viewers would take more than a twentieth of the
    /// coordinator's time.
    pub to_load: Completion,
    /// The columns within the viewers' generation radii, and how many of them are not generated yet, failed ones included. An
    /// estimate like `to_load`.
    pub to_generate: Completion,
    /// Columns of the dimension that are being generated or loaded.
    pub in_flight: usize,
    /// Columns generated per second, over the last ten seconds; `None` without any, or before a second has passed.
    pub generated_per_second: Option<f64>,
    /// The time to generate the rest at this rate; columns that are set aside do not count.
    pub time_left: Option<Duration>,
    /// Columns that failed to generate and wait for another try.
    pub failing: usize,
    /// Columns that failed to generate and wait for a [`RetryColumns`](crate::view::RetryColumns).
    pub set_aside: u64,
    /// The failed columns, at most the last 64.
    #[reflect(ignore)]
    pub failures: Arc<[FailedColumn]>,
}

/// The statistics of one region in the [`WorldStatistics`].
#[derive(Clone, Debug, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
pub struct RegionStatistics {
    /// Its dimension.
    pub dimension: DimensionId,
    /// Its id.
    pub region: RegionId,
    /// The state in the regionizer.
    pub state: RegionState,
    /// `true` if its tick panicked, or if a region whose tick panicked holds it.
    pub halted: bool,
    /// The reason of its halt.
    #[reflect(ignore)]
    pub fault: Option<Arc<RegionFault>>,
    /// `true` if it or its dimension is paused.
    pub paused: bool,
    /// `true` if the region itself is paused, regardless of its dimension.
    pub paused_itself: bool,
    /// Its own tick rate in ticks per second, if it has one.
    pub tick_rate: Option<f64>,
    /// How long its task has been running, if that exceeds the watchdog's limit.
    pub hung: Option<Duration>,
    /// The last marker that a hung task passed: a step of the crate, or the game's schedule that is running.
    pub hung_in: Option<String>,
    /// The regions that it is coupled with, directly or through others.
    pub coupled: Vec<(DimensionId, RegionId)>,
    /// Its columns.
    pub columns: usize,
    /// Entities with a stable id in it.
    pub entities: usize,
    /// Viewers in it.
    pub viewers: usize,
    /// Ticks since it was created. A part that splits off continues the count of its old region.
    pub ticks: u64,
    /// Its ticks over 5 seconds, 15 seconds and one minute.
    ///
    /// The surviving region of a merge keeps its own if it has ticked before. A part that splits off begins with a copy of its
    /// old region's.
    pub windows: [TickWindow; 3],
    /// Its sections, sorted, including buffer and dead sections.
    pub sections: Arc<[SectionPos]>,
}

impl RegionStatistics {
    /// A region without any figures yet.
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

    /// Its ticks per second over five seconds; `None` before there is enough to count.
    pub fn ticks_per_second(&self) -> Option<f64> {
        self.windows[0].ticks_per_second
    }

    /// The lowest and the highest section on both axes; `None` without sections.
    pub fn bounds(&self) -> Option<(SectionPos, SectionPos)> {
        Self::bounds_of(self.sections.iter().copied())
    }

    /// The lowest and the highest of these sections on both axes; `None` without any.
    pub fn bounds_of(sections: impl IntoIterator<Item = SectionPos>) -> Option<(SectionPos, SectionPos)> {
        sections.into_iter().map(|section| (section, section)).reduce(|(low, high), (section, _)| {
            let low = SectionPos::new(low.x.min(section.x), low.z.min(section.z));
            (low, SectionPos::new(high.x.max(section.x), high.z.max(section.z)))
        })
    }

    /// Returns `true` if the section belongs to the region.
    pub fn contains(&self, section: SectionPos) -> bool {
        self.sections.binary_search(&section).is_ok()
    }
}

/// The contents of the tiers and the movement between them, in the [`WorldStatistics`](crate::view::WorldStatistics).
#[derive(Clone, Debug, Default, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
pub struct TierStatistics {
    /// The approximate size of each tier, hottest first: chunks, groups of 4 x 4 x 4, cubes of 16 x 16 x 16. Zero if the
    /// backend does not know.
    #[reflect(ignore)]
    pub sizes: [FamilySize; 3],
    /// The bytes that the store holds in memory: its cache, and entries that are not in its tables yet; `None` if the backend does
    /// not know.
    pub memory_bytes: Option<u64>,
    /// The groups that became hot by loading, warm, and cold since the app began. Groups that became hot by saving are not
    /// counted.
    pub moved: [u64; 3],
    /// Bytes of the moved chunks, before compression.
    pub moved_bytes: u64,
    /// Bytes written for these moves.
    pub written_bytes: u64,
    /// Groups that could not be moved because they are too large or in a damaged cluster.
    pub left: u64,
    /// Groups that are due to move because they have not been loaded for long; counted up to 1,024 a tier.
    pub remaining: usize,
}

/// How far back a [`TickWindow`] looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeWindow {
    /// The last 5 seconds.
    FiveSeconds,
    /// The last 15 seconds.
    FifteenSeconds,
    /// The last minute.
    OneMinute,
}

impl TimeWindow {
    /// All windows, shortest first: the order in which a region has them.
    pub const ALL: [Self; 3] = [Self::FiveSeconds, Self::FifteenSeconds, Self::OneMinute];

    /// Its maximum length.
    pub const fn length(self) -> Duration {
        Duration::from_secs(match self {
            Self::FiveSeconds => 5,
            Self::FifteenSeconds => 15,
            Self::OneMinute => 60,
        })
    }

    /// The age at which its cached state is computed again.
    pub(in crate::coordinator) const fn refresh_period(self) -> Duration {
        Duration::from_secs(match self {
            Self::FiveSeconds => 1,
            Self::FifteenSeconds => 2,
            Self::OneMinute => 5,
        })
    }
}

/// A region's ticks over one window.
///
/// A window begins at a whole second of the clock, so it is up to one second shorter than its name says, and rates use its
/// real length. Counts and busy time are exact. A region that stopped as long ago as the window's name says has no ticks in
/// it. Tick times have 11 significant bits, which is within 0.05 %. Up to 24 ticks of each second are kept; of more ticks, a
/// random sample stands for that second in the median and the 95th percentile. The worst tick is never missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Reflect)]
#[type_path = "bevy_terrane"]
pub struct TickWindow {
    /// Ticks per second over the window or, for a younger region, since the end of its first tick; `None` before half a second
    /// has passed.
    pub ticks_per_second: Option<f64>,
    /// The median tick time; zero without ticks. For an even number of ticks, the upper one of the middle two.
    pub median: Duration,
    /// The 95th percentile of the tick times; zero without ticks.
    pub p95: Duration,
    /// The longest tick time; zero without ticks.
    pub worst: Duration,
    /// The share of the time spent ticking, 0 to 1. A tick that began before the window counts only with its part inside.
    pub utilisation: f64,
    /// Ticks that ended in the window.
    pub ticks: u32,
}

/// Asks this server to give all of its ground to another server, and to take no more: for an update, or before it is stopped.
/// A [`ServerDrained`](crate::view::ServerDrained) answers it.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainServer {
    /// The incarnation that gets the ground.
    pub to: u64,
}

/// A server of a shared world, as this one knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
pub struct ServerStatistics {
    /// The number of its incarnation.
    pub incarnation: u64,
    /// The address that it gave when it joined.
    pub address: Vec<u8>,
    /// `true` for this server.
    pub is_this: bool,
    /// The plots that it owns in the dimensions that are open here, each 32 x 32 columns.
    #[reflect(ignore)]
    pub plots: Arc<[Plot]>,
}
