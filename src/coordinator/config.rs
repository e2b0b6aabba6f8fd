//! The settings of the coordinator.

use super::clocks::clock::DimensionClock;
use super::streaming::generation_control::DimensionGeneration;
use super::streaming::pacing::Pacing;
use super::streaming::viewer_limits::ViewerLimits;
use super::travel::letter_limits::LetterLimits;
use crate::coordinator::snapshots::order::SnapshotConfig;
use crate::region::RegionizerConfig;
use crate::storage::TierConfig;
use bevy::prelude::*;
use std::time::Duration;

/// How regions and the main world's frames relate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TickMode {
    /// Each region ticks at the tick rate and never waits for another region or for a frame.
    #[default]
    Independent,
    /// Each `app.update()` ticks each region exactly once and waits for it: deterministic, for tests, replays and
    /// turn-based games.
    Lockstep,
}

impl TickMode {
    pub(super) fn is_lockstep(self) -> bool {
        self == Self::Lockstep
    }
}

/// When what was saved survives a loss of power, and not only the end of the process. A save is atomic either way: what
/// is lost is lost as if it had not happened, the newest first. A `SaveWorld` is answered when it survives both, and so
/// does what the end of the app saves.
///
/// | | `kill -9`, a crash of the process | a loss of power, a crash of the system |
/// |---|---|---|
/// | [`EachSave`](Self::EachSave) | costs what was not saved yet, the autosave period at most | the same |
/// | [`EachSecond`](Self::EachSecond) | the same | costs up to a second more |
/// | [`AtShutdown`](Self::AtShutdown) | the same | may cost all since the last `SaveWorld` or start, though rarely more than the half minute after which systems write by themselves |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SaveDurability {
    /// Each save is synced.
    #[default]
    EachSave,
    /// What was saved is synced within a second.
    EachSecond,
    /// Only the end of the app and a `SaveWorld` sync.
    AtShutdown,
}

impl SaveDurability {
    /// Whether a save is to be synced now that nobody waits for. `is_second_over` says whether the last sync is a second ago.
    pub(super) fn is_sync_due(self, is_second_over: bool) -> bool {
        match self {
            Self::EachSave => true,
            Self::EachSecond => is_second_over,
            Self::AtShutdown => false,
        }
    }
}

/// How far the store is behind, and what waits for it: the world slows down before memory grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backlog {
    /// It keeps up.
    #[default]
    None,
    /// No new ground is ordered, and regions keep to themselves what is unsaved.
    OrdersWait,
    /// The regions do not tick either.
    TicksWait,
}

/// What it means that a region's tick panics. In [`TickMode::Lockstep`] the panic goes on to the app in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RegionFaults {
    /// The region halts, the others go on. One that comes to merge with it reloads its columns from the store.
    #[default]
    Halt,
    /// The region halts, and whatever merges with it halts too, until it is restarted.
    HaltNeighbors,
    /// The panic goes on to the app.
    Propagate,
}

/// The coordinator's settings.
#[derive(Resource, Clone, Debug)]
pub struct CoordinatorConfig {
    /// How regions and frames relate.
    pub mode: TickMode,
    /// How time passes in a dimension that says nothing else.
    pub clock: DimensionClock,
    /// Threads that run regions.
    pub region_threads: usize,
    /// Threads that generate columns.
    pub generation_threads: usize,
    /// How many columns may be on order at a time for viewers.
    pub pacing: Pacing,
    /// How ground is generated in a dimension that says nothing else.
    pub generation: DimensionGeneration,
    /// How much ground a viewer may have loaded and generated.
    pub viewers: ViewerLimits,
    /// How many letters may be on their way, and for how many places ground is loaded at a time.
    pub letters: LetterLimits,
    /// Columns that pre-generation may have on order at a time, where viewers leave room; `None` for 64 for each
    /// generation thread.
    pub pregeneration_in_flight: Option<usize>,
    /// What changed is in the store after this time, two ticks and the time of a commit at the latest.
    pub autosave_period: Duration,
    /// When chunks move to colder tiers and back.
    pub tiers: TierConfig,
    /// What a save outlives.
    pub save_durability: SaveDurability,
    /// With so many things (chunks, entities and so on) on their way into the store no new ground is ordered; with twice
    /// as many the regions do not tick until the store has caught up.
    pub unsaved_limit: usize,
    /// How long the end of the app waits for regions that are still ticking.
    pub shutdown_patience: Duration,
    /// A region whose task takes longer than this is reported as hung.
    pub watchdog_limit: Duration,
    /// Every access of a system outside of its region is an error that says who owns the place.
    pub strict: bool,
    /// What a region's panic means.
    pub faults: RegionFaults,
    /// Chunks that are stored but damaged are generated anew.
    pub regenerates_damaged: bool,
    /// The regionizer's thresholds, for every dimension.
    pub regionizer: RegionizerConfig,
    /// How much snapshot jobs may take of the world.
    pub snapshots: SnapshotConfig,
}

impl Default for CoordinatorConfig {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
        Self {
            mode: TickMode::Independent,
            clock: DimensionClock::default(),
            region_threads: cores.max(2),
            generation_threads: cores.div_ceil(2),
            pacing: Pacing::default(),
            generation: DimensionGeneration::default(),
            viewers: ViewerLimits::default(),
            letters: LetterLimits::default(),
            pregeneration_in_flight: None,
            autosave_period: Duration::from_secs(5),
            tiers: TierConfig::default(),
            save_durability: SaveDurability::default(),
            unsaved_limit: 65_536,
            shutdown_patience: Duration::from_secs(10),
            watchdog_limit: Duration::from_secs(5),
            strict: false,
            faults: RegionFaults::default(),
            regenerates_damaged: false,
            regionizer: RegionizerConfig::default(),
            snapshots: SnapshotConfig::default(),
        }
    }
}
