//! Sends letters on: to the region that owns a place now, to an entity's current world, to the main world, to all regions.
//!
//! Letters are queued in the [`Post`] and sorted several times in a pass, in the order of the queue.

use super::letter_limits::{LetterBacklog, LetterLimits};
use crate::coordinator::clocks::clock::Clock;
use crate::coordinator::dimension::{Dimension, Dimensions};
use crate::coordinator::events::LetterLost;
use crate::coordinator::publish::Publisher;
use crate::coordinator::snapshots::sightings::Sightings;
use crate::region::RegionId;
use crate::simulation::{Address, Letter, LetterSender, MirrorUpdate, SharedMessages, Traveller, Undeliverable};
use crate::space::{ColumnPos, DimensionId};
use crate::storage::EntityRecord;
use crate::storage::servers::CrossingId;
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The whereabouts of each entity with a stable id.
#[derive(Resource, Default)]
pub struct Directory {
    places: FxHashMap<Uuid, Whereabouts>,
    /// `true` if entities with known whereabouts may be gone.
    pub has_lost: bool,
    /// Entities that left a region since this was last taken.
    pub left: FxHashSet<Uuid>,
    /// Entities that are gone while columns are on order, each with the last order before. A column that was read for such an order may
    /// still have them.
    gone: FxHashMap<Uuid, u64>,
    pub sightings: Sightings,
}

/// The whereabouts of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// In the world of this region, or of the one that absorbed it.
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

    /// Notes a region's report. Entities that left it for another place are noted after this.
    pub fn note_region(&mut self, dimension: DimensionId, region: RegionId, appeared: &[Uuid], gone: &[Uuid]) {
        for id in appeared {
            self.places.insert(*id, Whereabouts::Region(dimension, region));
        }
        self.has_lost |= !gone.is_empty();
        self.left.extend(gone);
        for id in gone {
            // The absorbed region may have reported it, or no region yet.
            self.places.remove(id);
        }
    }

    /// Notes that these entities are gone from their region, while the orders up to this one may not be answered.
    pub fn note_gone(&mut self, gone: &[Uuid], last_claim: u64) {
        for id in gone {
            // It may have gone from another dimension since a later order.
            let last = self.gone.entry(*id).or_insert(0);
            *last = last_claim.max(*last);
        }
    }

    /// Notes that all orders before this one are answered; `None` if all are.
    pub fn forget_gone(&mut self, oldest_claim: Option<u64>) {
        self.gone.retain(|_, last| oldest_claim.is_some_and(|oldest| *last >= oldest));
    }

    /// Returns `true` if the entity was in a region when this order was given, or has come to one since. Its stored record is outdated.
    pub fn has_seen(&self, id: Uuid, claim: u64) -> bool {
        self.knows(id) || self.gone.get(&id).is_some_and(|last| *last >= claim)
    }

    /// Returns `true` if the entity's whereabouts are known.
    pub fn knows(&self, id: Uuid) -> bool {
        self.places.contains_key(&id)
    }

    /// Returns `true` if the entity is in the world of this region.
    pub fn is_in(&self, id: Uuid, dimension: DimensionId, region: RegionId) -> bool {
        self.places.get(&id) == Some(&Whereabouts::Region(dimension, region))
    }

    /// Returns `true` if the entity is known to be in the world of a region.
    pub fn is_in_region(&self, id: Uuid) -> bool {
        matches!(self.places.get(&id), Some(Whereabouts::Region(..)))
    }

    /// Forgets the entities that were in a halted region or had just arrived there, and returns their ids.
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
    /// The number of region worlds, in one dimension or in all.
    fn count_worlds(&self, only: Option<DimensionId>) -> usize {
        let open = self.open.iter().filter(|(id, _)| only.is_none_or(|only| only == **id));
        open.map(|(_, dimension)| dimension.task_regions().count()).sum()
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
                if dimension.transit.find(column, id).is_some() {
                    return dimension.transit.find(column, id).map(|traveller| &mut traveller.letters);
                }
                let region = dimension.regionizer.region_at(column)?;
                Some(&mut dimension.inbox(region).letters)
            }
        }
    }
}

