//! Sends letters on: to the region that owns a place now, to wherever an entity is, to the main world, to all regions.

use crate::coordinator::desk::Desk;
use crate::coordinator::dimension::Dimensions;
use crate::coordinator::events::LetterLost;
use crate::region::RegionId;
use crate::simulation::{Address, Letter, LetterSender, MirrorUpdate, Traveller, Undeliverable};
use crate::space::{BlockPos, ColumnPos, DimensionId};
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use uuid::Uuid;

/// Where each entity with a stable id is.
#[derive(Resource, Default)]
pub struct Directory {
    places: FxHashMap<Uuid, Whereabouts>,
    /// Somebody of whom it was known where he is may be nowhere any more.
    pub has_lost: bool,
    /// Who was in a region and is not any more, since somebody took this.
    pub left: FxHashSet<Uuid>,
}

/// Where an entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// In the world of this region, or of the one that it merged into.
    Region(DimensionId, RegionId),
    /// On its way to this column: in its region's inbox, or waiting for the column.
    OnTheWay(DimensionId, ColumnPos),
}

impl Directory {
    pub fn note_journey(&mut self, traveller: &Traveller) {
        let place = Whereabouts::OnTheWay(traveller.position.dimension, traveller.position.column());
        for id in &traveller.ids {
            self.places.insert(*id, place);
        }
    }

    pub fn forget_journey(&mut self, traveller: &Traveller) {
        self.has_lost = true;
        for id in &traveller.ids {
            self.places.remove(id);
        }
    }

    /// Takes in what a region says of itself. What left it for another place is noted after this.
    pub fn note_region(&mut self, dimension: DimensionId, region: RegionId, appeared: &[Uuid], gone: &[Uuid]) {
        for id in appeared {
            self.places.insert(*id, Whereabouts::Region(dimension, region));
        }
        self.has_lost |= !gone.is_empty();
        self.left.extend(gone);
        for id in gone {
            // It may have been reported by the region that this one absorbed, or by nobody yet.
            self.places.remove(id);
        }
    }

    /// Whether it is known where the entity is.
    pub fn knows(&self, id: Uuid) -> bool {
        self.places.contains_key(&id)
    }

    /// Whether the entity is in the world of a region, as far as is known.
    pub fn is_in_region(&self, id: Uuid) -> bool {
        matches!(self.places.get(&id), Some(Whereabouts::Region(..)))
    }

    /// What was in a halted region, or had just arrived there, is in no region any more. Gives its ids.
    pub fn forget_fallen(&mut self, dimension: DimensionId, is_gone: impl Fn(&Uuid, Whereabouts) -> bool) -> Vec<Uuid> {
        self.has_lost = true;
        let is_here = |at: &Whereabouts| match at {
            Whereabouts::Region(of, _) | Whereabouts::OnTheWay(of, _) => *of == dimension,
        };
        self.places.extract_if(|id, at| is_here(at) && is_gone(id, *at)).map(|(id, _)| id).collect()
    }

    pub fn forget_dimension(&mut self, dimension: DimensionId) {
        self.has_lost = true;
        self.places.retain(|_, place| match place {
            Whereabouts::Region(of, _) | Whereabouts::OnTheWay(of, _) => *of != dimension,
        });
    }
}

impl Dimensions {
    /// How many regions there are, in one dimension or in all.
    fn regions(&self, only: Option<DimensionId>) -> usize {
        let open = self.open.iter().filter(|(id, _)| only.is_none_or(|only| only == **id));
        open.map(|(_, dimension)| dimension.regionizer.regions().len()).sum()
    }

    /// The inbox of the region with this entity, or the entity itself while it waits for a column.
    fn letters_for(&mut self, place: Whereabouts, id: Uuid) -> Option<&mut Vec<Letter>> {
        match place {
            Whereabouts::Region(dimension, region) => {
                let dimension = self.open.get_mut(&dimension)?;
                let region = dimension.live_successor(region)?;
                Some(&mut dimension.inbox(region).letters)
            }
            Whereabouts::OnTheWay(dimension, column) => {
                let dimension = self.open.get_mut(&dimension)?;
                if dimension.transit.find(column, id).is_some() {
                    return dimension.transit.find(column, id).map(|traveller| &mut traveller.letters);
                }
                let region = dimension.regionizer.region_at(column)?;
                Some(&mut dimension.inbox(region).letters)
            }
        }
    }
}

/// Letters of the main world. One to a place comes with the dimension's entity, since the main world does not know its number.
pub(crate) fn post_letters(In(letters): In<Vec<(Option<(Entity, BlockPos)>, Letter)>>, mut desk: Desk) {
    for (place, letter) in letters {
        match place {
            Some((dimension, block)) => desk.post_to_place(dimension, block, letter),
            None => desk.accept(letter),
        }
    }
}

