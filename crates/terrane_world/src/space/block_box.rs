//! [`BlockBox`]: the blocks between two corners, and [`ChunkPart`]: the cells of a chunk that lie in a box.

#[cfg(test)]
mod tests;

use super::{BlockPos, ChunkPos, ColumnArea, ColumnPos, HeightSet};
use crate::space::CHUNK_SIZE;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Range, RangeInclusive};

/// Every block between two corners, both included. Exact over all of `i64`. Empty if a coordinate of `min` is above
/// that of `max`.
///
/// ```
/// use terrane_world::space::{BlockBox, BlockPos, ChunkPos};
///
/// let hall = BlockBox::new(BlockPos::new(20, 63, -5), BlockPos::new(-4, 70, 5));
/// assert_eq!(hall.min, BlockPos::new(-4, 63, -5));
/// assert_eq!(hall.volume(), 25 * 8 * 11);
/// assert_eq!(hall.part(ChunkPos::new(1, 3, 0)).unwrap().ranges(), [0..5, 15..16, 0..6]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), type_path = "bevy_terrane")]
pub struct BlockBox {
    /// The corner with the lowest coordinates.
    pub min: BlockPos,
    /// The corner with the highest coordinates.
    pub max: BlockPos,
}

impl BlockBox {
    /// All blocks.
    pub const ALL: Self =
        Self { min: BlockPos::new(i64::MIN, i64::MIN, i64::MIN), max: BlockPos::new(i64::MAX, i64::MAX, i64::MAX) };

    /// The box between two opposite corners, in any order. It has at least one block.
    pub fn new(a: BlockPos, b: BlockPos) -> Self {
        Self {
            min: BlockPos::new(a.x.min(b.x), a.y.min(b.y), a.z.min(b.z)),
            max: BlockPos::new(a.x.max(b.x), a.y.max(b.y), a.z.max(b.z)),
        }
    }

    /// The blocks of a chunk.
    pub const fn of_chunk(chunk: ChunkPos) -> Self {
        let min = chunk.min_block();
        Self { min, max: BlockPos::new(min.x | 15, min.y | 15, min.z | 15) }
    }

    /// Returns `true` if the box contains no blocks.
    pub const fn is_empty(&self) -> bool {
        self.min.x > self.max.x || self.min.y > self.max.y || self.min.z > self.max.z
    }

    /// Returns `true` if the box contains the block.
    pub fn contains(&self, block: BlockPos) -> bool {
        (self.min.x..=self.max.x).contains(&block.x)
            && (self.min.y..=self.max.y).contains(&block.y)
            && (self.min.z..=self.max.z).contains(&block.z)
    }

    /// The blocks that are in both boxes, possibly none.
    pub fn intersection(&self, other: &Self) -> Self {
        Self {
            min: BlockPos::new(self.min.x.max(other.min.x), self.min.y.max(other.min.y), self.min.z.max(other.min.z)),
            max: BlockPos::new(self.max.x.min(other.max.x), self.max.y.min(other.max.y), self.max.z.min(other.max.z)),
        }
    }

    /// The number of blocks along x, y and z: up to 2^64 each, and all 0 if the box is empty.
    pub fn size(&self) -> [u128; 3] {
        if self.is_empty() {
            return [0; 3];
        }
        let length = |min: i64, max: i64| u128::from(max.abs_diff(min)) + 1;
        [length(self.min.x, self.max.x), length(self.min.y, self.max.y), length(self.min.z, self.max.z)]
    }

    /// The number of blocks, capped at the highest `u128`.
    pub fn volume(&self) -> u128 {
        self.size().into_iter().fold(1, u128::saturating_mul)
    }

    /// The lowest and the highest chunk on all axes; `None` if the box is empty.
    pub fn chunks(&self) -> Option<(ChunkPos, ChunkPos)> {
        (!self.is_empty()).then(|| (self.min.chunk(), self.max.chunk()))
    }

    /// The chunk heights that the box intersects; `None` if it is empty.
    pub fn chunk_heights(&self) -> Option<RangeInclusive<i64>> {
        self.chunks().map(|(min, max)| min.y..=max.y)
    }

