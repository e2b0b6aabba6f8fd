//! [`ColumnLight`]: the light of one column.

use super::{ChunkLight, LightMap, LightTable};
use crate::chunk::Column;
use crate::space::{BlockPos, ColumnPos, HeightSet};
use std::collections::BTreeMap;

/// The light of a column's chunks, before it is [inserted](LightMap::insert) into a [`LightMap`] or after it was
/// [removed](LightMap::remove) from one. In a sparse dimension, the light of the loaded heights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnLight {
    pub(super) pos: ColumnPos,
    pub(super) open_from: i64,
    pub(super) chunks: BTreeMap<i64, ChunkLight>,
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

    /// The light of a column that was stored: all that [`chunks`](Self::chunks) has returned.
    pub fn from_chunks(pos: ColumnPos, open_from: i64, chunks: impl IntoIterator<Item = (i64, ChunkLight)>) -> Self {
        Self { pos, open_from, chunks: chunks.into_iter().collect(), is_alone: false }
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
        self.chunks.get(&y)
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
        self.chunks.values().map(|light| entry + light.heap_bytes()).sum()
    }
}