impl Desk<'_> {
    /// A letter of the main world to a place, which names the dimension by its entity there.
    pub fn post_to_place(&mut self, dimension: Entity, block: BlockPos, mut letter: Letter) {
        match self.dimensions.by_entity.get(&dimension) {
            Some(id) => {
                letter.to = Address::Place(*id, block);
                self.accept(letter);
            }
            None => self.undeliverable(letter, Undeliverable::NotADimension(dimension)),
        }
    }

    /// Sends on what a game sent, unless that is too much.
    pub fn accept(&mut self, letter: Letter) {
        // There is room for a copy for each region, or none is sent; each counts by itself.
        let (copies, is_copied) = match letter.to {
            Address::Regions(only) => (self.dimensions.regions(only), true),
            Address::Place(..) | Address::Entity(_) | Address::Main => (1, false),
        };
        match (self.letters.has_room(&letter, copies), is_copied) {
            (true, true) => self.post(letter),
            (true, false) => {
                let letter = self.letters.stamp(letter);
                self.post(letter);
            }
            (false, _) => {
                self.letters.note_refused(&letter, self.clock.now);
                self.undeliverable(letter, Undeliverable::TooManyLetters);
            }
        }
    }

    /// Sends a letter on.
    pub fn post(&mut self, letter: Letter) {
        if letter.is_returned() {
            return self.post_back(letter);
        }
        match letter.to {
            Address::Main => self.publisher.letter(letter),
            Address::Place(id, block) => match self.dimensions.open.get_mut(&id).filter(|open| !open.is_closing()) {
                Some(dimension) => dimension.send_letter(block.column(), letter),
                None => self.undeliverable(letter, Undeliverable::DimensionNotOpen(id)),
            },
            Address::Entity(id) => {
                let place = self.directory.places.get(&id).copied();
                match place.and_then(|place| self.dimensions.letters_for(place, id)) {
                    Some(letters) => letters.push(letter),
                    None => self.undeliverable(letter, Undeliverable::NoSuchEntity(id)),
                }
            }
            Address::Regions(only) => {
                for (id, dimension) in &mut self.dimensions.open {
                    if only.is_none_or(|only| only == *id) {
                        for region in dimension.regionizer.regions() {
                            let copy = letter.copy().map(|letter| self.letters.stamp(letter));
                            dimension.inbox(region).letters.extend(copy);
                        }
                    }
                }
            }
        }
    }

    /// To the sender's region, the one that took over from it, or the one that owns its place now.
    fn post_back(&mut self, letter: Letter) {
        let LetterSender::Region { dimension: id, region, column } = letter.from else {
            return self.publisher.letter(letter);
        };
        let dimension = self.dimensions.open.get_mut(&id);
        let inbox = dimension.and_then(|dimension| {
            let alive = dimension.live_successor(region);
            let region = alive.or_else(|| dimension.regionizer.region_at(column?))?;
            Some(dimension.inbox(region))
        });
        match inbox {
            Some(inbox) => inbox.letters.push(letter),
            None => self.lose_letter(letter),
        }
    }

    /// Back to the sender; what nobody waits for is reported.
    pub fn undeliverable(&mut self, letter: Letter, reason: Undeliverable) {
        if letter.is_returned() {
            return self.lose_letter(letter);
        }
        if let Some(id) = letter.brings() {
            return self.lose_arrival(id, reason);
        }
        let lost = LetterLost { what: letter.name(), to: letter.to, reason };
        match letter.give_back(reason) {
            Some(letter) => self.post_back(letter),
            None => self.report(lost),
        }
    }

    /// A letter came back to a region that is gone. What it says was meant for systems there, so it is told of, and not
    /// handed to the main world in its place.
    fn lose_letter(&mut self, letter: Letter) {
        if let Some(reason) = letter.returned() {
            self.report(LetterLost { what: letter.name(), to: letter.to, reason });
        }
    }

    fn report(&mut self, lost: LetterLost) {
        // There are too many of these to name each.
        if lost.reason != Undeliverable::TooManyLetters {
            warn!("{} to {} is lost: {}", lost.what, lost.to, lost.reason);
        }
        self.publisher.event(lost);
    }

    /// An entity on its way goes no further: what is stored of it stays, its mirror and its letters do not.
    pub fn drop_traveller(&mut self, traveller: Traveller, reason: impl Fn(Uuid) -> Undeliverable) {
        self.directory.forget_journey(&traveller);
        self.publisher.mirrors(traveller.ids.iter().copied().map(MirrorUpdate::gone).collect());
        for letter in traveller.letters {
            let reason = reason(letter.entity().unwrap_or(traveller.id));
            self.undeliverable(letter, reason);
        }
    }

    /// Letters that wait for a region follow what has left it: entities, or after a split places too.
    pub fn forward_letters(&mut self, id: DimensionId, region: RegionId, travellers: &[Uuid], is_split: bool) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let Some(inbox) = dimension.waiting.get().get_mut(&region) else { return };
        let left = |letter: &mut Letter| {
            letter.entity().is_some_and(|id| travellers.contains(&id)) || (is_split && letter.column().is_some())
        };
        let letters: Vec<_> = inbox.letters.extract_if(.., left).collect();
        letters.into_iter().for_each(|letter| self.post(letter));
    }
}