    /// [`chunk_heights`](Self::chunk_heights) as a set.
    pub fn height_set(&self) -> HeightSet {
        self.chunk_heights().map_or_else(HeightSet::new, |heights| (*heights.start()..heights.end() + 1).into())
    }

    /// The columns that the box intersects, as an area.
    pub const fn column_area(&self) -> ColumnArea {
        if self.is_empty() {
            return ColumnArea::Box { min: ColumnPos::new(0, 0), max: ColumnPos::new(-1, -1) };
        }
        ColumnArea::Box { min: self.min.column(), max: self.max.column() }
    }

    /// Returns `true` if the box intersects the column.
    pub fn reaches(&self, column: ColumnPos) -> bool {
        self.column_area().contains(column)
    }

    /// The columns that the box intersects, x slowest, ascending.
    pub fn columns(&self) -> impl Iterator<Item = ColumnPos> + use<> {
        let corners = self.column_area().bounds();
        let rows = corners.into_iter().flat_map(|(min, max)| (min.x..=max.x).map(move |x| (x, min.z..=max.z)));
        rows.flat_map(|(x, z)| z.map(move |z| ColumnPos::new(x, z)))
    }

    /// The cells of the chunk that lie in the box; `None` if there are none.
    pub fn part(&self, chunk: ChunkPos) -> Option<ChunkPart> {
        if self.is_empty() {
            return None;
        }
        // A chunk outside `i64` has no blocks, and its lowest block would wrap around.
        let of_chunk = Self::of_chunk(chunk);
        if of_chunk.min.chunk() != chunk {
            return None;
        }
        let inside = self.intersection(&of_chunk);
        let range = |min: usize, max: usize| min as u8..max as u8 + 1;
        let ([x, y, z], [to_x, to_y, to_z]) = (inside.min.in_chunk(), inside.max.in_chunk());
        (!inside.is_empty()).then(|| ChunkPart::new([range(x, to_x), range(y, to_y), range(z, to_z)])).flatten()
    }
}

impl fmt::Display for BlockBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "box from {} to {}", self.min, self.max)
    }
}

/// The cells of a chunk within a range of coordinates on each axis. There is always at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChunkPart {
    min: [u8; 3],
    /// Exclusive.
    end: [u8; 3],
}

impl ChunkPart {
    /// All cells.
    pub const WHOLE: Self = Self { min: [0; 3], end: [CHUNK_SIZE as u8; 3] };

    /// The cells within the ranges of x, y and z; `None` if a range is empty or reaches beyond the chunk.
    pub fn new([x, y, z]: [Range<u8>; 3]) -> Option<Self> {
        let is_valid = |range: &Range<u8>| range.start < range.end && usize::from(range.end) <= CHUNK_SIZE;
        [&x, &y, &z]
            .into_iter()
            .all(is_valid)
            .then_some(Self { min: [x.start, y.start, z.start], end: [x.end, y.end, z.end] })
    }

    /// Returns `true` if the part is the whole chunk.
    pub fn is_whole(&self) -> bool {
        *self == Self::WHOLE
    }

    /// The ranges of x, y and z.
    pub fn ranges(&self) -> [Range<usize>; 3] {
        std::array::from_fn(|axis| self.min[axis].into()..self.end[axis].into())
    }

    /// Returns `true` if the part contains the cell.
    pub fn contains(&self, position: [usize; 3]) -> bool {
        self.ranges().iter().zip(position).all(|(range, coordinate)| range.contains(&coordinate))
    }

    /// The number of cells: 1 to 4096.
    pub fn volume(&self) -> usize {
        self.ranges().map(|range| range.len()).iter().product()
    }

    /// The cells, x slowest, then y, then z.
    pub fn cells(&self) -> impl Iterator<Item = [usize; 3]> + use<> {
        let [x, y, z] = self.ranges();
        let rows = x.flat_map(move |x| y.clone().map(move |y| (x, y)));
        rows.flat_map(move |(x, y)| z.clone().map(move |z| [x, y, z]))
    }
}
