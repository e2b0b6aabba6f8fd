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

/// How region ticks relate to the main world's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TickMode {
    /// Each region ticks at the tick rate and never waits for another region or a frame.
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

/// When saved data survives a loss of power, and not only the end of the process. A save is atomic either way: lost
/// saves are lost whole, the newest first. A `SaveWorld` is answered when its data survives both, and the data that the
/// app saves at its end survives both too.
///
/// | | `kill -9`, a crash of the process | a loss of power, a crash of the system |
/// |---|---|---|
/// | [`EachSave`](Self::EachSave) | loses unsaved changes, at most those of one autosave period | the same |
/// | [`EachSecond`](Self::EachSecond) | the same | loses up to a second more |
/// | [`AtShutdown`](Self::AtShutdown) | the same | may lose all since the last `SaveWorld` or start, rarely over 30 s |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SaveDurability {
    /// Each save is synced.
    #[default]
    EachSave,
    /// Saves are synced within a second.
    EachSecond,
    /// Only the end of the app and `SaveWorld` sync. Systems mostly write by themselves within half a minute.
    AtShutdown,
}

impl SaveDurability {
    /// Returns `true` if a save without a `SaveWorld` must be synced now. `is_second_over`: the last sync is a second ago.
    pub(super) fn is_sync_due(self, is_second_over: bool) -> bool {
        match self {
            Self::EachSave => true,
            Self::EachSecond => is_second_over,
            Self::AtShutdown => false,
        }
    }
}

/// How far the store is behind, and what waits for it. The world slows down before memory grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backlog {
    /// The store keeps up.
    #[default]
    None,
    /// No new ground is ordered, and regions hold back their unsaved changes.
    OrdersWait,
    /// The regions do not tick either.
    TicksWait,
}

/// The effect of a panic in a region's tick. In [`TickMode::Lockstep`] the panic always goes on to the app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RegionFaults {
    /// The region halts, the others go on. A region that merges with it reloads the halted columns from the store.
    #[default]
    Halt,
    /// The region halts, and regions that merge with it halt too, until it is restarted.
    HaltNeighbors,
    /// The panic goes on to the app.
    Propagate,
}

/// The coordinator's settings.
#[derive(Resource, Clone, Debug)]
pub struct CoordinatorConfig {
    /// How region ticks relate to frames.
    pub mode: TickMode,
    /// The clock of a dimension without one of its own.
    pub clock: DimensionClock,
    /// The number of threads that run regions.
    pub region_threads: usize,
    /// The number of threads that generate columns.
    pub generation_threads: usize,
    /// How many columns may be on order at a time for viewers.
    pub pacing: Pacing,
    /// How ground is generated in a dimension without settings of its own.
    pub generation: DimensionGeneration,
    /// How much ground a viewer may have loaded and generated.
    pub viewers: ViewerLimits,
    /// How many letters may be in flight, and for how many places ground is loaded at a time.
    pub letters: LetterLimits,
    /// The number of columns that pre-generation may have on order at a time, where viewers leave room. `None` means 64 for
    /// each generation thread.
    pub pregeneration_in_flight: Option<usize>,
    /// A change is in the store after this time plus two ticks and the time of a commit, at the latest.
    pub autosave_period: Duration,
    /// When chunks move to colder tiers and back.
    pub tiers: TierConfig,
    /// When saved data survives a loss of power.
    pub save_durability: SaveDurability,
    /// With this many things (chunks, entities and so on) in flight to the store, no new ground is ordered. With twice as
    /// many, the regions do not tick until the store has caught up.
    pub unsaved_limit: usize,
    /// How long the end of the app waits for regions that are still ticking.
    pub shutdown_patience: Duration,
    /// A region whose task takes longer than this is reported as hung.
    pub watchdog_limit: Duration,
    /// Makes every access of a system outside of its region an error that names the owner of the place.
    pub strict: bool,
    /// The effect of a panic in a region's tick.
    pub faults: RegionFaults,
    /// Whether damaged stored chunks are generated anew.
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
