//! Columns: the chunks with the same x and z.

use super::Chunk;
use crate::block::BlockId;
use crate::space::{BlockPos, CHUNK_SIZE, ColumnPos, HeightSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every chunk with the same x and z; in a sparse dimension, only the chunks at loaded heights. A missing chunk is air.
///
/// A clone shares all chunks with the original. Writing to either copy only copies the chunk that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pos: ColumnPos,
    chunks: BTreeMap<i64, Arc<Chunk>>,
    /// `None` if all heights are loaded.
    loaded: Option<HeightSet>,
}

impl Column {
    /// A column of air.
    pub const fn new(pos: ColumnPos) -> Self {
        Self { pos, chunks: BTreeMap::new(), loaded: None }
    }

    /// A partial column of air at these chunk heights.
    pub const fn partial(pos: ColumnPos, loaded: HeightSet) -> Self {
        Self { pos, chunks: BTreeMap::new(), loaded: Some(loaded) }
    }

    /// The loaded chunk heights; `None` if all are loaded.
    pub const fn loaded(&self) -> Option<&HeightSet> {
        self.loaded.as_ref()
    }

    /// Returns `true` if the chunk height `y` is loaded, even if it is all air.
    #[inline]
    pub fn is_loaded(&self, y: i64) -> bool {
        self.loaded.as_ref().is_none_or(|loaded| loaded.contains(y))
    }

    /// The chunk at height `y`: `None` if it is not loaded, and `Some(None)` if it is all air.
    #[inline]
    pub fn loaded_chunk(&self, y: i64) -> Option<Option<&Chunk>> {
        self.is_loaded(y).then(|| self.chunk(y).map(|chunk| &**chunk))
    }

    /// Adds the chunk heights of `other` that are not loaded here, and returns them.
    pub fn extend(&mut self, other: &Self) -> HeightSet {
        debug_assert_eq!(other.pos, self.pos, "it is another column");
        let (Some(loaded), Some(more)) = (&mut self.loaded, &other.loaded) else { return HeightSet::new() };
        let new = more.difference(loaded);
        loaded.insert_all(&new);
        let chunks = new.ranges().flat_map(|range| other.chunks.range(range));
        self.chunks.extend(chunks.map(|(y, chunk)| (*y, chunk.clone())));
        new
    }

    /// Removes these chunk heights and returns them as a partial column; empty if all heights of this column are loaded.
    pub fn cut(&mut self, heights: &HeightSet) -> Self {
        let Some(loaded) = &mut self.loaded else { return Self::partial(self.pos, HeightSet::new()) };
        let mut part = Self::partial(self.pos, loaded.intersection(heights));
        loaded.remove_all(heights);
        for range in heights.ranges() {
            part.chunks.extend(self.chunks.extract_if(range, |_, _| true));
        }
        part
    }

    /// The position of the column.
    #[inline]
    pub const fn pos(&self) -> ColumnPos {
        self.pos
    }

    /// The block at a position in this column; air if the height is not loaded.
    #[inline]
    pub fn block(&self, pos: BlockPos) -> BlockId {
        debug_assert_eq!(pos.column(), self.pos, "{pos} is in another column");
        self.chunks.get(&pos.chunk().y).map_or(BlockId::AIR, |chunk| chunk.block(pos.in_chunk()))
    }

    /// Replaces the block at a position in this column and returns the old one.
    #[inline]
    pub fn set_block(&mut self, pos: BlockPos, block: BlockId) -> BlockId {
        debug_assert_eq!(pos.column(), self.pos, "{pos} is in another column");
        let y = pos.chunk().y;
        match self.chunks.get_mut(&y) {
            // An unchanged chunk stays shared.
            Some(chunk) if chunk.block(pos.in_chunk()) == block => block,
            Some(chunk) => Arc::make_mut(chunk).set_block(pos.in_chunk(), block),
            None => {
                if block != BlockId::AIR {
                    let mut chunk = Chunk::default();
                    chunk.set_block(pos.in_chunk(), block);
                    self.chunks.insert(y, Arc::new(chunk));
                }
                BlockId::AIR
            }
        }
    }

    /// The chunk at the chunk height `y`.
    #[inline]
    pub fn chunk(&self, y: i64) -> Option<&Arc<Chunk>> {
        self.chunks.get(&y)
    }

    /// Replaces the chunk at the chunk height `y` and returns the old one. The height becomes loaded.
    pub fn set_chunk(&mut self, y: i64, chunk: Arc<Chunk>) -> Option<Arc<Chunk>> {
        if let Some(loaded) = &mut self.loaded {
            loaded.insert(y..y + 1);
        }
        self.chunks.insert(y, chunk)
    }

    /// The chunk at the chunk height `y`, for setting layers and components of its blocks. A shared chunk is copied,
    /// and a missing one is created as air.
    ///
    /// # Panics
    /// If the height is not loaded.
    #[inline]
    pub fn chunk_mut(&mut self, y: i64) -> &mut Chunk {
        assert!(self.is_loaded(y), "the chunk height {y} of {} is not loaded", self.pos);
        Arc::make_mut(self.chunks.entry(y).or_default())
    }

