//! The tree of completed columns: a full node is one bit in its parent, an empty one is nothing.

use super::disc::{Area, Disc, Rect, bits};
use crate::space::BatchPos;
use rustc_hash::FxHashMap;

/// All 16 columns of a batch.
pub(super) const FULL: u16 = u16::MAX;

type Root = Branch<Branch<Branch<u16>>>;

/// The level of a root: 8 x 8 x 8 batches a side.
pub(super) const ROOT: u32 = Root::LEVEL;
/// The level of 8 x 8 batches.
pub(super) const TILE: u32 = 1;

/// What happens to one batch.
#[derive(Clone, Copy)]
pub(super) struct Change {
    pub add: u16,
    pub remove: u16,
    /// The columns of the batch that are claimed after the change.
    pub claimed: u16,
}

/// A node of the tree; a batch's mask of completed columns is one too.
trait Node: Default {
    const LEVEL: u32;

    fn filled() -> Self;

    fn is_full(&self) -> bool;

    fn is_empty(&self) -> bool;

    /// Whether no column of it is both missing and unclaimed. Only a batch needs to be told what is claimed in it.
    fn is_taken(&self, claimed: u16) -> bool;

    /// Applies the change, and answers the batch's mask from before.
    fn update(&mut self, batch: BatchPos, change: Change) -> u16;

    fn completed(&self, batch: BatchPos) -> u16;

    /// Which children of the node at `level` above the batch are taken.
    fn taken(&self, batch: BatchPos, level: u32) -> u64;

    fn missing_count(&self) -> u64;

    /// The missing columns of the batches that have a missing column in the disc.
    fn missing_in(&self, area: Area, disc: &Disc) -> u64;

    /// Calls `visit` for each area of level 1 that has a completed column.
    fn visit_tiles(&self, area: Area, visit: &mut impl FnMut(Area));
}

impl Node for u16 {
    const LEVEL: u32 = 0;

    fn filled() -> Self {
        FULL
    }

    fn is_full(&self) -> bool {
        *self == FULL
    }

    fn is_empty(&self) -> bool {
        *self == 0
    }

    fn is_taken(&self, claimed: u16) -> bool {
        *self | claimed == FULL
    }

    fn update(&mut self, _: BatchPos, change: Change) -> u16 {
        let before = *self;
        *self = (before | change.add) & !change.remove;
        before
    }

    fn completed(&self, _: BatchPos) -> u16 {
        *self
    }

    fn taken(&self, _: BatchPos, _: u32) -> u64 {
        0
    }

    fn missing_count(&self) -> u64 {
        u64::from(self.count_zeros())
    }

    fn missing_in(&self, area: Area, disc: &Disc) -> u64 {
        disc.nearest_of(area.min_batch(), !*self).map_or(0, |_| self.missing_count())
    }

    fn visit_tiles(&self, _: Area, _: &mut impl FnMut(Area)) {}
}

/// 8 x 8 nodes of the level below, each in one of three states: full (a bit), partial (kept), empty (neither).
#[derive(Clone, Debug)]
struct Branch<C> {
    /// Children with nothing missing.
    full: u64,
    /// Children with nothing that is both missing and unclaimed; a superset of `full`.
    taken: u64,
    /// Children that are kept, in the order of their bits.
    partial: u64,
    children: Vec<C>,
}

impl<C> Default for Branch<C> {
    fn default() -> Self {
        Self { full: 0, taken: 0, partial: 0, children: Vec::new() }
    }
}

impl<C: Node> Branch<C> {
    fn bit(batch: BatchPos) -> u64 {
        let shift = 3 * C::LEVEL;
        1 << ((batch.x >> shift & 7) | (batch.z >> shift & 7) << 3)
    }

    fn place(&self, bit: u64) -> usize {
        (self.partial & (bit - 1)).count_ones() as usize
    }

    fn partial(&self, bit: u64) -> Option<&C> {
        if self.partial & bit == 0 { None } else { self.children.get(self.place(bit)) }
    }

    fn remove(&mut self, bit: u64, place: usize) {
        self.children.remove(place);
        self.partial &= !bit;
        let capacity = self.children.capacity();
        if capacity > 8 && self.children.len() <= capacity / 4 {
            self.children.shrink_to(capacity / 2);
        }
    }

    fn set_taken(&mut self, bit: u64, taken: bool) {
        self.taken = if taken { self.taken | bit } else { self.taken & !bit };
    }
}

impl<C: Node> Node for Branch<C> {
    const LEVEL: u32 = C::LEVEL + 1;

    fn filled() -> Self {
        Self { full: u64::MAX, taken: u64::MAX, partial: 0, children: Vec::new() }
    }

    fn is_full(&self) -> bool {
        self.full == u64::MAX
    }

    fn is_empty(&self) -> bool {
        self.full | self.taken | self.partial == 0
    }

    fn is_taken(&self, _: u16) -> bool {
        self.taken == u64::MAX
    }

    fn update(&mut self, batch: BatchPos, change: Change) -> u16 {
        let bit = Self::bit(batch);
        let place = self.place(bit);
        if self.partial & bit != 0 {
            let child = &mut self.children[place];
            let before = child.update(batch, change);
            let (full, empty, taken) = (child.is_full(), child.is_empty(), child.is_taken(change.claimed));
            if full || empty {
                self.remove(bit, place);
            }
            if full {
                self.full |= bit;
            }
            self.set_taken(bit, taken);
            return before;
        }
        if self.full & bit != 0 && change.remove == 0 {
            return FULL;
        }
        let mut child = if self.full & bit == 0 { C::default() } else { C::filled() };
        let before = child.update(batch, change);
        self.set_taken(bit, child.is_taken(change.claimed));
        self.full &= !bit;
        if child.is_full() {
            self.full |= bit;
        } else if !child.is_empty() {
            self.children.insert(place, child);
            self.partial |= bit;
        }
        before
    }

