//! What goes to a dimension's regions: entities, letters, and what waited for columns that are gone.

use super::Dimension;
use super::column_state::Heights;
use crate::coordinator::streaming::holders::{HOLD_MARGIN, Holder, disc_difference};
use crate::region::RegionId;
use crate::simulation::{Inbox, Letter, LoadedColumn, SetBlock, Traveller, ViewerRadii};
use crate::space::{ChunkPos, ColumnPos};
use crate::storage;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use uuid::Uuid;

impl Dimension {
    /// Where what is sent to the region waits: its inbox, or beside it while it ticks.
    pub fn inbox(&mut self, region: RegionId) -> &mut Inbox {
        match self.regionizer.data_mut(region) {
            Some(slot) => &mut slot.parked.get().inbox,
            None => self.waiting.get().entry(region).or_default(),
        }
    }

    /// What waits for the entities in a column that comes.
    pub(super) fn recalled_to(&mut self, loaded: &LoadedColumn) -> Vec<Letter> {
        let recalled = &mut self.recalled;
        if recalled.is_empty() {
            return Vec::new();
        }
        let ids: FxHashSet<Uuid> = loaded.entities.iter().flat_map(storage::EntityRecord::ids).collect();
        recalled.extract_if(.., |letter| letter.entity().is_some_and(|id| ids.contains(&id))).collect()
    }

    /// A region that had halted lives again: its columns are read again, and what waits in it for them and their entities waits
    /// for that. Letters to entities that are known wait in it for its next tick as before.
    pub fn revive(&mut self, region: RegionId, is_known: impl Fn(Uuid) -> bool) {
        let Self { columns, regionizer, .. } = self;
        // Parts that split off in the same moment may have some of the columns that it took over.
        let slot = regionizer.data(region);
        let regions: Vec<_> =
            slot.into_iter().flat_map(|slot| &slot.parts).map(|part| part.id).chain([region]).collect();
        let is_alive = |column| regionizer.region_at(column).is_some_and(|owner| regions.contains(&owner));
        let lost = columns.revive(is_alive);
        let Some(slot) = regionizer.data_mut(region).filter(|_| !lost.is_empty()) else { return };
        let inbox = &mut slot.parked.get().inbox;
        let mut waiting = inbox.split_off(|column| lost.contains(&column));
        let is_recalled = |letter: &mut Letter| letter.entity().is_some_and(|id| !is_known(id));
        waiting.letters.extend(inbox.letters.extract_if(.., is_recalled));
        self.revise_all();
        for edit in self.send_on(waiting) {
            // Edits of a halted region were refused, so there are none.
            warn!("{}: an edit of block {} is lost", self.id, edit.position);
        }
    }

    /// A letter goes to the region that owns its place, or waits for the column, which is loaded for it: at once, or in its turn
    /// if a game sent it.
    pub fn send_letter(&mut self, column: ColumnPos, letter: Letter) {
        let place = self.letter_place(column, &letter);
        // Behind those that wait already, while what the store has of a fetched column is being read.
        match self.owner(column).filter(|_| self.has_height(column, place.y)) {
            Some(region) => self.inbox(region).letters.push(letter),
            None => {
                match letter.stamp.is_some() {
                    true => self.letter_places.wait(place),
                    false => self.hold(Holder::Letters(place), place, ViewerRadii::default()),
                }
                self.letters.entry(column).or_default().push(letter);
            }
        }
    }

    /// Has ground loaded for letters, for so many places at a time.
    pub fn hold_for_letters(&mut self, most: usize) {
        let Self { columns, holds, generation, stored, letter_places, .. } = self;
        let is_stuck = |place: ChunkPos| match place.column() {
            column if generation.settings.paused && !stored.is_completed(column) => true,
            column => {
                let is_left_out = |heights: &Heights| heights.ungenerated.contains(place.y);
                let failures = &generation.failures;
                columns.has_failed(column) || failures.has(column) || columns.heights(column).is_some_and(is_left_out)
            }
        };
        let is_left = |column: ColumnPos| columns.is_resident(column) && !holds.contains_key(&column);
        // With what was loaded around it.
        let around = |column: ColumnPos| disc_difference((column, i64::from(HOLD_MARGIN)), None);
        let is_leaving = |column| around(column).any(is_left);
        for place in letter_places.next(most, is_stuck, is_leaving) {
            self.hold(Holder::Letters(place), place, ViewerRadii::default());
        }
    }

    /// The chunk that is loaded for a letter; any of the column unless the dimension is sparse.
    fn letter_place(&self, column: ColumnPos, letter: &Letter) -> ChunkPos {
        let height = letter.block().filter(|_| self.is_sparse()).map_or(0, |block| block.chunk().y);
        column.chunk(height)
    }

    /// The letters that wait for the column, as far as the heights that they go to are loaded.
    pub fn take_letters(&mut self, column: ColumnPos) -> Vec<Letter> {
        let letters = self.letters.remove(&column).unwrap_or_default();
        let mut there = Vec::with_capacity(letters.len());
        for letter in letters {
            let place = self.letter_place(column, &letter);
            if self.has_height(column, place.y) {
                self.release(Holder::Letters(place));
                self.letter_places.end(place);
                there.push(letter);
            } else {
                self.letters.entry(column).or_default().push(letter);
            }
        }
        there
    }

    /// Sends on what waited for columns that are gone. Gives back the edits, which are refused.
    pub fn send_on(&mut self, astray: Inbox) -> Vec<SetBlock> {
        astray.travellers.into_iter().for_each(|traveller| self.send_traveller(traveller));
        for letter in astray.letters {
            match letter.column() {
                Some((_, column)) => self.send_letter(column, letter),
                None => self.recalled.push(letter),
            }
        }
        astray.edits
    }

    /// An entity goes to whoever owns its place now, or waits for the column.
    pub fn send_traveller(&mut self, traveller: Traveller) {
        let column = traveller.position.column();
        for (viewer, radii) in &traveller.viewers {
            self.hold(Holder::Region(*viewer), traveller.position.block.chunk(), *radii);
        }
        // What the store has of a fetched column is still being read: whoever comes now could be among it.
        match self.regionizer.region_at(column).filter(|_| self.is_whole(column)) {
            Some(region) => self.inbox(region).travellers.push(traveller),
            None => self.transit.push(traveller),
        }
    }
}
