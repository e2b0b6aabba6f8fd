//! [`ColumnArea`]: a disc, a square or a box of columns, and its batches in order of distance from the centre.

mod batches;
mod disc;
#[cfg(test)]
mod tests;

use super::{BatchPos, ColumnPos};
use serde::{Deserialize, Serialize};
use std::fmt;

pub use batches::gap;
pub use batches::{AreaBatches, AreaCursor};
use disc::columns_of_disc;

/// The columns around a place, or between two corners. Exact over all of `i64`; there are no columns beyond the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), type_path = "bevy_terrane")]
pub enum ColumnArea {
    /// Every column with `dx^2 + dz^2 <= radius^2`.
    Disc {
        /// The column in the middle.
        center: ColumnPos,
        /// The radius in columns. 0 is a single column.
        radius: u32,
    },
    /// Every column at most `radius` away on either axis: 2 * `radius` + 1 columns a side.
    Square {
        /// The column in the middle.
        center: ColumnPos,
        /// The radius in columns. 0 is a single column.
        radius: u32,
    },
    /// Every column between two corners. Empty if a coordinate of `min` is above that of `max`.
    Box {
        /// The corner with the lowest coordinates, included.
        min: ColumnPos,
        /// The corner with the highest coordinates, included.
        max: ColumnPos,
    },
}

impl ColumnArea {
    /// The column in the middle. If a box has an even number of columns, the lower one.
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

    /// Returns `true` if the area contains the column.
    pub fn contains(&self, column: ColumnPos) -> bool {
        match *self {
            Self::Disc { center, radius } => center.distance_squared(column) <= u128::from(radius).pow(2),
            Self::Square { .. } | Self::Box { .. } => self
                .bounds()
                .is_some_and(|(min, max)| (min.x..=max.x).contains(&column.x) && (min.z..=max.z).contains(&column.z)),
        }
    }

    /// The columns of the batch that belong to the area: bit x + 4 * z, as in [`BatchPos::column`].
    pub fn mask(&self, batch: BatchPos) -> u16 {
        batch.columns().zip(0..).filter(|(column, _)| self.contains(*column)).fold(0, |mask, (_, bit)| mask | 1 << bit)
    }

    /// The number of columns. Takes time in proportion to r^(2/3) for a disc of radius r, and constant time for a
    /// square or a box.
    ///
    /// Exact, except for the box of all columns, which has one more than a `u128` can hold.
    pub fn columns(&self) -> u128 {
        let width = |min: i64, max: i64| u128::from(max.abs_diff(min)) + 1;
        match (self, self.bounds()) {
            (Self::Disc { center, radius }, _) => columns_of_disc(*center, *radius),
            (_, Some((min, max))) => width(min.x, max.x).saturating_mul(width(min.z, max.z)),
            (_, None) => 0,
        }
    }

    /// The batches of the area, each once, nearest to the centre first.
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
