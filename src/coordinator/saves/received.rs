//! Crossings that have arrived, or that are on their way on this server, and are still in the store. A plain data structure.

use crate::space::{DimensionId, TilePos};
use crate::storage::servers::{CrossingId, Plot};
use std::collections::{BTreeMap, BTreeSet};

/// Crossings that have arrived, from other servers or from regions here. The store lists each until a commit has removed it.
#[derive(Debug, Default)]
pub struct Received {
    /// Crossings that the pending save or an earlier one removes, each with the number of its commit.
    removed: BTreeMap<CrossingId, u64>,
    /// Messages on their way to their region. The save that has the region's state after it got one removes it.
    underway: BTreeSet<CrossingId>,
    /// Messages that did not reach their region and are still in the store.
    forgotten: BTreeSet<CrossingId>,
}

impl Received {
    /// Returns `true` if it has arrived before.
    pub fn has(&self, id: CrossingId) -> bool {
        self.removed.contains_key(&id) || self.underway.contains(&id)
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

    /// Leaves the messages to plots like these to whoever opens them next and reads all of them.
    pub fn leave(&mut self, is_left: impl Fn(Plot) -> bool) {
        self.forgotten.retain(|id| !is_left(id.plot));
    }

    /// Notes that a commit removes these.
    pub fn remove(&mut self, ids: impl IntoIterator<Item = CrossingId>, commit: u64) {
        for id in ids {
            self.underway.remove(&id);
            self.forgotten.remove(&id);
            self.removed.insert(id, commit);
        }
    }

    /// Forgets those that the store had removed with this commit, since nobody who reads it from then on finds them.
    pub fn forget_removed(&mut self, commit: u64) {
        self.removed.retain(|_, removed_with| *removed_with > commit);
    }

    /// The plots of a dimension to which messages are on their way.
    pub fn plots(&self, dimension: DimensionId) -> BTreeSet<TilePos> {
        self.underway.iter().filter(|id| id.plot.0 == dimension).map(|id| id.plot.1).collect()
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
        assert!(received.has(id(1)) && !received.plots(DimensionId(1)).is_empty());
        received.forget(id(1));
        assert!(!received.has(id(1)));
        received.deliver(id(1));
        received.remove([id(1)], 1);
        received.forget(id(1));
        assert!(received.has(id(1)) && received.plots(DimensionId(1)).is_empty());
    }

    #[test]
    fn what_the_store_may_still_list_is_remembered() {
        let mut received = Received::default();
        received.remove((0..3).map(id), 4);
        received.remove([id(3)], 5);
        received.forget_removed(3);
        assert!((0..4).all(|number| received.has(id(number))));
        received.forget_removed(4);
        assert_eq!((0..4).map(|number| received.has(id(number))).collect::<Vec<_>>(), [false, false, false, true]);
    }

    #[test]
    fn what_came_back_is_left_to_the_next_owner_of_its_plot() {
        let mut received = Received::default();
        received.deliver(id(1));
        assert_eq!(received.plots(DimensionId(1)), BTreeSet::from([id(1).plot.1]));
        received.forget(id(1));
        received.leave(|plot| plot.0 != DimensionId(1));
        assert!(received.forgotten().contains(&id(1)));
        received.leave(|plot| plot.0 == DimensionId(1));
        assert!(received.forgotten().is_empty() && received.plots(DimensionId(1)).is_empty());
    }
}
