//! [`DistanceGraph`]: which columns are completed, and where the nearest missing ones are.
//!
//! # Shape
//!
//! A batch is a mask of its 4 x 4 columns. 8 x 8 batches are a tile, 8 x 8 tiles a branch, 8 x 8 branches a root, and
//! the roots are in a map. At every level a full child is one bit and an empty one is nothing, so memory follows the
//! *boundary* of what is completed, not its area.
//!
//! # Search
//!
//! A search goes from the roots down, always into the nearest square that may still hold work, and keeps its frontier
//! for the next call with the same centre. Its cost therefore hardly depends on the radius. The graph keeps the
//! frontiers of the last 32 centres; more viewers than that are served as correctly, only slower.
//!
//! ```
//! # use bevy_terrane::{generation::DistanceGraph, space::ColumnPos};
//! let mut graph = DistanceGraph::new();
//! let center = ColumnPos::new(10, -3);
//! while let Some(work) = graph.find_work(center, 8) {
//!     for column in work.columns {
//!         graph.mark_completed(column);
//!     }
//! }
//! assert_eq!(graph.count_missing_in_range(center, 8), 0);
//! ```

mod disc;
mod frontier;
#[cfg(test)]
mod tests;
mod tree;

use crate::space::{BATCH_SIZE, BatchPos, ColumnPos};
use disc::{Disc, bits};
use frontier::{Claims, Frontiers, available};
use std::fmt;
use thiserror::Error;
use tree::{Change, FULL, TILE, Tree};

/// Batches in a [tile](TilePos).
const TILE_BATCHES: usize = 64;

/// A square of 8 x 8 batches, 32 x 32 columns: the piece in which a [`DistanceGraph`] is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TilePos {
    /// Coordinate along the x axis.
    pub x: i64,
    /// Coordinate along the z axis.
    pub z: i64,
}

impl TilePos {
    /// The position with these coordinates.
    pub const fn new(x: i64, z: i64) -> Self {
        Self { x, z }
    }

    /// The batch at `index` = x + 8 * z, or `None` if the tile lies beyond the columns that exist.
    fn batch(self, index: usize) -> Option<BatchPos> {
        let shift = (BATCH_SIZE * 8).trailing_zeros();
        let exists = |tile: i64| (i64::MIN >> shift..=i64::MAX >> shift).contains(&tile);
        (exists(self.x) && exists(self.z))
            .then(|| BatchPos::new((self.x << 3) + (index as i64 & 7), (self.z << 3) + (index as i64 >> 3 & 7)))
    }
}

impl From<BatchPos> for TilePos {
    fn from(batch: BatchPos) -> Self {
        Self::new(batch.x >> 3, batch.z >> 3)
    }
}

impl From<ColumnPos> for TilePos {
    fn from(column: ColumnPos) -> Self {
        column.batch().into()
    }
}

impl fmt::Display for TilePos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}]", self.x, self.z)
    }
}

/// A stored tile that cannot be part of any graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("tile {0} of a distance graph lies beyond the last column")]
pub struct TileOutOfRange(pub TilePos);

/// A batch to be worked on, claimed for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The batch.
    pub batch: BatchPos,
    /// Its columns that were missing and unclaimed, nearest first; of equally near ones the one with the lower z,
    /// then the lower x. Never empty. All of them are claimed now.
    pub columns: Vec<ColumnPos>,
    /// The square of the distance from the centre to the first of `columns`.
    pub distance_squared: u128,
}

/// Knows which columns are completed, and finds the nearest ones that are not.
///
/// A column is *missing* until it is completed. Work is handed out as claims: a claimed column is still missing, but
/// is not offered again until it is [released](Self::release). A column is never claimed and completed at once.
#[derive(Clone, Debug, Default)]
pub struct DistanceGraph {
    tree: Tree,
    claims: Claims,
    frontiers: Frontiers,
    completed_count: u64,
}

impl DistanceGraph {
    /// A graph with nothing completed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Completes a column, which ends its claim if it had one; says whether it was missing.
    pub fn mark_completed(&mut self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        let (_, claimed) = self.remove_claims(batch, bit);
        let before = self.tree.update(batch, Change { add: bit, remove: 0, claimed });
        let missing = before & bit == 0;
        self.completed_count += u64::from(missing);
        missing
    }

    /// Makes a completed column missing and unclaimed again; says whether it was completed.
    /// A claimed column stays claimed.
    pub fn unmark(&mut self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        let claimed = self.claims.get(&batch).copied().unwrap_or(0);
        let completed = self.tree.update(batch, Change { add: 0, remove: bit, claimed }) & bit != 0;
        if completed {
            self.completed_count -= 1;
            self.frontiers.reopen(batch);
        }
        completed
    }

    /// Whether the column is completed.
    pub fn is_completed(&self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.tree.completed(batch) & bit != 0
    }

    /// How many columns are completed.
    pub fn completed_count(&self) -> u64 {
        self.completed_count
    }

    /// Claims the batch whose nearest missing and unclaimed column is nearest to the centre.
    ///
    /// Only columns with `dx^2 + dz^2 <= radius^2` count for that, but *all* missing and unclaimed columns of the batch
    /// are handed out, so that none is left half done at the rim. Of equally near batches it is the one with the lower
    /// z, then the lower x.
    pub fn find_work(&mut self, center: ColumnPos, radius: u32) -> Option<Work> {
        let (batch, _) = self.nearest_missing(center, radius)?;
        self.claim(batch, center)
    }

