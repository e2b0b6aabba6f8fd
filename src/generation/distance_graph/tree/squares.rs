//! What happens to whole squares of the tree: they are made full or empty, counted and visited.

use super::super::disc::Area;
use super::{BRANCH, Branch, ROOT, Square, TILE, Tree, child_index};
use crate::space::{BatchPos, bits};

impl Tree {
    /// Gives the nodes of a square of `level` back, with all below them.
    fn drop_square(&mut self, level: u32, square: Square) {
        let Square::Node(number) = square else { return };
        if level == TILE {
            self.drop_tile(number);
            return;
        }
        for child in std::mem::take(&mut self.branches[number]).children {
            self.drop_square(level - 1, Square::Node(child));
        }
        self.branches.remove(number);
    }

    /// Makes the area of `level` (1 to 3) around the batch all full or all empty. Nodes below it must be gone.
    pub(super) fn set_square(&mut self, batch: BatchPos, level: u32, square: Square) {
        let key = Self::root_key(batch);
        if level == ROOT {
            if let Some(root) = self.roots.remove(&key) {
                self.branches.remove(root);
            }
            if square == Square::Full {
                let root = self.branches.insert(Branch::new(u64::MAX));
                self.roots.insert(key, root);
            }
            return;
        }
        let Some(&root) = self.roots.get(&key) else { return };
        if level == BRANCH {
            self.branches[root].set_child(child_index(batch, ROOT), square);
        } else if let Square::Node(branch) = self.branches[root].child(child_index(batch, ROOT)) {
            self.branches[branch].set_child(child_index(batch, BRANCH), square);
            let Branch { full, kept, .. } = self.branches[branch];
            if full == u64::MAX || full | kept == 0 {
                self.drop_square(BRANCH, Square::Node(branch));
                let square = if full == 0 { Square::Empty } else { Square::Full };
                self.branches[root].set_child(child_index(batch, ROOT), square);
            }
        }
        if self.branches[root].full | self.branches[root].kept == 0 {
            self.branches.remove(root);
            self.roots.remove(&key);
        }
    }

    /// The square of that area.
    pub fn square(&self, area: Area) -> Square {
        let batch = area.min_batch();
        let Some(&root) = self.roots.get(&Self::root_key(batch)) else { return Square::Empty };
        if area.level == ROOT {
            return Square::Node(root);
        }
        match self.branches[root].child(child_index(batch, ROOT)) {
            Square::Node(branch) if area.level == TILE => self.branches[branch].child(child_index(batch, BRANCH)),
            square => square,
        }
    }

    /// Completes an area of level 1 or above and ends the claims in it; answers how many columns were missing.
    pub fn fill(&mut self, area: Area) -> u64 {
        let square = self.square(area);
        let completed = self.completed_count(area.level, square);
        let batch = area.min_batch();
        match area.level {
            ROOT => {
                if let Square::Node(root) = square {
                    for child in std::mem::take(&mut self.branches[root]).children {
                        self.drop_square(BRANCH, Square::Node(child));
                    }
                }
            }
            BRANCH => {
                self.drop_square(BRANCH, square);
                let root =
                    *self.roots.entry(Self::root_key(batch)).or_insert_with(|| self.branches.insert(Branch::default()));
                // Its node is gone, and it must not stay as one.
                self.branches[root].set_child(child_index(batch, ROOT), Square::Empty);
            }
            _ => {
                self.drop_square(TILE, square);
                let branch = self.open_branch(batch);
                if square != Square::Full {
                    self.branches[branch].set_child(child_index(batch, BRANCH), Square::Empty);
                }
            }
        }
        self.set_square(batch, area.level, Square::Full);
        Area::column_count(area.level) - completed
    }

    /// How many columns of a square of `level` are completed.
    pub fn completed_count(&self, level: u32, square: Square) -> u64 {
        match square {
            Square::Empty => 0,
            Square::Full => Area::column_count(level),
            Square::Node(number) if level == TILE => self.count_in(number),
            Square::Node(number) => {
                let branch = self.branch(number);
                let full = u64::from(branch.full.count_ones()) * Area::column_count(level - 1);
                let kept = branch.nodes().iter().map(|&child| self.completed_count(level - 1, Square::Node(child)));
                full + kept.sum::<u64>()
            }
        }
    }

    /// Calls `visit` for each tile with a completed column, and its square.
    pub fn visit_tiles(&self, area: Area, square: Square, visit: &mut impl FnMut(Area, Square)) {
        if square == Square::Empty {
            return;
        }
        if area.level == TILE {
            match square {
                Square::Node(number) if self.tile(number).full | self.tile(number).partial == 0 => {}
                _ => visit(area, square),
            }
            return;
        }
        let children = match square {
            Square::Node(number) => self.branch(number).full | self.branch(number).kept,
            _ => u64::MAX,
        };
        for index in bits(children) {
            self.visit_tiles(area.child(index), self.child(square, index), visit);
        }
    }
}
