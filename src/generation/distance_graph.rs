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
//! A search takes the nearest batches in pages: it goes from the roots down into every square that reaches into a ring
//! around the centre and still holds work, sorts what it finds, and hands it out one by one. The next page is the next
//! ring. So a call costs the same at any distance, and a new centre costs little more than an old one. The graph keeps
//! the pages of the last 32 centres; more viewers than that are served as correctly, only slower.
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

mod count;
mod disc;
mod frontiers;
mod masks;
mod search;
mod slab;
#[cfg(test)]
mod tests;
mod tile_pos;
mod tree;
mod work;

use crate::space::{BatchPos, ColumnPos};
use count::Count;
use disc::{Disc, Grain};
use frontiers::Frontiers;
use tree::{Square, Tree};

pub use tile_pos::{TileOutOfRange, TilePos};
pub use work::{BatchColumns, Work};

/// Batches in a [tile](TilePos).
const TILE_BATCHES: usize = 64;

/// Knows which columns are completed, and finds the nearest ones that are not.
///
/// A column is *missing* until it is completed. Work is handed out as claims: a claimed column is still missing, but
/// is not offered again until it is [released](Self::release). A column is never claimed and completed at once.
///
/// A batch is named by its position, and columns in it by a mask: bit x + 4 * z, as [`BatchPos::column`] has it. A
/// batch beyond the last column has no columns, and nothing happens to it.
#[derive(Clone, Debug, Default)]
pub struct DistanceGraph {
    tree: Tree,
    frontiers: Frontiers,
    completed_count: u64,
}

impl DistanceGraph {
    /// A graph with nothing completed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Completes a column, which ends its claim if it had one; says whether it was missing.
    #[inline]
    pub fn mark_completed(&mut self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.complete(batch, bit) != 0
    }

    /// Completes columns of a batch, which ends their claims; answers which of them were missing.
    pub fn mark_batch(&mut self, batch: BatchPos, mask: u16) -> u16 {
        if exists(batch) { self.complete(batch, mask) } else { 0 }
    }

    #[inline]
    fn complete(&mut self, batch: BatchPos, mask: u16) -> u16 {
        let missing = mask & !self.tree.add(batch, mask);
        self.completed_count += u64::from(missing.count_ones());
        missing
    }

    /// Makes a completed column missing and unclaimed again; says whether it was completed.
    /// A claimed column stays claimed.
    pub fn unmark(&mut self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.unmark_batch(batch, bit) != 0
    }

    /// Makes completed columns of a batch missing and unclaimed again; answers which of them were completed.
    pub fn unmark_batch(&mut self, batch: BatchPos, mask: u16) -> u16 {
        let completed = mask & self.tree.remove(batch, mask);
        if completed != 0 {
            self.completed_count -= u64::from(completed.count_ones());
            self.frontiers.reopen(batch);
        }
        completed
    }

    /// Whether the column is completed.
    pub fn is_completed(&self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.tree.completed(batch) & bit != 0
    }

    /// Which columns of the batch are completed.
    pub fn completed_in_batch(&self, batch: BatchPos) -> u16 {
        self.tree.completed(batch)
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
        let (batch, distance_squared) = self.frontiers.nearest(&mut self.tree, center, radius)?;
        Some((batch, distance_squared.into()))
    }

    /// Claims all missing and unclaimed columns of a batch, those nearest to `center` first; `None` if there are none.
    pub fn claim(&mut self, batch: BatchPos, center: ColumnPos) -> Option<Work> {
        if !exists(batch) {
            return None;
        }
        let available = self.tree.available(batch);
        if available == 0 {
            return None;
        }
        self.tree.claim(batch, available);
        let columns = BatchColumns::nearest_first(batch, available, center);
        let distance_squared = columns.first()?.distance_squared(center);
        Some(Work { batch, columns, distance_squared })
    }

    /// Gives a claim back, after a failure or when nobody needs the column any more; says whether there was one.
    pub fn release(&mut self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.release_batch(batch, bit) != 0
    }

    /// Gives claims in a batch back; answers which of these columns were claimed.
    pub fn release_batch(&mut self, batch: BatchPos, mask: u16) -> u16 {
        let ended = self.tree.release(batch, mask);
        if ended != 0 {
            self.frontiers.reopen(batch);
        }
        ended
    }

    /// Whether the column is handed out and neither completed nor released yet.
    pub fn is_claimed(&self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.tree.claimed(batch) & bit != 0
    }

    /// Which columns of the batch are claimed.
    pub fn claimed_in_batch(&self, batch: BatchPos) -> u16 {
        self.tree.claimed(batch)
    }

    /// How many columns are claimed.
    pub fn claimed_count(&self) -> u64 {
        self.tree.claimed_count()
    }

    /// How many columns are missing, claimed ones included, in all batches that have a missing column in range.
    ///
    /// Takes time in proportion to the radius and to the nodes in range. Stops at `u64::MAX`.
    pub fn count_missing_in_range(&self, center: ColumnPos, radius: u32) -> u64 {
        self.count(center, radius, Grain::Batches)
    }

    fn count(&self, center: ColumnPos, radius: u32, grain: Grain) -> u64 {
        let missing = Count { tree: &self.tree, disc: Disc { center, radius }, grain }.missing();
        u64::try_from(missing).unwrap_or(u64::MAX)
    }

    /// Every tile with a completed column, each once, in an order that depends only on which tiles these are.
    pub fn tiles(&self) -> impl Iterator<Item = TilePos> {
        let mut roots: Vec<_> = self.tree.roots().collect();
        roots.sort_unstable_by_key(|(root, _)| (root.z, root.x));
        roots.into_iter().flat_map(|(root, number)| {
            let mut tiles = Vec::new();
            self.tree.visit_tiles(root, Square::Node(number), &mut |tile, _| tiles.push(TilePos::new(tile.x, tile.z)));
            tiles
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
            self.unmark_batch(batch, !*mask);
            self.complete(batch, *mask);
        }
        Ok(())
    }

    /// Bytes on the heap, as near as can be told without asking the allocator.
    pub fn memory(&self) -> usize {
        self.tree.memory() + self.frontiers.memory()
    }
}

/// The column's batch, and its bit there.
#[inline]
fn place(column: ColumnPos) -> (BatchPos, u16) {
    (column.batch(), 1 << (column.x & 3 | (column.z & 3) << 2))
}

/// Whether the batch has columns.
fn exists(batch: BatchPos) -> bool {
    let exists = |batch: i64| (i64::MIN >> 2..=i64::MAX >> 2).contains(&batch);
    exists(batch.x) && exists(batch.z)
}
