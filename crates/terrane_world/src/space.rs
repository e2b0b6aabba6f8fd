//! Positions on the grid, and the conversions between them.
//!
//! Every level is an exact power of two of the level below. All conversions are therefore arithmetic shifts, and
//! correct at negative coordinates and at the edges of `i64`.
//!
//! | level | holds | from |
//! |---|---|---|
//! | [`BlockPos`] | one block | |
//! | [`ChunkPos`] | 16 x 16 x 16 blocks | block >> 4 |
//! | [`ColumnPos`] | every chunk with the same x and z | chunk without y |
//! | [`BatchPos`] | 4 x 4 columns, the unit of generation work | column >> 2 |
//! | [`TilePos`] | 8 x 8 batches, the unit in which stored columns are tracked | batch >> 3 |
//! | [`SectionPos`] | 2^n x 2^n columns, the unit of the regionizer | column >> n |
//!
//! A [`ColumnArea`] is a disc, a square or a box of columns, and a [`HeightSet`] a set of chunk heights. A
//! [`BlockBox`] is all blocks between two corners, and a [`ChunkPart`] the cells of one chunk that lie in a box. A [`BlockRay`]
//! is all blocks along a line. A [`Face`] is one of a block's six faces, and a [`Turn`] is a quarter turn or
//! a flip.

mod area;
mod block_box;
mod face;
mod height_set;
mod ray;
mod turn;

#[doc(hidden)]
pub use area::gap;
pub use area::{AreaBatches, AreaCursor, ColumnArea};
pub use block_box::{BlockBox, ChunkPart};
pub use face::{Face, FaceSet};
pub use height_set::HeightSet;
pub use ray::{BlockRay, RayCell};
pub use turn::Turn;

use serde::{Deserialize, Serialize};
use std::f64::consts::{FRAC_1_SQRT_2, PI};
use std::fmt;
use std::ops::Range;

/// Blocks along one edge of a chunk.
pub const CHUNK_SIZE: usize = 16;
/// Blocks in a chunk.
pub const CHUNK_VOLUME: usize = CHUNK_SIZE * CHUNK_SIZE * CHUNK_SIZE;
/// Columns along one edge of a batch.
pub const BATCH_SIZE: usize = 4;
/// Columns along one edge of a tile.
pub const TILE_COLUMNS: usize = 8 * BATCH_SIZE;
/// Batches in a tile.
pub const TILE_BATCHES: usize = 64;

/// The possible coordinates of columns and chunks with blocks, on any axis.
pub const CHUNK_COORDINATES: Range<i64> = i64::MIN >> 4..(i64::MAX >> 4) + 1;

/// The heights of the chunks that hold a range of block heights. The range must not be empty.
pub const fn chunk_heights(blocks: &Range<i64>) -> Range<i64> {
    blocks.start >> 4..((blocks.end - 1) >> 4) + 1
}

/// The index of a cell in the order x slowest, then y, then z. The coordinates are below 16.
#[inline]
pub const fn cell_index([x, y, z]: [usize; 3]) -> usize {
    x << 8 | y << 4 | z
}

/// The cell at an index of [`cell_index`].
#[inline]
pub const fn cell_position(index: usize) -> [usize; 3] {
    [index / CHUNK_SIZE / CHUNK_SIZE, index / CHUNK_SIZE % CHUNK_SIZE, index % CHUNK_SIZE]
}

/// The radius of the largest disc with at most this many columns; 0, the disc with one column, if there is none.
#[doc(hidden)]
pub fn disc_radius(columns: u64) -> u32 {
    // A disc of radius r has at most as many columns as a disc of radius r + sqrt(1/2) has area.
    ((columns as f64 / PI).sqrt() - FRAC_1_SQRT_2).max(0.0) as u32
}

