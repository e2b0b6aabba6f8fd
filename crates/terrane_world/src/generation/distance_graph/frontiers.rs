//! The kept searches, and the changes that they must be notified of.

use super::search::{Frontier, Sought};
use crate::space::{BatchPos, ColumnPos};

/// The number of searches that are kept: about one for each viewer that is served in turn.
const MAX_FRONTIERS: usize = 32;
/// The number of changes that are remembered for searches that have not seen them.
const MAX_CHANGES: usize = 4096;

/// The latest batches in which wanted columns appeared.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    batches: Vec<BatchPos>,
    /// The number of entries that were dropped before the first of `batches`.
    dropped: u64,
    /// `true` if a search has read the last entry. Until then, that batch need not be added again.
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

    /// The changes since `seen`; `None` if some of them were dropped.
    pub fn since(&self, seen: u64) -> Option<&[BatchPos]> {
        self.batches.get(usize::try_from(seen.checked_sub(self.dropped)?).ok()?..)
    }

    /// Marks all changes as read, and returns the new value of `seen`.
    pub fn read_to_end(&mut self) -> u64 {
        self.read = true;
        self.dropped + self.batches.len() as u64
    }
}

/// The kept searches, one per centre. The least recently used one is replaced first.
#[derive(Clone, Debug, Default)]
pub(super) struct Frontiers {
    /// Each search with the time of its last use.
    kept: Vec<(u64, Frontier)>,
    /// The batches with columns that are missing or unclaimed again.
    reopened: Changes,
    uses: u64,
    /// The last centre and the distance of its result: a hint for the next search nearby.
    last: Option<(ColumnPos, u64)>,
}

impl Frontiers {
    /// Records that a column of the batch is missing or unclaimed again.
    #[inline]
    pub fn reopen(&mut self, batch: BatchPos) {
        if !self.kept.is_empty() {
            self.reopened.push(batch);
        }
    }

    /// The batch with the nearest wanted column in the disc.
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

    /// The number of candidates of all searches, which tests compare with its bound.
    #[cfg(test)]
    pub fn candidate_count(&self) -> usize {
        self.kept.iter().map(|(_, search)| search.candidate_count()).sum()
    }
}

/// A squared distance that reaches the result of another centre, if that result still exists and is not too far away.
fn reach_squared((other, distance_squared): (ColumnPos, u64), center: ColumnPos) -> Option<u64> {
    let drift = other.x.abs_diff(center.x).saturating_add(other.z.abs_diff(center.z));
    let reach = distance_squared.isqrt() + 1;
    (drift < 1 << 10 && reach < 1 << 20).then(|| (reach + drift).pow(2))
}
