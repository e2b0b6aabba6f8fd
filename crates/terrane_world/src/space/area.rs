//! [`ColumnArea`]: a disc, a square or a box of columns, and its batches from the centre outwards.

mod batches;
mod disc;
#[cfg(test)]
mod tests;

use super::{BatchPos, ColumnPos};
use serde::{Deserialize, Serialize};
use std::fmt;

#[doc(hidden)]
pub use batches::gap;
pub use batches::{AreaBatches, AreaCursor};
use disc::columns_of_disc;

/// Columns around a place, or between two corners. Exact over all of `i64`; beyond the edges there are no columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColumnArea {
    /// Every column with `dx^2 + dz^2 <= radius^2`.
    Disc {
        /// The column in the middle.
        center: ColumnPos,
        /// In columns. 0 is the one in the middle.
        radius: u32,
    },
    /// Every column that is at most `radius` away on either axis: 2 * `radius` + 1 columns a side.
    Square {
        /// The column in the middle.
        center: ColumnPos,
        /// In columns. 0 is the one in the middle.
        radius: u32,
    },
    /// Every column between two corners. Empty if one coordinate of `min` is above that of `max`.
    Box {
        /// The corner with the lowest coordinates, included.
        min: ColumnPos,
        /// The corner with the highest coordinates, included.
        max: ColumnPos,
    },
}

impl ColumnArea {
    /// The column in the middle; of a box with an even number of columns the lower one.
    pub fn center(&self) -> ColumnPos {
        let middle = |min: i64, max: i64| ((i128::from(min) + i128::from(max)) >> 1) as i64;
        match *self {
            Self::Disc { center, .. } | Self::Square { center, .. } => center,
            Self::Box { min, max } => ColumnPos::new(middle(min.x, max.x), middle(min.z, max.z)),
        }
    }

    /// The lowest and the highest column on both axes; `None` if there are no columns.
    pub fn bounds(&self) -> Option<(ColumnPos, ColumnPos)> {
        match *self {
            Self::Disc { center, radius } | Self::Square { center, radius } => {
                let radius = i64::from(radius);
                Some((center.offset(-radius, -radius), center.offset(radius, radius)))
            }
            Self::Box { min, max } => (min.x <= max.x && min.z <= max.z).then_some((min, max)),
        }
    }

    /// Whether the column is one of them.
    pub fn contains(&self, column: ColumnPos) -> bool {
        match *self {
            Self::Disc { center, radius } => center.distance_squared(column) <= u128::from(radius).pow(2),
            Self::Square { .. } | Self::Box { .. } => self
                .bounds()
                .is_some_and(|(min, max)| (min.x..=max.x).contains(&column.x) && (min.z..=max.z).contains(&column.z)),
        }
    }

    /// Which columns of the batch belong to it: bit x + 4 * z, as [`BatchPos::column`] has it.
    pub fn mask(&self, batch: BatchPos) -> u16 {
        batch.columns().zip(0..).filter(|(column, _)| self.contains(*column)).fold(0, |mask, (_, bit)| mask | 1 << bit)
    }

    /// How many columns it has. Takes time in proportion to r^(2/3) of a disc's radius; a square or a box takes none.
    ///
    /// Exact, but for the box of all columns there are: that has one more than a `u128` can tell.
    pub fn columns(&self) -> u128 {
        let width = |min: i64, max: i64| u128::from(max.abs_diff(min)) + 1;
        match (self, self.bounds()) {
            (Self::Disc { center, radius }, _) => columns_of_disc(*center, *radius),
            (_, Some((min, max))) => width(min.x, max.x).saturating_mul(width(min.z, max.z)),
            (_, None) => 0,
        }
    }

    /// Its batches, each once, nearest to the centre first.
    pub fn batches(self) -> AreaBatches {
        AreaBatches::from_cursor(self, AreaCursor::default())
    }
}

impl fmt::Display for ColumnArea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disc { center, radius } => write!(f, "disc of radius {radius} around {center}"),
            Self::Square { center, radius } => write!(f, "square of radius {radius} around {center}"),
            Self::Box { min, max } => write!(f, "box from {min} to {max}"),
        }
    }
}
