//! The search: best first over the tree, and what is kept of it between two calls.

use super::disc::{Area, Disc, bits, gap};
use super::tree::{FULL, ROOT, Tree};
use crate::space::{BatchPos, ColumnPos};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which columns of a batch are claimed; batches without claims are not in it.
pub(super) type Claims = FxHashMap<BatchPos, u16>;

/// How many searches are kept: about one for each viewer that is asked for in turn.
const MAX_FRONTIERS: usize = 32;
/// How many reopened batches are remembered for the searches that have not seen them.
const MAX_REOPENED: usize = 4096;
/// After this many batches put back into one search it starts anew, which drops their duplicates.
const MAX_PUT_BACK: usize = 1 << 16;
/// Columns along one edge of a root.
const ROOT_SIZE: u64 = 4 << (3 * ROOT);

/// Something that may hold the nearest work, ordered by how near that can be.
///
/// At equal distance a batch comes after everything that may still hold one of that distance, and batches are
/// ordered by z, then x. So an answer does not depend on how the search got there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    distance_squared: u64,
    kind: Kind,
    z: i64,
    x: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The roots at Chebyshev distance `x` from the centre's own, and all beyond.
    Ring,
    Root,
    Branch,
    Tile,
    Batch,
}

impl Kind {
    fn of_level(level: u32) -> Self {
        match level {
            0 => Self::Batch,
            1 => Self::Tile,
            2 => Self::Branch,
            _ => Self::Root,
        }
    }
}

/// A search around one centre, continued by the next call.
///
/// Every column of the disc that is missing and unclaimed is covered by a candidate at most as far away as the column.
/// Marks and claims only take columns away, so they need no notice: a candidate is looked at again when it comes first.
/// What becomes available again is put back from [`Reopened`].
#[derive(Clone, Debug)]
struct Frontier {
    disc: Disc,
    candidates: BinaryHeap<Reverse<Candidate>>,
    /// How far it has read [`Reopened`].
    seen: u64,
    put_back: usize,
    last_use: u64,
}

impl Frontier {
    fn restart(&mut self, disc: Disc, seen: u64) {
        self.disc = disc;
        self.candidates.clear();
        self.seen = seen;
        self.put_back = 0;
        self.push(Area::of(disc.center.batch(), ROOT));
        self.push_ring(1);
    }

    fn push(&mut self, area: Area) {
        if let Some(distance_squared) = self.disc.nearest(area.rect()) {
            self.push_at(area, distance_squared);
        }
    }

    fn push_at(&mut self, area: Area, distance_squared: u64) {
        let kind = Kind::of_level(area.level);
        self.candidates.push(Reverse(Candidate { distance_squared, kind, z: area.z, x: area.x }));
    }

    fn push_ring(&mut self, ring: i64) {
        let to_edge = |center: i64| {
            let place = center.rem_euclid(ROOT_SIZE as i64) as u64;
            (place + 1).min(ROOT_SIZE - place)
        };
        let inner = (ring as u64 - 1) * ROOT_SIZE;
        let distance = inner + to_edge(self.disc.center.x).min(to_edge(self.disc.center.z));
        if let Some(distance_squared) = self.disc.within(distance, 0) {
            self.candidates.push(Reverse(Candidate { distance_squared, kind: Kind::Ring, z: 0, x: ring }));
        }
    }

    fn expand_ring(&mut self, ring: i64) {
        let center = Area::of(self.disc.center.batch(), ROOT);
        let shift = ROOT_SIZE.trailing_zeros();
        let exists = |root: &i64| (i64::MIN >> shift..=i64::MAX >> shift).contains(root);
        for z in (center.z - ring..=center.z + ring).filter(exists) {
            // The first and the last row are whole, the others have only their two ends in the ring.
            let step = if (z - center.z).abs() == ring { 1 } else { 2 * ring as usize };
            for x in (center.x - ring..=center.x + ring).step_by(step).filter(exists) {
                self.push(Area { level: ROOT, x, z });
            }
        }
        self.push_ring(ring + 1);
    }

    fn expand(&mut self, area: Area, taken: u64) {
        if taken == u64::MAX {
            return;
        }
        let first = area.child(0).rect();
        let size = first.max_x.abs_diff(first.min_x) as i64;
        let gaps = |center: i64, min: i64| {
            std::array::from_fn::<u64, 8, _>(|place| {
                let min = min + place as i64 * (size + 1);
                gap(center, min, min + size)
            })
        };
        let (x, z) = (gaps(self.disc.center.x, first.min_x), gaps(self.disc.center.z, first.min_z));
        for index in bits(!taken) {
            if let Some(distance_squared) = self.disc.within(x[index as usize & 7], z[index as usize >> 3]) {
                self.push_at(area.child(index), distance_squared);
            }
        }
    }

