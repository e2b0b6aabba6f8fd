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
//! # Cost
//!
//! All distances are in columns, and exact: between indices of columns, Euclidean, squared.
//!
//! | operation | time |
//! |---|---|
//! | a mark, an unmark, a claim, a release, a look-up | four levels of the tree; nearly nothing in the tile of the last one |
//! | `find_work`, again around the same centre | the same at any distance, in the long run: a page is sorted for up to 1024 answers |
//! | `find_work` around a new centre | the open squares on the way to the nearest work |
//! | `collect_completed_in_range` | the same for each column, however many were given before |
//! | `count_missing_in` | the nodes in the area, and the edge of the area where some of it is missing |
//!
//! The tree is a quadtree with 64 children a node, as in sparse voxel structures, whose full and empty branches are
//! pruned. The search is a branch and bound over it for the k nearest.
//!
//! # Several threads
//!
//! A graph is plain data with one owner, who changes it through `&mut`. Threads that share one lock it.
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
    listeners: Listeners,
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
        let missing = self.tree.add(batch, bit) & bit == 0;
        // Not by `mark_batch`: to count the bits of a mask takes longer than the rest of this function.
        self.completed_count += u64::from(missing);
        if missing {
            self.listeners.completed(batch);
        }
        missing
    }

    /// Completes columns of a batch, which ends their claims; answers which of them were missing.
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

    /// Makes a completed column missing and unclaimed again; says whether it was completed.
    /// A claimed column stays claimed.
    pub fn unmark(&mut self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.unmark_batch(batch, bit) != 0
    }

    /// Makes completed columns of a batch missing and unclaimed again; answers which of them were completed.
    fn unmark_batch(&mut self, batch: BatchPos, mask: u16) -> u16 {
        let completed = mask & self.tree.remove(batch, mask);
        if completed != 0 {
            self.completed_count -= u64::from(completed.count_ones());
            self.frontiers.reopen(batch);
            self.listeners.unmarked(batch, completed);
        }
        completed
    }

    /// A completed column changed: it is given again to the listeners that have it already. Says whether it is
    /// completed; if not, nothing happens.
    pub fn edited(&mut self, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        let completed = self.tree.look(batch) & bit != 0;
        if completed {
            self.listeners.edited(batch, bit);
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
    pub fn find_work(&mut self, center: ColumnPos, radius: u32) -> Option<BatchColumns> {
        let (batch, _) = self.nearest_missing(center, radius)?;
        self.claim(batch, center)
    }

    /// The batch that [`find_work`](Self::find_work) would claim, and the square of its distance. Claims nothing.
    ///
    /// Whoever serves several viewers asks this for each of them, which costs little when nothing changed, weighs the
    /// distances by whatever else matters, such as where a viewer is heading, and [claims](Self::claim) the best.
    pub fn nearest_missing(&mut self, center: ColumnPos, radius: u32) -> Option<(BatchPos, u128)> {
        let (batch, distance_squared) =
            self.frontiers.nearest(&mut Sought { of: None, without: &mut self.tree }, center, radius)?;
        Some((batch, distance_squared.into()))
    }

    /// Claims all missing and unclaimed columns of a batch: gives at least one of them, those nearest to `center` first, or
    /// `None` if there are none.
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

    /// A new listener, who was given nothing yet.
    ///
    /// A graph remembers for each listener what it was given, in about as much memory as the completed columns take,
    /// until the listener is [removed](Self::remove_listener).
    pub fn add_listener(&mut self) -> ListenerId {
        self.listeners.add()
    }

    /// Forgets a listener; says whether there was one.
    pub fn remove_listener(&mut self, listener: ListenerId) -> bool {
        self.listeners.remove(listener)
    }

    /// Appends completed columns with `dx^2 + dz^2 <= radius^2` that this listener was not given yet, at most `max` of
    /// them, and answers how many. `None` if there is no such listener.
    ///
    /// Batches come near to far, by the nearest column that is to be given, and so do the columns of a batch. Each
    /// column is given once, wherever the centre moves meanwhile, and once more when it was
    /// [edited](Self::edited), or unmarked and completed again. Collecting everything takes time in proportion to it.
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

    /// A listener has a completed column already, without having collected it: it is not given until it is
    /// [edited](Self::edited), unmarked, or [taken back](Self::take_back). Says whether it is completed and there is such
    /// a listener; if not, nothing happens.
    pub fn note_given(&mut self, listener: ListenerId, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.tree.look(batch) & bit != 0 && self.listeners.note_given(listener, batch, bit).is_some()
    }

    /// A listener has a column no more, and is given it again when it is completed and in range; says whether there is
    /// such a listener.
    pub fn take_back(&mut self, listener: ListenerId, column: ColumnPos) -> bool {
        let (batch, bit) = place(column);
        self.listeners.take_back(listener, batch, bit).is_some()
    }

    /// Every batch with a completed column, each once, with the mask of its completed columns, in an order that depends
    /// only on what is completed.
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

    /// Every completed column, each once, in an order that depends only on what is completed.
    pub fn completed_columns(&self) -> impl Iterator<Item = ColumnPos> {
        self.completed_batches().flat_map(|(batch, mask)| bits(mask.into()).map(move |bit| batch.column(bit)))
    }

    /// The completed columns of a tile: the masks of its batches (bit x + 4 * z), at index x + 8 * z.
    pub fn tile(&self, tile: TilePos) -> [u16; TILE_BATCHES] {
        std::array::from_fn(|index| tile.batch(index).map_or(0, |batch| self.tree.completed(batch)))
    }

    /// Makes exactly these columns of a tile completed, as [`tile`](Self::tile) gave them.
    ///
    /// Claims of columns that are completed by it end, the others stay. A tile beyond the last column can be part of no
    /// graph: then the answer is false, and nothing changes.
    pub fn restore_tile(&mut self, tile: TilePos, masks: &[u16; TILE_BATCHES]) -> bool {
        for (batch, mask) in tile.batches().zip(masks) {
            self.unmark_batch(batch, !*mask);
            self.mark_batch(batch, *mask);
        }
        tile.batch(0).is_some()
    }
}

/// The column's batch, and its bit there.
#[inline]
fn place(column: ColumnPos) -> (BatchPos, u16) {
    (column.batch(), 1 << column.in_batch())
}

/// Whether the batch has columns.
fn exists(batch: BatchPos) -> bool {
    let exists = |batch: i64| (i64::MIN >> 2..=i64::MAX >> 2).contains(&batch);
    exists(batch.x) && exists(batch.z)
}
