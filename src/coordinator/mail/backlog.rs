//! How many letters may be in flight: limits in bytes for each sender and for all senders together, and a limit of the ground
//! that is loaded for letters. Plain data structures.

use crate::coordinator::figures::tally::Tally;
use crate::coordinator::messages::settings::LetterLimits;
use crate::region::RegionId;
use crate::simulation::{Letter, LetterSender, Stamp};
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The main world, or a region by its id when it sent.
type Sender = Option<(DimensionId, RegionId)>;

fn sender(letter: &Letter) -> Sender {
    match letter.from {
        LetterSender::Main | LetterSender::Server => None,
        LetterSender::Region { dimension, region, .. } => Some((dimension, region)),
    }
}

/// The letters of one sender.
#[derive(Default)]
struct Share {
    bytes: usize,
    /// Bytes of its letters that arrived since the last [`settle`](LetterBacklog::settle).
    returned: Arc<AtomicUsize>,
}

/// The letters in flight, by sender.
#[derive(Default)]
pub struct LetterBacklog {
    limits: LetterLimits,
    shares: FxHashMap<Sender, Share>,
    bytes: usize,
    /// Letters that came back, for the log.
    pub refused: Tally,
}

impl LetterBacklog {
    pub fn new(limits: LetterLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The bytes in flight.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Subtracts the letters that arrived since the last call. Only this method does so: in lockstep, thread timing must not
    /// decide which letter exceeds a limit.
    pub fn settle(&mut self) {
        let all = &mut self.bytes;
        self.shares.retain(|_, share| {
            let returned = share.returned.swap(0, Ordering::Relaxed);
            share.bytes -= returned;
            *all -= returned;
            share.bytes > 0
        });
        // Frees memory after a burst of many senders.
        if self.shares.capacity() > 4 * self.shares.len() + 64 {
            self.shares.shrink_to_fit();
        }
    }

    /// The bytes in flight from the sender of this letter.
    fn of_its_sender(&self, letter: &Letter) -> usize {
        self.shares.get(&sender(letter)).map_or(0, |share| share.bytes)
    }

    /// Returns `true` if this many copies of the letter may be sent.
    pub fn has_room(&self, letter: &Letter, copies: usize) -> bool {
        let more = letter.bytes.saturating_mul(copies);
        let LetterLimits { sender_bytes, bytes, .. } = self.limits;
        self.of_its_sender(letter).saturating_add(more) <= sender_bytes && self.bytes.saturating_add(more) <= bytes
    }

    /// Notes that the letter was refused.
    pub fn note_refused(&mut self, letter: &Letter, now: Duration) {
        let (from, own, all) = (letter.from, self.of_its_sender(letter), self.bytes);
        self.refused.note(
            now,
            format_args!(
                "letters of {from} come back: those on their way take {own} bytes, those of all senders {all}"
            ),
        );
    }

    /// Counts the letter until it is delivered or dropped.
    pub fn stamp(&mut self, mut letter: Letter) -> Letter {
        let share = self.shares.entry(sender(&letter)).or_default();
        letter.stamp = Some(Stamp { bytes: letter.bytes, returned: share.returned.clone() });
        share.bytes += letter.bytes;
        self.bytes += letter.bytes;
        letter
    }
}

/// The places that letters wait for. Ground is loaded for some of them at a time, in the sequence of their first letters.
#[derive(Default)]
pub struct LetterPlaces {
    queue: BTreeMap<u64, ChunkPos>,
    numbers: FxHashMap<ChunkPos, u64>,
    last: u64,
    /// The places for which ground is loaded.
    held: FxHashSet<ChunkPos>,
    /// Columns that were loaded for delivered letters and may still be loaded.
    leaving: FxHashSet<ColumnPos>,
}

/// The limit of held places, stuck ones included, as a multiple of the limit of loading places.
const STUCK: usize = 16;
/// The maximum number of waiting places examined in a pass.
const LOOKS: usize = 1_024;

impl LetterPlaces {
    /// Notes that a letter waits for the place.
    pub fn wait(&mut self, place: ChunkPos) {
        if self.held.contains(&place) || self.numbers.contains_key(&place) {
            return;
        }
        self.last += 1;
        self.numbers.insert(place, self.last);
        self.queue.insert(self.last, place);
    }

    /// Notes that no letter waits for the place any more.
    pub fn end(&mut self, place: ChunkPos) {
        if let Some(number) = self.numbers.remove(&place) {
            self.queue.remove(&number);
        }
        if self.held.remove(&place) {
            self.leaving.insert(place.column());
        }
    }

