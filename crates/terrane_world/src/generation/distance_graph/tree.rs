//! The tree of completed columns: a full square is one bit in its parent, an empty one takes no memory.
//!
//! A root has 8 x 8 branches, a branch 8 x 8 tiles, and a tile 8 x 8 batches. Only squares that are neither full nor
//! empty have a node, and tiles with claims. Nodes are numbered slots, so that the last tile can be remembered by its
//! number: most changes are in the same tile as the change before.

mod squares;
#[cfg(test)]
mod tests;

use super::disc::Area;
use super::masks::{List, Masks};
use super::slab::Slab;
use crate::space::BatchPos;
use rustc_hash::FxHashMap;

/// All 16 columns of a batch.
pub(super) const FULL: u16 = u16::MAX;
/// The level of a root: 8 x 8 x 8 batches a side.
pub(super) const ROOT: u32 = 3;
/// The level of 8 x 8 tiles.
pub(super) const BRANCH: u32 = 2;
/// The level of 8 x 8 batches.
pub(super) const TILE: u32 = 1;

const NONE: u32 = u32::MAX;

/// A square of the tree above the batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Square {
    Empty,
    Full,
    /// The number of a node of its level.
    Node(u32),
}

/// A node of level 2 or 3.
#[derive(Clone, Debug, Default)]
pub(super) struct Branch {
    /// Children without missing columns.
    pub full: u64,
    /// Children with a node.
    pub kept: u64,
    /// The numbers of the child nodes, in the order of their bits.
    children: Vec<u32>,
}

impl Branch {
    fn new(full: u64) -> Self {
        Self { full, ..Self::default() }
    }

    fn rank(&self, bit: u64) -> usize {
        (self.kept & (bit - 1)).count_ones() as usize
    }

    #[inline]
    pub fn child(&self, index: u32) -> Square {
        let bit = 1 << index;
        if self.full & bit != 0 {
            Square::Full
        } else if self.kept & bit != 0 {
            Square::Node(self.children[self.rank(bit)])
        } else {
            Square::Empty
        }
    }

    fn set_child(&mut self, index: u32, child: Square) {
        let bit = 1 << index;
        let rank = self.rank(bit);
        match (self.kept & bit != 0, child) {
            (true, Square::Node(number)) => self.children[rank] = number,
            (true, _) => drop(self.children.remove(rank)),
            (false, Square::Node(number)) => {
                if self.children.len() == self.children.capacity() {
                    self.children.reserve_exact(4);
                }
                self.children.insert(rank, number);
            }
            (false, _) => {}
        }
        self.full &= !bit;
        self.kept &= !bit;
        match child {
            Square::Full => self.full |= bit,
            Square::Node(_) => self.kept |= bit,
            Square::Empty => {}
        }
    }
}

/// A node of level 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    /// Batches without missing columns.
    pub full: u64,
    /// Batches with both completed and missing columns.
    pub partial: u64,
    /// The masks of the partial batches.
    list: List,
    /// The number of the tile's [`ClaimTable`], if it has claimed columns.
    claims: u32,
}

impl Tile {
    const fn new(full: u64) -> Self {
        Self { full, partial: 0, list: List::NONE, claims: NONE }
    }
}

/// The claimed columns of a tile. All zero in a free slot.
#[derive(Clone, Copy, Debug)]
struct ClaimTable {
    /// Batches with a claimed column.
    any: u64,
    masks: [u16; 64],
}

const NO_CLAIMS: ClaimTable = ClaimTable { any: 0, masks: [0; 64] };

/// All roots with completed or claimed columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// Nodes of level 3 by z, then x. A full root has 64 full children.
    roots: FxHashMap<(i64, i64), u32>,
    /// Nodes of levels 2 and 3.
    branches: Slab<Branch>,
    tiles: Slab<Tile>,
    masks: Masks,
    claims: Slab<ClaimTable>,
    /// The last used tile with a node: its x and z in batches >> 3, and its number; `None` if that node was removed.
    recent: Option<(i64, i64, u32)>,
}

