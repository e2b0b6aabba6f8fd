//! Changes of many columns at once: rectangles.

use super::disc::Area;
use super::tree::{ROOT, Tree};
use crate::space::ColumnPos;
use thiserror::Error;

/// How many roots one call may complete columns in: 2^21 x 2^21 columns if it is a square.
const MAX_ROOTS: u128 = 1 << 20;

/// A rectangle of columns that is too large to be completed at once: more than 2^20 squares of 2048 x 2048 columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("columns {min} to {max} reach into {roots} squares of 2048 x 2048 columns, which is more than 2^20")]
pub struct RangeTooLarge {
    /// The corner with the lowest coordinates.
    pub min: ColumnPos,
    /// The corner with the highest coordinates.
    pub max: ColumnPos,
    /// How many squares of 2048 x 2048 columns it reaches into.
    pub roots: u128,
}

/// A rectangle of columns with both its corners, not empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnRange {
    min: ColumnPos,
    max: ColumnPos,
}

impl ColumnRange {
    pub fn new(min: ColumnPos, max: ColumnPos) -> Option<Self> {
        (min.x <= max.x && min.z <= max.z).then_some(Self { min, max })
    }

    pub fn check_size(self) -> Result<(), RangeTooLarge> {
        let roots = |min: i64, max: i64| u128::from((max >> Area::shift(ROOT)).abs_diff(min >> Area::shift(ROOT))) + 1;
        let Self { min, max } = self;
        let roots = roots(min.x, max.x) * roots(min.z, max.z);
        if roots > MAX_ROOTS { Err(RangeTooLarge { min, max, roots }) } else { Ok(()) }
    }

    pub fn contains(self, area: Area) -> bool {
        let rect = area.rect();
        self.min.x <= rect.min_x && rect.max_x <= self.max.x && self.min.z <= rect.min_z && rect.max_z <= self.max.z
    }

    pub fn touches(self, area: Area) -> bool {
        let rect = area.rect();
        self.min.x <= rect.max_x && rect.min_x <= self.max.x && self.min.z <= rect.max_z && rect.min_z <= self.max.z
    }

    /// How many columns of an area that it touches are its own.
    pub fn columns_in(self, area: Area) -> u64 {
        let rect = area.rect();
        let width = |min: i64, max: i64| max.abs_diff(min) + 1;
        width(self.min.x.max(rect.min_x), self.max.x.min(rect.max_x))
            * width(self.min.z.max(rect.min_z), self.max.z.min(rect.max_z))
    }

    /// Its columns in a batch.
    pub fn mask(self, batch: Area) -> u16 {
        let inside = |column: ColumnPos| {
            (self.min.x..=self.max.x).contains(&column.x) && (self.min.z..=self.max.z).contains(&column.z)
        };
        let columns = batch.min_batch().columns().enumerate();
        columns.filter(|(_, column)| inside(*column)).fold(0, |mask, (bit, _)| mask | 1 << bit)
    }
}

impl Tree {
    /// Completes every column of the range and ends the claims there; answers how many were missing.
    pub fn fill_range(&mut self, range: ColumnRange) -> u64 {
        let shift = Area::shift(ROOT);
        let mut added = 0;
        for z in range.min.z >> shift..=range.max.z >> shift {
            for x in range.min.x >> shift..=range.max.x >> shift {
                added += self.fill_in(Area { level: ROOT, x, z }, range);
            }
        }
        added
    }

    fn fill_in(&mut self, area: Area, range: ColumnRange) -> u64 {
        if area.level == 0 {
            let mask = range.mask(area);
            let before = self.add(area.min_batch(), mask);
            return u64::from((mask & !before).count_ones());
        }
        if range.contains(area) {
            return self.fill(area);
        }
        let children = (0..64).map(|index| area.child(index));
        children.filter(|child| range.touches(*child)).map(|child| self.fill_in(child, range)).sum()
    }
}