macro_rules! position {
    ($(#[$docs:meta])* $name:ident { $($axis:ident),+ }) => {
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), type_path = "bevy_terrane")]
        pub struct $name {
            $(#[doc = concat!("Coordinate along the ", stringify!($axis), " axis.")] pub $axis: i64,)+
        }

        impl $name {
            /// The position with these coordinates.
            #[inline]
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
    /// A square of 8 x 8 batches (32 x 32 columns), the unit in which stored columns are tracked.
    TilePos { x, z }
);
position!(
    /// A square of 2^n x 2^n columns, the unit of the regionizer. n is its `section_shift`.
    SectionPos { x, z }
);

/// A dimension's number within its world. It is stored under the dimension's name and never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), type_path = "bevy_terrane")]
pub struct DimensionId(pub u64);

impl fmt::Display for DimensionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dimension {}", self.0)
    }
}

/// The identity of a dimension's generator. Generators with equal identities make equal columns. The identity is
/// stored with the dimension and cannot change, because new ground would not fit the old.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GeneratorIdentity {
    /// The generator's name, such as `terrane:hills`.
    pub name: String,
    /// The version, which increases whenever the generator would make different columns from the same settings.
    pub version: u32,
    /// The seed. The generators of this crate use a digest of their seed and all their settings.
    pub seed: u64,
}

impl GeneratorIdentity {
    /// The identity with this name, version and seed.
    #[inline]
    pub fn new(name: impl Into<String>, version: u32, seed: u64) -> Self {
        Self { name: name.into(), version, seed }
    }

    /// The identity as shown in messages, with the game's own seed if it is known.
    pub fn told(&self, own_seed: Option<u64>) -> String {
        let Self { name, version, seed } = self;
        match own_seed {
            Some(own) if own == *seed => self.to_string(),
            Some(own) => format!("{name} version {version} with seed {own} and settings {seed:016x}"),
            None => format!("{name} version {version} with settings {seed:016x}"),
        }
    }
}

impl fmt::Display for GeneratorIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} version {} with seed {}", self.name, self.version, self.seed)
    }
}

impl BlockPos {
    /// The chunk that holds this block.
    #[inline]
    pub const fn chunk(self) -> ChunkPos {
        ChunkPos::new(self.x >> 4, self.y >> 4, self.z >> 4)
    }

    /// The column that holds this block.
    #[inline]
    pub const fn column(self) -> ColumnPos {
        ColumnPos::new(self.x >> 4, self.z >> 4)
    }

    /// The block's place within its chunk, 0..16 on each axis.
    #[inline]
    pub const fn in_chunk(self) -> [usize; 3] {
        [(self.x & 15) as usize, (self.y & 15) as usize, (self.z & 15) as usize]
    }

    /// The block at this offset along x, y and z; `None` beyond the edges of `i64`.
    #[inline]
    pub fn checked_offset(self, [x, y, z]: [i64; 3]) -> Option<Self> {
        Some(Self::new(self.x.checked_add(x)?, self.y.checked_add(y)?, self.z.checked_add(z)?))
    }

    /// The block at this offset, clamped at the edges of `i64`.
    #[inline]
    pub const fn offset(self, x: i64, y: i64, z: i64) -> Self {
        Self::new(self.x.saturating_add(x), self.y.saturating_add(y), self.z.saturating_add(z))
    }
}

impl ChunkPos {
    /// The column that holds this chunk.
    #[inline]
    pub const fn column(self) -> ColumnPos {
        ColumnPos::new(self.x, self.z)
    }

    /// The chunk's block with the lowest coordinates.
    #[inline]
    pub const fn min_block(self) -> BlockPos {
        BlockPos::new(self.x << 4, self.y << 4, self.z << 4)
    }

    /// The chunk's block in this cell.
    #[inline]
    pub const fn block(self, [x, y, z]: [usize; 3]) -> BlockPos {
        BlockPos::new(self.x << 4 | x as i64, self.y << 4 | y as i64, self.z << 4 | z as i64)
    }
}

