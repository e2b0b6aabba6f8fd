//! The settings of the simulation.

use crate::coordinator::messages::clocks::DimensionClock;
use crate::coordinator::messages::generation::{DimensionGeneration, Pacing};
use crate::coordinator::messages::snapshots::SnapshotConfig;
use crate::region::RegionizerConfig;
use crate::simulation::ViewerRadii;
use crate::space::disc_radius;
use crate::storage::{StorageConfig, TierConfig};
use bevy::prelude::*;
use std::path::PathBuf;
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
    pub(in crate::coordinator) fn is_lockstep(self) -> bool {
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
    pub(in crate::coordinator) fn is_sync_due(self, is_second_over: bool) -> bool {
        match self {
            Self::EachSave => true,
            Self::EachSecond => is_second_over,
            Self::AtShutdown => false,
        }
    }
}

/// How far the store is behind, and what waits for it. The world slows down before memory grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
pub enum Backlog {
    /// The store keeps up.
    #[default]
    None,
    /// No new ground is ordered, and regions hold back their unsaved changes.
    OrdersWait,
    /// The regions do not tick either.
    TicksWait,
}

/// The effect of a panic in a region's tick. In [`TickMode::Lockstep`] the panic always propagates to the app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RegionFaults {
    /// The region halts, and the others continue. A region that merges with it reloads the halted columns from the store.
    #[default]
    Halt,
    /// The region halts, and regions that merge with it halt too, until it is restarted.
    HaltNeighbors,
    /// The panic propagates to the app.
    Propagate,
}

/// Gives an app a voxel world. Its fields are the settings:
///
/// ```
/// # use bevy_terrane::prelude::*;
/// # let folder = std::env::temp_dir().join("doc_test_of_the_plugin");
/// App::new().add_plugins((MinimalPlugins, TerranePlugin { seed: 42, ..TerranePlugin::at(&folder) }));
/// # std::fs::remove_dir_all(folder).unwrap();
/// ```
///
/// Add it before blocks are registered: it opens the world, whose blocks keep their ids. If the world cannot be opened,
/// the app gets a [`WorldFailure`](crate::plugin::WorldFailure), nothing is stored, and the app ends with an error at its first
/// update.
#[derive(Clone, Debug)]
pub struct TerranePlugin {
    /// Where the world is stored. By default in the folder `world`, or in memory without the feature `rocksdb`.
    pub storage: StorageConfig,
    /// The seed of random numbers and of the entities' ids.
    pub seed: u64,
    /// Registers the basic blocks (`terrane:stone` and so on), which the generators use by default. `true` by default.
    pub basic_blocks: bool,
    /// How regions and frames relate.
    pub tick_mode: TickMode,
    /// The clock of a dimension without a [`DimensionClock`] of its own; by default 20 ticks per second.
    pub clock: DimensionClock,
    /// The numbers of threads.
    pub threads: ThreadSettings,
    /// How many columns may be in flight, and how the number adapts. The resource [`Pacing`] changes this while the app runs.
    pub pacing: Pacing,
    /// How columns are generated in a dimension without a [`DimensionGeneration`] of its own.
    pub generation: DimensionGeneration,
    /// The share of a tick, from 0 to 1, in which a region works off changes of light; what does not fit goes on in the next tick.
    /// By default 0.1, which is 5,000 chunks and levels of light in a tick of 50 ms. 0 turns light off: no light is computed, and
    /// everything counts as being under the open sky.
    pub light: f64,
    /// The limits on viewers and senders.
    pub limits: Limits,
    /// The limits of snapshot jobs.
    pub snapshots: SnapshotConfig,
    /// How and when changes are saved.
    pub saving: SaveSettings,
    /// When unneeded chunks move to colder tiers of the store, and when they come back.
    pub tiers: TierConfig,
    /// The treatment of regions that panic or hang.
    pub faults: FaultSettings,
    /// When regions merge and split.
    pub regionizer: RegionizerConfig,
}

