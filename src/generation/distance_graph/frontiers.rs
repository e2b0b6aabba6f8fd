//! What searches must be told, and the searches that are kept.

use super::search::{Frontier, Hint, Searched};
use crate::space::{BatchPos, ColumnPos};

/// How many searches are kept: about one for each viewer that is asked for in turn.
const MAX_FRONTIERS: usize = 32;
/// How many changes are remembered for the searches that have not seen them.
const MAX_CHANGES: usize = 4096;

/// The batches in which something appeared that a search looks for, the latest of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    batches: Vec<BatchPos>,
    /// How many were dropped before the first of `batches`.
    dropped: u64,
    /// Whether a search has read the last one: until then it need not be noted again.
    read: bool,
}

impl Changes {
    #[inline]
    pub fn push(&mut self, batch: BatchPos) {
        if self.batches.last() == Some(&batch) && !self.read {
            return;
        }
        if self.batches.len() >= MAX_CHANGES {
            self.batches.drain(..MAX_CHANGES / 2);
            self.dropped += MAX_CHANGES as u64 / 2;
        }
        self.batches.push(batch);
        self.read = false;
    }

    /// So much changed that every search is to begin anew.
    pub fn forget(&mut self) {
        // One more than there were, so that nobody who read to the end has seen it.
        self.dropped = self.end() + 1;
        self.batches.clear();
    }

    fn end(&self) -> u64 {
        self.dropped + self.batches.len() as u64
    }

    /// What was noted since, unless part of it is forgotten.
    fn since(&self, seen: u64) -> Option<&[BatchPos]> {
        self.batches.get(usize::try_from(seen.checked_sub(self.dropped)?).ok()?..)
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        self.batches.capacity() * size_of::<BatchPos>()
    }
}

/// A search that hears of changes.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub frontier: Frontier,
    /// How far it has read the changes.
    seen: u64,
    last_use: u64,
}

impl Search {
    pub fn new(center: ColumnPos) -> Self {
        // Behind everything that was ever noted, so that the first use begins anew.
        Self { frontier: Frontier::new(center), seen: u64::MAX, last_use: 0 }
    }

    /// The batch of the ground with the nearest column to `center`, if that is within the radius.
    pub fn nearest(
        &mut self,
        ground: &mut impl Searched,
        changes: &mut Changes,
        center: ColumnPos,
        radius: u32,
        hint: Option<Hint>,
    ) -> Option<(BatchPos, u64)> {
        let unseen = if self.frontier.center == center { changes.since(self.seen) } else { None };
        match unseen {
            Some(batches) => batches.iter().for_each(|batch| self.frontier.put_back(*batch, ground)),
            None => self.frontier.restart(center, hint),
        }
        if self.frontier.is_crowded() {
            self.frontier.restart(center, hint);
        }
        self.seen = changes.end();
        changes.read = true;
        self.frontier.nearest(ground, radius)
    }
}

/// The searches that are kept, one a centre, the longest unused replaced first.
#[derive(Clone, Debug, Default)]
pub(super) struct Frontiers {
    kept: Vec<Search>,
    /// The batches in which a column is missing or unclaimed again.
    reopened: Changes,
    uses: u64,
    last: Option<Hint>,
}

impl Frontiers {
    /// A column of the batch is missing or unclaimed again.
    #[inline]
    pub fn reopen(&mut self, batch: BatchPos) {
        if !self.kept.is_empty() {
            self.reopened.push(batch);
        }
    }

    /// The batch with the nearest column of the disc that the ground has.
    pub fn nearest(&mut self, ground: &mut impl Searched, center: ColumnPos, radius: u32) -> Option<(BatchPos, u64)> {
        let index = self.kept.iter().position(|search| search.frontier.center == center);
        let index = index.unwrap_or_else(|| {
            if self.kept.len() < MAX_FRONTIERS {
                self.kept.push(Search::new(center));
                self.kept.len() - 1
            } else {
                (0..self.kept.len()).min_by_key(|index| self.kept[*index].last_use).unwrap_or(0)
            }
        });
        let search = &mut self.kept[index];
        self.uses += 1;
        search.last_use = self.uses;
        let found = search.nearest(ground, &mut self.reopened, center, radius, self.last);
        if let Some((_, distance_squared)) = found {
            self.last = Some(Hint { center, distance_squared });
        }
        found
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let kept = self.kept.iter().map(|search| search.frontier.memory()).sum::<usize>();
        self.kept.capacity() * size_of::<Search>() + kept + self.reopened.memory()
    }

    /// How many candidates all searches keep: tests hold it against what it may grow to.
    #[cfg(test)]
    pub fn candidate_count(&self) -> usize {
        self.kept.iter().map(|search| search.frontier.candidate_count()).sum()
    }
}