impl ColumnPos {
    /// The batch that holds this column.
    #[inline]
    pub const fn batch(self) -> BatchPos {
        BatchPos::new(self.x >> 2, self.z >> 2)
    }

    /// The tile that holds this column.
    #[inline]
    pub const fn tile(self) -> TilePos {
        self.batch().tile()
    }

    /// The column's bit in the column mask of its batch, 0..16: the inverse of [`BatchPos::column`].
    #[inline]
    pub const fn in_batch(self) -> u32 {
        (self.x & 3 | (self.z & 3) << 2) as u32
    }

    /// The section that holds this column, for sections of 2^`shift` columns a side.
    #[inline]
    pub const fn section(self, shift: u32) -> SectionPos {
        SectionPos::new(self.x >> shift, self.z >> shift)
    }

    /// The chunk of this column at the chunk height `y`.
    #[inline]
    pub const fn chunk(self, y: i64) -> ChunkPos {
        ChunkPos::new(self.x, y, self.z)
    }

    /// The column's block at the height `y` with the lowest coordinates.
    #[inline]
    pub const fn min_block(self, y: i64) -> BlockPos {
        BlockPos::new(self.x << 4, y, self.z << 4)
    }

    /// Returns `true` if the column lies within the coordinates that blocks can have.
    #[inline]
    pub fn exists(self) -> bool {
        CHUNK_COORDINATES.contains(&self.x) && CHUNK_COORDINATES.contains(&self.z)
    }

    /// The column at this offset, clamped at the edges of `i64`.
    #[inline]
    pub const fn offset(self, x: i64, z: i64) -> Self {
        Self::new(self.x.saturating_add(x), self.z.saturating_add(z))
    }

    /// The square of the distance between two columns, exact over all of `i64`.
    #[inline]
    pub const fn distance_squared(self, other: Self) -> u128 {
        let x = self.x.abs_diff(other.x) as u128;
        let z = self.z.abs_diff(other.z) as u128;
        // Both squares fit into 64 bits, so only their sum can overflow a u128, at opposite corners.
        (x * x).saturating_add(z * z)
    }
}

impl SectionPos {
    /// The columns of this section, for sections of 2^`shift` columns a side, x outer, z inner, ascending.
    pub fn columns(self, shift: u32) -> impl Iterator<Item = ColumnPos> {
        let along = move |section: i64| (0..1_i64 << shift).map(move |within| (section << shift) + within);
        along(self.x).flat_map(move |x| along(self.z).map(move |z| ColumnPos::new(x, z)))
    }
}

impl BatchPos {
    /// The 16 columns of this batch, z outer, x inner, ascending: bit `x + 4 * z` of a column mask.
    pub fn columns(self) -> impl Iterator<Item = ColumnPos> {
        (0..16).map(move |bit| self.column(bit))
    }

    /// The column at `bit` (0..16) of this batch's column mask.
    #[inline]
    pub const fn column(self, bit: u32) -> ColumnPos {
        ColumnPos::new((self.x << 2) + (bit & 3) as i64, (self.z << 2) + (bit >> 2 & 3) as i64)
    }

    /// The tile that holds this batch.
    #[inline]
    pub const fn tile(self) -> TilePos {
        TilePos::new(self.x >> 3, self.z >> 3)
    }

    /// The batch's place in its tile, 0..64: the inverse of [`TilePos::batch`].
    #[inline]
    pub const fn in_tile(self) -> usize {
        (self.x & 7 | (self.z & 7) << 3) as usize
    }
}

impl TilePos {
    /// The batch at `place` (0..64) of this tile, x + 8 * z; `None` if the tile lies beyond the last column.
    #[inline]
    pub const fn batch(self, place: usize) -> Option<BatchPos> {
        if self.exists() {
            Some(BatchPos::new((self.x << 3) + (place as i64 & 7), (self.z << 3) + (place as i64 >> 3 & 7)))
        } else {
            None
        }
    }