    fn completed(&self, batch: BatchPos) -> u16 {
        let bit = Self::bit(batch);
        if self.full & bit != 0 { FULL } else { self.partial(bit).map_or(0, |child| child.completed(batch)) }
    }

    fn taken(&self, batch: BatchPos, level: u32) -> u64 {
        let bit = Self::bit(batch);
        if level == Self::LEVEL {
            self.taken
        } else if self.taken & bit != 0 {
            u64::MAX
        } else {
            self.partial(bit).map_or(0, |child| child.taken(batch, level))
        }
    }

    fn missing_count(&self) -> u64 {
        let empty = u64::from((self.full | self.partial).count_zeros()) * Area::column_count(C::LEVEL);
        empty + self.children.iter().map(C::missing_count).sum::<u64>()
    }

    fn missing_in(&self, area: Area, disc: &Disc) -> u64 {
        if disc.contains(area.rect()) {
            return self.missing_count();
        }
        bits(!self.full)
            .map(|index| {
                let child = area.child(index);
                let rect = child.rect();
                if disc.nearest(rect).is_none() {
                    0
                } else if let Some(node) = self.partial(1 << index) {
                    node.missing_in(child, disc)
                } else if C::LEVEL == 0 || disc.contains(rect) {
                    Area::column_count(C::LEVEL)
                } else {
                    // One area of at most 2048 x 2048 columns.
                    disc.columns_of_batches_in_range(rect) as u64
                }
            })
            .sum()
    }

    fn visit_tiles(&self, area: Area, visit: &mut impl FnMut(Area)) {
        if Self::LEVEL == TILE {
            if self.full | self.partial != 0 {
                visit(area);
            }
            return;
        }
        for index in bits(self.full | self.partial) {
            match self.partial(1 << index) {
                Some(child) => child.visit_tiles(area.child(index), visit),
                None => C::filled().visit_tiles(area.child(index), visit),
            }
        }
    }
}

/// Every root that has a completed or a wholly claimed batch.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// By z, then x.
    roots: FxHashMap<(i64, i64), Root>,
}

impl Tree {
    fn root(&self, batch: BatchPos) -> Option<&Root> {
        let area = Area::of(batch, ROOT);
        self.roots.get(&(area.z, area.x))
    }

    /// Applies the change, and answers which columns of the batch were completed before.
    pub fn update(&mut self, batch: BatchPos, change: Change) -> u16 {
        let area = Area::of(batch, ROOT);
        let root = self.roots.entry((area.z, area.x)).or_default();
        let before = root.update(batch, change);
        if root.is_empty() {
            self.roots.remove(&(area.z, area.x));
        }
        before
    }

    /// Which columns of the batch are completed.
    pub fn completed(&self, batch: BatchPos) -> u16 {
        self.root(batch).map_or(0, |root| root.completed(batch))
    }

    /// Which children of the area have nothing that is both missing and unclaimed.
    pub fn taken(&self, area: Area) -> u64 {
        let batch = area.min_batch();
        self.root(batch).map_or(0, |root| root.taken(batch, area.level))
    }

    /// The missing columns of the batches that have a missing column in the disc.
    pub fn missing_in(&self, disc: &Disc) -> u128 {
        let area = |(z, x)| Area { level: ROOT, x, z };
        let mut roots: Vec<_> =
            self.roots.iter().filter(|(key, _)| disc.nearest(area(**key).rect()).is_some()).collect();
        roots.sort_unstable_by_key(|(key, _)| **key);
        let mut total: u128 = roots.iter().map(|(key, root)| u128::from(root.missing_in(area(**key), disc))).sum();

        // Empty land is counted in stretches between the roots, since a wide disc spans more roots than can be visited.
        let bounds = disc.bounds();
        let corner = |x: i64, z: i64| Area::of(BatchPos::new(x >> 2, z >> 2), ROOT);
        let (min, max) = (corner(bounds.min_x, bounds.min_z), corner(bounds.max_x, bounds.max_z));
        let mut roots = roots.iter().map(|(key, _)| **key).peekable();
        for z in min.z..=max.z {
            let mut next = min.x;
            loop {
                let root = roots.next_if(|key| key.0 == z).map(|(_, x)| x);
                let end = root.map_or(max.x, |x| x - 1);
                if next <= end {
                    let (first, last) = (area((z, next)).rect(), area((z, end)).rect());
                    total += disc.columns_of_batches_in_range(Rect { max_x: last.max_x, ..first });
                }
                let Some(x) = root else { break };
                next = x + 1;
            }
        }
        total
    }

    /// Every area of level 1 that has a completed column, ordered by root.
    pub fn tiles(&self) -> impl Iterator<Item = Area> {
        let mut keys: Vec<_> = self.roots.keys().copied().collect();
        keys.sort_unstable();
        keys.into_iter().flat_map(|key| {
            let mut tiles = Vec::new();
            if let Some(root) = self.roots.get(&key) {
                root.visit_tiles(Area { level: ROOT, x: key.1, z: key.0 }, &mut |tile| tiles.push(tile));
            }
            tiles
        })
    }

    /// How many nodes are kept, and how many of them are batches: tests hold it against what must collapse.
    #[cfg(test)]
    pub fn node_counts(&self) -> (usize, usize) {
        let (mut nodes, mut batches) = (self.roots.len(), 0);
        for area in self.roots.values() {
            nodes += area.children.len();
            for tile in area.children.iter().flat_map(|child| &child.children) {
                nodes += 1;
                batches += tile.children.len();
            }
        }
        (nodes, batches)
    }
}
