//! Computes the restored chunks of a snapshot: which parts, which blocks ([`BlockFilter`]), and in which order
//! ([`RestoreSequence`]).

#[cfg(test)]
mod tests;

use super::Snapshot;
use crate::block::{BlockId, BlockSet};
use crate::chunk::{CellMask, Chunk, Column};
use crate::space::{BlockBox, ChunkPart, ColumnPos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The chunk to replace `current`, in which the cells of `part` have these snapshot parts from `wanted` wherever the
/// filter allows it; `None` if nothing changes. A missing chunk is air.
///
/// A full restore of all cells returns `wanted` itself, otherwise a new chunk that combines both.
pub fn restored_chunk(
    current: Option<&Arc<Chunk>>,
    wanted: Option<&Arc<Chunk>>,
    part: &ChunkPart,
    filter: &BlockFilter,
    parts: SnapshotParts,
) -> Option<Arc<Chunk>> {
    match (current, wanted) {
        (None, None) => return None,
        (Some(current), Some(wanted)) if Arc::ptr_eq(current, wanted) => return None,
        _ => {}
    }
    let air = Chunk::default();
    let now = current.map_or(&air, |chunk| &**chunk);
    let then = wanted.map_or(&air, |chunk| &**chunk);
    let restored = || wanted.cloned().unwrap_or_default();
    if now == then || !parts.has_cells() {
        return None;
    }
    let mut cells = CellMask::of_part(part);
    if !filter.is_all() {
        cells.keep_blocks(now, |block| filter.current.contains(block));
        cells.keep_blocks(then, |block| filter.wanted.contains(block));
    }
    if cells.is_whole() && parts.has_all_of_cells() {
        return Some(restored());
    }
    if cells.is_empty() {
        return None;
    }
    let none = CellMask::NONE;
    let [blocks, layers, components] =
        [parts.blocks, parts.layers, parts.components].map(|is_held| if is_held { &cells } else { &none });
    let mixed = now.with_cells_of(then, blocks, layers, components);
    if mixed == *now {
        None
    } else if mixed == *then {
        Some(restored())
    } else {
        Some(Arc::new(mixed))
    }
}

impl Snapshot {
    /// The chunks to set in a column to restore this snapshot, in ascending order: the chunk heights that differ, with
    /// the restored chunks. Heights that are missing in the snapshot or not loaded in the column are left out.
    pub fn restored_chunks<'a>(
        &'a self,
        current: &'a Column,
        filter: &'a BlockFilter,
    ) -> impl Iterator<Item = (i64, Arc<Chunk>)> + 'a {
        let pos = current.pos();
        let column = self.column(pos);
        let heights = self.area.chunk_heights();
        let wanted = column.into_iter().flat_map(|column| column.chunks());
        let now = heights.filter(|_| column.is_some()).into_iter().flat_map(move |heights| {
            let (low, high) = heights.into_inner();
            current.chunks().skip_while(move |(y, _)| *y < low).take_while(move |(y, _)| *y <= high)
        });
        merged(now, wanted).filter_map(move |(y, now, wanted)| {
            if !column?.holds(y) || !current.is_loaded(y) {
                return None;
            }
            // Most chunks are still shared, which this check finds cheaply.
            if let (Some(now), Some(wanted)) = (now, wanted)
                && Arc::ptr_eq(now, wanted)
            {
                return None;
            }
            let part = self.area.part(pos.chunk(y))?;
            Some((y, restored_chunk(now, wanted, &part, filter, self.parts)?))
        })
    }
}

type Chunks<'a> = (i64, Option<&'a Arc<Chunk>>, Option<&'a Arc<Chunk>>);

fn merged<'a>(
    a: impl Iterator<Item = (i64, &'a Arc<Chunk>)>,
    b: impl Iterator<Item = (i64, &'a Arc<Chunk>)>,
) -> impl Iterator<Item = Chunks<'a>> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || {
        let next = [a.peek(), b.peek()].into_iter().flatten().map(|(y, _)| *y).min()?;
        let from_a = a.next_if(|(y, _)| *y == next).map(|(_, chunk)| chunk);
        Some((next, from_a, b.next_if(|(y, _)| *y == next).map(|(_, chunk)| chunk)))
    })
}

