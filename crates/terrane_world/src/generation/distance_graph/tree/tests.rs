//! The memory of a tree, for tests of what must collapse.

use super::super::slab::Slab;
use super::{Square, Tree};

impl<T> Slab<T> {
    /// The number of slots in use.
    fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The heap memory in bytes, without memory that the values own.
    fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<T>() + self.free.capacity() * size_of::<u32>()
    }
}

impl Tree {
    fn mask_count(&self) -> usize {
        let used = |class: usize| (self.masks.lists[class].len() >> (class + 2)) - self.masks.free[class].len();
        (0..5).map(used).sum()
    }

    /// The number of nodes above the batches, and of batches with a mask.
    pub fn node_counts(&self) -> (usize, usize) {
        let (mut tiles, mut batches) = (0, 0);
        for (area, number) in self.roots() {
            self.visit_tiles(area, Square::Node(number), &mut |_, square| {
                if let Square::Node(tile) = square {
                    tiles += 1;
                    batches += self.tile(tile).partial.count_ones() as usize;
                }
            });
        }
        assert!(tiles <= self.tiles.len());
        assert_eq!(self.mask_count() > 0, batches > 0);
        (self.branches.len() + self.tiles.len(), batches)
    }

    /// Returns `true` if no nodes are left.
    pub fn is_bare(&self) -> bool {
        self.roots.is_empty() && self.branches.len() + self.tiles.len() + self.mask_count() + self.claims.len() == 0
    }

    pub fn claimed_count(&self) -> u64 {
        let masks = self.claims.slots.iter().flat_map(|table| table.masks);
        masks.map(|mask| u64::from(mask.count_ones())).sum()
    }

    /// The heap memory in bytes, as exact as possible without asking the allocator.
    pub fn memory(&self) -> usize {
        let masks: usize = self.masks.lists.iter().map(|lists| lists.capacity() * 2).sum();
        let free: usize = self.masks.free.iter().map(|free| free.capacity() * 4).sum();
        // A hash map of capacity n has n * 8 / 7 buckets, rounded up to a power of two, with one control byte each.
        let buckets = if self.roots.capacity() == 0 { 0 } else { (self.roots.capacity() * 8 / 7).next_power_of_two() };
        let lists: usize = self.branches.slots.iter().map(|branch| branch.children.capacity() * 4).sum();
        buckets * (size_of::<((i64, i64), u32)>() + 1)
            + self.branches.memory()
            + lists
            + self.tiles.memory()
            + masks
            + free
            + self.claims.memory()
    }
}
