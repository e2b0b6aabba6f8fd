//! Crossings that have arrived from other servers and are still in the store. A plain data structure.

use crate::space::{DimensionId, TilePos};
use crate::storage::servers::{CrossingId, Plot};
use std::collections::{BTreeMap, BTreeSet};

/// Crossings that have arrived from other servers. The store lists each until a commit has removed it.
#[derive(Debug, Default)]
pub struct Received {
    /// Crossings that the pending save or an earlier one removes.
    removed: BTreeSet<CrossingId>,
    /// Messages on their way to their region. The save that has the region's state after it got one removes it.
    underway: BTreeSet<CrossingId>,
    /// Messages that did not reach their region and are still in the store.
    forgotten: BTreeSet<CrossingId>,
}

impl Received {
    /// Returns `true` if it has arrived before.
    pub fn has(&self, id: CrossingId) -> bool {
        self.removed.contains(&id) || self.underway.contains(&id)
    }

    /// Notes that a message is on its way to its region.
    pub fn deliver(&mut self, id: CrossingId) {
        self.underway.insert(id);
        self.forgotten.remove(&id);
    }

    /// Notes that a message did not reach its region. It is found in the store again.
    pub fn forget(&mut self, id: CrossingId) {
        if self.underway.remove(&id) {
            self.forgotten.insert(id);
        }
    }

    /// The messages that are to be found in the store again.
    pub fn forgotten(&self) -> &BTreeSet<CrossingId> {
        &self.forgotten
    }

    /// Leaves the messages to a dimension to its next opening, which reads all of them.
    pub fn leave_to_opening(&mut self, dimension: DimensionId) {
        self.forgotten.retain(|id| id.plot.0 != dimension);
    }

    /// Notes that the pending save removes these.
    pub fn remove(&mut self, ids: impl IntoIterator<Item = CrossingId>) {
        for id in ids {
            self.underway.remove(&id);
            self.forgotten.remove(&id);
            self.removed.insert(id);
        }
    }

    /// Forgets these, which the store does not list any more.
    pub fn forget_removed(&mut self, ids: &BTreeSet<CrossingId>) {
        self.removed.retain(|id| !ids.contains(id));
    }

    /// Returns `true` if messages are on their way to plots like these.
    pub fn has_messages(&self, dimension: DimensionId, is_on: impl Fn(TilePos) -> bool) -> bool {
        self.underway.iter().any(|id| id.plot.0 == dimension && is_on(id.plot.1))
    }

    /// Forgets what a round no longer found. `after` and `last` are the ends of the parts that it read of long queues: of such a plot,
    /// it read the crossings behind that in `after`, up to and with that in `last`.
    pub fn forget_gone(
        &mut self,
        found: impl Iterator<Item = CrossingId>,
        after: &BTreeMap<Plot, CrossingId>,
        last: &BTreeMap<Plot, CrossingId>,
    ) {
        // The round has found them.
        self.forgotten.clear();
        let listed: BTreeSet<CrossingId> = found.collect();
        let was_read = |id: &CrossingId| {
            after.get(&id.plot).is_none_or(|after| id > after) && last.get(&id.plot).is_none_or(|last| id <= last)
        };
        self.removed.retain(|id| listed.contains(id) || !was_read(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> CrossingId {
        CrossingId { plot: (DimensionId(1), TilePos::new(0, 0)), sender: 2, number }
    }

    #[test]
    fn a_message_is_delivered_once_unless_it_comes_back() {
        let mut received = Received::default();
        received.deliver(id(1));
        assert!(received.has(id(1)) && received.has_messages(DimensionId(1), |plot| plot.x == 0));
        received.forget(id(1));
        assert!(!received.has(id(1)));
        received.deliver(id(1));
        received.remove([id(1)]);
        received.forget(id(1));
        assert!(received.has(id(1)) && !received.has_messages(DimensionId(1), |_| true));
    }

    #[test]
    fn what_the_store_may_still_list_is_remembered() {
        let mut received = Received::default();
        received.remove((0..3).map(id));
        let none = BTreeMap::new();
        received.forget_gone([id(1)].into_iter(), &none, &none);
        assert_eq!((0..3).map(|number| received.has(id(number))).collect::<Vec<_>>(), [false, true, false]);
        received.remove([id(300), id(9_000)]);
        let ends = |number| BTreeMap::from([(id(0).plot, id(number))]);
        received.forget_gone([id(1)].into_iter(), &none, &ends(256));
        assert!(received.has(id(300)) && received.has(id(9_000)), "they are behind what was read");
        received.forget_gone(std::iter::empty(), &ends(256), &ends(512));
        assert!(!received.has(id(300)) && received.has(id(1)) && received.has(id(9_000)), "only a part was read");
        received.forget_gone(std::iter::empty(), &none, &none);
        assert!(!received.has(id(1)) && !received.has(id(9_000)), "the plot is another server's");
    }
}
