//! The search: pages of the nearest batches, and the state that is kept between calls.
//!
//! A page holds every batch with wanted columns in a ring around the centre, nearest first. The width of a ring is
//! chosen to find about as many batches as requested: a few for a new centre, then twice as many as on the previous
//! page. Only open squares of the tree that intersect the ring are visited. The cost of a result hardly depends on its
//! distance, and a new centre costs little more than an old one.

use super::disc::{Area, Disc};
use super::frontiers::Changes;
use super::tree::{FULL, ROOT, Square, TILE, Tree};
use crate::space::{BatchPos, ColumnPos, bits, gap};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The intended number of candidates on the first page around a centre.
const FIRST_PAGE: usize = 16;
/// The maximum number of candidates on later pages.
const LARGEST_PAGE: usize = 1024;
/// A search restarts after this many batches were put back into it, which removes duplicates.
const MAX_PUT_BACK: usize = 1 << 12;
/// Columns along one edge of a root.
const ROOT_SIZE: u64 = 1 << Area::shift(ROOT);

/// The columns that a search looks for: the completed columns of one tree, or all columns, without those that are
/// completed or claimed in another tree.
pub(super) struct Sought<'a> {
    /// `None` for all columns.
    pub of: Option<&'a mut Tree>,
    pub without: &'a mut Tree,
}

/// The same square in both trees.
type Squares = (Square, Square);

impl Sought<'_> {
    fn root(&self, root: Area) -> Squares {
        (self.of.as_ref().map_or(Square::Full, |of| of.root(root)), self.without.root(root))
    }

    /// The children of a square of this level that may have wanted columns.
    #[inline]
    fn open(&self, level: u32, (of, without): Squares) -> u64 {
        let of = match (of, &self.of) {
            (Square::Full, _) => u64::MAX,
            (Square::Node(_), Some(tree)) => tree.completed_in_some(level, of),
            _ => 0,
        };
        of & !self.without.full_in(level, without)
    }

    #[inline]
    fn child(&self, (of, without): Squares, index: u32) -> Squares {
        let of = match (of, &self.of) {
            (Square::Node(_), Some(tree)) => tree.child(of, index),
            _ => of,
        };
        (of, self.without.child(without, index))
    }

    /// The batches of a tile that may have fewer than 16 wanted columns.
    #[inline]
    fn mixed(&self, (of, without): Squares) -> u64 {
        let missing = match (of, &self.of) {
            (Square::Full, _) => 0,
            (_, Some(tree)) => !tree.full_in(TILE, of),
            _ => u64::MAX,
        };
        missing | if let Square::Node(tile) = without { self.without.mixed_in(tile) } else { 0 }
    }

    #[inline]
    fn wanted_of(&self, (of, without): Squares, index: u32) -> u16 {
        let of = match (of, &self.of) {
            (Square::Node(_), Some(tree)) => tree.completed_of(of, index),
            (Square::Full, _) => FULL,
            _ => 0,
        };
        of & self.without.available_of(without, index)
    }

    /// The wanted columns of a batch.
    #[inline]
    pub fn wanted(&mut self, batch: BatchPos) -> u16 {
        let of = self.of.as_mut().map_or(FULL, |of| of.look(batch));
        of & self.without.available(batch)
    }
}

/// A batch with wanted columns and the distance of the nearest of them. Ordered by distance, then by z, then by x.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    distance_squared: u64,
    /// From the centre's batch to this one: z in the upper half, x in the lower half, both with the sign bit flipped.
    offset: u64,
}

const SIGNS: u64 = 1 << 63 | 1 << 31;

impl Candidate {
    /// The greatest candidate of this distance.
    fn last_at(distance_squared: u64) -> Self {
        Self { distance_squared, offset: u64::MAX }
    }

    /// A distance is at most 2^32 columns, so the offset fits.
    #[inline]
    fn new(distance_squared: u64, batch: BatchPos, center: BatchPos) -> Self {
        let (x, z) = (batch.x.wrapping_sub(center.x), batch.z.wrapping_sub(center.z));
        Self { distance_squared, offset: ((z as u64) << 32 | u64::from(x as u32)) ^ SIGNS }
    }

