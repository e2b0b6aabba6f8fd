//! Finds the nearest ground that viewers miss and orders it; finds what nobody needs any more.

use super::desk::Desk;
use super::dimension::Dimension;
use super::dimension::column_state::{ColumnState, Rest};
use super::streaming::holders::Holder;
use super::streaming::order_queue::Urgency;
use super::threads::{ColumnOrder, Source};
use crate::simulation::{Undeliverable, Viewer, ViewerRadii};
use crate::space::{BatchPos, ColumnPos, DimensionId, HeightSet};
use crate::storage::EntityRecord;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::mem;

pub fn stream(mut desk: Desk) {
    let ids: Vec<_> = desk.dimensions.open.keys().copied().collect();
    desk.limit.update(desk.clock.now, desk.totals.in_flight);
    let places = desk.config.letters.places;
    for id in &ids {
        if let Some(dimension) = desk.dimensions.open.get_mut(id) {
            // Letters that wait in a dimension that closes come back.
            if !dimension.is_closing() {
                dimension.hold_for_letters(places);
            }
            dimension.refill_caps();
        }
        desk.leave_to_store(*id);
        desk.recall(*id);
        desk.retry_failed(*id);
        if let Some(dimension) = desk.dimensions.open.get_mut(id) {
            dimension.retry_generation();
        }
        desk.reload(*id);
        desk.revise_heights(*id);
    }
    if !desk.saves.is_behind() {
        desk.order_nearest(&ids);
    }
    ids.iter().for_each(|id| desk.ask_to_give_up(*id));
}

