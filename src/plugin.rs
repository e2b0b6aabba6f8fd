//! [`TerranePlugin`]: assembles the modules.

mod app_ext;
mod setup;
mod signals;

pub use crate::coordinator::{
    CoordinatorApp, CoordinatorMain, CoordinatorSystems, LetterLimits, RegionFaults, SaveDurability, TickMode,
    ViewerLimits,
};
pub use app_ext::TerraneAppExt;
pub use setup::WorldFailure;

use crate::coordinator::{
    CoordinatorConfig, CoordinatorHandle, DimensionGeneration, Jobs, MainLink, Pacing, SnapshotConfig,
};
use crate::region::RegionizerConfig;
use crate::storage::{StorageConfig, TierConfig};
use crate::view;
use bevy::prelude::*;
use setup::{exit_on_failure, fail};
use std::time::Duration;

/// Gives an app a voxel world.
///
/// Add it before blocks are registered: it opens the world, whose blocks keep their ids. If the world cannot be opened,
/// the app gets a [`WorldFailure`], nothing is stored, and the app ends with an error at its first update.
#[derive(Clone, Debug)]
pub struct TerranePlugin {
    storage: StorageConfig,
    config: CoordinatorConfig,
    seed: u64,
    parallel_from: usize,
    basic_blocks: bool,
}

impl Default for TerranePlugin {
    /// A world in the folder `world`, or in memory without the feature `rocksdb`; 20 ticks per second; a save
    /// every five seconds.
    fn default() -> Self {
        Self {
            storage: if cfg!(feature = "rocksdb") {
                StorageConfig::Path("world".into())
            } else {
                StorageConfig::Memory
            },
            config: CoordinatorConfig::default(),
            seed: 0,
            parallel_from: usize::MAX,
            basic_blocks: true,
        }
    }
}

impl TerranePlugin {
    /// A world in the folder at `path`, created if necessary.
    pub fn at(path: impl Into<std::path::PathBuf>) -> Self {
        Self { storage: StorageConfig::Path(path.into()), ..default() }
    }

    /// A world in memory, which ends with the app.
    pub fn in_memory() -> Self {
        Self { storage: StorageConfig::Memory, ..default() }
    }

    /// A world in a store of the game's choice.
    pub fn stored_in(storage: StorageConfig) -> Self {
        Self { storage, ..default() }
    }

    /// Sets how regions and frames relate.
    pub fn with_tick_mode(mut self, mode: TickMode) -> Self {
        self.config.mode = mode;
        self
    }

    /// Sets the ticks per second of each region; 20 by default. Values that are not positive numbers are ignored.
    pub fn with_ticks_per_second(mut self, ticks: f64) -> Self {
        if ticks.is_finite() && ticks > 0.0 {
            self.config.clock.ticks_per_second = ticks;
        }
        self
    }

    /// Sets the number of threads that run regions, at least one. By default as many as there are cores, and at least two.
    pub fn with_region_threads(mut self, threads: usize) -> Self {
        self.config.region_threads = threads.max(1);
        self
    }

    /// Sets the number of threads that generate columns, at least one. By default half of the cores.
    pub fn with_generation_threads(mut self, threads: usize) -> Self {
        self.config.generation_threads = threads.max(1);
        self
    }

    /// Sets the number of columns that may be generated at a time, regardless of frame and tick times; a quarter more may be
    /// loaded. By default the number adapts between 16 and 256.
    pub fn with_columns_in_flight(self, columns: usize) -> Self {
        self.with_pacing(Pacing::fixed(columns))
    }

    /// Sets how the number of columns in flight adapts, and its bounds. The resource [`Pacing`] changes this while the app
    /// runs.
    pub fn with_pacing(mut self, pacing: Pacing) -> Self {
        self.config.pacing = pacing;
        self
    }

    /// Sets how columns are generated in dimensions without a [`DimensionGeneration`] of their own.
    pub fn with_generation(mut self, generation: DimensionGeneration) -> Self {
        self.config.generation = generation;
        self
    }

    /// Limits the columns that a viewer may have loaded and generated, however fast it moves.
    pub fn with_viewer_limits(mut self, limits: ViewerLimits) -> Self {
        self.config.viewers = limits;
        self
    }

    /// Limits the letters in transit, and the places that are loaded for letters at a time.
    pub fn with_letter_limits(mut self, limits: LetterLimits) -> Self {
        self.config.letters = limits;
        self
    }

    /// Sets the limits for snapshot jobs.
    pub fn with_snapshots(mut self, config: SnapshotConfig) -> Self {
        self.config.snapshots = config;
        self
    }

    /// Sets the number of columns that pre-generations may have in flight, where viewers leave room; by default 64 for each
    /// generation thread.
    pub fn with_pregeneration_in_flight(mut self, columns: usize) -> Self {
        self.config.pregeneration_in_flight = Some(columns.max(1));
        self
    }