    /// The batch that [`find_work`](Self::find_work) would claim, and the square of its distance. Claims nothing.
    pub fn nearest_missing(&mut self, center: ColumnPos, radius: u32) -> Option<(BatchPos, u128)> {
        let (batch, distance_squared) = self.frontiers.nearest(&self.tree, &self.claims, center, radius)?;
        Some((batch, distance_squared.into()))
    }

    /// Claims all missing and unclaimed columns of a batch, those nearest to `center` first; `None` if there are none.
    pub fn claim(&mut self, batch: BatchPos, center: ColumnPos) -> Option<Work> {
        let exists = |batch: i64| (i64::MIN >> 2..=i64::MAX >> 2).contains(&batch);
        if !exists(batch.x) || !exists(batch.z) {
            return None;
        }
        let free = available(&self.tree, &self.claims, batch);
        if free == 0 {
            return None;
        }
        let claims = self.claims.entry(batch).or_default();
        *claims |= free;
        self.tree.update(batch, Change { add: 0, remove: 0, claimed: *claims });
        let columns = nearest_first(batch, free, center);
        let distance_squared = columns[0].distance_squared(center);
        Some(Work { batch, columns, distance_squared })
    }

    /// Gives a claim back, after a failure or when nobody needs the column any more; says whether there was one.
    pub fn release(&mut self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        let (ended, claimed) = self.remove_claims(batch, bit);
        if ended != 0 {
            self.tree.update(batch, Change { add: 0, remove: 0, claimed });
            self.frontiers.reopen(batch);
        }
        ended != 0
    }

    /// Whether the column is handed out and neither completed nor released yet.
    pub fn is_claimed(&self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.claims.get(&batch).is_some_and(|claimed| claimed & bit != 0)
    }

    /// How many columns are missing, claimed ones included, in all batches that have a missing column in range.
    ///
    /// Takes time in proportion to the radius and to the nodes in range. Stops at `u64::MAX`.
    pub fn count_missing_in_range(&self, center: ColumnPos, radius: u32) -> u64 {
        u64::try_from(self.tree.missing_in(&Disc { center, radius })).unwrap_or(u64::MAX)
    }

    /// Every tile with a completed column, each once, in an order that depends only on which tiles these are.
    pub fn tiles(&self) -> impl Iterator<Item = TilePos> {
        self.tree.tiles().map(|area| {
            debug_assert_eq!(area.level, TILE);
            TilePos::new(area.x, area.z)
        })
    }

    /// The completed columns of a tile: the masks of its batches (bit x + 4 * z), at index x + 8 * z.
    pub fn tile(&self, tile: TilePos) -> [u16; TILE_BATCHES] {
        std::array::from_fn(|index| tile.batch(index).map_or(0, |batch| self.tree.completed(batch)))
    }

    /// Makes exactly these columns of a tile completed, as [`tile`](Self::tile) gave them.
    ///
    /// Claims of columns that are completed by it end, the others stay.
    ///
    /// # Errors
    ///
    /// If the tile lies beyond the last column; the graph is then unchanged.
    pub fn restore_tile(&mut self, tile: TilePos, masks: &[u16; TILE_BATCHES]) -> Result<(), TileOutOfRange> {
        for (index, mask) in masks.iter().enumerate() {
            let batch = tile.batch(index).ok_or(TileOutOfRange(tile))?;
            let (_, claimed) = self.remove_claims(batch, *mask);
            let before = self.tree.update(batch, Change { add: *mask, remove: !*mask, claimed });
            self.completed_count += u64::from((mask & !before).count_ones());
            let lost = before & !mask;
            if lost != 0 {
                self.completed_count -= u64::from(lost.count_ones());
                self.frontiers.reopen(batch);
            }
        }
        Ok(())
    }

    /// Ends the claims of these columns. Answers which of them were claimed, and what stays claimed in the batch.
    fn remove_claims(&mut self, batch: BatchPos, mask: u16) -> (u16, u16) {
        let Some(claimed) = self.claims.get_mut(&batch) else { return (0, 0) };
        let (ended, rest) = (*claimed & mask, *claimed & !mask);
        *claimed = rest;
        if rest == 0 {
            self.claims.remove(&batch);
        }
        (ended, rest)
    }
}

/// The column's batch, and its bit there.
fn place(column: ColumnPos) -> (BatchPos, u16) {
    (column.batch(), 1 << ((column.x & 3) | (column.z & 3) << 2))
}

/// The columns of the mask, nearest first, then by z, then by x.
fn nearest_first(batch: BatchPos, mask: u16, center: ColumnPos) -> Vec<ColumnPos> {
    let first = batch.column(0);
    let (x, z) = (i128::from(first.x) - i128::from(center.x), i128::from(first.z) - i128::from(center.z));
    // Compared to the batch's first column, at (x, z), column (i, j) is farther by 2xi + i^2 + 2zj + j^2. Unlike the
    // squares themselves that cannot overflow, and a column's bit is its place by z, then x.
    let mut order = [0i128; FULL.count_ones() as usize];
    let mut count = 0;
    for bit in bits(u64::from(mask)) {
        let (i, j) = (i128::from(bit & 3), i128::from(bit >> 2));
        order[count] = (i * (2 * x + i) + j * (2 * z + j)) << 4 | i128::from(bit);
        count += 1;
    }
    order[..count].sort_unstable();
    order[..count].iter().map(|key| batch.column((key & 15) as u32)).collect()
}
