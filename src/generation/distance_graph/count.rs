//! How much is missing in a disc.

use super::disc::{Area, Disc, Grain, Rect};
use super::tree::{FULL, ROOT, Square, TILE, Tree, child_index};
use crate::space::bits;

/// Up to this radius a disc is counted row by row.
const MAX_RADIUS_BY_ROWS: u32 = 1 << 13;

/// Whether there are certainly more columns in the disc than a `u64` can count, even without so many of them. Beside
/// the edge of the world it may answer false though there are.
fn exceeds(disc: &Disc, without: u64) -> bool {
    let half = u64::from(disc.radius) / 10 * 7;
    let fits = |center: i64| center.checked_add_unsigned(half).and(center.checked_sub_unsigned(half)).is_some();
    let inner_square = u128::from(2 * half).pow(2);
    fits(disc.center.x) && fits(disc.center.z) && inner_square > u128::from(u64::MAX) + u128::from(without)
}

/// All columns of the disc.
pub(super) fn all_columns(disc: &Disc) -> u128 {
    if disc.radius > MAX_RADIUS_BY_ROWS {
        disc.columns_in_all(Grain::Columns.shift())
    } else {
        disc.columns_in_range(disc.bounds(), Grain::Columns)
    }
}

/// Counts missing columns in a disc.
pub(super) struct Count<'a> {
    pub tree: &'a Tree,
    pub disc: Disc,
    pub grain: Grain,
}

impl Count<'_> {
    /// Whole batches: the missing columns of every batch that has a missing column in the disc.
    /// Columns: the missing columns in the disc. Not exact above `u64::MAX`.
    pub fn missing(&self, completed_count: u64) -> u128 {
        if exceeds(&self.disc, completed_count) {
            return u128::MAX;
        }
        let area = |(z, x)| Area { level: ROOT, x, z };
        let mut roots: Vec<_> = self
            .tree
            .roots()
            .filter(|(root, _)| self.disc.nearest(root.rect()).is_some())
            .map(|(root, number)| ((root.z, root.x), number))
            .collect();
        roots.sort_unstable();
        let in_roots = |&(key, number)| u128::from(self.missing_in(area(key), Square::Node(number)));
        let mut total: u128 = roots.iter().map(in_roots).sum();

        // Empty land is counted in stretches between the roots, since a wide disc spans more roots than can be visited.
        if self.disc.radius > MAX_RADIUS_BY_ROWS {
            let in_root = |&(key, _): &(_, _)| self.disc.columns_in_range(area(key).rect(), self.grain);
            return total + self.disc.columns_in_all(self.grain.shift() + self.coarser())
                - roots.iter().map(in_root).sum::<u128>();
        }
        let bounds = self.disc.bounds();
        let shift = Area::shift(ROOT);
        let (min_x, max_x) = (bounds.min_x >> shift, bounds.max_x >> shift);
        let mut stretch = |min_z: i64, max_z: i64, min_x: i64, max_x: i64| {
            if min_x <= max_x && min_z <= max_z {
                let (first, last) = (area((min_z, min_x)).rect(), area((max_z, max_x)).rect());
                let rect = Rect { max_x: last.max_x, max_z: last.max_z, ..first };
                total += self.disc.columns_in_range(rect, self.grain);
            }
        };
        let mut next_z = bounds.min_z >> shift;
        for row in roots.chunk_by(|a, b| a.0.0 == b.0.0) {
            let Some(&((z, _), _)) = row.first() else { continue };
            stretch(next_z, z - 1, min_x, max_x);
            let mut next_x = min_x;
            for &((_, x), _) in row {
                stretch(z, z, next_x, x - 1);
                next_x = x + 1;
            }
            stretch(z, z, next_x, max_x);
            next_z = z + 1;
        }
        stretch(next_z, bounds.max_z >> shift, min_x, max_x);
        total
    }

    /// In a disc of more than 2^27 columns' radius the rim is counted in squares of more columns, so that no count takes long.
    fn coarser(&self) -> u32 {
        (u32::BITS - self.disc.radius.leading_zeros()).saturating_sub(27)
    }

    fn missing_in(&self, area: Area, square: Square) -> u64 {
        let rect = area.rect();
        if square == Square::Full || self.disc.nearest(rect).is_none() {
            return 0;
        }
        if self.disc.contains(rect) {
            return Area::column_count(area.level) - self.tree.completed_count(area.level, square);
        }
        match square {
            Square::Full => 0,
            // One area of at most 2048 x 2048 columns.
            Square::Empty => self.disc.columns_in_range(rect, self.grain) as u64,
            Square::Node(tile) if area.level == TILE => self.missing_in_tile(area, tile),
            Square::Node(number) => {
                let branch = self.tree.branch(number);
                bits(!branch.full).map(|index| self.missing_in(area.child(index), branch.child(index))).sum()
            }
        }
    }

    fn missing_in_tile(&self, area: Area, tile: u32) -> u64 {
        let open = !self.tree.tile(tile).full;
        let of_batch = |index| {
            let batch = area.child(index).min_batch();
            debug_assert_eq!(child_index(batch, TILE), index);
            let missing = FULL & !self.tree.completed_in(tile, index);
            match self.grain {
                Grain::Batches if self.disc.nearest_of(batch, missing).is_none() => 0,
                Grain::Batches => u64::from(missing.count_ones()),
                Grain::Columns => u64::from(self.disc.mask_of(batch, missing).count_ones()),
            }
        };
        bits(open).map(of_batch).sum()
    }
}
