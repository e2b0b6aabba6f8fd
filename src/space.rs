//! Positions on the grid, and the conversions between them.
//!
//! Every level is an exact power of two of the one below, so all conversions are arithmetic shifts
//! and correct at negative coordinates and at the edges of `i64`.
//!
//! | level | holds | from |
//! |---|---|---|
//! | [`BlockPos`] | one block | |
//! | [`ChunkPos`] | 16 x 16 x 16 blocks | block >> 4 |
//! | [`ColumnPos`] | every chunk with the same x and z | chunk without y |
//! | [`BatchPos`] | 4 x 4 columns, the unit of generation work | column >> 2 |
//! | [`SectionPos`] | 2^n x 2^n columns, the regionizer's grain | column >> n |
//!
//! A [`ColumnArea`] is a disc, a square or a box of columns, a [`HeightSet`] some of the chunks above each other. A
//! [`BlockBox`] is all blocks between two corners, a [`ChunkPart`] what one chunk has of it.

mod area;
mod block_box;
mod chunk_part;
mod height_set;

pub use area::{AreaBatches, AreaCursor, ColumnArea};
pub use block_box::BlockBox;
pub use chunk_part::ChunkPart;
pub use height_set::HeightSet;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// Blocks along one edge of a chunk.
pub const CHUNK_SIZE: usize = 16;
/// Blocks in a chunk.
pub const CHUNK_VOLUME: usize = CHUNK_SIZE * CHUNK_SIZE * CHUNK_SIZE;
/// Columns along one edge of a batch.
pub const BATCH_SIZE: usize = 4;

macro_rules! position {
    ($(#[$docs:meta])* $name:ident { $($axis:ident),+ }) => {
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name {
            $(#[doc = concat!("Coordinate along the ", stringify!($axis), " axis.")] pub $axis: i64,)+
        }

        impl $name {
            /// The position with these coordinates.
            pub const fn new($($axis: i64),+) -> Self {
                Self { $($axis),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries([$(self.$axis),+]).finish()
            }
        }
    };
}

position!(
    /// One cell of the grid. `y` points up; y = 0 is sea level.
    BlockPos { x, y, z }
);
position!(
    /// A cube of 16 x 16 x 16 blocks.
    ChunkPos { x, y, z }
);
position!(
    /// Every chunk with the same x and z.
    ColumnPos { x, z }
);
position!(
    /// A square of 4 x 4 columns: the unit of generation work.
    BatchPos { x, z }
);
position!(
    /// A square of 2^n x 2^n columns, the grain of the regionizer; n is its `section_shift`.
    SectionPos { x, z }
);

/// A dimension's number within its world: given once, stored under the dimension's name, never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DimensionId(pub u64);

impl fmt::Display for DimensionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dimension {}", self.0)
    }
}

/// The heights of the chunks that hold blocks at these heights, of which there is one at least.
pub const fn chunk_heights(blocks: &Range<i64>) -> Range<i64> {
    blocks.start >> 4..((blocks.end - 1) >> 4) + 1
}

impl BlockPos {
    /// The chunk that holds this block.
    pub const fn chunk(self) -> ChunkPos {
        ChunkPos::new(self.x >> 4, self.y >> 4, self.z >> 4)
    }

    /// The column that holds this block.
    pub const fn column(self) -> ColumnPos {
        ColumnPos::new(self.x >> 4, self.z >> 4)
    }

    /// The block's place within its chunk, 0..16 on each axis.
    pub const fn in_chunk(self) -> [usize; 3] {
        [(self.x & 15) as usize, (self.y & 15) as usize, (self.z & 15) as usize]
    }

    /// The block this far away; at the edges of `i64` it stays there.
    pub const fn offset(self, x: i64, y: i64, z: i64) -> Self {
        Self::new(self.x.saturating_add(x), self.y.saturating_add(y), self.z.saturating_add(z))
    }
}

impl ChunkPos {
    /// The column that holds this chunk.
    pub const fn column(self) -> ColumnPos {
        ColumnPos::new(self.x, self.z)
    }

    /// The chunk's block with the lowest coordinates.
    pub const fn min_block(self) -> BlockPos {
        BlockPos::new(self.x << 4, self.y << 4, self.z << 4)
    }
}

impl ColumnPos {
    /// The batch that holds this column.
    pub const fn batch(self) -> BatchPos {
        BatchPos::new(self.x >> 2, self.z >> 2)
    }

    /// The section that holds this column, for sections of 2^`shift` columns a side.
    pub const fn section(self, shift: u32) -> SectionPos {
        SectionPos::new(self.x >> shift, self.z >> shift)
    }

    /// The chunk of this column at the chunk height `y`.
    pub const fn chunk(self, y: i64) -> ChunkPos {
        ChunkPos::new(self.x, y, self.z)
    }

    /// The column this far away; at the edges of `i64` it stays there.
    pub const fn offset(self, x: i64, z: i64) -> Self {
        Self::new(self.x.saturating_add(x), self.z.saturating_add(z))
    }

    /// The square of the distance between two columns, exact over all of `i64`.
    pub const fn distance_squared(self, other: Self) -> u128 {
        let x = self.x.abs_diff(other.x) as u128;
        let z = self.z.abs_diff(other.z) as u128;
        // Two squares of at most 64 bits each: only their sum can leave u128, at opposite corners.
        (x * x).saturating_add(z * z)
    }
}

impl BatchPos {
    /// The 16 columns of this batch, z outer, x inner, ascending: bit `x + 4 * z` of a column mask.
    pub fn columns(self) -> impl Iterator<Item = ColumnPos> {
        (0..16).map(move |bit| self.column(bit))
    }

    /// The column at `bit` (0..16) of this batch's column mask.
    pub const fn column(self, bit: u32) -> ColumnPos {
        ColumnPos::new((self.x << 2) + (bit & 3) as i64, (self.z << 2) + (bit >> 2 & 3) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_floor_at_negative_coordinates() {
        let block = BlockPos::new(-1, -17, 16);
        assert_eq!(block.chunk(), ChunkPos::new(-1, -2, 1));
        assert_eq!(block.in_chunk(), [15, 15, 0]);
        assert_eq!(block.column(), ColumnPos::new(-1, 1));
        assert_eq!(ColumnPos::new(-5, 4).batch(), BatchPos::new(-2, 1));
        assert_eq!(ColumnPos::new(-5, 4).section(4), SectionPos::new(-1, 0));
    }

    #[test]
    fn a_batch_lists_its_own_columns_in_mask_order() {
        for batch in [BatchPos::new(0, 0), BatchPos::new(-3, 7), BatchPos::new(i64::MAX >> 2, i64::MIN >> 2)] {
            let columns: Vec<_> = batch.columns().collect();
            assert_eq!(columns.len(), 16);
            assert!(columns.iter().all(|column| column.batch() == batch));
            assert!(columns.windows(2).all(|pair| (pair[0].z, pair[0].x) < (pair[1].z, pair[1].x)));
        }
    }

    #[test]
    fn distances_hold_at_the_edges() {
        let (low, high) = (ColumnPos::new(i64::MIN, 0), ColumnPos::new(i64::MAX, 0));
        assert_eq!(low.distance_squared(high), (u64::MAX as u128) * (u64::MAX as u128));
        assert_eq!(ColumnPos::new(-2, 1).distance_squared(ColumnPos::new(1, 5)), 25);
        assert_eq!(ColumnPos::new(i64::MIN, i64::MIN).distance_squared(ColumnPos::new(i64::MAX, i64::MAX)), u128::MAX);
    }
}
