//! [`TilePos`]: the piece in which a graph is stored.

use crate::space::{BATCH_SIZE, BatchPos, ColumnPos};
use std::fmt;
use thiserror::Error;

/// A square of 8 x 8 batches, 32 x 32 columns: the piece in which a [`DistanceGraph`](super::DistanceGraph) is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TilePos {
    /// Coordinate along the x axis.
    pub x: i64,
    /// Coordinate along the z axis.
    pub z: i64,
}

impl TilePos {
    /// The position with these coordinates.
    pub const fn new(x: i64, z: i64) -> Self {
        Self { x, z }
    }

    /// The batch at `index` = x + 8 * z, or `None` if the tile lies beyond the columns that exist.
    pub(super) fn batch(self, index: usize) -> Option<BatchPos> {
        let shift = (BATCH_SIZE * 8).trailing_zeros();
        let exists = |tile: i64| (i64::MIN >> shift..=i64::MAX >> shift).contains(&tile);
        (exists(self.x) && exists(self.z))
            .then(|| BatchPos::new((self.x << 3) + (index as i64 & 7), (self.z << 3) + (index as i64 >> 3 & 7)))
    }
}

impl From<BatchPos> for TilePos {
    fn from(batch: BatchPos) -> Self {
        Self::new(batch.x >> 3, batch.z >> 3)
    }
}

impl From<ColumnPos> for TilePos {
    fn from(column: ColumnPos) -> Self {
        column.batch().into()
    }
}

impl fmt::Display for TilePos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}]", self.x, self.z)
    }
}

/// A stored tile that cannot be part of any graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("tile {0} of a distance graph lies beyond the last column")]
pub struct TileOutOfRange(pub TilePos);