    /// Removes the chunk at the chunk height `y`, which becomes air.
    pub fn remove_chunk(&mut self, y: i64) -> Option<Arc<Chunk>> {
        self.chunks.remove(&y)
    }

    /// All chunks with their chunk heights, in ascending order.
    pub fn chunks(&self) -> impl DoubleEndedIterator<Item = (i64, &Arc<Chunk>)> + ExactSizeIterator {
        self.chunks.iter().map(|(y, chunk)| (*y, chunk))
    }

    /// The block height of the highest block at x, z within the column that is not air.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    #[inline]
    pub fn surface(&self, x: usize, z: usize) -> Option<i64> {
        self.highest(x, z, |block| block != BlockId::AIR)
    }

    /// The block height of the highest block at x, z for which `is_wanted` is true.
    pub fn highest(&self, x: usize, z: usize, is_wanted: impl Fn(BlockId) -> bool) -> Option<i64> {
        assert!((x | z) < CHUNK_SIZE, "[{x}, {z}] is outside of a column");
        self.chunks.iter().rev().find_map(|(chunk_y, chunk)| {
            let has_any = chunk.palette().iter().any(|block| is_wanted(*block));
            let mut heights = if has_any { 0..CHUNK_SIZE } else { 0..0 };
            heights.rfind(|y| is_wanted(chunk.block([x, *y, z]))).map(|y| (chunk_y << 4) + y as i64)
        })
    }

    /// At each place of the column, `x + 16 * z`, the highest block for which `is_wanted` is true, with its height.
    pub(crate) fn highest_of_all(&self, is_wanted: impl Fn(BlockId) -> bool) -> Vec<Option<(i64, BlockId)>> {
        let mut highest = vec![None; CHUNK_SIZE * CHUNK_SIZE];
        let mut open = highest.len();
        for (chunk_y, chunk) in self.chunks().rev() {
            if open == 0 || !chunk.palette().iter().copied().any(&is_wanted) {
                continue;
            }
            let heights = chunk.heights_of(&is_wanted);
            for (place, highest) in highest.iter_mut().enumerate().filter(|(_, highest)| highest.is_none()) {
                let (x, z) = (place % CHUNK_SIZE, place / CHUNK_SIZE);
                if let Some(y) = heights[x][z].checked_ilog2() {
                    *highest = Some(((chunk_y << 4) + i64::from(y), chunk.block([x, y as usize, z])));
                    open -= 1;
                }
            }
        }
        highest
    }

