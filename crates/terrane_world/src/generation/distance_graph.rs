//! [`DistanceGraph`]: tracks completed columns and finds the nearest missing ones.
//!
//! # Shape
//!
//! A batch is a mask of its 4 x 4 columns. 8 x 8 batches are a tile, 8 x 8 tiles a branch, 8 x 8 branches a root, and
//! the roots are in a map. At every level a full child takes one bit and an empty one nothing, so memory grows with
//! the *boundary* of the completed columns, not with their area.
//!
//! # Search
//!
//! A search returns the nearest batches in pages. It descends from the roots into every square that intersects a ring
//! around the centre and still contains work, sorts the batches that it finds, and returns them one by one. The next
//! page is the next ring. A call therefore costs the same at any distance, and a new centre costs little more than an
//! old one. The graph keeps the pages of the last 32 centres. With more viewers, results stay correct but are slower.
//!
//! # Cost
//!
//! All distances are squared Euclidean distances between column indices, and exact.
//!
//! | operation | time |
//! |---|---|
//! | a mark, an unmark, a claim, a release, a look-up | four levels of the tree; almost nothing in the most recent tile |
//! | `find_work`, again around the same centre | amortized constant at any distance: one sorted page serves up to 1024 calls |
//! | `find_work` around a new centre | the open squares on the way to the nearest work |
//! | `collect_completed_in_range` | the same for each column, however many were returned before |
//! | `count_missing_in` | the nodes in the area, and the edge of the area where columns are missing |
//!
//! The tree is a quadtree with 64 children per node, as in sparse voxel structures, with full and empty branches
//! pruned. The search is a branch and bound for the k nearest batches.
//!
//! # Several threads
//!
//! A graph is plain data with one owner, which changes it through `&mut`. To share a graph between threads, lock it.
//!
//! ```
//! # use terrane_world::{generation::DistanceGraph, space::{ColumnArea, ColumnPos}};
//! let mut graph = DistanceGraph::new();
//! let center = ColumnPos::new(10, -3);
//! while let Some(work) = graph.find_work(center, 8) {
//!     for column in work {
//!         graph.mark_completed(column);
//!     }
//! }
//! let area = ColumnArea::Disc { center, radius: 8 };
//! assert_eq!(graph.count_missing_in(&area), 0);
//! ```

mod count;
mod disc;
mod frontiers;
mod listeners;
mod masks;
mod search;
mod slab;
#[cfg(test)]
mod tests;
mod tree;
mod work;

use crate::space::{BatchPos, ColumnPos, TILE_BATCHES, TilePos, bits};
use disc::Disc;
use frontiers::Frontiers;
use listeners::Listeners;
use search::Sought;
use tree::{Square, Tree};

pub use count::Completion;
pub use listeners::ListenerId;
pub use work::BatchColumns;

/// Tracks completed columns, and finds the nearest columns that are not completed.
///
/// A column is *missing* until it is completed. Work is handed out as claims: a claimed column is still missing, but
/// is not offered again until it is [released](Self::release). A column is never both claimed and completed.
///
/// Methods identify a batch by its position, and its columns by a mask: bit x + 4 * z, as in [`BatchPos::column`].
/// Batches beyond the last column have no columns, so methods do nothing for them.
#[derive(Clone, Debug, Default)]
pub struct DistanceGraph {
    tree: Tree,
    frontiers: Frontiers,
    listeners: Listeners,
    completed_count: u64,
    /// How often a completed column became missing again.
    unmarked_count: u64,
}

impl DistanceGraph {
    /// A graph without completed columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Completes a column and ends its claim. Returns `true` if it was missing.
    #[inline]
    pub fn mark_completed(&mut self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        let missing = self.tree.add(batch, bit) & bit == 0;
        // Not by `mark_batch`: counting the bits of a mask takes longer than the rest of this function.
        self.completed_count += u64::from(missing);
        if missing {
            self.listeners.completed(batch);
        }
        missing
    }

    /// Completes columns of a batch and ends their claims. Returns the columns that were missing.
    pub fn mark_batch(&mut self, batch: BatchPos, mask: u16) -> u16 {
        if !exists(batch) {
            return 0;
        }
        let missing = mask & !self.tree.add(batch, mask);
        if missing != 0 {
            self.completed_count += u64::from(missing.count_ones());
            self.listeners.completed(batch);
        }
        missing
    }