impl Desk<'_> {
    fn retry_failed(&mut self, id: DimensionId) {
        let now = self.clock.now;
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        dimension.forget_unwanted_failures();
        let (columns, rests) = dimension.columns.retry(now);
        columns.into_iter().for_each(|column| dimension.make_missing(column));
        rests.into_iter().for_each(|column| self.order(id, column.batch(), vec![column]));
    }

    /// Reads the columns of a halted region again that a live one took over.
    fn reload(&mut self, id: DimensionId) {
        self.settle_orphans(id);
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let lost = dimension.columns.lost();
        if lost.is_empty() {
            return self.give_up_recalled(id);
        }
        for (column, until) in lost {
            if !self.saves.is_stored(until) {
                continue;
            }
            if let Some(dimension) = self.dimensions.open.get_mut(&id) {
                dimension.columns.read_again(column);
            }
            self.order(id, column.batch(), vec![column]);
        }
    }

    /// A viewer whose region halted holds the ground around it as far as the store knows one; another is no more.
    fn settle_orphans(&mut self, id: DimensionId) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let due: Vec<_> = dimension.orphans.extract_if(.., |(_, until)| self.saves.is_stored(*until)).collect();
        if due.is_empty() {
            return;
        }
        let stored = match self.store.0.viewers(id) {
            Ok(stored) => stored,
            Err(error) => {
                bevy::log::error!("{id}: the ground of viewers that halted stays held until the next save: {error}");
                let until = self.saves.last_stored() + 1;
                return dimension.orphans.extend(due.into_iter().map(|(viewer, _)| (viewer, until)));
            }
        };
        for (viewer, _) in due {
            let found = stored.iter().flat_map(EntityRecord::viewers).find(|(id, ..)| *id == viewer);
            match found.filter(|_| !dimension.is_closing()) {
                Some((_, block, viewer_record)) => {
                    dimension.hold(Holder::Region(viewer), block.chunk(), ViewerRadii::from(viewer_record));
                }
                None => dimension.release(Holder::Region(viewer)),
            }
        }
    }

    /// Who has not come back with the columns that were read again does not come back.
    fn give_up_recalled(&mut self, id: DimensionId) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        if dimension.columns.is_reading_again() {
            return;
        }
        for letter in mem::take(&mut dimension.recalled) {
            let reason = letter.entity().map_or(Undeliverable::DimensionNotOpen(id), Undeliverable::NoSuchEntity);
            self.undeliverable(letter, reason);
        }
    }

    /// Hands columns that are marked as resident to the region of their place: those that it gave up a moment ago as they
    /// are, the others when they are loaded or generated.
    pub fn take_back_or_order(&mut self, id: DimensionId, batch: BatchPos, wanted: Vec<ColumnPos>) {
        let Some(dimension) = self.dimensions.open.get_mut(&id).filter(|_| !wanted.is_empty()) else { return };
        let mut missing = Vec::with_capacity(wanted.len());
        for column in wanted {
            if let Err(error) = dimension.regionizer.add_column(column) {
                // Resident columns and the regionizer's are the same.
                bevy::log::error!("{id}: {error}");
                continue;
            }
            match dimension.departed().get(column) {
                Some(departed) => {
                    let blocks = departed.column.clone();
                    if dimension.deliver(departed) {
                        self.publisher.loaded(id, blocks);
                    }
                }
                None if dimension.columns.want(column) => missing.push(column),
                None => {}
            }
        }
        dimension.tell_owners();
        self.note_region_events(id);
        self.order(id, batch, missing);
    }

    /// Has columns of one batch loaded or generated.
    pub fn order(&mut self, id: DimensionId, batch: BatchPos, columns: Vec<ColumnPos>) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let (stored, new): (Vec<_>, Vec<_>) =
            columns.into_iter().partition(|column| dimension.stored.is_completed(*column));
        let loaded = dimension.by_source(stored, false).into_iter().map(|order| (order, false));
        let generated = dimension.by_source(new, true).into_iter().map(|order| (order, true));
        for ((columns, source), generates) in loaded.chain(generated) {
            // What is read for a region that has the blocks already is not ordered by the nearest viewer.
            let is_urgent = columns.iter().any(|column| dimension.columns.is_urgent(*column));
            let urgency = match columns.first().filter(|_| !is_urgent) {
                Some(first) => Urgency::at(dimension.distance(*first)),
                None => Urgency::AT_ONCE,
            };
            let claim = self.totals.begin_order(dimension, self.clock.pass, columns.len(), generates);
            columns.iter().for_each(|column| dimension.columns.number(*column, claim));
            let home = dimension.home.clone();
            self.threads.order(ColumnOrder { claim, home, batch, columns, source, generates, urgency });
        }
    }

    /// The answer to an order came, or it was taken back.
    pub fn note_answered(&mut self, id: DimensionId, columns: usize, generates: bool) {
        self.totals.in_flight = self.totals.in_flight.saturating_sub(columns);
        if generates {
            self.totals.generating = self.totals.generating.saturating_sub(columns);
        }
        // It may have been opened again meanwhile, and know nothing of it.
        if let Some(dimension) = self.dimensions.open.get_mut(&id) {
            dimension.in_flight = dimension.in_flight.saturating_sub(columns);
        }
    }

    /// Has columns of one batch generated and stored, without loading them. Those that are stored already, or on their way
    /// there, are left out. They wait until everything that viewers want is begun.
    pub fn order_for_store(&mut self, id: DimensionId, batch: BatchPos, columns: Vec<ColumnPos>) {
        let Some(dimension) = self.dimensions.open.get(&id) else { return };
        // Of sparse ground what lies around sea level.
        let heights = dimension.home.ground.window(0, Viewer::DEFAULT_VERTICAL_RADIUS);
        self.order_apart(id, batch, columns, heights, Urgency::WHEN_IDLE);
    }

    /// The same for columns that a viewer is near to.
    pub fn order_nearby_for_store(&mut self, id: DimensionId, batch: BatchPos, columns: Vec<ColumnPos>) {
        let Some(dimension) = self.dimensions.open.get(&id) else { return };
        let Some(first) = columns.first().copied() else { return };
        let (heights, distance) = (dimension.heights_to_generate(first), dimension.distance(first));
        self.order_apart(id, batch, columns, heights, Urgency::at(distance));
    }

    fn order_apart(
        &mut self,
        id: DimensionId,
        batch: BatchPos,
        mut columns: Vec<ColumnPos>,
        heights: HeightSet,
        urgency: Urgency,
    ) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        columns.retain(|column| !dimension.stored.is_completed(*column) && !dimension.columns.is_under_way(*column));
        if columns.is_empty() {
            return;
        }
        let claim = self.totals.begin_order(dimension, self.clock.pass, columns.len(), true);
        columns.iter().for_each(|column| dimension.columns.make(*column, claim));
        let source = match dimension.sparse {
            Some(_) => Source::Parts { heights, may_generate: true },
            None => Source::Generator,
        };
        let home = dimension.home.clone();
        self.threads.order(ColumnOrder { claim, home, batch, columns, source, generates: true, urgency });
    }

    /// Columns for which letters wait in regions that are idle. Given up before the next tick, they would be loaded again
    /// for these letters, over and over.
    fn columns_with_letters(&mut self, id: DimensionId) -> FxHashSet<ColumnPos> {
        let soon = self.soon();
        let mut found = FxHashSet::default();
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return found };
        if dimension.unneeded.is_empty() || !dimension.may_be_idle() {
            return found;
        }
        for region in dimension.regionizer.regions() {
            if self.deadlines.slot(dimension, region).is_some_and(|slot| slot.is_idle(&dimension.time, soon)) {
                let letters = dimension.inbox(region).letters.iter();
                found.extend(letters.filter_map(|letter| Some(letter.column()?.1)));
            }
        }
        found
    }

    /// Columns that nobody holds are to be given up by the regions that own them.
    fn ask_to_give_up(&mut self, id: DimensionId) {
        let lettered = self.columns_with_letters(id);
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let mut later = BTreeSet::new();
        let mut halted = Vec::new();
        for column in mem::take(&mut dimension.unneeded) {
            match dimension.columns.get(column) {
                Some(ColumnState::Owned(Rest::None) | ColumnState::Halted { .. }) if dimension.has_halted(column) => {
                    halted.extend(dimension.regionizer.region_at(column).map(|region| (region, column)));
                }
                Some(ColumnState::Owned(Rest::None)) if !lettered.contains(&column) => {
                    let Some(region) = dimension.regionizer.region_at(column) else { continue };
                    dimension.inbox(region).give_up.push(column);
                    dimension.columns.leave(column);
                }
                // Something of it has not come yet, or letters wait for it.
                Some(
                    ColumnState::Owned(_)
                    | ColumnState::Ordered(_)
                    | ColumnState::Halted { .. }
                    | ColumnState::Lost { .. },
                ) => {
                    later.insert(column);
                }
                Some(ColumnState::ForStore { .. } | ColumnState::Failed(_) | ColumnState::Leaving) | None => {}
            }
        }
        dimension.unneeded = later;
        for (region, column) in halted {
            if !self.let_go_halted(id, region, column)
                && let Some(dimension) = self.dimensions.open.get_mut(&id)
            {
                dimension.unneeded.insert(column);
            }
        }
    }
}

impl Dimension {
    /// The columns of an order by where they come from; in a sparse dimension by what is wanted of each.
    fn by_source(&self, columns: Vec<ColumnPos>, generates: bool) -> Vec<(Vec<ColumnPos>, Source)> {
        if columns.is_empty() {
            return Vec::new();
        }
        if self.sparse.is_none() {
            return vec![(columns, if generates { Source::Generator } else { Source::Store })];
        }
        let may_generate = generates || !self.generation.settings.paused;
        let mut parts: Vec<(HeightSet, Vec<ColumnPos>)> = Vec::new();
        for column in columns {
            let wanted = self.wanted_heights(column);
            match parts.iter_mut().find(|(heights, _)| *heights == wanted) {
                Some((_, columns)) => columns.push(column),
                None => parts.push((wanted, vec![column])),
            }
        }
        let part = |(heights, columns)| (columns, Source::Parts { heights, may_generate });
        parts.into_iter().map(part).collect()
    }
}
