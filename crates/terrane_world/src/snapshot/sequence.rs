//! [`RestoreSequence`].

use crate::space::{BlockBox, ColumnPos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

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
mod tests {
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
