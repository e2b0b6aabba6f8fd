//! Sends entities and letters to a dimension's regions, and sends on everything that waited for columns that are gone.

use super::OpenDimension;
use crate::coordinator::columns::Heights;
use crate::coordinator::demand::tickets::{HOLD_MARGIN, disc_difference};
use crate::coordinator::messages::why::Ticket;
use crate::coordinator::regions::Regions;
use crate::region::RegionId;
use crate::simulation::{BlockEdit, Inbox, Letter, LoadedColumn, Traveller, ViewerRadii};
use crate::space::{ChunkPos, ColumnPos};
use crate::storage;
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use uuid::Uuid;

impl OpenDimension {
    /// The inbox of the region's world, or its stand-in while the world is away.
    pub fn inbox(&mut self, region: RegionId) -> &mut Inbox {
        let Regions { regionizer, waiting, .. } = &mut self.regions;
        match regionizer.data_mut(region) {
            Some(slot) => slot.parked.get().inbox(),
            None => waiting.get().entry(region).or_default(),
        }
    }

    /// The letters that wait for the entities of a loaded column.
    pub(super) fn recalled_to(&mut self, loaded: &LoadedColumn) -> Vec<Letter> {
        let recalled = &mut self.mail.recalled;
        if recalled.is_empty() {
            return Vec::new();
        }
        let ids: FxHashSet<Uuid> = loaded.entities.iter().flat_map(storage::EntityRecord::ids).collect();
        recalled.extract_if(.., |letter| letter.entity().is_some_and(|id| ids.contains(&id))).collect()
    }

    /// Revives a halted region: its columns are read again, and everything in it that waits for them or their entities keeps
    /// waiting. Letters to known entities wait for its next tick as before.
    pub fn revive(&mut self, region: RegionId, is_known: impl Fn(Uuid) -> bool) {
        let Self { columns, regions: Regions { regionizer, .. }, .. } = self;
        // Parts that split off at the same moment may have some of the columns that it took over.
        let slot = regionizer.data(region);
        let regions: Vec<_> =
            slot.into_iter().flat_map(|slot| &slot.parts).map(|part| part.id).chain([region]).collect();
        let is_alive = |column| regionizer.region_at(column).is_some_and(|owner| regions.contains(&owner));
        let lost = columns.revive(is_alive);
        let Some(slot) = regionizer.data_mut(region).filter(|_| !lost.is_empty()) else { return };
        let inbox = slot.parked.get().inbox();
        let mut waiting = inbox.split_off(|column| lost.contains(&column));
        let is_recalled = |letter: &mut Letter| letter.entity().is_some_and(|id| !is_known(id));
        waiting.letters.extend(inbox.letters.extract_if(.., is_recalled));
        self.revise_all();
        for edit in self.send_on(waiting) {
            // Edits of a halted region were refused, so there are none.
            warn!("{}: an edit of block {} is lost", self.id, edit.request.position);
        }
    }

    /// Sends a letter to the region that owns its place, or lets it wait for the column. The column is loaded for it at once, or
    /// in turn for a letter of the game.
    pub fn send_letter(&mut self, column: ColumnPos, letter: Letter) {
        let place = self.letter_place(column, &letter);
        // While the stored part of a fetched column is being read, the letter queues behind those that already wait.
        match self.owner(column).filter(|_| self.has_height(column, place.y)) {
            Some(region) => self.inbox(region).letters.push(letter),
            None => {
                match letter.stamp.is_some() {
                    true => self.mail.letter_places.wait(place),
                    false => self.hold(Ticket::Letters(place), place, ViewerRadii::default()),
                }
                self.mail.letters.entry(column).or_default().push(letter);
            }
        }
    }

    /// Loads ground for letters, for at most this many places at a time.
    pub fn hold_for_letters(&mut self, most: usize) {
        let Self { columns, plots, .. } = self;
        let (holds, generation) = (&self.demand.holds, &self.orders.generation);
        let (stored, letter_places) = (&self.land.stored, &mut self.mail.letter_places);
        let is_elsewhere = |column: ColumnPos| plots.as_ref().is_some_and(|plots| !plots.is_open(column.tile()));
        let is_stuck = |place: ChunkPos| match place.column() {
            // The owner of its plot is asked.
            column if is_elsewhere(column) => false,
            column if generation.settings.paused && !stored.is_completed(column) => true,
            column => {
                let is_left_out = |heights: &Heights| heights.ungenerated.contains(place.y);
                let failures = &generation.failures;
                columns.has_failed(column) || failures.has(column) || columns.heights(column).is_some_and(is_left_out)
            }
        };
        let is_left = |column: ColumnPos| columns.is_resident(column) && !holds.contains_key(&column);
        // Includes the ground that was loaded around it.
        let around = |column: ColumnPos| disc_difference((column, i64::from(HOLD_MARGIN)), None);
        let is_leaving = |column| around(column).any(is_left);
        for place in letter_places.next(most, is_stuck, is_leaving) {
            self.hold(Ticket::Letters(place), place, ViewerRadii::default());
        }
    }

    /// The chunk that is loaded for a letter; any chunk of the column unless the dimension is sparse.
    pub fn letter_place(&self, column: ColumnPos, letter: &Letter) -> ChunkPos {
        let height = letter.block().filter(|_| self.is_sparse()).map_or(0, |block| block.chunk().y);
        column.chunk(height)
    }

    /// The letters that wait for the column, for those heights that are loaded.
    pub fn take_letters(&mut self, column: ColumnPos) -> Vec<Letter> {
        let letters = self.mail.letters.remove(&column).unwrap_or_default();
        let mut there = Vec::with_capacity(letters.len());
        for letter in letters {
            let place = self.letter_place(column, &letter);
            if self.has_height(column, place.y) {
                self.release(Ticket::Letters(place));
                self.mail.letter_places.end(place);
                there.push(letter);
            } else {
                self.mail.letters.entry(column).or_default().push(letter);
            }
        }
        there
    }

    /// Sends on everything that waited for columns that are gone. Returns the edits, which are refused.
    pub fn send_on(&mut self, astray: Inbox) -> Vec<BlockEdit> {
        astray.travellers.into_iter().for_each(|traveller| self.send_traveller(traveller));
        for letter in astray.letters {
            match letter.column() {
                Some((_, column)) => self.send_letter(column, letter),
                None => self.mail.recalled.push(letter),
            }
        }
        astray.edits
    }

    /// Sends an entity to the region that owns its place now, or lets it wait for the column.
    pub fn send_traveller(&mut self, traveller: Traveller) {
        let column = traveller.position.column();
        for (viewer, radii) in traveller.viewers.iter().filter(|_| self.may_have(column)).collect::<Vec<_>>() {
            self.hold(Ticket::Region(*viewer), traveller.position.block.chunk(), *radii);
        }
        // The stored part of a fetched column is still being read and may contain this entity.
        match self.regions.regionizer.region_at(column).filter(|_| self.is_whole(column)) {
            Some(region) => self.inbox(region).travellers.push(traveller),
            None => self.mail.transit.push(traveller),
        }
    }
}