    #[inline]
    fn batch(self, center: BatchPos) -> BatchPos {
        let offset = self.offset ^ SIGNS;
        let (x, z) = (i64::from(offset as i32), i64::from((offset >> 32) as i32));
        BatchPos::new(center.x + x, center.z + z)
    }
}

/// A search around one centre that later calls continue.
///
/// Every batch whose nearest wanted column lies within `covered` has a candidate that is at most that far away.
/// Removed columns need no notification: a candidate is checked again when it becomes the first. Batches with new
/// columns are put back, as recorded in [`Changes`].
#[derive(Clone, Debug)]
pub(super) struct Frontier {
    pub center: ColumnPos,
    /// The number of changes that the search has read.
    seen: u64,
    page: Vec<Candidate>,
    /// The end of the pages so far.
    covered: Option<Candidate>,
    /// The last candidate of the page that is being made.
    ceiling: Candidate,
    /// Batches within `covered` that appeared again or moved farther away.
    put_back: BinaryHeap<Reverse<Candidate>>,
    page_size: usize,
    /// The extent of the next page, as a difference of squared distances.
    span: u64,
}

impl Frontier {
    pub fn new(center: ColumnPos) -> Self {
        Self {
            center,
            // Beyond all changes, so that the first use starts from scratch.
            seen: u64::MAX,
            page: Vec::new(),
            covered: None,
            ceiling: Candidate::last_at(0),
            put_back: BinaryHeap::new(),
            page_size: FIRST_PAGE,
            span: 0,
        }
    }

    /// The batch with the wanted column nearest to `center`, if it is within the radius. A new search extends at least
    /// to `hint`, a squared distance.
    #[inline]
    pub fn nearest(
        &mut self,
        sought: &mut Sought<'_>,
        changes: &mut Changes,
        (center, radius): (ColumnPos, u32),
        hint: impl FnOnce() -> u64,
    ) -> Option<(BatchPos, u64)> {
        let unseen = if self.center == center { changes.since(self.seen) } else { None };
        let is_continued = unseen.is_some_and(|batches| {
            batches.iter().for_each(|batch| self.put_back(*batch, sought));
            self.put_back.len() <= MAX_PUT_BACK
        });
        if !is_continued {
            self.restart(center, hint());
        }
        self.seen = changes.read_to_end();
        self.nearest_candidate(sought, radius)
    }

    fn restart(&mut self, center: ColumnPos, span: u64) {
        self.page.clear();
        self.covered = None;
        self.put_back.clear();
        self.page_size = FIRST_PAGE;
        self.span = span.max(8 * FIRST_PAGE as u64);
        self.center = center;
    }

    /// Adds a batch again in which wanted columns appeared.
    #[inline]
    fn put_back(&mut self, batch: BatchPos, sought: &mut Sought<'_>) {
        if let Some(distance_squared) = self.disc().nearest_of(batch, sought.wanted(batch)) {
            self.put_back_at(batch, distance_squared);
        }
    }

    #[inline]
    fn put_back_at(&mut self, batch: BatchPos, distance_squared: u64) {
        let candidate = Candidate::new(distance_squared, batch, self.center.batch());
        // A later page finds batches beyond this.
        if self.covered.is_some_and(|covered| candidate <= covered) {
            self.put_back.push(Reverse(candidate));
        }
    }

    /// The widest possible disc: only the ring limits the search.
    fn disc(&self) -> Disc {
        Disc { center: self.center, radius: u32::MAX }
    }

