//! The coordinator: a world of its own between the main world and the region worlds.
//!
//! It owns the regionizers, the [`DistanceGraph`](crate::generation::DistanceGraph)s, the deadlines and the pending
//! save. Every change of a region's state happens here, in a fixed order, so the state machine needs no lock. It runs
//! on its own thread, woken by messages and deadlines, or inline in [`TickMode::Lockstep`].
//!
//! One pass runs the [`CoordinatorSystems`] in order: collect, stream, deliver, dispatch and publish. The parameters of each
//! system show the data that it reads and changes.
//!
//! The rooms stand on each other: a room knows only those of lower floors. docs/architecture.md draws them, and
//! `xtask::architecture` keeps them so.

pub mod answers;
pub mod arenas;
pub mod clock;
pub mod closing;
pub mod collect;
pub mod columns;
pub mod demand;
pub mod dimension;
pub mod far_view;
pub mod figures;
pub mod handle;
pub mod jobs;
pub mod mail;
pub mod messages;
pub mod passes;
pub mod plots;
pub mod publish;
pub mod regions;
pub mod saves;
pub mod schedule;
pub mod servers;
pub mod snapshots;
pub mod stream;
pub mod surroundings;
#[cfg(test)]
mod tests;
pub mod threads;
pub mod tiers;

pub(crate) use dimension::MAX_WHOLE_HEIGHT;
pub use handle::{CoordinatorApp, CoordinatorHandle, CoordinatorMain, CoordinatorSystems};
pub use messages::settings::TerranePlugin;
pub use threads::exchange::MainLink;

use crate::coordinator::passes::letters::sort_letters;
use crate::simulation::RegionTemplate;
use crate::storage::WorldStore;
use crate::work::FileError;
use bevy::ecs::schedule::{ScheduleLabel, SingleThreadedExecutor};
use bevy::prelude::*;
use messages::arenas::ArenaError;
use messages::settings::Settings;
use std::io;
use std::sync::Arc;

/// Makes the coordinator's app. It is idle until it is started or updated.
///
/// # Errors
/// A thread could not be started, or the list of arenas or of interrupted restores cannot be read.
pub fn coordinator_app<E: From<io::Error> + From<FileError>>(
    plugin: &TerranePlugin,
    mut template: RegionTemplate,
    store: Arc<WorldStore>,
) -> Result<(SubApp, MainLink), E> {
    let config = Settings::new(plugin);
    store.set_promotes_on_load(config.tiers.promotes_on_load);
    let folder = match store.incarnation() {
        // Snapshots are files of one machine.
        Some(_) => Err(ArenaError::Shared),
        None => config.snapshots.folder_in(&store).ok_or(ArenaError::NoFolder),
    };
    let arenas = arenas::ArenaBook::open(folder.clone(), config.snapshots.arena_side)?;
    let records = folder.ok().map(snapshots::RestoreRecords::open).transpose()?;
    let (notifier, inbound) = threads::exchange::channel();
    let link = MainLink::new(notifier.clone());
    // Systems of regions can begin jobs.
    let jobs = link.jobs();
    template.plugins.push(Arc::new(move |region| {
        region.insert_resource(jobs.clone());
    }));
    let messages = template.messages.clone();
    let (server, session) = (store.incarnation().map(|server| server.number()), store.session());
    let servers = servers::Servers::new(&store);
    let (threads, columns) = threads::Threads::start(&config, template, store.clone(), notifier)?;
    let jobs = jobs::JobBook::open(link.jobs(), records, &store);
    let limit = demand::pacing::InFlightLimit::new(config.pacing, config.tick_mode.is_lockstep(), link.frames.clone());
    let mut app = SubApp::new();
    app.update_schedule = Some(CoordinatorMain.intern());
    app.insert_resource(config.clone())
        .insert_resource(threads)
        .insert_resource(stream::orders::Orders::new(columns, limit))
        .insert_resource(inbound)
        .init_resource::<dimension::DimensionBook>()
        .init_resource::<clock::Clock>()
        .init_resource::<schedule::control::Couplings>()
        .insert_resource(servers::players::Players::new(server.is_some()))
        .init_resource::<mail::directory::Directory>()
        .insert_resource(mail::queue::MailQueue::new(config.limits.letters, messages, server.is_some()))
        .init_resource::<schedule::deadlines::Deadlines>()
        .insert_resource(saves::Saves::new(&config, server, session))
        .init_resource::<tiers::Tiers>()
        .insert_resource(jobs)
        .init_resource::<snapshots::transfer::columns::ColumnAnswers>()
        .init_resource::<snapshots::transfer::phase::Answers>()
        .init_resource::<far_view::FarAnswers>()
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
                passes::dispatch::advance_clocks,
                collect::collect,
                threads::exchange::do_work,
                collect::tasks::finish_tasks,
                sort_letters,
                servers::players::tend_players,
                servers::players::read_players,
                servers::tend,
                servers::send_astray,
                sort_letters,
            )
                .chain()
                .in_set(CoordinatorSystems::Collect),
            (
                stream::leave_to_store,
                stream::orders::recall,
                stream::renew,
                stream::nearest::order_nearest,
                stream::evict_unneeded,
                collect::region_events::tell_region_events,
                jobs::work_on_jobs,
                arenas::tend_arenas,
                sort_letters,
            )
                .chain()
                .in_set(CoordinatorSystems::Stream),
            (stream::deliver::deliver, collect::region_events::tell_region_events)
                .chain()
                .in_set(CoordinatorSystems::Deliver),
            (
                collect::fault::watch,
                passes::save::begin_save,
                closing::close::close,
                servers::leave_plots,
                closing::opening::open_waiting,
                // In lockstep, a region that gives up ground does not miss the tick of this update.
                passes::dispatch::finish_lockstep,
                passes::dispatch::tend_idle,
                passes::dispatch::dispatch,
                passes::dispatch::finish_lockstep,
                sort_letters,
                passes::save::commit,
                tiers::tend_tiers,
                closing::backup::look_for_requests,
            )
                .chain()
                .in_set(CoordinatorSystems::Dispatch),
            (passes::publish::take_statistics, passes::publish::publish).chain().in_set(CoordinatorSystems::Publish),
        ),
    );
}