    /// The heap memory of the column in bytes, including shared chunks. The size of the map is an estimate.
    pub fn heap_bytes(&self) -> usize {
        let counters = 2 * size_of::<usize>();
        let entry = size_of::<(i64, Arc<Chunk>)>() + counters + size_of::<Chunk>();
        self.chunks.values().map(|chunk| entry + chunk.heap_bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const POS: ColumnPos = ColumnPos::new(-2, 1);
    const STONE: BlockId = BlockId::new(1);

    fn at(x: i64, y: i64, z: i64) -> BlockPos {
        BlockPos::new(POS.x * 16 + x, y, POS.z * 16 + z)
    }

    #[test]
    fn air_makes_no_chunk() {
        let mut column = Column::new(POS);
        assert_eq!(column.set_block(at(0, 70, 0), BlockId::AIR), BlockId::AIR);
        assert_eq!(column.chunks().len(), 0);
        assert_eq!(column.heap_bytes(), 0);
        assert_eq!(column.surface(0, 0), None);
    }

    #[test]
    fn editing_a_clone_leaves_the_original() {
        let mut column = Column::new(POS);
        column.set_block(at(1, 1, 1), STONE);
        column.set_block(at(1, 17, 1), STONE);
        let original = column.clone();
        assert!(Arc::ptr_eq(original.chunk(0).unwrap(), column.chunk(0).unwrap()));

        column.set_block(at(1, 1, 1), STONE);
        assert!(Arc::ptr_eq(original.chunk(0).unwrap(), column.chunk(0).unwrap()), "nothing changed");

        assert_eq!(column.set_block(at(1, 1, 1), BlockId::AIR), STONE);
        assert_eq!(original.block(at(1, 1, 1)), STONE);
        assert_eq!(column.block(at(1, 1, 1)), BlockId::AIR);
        assert!(!Arc::ptr_eq(original.chunk(0).unwrap(), column.chunk(0).unwrap()));
        assert!(Arc::ptr_eq(original.chunk(1).unwrap(), column.chunk(1).unwrap()), "the other chunk stays shared");
    }

    #[test]
    fn a_chunk_is_copied_to_set_its_layers_only_if_it_is_shared() {
        let mut column = Column::new(POS);
        column.chunk_mut(0).set_block_at([1, 1, 1], 1, STONE).unwrap();
        let original = column.clone();
        column.chunk_mut(0).remove_block([1, 1, 1], 1);
        assert_eq!(original.chunk(0).unwrap().layer_count([1, 1, 1]), 2);
        let before = Arc::as_ptr(column.chunk(0).unwrap());
        column.chunk_mut(0).set_block([0, 0, 0], STONE);
        assert_eq!(Arc::as_ptr(column.chunk(0).unwrap()), before);
    }

    #[test]
    fn a_chunk_alone_is_edited_in_place() {
        let mut column = Column::new(POS);
        column.set_block(at(0, 0, 0), STONE);
        let before = Arc::as_ptr(column.chunk(0).unwrap());
        column.set_block(at(5, 5, 5), STONE);
        assert_eq!(Arc::as_ptr(column.chunk(0).unwrap()), before);
    }

    #[test]
    fn chunks_ascend_and_can_be_replaced() {
        let mut column = Column::new(POS);
        for y in [3, -4, 0] {
            assert!(column.set_chunk(y, Arc::new(Chunk::uniform(STONE))).is_none());
        }
        assert!(column.chunks().map(|(y, _)| y).eq([-4, 0, 3]));
        assert_eq!(column.surface(15, 15), Some(63));
        assert_eq!(column.set_chunk(3, Arc::default()).unwrap().uniform_block(), Some(STONE));
        assert_eq!(column.surface(15, 15), Some(15));
        assert!(column.remove_chunk(0).is_some() && column.remove_chunk(0).is_none());
        assert_eq!(column.surface(0, 0), Some(-49));
    }

    #[test]
    fn a_whole_column_has_all_heights_and_keeps_them() {
        let mut column = Column::new(POS);
        column.set_block(at(0, 0, 0), STONE);
        let before = column.clone();
        assert!(column.is_loaded(i64::MIN) && column.loaded().is_none());
        assert!(column.extend(&Column::partial(POS, HeightSet::from(0..4))).is_empty());
        assert_eq!(column.cut(&HeightSet::from(0..4)), Column::partial(POS, HeightSet::new()));
        assert_eq!(column, before);
    }

    #[test]
    fn heights_reach_the_edges() {
        let mut column = Column::new(POS);
        for y in [i64::MIN, i64::MAX] {
            column.set_block(at(2, y, 3), STONE);
            assert_eq!(column.block(at(2, y, 3)), STONE);
            assert_eq!(column.surface(2, 3), Some(y));
        }
    }

    proptest! {
        /// However columns are joined and cut, each height is in exactly one part, with its first chunk.
        #[test]
        fn parts_join_and_come_apart(
            parts in prop::collection::vec(prop::collection::btree_map(0..12_i64, 0..3_u32, 0..8), 1..6),
            cuts in prop::collection::btree_set(0..12_i64, 0..8),
        ) {
            let mut whole = Column::partial(POS, HeightSet::new());
            let mut model = BTreeMap::new();
            for heights in parts {
                let mut part = Column::partial(POS, heights.keys().copied().collect());
                for (y, block) in heights.iter().filter(|(_, block)| **block > 0) {
                    part.set_chunk(*y, Arc::new(Chunk::uniform(BlockId::new(*block))));
                }
                let new = whole.extend(&part);
                prop_assert!(new.iter().eq(heights.keys().filter(|y| !model.contains_key(*y)).copied()));
                for (y, block) in heights {
                    model.entry(y).or_insert(block);
                }
            }
            let cut = whole.cut(&cuts.iter().copied().collect());
            for y in 0..12 {
                let expected = model.get(&y).copied();
                let (part, other) = if cuts.contains(&y) { (&cut, &whole) } else { (&whole, &cut) };
                let found = part.is_loaded(y).then(|| part.block(at(0, y << 4, 0)).index());
                prop_assert_eq!(found, expected, "{}", y);
                prop_assert!(!other.is_loaded(y) && other.chunk(y).is_none());
            }
        }

        #[test]
        fn a_column_is_a_map_from_positions_to_blocks(
            edits in prop::collection::vec((0..4i64, -40..40i64, 0..4i64, 0..4u32), 0..300),
        ) {
            let mut column = Column::new(POS);
            let mut model = HashMap::new();
            for (x, y, z, block) in edits {
                let old = column.set_block(at(x, y, z), BlockId::new(block));
                prop_assert_eq!(old.index(), model.insert((x, y, z), block).unwrap_or(0));
            }
            for x in 0..5 {
                for z in 0..5 {
                    let surface = (-50..50).rev().find(|y| model.get(&(x, *y, z)).is_some_and(|block| *block != 0));
                    prop_assert_eq!(column.surface(x as usize, z as usize), surface);
                    for y in -50..50 {
                        let expected = model.get(&(x, y, z)).copied().unwrap_or(0);
                        prop_assert_eq!(column.block(at(x, y, z)).index(), expected);
                    }
                }
            }
        }
    }
}
