//! Sends letters on: to the region that owns a place now, to an entity's current world, to the main world, to all regions.
//!
//! Letters are queued in the [`MailQueue`] and sorted several times in a pass, in the order of the queue.

use crate::coordinator::clock::Clock;
use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::mail::queue::{Mail, MailQueue};
use crate::coordinator::messages::events::LetterLost;
use crate::coordinator::messages::why::Whereabouts;
use crate::coordinator::publish::Publisher;
use crate::region::RegionId;
use crate::simulation::{Address, Letter, LetterSender, Refusal, Undeliverable};
use crate::space::DimensionId;
use bevy::prelude::*;
use std::time::Duration;
use uuid::Uuid;

impl DimensionBook {
    /// The number of region worlds, in one dimension or in all.
    fn count_worlds(&self, only: Option<DimensionId>) -> usize {
        let open = self.open.iter().filter(|(id, _)| only.is_none_or(|only| only == **id));
        open.map(|(_, dimension)| dimension.regions.regionizer.region_count()).sum()
    }

    /// The letters of the region with this entity, or of the entity itself while it waits for a column.
    fn letters_for(&mut self, place: Whereabouts, id: Uuid) -> Option<&mut Vec<Letter>> {
        match place {
            Whereabouts::Region(dimension, region) => {
                let dimension = self.open.get_mut(&dimension)?;
                let region = dimension.live_successor(region)?;
                Some(&mut dimension.inbox(region).letters)
            }
            Whereabouts::OnTheWay(dimension, column) => {
                let dimension = self.open.get_mut(&dimension)?;
                if dimension.mail.transit.find(column, id).is_some() {
                    return dimension.mail.transit.find(column, id).map(|traveller| &mut traveller.letters);
                }
                let region = dimension.regions.regionizer.region_at(column)?;
                Some(&mut dimension.inbox(region).letters)
            }
        }
    }
}

/// Accepts letters of the main world.
pub(crate) fn post_letters(In(letters): In<Vec<Letter>>, mut post: ResMut<MailQueue>) {
    letters.into_iter().for_each(|letter| post.accept(letter));
}

/// Sorts the waiting letters.
pub fn sort_letters(
    mut post: ResMut<MailQueue>,
    mut dimensions: ResMut<DimensionBook>,
    directory: Res<Directory>,
    mut publisher: ResMut<Publisher>,
    clock: Res<Clock>,
) {
    post.sort(&mut dimensions, &directory, &mut publisher, clock.now);
}

impl MailQueue {
    pub fn sort(
        &mut self,
        dimensions: &mut DimensionBook,
        directory: &Directory,
        publisher: &mut Publisher,
        now: Duration,
    ) {
        while let Some(mail) = self.next() {
            match mail {
                Mail::New(letter) => self.sort_new(letter, dimensions, directory, publisher, now),
                Mail::Underway(letter) => self.deliver(letter, dimensions, directory, publisher),
                Mail::Undeliverable(letter, reason) => self.return_letter(letter, reason, dimensions, publisher),
            }
        }
    }

    fn sort_new(
        &mut self,
        letter: Letter,
        dimensions: &mut DimensionBook,
        directory: &Directory,
        publisher: &mut Publisher,
        now: Duration,
    ) {
        // All copies for the regions must fit, or none is sent; each copy counts by itself.
        let (copies, is_copied) = match letter.to {
            Address::Regions(only) => (dimensions.count_worlds(only), true),
            Address::Place(..) | Address::Entity(_) | Address::Main => (1, false),
        };
        if !self.backlog.has_room(&letter, copies) {
            self.backlog.note_refused(&letter, now);
            return self.return_letter(letter, Undeliverable::TooManyLetters, dimensions, publisher);
        }
        let letter = if is_copied { letter } else { self.backlog.stamp(letter) };
        self.deliver(letter, dimensions, directory, publisher);
    }

