//! The coordinator: a world of its own between the main world and the region worlds.
//!
//! It owns the regionizers, the [`DistanceGraph`](crate::generation::DistanceGraph)s, the deadlines and the pending
//! save. Every change of a region's state happens here, in a fixed order, so the state machine needs no lock. It runs
//! on its own thread, woken by messages and deadlines, or inline in [`TickMode::Lockstep`].
//!
//! One pass runs the [`CoordinatorSystems`] in order: `collect`, `stream`, `deliver`, `dispatch` and `publish`. Other
//! systems run in the same sets. The parameters of each system show the data that it reads and changes.

mod answers;
mod arenas;
mod clocks;
mod collect;
mod complaints;
mod config;
mod deadlines;
mod deliver;
mod dimension;
mod dispatch;
mod events;
mod exchange;
mod far_view;
mod fault;
mod handle;
mod jobs;
mod publish;
mod published;
mod region_slot;
mod saving;
mod servers;
mod sharing;
mod snapshots;
mod statistics;
mod stream;
mod streaming;
mod surroundings;
mod tally;
#[cfg(test)]
mod tests;
mod threads;
mod travel;

pub(crate) use crate::simulation::BlockEdit;
pub use crate::simulation::SetBlock;
pub use answers::question::{AskChunks, AskError, AskOpacity, ChunkState};
pub use arenas::{Arena, ArenaError, ArenaOrder, ArenaSettings, ArenaState, ArenaStatus};
pub use clocks::clock::DimensionClock;
pub use clocks::coupling::Coupling;
pub use clocks::orders::{ControlError, ControlRegion, RegionOrder, StepDimension};
pub use config::{
    Backlog, FaultSettings, Limits, RegionFaults, SaveDurability, SaveSettings, TerranePlugin, ThreadSettings, TickMode,
};
pub(crate) use dimension::MAX_WHOLE_HEIGHT;
pub use dimension::{DimensionError, DimensionSpec};
pub use events::{
    ArenaCreated, ArenaRefused, ArenaRemoved, ArenaReverted, BackupFailed, BlockRefused, ChunksAnswer, ColumnFailed,
    ControlRefused, DimensionClosed, DimensionFailed, DimensionOpened, DimensionRemoved, GroundRegenerated, LetterLost,
    LogInRefused, OpacityAnswer, PlayerLoggedIn, PlayerLoggedOut, PlayerMoved, RegionCreated, RegionDestroyed,
    RegionHalted, RegionHung, RegionMerged, RegionRestarted, RegionSplit, SaveFailed, ServerDrained, ServerEnded,
    StepRefused, WorldBackedUp, WorldEvent, WorldSaved,
};
pub use exchange::MainLink;
pub(crate) use far_view::Target;
pub use far_view::{FarNews, FarView};
pub use fault::region_fault::RegionFault;
pub use handle::CoordinatorHandle;
pub use jobs::Jobs;
pub use jobs::job::{Job, JobId, JobKind, JobOrder, JobProgress, JobState, JobStatus, Pregeneration};
pub use published::{ColumnUpdate, DecidedEdit, Published};
pub use saving::request::{BackupWorld, SaveError, SaveWorld};
pub use servers::{DrainServer, ServerStatistics};
pub use snapshots::{
    AfterCrash, CaptureSnapshot, ColumnOutcome, ColumnResult, EntityRestore, JobError, JobOutcome, RestoreSnapshot,
    SnapshotConfig, SnapshotSource, StoreSnapshot,
};
pub use statistics::history::{TickWindow, TimeWindow};
pub use statistics::{DimensionStatistics, RegionStatistics, TierStatistics, WorldStatistics};
pub use streaming::failed_columns::FailedColumn;
pub use streaming::generation_control::{DimensionGeneration, RetryColumns};
pub use streaming::pacing::Pacing;
pub use streaming::viewer_limits::ViewerLimits;
pub use threads::WorkError;
pub use travel::letter_limits::LetterLimits;
pub use travel::log_in::{LogIn, LogInError, LogOut};

/// Systems that answer requests of the main world: see [`MainLink::request`].
pub(crate) mod requests {
    pub(crate) use super::answers::chunk_states::ask_chunks;
    pub(crate) use super::answers::opacity::ask_opacity;
    pub(crate) use super::clocks::control::{control_region, set_clock, set_time_of_day, step_dimension};
    pub(crate) use super::clocks::coupling::couple;
    pub(crate) use super::collect::requests::{edit_blocks, move_viewers};
    pub(crate) use super::dimension::opening::open_dimension;
    pub(crate) use super::saving::backup::{back_up_world, save_world};
    pub(crate) use super::saving::close::close_dimension;
    pub(crate) use super::servers::drain_server;
    pub(crate) use super::streaming::generation_requests::{retry_columns, set_generation, set_pacing};
    pub(crate) use super::travel::letters::post_letters;
    pub(crate) use super::travel::players::{log_in, log_out};
}

use crate::simulation::RegionTemplate;
use crate::storage::WorldStore;
use crate::work::FileError;
use bevy::app::AppLabel;
use bevy::ecs::schedule::{ScheduleLabel, SingleThreadedExecutor};
use bevy::prelude::*;
use std::io;
use std::sync::Arc;
use travel::letters::sort_letters;

/// The label of the coordinator's `SubApp`. The app has it from `TerranePlugin`'s `finish` to its `cleanup`, so that later
/// plugins can add systems to it in their own `finish`.
#[derive(AppLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoordinatorApp;

/// The schedule of one pass of the coordinator.
#[derive(ScheduleLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoordinatorMain;