/// The index of the child of a node of `level` that contains the batch.
#[inline]
pub(super) fn child_index(batch: BatchPos, level: u32) -> u32 {
    let shift = 3 * (level - 1);
    (batch.x >> shift & 7 | (batch.z >> shift & 7) << 3) as u32
}

impl Tree {
    fn root_key(batch: BatchPos) -> (i64, i64) {
        (batch.z >> (3 * ROOT), batch.x >> (3 * ROOT))
    }

    /// The roots with a node, in no particular order.
    pub fn roots(&self) -> impl ExactSizeIterator<Item = (Area, u32)> {
        self.roots.iter().map(|(&(z, x), &number)| (Area { level: ROOT, x, z }, number))
    }

    /// A node of level 2 or 3.
    #[inline]
    pub fn branch(&self, number: u32) -> &Branch {
        &self.branches[number]
    }

    #[inline]
    pub fn tile(&self, number: u32) -> &Tile {
        &self.tiles[number]
    }

    /// The square of this root.
    pub fn root(&self, root: Area) -> Square {
        self.roots.get(&(root.z, root.x)).map_or(Square::Empty, |number| Square::Node(*number))
    }

    /// The square of level 1 that contains the batch.
    fn find(&self, batch: BatchPos) -> Square {
        let Some(&root) = self.roots.get(&Self::root_key(batch)) else { return Square::Empty };
        match self.branches[root].child(child_index(batch, ROOT)) {
            Square::Node(branch) => self.branches[branch].child(child_index(batch, BRANCH)),
            square => square,
        }
    }

    /// Like [`Self::find`], but faster in the last used tile.
    #[inline]
    fn locate(&mut self, batch: BatchPos) -> Square {
        match self.recent {
            Some((x, z, number)) if x == batch.x >> 3 && z == batch.z >> 3 => Square::Node(number),
            _ => self.locate_another(batch),
        }
    }

    #[inline(never)]
    fn locate_another(&mut self, batch: BatchPos) -> Square {
        let square = self.find(batch);
        if let Square::Node(number) = square {
            self.recent = Some((batch.x >> 3, batch.z >> 3, number));
        }
        square
    }

    /// The completed columns of the batch.
    pub fn completed(&self, batch: BatchPos) -> u16 {
        self.completed_of(self.find(batch), child_index(batch, TILE))
    }

    /// Like [`Self::completed`], but faster in the last used tile.
    #[inline]
    pub fn look(&mut self, batch: BatchPos) -> u16 {
        let square = self.locate(batch);
        self.completed_of(square, child_index(batch, TILE))
    }

    /// The columns of the batch that are missing and unclaimed.
    pub fn available(&mut self, batch: BatchPos) -> u16 {
        let square = self.locate(batch);
        self.available_of(square, child_index(batch, TILE))
    }

    /// The completed columns of a batch in a square of level 1.
    #[inline]
    pub fn completed_of(&self, square: Square, index: u32) -> u16 {
        match square {
            Square::Empty => 0,
            Square::Full => FULL,
            Square::Node(tile) => self.completed_in(tile, index),
        }
    }

    /// The columns of a batch in a square of level 1 that are missing and unclaimed.
    #[inline]
    pub fn available_of(&self, square: Square, index: u32) -> u16 {
        match square {
            Square::Empty => FULL,
            Square::Full => 0,
            Square::Node(tile) => FULL & !self.completed_in(tile, index) & !self.claimed_in(tile, index),
        }
    }

    /// The full children of a square of this level.
    #[inline]
    pub fn full_in(&self, level: u32, square: Square) -> u64 {
        match square {
            Square::Empty => 0,
            Square::Full => u64::MAX,
            Square::Node(tile) if level == TILE => self.tiles[tile].full,
            Square::Node(branch) => self.branches[branch].full,
        }
    }

