//! Columns that were stored with smaller heights than their dimension has now are generated for the rest when they load.

use super::column_source::{ColumnError, ColumnSource, FetchedColumn};
use crate::block::BlockId;
use crate::snapshot::{BlockChoice, BlockFilter, SnapshotParts, restored_chunk};
use crate::space::{BlockBox, BlockPos, HeightSet};
use crate::storage::LoadedColumn;
use std::ops::Range;

impl ColumnSource {
    /// The block heights of the dimension for which a column was never generated. `heights` are those for which it was; `None` for
    /// the first ones. In a sparse dimension each chunk is stored once it is generated, so nothing else is missing.
    pub fn missing(&self, heights: Option<&HeightSet>) -> HeightSet {
        let now = HeightSet::from(self.heights.clone());
        match heights {
            _ if self.is_sparse => HeightSet::new(),
            Some(heights) => now.difference(heights),
            None if self.first_heights == self.heights => HeightSet::new(),
            None => now.difference(&self.first_heights.clone().into()),
        }
    }

    /// Generates a stored column at these block heights too. Stored chunks stay as they are, except that air becomes what is
    /// generated in those of their layers for which they never were.
    pub fn extend(&self, mut loaded: LoadedColumn, extended: HeightSet) -> Result<FetchedColumn, ColumnError> {
        if extended.is_empty() {
            return Ok(loaded.into());
        }
        let column = &mut loaded.column;
        // The generator of a dimension that is not sparse need not support making a part of a column.
        let whole = self.make(column.pos(), self.heights.clone())?;
        let air = BlockFilter { current: BlockChoice::only([BlockId::AIR]), ..BlockFilter::default() };
        for Range { start: low, end } in extended.ranges() {
            let corner = column.pos().min_block(low);
            let area = BlockBox::new(corner, BlockPos::new(corner.x + 15, end - 1, corner.z + 15));
            for (y, chunk) in whole.chunks() {
                let Some(part) = area.part(column.pos().chunk(y)) else { continue };
                let stored = column.chunk(y);
                if stored.is_some() && part.is_whole() {
                    continue;
                }
                if let Some(both) = restored_chunk(stored, Some(chunk), &part, &air, SnapshotParts::ALL) {
                    column.set_chunk(y, both);
                }
            }
        }
        Ok(FetchedColumn { extended, ..loaded.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockRegistry;
    use crate::chunk::Column;
    use crate::generation::Hills;
    use crate::space::{ColumnPos, DimensionId};
    use proptest::prelude::*;
    use std::sync::{Arc, Weak};

    const COLUMN: ColumnPos = ColumnPos::new(-3, 5);
    const STONE: BlockId = BlockId::new(1);

    fn ground(heights: Range<i64>, first_heights: Range<i64>) -> ColumnSource {
        let mut blocks = BlockRegistry::new();
        blocks.register_basic_blocks();
        let source =
            ColumnSource::new(DimensionId(0), heights, Arc::new(Hills::seeded(3)), Arc::new(blocks), Weak::new());
        ColumnSource { first_heights, ..source }
    }

    fn range() -> impl Strategy<Value = Range<i64>> {
        (-40..120_i64, 1..90_i64).prop_map(|(low, length)| low..low + length)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A column that is extended is the same as one that was generated at once, apart from what was built in it.
        #[test]
        fn an_extended_column_has_what_was_built_and_is_generated_everywhere_else(
            steps in prop::collection::vec(range(), 1..4),
            built in prop::collection::vec((0..16_i64, 0..1_000_i64, 0..16_i64, any::<bool>()), 0..12),
        ) {
            let first = steps[0].clone();
            let mut column = ground(first.clone(), first.clone()).make(COLUMN, first.clone()).unwrap();
            let (mut made, mut edits) = (HeightSet::from(first.clone()), Vec::new());
            for (heights, place) in steps.iter().zip((0..).step_by(4)) {
                let now = ground(heights.clone(), first.clone());
                let missing = now.missing(Some(&made));
                prop_assert_eq!(&missing, &HeightSet::from(heights.clone()).difference(&made));
                if made == first.clone().into() {
                    prop_assert_eq!(&missing, &now.missing(None));
                }
                let extended = now.extend(column.into(), missing.clone()).unwrap();
                prop_assert_eq!(&extended.extended, &missing);
                column = extended.loaded.column;
                made.insert_all(&missing);
                for (x, y, z, is_stone) in built.iter().skip(place).take(4) {
                    let block = COLUMN.min_block(heights.start + y % (heights.end - heights.start)).offset(*x, 0, *z);
                    let block_id = if *is_stone { STONE } else { BlockId::AIR };
                    column.set_block(block, block_id);
                    edits.push((block, block_id));
                }
            }
            let mut expected = Column::new(COLUMN);
            for heights in made.ranges() {
                let part = ground(heights.clone(), heights.clone()).make(COLUMN, heights.clone()).unwrap();
                for (x, y, z) in heights.flat_map(|y| (0..16).flat_map(move |x| (0..16).map(move |z| (x, y, z)))) {
                    let place = COLUMN.min_block(y).offset(x, 0, z);
                    expected.set_block(place, part.block(place));
                }
            }
            edits.into_iter().for_each(|(block, id)| _ = expected.set_block(block, id));
            for (x, y, z) in (-48..224).flat_map(|y| (0..16).flat_map(move |x| (0..16).map(move |z| (x, y, z)))) {
                let place = COLUMN.min_block(y).offset(x, 0, z);
                prop_assert_eq!(column.block(place), expected.block(place), "{} of {:?}", place, made);
            }
        }
    }

    #[test]
    fn a_chunk_that_is_stored_stays_as_it_is() {
        let now = ground(-64..320, 0..320);
        let mut column = now.make(COLUMN, 0..320).unwrap();
        let lamp = COLUMN.min_block(-20).offset(4, 0, 4);
        column.set_block(lamp, STONE);
        let missing = now.missing(None);
        assert_eq!(missing, HeightSet::from(-64..0));
        let extended = now.extend(column.into(), missing).unwrap().loaded.column;
        assert_eq!(extended.block(lamp), STONE);
        assert_eq!(extended.block(lamp.offset(0, 1, 0)), BlockId::AIR, "somebody had stored this chunk");
        assert_eq!(
            extended.block(lamp.offset(0, -16, 0)),
            now.make(COLUMN, -64..320).unwrap().block(lamp.offset(0, -16, 0))
        );
    }
}