    #[inline]
    fn nearest_candidate(&mut self, sought: &mut Sought<'_>, radius: u32) -> Option<(BatchPos, u64)> {
        let radius_squared = u64::from(radius).pow(2);
        let (disc, center) = (self.disc(), self.center.batch());
        loop {
            let on_page = self.page.last().copied();
            let candidate = match (on_page, self.put_back.peek().map(|Reverse(put_back)| *put_back)) {
                (Some(on_page), Some(put_back)) => on_page.min(put_back),
                (Some(candidate), None) | (None, Some(candidate)) => candidate,
                (None, None) if self.turn_page(sought, radius_squared) => continue,
                (None, None) => return None,
            };
            if candidate.distance_squared > radius_squared {
                return None;
            }
            let batch = candidate.batch(center);
            let nearest = disc.nearest_of(batch, sought.wanted(batch));
            if nearest == Some(candidate.distance_squared) {
                return Some((batch, candidate.distance_squared));
            }
            if on_page == Some(candidate) {
                self.page.pop();
            } else {
                self.put_back.pop();
            }
            if let Some(distance_squared) = nearest {
                self.put_back_at(batch, distance_squared);
            }
        }
    }

    /// Makes the next page. Returns `false` if there is no more within the radius.
    fn turn_page(&mut self, sought: &Sought<'_>, radius_squared: u64) -> bool {
        loop {
            let start = match self.covered {
                Some(covered) if covered >= Candidate::last_at(radius_squared) => return false,
                Some(covered) => covered.distance_squared,
                None => 0,
            };
            self.ceiling = Candidate::last_at(start.saturating_add(self.span).min(radius_squared));
            self.visit_roots(sought);
            self.covered = Some(self.ceiling);
            if self.page.is_empty() {
                self.span = self.span.saturating_mul(4);
                continue;
            }
            self.page.sort_unstable_by(|a, b| b.cmp(a));
            let nearest = self.page.last().map_or(0, |nearest| nearest.distance_squared);
            let found = self.page.len() as u128;
            self.page_size = (2 * self.page_size).min(LARGEST_PAGE);
            let reached = u128::from(self.ceiling.distance_squared - nearest) + 1;
            self.span = u64::try_from(reached * self.page_size as u128 / found).unwrap_or(u64::MAX).max(16);
            return true;
        }
    }

    /// The number of candidates, which tests compare with its bound.
    #[cfg(test)]
    pub fn candidate_count(&self) -> usize {
        self.page.len() + self.put_back.len()
    }
}

/// The walk through the tree, which collects the candidates of a ring as the page.
impl Frontier {
    fn visit_roots(&mut self, sought: &Sought<'_>) {
        // If all columns are wanted, any root may contain some, even one without a node.
        let Some(of) = &sought.of else { return self.visit_rings(sought) };
        let disc = self.disc();
        let nearest = |(root, _): (Area, _)| Some((disc.nearest(root.bounds())?, root));
        let mut roots: Vec<_> = of.roots().filter_map(nearest).collect();
        roots.sort_unstable_by_key(|(distance_squared, root)| (*distance_squared, root.z, root.x));
        for (distance_squared, root) in roots {
            if distance_squared > self.ceiling.distance_squared {
                break;
            }
            self.visit(sought, root, sought.root(root));
        }
    }

    /// Visits ring after ring of roots around the root of the centre. Terminates because only roots with a node can be
    /// full: a ring with more roots than the graph is beyond the ceiling or contains wanted columns.
    fn visit_rings(&mut self, sought: &Sought<'_>) {
        let (disc, center) = (self.disc(), Area::of(self.center.batch(), ROOT));
        let exists = |root: &i64| (i64::MIN >> Area::shift(ROOT)..=i64::MAX >> Area::shift(ROOT)).contains(root);
        let to_edge = |center: i64| {
            let place = center.rem_euclid(ROOT_SIZE as i64) as u64;
            (place + 1).min(ROOT_SIZE - place)
        };
        let to_edge = to_edge(self.center.x).min(to_edge(self.center.z));
        self.visit(sought, center, sought.root(center));
        for ring in 1i64.. {
            let nearest = disc.within((ring as u64 - 1) * ROOT_SIZE + to_edge, 0);
            if nearest.is_none_or(|distance_squared| distance_squared > self.ceiling.distance_squared) {
                return;
            }
            for z in (center.z - ring..=center.z + ring).filter(exists) {
                // The first and the last row are complete; the others only have their two ends in the ring.
                let step = if (z - center.z).abs() == ring { 1 } else { 2 * ring as usize };
                for x in (center.x - ring..=center.x + ring).step_by(step).filter(exists) {
                    let root = Area { level: ROOT, x, z };
                    let nearest = disc.nearest(root.bounds());
                    if nearest.is_some_and(|distance_squared| distance_squared <= self.ceiling.distance_squared) {
                        self.visit(sought, root, sought.root(root));
                    }
                }
            }
        }
    }