/// The numbers of threads for the simulation. The coordinator, the storage and loading have one thread each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSettings {
    /// The number of threads that run regions, at least one. By default as many as there are cores, and at least two.
    pub regions: usize,
    /// The number of threads that generate columns, at least one. By default half of the cores.
    pub generation: usize,
    /// The number of entities with a stable id from which a region runs its systems in parallel, on the app's compute
    /// threads; by default no region does. This pays off where the systems of a crowded region take milliseconds and frames
    /// leave time on the compute threads.
    pub parallel_systems_from: Option<usize>,
}

impl Default for ThreadSettings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
        Self { regions: cores.max(2), generation: cores.div_ceil(2), parallel_systems_from: None }
    }
}

/// The limits on viewers, on senders of letters, and on entities that act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The columns that a viewer may have loaded and generated, however fast it moves.
    pub viewers: ViewerLimits,
    /// The letters in transit, and the places that are loaded for letters at a time.
    pub letters: LetterLimits,
    /// The number of [actions](crate::simulation::Action) that an entity may do in a second, and the number that it may do at once; by
    /// default 64.
    pub actions_per_second: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self { viewers: ViewerLimits::default(), letters: LetterLimits::default(), actions_per_second: 64 }
    }
}

/// How and when changes are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveSettings {
    /// Changes are saved after this time, two ticks and the time that the disk takes, at the latest. Regions are saved in turns,
    /// spread over the period. By default five seconds.
    pub autosave_period: Duration,
    /// When saved changes survive a loss of power; by default at once.
    pub durability: SaveDurability,
    /// How many things (chunks, entities and so on; at least one) may be on their way into a slow store before no new columns
    /// are ordered. At twice as many, the regions do not tick until the store has caught up. 65,536 by default.
    pub unsaved_limit: usize,
    /// How long the end of the app waits for regions that are still ticking; by default ten seconds. After that, their changes
    /// since the last save are lost; edits that waited for them are applied to the saved state.
    pub shutdown_patience: Duration,
    /// Generates damaged chunks again at once, and stores them. The changes in them are lost, but the readable part of a damaged
    /// value is [set aside](crate::storage::WorldStore::set_aside).
    ///
    /// By default a column with a damaged chunk is not loaded: a [`ColumnFailed`](crate::view::ColumnFailed) reports it, and
    /// loading is retried. The column can still be restored from a backup.
    pub regenerate_damaged: bool,
}

impl Default for SaveSettings {
    fn default() -> Self {
        Self {
            autosave_period: Duration::from_secs(5),
            durability: SaveDurability::default(),
            unsaved_limit: 65_536,
            shutdown_patience: Duration::from_secs(10),
            regenerate_damaged: false,
        }
    }
}

impl SaveSettings {
    /// The default settings, with this autosave period.
    pub fn every(autosave_period: Duration) -> Self {
        Self { autosave_period, ..default() }
    }
}

/// The treatment of regions that panic or hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultSettings {
    /// The effect of a panic in a region's tick; by default only this region halts.
    pub on_panic: RegionFaults,
    /// A region whose tick takes longer is reported in the log and by a [`RegionHung`](crate::view::RegionHung); by default five
    /// seconds.
    pub watchdog_limit: Duration,
    /// Makes every access of a system to a block outside of its region an error that names the owner, even if the system
    /// ignores the result: for development. The error goes to the error handler, which by default panics, and the region
    /// halts.
    pub strict: bool,
}

impl Default for FaultSettings {
    fn default() -> Self {
        Self { on_panic: RegionFaults::default(), watchdog_limit: Duration::from_secs(5), strict: false }
    }
}

impl Default for TerranePlugin {
    fn default() -> Self {
        Self {
            storage: if cfg!(feature = "rocksdb") {
                StorageConfig::Path("world".into())
            } else {
                StorageConfig::Memory
            },
            seed: 0,
            basic_blocks: true,
            tick_mode: TickMode::default(),
            clock: DimensionClock::default(),
            threads: ThreadSettings::default(),
            pacing: Pacing::default(),
            generation: DimensionGeneration::default(),
            light: 0.1,
            limits: Limits::default(),
            snapshots: SnapshotConfig::default(),
            saving: SaveSettings::default(),
            tiers: TierConfig::default(),
            faults: FaultSettings::default(),
            regionizer: RegionizerConfig::default(),
        }
    }
}