/// The letters to be sorted.
#[derive(Resource)]
pub struct Post {
    queue: VecDeque<Mail>,
    pub backlog: LetterBacklog,
    /// Entities that were to enter the world and did not reach their place.
    pub lost_arrivals: Vec<(Uuid, Undeliverable)>,
    /// Players that left this server's ground on their own.
    pub strayed: Vec<EntityRecord>,
    /// The messages that other servers can get.
    messages: Arc<SharedMessages>,
    /// `true` if several servers share the world.
    is_shared: bool,
    /// Letters to entities that are not here. They may be on another server.
    pub astray: Vec<Letter>,
    /// When the store may be asked for their places next; `None` while it is asked.
    pub next_search: Option<Duration>,
    /// The numbers of letters of other servers that did not reach their region.
    pub returned: Vec<CrossingId>,
}

enum Mail {
    /// A new letter of the game.
    New(Letter),
    /// A letter in flight.
    Underway(Letter),
    /// A letter on its way back to its sender.
    Undeliverable(Letter, Undeliverable),
}

/// Accepts letters of the main world.
pub(crate) fn post_letters(In(letters): In<Vec<Letter>>, mut post: ResMut<Post>) {
    letters.into_iter().for_each(|letter| post.accept(letter));
}

/// Sorts the waiting letters.
pub fn sort_letters(
    mut post: ResMut<Post>,
    mut dimensions: ResMut<Dimensions>,
    directory: Res<Directory>,
    mut publisher: ResMut<Publisher>,
    clock: Res<Clock>,
) {
    post.sort(&mut dimensions, &directory, &mut publisher, clock.now);
}

impl Post {
    /// An empty post. `messages` are those that other servers can get, `is_shared` if there are others.
    pub fn new(limits: LetterLimits, messages: Arc<SharedMessages>, is_shared: bool) -> Self {
        let (queue, backlog) = (VecDeque::new(), LetterBacklog::new(limits));
        let (lost_arrivals, strayed, astray, returned) = Default::default();
        let next_search = Some(Duration::ZERO);
        Self { queue, backlog, lost_arrivals, strayed, messages, is_shared, astray, next_search, returned }
    }

    /// The letter in the form in which another server gets it, if it is a message of a shared type.
    pub fn share(&self, letter: &Letter) -> Option<(String, Vec<u8>)> {
        if self.is_shared { letter.shared(&self.messages) } else { None }
    }

    /// Takes a message from another server. The error is the reason why it cannot be read.
    pub fn receive(&mut self, id: CrossingId, to: Address, kind: &str, bytes: &[u8]) -> Result<(), String> {
        let letter = Letter::from_server(id, to, &self.messages, kind, bytes)?;
        self.queue.push_back(Mail::Underway(letter));
        Ok(())
    }

    /// Takes a letter of the game. It comes back if there are too many.
    pub fn accept(&mut self, letter: Letter) {
        self.queue.push_back(Mail::New(letter));
    }

    /// Takes a letter of the crate, or one that was accepted before.
    pub fn send(&mut self, letter: Letter) {
        self.queue.push_back(Mail::Underway(letter));
    }

    /// Takes an undeliverable letter. It goes back to its sender, or is reported as lost.
    pub fn give_back(&mut self, letter: Letter, reason: Undeliverable) {
        self.queue.push_back(Mail::Undeliverable(letter, reason));
    }

    /// Ends an entity's journey: its stored data stays, its mirror goes, and its letters come back.
    pub fn drop_traveller(
        &mut self,
        traveller: Traveller,
        reason: impl Fn(Uuid) -> Undeliverable,
        directory: &mut Directory,
        publisher: &mut Publisher,
    ) {
        directory.forget_journey(&traveller);
        publisher.mirrors(traveller.ids.iter().copied().map(MirrorUpdate::gone).collect());
        for letter in traveller.letters {
            let reason = reason(letter.entity().unwrap_or(traveller.id));
            self.give_back(letter, reason);
        }
    }

