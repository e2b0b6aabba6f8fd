//! [`ChunkPart`]: the cells of a chunk that lie in a box.

use super::CHUNK_SIZE;
use std::ops::Range;

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
