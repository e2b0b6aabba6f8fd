//! Closes dimensions while the app runs: everything of them is saved, then they are gone from memory.

use crate::coordinator::DimensionError;
use crate::coordinator::desk::Desk;
use crate::coordinator::dimension::{Closing, DimensionSpec, Dimensions};
use crate::coordinator::events::{DimensionClosed, DimensionRemoved};
use crate::coordinator::streaming::holders::Holder;
use crate::coordinator::threads::{Place, WorkError};
use crate::simulation::{Task, Undeliverable};
use crate::space::DimensionId;
use crate::storage::WorldStore;
use bevy::prelude::*;
use std::mem;
use std::time::{Duration, Instant};

/// The time between two lines in the log about a removal.
const REMOVAL_REPORT: Duration = Duration::from_secs(5);

pub fn close(mut desk: Desk) {
    for removed in mem::take(&mut desk.dimensions.ended_removals) {
        desk.dimensions.removing.remove(&removed.name);
        desk.end_removal(removed);
    }
    let saves = &desk.saves;
    let stored: Vec<_> = desk.dimensions.late.extract_if(.., |(_, until)| saves.is_stored(*until)).collect();
    stored.into_iter().for_each(|(spec, _)| desk.open_dimension(spec));
    let closing: Vec<_> =
        desk.dimensions.open.iter().filter(|(_, open)| open.is_closing()).map(|(id, _)| *id).collect();
    for id in closing {
        desk.empty_regions(id);
        desk.finish_closing(id);
    }
}

/// Closes the dimension of this entity, and removes what is stored of it if that is asked for too.
pub(crate) fn close_dimension(In((entity, remove)): In<(Entity, bool)>, mut desk: Desk) {
    desk.close_dimension(entity, remove);
}