    pub fn sort(
        &mut self,
        dimensions: &mut Dimensions,
        directory: &Directory,
        publisher: &mut Publisher,
        now: Duration,
    ) {
        while let Some(mail) = self.queue.pop_front() {
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
        dimensions: &mut Dimensions,
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
        dimensions: &mut Dimensions,
        directory: &Directory,
        publisher: &mut Publisher,
    ) {
        if letter.returned.is_some() {
            return post_back(letter, dimensions, publisher);
        }
        match letter.to {
            Address::Main => publisher.letter(letter),
            Address::Place(id, block) => match dimensions.open.get_mut(&id).filter(|open| !open.is_closing()) {
                Some(dimension) => dimension.send_letter(block.column(), letter),
                None => self.return_letter(letter, Undeliverable::DimensionNotOpen(id), dimensions, publisher),
            },
            Address::Entity(id) => {
                let place = directory.places.get(&id).copied();
                match place.and_then(|place| dimensions.letters_for(place, id)) {
                    Some(letters) => letters.push(letter),
                    None if letter.crossing.is_some() || self.share(&letter).is_some() => self.astray.push(letter),
                    None => self.return_letter(letter, Undeliverable::NoSuchEntity(id), dimensions, publisher),
                }
            }
            Address::Regions(only) => {
                let wanted = dimensions.open.iter_mut().filter(|(id, _)| only.is_none_or(|only| only == **id));
                for (_, dimension) in wanted {
                    for region in dimension.task_regions() {
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
        dimensions: &mut Dimensions,
        publisher: &mut Publisher,
    ) {
        if letter.returned.is_some() {
            return lose(letter, publisher);
        }
        if let Some(id) = letter.brings() {
            return self.lost_arrivals.push((id, reason));
        }
        if let Some(crossing) = letter.crossing {
            // It is found in the store again, here or by the next owner of its place.
            return self.returned.push(crossing);
        }
        let lost = LetterLost { what: letter.name(), to: letter.to, reason };
        match letter.give_back(reason) {
            Some(letter) => post_back(letter, dimensions, publisher),
            None => report(lost, publisher),
        }
    }
}

/// Returns a letter to the sender's region, the one that absorbed it, or the one that owns its place now.
fn post_back(letter: Letter, dimensions: &mut Dimensions, publisher: &mut Publisher) {
    let LetterSender::Region { dimension: id, region, column } = letter.from else {
        return publisher.letter(letter);
    };
    let inbox = dimensions.open.get_mut(&id).and_then(|dimension| {
        let alive = dimension.live_successor(region);
        let region = alive.or_else(|| dimension.regionizer.region_at(column?))?;
        Some(dimension.inbox(region))
    });
    match inbox {
        Some(inbox) => inbox.letters.push(letter),
        None => lose(letter, publisher),
    }
}

/// Reports a letter that came back to a region that is gone. The main world does not get it instead, because its content was
/// meant for systems of that region.
fn lose(letter: Letter, publisher: &mut Publisher) {
    if let Some(reason) = letter.returned {
        report(LetterLost { what: letter.name(), to: letter.to, reason }, publisher);
    }
}

fn report(lost: LetterLost, publisher: &mut Publisher) {
    // There are too many of these to name each.
    if lost.reason != Undeliverable::TooManyLetters {
        warn!("{} to {} is lost: {}", lost.what, lost.to, lost.reason);
    }
    publisher.event(lost);
}

impl Dimension {
    /// Letters that wait for a region follow the entities that left it and, after a split, the places. Returns them to be
    /// sent on.
    pub fn letters_to_follow(&mut self, region: RegionId, travellers: &[Uuid], is_split: bool) -> Vec<Letter> {
        let Some(inbox) = self.waiting.get().get_mut(&region) else { return Vec::new() };
        let left = |letter: &mut Letter| {
            letter.entity().is_some_and(|id| travellers.contains(&id)) || (is_split && letter.column().is_some())
        };
        inbox.letters.extract_if(.., left).collect()
    }
}