    /// Makes a completed column missing and unclaimed again. Returns `true` if it was completed. A claimed column
    /// stays claimed.
    pub fn unmark(&mut self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.unmark_batch(batch, bit) != 0
    }

    /// Makes completed columns of a batch missing and unclaimed again. Returns the columns that were completed.
    fn unmark_batch(&mut self, batch: BatchPos, mask: u16) -> u16 {
        let completed = mask & self.tree.remove(batch, mask);
        if completed != 0 {
            let count = u64::from(completed.count_ones());
            (self.completed_count, self.unmarked_count) = (self.completed_count - count, self.unmarked_count + count);
            self.frontiers.reopen(batch);
            self.listeners.unmarked(batch, completed);
        }
        completed
    }

    /// Marks a completed column as changed, so that listeners that already have it get it again. Returns `false`, and
    /// does nothing, if it is not completed.
    pub fn edited(&mut self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        let completed = self.tree.look(batch) & bit != 0;
        if completed {
            self.listeners.edited(batch, bit);
        }
        completed
    }

    /// Returns `true` if the column is completed.
    pub fn is_completed(&self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.tree.completed(batch) & bit != 0
    }

    /// The completed columns of the batch.
    pub fn completed_in_batch(&self, batch: BatchPos) -> u16 {
        self.tree.completed(batch)
    }

    /// The number of completed columns.
    pub fn completed_count(&self) -> u64 {
        self.completed_count
    }

    /// How often a column was completed or became missing again. While this number stays the same, so do the completed columns.
    pub fn changes(&self) -> u64 {
        self.completed_count + 2 * self.unmarked_count
    }

    /// Claims the batch whose nearest missing and unclaimed column is nearest to the centre.
    ///
    /// Only columns with `dx^2 + dz^2 <= radius^2` count for the distance, but *all* missing and unclaimed columns of
    /// the batch are claimed, so that no batch at the rim stays half done. Among equally near batches, the one with
    /// the lower z and then the lower x comes first.
    pub fn find_work(&mut self, center: ColumnPos, radius: u32) -> Option<BatchColumns> {
        let (batch, _) = self.nearest_missing(center, radius)?;
        self.claim(batch, center)
    }

    /// The batch that [`find_work`](Self::find_work) would claim, and its squared distance. Claims nothing.
    ///
    /// To serve several viewers, call this for each of them, which costs little if nothing changed. Weight the
    /// distances by other criteria, such as a viewer's direction of movement, and [claim](Self::claim) the best batch.
    pub fn nearest_missing(&mut self, center: ColumnPos, radius: u32) -> Option<(BatchPos, u128)> {
        let (batch, distance_squared) =
            self.frontiers.nearest(&mut Sought { of: None, without: &mut self.tree }, center, radius)?;
        Some((batch, distance_squared.into()))
    }

    /// Claims all missing and unclaimed columns of a batch and returns them, nearest to `center` first; `None` if
    /// there are none.
    pub fn claim(&mut self, batch: BatchPos, center: ColumnPos) -> Option<BatchColumns> {
        if !exists(batch) {
            return None;
        }
        let available = self.tree.available(batch);
        if available == 0 {
            return None;
        }
        self.tree.claim(batch, available);
        Some(BatchColumns::nearest_first(batch, available, center))
    }

    /// Releases a claim after a failure, or when the column is no longer needed. Returns `true` if it was claimed.
    pub fn release(&mut self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.release_batch(batch, bit) != 0
    }

    /// Releases claims in a batch. Returns the columns that were claimed.
    pub fn release_batch(&mut self, batch: BatchPos, mask: u16) -> u16 {
        let ended = self.tree.release(batch, mask);
        if ended != 0 {
            self.frontiers.reopen(batch);
        }
        ended
    }

    /// Returns `true` if the column is claimed.
    pub fn is_claimed(&self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.tree.claimed(batch) & bit != 0
    }

    /// The claimed columns of the batch.
    pub fn claimed_in_batch(&self, batch: BatchPos) -> u16 {
        self.tree.claimed(batch)
    }