/// A choice of block types.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockChoice {
    /// All types.
    #[default]
    All,
    /// The types in the set.
    Only(BlockSet),
    /// The types that are not in the set.
    AllBut(BlockSet),
}

/// The cells that a restore may change: those whose current and captured blocks in layer 0 are both chosen. A cell is
/// restored with all its layers and components, or not at all. The default is all cells.
///
/// ```
/// use terrane_world::block::BlockId;
/// use terrane_world::snapshot::{BlockChoice, BlockFilter};
///
/// // Fills holes, and leaves buildings alone.
/// let holes = BlockFilter { current: BlockChoice::only([BlockId::AIR]), ..BlockFilter::default() };
/// assert!(holes.current.contains(BlockId::AIR) && !holes.current.contains(BlockId::new(1)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockFilter {
    /// The blocks that may be replaced.
    pub current: BlockChoice,
    /// The captured blocks that may be restored.
    pub wanted: BlockChoice,
}

impl BlockChoice {
    /// Only these types.
    pub fn only(blocks: impl IntoIterator<Item = BlockId>) -> Self {
        Self::Only(blocks.into_iter().collect())
    }

    /// All types but these.
    pub fn all_but(blocks: impl IntoIterator<Item = BlockId>) -> Self {
        Self::AllBut(blocks.into_iter().collect())
    }

    /// Returns `true` if the block is chosen.
    pub fn contains(&self, block: BlockId) -> bool {
        match self {
            Self::All => true,
            Self::Only(blocks) => blocks.contains(block),
            Self::AllBut(blocks) => !blocks.contains(block),
        }
    }
}

impl BlockFilter {
    /// Returns `true` if the filter allows all blocks.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// The parts of a box that a snapshot contains. A restore leaves other parts alone. The default is all parts.
///
/// | excluded part | effect when the snapshot is restored |
/// |---|---|
/// | blocks | blocks stay unchanged |
/// | layers | the layers above a block stay unless the block changes, which removes them |
/// | components | an unchanged block keeps its components; a changed block gets zeros and empty values |
/// | entities | entities are neither added nor removed |
///
/// Without blocks, layers are restored onto the current blocks, and components only to blocks whose type is still the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SnapshotParts {
    /// The blocks of layer 0.
    pub blocks: bool,
    /// The blocks of the layers above.
    pub layers: bool,
    /// The components of blocks.
    pub components: bool,
    /// Entities, which never include players.
    pub entities: bool,
}

impl SnapshotParts {
    /// All parts.
    pub const ALL: Self = Self { blocks: true, layers: true, components: true, entities: true };

    /// The parts in both sets.
    pub const fn intersection(self, other: Self) -> Self {
        Self {
            blocks: self.blocks && other.blocks,
            layers: self.layers && other.layers,
            components: self.components && other.components,
            entities: self.entities && other.entities,
        }
    }

    /// Returns `true` if any part of chunks is included.
    pub(super) const fn has_cells(self) -> bool {
        self.blocks || self.layers || self.components
    }

    /// Returns `true` if all parts of chunks are included.
    pub(super) const fn has_all_of_cells(self) -> bool {
        self.blocks && self.layers && self.components
    }
}

impl Default for SnapshotParts {
    fn default() -> Self {
        Self::ALL
    }
}

/// The sequence in which the chunks of a box are restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), type_path = "bevy_terrane")]
pub enum RestoreSequence {
    /// Chunk height by chunk height, the lowest first.
    #[default]
    BottomUp,
    /// Chunk height by chunk height, the highest first.
    TopDown,
    /// In waves from the middle: the middle column, then the columns around it, and so on.
    Outwards,
    /// Column by column, the nearest to this one first.
    Nearest(ColumnPos),
}

