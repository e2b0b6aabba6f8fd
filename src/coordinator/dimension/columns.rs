//! The life of a dimension's columns, and their failures.

use super::OpenDimension;
use crate::coordinator::columns::ColumnState;
use crate::coordinator::publish::Publisher;
use crate::region::RegionId;
use crate::simulation::{Letter, LoadedColumn};
use crate::space::ColumnPos;
use bevy::prelude::*;

impl OpenDimension {
    /// Returns whether the column is in the world of a region that has reported its entities. `None` while the region ticks and
    /// that is unknown.
    pub fn has_reported(&mut self, column: ColumnPos) -> Option<bool> {
        let Some(region) = self.owner(column) else { return Some(false) };
        if self.has_halted(column) {
            return Some(false);
        }
        let inbox = self.regions.regionizer.data_mut(region)?.parked.get().inbox.as_deref();
        Some(inbox.is_none_or(|inbox| inbox.columns.iter().all(|loaded| loaded.column.pos() != column)))
    }

    /// Returns `true` if the complete column is with its region, which may have halted.
    pub fn is_whole(&self, column: ColumnPos) -> bool {
        matches!(
            self.columns.get(column),
            Some(ColumnState::Owned(_) | ColumnState::Leaving | ColumnState::Halted { .. })
        )
    }

    /// The region that has the complete column and keeps it.
    pub fn owner(&self, column: ColumnPos) -> Option<RegionId> {
        let is_owned = self.is_whole(column) && self.columns.get(column) != Some(ColumnState::Leaving);
        self.regions.regionizer.region_at(column).filter(|_| is_owned)
    }

    /// Returns `true` if the column was lost with its region's world, or came for a region without one.
    pub fn has_halted(&mut self, column: ColumnPos) -> bool {
        let is_halted = matches!(self.columns.get(column), Some(ColumnState::Halted { .. }));
        let Some(region) = self.regions.regionizer.region_at(column) else { return false };
        let slot = self.regions.regionizer.data_mut(region);
        slot.is_some_and(|slot| slot.halted.is_some() && (is_halted || slot.parked.get().worlds.is_empty()))
    }

    /// Allows the column to be generated again.
    pub fn release_generation(&mut self, column: ColumnPos) {
        if self.land.stored.release(column) {
            self.demand.viewers.values_mut().for_each(|viewer| viewer.to_generate.reopened(column));
            self.demand.wanting = None;
        }
    }

    /// Forgets failures of columns that lost their tickets, so that a returning viewer does not wait for them.
    pub fn forget_left_failures(&mut self) {
        for column in std::mem::take(&mut self.orders.left_failures) {
            let has_failed = matches!(self.columns.get(column), Some(ColumnState::Failed(_)));
            if has_failed && !self.is_wanted(column) {
                self.reopen(column);
            }
        }
    }

    /// Returns `true` if a ticket needs the column loaded or generated.
    fn is_wanted(&self, column: ColumnPos) -> bool {
        let is_reached = || self.demand.viewers.values().any(|viewer| viewer.reaches(column));
        self.is_held(column) || (!self.land.stored.is_completed(column) && is_reached())
    }

    /// Lets a failed column, or more slabs of one, be tried again. Its failures are forgotten if it is not needed any more.
    pub fn reopen(&mut self, column: ColumnPos) {
        if matches!(self.columns.get(column), Some(ColumnState::Owned(_))) {
            self.orders.revised.insert(column);
            return;
        }
        if !self.is_wanted(column) {
            self.columns.forget(column);
            self.orders.generation.failures.forget(column);
        }
        match self.land.stored.is_completed(column) {
            true => self.make_missing(column),
            false => self.release_generation(column),
        }
    }

    /// Claims the column so that it is generated only once.
    pub fn claim_generation(&mut self, column: ColumnPos) {
        if self.land.stored.is_claimed(column) {
            return;
        }
        let work = self.land.stored.claim(column.batch(), column);
        for other in work.into_iter().flatten().filter(|other| *other != column) {
            self.land.stored.release(other);
        }
    }

    /// Notes that the column is stored without an order of its tickets, so that they can have it loaded.
    pub fn end_waiting(&mut self, column: ColumnPos) {
        if self.land.resident.release(column) {
            self.note_reopened(column);
        }
    }

    /// Notes that the column must be loaded again for its tickets.
    fn note_reopened(&mut self, column: ColumnPos) {
        // Every viewer that has it in range holds it.
        if self.is_held(column) {
            self.demand.viewers.values_mut().for_each(|viewer| viewer.to_load.reopened(column));
            self.demand.wanting = None;
        }
    }

    /// Removes the column from the resident columns; viewers that need it look again.
    pub fn forget(&mut self, column: ColumnPos, publisher: &mut Publisher) {
        self.columns.forget(column);
        self.take_out(column, publisher);
    }

    /// Removes the column once no region has it and no order for it is out.
    pub fn take_out(&mut self, column: ColumnPos, publisher: &mut Publisher) {
        publisher.unloaded(self.id, column);
        self.demand.unneeded.remove(&column);
        self.departed().find_again(column);
        if let Err(error) = self.regions.regionizer.remove_column(column) {
            error!("{}: {error}", self.id);
        }
        self.make_missing(column);
    }

    pub fn make_missing(&mut self, column: ColumnPos) {
        self.land.resident.unmark(column);
        self.note_reopened(column);
    }

    /// Delivers a column and everything that waited for it to the region that owns its place. Returns `false` if there is none.
    pub fn deliver(&mut self, mut loaded: LoadedColumn) -> bool {
        let position = loaded.column.pos();
        let Some(region) = self.regions.regionizer.region_at(position) else { return false };
        let has_more = matches!(self.columns.get(position), Some(ColumnState::Owned(_)));
        if has_more {
            // These are more slabs; the entities came with the first one.
            loaded.entities.clear();
        }
        loaded.is_new = !has_more && self.land.history.is_new(position);
        let travellers = self.mail.transit.take(position);
        self.columns.deliver(position);
        self.note_loaded(&loaded.column);
        // A record that a letter brings is newer than the stored one.
        let waiting = self.mail.letters.get(&position).into_iter().flatten();
        let brought: Vec<_> = waiting.filter_map(Letter::brings).collect();
        loaded.entities.retain(|record| !brought.contains(&record.id));
        let mut letters = self.take_letters(position);
        letters.splice(..0, self.recalled_to(&loaded));
        self.departed().find_again(position);
        // The live entity is newer than the record of its journey.
        loaded.entities.retain(|record| travellers.iter().all(|traveller| traveller.id != record.id));
        let inbox = self.inbox(region);
        inbox.columns.push(loaded);
        inbox.travellers.extend(travellers);
        inbox.letters.extend(letters);
        if !self.is_held(position) {
            self.demand.unneeded.insert(position);
        }
        true
    }

    /// Lets the region keep a column or slabs that it was asked to evict, and hands it everything that waited for their return.
    pub fn keep(&mut self, column: ColumnPos) {
        self.columns.deliver(column);
        self.orders.revised.insert(column);
        let letters = self.take_letters(column);
        letters.into_iter().for_each(|letter| self.send_letter(column, letter));
        if !self.is_held(column) {
            self.demand.unneeded.insert(column);
        }
    }
}