    /// Adds a listener, which has no columns yet.
    ///
    /// A graph stores the columns that each listener has, in about as much memory as the completed columns take, until
    /// the listener is [removed](Self::remove_listener).
    pub fn add_listener(&mut self) -> ListenerId {
        self.listeners.add()
    }

    /// Removes a listener. Returns `true` if it existed.
    pub fn remove_listener(&mut self, listener: ListenerId) -> bool {
        self.listeners.remove(listener)
    }

    /// Appends completed columns with `dx^2 + dz^2 <= radius^2` that this listener does not have yet, at most `max`,
    /// and returns their number. `None` if there is no such listener.
    ///
    /// Batches come in order of their nearest new column, and so do the columns of a batch. Each column is returned
    /// once, even if the centre moves, and again after it was [edited](Self::edited), or unmarked and completed again.
    /// The total time is proportional to the number of returned columns.
    pub fn collect_completed_in_range(
        &mut self,
        listener: ListenerId,
        center: ColumnPos,
        radius: u32,
        max: usize,
        columns: &mut Vec<ColumnPos>,
    ) -> Option<usize> {
        self.listeners.collect(listener, &mut self.tree, Disc { center, radius }, max, columns)
    }

    /// Records that a listener already has a completed column from elsewhere. The column is not returned until it is
    /// [edited](Self::edited), unmarked, or [taken back](Self::take_back). Returns `false`, and does nothing, if it is
    /// not completed or there is no such listener.
    pub fn note_given(&mut self, listener: ListenerId, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.tree.look(batch) & bit != 0 && self.listeners.note_given(listener, batch, bit).is_some()
    }

    /// Records that a listener no longer has a column, so that it is returned again when it is completed and in range.
    /// Returns `true` if there is such a listener.
    pub fn take_back(&mut self, listener: ListenerId, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.listeners.take_back(listener, batch, bit).is_some()
    }

    /// Every batch with completed columns, once each, with the mask of these columns. The order depends only on the
    /// set of completed columns.
    pub fn completed_batches(&self) -> impl Iterator<Item = (BatchPos, u16)> {
        let mut roots: Vec<_> = self.tree.roots().collect();
        roots.sort_unstable_by_key(|(root, _)| (root.z, root.x));
        let tiles = roots.into_iter().flat_map(|(root, number)| {
            let mut tiles = Vec::new();
            self.tree.visit_tiles(root, Square::Node(number), &mut |tile, square| tiles.push((tile, square)));
            tiles
        });
        tiles.flat_map(move |(tile, square)| {
            let batches = (0..TILE_BATCHES as u32)
                .map(move |index| (tile.child(index).min_batch(), self.tree.completed_of(square, index)));
            batches.filter(|(_, mask)| *mask != 0)
        })
    }

    /// Every completed column, once each. The order depends only on the set of completed columns.
    pub fn completed_columns(&self) -> impl Iterator<Item = ColumnPos> {
        self.completed_batches().flat_map(|(batch, mask)| bits(mask.into()).map(move |bit| batch.column(bit)))
    }

    /// The completed columns of a tile: the masks of its batches (bit x + 4 * z), at index x + 8 * z.
    pub fn tile(&self, tile: TilePos) -> [u16; TILE_BATCHES] {
        std::array::from_fn(|index| tile.batch(index).map_or(0, |batch| self.tree.completed(batch)))
    }

    /// Replaces the completed columns of a tile with these masks, in the form of [`tile`](Self::tile).
    ///
    /// Claims of the completed columns end, other claims stay. Returns `false`, and does nothing, if the tile lies
    /// beyond the last column.
    pub fn restore_tile(&mut self, tile: TilePos, masks: &[u16; TILE_BATCHES]) -> bool {
        for (batch, mask) in tile.batches().zip(masks) {
            self.unmark_batch(batch, !*mask);
            self.mark_batch(batch, *mask);
        }
        tile.batch(0).is_some()
    }
}

/// The column's batch and its bit in the batch mask.
#[inline]
fn place(column: ColumnPos) -> (BatchPos, u16) {
    (column.batch(), 1 << column.in_batch())
}

fn exists(batch: BatchPos) -> bool {
    let exists = |batch: i64| (i64::MIN >> 2..=i64::MAX >> 2).contains(&batch);
    exists(batch.x) && exists(batch.z)
}