    fn visit(&mut self, sought: &Sought<'_>, area: Area, square: Squares) {
        let open = sought.open(area.level, square);
        if open == 0 {
            return;
        }
        let (first, size) = (area.bounds().0, 1 << Area::shift(area.level - 1));
        let x = gaps_squared(self.center.x, first.x, size);
        let z = gaps_squared(self.center.z, first.z, size);
        if area.level == TILE {
            self.visit_tile(sought, (area, square, open), &x, &z);
            return;
        }
        let columns = outwards(&x);
        for row in outwards(&z) {
            let in_row = open >> (8 * row) & 0xff;
            if in_row == 0 {
                continue;
            }
            for column in columns {
                let distance_squared = x[column as usize].saturating_add(z[row as usize]);
                if distance_squared > self.ceiling.distance_squared {
                    break;
                }
                if in_row >> column & 1 == 1 {
                    let index = column | row << 3;
                    self.visit(sought, area.child(index), sought.child(square, index));
                }
            }
        }
    }

    fn visit_tile(
        &mut self,
        sought: &Sought<'_>,
        (area, square, open): (Area, Squares, u64),
        x: &[u64; 8],
        z: &[u64; 8],
    ) {
        let (disc, center, mixed) = (self.disc(), self.center.batch(), sought.mixed(square));
        let corner = BatchPos::new(area.x << 3, area.z << 3);
        for row in 0..8u32 {
            let z = z[row as usize];
            if z > self.ceiling.distance_squared {
                continue;
            }
            for column in bits(open >> (8 * row) & 0xff) {
                let mut distance_squared = x[column as usize].saturating_add(z);
                if distance_squared > self.ceiling.distance_squared {
                    continue;
                }
                let index = column | row << 3;
                let batch = BatchPos::new(corner.x + i64::from(column), corner.z + i64::from(row));
                if mixed >> index & 1 == 1 {
                    match disc.nearest_of(batch, sought.wanted_of(square, index)) {
                        Some(nearest) => distance_squared = nearest,
                        None => continue,
                    }
                }
                self.find(Candidate::new(distance_squared, batch, center));
            }
        }
    }

    #[inline]
    fn find(&mut self, candidate: Candidate) {
        if candidate > self.ceiling || self.covered.is_some_and(|covered| candidate <= covered) {
            return;
        }
        self.page.push(candidate);
        // The ring was wider than necessary, so the nearer half of the candidates suffices.
        if self.page.len() >= 2 * self.page_size {
            self.page.select_nth_unstable(self.page_size - 1);
            self.page.truncate(self.page_size);
            self.ceiling = self.page[self.page_size - 1];
        }
    }
}

/// The squared gaps between a centre and each of 8 adjacent stretches of `size` columns, starting at `min`.
#[inline]
fn gaps_squared(center: i64, min: i64, size: i64) -> [u64; 8] {
    std::array::from_fn(|place| {
        let min = min + place as i64 * size;
        let gap = gap(center, min, min + (size - 1));
        // No disc reaches this far.
        if gap > u64::from(u32::MAX) { u64::MAX } else { gap * gap }
    })
}

/// The places 0 to 7 from the nearest to the farthest. The gaps fall and then rise.
#[inline]
fn outwards(gaps: &[u64; 8]) -> [u32; 8] {
    let mut order = [0; 8];
    let (mut left, mut right) = (0, 7);
    // From the farthest backwards, because the farthest is always one of the ends.
    for place in order.iter_mut().rev() {
        if gaps[left as usize] > gaps[right as usize] {
            *place = left;
            left += 1;
        } else {
            *place = right;
            right = if right == 0 { 0 } else { right - 1 };
        }
    }
    order
}