    /// The 64 batches of this tile, z outer, x inner, ascending; none if it lies beyond the last column.
    pub fn batches(self) -> impl Iterator<Item = BatchPos> {
        (0..TILE_BATCHES).filter_map(move |place| self.batch(place))
    }

    #[inline]
    const fn exists(self) -> bool {
        let (first, last) = (i64::MIN >> TILE_SHIFT, i64::MAX >> TILE_SHIFT);
        first <= self.x && self.x <= last && first <= self.z && self.z <= last
    }
}

const TILE_SHIFT: u32 = TILE_COLUMNS.trailing_zeros();

/// The positions of the set bits, ascending.
#[doc(hidden)]
#[inline]
pub fn bits(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
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
        let section = SectionPos::new(-1, i64::MAX >> 4);
        let columns: Vec<_> = section.columns(4).collect();
        assert!(columns.is_sorted() && columns.iter().all(|column| column.section(4) == section));
        assert_eq!((columns.len(), columns[255]), (256, ColumnPos::new(-1, i64::MAX)));
    }

    #[test]
    fn chunks_and_columns_exist_as_far_as_blocks_do() {
        let (first, last) = (BlockPos::new(i64::MIN, i64::MIN, i64::MIN), BlockPos::new(i64::MAX, i64::MAX, i64::MAX));
        assert_eq!(CHUNK_COORDINATES, first.chunk().y..last.chunk().y + 1);
        assert!(first.column().exists() && last.column().exists());
        assert!(!first.column().offset(-1, 0).exists() && !last.column().offset(0, 1).exists());
        assert_eq!(ColumnPos::new(-1, 2).min_block(7), BlockPos::new(-16, 7, 32));
        assert_eq!(chunk_heights(&(-17..16)), -2..1);
        assert_eq!(chunk_heights(&(0..17)), 0..2);
    }

    #[test]
    fn cells_are_in_order_of_x_then_y_then_z() {
        let all = (0..16).flat_map(|x| (0..16).flat_map(move |y| (0..16).map(move |z| [x, y, z])));
        for (index, position) in all.enumerate() {
            assert_eq!((cell_index(position), cell_position(index)), (index, position));
        }
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
    fn a_tile_lists_its_own_batches_and_each_knows_its_place() {
        let last = ColumnPos::new(i64::MAX, i64::MIN).tile();
        for tile in [TilePos::new(0, 0), TilePos::new(-3, 7), last] {
            let batches: Vec<_> = tile.batches().collect();
            assert_eq!(batches.len(), TILE_BATCHES);
            for (place, batch) in batches.into_iter().enumerate() {
                assert_eq!((batch.tile(), batch.in_tile()), (tile, place));
                assert!(batch.columns().all(|column| column.tile() == tile));
                assert!((0..16).all(|bit| batch.column(bit).in_batch() == bit));
            }
        }
        for beyond in [TilePos::new(last.x + 1, 0), TilePos::new(0, last.z - 1), TilePos::new(i64::MIN, i64::MAX)] {
            assert_eq!(beyond.batches().count(), 0);
        }
    }

    #[test]
    fn distances_hold_at_the_edges() {
        let (low, high) = (ColumnPos::new(i64::MIN, 0), ColumnPos::new(i64::MAX, 0));
        assert_eq!(low.distance_squared(high), (u64::MAX as u128) * (u64::MAX as u128));
        assert_eq!(ColumnPos::new(-2, 1).distance_squared(ColumnPos::new(1, 5)), 25);
        assert_eq!(ColumnPos::new(i64::MIN, i64::MIN).distance_squared(ColumnPos::new(i64::MAX, i64::MAX)), u128::MAX);
    }

    #[test]
    fn every_set_bit_is_listed_once_ascending() {
        assert_eq!(bits(0).count(), 0);
        assert_eq!(bits(1 << 63 | 0b1011).collect::<Vec<_>>(), [0, 1, 3, 63]);
        assert!(bits(u64::MAX).eq(0..64));
    }
}
