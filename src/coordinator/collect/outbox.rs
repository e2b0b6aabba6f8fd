//! What regions send: each part of an outbox goes to whoever it is for.

use crate::coordinator::desk::Desk;
use crate::coordinator::streaming::holders::Holder;
use crate::region::RegionId;
use crate::simulation::{Answer, Departed, Inbox, LoadedColumn, Outbox, Traveller, Undeliverable, ViewerReport};
use crate::space::DimensionId;
use crate::storage::{ChunkGroup, SaveBatch};
use bevy::prelude::*;
use uuid::Uuid;

impl Desk<'_> {
    /// Sends on what a region put in its outbox. Gives back the parts of a split.
    pub fn route(&mut self, id: DimensionId, region: RegionId, outbox: Box<Outbox>) -> Vec<(RegionId, Inbox)> {
        let Outbox {
            changed,
            travellers,
            left,
            kept,
            cut,
            save,
            mirrors,
            viewers,
            viewers_gone,
            refused,
            columns: _,
            entities: _,
            fetched,
            letters,
            undelivered,
            appeared,
            gone,
            parts,
            worked,
        } = *outbox;
        self.directory.note_region(id, region, &appeared, &gone);
        // Whoever hears of it knows by then who is there no more.
        worked.into_iter().for_each(Answer::tell);
        // Before what was changed in them since.
        fetched.into_iter().for_each(|fetched| self.take_fetched(id, fetched));
        self.publisher.chunks(id, changed);
        self.publisher.mirrors(mirrors);
        self.take_unsaved(save);
        for (request, error) in refused {
            self.publisher.refuse(self.clock.now, request, error);
        }
        self.note_viewers(id, viewers, viewers_gone);
        if let Some(dimension) = self.dimensions.open.get_mut(&id) {
            kept.into_iter().for_each(|column| dimension.keep(column));
        }
        self.take_cut(id, cut);
        self.take_left(id, left);
        if let Some(dimension) = self.dimensions.open.get_mut(&id) {
            dimension.note_absorbed(region);
        }
        let departed =
            self.note_journeys(travellers.iter().chain(parts.iter().flat_map(|(_, inbox)| &inbox.travellers)));
        travellers.into_iter().for_each(|traveller| self.send_traveller(id, traveller));
        self.forward_letters(id, region, &departed, !parts.is_empty());
        for (letter, reason) in undelivered {
            self.undeliverable(letter, reason);
        }
        letters.into_iter().for_each(|letter| self.accept(letter));
        parts
    }

    fn take_unsaved(&mut self, save: SaveBatch) {
        for (dimension, column) in save.summaries.keys() {
            if let Some(dimension) = self.dimensions.open.get_mut(dimension) {
                self.far_views.edited(dimension, *column);
            }
        }
        self.saves.pending.merge(save);
    }

    fn note_viewers(&mut self, id: DimensionId, viewers: Vec<ViewerReport>, gone: Vec<Uuid>) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        gone.into_iter().for_each(|viewer| dimension.release(Holder::Region(viewer)));
        if dimension.is_closing() {
            return;
        }
        for viewer in viewers {
            dimension.hold(Holder::Region(viewer.id), viewer.position.block.chunk(), viewer.radii);
        }
    }

    /// Columns that the region gave up are held until the store has them.
    fn take_left(&mut self, id: DimensionId, left: Vec<LoadedColumn>) {
        let until = self.saves.stored_with();
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        for loaded in left {
            loaded.entities.iter().for_each(|entity| self.sightings.note(entity));
            let column = loaded.column.pos();
            let chunks = loaded.column.chunks().map(|(height, _)| column.chunk(height));
            self.store.0.note_accesses(chunks.map(|chunk| ChunkGroup::of(id, chunk)));
            dimension.forget(column, &mut self.publisher);
            if !self.saves.is_stored(until) {
                dimension.departed().insert(Departed { loaded, until });
            }
        }
    }

    /// Gives the ids of all who are on their way.
    fn note_journeys<'a>(&mut self, travellers: impl Iterator<Item = &'a Traveller>) -> Vec<Uuid> {
        let mut departed = Vec::new();
        for traveller in travellers {
            self.directory.note_journey(traveller);
            departed.extend(&traveller.ids);
        }
        departed
    }

    /// Who left a region goes to the dimension of its new place, or waits in the store.
    fn send_traveller(&mut self, from: DimensionId, mut traveller: Traveller) {
        let to = traveller.position.dimension;
        if let Some(record) = traveller.record.take() {
            self.sightings.note(&record);
            self.saves.pending.entities.insert(record.id, Some(record));
        }
        if self.dimensions.removed.contains(&to) {
            // Whoever is in a dimension that is removed goes with it.
            self.saves.pending.entities.extend(traveller.ids.iter().map(|id| (*id, None)));
        }
        if to != from
            && let Some(dimension) = self.dimensions.open.get_mut(&from)
        {
            traveller.viewers.iter().for_each(|(viewer, _)| dimension.release(Holder::Region(*viewer)));
        }
        match self.dimensions.open.get_mut(&to) {
            Some(dimension) if !dimension.is_closing() => dimension.send_traveller(traveller),
            not_open => {
                if let Some(closing) = not_open.and_then(|dimension| dimension.closing.as_mut()) {
                    // Whoever opens it again, or removes it, finds the entity in the store.
                    closing.until = None;
                }
                warn!("entity {} went to {to}, which is not open: it waits in the store", traveller.id);
                self.drop_traveller(traveller, |_| Undeliverable::DimensionNotOpen(to));
            }
        }
    }
}
