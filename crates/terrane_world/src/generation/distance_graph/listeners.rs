//! Who is told of completed columns, and what each was told of already.

use super::disc::Disc;
use super::frontiers::Changes;
use super::search::{Frontier, Sought};
use super::tree::Tree;
use super::work::BatchColumns;
use crate::space::{BatchPos, ColumnPos};
use std::collections::BTreeMap;

/// Names one that [collects completed columns](super::DistanceGraph::collect_completed_in_range) from the graph that
/// gave the id. Ids are never given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(u64);

/// All listeners of a graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Listeners {
    /// What each was given, a subset of what is completed and as small in memory, and its search.
    all: BTreeMap<ListenerId, (Tree, Frontier)>,
    next_id: u64,
    /// Batches in which a column is to be given that was not before.
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

    /// These columns are missing now: if they are completed again, they are given again.
    pub fn unmarked(&mut self, batch: BatchPos, mask: u16) {
        for (given, _) in self.all.values_mut() {
            given.remove(batch, mask);
        }
    }

    /// This completed column is to be given again to whoever has it.
    pub fn edited(&mut self, batch: BatchPos, mask: u16) {
        self.unmarked(batch, mask);
        self.completed(batch);
    }

    /// The listener has these columns already, from elsewhere.
    pub fn note_given(&mut self, id: ListenerId, batch: BatchPos, mask: u16) -> Option<()> {
        self.all.get_mut(&id)?.0.add(batch, mask);
        Some(())
    }

    /// The listener has these columns no more: they are to be given again.
    pub fn take_back(&mut self, id: ListenerId, batch: BatchPos, mask: u16) -> Option<()> {
        self.all.get_mut(&id)?.0.remove(batch, mask);
        self.completed(batch);
        Some(())
    }

    /// Gives up to `max` columns, and answers how many.
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
