//! [`ColumnLight`]: the light of one column.

use super::{ChunkLight, LightMap, LightTable};
use crate::chunk::Column;
use crate::space::{BlockPos, ColumnPos, HeightSet};

/// The light of a column's chunks: [without its neighbors](Self::new), or [as a `LightMap` has it](LightMap::column). In a sparse
/// dimension, the light of the loaded heights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnLight {
    pub(super) pos: ColumnPos,
    pub(super) open_from: i64,
    /// By chunk height, ascending.
    pub(super) chunks: Vec<(i64, ChunkLight)>,
    /// Known to be the light that these chunks have without any neighbor.
    pub(super) is_alone: bool,
}

impl ColumnLight {
    /// Computes the light of the column's chunks at these heights, from scratch and without the columns around it. A missing
    /// chunk among them is air.
    ///
    /// Chunks above these heights are open sky from the chunk height `open_from` on, and dark below it. In a dense dimension,
    /// the heights are its height range and `open_from` is the range's end. In a sparse one, `i64::MIN` lets the sky shine
    /// on whatever is loaded, and `i64::MAX` on nothing.
    ///
    /// Costs about 100 us for a column of 24 chunks of hills.
    pub fn new(table: &LightTable, column: &Column, heights: &HeightSet, open_from: i64) -> Self {
        let mut map = LightMap::new();
        map.insert_dark(table, column, heights, open_from);
        map.advance(table, column, usize::MAX);
        let chunks = map.take_chunks();
        Self { pos: column.pos(), open_from, chunks, is_alone: true }
    }

    /// The position of the column.
    pub const fn pos(&self) -> ColumnPos {
        self.pos
    }

    /// The chunk height from which missing chunks are open sky.
    pub const fn open_from(&self) -> i64 {
        self.open_from
    }

    /// The light of the chunk at the chunk height `y`.
    pub fn chunk(&self, y: i64) -> Option<&ChunkLight> {
        let place = self.chunks.binary_search_by_key(&y, |(y, _)| *y).ok()?;
        self.chunks.get(place).map(|(_, light)| light)
    }

    /// The levels of sky light and of block light at a position in this column; `None` if its chunk has no light.
    pub fn levels(&self, pos: BlockPos) -> Option<[u8; 2]> {
        debug_assert_eq!(pos.column(), self.pos, "{pos} is in another column");
        Some(self.chunk(pos.chunk().y)?.levels(pos.in_chunk()))
    }

    /// The light of all chunks with their chunk heights, in ascending order.
    pub fn chunks(&self) -> impl DoubleEndedIterator<Item = (i64, &ChunkLight)> + ExactSizeIterator {
        self.chunks.iter().map(|(y, light)| (*y, light))
    }

    /// The heap memory in bytes, including shared memory. The size of the map is an estimate.
    pub fn heap_bytes(&self) -> usize {
        let entry = size_of::<(i64, ChunkLight)>();
        self.chunks.iter().map(|(_, light)| entry + light.heap_bytes()).sum()
    }
}