    /// Returns the places whose turn has come, so that at most `most` are loaded at a time. A place whose ground cannot be loaded
    /// (`is_stuck`) takes no other place's turn; if it is stuck at its own turn, it waits behind the others. Ground that was
    /// loaded for letters counts while it is loaded for no other ticket (`is_leaving`).
    pub fn next(
        &mut self,
        most: usize,
        is_stuck: impl Fn(ChunkPos) -> bool,
        is_leaving: impl Fn(ColumnPos) -> bool,
    ) -> Vec<ChunkPos> {
        self.leaving.retain(|column| is_leaving(*column));
        // Frees memory after a burst of many places.
        if self.numbers.capacity() > 4 * self.numbers.len() + 64 {
            self.numbers.shrink_to_fit();
        }
        if self.queue.is_empty() {
            return Vec::new();
        }
        let most = most.max(1);
        let loading = self.held.iter().filter(|place| !is_stuck(**place)).count();
        let room = most.saturating_sub(loading + self.leaving.len());
        let room = room.min(most.saturating_mul(STUCK).saturating_sub(self.held.len()));
        let mut next = Vec::new();
        for _ in 0..self.queue.len().min(LOOKS) {
            if next.len() == room {
                break;
            }
            let Some((_, place)) = self.queue.pop_first() else { break };
            self.numbers.remove(&place);
            if is_stuck(place) {
                self.wait(place);
            } else {
                self.held.insert(place);
                next.push(place);
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Address;

    fn letter(from: LetterSender) -> Letter {
        Letter::message(Address::Main, from, [0_u64; 16])
    }

    /// Promise, messages: Messages beyond a sender's limit return, so no sender can fill the memory.
    #[test]
    fn a_sender_has_its_share_and_all_have_theirs() {
        let (main, size) = (LetterSender::Main, letter(LetterSender::Main).bytes);
        assert!((128..512).contains(&size), "{size}");
        let limits = LetterLimits { sender_bytes: 3 * size, bytes: 5 * size, ..LetterLimits::default() };
        let mut backlog = LetterBacklog::new(limits);
        let region = |region| LetterSender::Region { dimension: DimensionId(0), region, column: None };
        let other = region(RegionId::new(7));
        let send = |backlog: &mut LetterBacklog, from| {
            let letter = letter(from);
            backlog.has_room(&letter, 1).then(|| backlog.stamp(letter))
        };
        let mut sent: Vec<_> = std::iter::from_fn(|| send(&mut backlog, main)).collect();
        assert_eq!(sent.len(), 3);
        let others: Vec<_> = std::iter::from_fn(|| send(&mut backlog, other)).collect();
        assert_eq!((others.len(), backlog.bytes()), (2, 5 * size));
        // A delivered letter counts until the next `settle`.
        drop(sent.pop());
        assert!(send(&mut backlog, other).is_none());
        backlog.settle();
        let last = send(&mut backlog, other);
        assert!(last.is_some() && send(&mut backlog, other).is_none() && send(&mut backlog, main).is_none());
        // A letter that comes back does not count, and refused letters leave nothing behind.
        let returned = last.map(|letter| letter.give_back(crate::simulation::Undeliverable::TooManyLetters));
        drop((sent, others));
        backlog.settle();
        assert_eq!((backlog.bytes(), backlog.shares.len()), (0, 0));
        drop(returned);
        assert!(!backlog.has_room(&letter(main), 4) && backlog.has_room(&letter(main), 3));
    }

    /// Promise, messages: Messages to far places load a bounded number of places at a time.
    #[test]
    fn so_many_places_are_loaded_at_a_time_in_the_order_of_their_first_letters() {
        let place = |x| ChunkPos::new(x, 0, 0);
        let mut places = LetterPlaces::default();
        (0..1_000).chain(0..1_000).for_each(|x| places.wait(place(x)));
        let (never, never_stuck) = (|_: ColumnPos| false, |_: ChunkPos| false);
        assert_eq!(places.next(3, never_stuck, never), [0, 1, 2].map(place));
        places.wait(place(1));
        assert!(places.next(3, never_stuck, never).is_empty());
        // Place 0 is delivered and not unloaded yet, later a viewer has it; place 3, which failed, takes no turn.
        places.end(place(0));
        places.end(place(3));
        assert!(places.next(3, never_stuck, |_| true).is_empty());
        assert_eq!(places.next(3, never_stuck, never), [place(4)]);
        assert_eq!(places.next(3, |place| place.x == 2, never), [place(5)]);
        // Places that are stuck at their turn wait behind the others.
        assert_eq!(places.next(2, |place| place.x < 9, never), [place(9), place(10)]);
        (0..1_000).for_each(|x| places.end(place(x)));
        assert!(places.next(3, never_stuck, never).is_empty());
        assert!(places.queue.is_empty() && places.held.is_empty() && places.leaving.is_empty());
        assert!(places.numbers.capacity() < 64 && places.numbers.is_empty());
    }

    /// Promise, messages: Messages to far places load a bounded number of places at a time.
    #[test]
    fn unloadable_places_do_not_delay_others_up_to_a_bound() {
        let mut places = LetterPlaces::default();
        (0..100).for_each(|x| places.wait(ChunkPos::new(x, 0, 0)));
        let mut failed = FxHashSet::default();
        for _ in 0..100 {
            let next = places.next(2, |place| failed.contains(&place), |_| false);
            failed.extend(next);
        }
        assert_eq!((failed.len(), places.held.len()), (2 * STUCK, 2 * STUCK));
    }
}