    /// The children of a square of this level that have completed columns.
    #[inline]
    pub fn completed_in_some(&self, level: u32, square: Square) -> u64 {
        match square {
            Square::Empty => 0,
            Square::Full => u64::MAX,
            Square::Node(tile) if level == TILE => self.tiles[tile].full | self.tiles[tile].partial,
            Square::Node(branch) => self.branches[branch].full | self.branches[branch].kept,
        }
    }

    /// The claimed columns of the batch.
    pub fn claimed(&self, batch: BatchPos) -> u16 {
        match self.find(batch) {
            Square::Node(tile) => self.claimed_in(tile, child_index(batch, TILE)),
            _ => 0,
        }
    }

    /// The completed columns of a tile's batch.
    #[inline]
    pub fn completed_in(&self, tile: u32, index: u32) -> u16 {
        let tile = &self.tiles[tile];
        if tile.full >> index & 1 == 1 {
            FULL
        } else if tile.partial >> index & 1 == 1 {
            self.masks.get(tile.list, tile.partial, index)
        } else {
            0
        }
    }

    #[inline]
    fn claimed_in(&self, tile: u32, index: u32) -> u16 {
        let claims = self.tiles[tile].claims;
        if claims == NONE { 0 } else { self.claims[claims].masks[index as usize] }
    }

    /// The partial batches of a tile, and the batches with claims; not the full ones.
    #[inline]
    pub fn mixed_in(&self, tile: u32) -> u64 {
        let tile = &self.tiles[tile];
        tile.partial | if tile.claims == NONE { 0 } else { self.claims[tile.claims].any }
    }

    /// The number of completed columns of a tile.
    pub fn count_in(&self, tile: u32) -> u64 {
        let tile = &self.tiles[tile];
        16 * u64::from(tile.full.count_ones()) + self.masks.count_ones(tile.list, tile.partial)
    }

    /// Completes columns of a batch and ends their claims. Returns the columns that were already completed.
    #[inline]
    pub fn add(&mut self, batch: BatchPos, mask: u16) -> u16 {
        let number = match self.locate(batch) {
            Square::Node(number) => number,
            Square::Full => return FULL,
            Square::Empty if mask == 0 => return 0,
            Square::Empty => self.open(batch),
        };
        let index = child_index(batch, TILE);
        let bit = 1 << index;
        if self.tiles[number].claims != NONE {
            self.end_claims(number, index, mask);
        }
        let tile = &mut self.tiles[number];
        if tile.full & bit != 0 {
            return FULL;
        }
        let before = if tile.partial & bit != 0 {
            let place = self.masks.get_mut(tile.list, tile.partial, index);
            let before = *place;
            *place |= mask;
            if before | mask != FULL {
                return before;
            }
            self.masks.remove(&mut tile.list, tile.partial, index);
            tile.partial &= !bit;
            before
        } else {
            if mask != FULL {
                if mask != 0 {
                    self.masks.insert(&mut tile.list, tile.partial, index, mask);
                    tile.partial |= bit;
                }
                return 0;
            }
            0
        };
        tile.full |= bit;
        if tile.full == u64::MAX {
            self.close(batch, number);
        }
        before
    }

    /// Makes columns of a batch missing; their claims stay. Returns the columns that were completed.
    pub fn remove(&mut self, batch: BatchPos, mask: u16) -> u16 {
        let number = match self.locate(batch) {
            Square::Node(number) => number,
            Square::Full if mask == 0 => return FULL,
            Square::Full => self.open(batch),
            Square::Empty => return 0,
        };
        let index = child_index(batch, TILE);
        let bit = 1 << index;
        let before = self.completed_in(number, index);
        let after = before & !mask;
        if after == before {
            return before;
        }
        let tile = &mut self.tiles[number];
        match (tile.partial & bit != 0, after != 0) {
            (true, true) => *self.masks.get_mut(tile.list, tile.partial, index) = after,
            (true, false) => self.masks.remove(&mut tile.list, tile.partial, index),
            (false, true) => self.masks.insert(&mut tile.list, tile.partial, index, after),
            (false, false) => {}
        }
        tile.full &= !bit;
        tile.partial = if after != 0 { tile.partial | bit } else { tile.partial & !bit };
        self.close_if_empty(batch, number);
        before
    }