/// The parts of one pass of the coordinator in [`CoordinatorMain`], in this order.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoordinatorSystems {
    /// Takes finished ticks and requests, ends ticks in the regionizer, routes the outboxes of regions.
    Collect,
    /// Orders the nearest missing ground of viewers, then that of pre-generations; finds ground that is no longer needed.
    Stream,
    /// Hands loaded columns, letters and entities to the region that now owns the place.
    Deliver,
    /// Starts due regions, earliest deadline first, and saves.
    Dispatch,
    /// Publishes changes for the main world.
    Publish,
}

/// The number of updates after which a column ordered in lockstep is delivered, however long it took.
const LOCKSTEP_LATENCY: u64 = 4;

/// Makes the coordinator's app. It is idle until it is started or updated.
///
/// # Errors
/// A thread could not be started, or the list of arenas or of interrupted restores cannot be read.
pub fn coordinator_app<E: From<io::Error> + From<FileError>>(
    plugin: &TerranePlugin,
    mut template: RegionTemplate,
    store: Arc<WorldStore>,
) -> Result<(SubApp, MainLink), E> {
    let config = config::Settings::new(plugin, store.incarnation().is_some());
    store.set_promotes_on_load(config.tiers.promotes_on_load);
    let folder = match store.incarnation() {
        // Snapshots are files of one machine.
        Some(_) => Err(ArenaError::Shared),
        None => config.snapshots.folder_in(&store).ok_or(ArenaError::NoFolder),
    };
    let arenas = arenas::ArenaBook::open(folder.clone(), config.snapshots.arena_side)?;
    let records = folder.ok().map(snapshots::RestoreRecords::open).transpose()?;
    let (notifier, inbound) = exchange::channel();
    let link = MainLink::new(notifier.clone());
    // Systems of regions can begin jobs.
    let jobs = link.jobs();
    template.plugins.push(Arc::new(move |region| {
        region.insert_resource(jobs.clone());
    }));
    let messages = template.messages.clone();
    let (server, servers) = (store.incarnation().map(|server| server.number()), servers::Servers::new(&store));
    let (threads, columns) = threads::Threads::start(&config, template, store.clone(), notifier)?;
    let jobs = jobs::JobBook::open(link.jobs(), records, &store);
    let limit =
        streaming::pacing::InFlightLimit::new(config.pacing, config.tick_mode.is_lockstep(), link.frames.clone());
    let mut app = SubApp::new();
    app.update_schedule = Some(CoordinatorMain.intern());
    app.insert_resource(config.clone())
        .insert_resource(threads)
        .insert_resource(streaming::orders::Orders::new(columns, limit))
        .insert_resource(inbound)
        .init_resource::<dimension::Dimensions>()
        .init_resource::<clocks::clock::Clock>()
        .init_resource::<clocks::coupling::Couplings>()
        .insert_resource(travel::players::Players::new(server.is_some()))
        .init_resource::<travel::letters::Directory>()
        .insert_resource(travel::letters::Post::new(config.limits.letters, messages, server.is_some()))
        .init_resource::<deadlines::Deadlines>()
        .insert_resource(saving::save::Saves::new(&config, server))
        .init_resource::<saving::tiers::Tiers>()
        .insert_resource(jobs)
        .init_resource::<snapshots::transfer::phase::Answers>()
        .insert_resource(arenas)
        .insert_resource(publish::Publisher::new(link.published.clone()));
    if let Some(servers) = servers {
        app.insert_resource(servers);
    }
    order_sets(&mut app);
    add_systems(&mut app);
    Ok((app, link))
}

/// Runs the sets in order, on one thread.
fn order_sets(app: &mut SubApp) {
    let sets = (
        CoordinatorSystems::Collect,
        CoordinatorSystems::Stream,
        CoordinatorSystems::Deliver,
        CoordinatorSystems::Dispatch,
        CoordinatorSystems::Publish,
    );
    app.configure_sets(CoordinatorMain, sets.chain());
    app.edit_schedule(CoordinatorMain, |schedule| {
        schedule.set_executor(SingleThreadedExecutor::new());
    });
}

/// Adds the systems of one pass. The systems within a set run in this order too.
fn add_systems(app: &mut SubApp) {
    app.add_systems(
        CoordinatorMain,
        (
            (
                clocks::advance::advance_clocks,
                collect::collect,
                exchange::do_work,
                collect::tasks::finish_tasks,
                sort_letters,
                travel::players::tend_players,
                travel::players::read_players,
                servers::tend,
                servers::send_astray,
                sort_letters,
            )
                .chain()
                .in_set(CoordinatorSystems::Collect),
            (
                stream::leave_to_store,
                streaming::orders::recall,
                stream::renew,
                streaming::nearest::order_nearest,
                stream::evict_unneeded,
                collect::region_events::tell_region_events,
                jobs::work_on_jobs,
                arenas::tend_arenas,
                sort_letters,
            )
                .chain()
                .in_set(CoordinatorSystems::Stream),
            (deliver::deliver, collect::region_events::tell_region_events).chain().in_set(CoordinatorSystems::Deliver),
            (
                fault::watch,
                saving::save::begin_save,
                saving::close::close,
                servers::leave_plots,
                dimension::opening::open_waiting,
                sharing::share_worlds,
                // In lockstep, regions that leave a shared world do not miss the tick of this update.
                dispatch::finish_lockstep,
                dispatch::tend_idle,
                dispatch::dispatch,
                dispatch::finish_lockstep,
                sort_letters,
                saving::save::commit,
                saving::tiers::tend_tiers,
                saving::backup::look_for_requests,
            )
                .chain()
                .in_set(CoordinatorSystems::Dispatch),
            (statistics::take::take_statistics, complaints::publish).chain().in_set(CoordinatorSystems::Publish),
        ),
    );
}
