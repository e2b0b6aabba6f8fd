//! Closes dimensions while the app runs: everything in them is saved, then they are removed from memory.

use crate::coordinator::dimension::{Closing, DimensionBook, OpenDimension, Unopened};
use crate::coordinator::jobs::JobBook;
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::dimensions::DimensionError;
use crate::coordinator::messages::events::{DimensionClosed, DimensionRemoved};
use crate::coordinator::messages::faults::WorkError;
use crate::coordinator::messages::why::Ticket;
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::coordinator::schedule::deadlines::Deadlines;
use crate::coordinator::servers::leaving::return_stored;
use crate::coordinator::servers::tend::Servers;
use crate::coordinator::threads::Threads;
use crate::coordinator::threads::beside::hand_to;
use crate::simulation::{Task, Undeliverable};
use crate::space::{ColumnPos, DimensionId};
use crate::storage::WorldStore;
use bevy::prelude::*;
use std::collections::BTreeSet;
use std::mem;
use std::time::{Duration, Instant};

/// The time between two log lines about a removal.
const REMOVAL_REPORT: Duration = Duration::from_secs(5);

/// Erases the stored data of a dimension that is not open, in the background. An event reports the end. If the app ends
/// before, the removal continues after a restart.
pub fn remove_stored(entity: Entity, name: String, dimensions: &mut DimensionBook, threads: &mut Threads) {
    if !dimensions.removing.insert(name.clone()) {
        return;
    }
    let (ending, wanted) = (threads.ending.clone(), name.clone());
    let remove = move |store: &WorldStore, _: &_| {
        let mut told = Instant::now();
        let removed = store.remove_dimension(&wanted, |progress| {
            if told.elapsed() >= REMOVAL_REPORT {
                told = Instant::now();
                info!("removing dimension {wanted:?}: {} entries so far", progress.done);
            }
            ending.go_on()
        });
        removed.map_err(WorkError::from)
    };
    threads.ask(Some("terrane removal"), remove, move |world, removed| {
        let (entries, error) = match removed.flatten() {
            Ok(Some(entries)) => (entries, None),
            // The rest is removed when a dimension of this name is requested again.
            Ok(None) => return,
            Err(error) => (0, Some(error)),
        };
        hand_to(world, end_removal, DimensionRemoved { entity, name, entries, error });
    });
}

/// Closes the dimension of this entity, and removes its stored data if requested. Nothing new begins in the dimension; its
/// regions hand out their contents when they end their ticks.
pub(crate) fn close_dimension(
    In((entity, remove)): In<(Entity, bool)>,
    mut dimensions: ResMut<DimensionBook>,
    threads: Res<Threads>,
    mut saves: ResMut<Saves>,
    mut post: ResMut<MailQueue>,
) {
    // The dimension may still be waiting to be opened.
    let is_it = |waiting: &mut Unopened| waiting.spec.entity == entity && !waiting.is_removed;
    let waiting: Vec<_> = dimensions.unopened.extract_if(.., is_it).collect();
    for waiting in waiting {
        dimensions.stop_rebuild(&waiting.spec.name, remove);
        if remove {
            dimensions.remove_unopened(waiting, &threads.store, &mut saves);
        }
    }
    // The entity may have had another dimension before, which is still closing.
    let its = dimensions.open.values_mut().filter(|open| open.spec.entity == entity);
    let Some(dimension) = its.min_by_key(|open| open.is_closing()) else { return };
    if let Some(closing) = &mut dimension.closing {
        closing.remove |= remove;
        return;
    }
    dimension.closing = Some(Closing { remove, until: None });
    let tickets: Vec<Ticket> = dimension.demand.viewers.keys().copied().collect();
    tickets.into_iter().for_each(|ticket| dimension.release(ticket));
    // Unreadable columns are not waited for: they stay in the store unchanged.
    dimension.columns.end_failures();
    dimension.return_letters(&mut post);
}

/// Removes the closing dimensions that are empty.
pub fn close(
    mut dimensions: ResMut<DimensionBook>,
    mut deadlines: ResMut<Deadlines>,
    mut saves: ResMut<Saves>,
    mut directory: ResMut<Directory>,
    mut post: ResMut<MailQueue>,
    mut threads: ResMut<Threads>,
    mut jobs: ResMut<JobBook>,
    mut servers: Option<ResMut<Servers>>,
    mut publisher: ResMut<Publisher>,
) {
    let mut closed = Vec::new();
    for dimension in dimensions.open.values_mut().filter(|open| open.is_closing()) {
        let (saves, directory) = (&mut *saves, &mut *directory);
        dimension.empty_regions(|_| true, || Task::Close, &mut deadlines, saves, directory, &mut post, &mut publisher);
        for letter in dimension.mail.transit.take_letters_of_servers() {
            post.give_back(letter, Undeliverable::DimensionNotOpen(dimension.id));
        }
        if dimension.is_empty(&deadlines, saves) {
            closed.push(dimension.id);
        }
    }
    // In a world that this process has alone, messages stay in the store until they have arrived.
    let is_waiting = |open: &OpenDimension| open.is_closing() && !saves.received.plots(open.id).is_empty();
    let waiting: BTreeSet<DimensionId> = match saves.server {
        Some(_) => dimensions.open.values().filter(|open| is_waiting(open)).map(|open| open.id).collect(),
        None => BTreeSet::new(),
    };
    if !waiting.is_empty() {
        return_stored(&mut dimensions, |crossing| waiting.contains(&crossing.plot.0), &mut post);
    }
    deadlines.hand_over(&threads);
    for id in closed {
        let Some(mut dimension) = dimensions.open.remove(&id) else { continue };
        dimension.note_region_events(&mut deadlines, &mut saves, &directory, &mut publisher);
        dimension.return_letters(&mut post);
        let remove = dimension.closing.is_some_and(|closing| closing.remove);
        if let (Some(servers), Some(plots)) = (&mut servers, &dimension.plots) {
            servers.to_release.extend(plots.own().map(|plot| (id, plot)));
        }
        if !remove {
            // It may not have been saved since its clock went on.
            dimension.save_clock(&mut saves.pending);
        }
        if remove && servers.is_none() {
            dimensions.removed.insert(id);
            jobs.end_jobs_of(id, &mut dimensions, &mut saves, &mut publisher);
        }
        let (entity, name) = (dimension.spec.entity, dimension.spec.name.clone());
        for traveller in dimension.mail.transit.take_all() {
            let reason = |_| Undeliverable::DimensionNotOpen(id);
            publisher.mirrors(post.drop_traveller(traveller, reason, &mut directory));
        }
        directory.forget_dimension(id);
        for region in dimension.regions.regionizer.regions() {
            saves.gone(id, region);
        }
        publisher.event(DimensionClosed { entity, dimension: id, name: name.clone() });
        if remove {
            remove_stored(entity, name, &mut dimensions, &mut threads);
        }
    }
}