    /// The batch with the nearest column that is missing and unclaimed, no farther than `limit`, a squared distance.
    fn nearest(&mut self, tree: &Tree, claims: &Claims, limit: u64) -> Option<(BatchPos, u64)> {
        loop {
            let Reverse(candidate) = *self.candidates.peek()?;
            let Candidate { distance_squared, kind, x, z } = candidate;
            if distance_squared > limit {
                return None;
            }
            let level = match kind {
                Kind::Batch => {
                    let batch = BatchPos::new(x, z);
                    let nearest = self.disc.nearest_of(batch, available(tree, claims, batch));
                    if nearest == Some(distance_squared) {
                        return Some((batch, distance_squared));
                    }
                    self.candidates.pop();
                    if let Some(nearest) = nearest {
                        self.push_at(Area { level: 0, x, z }, nearest);
                    }
                    continue;
                }
                Kind::Ring => {
                    self.candidates.pop();
                    self.expand_ring(x);
                    continue;
                }
                Kind::Root => ROOT,
                Kind::Branch => 2,
                Kind::Tile => 1,
            };
            self.candidates.pop();
            let area = Area { level, x, z };
            self.expand(area, tree.taken(area));
        }
    }
}

/// The columns of the batch that are missing and unclaimed.
pub(super) fn available(tree: &Tree, claims: &Claims, batch: BatchPos) -> u16 {
    FULL & !tree.completed(batch) & !claims.get(&batch).copied().unwrap_or(0)
}

/// The batches in which something became missing or unclaimed again, the latest of them.
#[derive(Clone, Debug, Default)]
struct Reopened {
    batches: Vec<BatchPos>,
    /// How many were dropped before the first of `batches`.
    dropped: u64,
    /// Whether a search has read the last one: until then it need not be noted again.
    read: bool,
}

impl Reopened {
    fn push(&mut self, batch: BatchPos) {
        if self.batches.last() == Some(&batch) && !self.read {
            return;
        }
        if self.batches.len() >= MAX_REOPENED {
            self.batches.drain(..MAX_REOPENED / 2);
            self.dropped += MAX_REOPENED as u64 / 2;
        }
        self.batches.push(batch);
        self.read = false;
    }

    fn end(&self) -> u64 {
        self.dropped + self.batches.len() as u64
    }

    /// What was noted since, unless part of it is forgotten.
    fn since(&self, seen: u64) -> Option<&[BatchPos]> {
        self.batches.get(usize::try_from(seen.checked_sub(self.dropped)?).ok()?..)
    }
}

/// The searches that are kept, one a centre, the longest unused replaced first.
#[derive(Clone, Debug, Default)]
pub(super) struct Frontiers {
    kept: Vec<Frontier>,
    reopened: Reopened,
    uses: u64,
}

impl Frontiers {
    /// A column of the batch is missing or unclaimed again.
    pub fn reopen(&mut self, batch: BatchPos) {
        if !self.kept.is_empty() {
            self.reopened.push(batch);
        }
    }

    /// How many candidates all searches keep: tests hold it against what it may grow to.
    #[cfg(test)]
    pub fn candidate_count(&self) -> usize {
        self.kept.iter().map(|frontier| frontier.candidates.len()).sum()
    }

    /// The batch with the nearest column of the disc that is missing and unclaimed.
    pub fn nearest(&mut self, tree: &Tree, claims: &Claims, center: ColumnPos, radius: u32) -> Option<(BatchPos, u64)> {
        let disc = Disc { center, radius };
        let end = self.reopened.end();
        let index = self.kept.iter().position(|frontier| frontier.disc.center == center).unwrap_or_else(|| {
            if self.kept.len() < MAX_FRONTIERS {
                let candidates = BinaryHeap::new();
                self.kept.push(Frontier { disc, candidates, seen: 0, put_back: usize::MAX, last_use: 0 });
                self.kept.len() - 1
            } else {
                let oldest = (0..self.kept.len()).min_by_key(|index| self.kept[*index].last_use).unwrap_or(0);
                self.kept[oldest].put_back = usize::MAX;
                oldest
            }
        });
        let frontier = &mut self.kept[index];
        match self.reopened.since(frontier.seen) {
            Some(batches)
                if radius <= frontier.disc.radius
                    && frontier.put_back.saturating_add(batches.len()) <= MAX_PUT_BACK =>
            {
                for batch in batches {
                    frontier.push(Area::of(*batch, 0));
                }
                frontier.put_back += batches.len();
                frontier.seen = end;
            }
            _ => frontier.restart(disc, end),
        }
        self.reopened.read = true;
        self.uses += 1;
        frontier.last_use = self.uses;
        frontier.nearest(tree, claims, disc.radius_squared())
    }
}