    fn deliver(
        &mut self,
        letter: Letter,
        dimensions: &mut DimensionBook,
        directory: &Directory,
        publisher: &mut Publisher,
    ) {
        if letter.returned.is_some() {
            return self.post_back(letter, dimensions, publisher);
        }
        match letter.to {
            Address::Main => publisher.letter(letter),
            Address::Place(id, block) => match dimensions.open.get_mut(&id).filter(|open| !open.is_closing()) {
                Some(dimension) => dimension.send_letter(block.column(), letter),
                None => self.return_letter(letter, Undeliverable::DimensionNotOpen(id), dimensions, publisher),
            },
            Address::Entity(id) => {
                let place = directory.whereabouts(id);
                match place.and_then(|place| dimensions.letters_for(place, id)) {
                    Some(letters) => letters.push(letter),
                    None if letter.from == LetterSender::Server || self.share(&letter).is_some() => {
                        self.for_elsewhere.push(letter)
                    }
                    None => self.return_letter(letter, Undeliverable::NoSuchEntity(id), dimensions, publisher),
                }
            }
            Address::Regions(only) => {
                let wanted = dimensions.open.iter_mut().filter(|(id, _)| only.is_none_or(|only| only == **id));
                for (_, dimension) in wanted {
                    for region in dimension.regions.regionizer.regions() {
                        let copy = letter.copy().map(|letter| self.backlog.stamp(letter));
                        dimension.inbox(region).letters.extend(copy);
                    }
                }
            }
        }
    }

    /// Returns a letter to its sender, or reports it as lost.
    fn return_letter(
        &mut self,
        letter: Letter,
        reason: Undeliverable,
        dimensions: &mut DimensionBook,
        publisher: &mut Publisher,
    ) {
        if letter.returned.is_some() {
            return self.lose(letter, publisher);
        }
        if let Some(order) = letter.order() {
            let refusal = match reason {
                Undeliverable::Halted(_) => Refusal::Halted,
                Undeliverable::TooManyLetters => Refusal::TooMany,
                _ => Refusal::NotHere,
            };
            return publisher.acted([order.decided(Err(refusal))]);
        }
        if let Some(id) = letter.brings() {
            return self.lost_arrivals.push((id, reason));
        }
        if let Some(crossing) = letter.crossing.filter(|_| letter.from == LetterSender::Server) {
            // It is found in the store again, here or by the next owner of its place.
            return self.returned.push(crossing);
        }
        let crossing = letter.crossing;
        let lost = LetterLost { what: letter.name(), to: letter.to, reason };
        match letter.give_back(reason) {
            Some(letter) => self.post_back(letter, dimensions, publisher),
            None => {
                self.returned.extend(crossing);
                report(lost, publisher);
            }
        }
    }

    /// Returns a letter to the sender's region, the one that absorbed it, or the one that owns its place now.
    fn post_back(&mut self, letter: Letter, dimensions: &mut DimensionBook, publisher: &mut Publisher) {
        let LetterSender::Region { dimension: id, region, column } = letter.from else {
            return publisher.letter(letter);
        };
        let inbox = dimensions.open.get_mut(&id).and_then(|dimension| {
            let alive = dimension.live_successor(region);
            let region = alive.or_else(|| dimension.regions.regionizer.region_at(column?))?;
            Some(dimension.inbox(region))
        });
        match inbox {
            Some(inbox) => inbox.letters.push(letter),
            None => self.lose(letter, publisher),
        }
    }

    /// Reports a letter that came back to a region that is gone. The main world does not get it instead, because its content was
    /// meant for systems of that region. One that was stored on its way is found in the store again, and sent to its address.
    fn lose(&mut self, letter: Letter, publisher: &mut Publisher) {
        if let Some(crossing) = letter.crossing {
            return self.returned.push(crossing);
        }
        if let Some(reason) = letter.returned {
            report(LetterLost { what: letter.name(), to: letter.to, reason }, publisher);
        }
    }
}

fn report(lost: LetterLost, publisher: &mut Publisher) {
    // There are too many of these to name each.
    if lost.reason != Undeliverable::TooManyLetters {
        warn!("{} to {} is lost: {}", lost.what, lost.to, lost.reason);
    }
    publisher.event(lost);
}

impl OpenDimension {
    /// Letters that wait for a region follow the entities that left it and, after a split, the places. Returns them to be
    /// sent on.
    pub fn letters_to_follow(&mut self, region: RegionId, travellers: &[Uuid], is_split: bool) -> Vec<Letter> {
        let Some(inbox) = self.regions.waiting.get().get_mut(&region) else { return Vec::new() };
        let left = |letter: &mut Letter| {
            letter.entity().is_some_and(|id| travellers.contains(&id)) || (is_split && letter.column().is_some())
        };
        inbox.letters.extract_if(.., left).collect()
    }
}
