//! The coordinator: a world of its own between the main world and the region worlds.
//!
//! It owns the regionizers, the [`DistanceGraph`](crate::generation::DistanceGraph)s, the deadlines and the pending
//! save. Every change of a region's state happens here, in a fixed order, so the state machine needs no lock. It runs
//! on its own thread, woken by messages and deadlines, or inline in [`TickMode::Lockstep`].
//!
//! One pass runs the [`CoordinatorSystems`] in order. `collect`, `stream`, `deliver`, `dispatch` and `publish` are the five; beside
//! them stand the jobs of the same sets. What they work with is the `desk`.

mod answers;
mod arenas;
mod clocks;
mod collect;
mod deliver;
mod desk;
mod dimension;
mod dispatch;
mod events;
mod exchange;
mod far_view;
mod fault;
mod pregeneration;
mod publish;
mod region_slot;
mod saving;
mod snapshots;
mod statistics;
mod stream;
mod streaming;
#[cfg(test)]
mod tests;
mod threads;
mod travel;

pub use crate::simulation::SetBlock;
pub use answers::chunk_states::{AskChunks, ChunkState};
pub use answers::opacity::{AskError, AskOpacity};
pub use arenas::{Arena, ArenaError, ArenaOrder, ArenaSettings, ArenaState, ArenaStatus, Arenas};
pub use clocks::clock::DimensionClock;
pub use clocks::coupling::Coupling;
pub use dimension::{DimensionError, DimensionSpec};
pub use events::{
    ArenaCreated, ArenaRefused, ArenaRemoved, ArenaReverted, BackupFailed, BlockRefused, ChunksAnswer, ColumnFailed,
    ControlRegion, DimensionClosed, DimensionFailed, DimensionOpened, DimensionRemoved, GroundRegenerated, LetterLost,
    LogInRefused, OpacityAnswer, PlayerLoggedIn, PlayerLoggedOut, RegionCreated, RegionDestroyed, RegionHalted,
    RegionHung, RegionMerged, RegionOrder, RegionRestarted, RegionSplit, SaveFailed, StepDimension, WorldBackedUp,
    WorldEvent, WorldSaved,
};
pub use exchange::{ColumnUpdate, FromMain, MainLink, MirrorState, Published};
pub use far_view::{FarCenter, FarNews, FarReach, FarUpdate, FarWish, MAX_FAR_RADIUS};
pub use fault::RegionFault;
pub use pregeneration::{PregenerationOrder, PregenerationProgress, PregenerationState, PregenerationStatus};
pub use saving::backup::BackupWorld;
pub use saving::tiers::TierStatistics;
pub use snapshots::{
    AfterCrash, CaptureSnapshot, ColumnOutcome, ColumnResult, EntityRestore, RestoreSnapshot, SnapshotJobId,
    SnapshotJobState, SnapshotJobStatus, SnapshotJobs, SnapshotOutcome, SnapshotProgress, SnapshotSettings,
    SnapshotSource, StoreSnapshot, UngeneratedGround,
};
pub use statistics::history::{TickHistory, TickWindow, Window};
pub use statistics::{DimensionStatistics, RegionStatistics, Statistics};
pub use streaming::failures::FailedColumn;
pub use streaming::generation_control::{DimensionGeneration, RetryColumns};
pub use streaming::pacing::Pacing;
pub use threads::{CoordinatorHandle, WorkError};
pub use travel::players::LogInError;

use crate::region::RegionizerConfig;
use crate::simulation::{DamagedGround, RegionTemplate};
use crate::storage::{TierSettings, WorldStore};
use crate::work::FileError;
use bevy::app::AppLabel;
use bevy::ecs::schedule::{ScheduleLabel, SingleThreadedExecutor};
use bevy::prelude::*;
use std::{sync::Arc, time::Duration};

/// The label of the coordinator's `SubApp`. It is in the app from `TerranePlugin`'s `finish` to its `cleanup`: in between,
/// in their own `finish`, later plugins can add systems to it.
#[derive(AppLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoordinatorApp;

/// The schedule of one pass of the coordinator.
#[derive(ScheduleLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoordinatorMain;

