//! In which sequence chunks are restored.

use crate::space::{BlockBox, ChunkPos, ColumnPos};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// In which sequence the chunks of a box are restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RestoreSequence {
    /// Chunk height by chunk height, the lowest first.
    #[default]
    BottomUp,
    /// Chunk height by chunk height, the highest first.
    TopDown,
    /// In waves from the middle: the column there, then those around it, then those around them.
    Outwards,
    /// Column by column, the nearest to this one first.
    Nearest(ColumnPos),
}

/// A chunk that is to be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RestoreItem {
    /// Which one.
    pub chunk: ChunkPos,
    /// In which phase, from 0: chunks of the same height, wave or column have the same one.
    pub phase: u64,
}

/// Why the chunks of a box cannot be put in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SequenceError {
    /// It reaches more columns than can be sorted in memory.
    #[error("the box reaches {columns} columns, and at most {most} can be put in a sequence", most = RestoreSequence::MAX_COLUMNS)]
    TooManyColumns {
        /// How many.
        columns: u128,
    },
}

impl RestoreSequence {
    /// Boxes of more columns are not put in a sequence: 2048 by 2048.
    const MAX_COLUMNS: u128 = 1 << 22;

    /// All chunks that the box reaches, each once, and those of a phase after those of the ones before. Takes memory in
    /// proportion to its columns.
    pub fn items(self, area: &BlockBox) -> Result<impl Iterator<Item = RestoreItem> + use<>, SequenceError> {
        let columns = area.column_area().columns();
        if columns > Self::MAX_COLUMNS {
            return Err(SequenceError::TooManyColumns { columns });
        }
        // An empty box has no columns, so its heights do not matter.
        let (low, high) = area.chunk_heights().map_or((0, 0), |heights| heights.into_inner());
        let height = low.abs_diff(high) + 1;
        let columns = self.sorted(area);
        let per_layer = columns.len() as u64;
        let is_layered = matches!(self, Self::BottomUp | Self::TopDown);
        // A layer of all columns after the other, or all heights of a column after the other.
        let (outer, inner) = if is_layered { (height, per_layer) } else { (per_layer, height) };
        let outer = if columns.is_empty() { 0 } else { outer };
        Ok((0..outer).flat_map(move |outer| {
            let columns = columns.clone();
            (0..inner).map(move |inner| {
                let (level, column) = if is_layered { (outer, inner) } else { (inner, outer) };
                let (wave, column) = columns[column as usize];
                let y = if self == Self::TopDown {
                    high.wrapping_sub_unsigned(level)
                } else {
                    low.wrapping_add_unsigned(level)
                };
                RestoreItem { chunk: column.chunk(y), phase: if is_layered { level } else { wave } }
            })
        }))
    }

    /// The columns of a box in order, with their wave; equally near ones ascending.
    fn sorted(self, area: &BlockBox) -> std::sync::Arc<[(u64, ColumnPos)]> {
        let mut columns: Vec<_> = area.columns().map(|column| (0, column)).collect();
        match self {
            Self::BottomUp | Self::TopDown => {}
            Self::Outwards => {
                let middle = area.column_area().center();
                for (wave, column) in &mut columns {
                    *wave = column.x.abs_diff(middle.x).max(column.z.abs_diff(middle.z));
                }
                columns.sort_unstable();
            }
            Self::Nearest(to) => {
                columns.sort_by_cached_key(|(_, column)| (to.distance_squared(*column), *column));
                (0..).zip(&mut columns).for_each(|(place, (wave, _))| *wave = place);
            }
        }
        columns.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::BlockPos;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn items(sequence: RestoreSequence, area: &BlockBox) -> Vec<RestoreItem> {
        sequence.items(area).unwrap().collect()
    }

    fn area(min: [i64; 3], max: [i64; 3]) -> BlockBox {
        let [a, b] = [min, max].map(|[x, y, z]| BlockPos::new(x * 16, y * 16, z * 16));
        BlockBox::new(a, b)
    }

    #[test]
    fn layers_come_one_after_the_other() {
        let area = area([0, -1, 0], [1, 1, 0]);
        let heights =
            |sequence| items(sequence, &area).iter().map(|item| (item.chunk.y, item.phase)).collect::<Vec<_>>();
        assert_eq!(heights(RestoreSequence::BottomUp), [(-1, 0), (-1, 0), (0, 1), (0, 1), (1, 2), (1, 2)]);
        assert_eq!(heights(RestoreSequence::TopDown), [(1, 0), (1, 0), (0, 1), (0, 1), (-1, 2), (-1, 2)]);
    }

    #[test]
    fn waves_run_outwards_from_the_middle() {
        let waves = items(RestoreSequence::Outwards, &area([-2, 0, 0], [2, 0, 4]));
        let counts = (0..4).map(|wave| waves.iter().filter(|item| item.phase == wave).count());
        assert_eq!(counts.collect::<Vec<_>>(), [1, 8, 16, 0]);
        assert_eq!(waves[0].chunk, ChunkPos::new(0, 0, 2));
    }

    #[test]
    fn the_nearest_column_is_first() {
        let to = ColumnPos::new(9, -1);
        let nearest = items(RestoreSequence::Nearest(to), &area([0, 0, 0], [2, 1, 2]));
        let first: Vec<_> = nearest[..4].iter().map(|item| (item.chunk, item.phase)).collect();
        let chunk = ChunkPos::new;
        assert_eq!(first, [(chunk(2, 0, 0), 0), (chunk(2, 1, 0), 0), (chunk(2, 0, 1), 1), (chunk(2, 1, 1), 1)]);
    }

    #[test]
    fn boxes_without_end_are_refused_and_tall_ones_are_not_listed() {
        assert_eq!(
            RestoreSequence::Outwards.items(&BlockBox::ALL).err(),
            Some(SequenceError::TooManyColumns { columns: 1 << 120 })
        );
        let tall = BlockBox { min: BlockPos::new(0, i64::MIN, 0), max: BlockPos::new(0, i64::MAX, 0) };
        for (sequence, first) in [(RestoreSequence::BottomUp, i64::MIN >> 4), (RestoreSequence::TopDown, i64::MAX >> 4)]
        {
            assert_eq!(sequence.items(&tall).unwrap().next().map(|item| item.chunk.y), Some(first));
        }
        let empty = BlockBox { min: BlockPos::new(1, 0, 0), max: BlockPos::new(0, 9, 9) };
        assert_eq!(items(RestoreSequence::Nearest(ColumnPos::new(0, 0)), &empty), []);
        assert_eq!(items(RestoreSequence::BottomUp, &empty), []);
    }

    proptest! {
        #[test]
        fn every_chunk_comes_once_in_any_order(a in prop::array::uniform3(-4..4_i64), b in prop::array::uniform3(-4..4_i64)) {
            let area = area(a, b);
            let (min, max) = area.chunks().unwrap();
            let columns: Vec<_> = area.columns().collect();
            let expected: BTreeSet<_> =
                columns.iter().flat_map(|column| (min.y..=max.y).map(|y| column.chunk(y))).collect();
            let near = RestoreSequence::Nearest(ColumnPos::new(1, 1));
            for sequence in [RestoreSequence::BottomUp, RestoreSequence::TopDown, RestoreSequence::Outwards, near] {
                let items = items(sequence, &area);
                prop_assert_eq!(items.len(), expected.len());
                prop_assert_eq!(items.iter().map(|item| item.chunk).collect::<BTreeSet<_>>(), expected.clone());
                prop_assert!(items.is_sorted_by_key(|item| item.phase));
                prop_assert_eq!(items[0].phase, 0);
            }
        }
    }
}
