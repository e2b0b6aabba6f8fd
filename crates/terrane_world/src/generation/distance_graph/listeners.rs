//! Listeners: notified of completed columns, each with the set of columns that it already has.

use super::disc::Disc;
use super::frontiers::Changes;
use super::search::{Frontier, Sought};
use super::tree::Tree;
use super::work::BatchColumns;
use crate::space::{BatchPos, ColumnPos};
use std::collections::BTreeMap;

/// The id of a listener, which [collects completed columns](super::DistanceGraph::collect_completed_in_range) from the
/// graph that assigned the id. Ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(u64);

#[derive(Clone, Debug, Default)]
pub(super) struct Listeners {
    /// The columns that each listener has, a subset of the completed ones and as compact, and its search.
    all: BTreeMap<ListenerId, (Tree, Frontier)>,
    next_id: u64,
    /// Batches with columns that became available to listeners.
    appeared: Changes,
}

impl Listeners {
    pub fn add(&mut self) -> ListenerId {
        let id = ListenerId(self.next_id);
        self.next_id += 1;
        self.all.insert(id, (Tree::default(), Frontier::new(ColumnPos::new(0, 0))));
        id
    }

    pub fn remove(&mut self, id: ListenerId) -> bool {
        self.all.remove(&id).is_some()
    }

    #[inline]
    pub fn completed(&mut self, batch: BatchPos) {
        if !self.all.is_empty() {
            self.appeared.push(batch);
        }
    }

    /// Removes columns that are now missing from all listeners, so that they are returned again once completed.
    pub fn unmarked(&mut self, batch: BatchPos, mask: u16) {
        for (given, _) in self.all.values_mut() {
            given.remove(batch, mask);
        }
    }

    /// Makes all listeners that have this completed column get it again.
    pub fn edited(&mut self, batch: BatchPos, mask: u16) {
        self.unmarked(batch, mask);
        self.completed(batch);
    }

    /// Records that the listener already has these columns.
    pub fn note_given(&mut self, id: ListenerId, batch: BatchPos, mask: u16) -> Option<()> {
        self.all.get_mut(&id)?.0.add(batch, mask);
        Some(())
    }

    /// Records that the listener no longer has these columns, so that they are returned again.
    pub fn take_back(&mut self, id: ListenerId, batch: BatchPos, mask: u16) -> Option<()> {
        self.all.get_mut(&id)?.0.remove(batch, mask);
        self.completed(batch);
        Some(())
    }

    /// Appends up to `max` columns and returns their number.
    pub fn collect(
        &mut self,
        id: ListenerId,
        completed: &mut Tree,
        disc: Disc,
        max: usize,
        columns: &mut Vec<ColumnPos>,
    ) -> Option<usize> {
        let (given, search) = self.all.get_mut(&id)?;
        let mut left = max;
        while left > 0 {
            let mut ungiven = Sought { of: Some(&mut *completed), without: &mut *given };
            let nearest = search.nearest(&mut ungiven, &mut self.appeared, (disc.center, disc.radius), || 0);
            let Some((batch, _)) = nearest else { break };
            let mask = disc.mask_of(batch, ungiven.wanted(batch));
            let mut in_range = BatchColumns::nearest_first(batch, mask, disc.center);
            let before = columns.len();
            columns.extend(in_range.by_ref().take(left));
            left -= columns.len() - before;
            given.add(batch, mask & !in_range.mask());
        }
        Some(max - left)
    }
}