impl TerranePlugin {
    /// A world in the folder at `path`, created if necessary.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self::stored_in(StorageConfig::Path(path.into()))
    }

    /// A world in memory, which ends with the app.
    pub fn in_memory() -> Self {
        Self::stored_in(StorageConfig::Memory)
    }

    /// A world in a store of the game's choice.
    pub fn stored_in(storage: StorageConfig) -> Self {
        Self { storage, ..default() }
    }
}

/// The settings, with numbers that make sense.
#[derive(Resource, Clone, Debug, Deref)]
pub struct Settings(TerranePlugin);

impl Settings {
    pub fn new(plugin: &TerranePlugin) -> Self {
        let mut plugin = plugin.clone();
        for number in [&mut plugin.threads.regions, &mut plugin.threads.generation, &mut plugin.saving.unsaved_limit] {
            *number = (*number).max(1);
        }
        Self(plugin)
    }
}

/// How much ground a viewer may have loaded and generated in a dimension, so that a client whose viewer jumps around the
/// world cannot fill memory and disk. Ground beyond the limit comes later, as time allows; nothing fails.
///
/// A viewer may have twice its disc at once, plus a second's worth; only a viewer that keeps moving reaches the rates. A
/// player at 60 blocks a second who sees 32 columns far needs 250 new columns a second. A rate that is not a positive number
/// allows only the amount at once, and nothing later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ViewerLimits {
    /// Columns loaded from the store for a viewer per second, on average.
    pub loaded_per_second: f64,
    /// Columns generated for a viewer per second, on average.
    pub generated_per_second: f64,
    /// Columns within its load radius; a larger radius is reduced. The margin of two columns in which columns stay loaded
    /// ([`Viewer::radius`](crate::simulation::Viewer::radius)) does not count.
    pub loaded: u32,
    /// Columns generated for a viewer in total while it exists. After these, no column is generated for it and a warning is
    /// logged; stored columns are still loaded.
    pub generated: u64,
}

impl Default for ViewerLimits {
    /// 1,024 loaded and 512 generated columns per second; 1,048,576 loaded at a time, more than [`Viewer`] allows; 16,777,216
    /// generated in total, more than the largest generation radius contains.
    ///
    /// [`Viewer`]: crate::simulation::Viewer
    fn default() -> Self {
        Self { loaded_per_second: 1_024.0, generated_per_second: 512.0, loaded: 1 << 20, generated: 1 << 24 }
    }
}

impl ViewerLimits {
    /// Reduces the load radius to the allowed number of columns.
    pub fn cut(&self, radii: ViewerRadii) -> ViewerRadii {
        ViewerRadii { load: radii.load.min(disc_radius(self.loaded.into())), ..radii }
    }
}

/// How much memory a game's letters may take in flight, and for how many of them ground is loaded at a time. A letter is in
/// flight until it is delivered, comes back or is lost.
///
/// A letter beyond a limit in bytes comes back to its sender as
/// [`Undeliverable::TooManyLetters`](crate::simulation::Undeliverable::TooManyLetters); a closure is reported as lost. A
/// letter's size is its own bytes and those of its message or closure, without memory that these point to: about 200 bytes
/// with a small message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetterLimits {
    /// The maximum bytes of one sender's letters; a sender is the main world or a region.
    pub sender_bytes: usize,
    /// The maximum bytes of all letters.
    pub bytes: usize,
    /// The number of places in a dimension for which ground is loaded at a time, at least one, so that letters to far places do
    /// not load the whole world. Letters to other unloaded places wait for their turn. A place whose ground cannot be loaded
    /// takes no turn, up to sixteen times this number of such places.
    pub places: usize,
}

impl Default for LetterLimits {
    /// 64 MiB for each sender, 256 MiB for all, 256 places.
    fn default() -> Self {
        Self { sender_bytes: 64 << 20, bytes: 256 << 20, places: 256 }
    }
}