impl RestoreSequence {
    /// The phases in which these columns of a box are restored, one after the other. Each lists columns with their
    /// chunk heights.
    #[doc(hidden)]
    pub fn phases(self, columns: &[ColumnPos], area: &BlockBox) -> Vec<Vec<(ColumnPos, RangeInclusive<i64>)>> {
        let Some(heights) = area.chunk_heights() else { return Vec::new() };
        let at = |heights: &RangeInclusive<i64>| columns.iter().map(|column| (*column, heights.clone())).collect();
        let layers = heights.clone().map(|y| at(&(y..=y)));
        match self {
            Self::BottomUp => layers.collect(),
            Self::TopDown => layers.rev().collect(),
            Self::Outwards => {
                let middle = area.column_area().center();
                let mut waves: BTreeMap<u64, Vec<_>> = BTreeMap::new();
                for column in columns {
                    let wave = column.x.abs_diff(middle.x).max(column.z.abs_diff(middle.z));
                    waves.entry(wave).or_default().push((*column, heights.clone()));
                }
                waves.into_values().collect()
            }
            Self::Nearest(to) => {
                let mut columns = columns.to_vec();
                columns.sort_by_cached_key(|column| (to.distance_squared(*column), *column));
                columns.into_iter().map(|column| vec![(column, heights.clone())]).collect()
            }
        }
    }
}

#[cfg(test)]
mod sequence_tests {
    use super::*;
    use crate::space::BlockPos;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn phases(sequence: RestoreSequence, area: &BlockBox) -> Vec<Vec<(ColumnPos, RangeInclusive<i64>)>> {
        sequence.phases(&area.columns().collect::<Vec<_>>(), area)
    }

    fn area(min: [i64; 3], max: [i64; 3]) -> BlockBox {
        let [a, b] = [min, max].map(|[x, y, z]| BlockPos::new(x * 16, y * 16, z * 16));
        BlockBox::new(a, b)
    }

    #[test]
    fn layers_come_one_after_the_other() {
        let area = area([0, -1, 0], [1, 1, 0]);
        let layer = |y: i64| vec![(ColumnPos::new(0, 0), y..=y), (ColumnPos::new(1, 0), y..=y)];
        assert_eq!(phases(RestoreSequence::BottomUp, &area), [-1, 0, 1].map(layer));
        assert_eq!(phases(RestoreSequence::TopDown, &area), [1, 0, -1].map(layer));
    }

    #[test]
    fn waves_run_outwards_from_the_middle() {
        let waves = phases(RestoreSequence::Outwards, &area([-2, 0, 0], [2, 0, 4]));
        assert_eq!(waves.iter().map(Vec::len).collect::<Vec<_>>(), [1, 8, 16]);
        assert_eq!(waves[0], [(ColumnPos::new(0, 2), 0..=0)]);
    }

    #[test]
    fn the_nearest_column_is_first() {
        let nearest = phases(RestoreSequence::Nearest(ColumnPos::new(9, -1)), &area([0, 0, 0], [2, 1, 2]));
        assert_eq!(nearest[..2], [(2, 0), (2, 1)].map(|(x, z)| vec![(ColumnPos::new(x, z), 0..=1)]));
    }

    #[test]
    fn an_empty_box_has_nothing_to_restore() {
        let empty = BlockBox { min: BlockPos::new(1, 0, 0), max: BlockPos::new(0, 9, 9) };
        assert!(phases(RestoreSequence::Nearest(ColumnPos::new(0, 0)), &empty).concat().is_empty());
        assert!(phases(RestoreSequence::BottomUp, &empty).concat().is_empty());
    }

    proptest! {
        /// Promise, snapshots: A restore can be limited to a part of the box and to some blocks, and its order can be chosen.
        #[test]
        fn every_chunk_comes_once_in_any_order(a in prop::array::uniform3(-4..4_i64), b in prop::array::uniform3(-4..4_i64)) {
            let area = area(a, b);
            let (min, max) = area.chunks().unwrap();
            let expected: BTreeSet<_> =
                area.columns().flat_map(|column| (min.y..=max.y).map(move |y| column.chunk(y))).collect();
            let near = RestoreSequence::Nearest(ColumnPos::new(1, 1));
            for sequence in [RestoreSequence::BottomUp, RestoreSequence::TopDown, RestoreSequence::Outwards, near] {
                let pieces = phases(sequence, &area).concat();
                let chunks = pieces.into_iter().flat_map(|(column, heights)| heights.map(move |y| column.chunk(y)));
                let chunks: Vec<_> = chunks.collect();
                prop_assert_eq!(chunks.len(), expected.len());
                prop_assert_eq!(chunks.into_iter().collect::<BTreeSet<_>>(), expected.clone());
            }
        }
    }
}