/// The parts of one pass of the coordinator, in this order, in [`CoordinatorMain`].
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoordinatorSystems {
    /// Takes finished ticks and requests, ends ticks in the regionizer, routes what regions sent.
    Collect,
    /// Finds the ground that viewers miss, nearest first, and orders it, then that of pre-generations; finds what nobody
    /// needs any more.
    Stream,
    /// Hands loaded columns, mail and entities to the region that owns the place now.
    Deliver,
    /// Starts due regions, earliest deadline first, and saves.
    Dispatch,
    /// Puts what changed where the main world takes it.
    Publish,
}

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
    fn is_sync_due(self, is_second_over: bool) -> bool {
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
    /// Columns that pre-generation may have on order at a time, where viewers leave room; `None` for 64 for each
    /// generation thread.
    pub pregeneration_in_flight: Option<usize>,
    /// What changed is in the store after this time, two ticks and the time of a commit at the latest.
    pub autosave_period: Duration,
    /// When chunks move to colder tiers and back.
    pub tiers: TierSettings,
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
    /// What becomes of chunks that are stored but damaged.
    pub damaged_ground: DamagedGround,
    /// The regionizer's thresholds, for every dimension.
    pub regionizer: RegionizerConfig,
    /// How much snapshot jobs may take of the world.
    pub snapshots: SnapshotSettings,
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
            pregeneration_in_flight: None,
            autosave_period: Duration::from_secs(5),
            tiers: TierSettings::default(),
            save_durability: SaveDurability::default(),
            unsaved_limit: 65_536,
            shutdown_patience: Duration::from_secs(10),
            watchdog_limit: Duration::from_secs(5),
            strict: false,
            faults: RegionFaults::default(),
            damaged_ground: DamagedGround::default(),
            regionizer: RegionizerConfig::default(),
            snapshots: SnapshotSettings::default(),
        }
    }
}

/// Updates after which a column that was ordered in lockstep is delivered, however long it took.
const LOCKSTEP_LATENCY: u64 = 4;

/// Why there is no coordinator.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// A thread could not be started.
    #[error("the simulation's threads cannot be started: {0}")]
    Threads(#[from] std::io::Error),
    /// Which arenas there are is not known, or which restores were cut short.
    #[error("{0}; without, ground could stay half restored, or an arena be made over another")]
    Snapshots(#[from] FileError),
}

/// Makes the coordinator's app. It does nothing until it is started or updated.
pub fn coordinator_app(
    config: CoordinatorConfig,
    template: RegionTemplate,
    store: Arc<WorldStore>,
) -> Result<(SubApp, MainLink), CoordinatorError> {
    store.set_promotion(config.tiers.promotion);
    let folder = config.snapshots.folder_in(&store);
    let arenas = arenas::ArenaDesk::open(folder.as_deref(), config.snapshots.arena_side)?;
    let records = folder.map(snapshots::RestoreRecords::open).transpose()?;
    let (threads, link) = threads::Threads::start(&config, template, store.clone())?;
    let snapshots = snapshots::Snapshots::open(link.snapshot_jobs(), records, &store);
    let mut app = SubApp::new();
    app.update_schedule = Some(CoordinatorMain.intern());
    app.insert_resource(config.clone())
        .insert_resource(dimension::Store(store))
        .insert_resource(threads)
        .insert_resource(streaming::pacing::InFlightLimit::new(
            config.pacing,
            config.mode.is_lockstep(),
            link.frames.clone(),
        ))
        .init_resource::<exchange::Inbound>()
        .init_resource::<dimension::Dimensions>()
        .init_resource::<clocks::clock::Clock>()
        .init_resource::<clocks::coupling::Couplings>()
        .init_resource::<travel::players::Players>()
        .init_resource::<travel::post::Directory>()
        .init_resource::<dispatch::Deadlines>()
        .insert_resource(saving::save::Saves::new(&config))
        .init_resource::<statistics::Totals>()
        .init_resource::<saving::tiers::Tiers>()
        .init_resource::<saving::backup::BackupLook>()
        .insert_resource(snapshots)
        .insert_resource(arenas)
        .init_resource::<snapshots::Sightings>()
        .init_resource::<far_view::FarViews>()
        .insert_resource(publish::Publisher::new(link.published.clone()));
    add_systems(&mut app);
    Ok((app, link))
}

/// One pass: what is in one set is in this order too.
fn add_systems(app: &mut SubApp) {
    app.configure_sets(
        CoordinatorMain,
        (
            CoordinatorSystems::Collect,
            CoordinatorSystems::Stream,
            CoordinatorSystems::Deliver,
            CoordinatorSystems::Dispatch,
            CoordinatorSystems::Publish,
        )
            .chain(),
    )
    .add_systems(
        CoordinatorMain,
        (
            (clocks::clock::advance_clocks, collect::collect, travel::players::tend_players)
                .chain()
                .in_set(CoordinatorSystems::Collect),
            (stream::stream, pregeneration::pregenerate, snapshots::work_on_snapshots, arenas::tend_arenas)
                .chain()
                .in_set(CoordinatorSystems::Stream),
            (deliver::deliver, far_view::serve_far_views).chain().in_set(CoordinatorSystems::Deliver),
            (
                fault::watch,
                saving::save::begin_save,
                saving::close::close,
                dispatch::dispatch,
                dispatch::finish_lockstep,
                saving::save::commit,
                saving::tiers::tend_tiers,
                saving::backup::look_for_requests,
            )
                .chain()
                .in_set(CoordinatorSystems::Dispatch),
            publish::publish.in_set(CoordinatorSystems::Publish),
        ),
    );
    app.edit_schedule(CoordinatorMain, |schedule| {
        schedule.set_executor(SingleThreadedExecutor::new());
    });
}
