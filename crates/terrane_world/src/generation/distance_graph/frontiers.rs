//! What searches must be told, and the searches that are kept.

use super::search::{Frontier, Sought};
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

    /// What was noted since, unless part of it is forgotten.
    pub fn since(&self, seen: u64) -> Option<&[BatchPos]> {
        self.batches.get(usize::try_from(seen.checked_sub(self.dropped)?).ok()?..)
    }

    /// A search has read all of it. Gives what it has seen then.
    pub fn read_to_end(&mut self) -> u64 {
        self.read = true;
        self.dropped + self.batches.len() as u64
    }
}

/// The searches that are kept, one a centre, the longest unused replaced first.
#[derive(Clone, Debug, Default)]
pub(super) struct Frontiers {
    /// Each with its last use.
    kept: Vec<(u64, Frontier)>,
    /// The batches in which a column is missing or unclaimed again.
    reopened: Changes,
    uses: u64,
    /// Where something was found last around which centre, which says how far to look from one nearby.
    last: Option<(ColumnPos, u64)>,
}

impl Frontiers {
    /// A column of the batch is missing or unclaimed again.
    #[inline]
    pub fn reopen(&mut self, batch: BatchPos) {
        if !self.kept.is_empty() {
            self.reopened.push(batch);
        }
    }

    /// The batch with the nearest column of the disc that is sought.
    pub fn nearest(&mut self, sought: &mut Sought<'_>, center: ColumnPos, radius: u32) -> Option<(BatchPos, u64)> {
        let index = self.kept.iter().position(|(_, search)| search.center == center);
        let index = index.unwrap_or_else(|| {
            if self.kept.len() < MAX_FRONTIERS {
                self.kept.push((0, Frontier::new(center)));
                self.kept.len() - 1
            } else {
                (0..self.kept.len()).min_by_key(|index| self.kept[*index].0).unwrap_or(0)
            }
        });
        let (last_use, search) = &mut self.kept[index];
        self.uses += 1;
        *last_use = self.uses;
        let hint = || self.last.and_then(|last| reach_squared(last, center)).unwrap_or(0);
        let found = search.nearest(sought, &mut self.reopened, (center, radius), hint);
        if let Some((_, distance_squared)) = found {
            self.last = Some((center, distance_squared));
        }
        found
    }

    /// How many candidates all searches keep: tests hold it against what it may grow to.
    #[cfg(test)]
    pub fn candidate_count(&self) -> usize {
        self.kept.iter().map(|(_, search)| search.candidate_count()).sum()
    }
}

/// The square of a distance at which something lies, if what was found around another centre is still there and not too far
/// off.
fn reach_squared((other, distance_squared): (ColumnPos, u64), center: ColumnPos) -> Option<u64> {
    let drift = other.x.abs_diff(center.x).saturating_add(other.z.abs_diff(center.z));
    let reach = distance_squared.isqrt() + 1;
    (drift < 1 << 10 && reach < 1 << 20).then(|| (reach + drift).pow(2))
}