    /// Sets the autosave period; five seconds by default. Changes are saved after this time, two ticks and the time that the
    /// disk takes, at the latest. Regions are saved in turns, spread over the period.
    pub fn with_autosave_period(mut self, period: Duration) -> Self {
        self.config.autosave_period = period;
        self
    }

    /// Sets when unneeded chunks move to colder tiers of the store, and when they come back.
    pub fn with_tiers(mut self, config: TierConfig) -> Self {
        self.config.tiers = config;
        self
    }

    /// Sets when saved changes survive a loss of power; by default at once.
    pub fn with_save_durability(mut self, durability: SaveDurability) -> Self {
        self.config.save_durability = durability;
        self
    }

    /// Sets how many things (chunks, entities and so on; at least one) may be on their way into a slow store before no new
    /// columns are ordered. At twice as many, the regions do not tick until the store has caught up. 65,536 by default.
    pub fn with_unsaved_limit(mut self, things: usize) -> Self {
        self.config.unsaved_limit = things.max(1);
        self
    }

    /// Sets how long the end of the app waits for regions that are still ticking; ten seconds by default. After that, their
    /// changes since the last save are lost; edits that waited for them are applied to the saved state.
    pub fn with_shutdown_patience(mut self, patience: Duration) -> Self {
        self.config.shutdown_patience = patience;
        self
    }

    /// Sets the tick time beyond which a region is reported in the log and by a `RegionHung`; five seconds by default.
    pub fn with_watchdog_limit(mut self, limit: Duration) -> Self {
        self.config.watchdog_limit = limit;
        self
    }

    /// Generates and stores damaged chunks anew at once. The changes in them are lost, but the readable part of a damaged
    /// value is [set aside](crate::storage::WorldStore::set_aside).
    ///
    /// By default a column with a damaged chunk is not loaded: a `ColumnFailed` reports it, and loading is retried. The column
    /// can still be restored from a backup.
    pub fn with_damaged_ground_regenerated(mut self) -> Self {
        self.config.regenerates_damaged = true;
        self
    }

    /// Sets the consequence of a panic in a region's tick; by default only this region halts.
    pub fn with_region_faults(mut self, faults: RegionFaults) -> Self {
        self.config.faults = faults;
        self
    }

    /// Makes every access of a system to a block outside of its region an error that names the owner, even if the system
    /// ignores the result: for development. The error goes to the error handler, which by default panics, and the region
    /// halts.
    pub fn with_strict_regions(mut self) -> Self {
        self.config.strict = true;
        self
    }

    /// Sets the number of entities with a stable id from which a region runs its systems in parallel, on the app's compute
    /// threads; by default no region does. This pays off where the systems of a crowded region take milliseconds and frames leave
    /// time on the compute threads.
    pub fn with_parallel_systems_from(mut self, entities: usize) -> Self {
        self.parallel_from = entities.max(1);
        self
    }

    /// Sets when regions merge and split.
    pub fn with_regionizer(mut self, config: RegionizerConfig) -> Self {
        self.config.regionizer = config;
        self
    }

    /// Sets the seed of random numbers and of the entities' ids.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Omits the basic blocks (`terrane:stone` and so on), which the generators use by default.
    pub fn without_basic_blocks(mut self) -> Self {
        self.basic_blocks = false;
        self
    }

    #[cfg(feature = "testing")]
    pub(crate) fn is_lockstep(&self) -> bool {
        self.config.mode == TickMode::Lockstep
    }
}

impl Plugin for TerranePlugin {
    fn build(&self, app: &mut App) {
        view::build(app);
        app.insert_resource(self.config.pacing);
        app.add_systems(
            First,
            exit_on_failure.run_if(resource_exists::<WorldFailure>).before(view::ViewSystems::Receive),
        );
        if let Err(failure) = self.open(app) {
            fail(app, failure);
        }
    }

    fn finish(&self, app: &mut App) {
        if let Err(failure) = self.prepare(app) {
            fail(app, failure);
        }
        signals::handle(app);
    }

    fn cleanup(&self, app: &mut App) {
        if let Some(mut coordinator) = app.remove_sub_app(CoordinatorApp)
            && let Some(link) = coordinator.world_mut().remove_resource::<MainLink>()
        {
            match CoordinatorHandle::start(coordinator, link.clone()) {
                Ok(handle) => {
                    app.insert_resource(handle).insert_resource(link.jobs()).insert_resource(link);
                }
                Err(error) => fail(app, error.into()),
            }
        }
        if !app.world().contains_resource::<Jobs>() {
            // Without a world no job begins. The game's systems run once more until the app ends.
            app.insert_resource(MainLink::to_nowhere().jobs());
        }
        // Only now the log exists, and all plugins have added their systems.
        setup::tell_of_systems_that_never_run(app);
        setup::end_if_failed(app);
    }
}
