//! Distributes the outboxes of regions.

use crate::coordinator::dimension::OpenDimension;
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::messages::why::{Ticket, Whereabouts};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::coordinator::surroundings::Surroundings;
use crate::region::RegionId;
use crate::simulation::{
    Address, Answer, Inbox, Letter, LetterSender, LoadedColumn, Outbox, Position, Traveller, Undeliverable, ViewerRadii,
};
use crate::space::{BlockPos, ColumnPos, DimensionId};
use crate::storage::servers::Crossing;
use crate::storage::{ChunkGroup, EntityRecord, SaveBatch};
use bevy::prelude::*;
use std::mem;
use uuid::Uuid;

impl Surroundings<'_> {
    /// Distributes a region's outbox. Returns the parts of a split.
    // It is this long because the order in which the lists are handed out is the point: it stands here as a whole.
    pub fn route(&mut self, id: DimensionId, region: RegionId, outbox: Box<Outbox>) -> Vec<(RegionId, Inbox)> {
        let Outbox {
            changed,
            light,
            travellers,
            left,
            kept,
            cut,
            save,
            told,
            mirrors,
            viewers,
            viewers_gone,
            made,
            refused,
            acted,
            saved_actions,
            numbers: _,
            fetched,
            letters,
            undelivered,
            appeared,
            gone,
            parts,
            worked,
        } = *outbox;
        self.directory.note_region(id, region, &appeared, &gone);
        if let Some(dimension) = self.dimensions.open.get(&id).filter(|dimension| dimension.orders.in_flight > 0) {
            self.directory.note_gone(&gone, dimension.orders.last_claim);
        }
        // The receivers of these answers must already know which entities are gone.
        worked.into_iter().for_each(Answer::tell);
        if let Some(dimension) = self.dimensions.open.get_mut(&id) {
            let (saves, publisher) = (&mut *self.saves, &mut *self.publisher);
            // Fetched columns come before the changes in them.
            fetched.into_iter().for_each(|fetched| dimension.take_fetched(fetched, saves, publisher));
            publisher.chunks(id, changed);
            publisher.light(id, light);
            publisher.mirrors(mirrors);
            dimension.take_unsaved(save, saves);
            saves.note_actions(saved_actions);
            dimension.note_told(told, &mut saves.pending);
            made.into_iter().for_each(|edit| publisher.decided(edit, true));
            publisher.acted(acted);
            for (edit, error) in refused {
                publisher.refuse(dimension.time.real_now, edit, error);
            }
            dimension.note_viewers(viewers, viewers_gone);
            kept.into_iter().for_each(|column| dimension.keep(column));
            dimension.take_cut(cut, saves, publisher);
            dimension.take_left(left, saves, &mut self.directory, publisher);
            dimension.regions.note_absorbed(region);
        }
        let departed =
            self.note_journeys(travellers.iter().chain(parts.iter().flat_map(|(_, inbox)| &inbox.travellers)));
        travellers.into_iter().for_each(|traveller| self.send_traveller(id, traveller));
        if let Some(dimension) = self.dimensions.open.get_mut(&id) {
            let letters = dimension.letters_to_follow(region, &departed, !parts.is_empty());
            letters.into_iter().for_each(|letter| self.post.send(letter));
        }
        for (letter, reason) in undelivered {
            self.send_back(letter, reason);
        }
        for letter in letters {
            let letter = self.store_on_its_way(id, region, letter);
            self.post.accept(letter);
        }
        parts
    }

    /// Stores a message of a shared type with the state of the region that sent it, in a row for a plot of this server: that of its address
    /// or that of its sender. The save that has its effect, or has it back with its sender, removes it.
    fn store_on_its_way(&mut self, from: DimensionId, region: RegionId, mut letter: Letter) -> Letter {
        let Some((kind, bytes)) = self.post.stored_form(&letter) else { return letter };
        let here = match letter.to {
            Address::Place(dimension, block) => Some((dimension, block)),
            Address::Entity(id) => self.place_near(id),
            Address::Main | Address::Regions(_) => return letter,
        };
        let here = here.filter(|(dimension, block)| self.has(*dimension, block.column()));
        let Some((plot, near)) = here.or_else(|| self.block_of(from, region)) else { return letter };
        let message = match letter.to {
            Address::Place(dimension, block) if dimension != plot => {
                Crossing::MessageAway { dimension, block, kind, bytes }
            }
            Address::Place(_, block) => Crossing::Message { block, entity: None, kind, bytes },
            _ => Crossing::Message { block: near, entity: letter.entity(), kind, bytes },
        };
        letter.crossing = Some(self.saves.send_here((plot, near.column().tile()), message));
        letter
    }

    /// A block near an entity, if it is here.
    fn place_near(&self, id: Uuid) -> Option<(DimensionId, BlockPos)> {
        match self.directory.whereabouts(id)? {
            Whereabouts::OnTheWay(dimension, column) => Some((dimension, column.min_block(0))),
            Whereabouts::Region(dimension, region) => self.block_of(dimension, region),
        }
    }

    /// A block of a region.
    fn block_of(&self, dimension: DimensionId, region: RegionId) -> Option<(DimensionId, BlockPos)> {
        let open = self.dimensions.open.get(&dimension)?;
        let column = open.regions.regionizer.columns(open.live_successor(region)?).next()?;
        Some((dimension, column.min_block(0)))
    }

    /// Returns `true` if the column's ground is this server's, even if it leaves just now: always, unless several servers share the world.
    fn has(&self, dimension: DimensionId, column: ColumnPos) -> bool {
        !self.post.is_shared() || self.dimensions.open.get(&dimension).is_some_and(|open| open.is_own(column))
    }

    /// Notes the journeys, and returns the ids of all travelling entities.
    fn note_journeys<'a>(&mut self, travellers: impl Iterator<Item = &'a Traveller>) -> Vec<Uuid> {
        let mut departed = Vec::new();
        for traveller in travellers {
            self.directory.note_journey(traveller);
            departed.extend(&traveller.ids);
        }
        departed
    }

    /// Returns `true` if this server has the ground of the column, in a world that several servers share.
    fn is_here(&self, dimension: DimensionId, column: ColumnPos) -> bool {
        self.dimensions.open.get(&dimension).is_some_and(|open| !open.is_closing() && open.may_have(column))
    }

    /// Sends a letter back that reached its region and was not delivered. In a world that several servers share, its place or
    /// its entity may have gone to another server.
    fn send_back(&mut self, letter: Letter, reason: Undeliverable) {
        let is_lost = matches!(reason, Undeliverable::NoSuchEntity(_));
        if is_lost && (letter.from == LetterSender::Server || self.post.share(&letter).is_some()) {
            return self.post.for_elsewhere.push(letter);
        }
        if let (Some((dimension, column)), Some(block)) = (letter.column(), letter.block())
            && letter.from != LetterSender::Server
            && !self.is_here(dimension, column)
            && let Some((kind, bytes)) = self.post.share(&letter)
        {
            let message = Crossing::Message { block, entity: None, kind, bytes };
            return self.saves.send_on(letter.crossing, (dimension, column.tile()), message);
        }
        self.post.give_back(letter, reason);
    }

    /// Sends an entity to the plot of its place, whichever server owns it. A player waits in the store until it is known where
    /// it is to log in.
    fn send_to_server(&mut self, from: DimensionId, traveller: Traveller, mut records: Vec<EntityRecord>) {
        if let Some(dimension) = self.dimensions.open.get_mut(&from) {
            traveller.viewers.iter().for_each(|(viewer, _)| dimension.release(Ticket::Region(*viewer)));
        }
        let Position { dimension, block, offset } = traveller.position;
        let plot = (dimension, block.column().tile());
        for record in &mut records {
            if (record.dimension, record.column().tile()) != plot {
                // Followers on other plots come along.
                (record.dimension, record.block, record.offset) = (dimension, block, offset.to_array());
            }
        }
        let gone = traveller.ids.iter().map(|id| (*id, None));
        self.saves.pending.entities.extend(gone);
        let (players, others): (Vec<_>, Vec<_>) = records.into_iter().partition(|record| record.player().is_some());
        for player in players {
            self.saves.pending.entities.insert(player.id, Some(player.clone()));
            self.post.straggling_players.push(player);
        }
        if !others.is_empty() {
            self.saves.send_to(plot, Crossing::Entities(others));
        }
        let mut traveller = traveller;
        for letter in mem::take(&mut traveller.letters) {
            match self.post.share(&letter).zip(letter.entity()) {
                Some(((kind, bytes), id)) => {
                    let message = Crossing::Message { block, entity: Some(id), kind, bytes };
                    self.saves.send_on(letter.crossing, plot, message);
                }
                None => self.post.give_back(letter, Undeliverable::OtherServer(block.column())),
            }
        }
        let reason = |_| Undeliverable::OtherServer(block.column());
        self.publisher.mirrors(self.post.drop_traveller(traveller, reason, &mut self.directory));
    }

    /// Sends an entity that left a region to the dimension of its new place, or leaves it to the store.
    fn send_traveller(&mut self, from: DimensionId, mut traveller: Traveller) {
        let to = traveller.position.dimension;
        let records = mem::take(&mut traveller.records);
        records.iter().for_each(|record| self.directory.sightings.note(record));
        if self.saves.server.is_some() && !self.is_here(to, traveller.position.column()) {
            return self.send_to_server(from, traveller, records);
        }
        self.saves.pending.entities.extend(records.into_iter().map(|record| (record.id, Some(record))));
        if self.dimensions.removed.contains(&to) {
            // Entities in a removed dimension are removed with it.
            self.saves.pending.entities.extend(traveller.ids.iter().map(|id| (*id, None)));
        }
        if to != from
            && let Some(dimension) = self.dimensions.open.get_mut(&from)
        {
            traveller.viewers.iter().for_each(|(viewer, _)| dimension.release(Ticket::Region(*viewer)));
        }
        match self.dimensions.open.get_mut(&to) {
            Some(dimension) if !dimension.is_closing() => dimension.send_traveller(traveller),
            not_open => {
                if let Some(closing) = not_open.and_then(|dimension| dimension.closing.as_mut()) {
                    // The entity must be in the store before the dimension is reopened or removed.
                    closing.until = None;
                }
                warn!("entity {} went to {to}, which is not open: it waits in the store", traveller.id);
                let reason = |_| Undeliverable::DimensionNotOpen(to);
                self.publisher.mirrors(self.post.drop_traveller(traveller, reason, &mut self.directory));
            }
        }
    }
}

