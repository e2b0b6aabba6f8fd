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
mod config;
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
mod published;
mod region_slot;
mod saving;
mod snapshots;
mod statistics;
mod stream;
mod streaming;
mod tally;
#[cfg(test)]
mod tests;
mod threads;
mod travel;

pub use crate::simulation::SetBlock;
pub use answers::chunk_states::{AskChunks, ChunkState};
pub use answers::opacity::{AskError, AskOpacity};
pub use arenas::{Arena, ArenaDamage, ArenaError, ArenaOrder, ArenaSettings, ArenaState, ArenaStatus, Arenas};
pub use clocks::clock::DimensionClock;
pub use clocks::control::{ControlError, ControlRegion, RegionOrder, StepDimension};
pub use clocks::coupling::Coupling;
pub use config::{Backlog, CoordinatorConfig, RegionFaults, SaveDurability, TickMode};
pub(crate) use dimension::MAX_WHOLE_HEIGHT;
pub use dimension::{DimensionError, DimensionSpec};
pub use events::{
    ArenaCreated, ArenaRefused, ArenaRemoved, ArenaReverted, BackupFailed, BlockRefused, ChunksAnswer, ColumnFailed,
    ControlRefused, DimensionClosed, DimensionFailed, DimensionOpened, DimensionRemoved, GroundRegenerated, LetterLost,
    LogInRefused, OpacityAnswer, PlayerLoggedIn, PlayerLoggedOut, RegionCreated, RegionDestroyed, RegionHalted,
    RegionHung, RegionMerged, RegionRestarted, RegionSplit, SaveFailed, StepRefused, WorldBackedUp, WorldEvent,
    WorldSaved,
};
pub use exchange::MainLink;
pub use far_view::{FarCenter, FarNews, FarRadii, FarUpdate, FarWish, MAX_FAR_RADIUS};
pub use fault::RegionFault;
pub use pregeneration::{PregenerationOrder, PregenerationProgress, PregenerationState, PregenerationStatus};
pub use published::{ColumnUpdate, MirrorState, Published};
pub use saving::backup::{BackupWorld, SaveError, SaveWorld};
pub use saving::tiers::TierStatistics;
pub use snapshots::{
    AfterCrash, CaptureSnapshot, ColumnOutcome, ColumnResult, EntityRestore, RestoreSnapshot, SnapshotConfig,
    SnapshotJob, SnapshotJobError, SnapshotJobId, SnapshotJobState, SnapshotJobStatus, SnapshotJobs, SnapshotOutcome,
    SnapshotProgress, SnapshotSource, StoreSnapshot, UngeneratedGround,
};
pub use statistics::history::{TickHistory, TickWindow, TimeWindow};
pub use statistics::{DimensionStatistics, RegionStatistics, Statistics};
pub use streaming::failed_columns::FailedColumn;
pub use streaming::generation_control::{DimensionGeneration, RetryColumns};
pub use streaming::pacing::Pacing;
pub use streaming::viewer_limits::ViewerLimits;
pub use threads::{CoordinatorHandle, WorkError};
pub use travel::letter_limits::LetterLimits;
pub use travel::players::{LogIn, LogInError, LogOut};

/// Systems that answer requests of the main world: see [`MainLink::request`].
pub(crate) mod requests {
    pub(crate) use super::answers::chunk_states::ask_chunks;
    pub(crate) use super::answers::opacity::ask_opacity;
    pub(crate) use super::clocks::control::{control_region, set_clock, step_dimension};
    pub(crate) use super::clocks::coupling::couple;
    pub(crate) use super::collect::requests::{edit_blocks, move_viewers, open_dimension};
    pub(crate) use super::far_view::{note_taken, remove_far_view, set_far_view};
    pub(crate) use super::pregeneration::{adopt_pregeneration, control_pregeneration, start_pregeneration};
    pub(crate) use super::saving::backup::{back_up_world, save_world};
    pub(crate) use super::saving::close::close_dimension;
    pub(crate) use super::streaming::generation_control::{retry_columns, set_generation, set_pacing};
    pub(crate) use super::travel::letters::post_letters;
    pub(crate) use super::travel::players::{log_in, log_out};
}

use crate::simulation::RegionTemplate;
use crate::storage::WorldStore;
use crate::work::FileError;
use bevy::app::AppLabel;
use bevy::ecs::schedule::{ScheduleLabel, SingleThreadedExecutor};
use bevy::prelude::*;
use std::sync::Arc;

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
    /// Hands loaded columns, letters and entities to the region that owns the place now.
    Deliver,
    /// Starts due regions, earliest deadline first, and saves.
    Dispatch,
    /// Puts what changed where the main world takes it.
    Publish,
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
    let arenas = arenas::ArenaBook::open(folder.as_deref(), config.snapshots.arena_side)?;
    let records = folder.map(snapshots::RestoreRecords::open).transpose()?;
    let (threads, inbound, link) = threads::Threads::start(&config, template, store.clone())?;
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
        .insert_resource(inbound)
        .init_resource::<dimension::Dimensions>()
        .init_resource::<clocks::clock::Clock>()
        .init_resource::<clocks::coupling::Couplings>()
        .init_resource::<travel::players::Players>()
        .init_resource::<travel::letters::Directory>()
        .insert_resource(travel::letter_limits::LetterBacklog::new(config.letters))
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
            (clocks::clock::advance_clocks, collect::collect, exchange::do_work, travel::players::tend_players)
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