    /// Claims columns of the batch. They must be missing and unclaimed.
    pub fn claim(&mut self, batch: BatchPos, mask: u16) {
        let number = match self.locate(batch) {
            Square::Node(number) => number,
            // A full tile has no missing columns.
            Square::Full => return,
            Square::Empty => self.open(batch),
        };
        let tile = &mut self.tiles[number];
        if tile.claims == NONE {
            tile.claims = self.claims.insert(NO_CLAIMS);
        }
        let index = child_index(batch, TILE);
        let table = &mut self.claims[tile.claims];
        table.any |= 1 << index;
        table.masks[index as usize] |= mask;
    }

    /// Ends claims of columns of the batch. Returns the columns that were claimed.
    pub fn release(&mut self, batch: BatchPos, mask: u16) -> u16 {
        let Square::Node(number) = self.locate(batch) else { return 0 };
        if self.tiles[number].claims == NONE {
            return 0;
        }
        let ended = self.end_claims(number, child_index(batch, TILE), mask);
        self.close_if_empty(batch, number);
        ended
    }

    /// The tile must have a claim table.
    #[inline]
    fn end_claims(&mut self, tile: u32, index: u32, mask: u16) -> u16 {
        let tile = &mut self.tiles[tile];
        let table = &mut self.claims[tile.claims];
        let place = &mut table.masks[index as usize];
        let ended = *place & mask;
        if ended == 0 {
            return 0;
        }
        *place &= !mask;
        if *place == 0 {
            table.any &= !(1 << index);
            if table.any == 0 {
                self.claims.remove(tile.claims);
                tile.claims = NONE;
            }
        }
        ended
    }

    /// The node of level 2 that contains the batch, created if necessary.
    fn open_branch(&mut self, batch: BatchPos) -> u32 {
        let root = *self.roots.entry(Self::root_key(batch)).or_insert_with(|| self.branches.insert(Branch::default()));
        let index = child_index(batch, ROOT);
        let full = match self.branches[root].child(index) {
            Square::Node(branch) => return branch,
            square => square == Square::Full,
        };
        let branch = self.branches.insert(Branch::new(if full { u64::MAX } else { 0 }));
        self.branches[root].set_child(index, Square::Node(branch));
        branch
    }

    /// Creates a node for the batch's tile, which is empty or full.
    #[inline(never)]
    fn open(&mut self, batch: BatchPos) -> u32 {
        let branch = self.open_branch(batch);
        let index = child_index(batch, BRANCH);
        let full = self.branches[branch].child(index) == Square::Full;
        let number = self.tiles.insert(Tile::new(if full { u64::MAX } else { 0 }));
        self.branches[branch].set_child(index, Square::Node(number));
        self.recent = Some((batch.x >> 3, batch.z >> 3, number));
        number
    }

    #[inline]
    fn close_if_empty(&mut self, batch: BatchPos, number: u32) {
        let tile = &self.tiles[number];
        if tile.full | tile.partial == 0 && tile.claims == NONE {
            self.close(batch, number);
        }
    }

    /// Removes the node of the batch's tile, which is full or empty and has no claims.
    #[inline(never)]
    fn close(&mut self, batch: BatchPos, number: u32) {
        let Tile { full, list, .. } = self.tiles[number];
        self.masks.free(list);
        self.tiles.remove(number);
        self.recent.take_if(|(.., recent)| *recent == number);
        self.set_tile(batch, if full == u64::MAX { Square::Full } else { Square::Empty });
    }

    /// The child of a square of level 2 or 3.
    #[inline]
    pub fn child(&self, square: Square, index: u32) -> Square {
        match square {
            Square::Node(number) => self.branch(number).child(index),
            square => square,
        }
    }
}