impl OpenDimension {
    fn take_unsaved(&mut self, save: SaveBatch, saves: &mut Saves) {
        saves.note_removed(save.received.iter().copied());
        self.land.edited.extend(save.summaries.keys().map(|(_, column)| *column));
        saves.pending.merge(save);
    }

    fn note_viewers(&mut self, viewers: Vec<(Uuid, Position, ViewerRadii)>, gone: Vec<Uuid>) {
        gone.into_iter().for_each(|viewer| self.release(Ticket::Region(viewer)));
        // A viewer of a halted region may be back before the store has told where it is.
        self.mail.orphans.retain(|(orphan, _)| viewers.iter().all(|(id, ..)| id != orphan));
        if self.is_closing() {
            return;
        }
        for (id, position, radii) in
            viewers.into_iter().filter(|(_, place, _)| self.may_have(place.column())).collect::<Vec<_>>()
        {
            self.hold(Ticket::Region(id), position.block.chunk(), radii);
        }
    }

    /// Holds columns that the region evicted until the store has them.
    fn take_left(
        &mut self,
        left: Vec<LoadedColumn>,
        saves: &Saves,
        directory: &mut Directory,
        publisher: &mut Publisher,
    ) {
        let until = saves.stored_with();
        for loaded in left {
            loaded.entities.iter().for_each(|entity| directory.sightings.note(entity));
            let column = loaded.column.pos();
            let chunks = loaded.column.chunks().map(|(height, _)| column.chunk(height));
            self.store.note_accesses(chunks.map(|chunk| ChunkGroup::of(self.id, chunk)));
            self.forget(column, publisher);
            if !saves.is_stored(until) {
                self.departed().keep(loaded, until);
            }
        }
    }
}
