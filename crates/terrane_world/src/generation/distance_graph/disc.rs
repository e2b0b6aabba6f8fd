//! The exact disc of a search, and its tests against squares of columns.

use crate::space::{BatchPos, ColumnPos, bits, gap};

/// A square of the tree: a batch at level 0, and 8 x 8 squares of the level below at each higher level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub level: u32,
    pub x: i64,
    pub z: i64,
}

impl Area {
    /// The area of this level that contains the batch.
    pub fn of(batch: BatchPos, level: u32) -> Self {
        Self { level, x: batch.x >> (3 * level), z: batch.z >> (3 * level) }
    }

    /// The child at `index` = x + 8 * z.
    pub fn child(self, index: u32) -> Self {
        let (x, z) = (i64::from(index & 7), i64::from(index >> 3));
        Self { level: self.level - 1, x: (self.x << 3) + x, z: (self.z << 3) + z }
    }

    /// The batch with the lowest coordinates; at level 0 the batch itself.
    pub fn min_batch(self) -> BatchPos {
        BatchPos::new(self.x << (3 * self.level), self.z << (3 * self.level))
    }

    /// The width in columns of an area of this level, as a power of two.
    pub const fn shift(level: u32) -> u32 {
        2 + 3 * level
    }

    /// The number of columns in an area of this level.
    pub const fn column_count(level: u32) -> u64 {
        16 << (6 * level)
    }

    /// The lowest and the highest column on both axes.
    pub fn bounds(self) -> (ColumnPos, ColumnPos) {
        let shift = Self::shift(self.level);
        let size = (1 << shift) - 1;
        let (x, z) = (self.x << shift, self.z << shift);
        (ColumnPos::new(x, z), ColumnPos::new(x + size, z + size))
    }
}

/// All columns with `dx^2 + dz^2 <= radius^2` around a centre.
///
/// A radius has 32 bits, so the square of every distance *within* the disc fits into `u64`. Larger distances are
/// `None` and never squared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disc {
    pub center: ColumnPos,
    pub radius: u32,
}

impl Disc {
    pub fn radius_squared(&self) -> u64 {
        u64::from(self.radius).pow(2)
    }

    /// The squared distance, if it is within the disc.
    pub fn within(&self, x: u64, z: u64) -> Option<u64> {
        let radius = u64::from(self.radius);
        if x > radius || z > radius {
            return None;
        }
        (x * x).checked_add(z * z).filter(|distance| *distance <= self.radius_squared())
    }

    /// The squared distance of the nearest column of the rectangle, if it is within the disc.
    pub fn nearest(&self, (min, max): (ColumnPos, ColumnPos)) -> Option<u64> {
        self.within(gap(self.center.x, min.x, max.x), gap(self.center.z, min.z, max.z))
    }

    /// Returns `true` if the disc contains the whole rectangle.
    pub fn contains(&self, (min, max): (ColumnPos, ColumnPos)) -> bool {
        let far = |center: i64, min: i64, max: i64| center.abs_diff(min).max(center.abs_diff(max));
        self.within(far(self.center.x, min.x, max.x), far(self.center.z, min.z, max.z)).is_some()
    }

    /// The squared distance of the nearest column of `mask` within the disc.
    pub fn nearest_of(&self, batch: BatchPos, mask: u16) -> Option<u64> {
        if mask == u16::MAX {
            return self.nearest(Area::of(batch, 0).bounds());
        }
        bits(u64::from(mask)).filter_map(|bit| self.distance_squared(batch.column(bit))).min()
    }

    /// The squared distance of a column, if it is within the disc.
    #[inline]
    pub fn distance_squared(&self, column: ColumnPos) -> Option<u64> {
        self.within(self.center.x.abs_diff(column.x), self.center.z.abs_diff(column.z))
    }

    /// The columns of the mask that lie in the disc.
    pub fn mask_of(&self, batch: BatchPos, mask: u16) -> u16 {
        if self.contains(Area::of(batch, 0).bounds()) {
            return mask;
        }
        let inside = |bit: &u32| self.distance_squared(batch.column(*bit)).is_some();
        bits(u64::from(mask)).filter(inside).fold(0, |mask, bit| mask | 1 << bit)
    }

    /// The number of columns of the rectangle in the disc. Takes time in proportion to the rows that both share.
    pub fn columns_in(&self, (min, max): (ColumnPos, ColumnPos)) -> u64 {
        let reach = u64::from(self.radius);
        let first = min.z.max(self.center.z.saturating_sub_unsigned(reach));
        let last = max.z.min(self.center.z.saturating_add_unsigned(reach));
        let in_row = |z: i64| {
            let Some(across) = self.within(0, self.center.z.abs_diff(z)) else { return 0 };
            let half = root(self.radius_squared() - across);
            let first = min.x.max(self.center.x.saturating_sub_unsigned(half));
            let last = max.x.min(self.center.x.saturating_add_unsigned(half));
            if first <= last { last.abs_diff(first) + 1 } else { 0 }
        };
        (first..=last).map(in_row).sum()
    }
}

/// The square root of at most `u32::MAX` squared, rounded down. Takes half as long as [`u64::isqrt`].
#[inline]
fn root(square: u64) -> u64 {
    // Rounding makes it one too high or too low for some large numbers.
    let root = (square as f64).sqrt() as u64;
    if root * root > square { root - 1 } else { root + u64::from(square - root * root > 2 * root) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn roots_are_exact(of: u32, offset in -2..=2_i64, other in 0..=u64::from(u32::MAX).pow(2)) {
            let near = u64::from(of).pow(2).saturating_add_signed(offset).min(u64::from(u32::MAX).pow(2));
            prop_assert_eq!(root(near), near.isqrt());
            prop_assert_eq!(root(other), other.isqrt());
        }
    }

    #[test]
    fn the_largest_roots_are_exact() {
        for of in (0..1_000).flat_map(|below| [below, u64::from(u32::MAX) - below]) {
            assert_eq!((root(of * of), root((of * of).saturating_sub(1))), (of, of.saturating_sub(1)));
        }
    }
}
