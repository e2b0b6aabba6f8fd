//! What has arrived from other servers and is still in the store. A plain data structure.

use crate::space::{DimensionId, TilePos};
use crate::storage::servers::{CROSSINGS_AT_ONCE, CrossingId, Plot};
use std::collections::{BTreeMap, BTreeSet};

/// What has arrived from other servers. The store lists it until a commit has removed it.
#[derive(Debug, Default)]
pub struct Received {
    /// Those that the pending save or an earlier one removes.
    removed: BTreeSet<CrossingId>,
    /// Messages on their way to their region. The save that has the region's state after it got one removes it.
    underway: BTreeSet<CrossingId>,
}

impl Received {
    /// Returns `true` if it has arrived before.
    pub fn has(&self, id: CrossingId) -> bool {
        self.removed.contains(&id) || self.underway.contains(&id)
    }

    /// Notes that a message is on its way to its region.
    pub fn deliver(&mut self, id: CrossingId) {
        self.underway.insert(id);
    }

    /// Notes that a message did not reach its region. The next round finds it again.
    pub fn forget(&mut self, id: CrossingId) {
        self.underway.remove(&id);
    }

    /// Notes that the pending save removes these.
    pub fn remove(&mut self, ids: impl IntoIterator<Item = CrossingId>) {
        for id in ids {
            self.underway.remove(&id);
            self.removed.insert(id);
        }
    }

    /// Returns `true` if messages are on their way to plots like these.
    pub fn has_messages(&self, dimension: DimensionId, is_on: impl Fn(TilePos) -> bool) -> bool {
        self.underway.iter().any(|id| id.plot.0 == dimension && is_on(id.plot.1))
    }

    /// Forgets what a round no longer found on the plots that it read. Long lists are read in parts, so nothing is forgotten
    /// of those.
    pub fn forget_gone(&mut self, read: &BTreeSet<Plot>, found: impl Iterator<Item = CrossingId>) {
        let (mut listed, mut counts) = (BTreeSet::new(), BTreeMap::<Plot, usize>::new());
        for id in found {
            listed.insert(id);
            *counts.entry(id.plot).or_default() += 1;
        }
        let is_long = |plot: &Plot| counts.get(plot).is_some_and(|count| *count >= CROSSINGS_AT_ONCE);
        self.removed.retain(|id| listed.contains(id) || (read.contains(&id.plot) && is_long(&id.plot)));
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
        let read = [id(0).plot].into();
        received.forget_gone(&read, [id(1)].into_iter());
        assert_eq!((0..3).map(|number| received.has(id(number))).collect::<Vec<_>>(), [false, true, false]);
        received.remove([id(9_000)]);
        received.forget_gone(&read, (0..CROSSINGS_AT_ONCE as u64).map(id));
        assert!(received.has(id(9_000)), "it may be in the part that was not read");
        received.forget_gone(&BTreeSet::new(), std::iter::empty());
        assert!(!received.has(id(9_000)), "its plot is another server's");
    }
}