impl DimensionBook {
    /// Removes a dimension that waits to be opened: the data stored under its name at the time when it would open is erased.
    fn remove_unopened(&mut self, waiting: Unopened, store: &WorldStore, saves: &mut Saves) {
        let name = &waiting.spec.name;
        let closing = self.open.values_mut().find(|open| open.spec.name == *name);
        if let Some(closing) = closing.and_then(|open| open.closing.as_mut()) {
            closing.remove = true;
        }
        // Entities that go there from now on are removed with it, and those that went before are stored and erased.
        let stored = store.dimensions().unwrap_or_default();
        self.removed.extend(stored.iter().find(|stored| stored.name == *name).map(|stored| stored.id));
        saves.request_commit();
        // It comes before others of its name, which open when everything is gone.
        self.unopened.insert(0, Unopened { until: saves.stored_with(), is_removed: true, ..waiting });
    }
}

/// Handles the end of a removal, successful or not.
fn end_removal(
    In(removed): In<DimensionRemoved>,
    mut dimensions: ResMut<DimensionBook>,
    mut publisher: ResMut<Publisher>,
) {
    let DimensionRemoved { name, error, .. } = &removed;
    dimensions.removing.remove(name);
    if let Some(error) = error {
        error!("dimension {name:?} could not be removed: {error}");
    }
    let is_same = |waiting: &mut Unopened| waiting.is_removed && waiting.spec.name == *name;
    for waiting in dimensions.unopened.extract_if(.., is_same) {
        publisher.event(DimensionRemoved { entity: waiting.spec.entity, ..removed.clone() });
    }
    if let Some(source) = error.clone() {
        dimensions.fail_waiting(name, &DimensionError::NotRemoved { name: name.clone(), source }, &mut publisher);
    }
    publisher.event(removed);
}

impl OpenDimension {
    /// Returns letters that wait for columns of a closing dimension.
    fn return_letters(&mut self, post: &mut MailQueue) {
        let mut letters: Vec<_> = mem::take(&mut self.mail.letters).into_values().flatten().collect();
        letters.append(&mut self.mail.recalled);
        for letter in letters {
            post.give_back(letter, Undeliverable::DimensionNotOpen(self.id));
        }
    }

    /// Makes each region hand out everything and evict those of its columns that are to go.
    pub fn empty_regions(
        &mut self,
        is_to_go: impl Fn(ColumnPos) -> bool,
        task: impl Fn() -> Task,
        deadlines: &mut Deadlines,
        saves: &mut Saves,
        directory: &mut Directory,
        post: &mut MailQueue,
        publisher: &mut Publisher,
    ) {
        for region in self.regions.regionizer.regions() {
            if self.regions.regionizer.data(region).is_none() {
                continue;
            }
            let mut columns = self.columns_of(region);
            columns.retain(|column| is_to_go(*column));
            let (lost, mut columns): (Vec<_>, Vec<_>) =
                columns.into_iter().partition(|column| self.has_halted(*column));
            // Columns that are being read again, or that miss data in flight, leave when they are complete.
            columns.retain(|column| self.is_whole(*column));
            for column in lost {
                self.release_halted(region, column, saves, directory, post, publisher);
            }
            if !columns.is_empty() {
                columns.iter().for_each(|column| self.columns.leave(*column));
                self.inbox(region).evict = columns;
                deadlines.begin_idle(self, region, task(), saves);
            }
        }
    }

    /// Returns `true` if nothing is left in memory and everything is stored.
    fn is_empty(&mut self, deadlines: &Deadlines, saves: &mut Saves) -> bool {
        // In a world that this process has alone, those stay in the store until they have arrived.
        let has_messages = saves.server.is_some() && !saves.received.plots(self.id).is_empty();
        if has_messages || !self.columns.is_empty() || deadlines.running.keys().any(|(of, _)| *of == self.id) {
            return false;
        }
        let Some(closing) = &mut self.closing else { return false };
        let until = *closing.until.get_or_insert_with(|| saves.stored_with());
        if !saves.is_stored(until) {
            saves.request_commit();
        }
        saves.is_stored(until)
    }
}