impl Desk<'_> {
    /// Nothing new begins in the dimension; what it holds is handed out as its regions end their ticks.
    pub fn close_dimension(&mut self, entity: Entity, remove: bool) {
        // It may be one that still waits until another of its name is gone.
        let mut waiting: Vec<_> = self.dimensions.reopen.extract_if(.., |spec| spec.entity == entity).collect();
        let late = self.dimensions.late.extract_if(.., |(spec, _)| spec.entity == entity);
        waiting.extend(late.map(|(spec, _)| spec));
        for spec in waiting {
            self.stop_rebuild(&spec.name, remove);
            if remove {
                self.remove_unopened(spec);
            }
        }
        let Some(dimension) = self.dimensions.by_entity(entity) else { return };
        if let Some(closing) = &mut dimension.closing {
            closing.remove |= remove;
            return;
        }
        let id = dimension.id;
        self.save_pregenerations(id);
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        dimension.closing = Some(Closing { remove, until: None });
        let holders: Vec<Holder> = dimension.viewers.keys().copied().collect();
        holders.into_iter().for_each(|holder| dimension.release(holder));
        // What cannot be read is not waited for: it stays in the store as it is.
        dimension.columns.end_failures();
        self.return_letters(id);
    }

    /// What waits for columns of a dimension that closes is not delivered any more.
    fn return_letters(&mut self, id: DimensionId) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let mut letters: Vec<_> = mem::take(&mut dimension.letters).into_values().flatten().collect();
        letters.append(&mut dimension.recalled);
        for letter in letters {
            self.undeliverable(letter, Undeliverable::DimensionNotOpen(id));
        }
    }

    /// What is stored of a dimension that is not open is erased in the background; an event tells when it is done. It goes
    /// on after a restart if the app ends before.
    pub fn remove_dimension(&mut self, entity: Entity, name: String) {
        if !self.dimensions.removing.insert(name.clone()) {
            return;
        }
        let (ending, wanted) = (self.threads.ending(), name.clone());
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
        self.threads.ask(Place::Beside("terrane removal"), remove, move |world, removed| {
            let (entries, error) = match removed.flatten() {
                Ok(removed) if removed.finished => (removed.entries, None),
                // The rest is removed when a dimension of this name is asked for again.
                Ok(_) => return,
                Err(error) => (0, Some(error)),
            };
            let removed = DimensionRemoved { entity, name, entries, error };
            world.resource_mut::<Dimensions>().ended_removals.push(removed);
        });
    }

    /// What waits for its name is to be erased: that is what is stored under this name when it would be opened.
    fn remove_unopened(&mut self, spec: DimensionSpec) {
        let closing = self.dimensions.open.values_mut().find(|open| open.spec.name == spec.name);
        if let Some(closing) = closing.and_then(|open| open.closing.as_mut()) {
            closing.remove = true;
        }
        self.dimensions.unopened.push(spec);
    }

    fn end_removal(&mut self, removed: DimensionRemoved) {
        let DimensionRemoved { name, error, .. } = &removed;
        if let Some(error) = error {
            error!("dimension {name:?} could not be removed: {error}");
        }
        for spec in self.dimensions.unopened.extract_if(.., |spec| spec.name == *name) {
            self.publisher.event(DimensionRemoved { entity: spec.entity, ..removed.clone() });
        }
        if let Some(source) = error.clone() {
            self.fail_waiting(name, &DimensionError::NotRemoved { name: name.clone(), source });
        }
        let name = name.clone();
        self.publisher.event(removed);
        self.reopen(&name);
    }

    /// Opens the dimensions that waited for their name.
    pub fn reopen(&mut self, name: &str) {
        let reopen: Vec<_> = self.dimensions.reopen.extract_if(.., |spec| spec.name == name).collect();
        reopen.into_iter().for_each(|spec| self.open_dimension(spec));
    }

    /// The dimensions that waited for this name are not opened. It would fail again and again: whoever wants it can ask
    /// again.
    pub fn fail_waiting(&mut self, name: &str, error: &DimensionError) {
        let waiting: Vec<_> = self.dimensions.reopen.extract_if(.., |spec| spec.name == name).collect();
        waiting.into_iter().for_each(|spec| self.fail_dimension(spec.entity, error.clone()));
    }

    /// Each region hands out all that it has, and gives up all of its columns.
    fn empty_regions(&mut self, id: DimensionId) {
        let Some(dimension) = self.dimensions.open.get(&id) else { return };
        for region in dimension.regionizer.regions() {
            let columns = self.columns_of(id, region);
            let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
            if dimension.regionizer.data(region).is_none() {
                continue;
            }
            let (lost, columns): (Vec<_>, Vec<_>) =
                columns.into_iter().partition(|column| dimension.has_halted(*column));
            // Those that are read again, or that lack what is on its way to them, go when that is there.
            let columns: Vec<_> = columns.into_iter().filter(|column| dimension.is_whole(*column)).collect();
            for column in lost {
                self.let_go_halted(id, region, column);
            }
            let Some(dimension) = self.dimensions.open.get_mut(&id).filter(|_| !columns.is_empty()) else { continue };
            columns.iter().for_each(|column| dimension.columns.leave(*column));
            dimension.inbox(region).give_up = columns;
            if let Some(task) = self.begin_idle_task(id, region, Task::Close) {
                self.threads.regions.run([task]);
            }
        }
    }

    /// When nothing is left in memory and all of it is stored, the dimension is closed.
    fn finish_closing(&mut self, id: DimensionId) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let is_away = self.deadlines.running.range((id, crate::region::RegionId::new(0))..).next();
        if is_away.is_some_and(|((of, _), _)| *of == id) || !dimension.columns.is_empty() {
            return;
        }
        let Some(closing) = &mut dimension.closing else { return };
        let until = *closing.until.get_or_insert_with(|| self.saves.stored_with());
        if !self.saves.is_stored(until) {
            self.saves.request_commit();
            return;
        }
        let remove = closing.remove;
        self.return_letters(id);
        let Some(mut dimension) = self.dimensions.open.remove(&id) else { return };
        if remove {
            self.dimensions.removed.insert(id);
            self.drop_pregenerations(&mut dimension);
        }
        let (entity, name) = (dimension.spec.entity, dimension.spec.name);
        if self.dimensions.by_entity.get(&entity) == Some(&id) {
            self.dimensions.by_entity.remove(&entity);
        }
        for traveller in dimension.transit.take_all() {
            self.drop_traveller(traveller, |_| Undeliverable::DimensionNotOpen(id));
        }
        self.directory.forget_dimension(id);
        for region in dimension.regionizer.regions() {
            self.saves.gone(id, region);
        }
        self.publisher.event(DimensionClosed { entity, dimension: id, name: name.clone() });
        match remove {
            true => self.remove_dimension(entity, name),
            false => self.reopen(&name),
        }
    }
}
