//! Operations on whole squares of the tree: filling, emptying, counting and visiting.

use super::super::disc::Area;
use super::{BRANCH, Branch, ROOT, Square, TILE, Tree, child_index};
use crate::space::{BatchPos, bits};

impl Tree {
    /// Makes the tile of the batch full or empty after its node was removed, and updates the squares around it.
    pub(super) fn set_tile(&mut self, batch: BatchPos, square: Square) {
        let key = Self::root_key(batch);
        let Some(&root) = self.roots.get(&key) else { return };
        if let Square::Node(branch) = self.branches[root].child(child_index(batch, ROOT)) {
            self.branches[branch].set_child(child_index(batch, BRANCH), square);
            let Branch { full, kept, .. } = self.branches[branch];
            if full == u64::MAX || full | kept == 0 {
                self.branches[branch] = Branch::default();
                self.branches.remove(branch);
                let square = if full == 0 { Square::Empty } else { Square::Full };
                self.branches[root].set_child(child_index(batch, ROOT), square);
            }
        }
        if self.branches[root].full | self.branches[root].kept == 0 {
            self.branches.remove(root);
            self.roots.remove(&key);
        }
    }

    /// The number of completed columns of a square of `level`.
    pub fn completed_count(&self, level: u32, square: Square) -> u64 {
        match square {
            Square::Empty => 0,
            Square::Full => Area::column_count(level),
            Square::Node(number) if level == TILE => self.count_in(number),
            Square::Node(number) => {
                let branch = self.branch(number);
                let full = u64::from(branch.full.count_ones()) * Area::column_count(level - 1);
                let kept = branch.children.iter().map(|&child| self.completed_count(level - 1, Square::Node(child)));
                full + kept.sum::<u64>()
            }
        }
    }

    /// Calls `visit` for each tile with completed columns, and its square.
    pub fn visit_tiles(&self, area: Area, square: Square, visit: &mut impl FnMut(Area, Square)) {
        if square == Square::Empty {
            return;
        }
        if area.level == TILE {
            if self.completed_in_some(TILE, square) != 0 {
                visit(area, square);
            }
            return;
        }
        for index in bits(self.completed_in_some(area.level, square)) {
            self.visit_tiles(area.child(index), self.child(square, index), visit);
        }
    }
}
