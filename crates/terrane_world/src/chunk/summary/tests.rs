//! Summaries of columns and their bytes.

use super::format::VERSION;
use super::*;
use crate::chunk::Chunk;
use crate::chunk::format::ChunkFormatError;
use crate::space::{BlockPos, ColumnPos};
use proptest::prelude::*;
use std::sync::Arc;

const POS: ColumnPos = ColumnPos::new(-3, 2);

fn summary(detail: u8, cells: Vec<Option<(i64, u32)>>) -> ColumnSummary {
    let surface = |(height, block)| SummaryCell { height, block: BlockId::new(block) };
    ColumnSummary { detail: Detail(detail), cells: cells.into_iter().map(|cell| cell.map(surface)).collect() }
}

fn any_summary() -> impl Strategy<Value = ColumnSummary> {
    let height = prop_oneof![any::<i64>(), -100..400_i64, Just(i64::MIN), Just(i64::MAX)];
    (0..=4_u8).prop_flat_map(move |detail| {
        let cell = proptest::option::of((height.clone(), prop_oneof![1..5_u32, any::<u32>()]));
        let cells = Detail(detail).cells().pow(2);
        proptest::collection::vec(cell, cells).prop_map(move |cells| summary(detail, cells))
    })
}

fn bytes(summary: &ColumnSummary) -> Vec<u8> {
    let mut bytes = Vec::new();
    summary.encode(&mut bytes);
    bytes
}

/// Promise, exports: A column summary in an export has the documented bytes.
#[test]
fn level_ground_takes_one_bit_a_cell_and_one_byte_a_height() {
    let mut column = Column::new(POS);
    column.set_chunk(4, Arc::new(Chunk::uniform(BlockId::new(9))));
    let flat = ColumnSummary::new(&column);
    assert_eq!(flat.heights(), Some((79, 79)));
    assert_eq!(bytes(&flat).len(), 2 + 1 + 1 + 256 / 8 + 2 + 255);
    assert_eq!(bytes(&flat.at(Detail::COARSEST)), [2, 4, 1, 9, 1, 158, 1]);
    assert_eq!(bytes(&ColumnSummary::new(&Column::new(POS)).at(Detail::COARSEST)), [2, 4, 0]);
    let three = summary(3, vec![Some((1, 9)), None, Some((2, 8)), Some((2, 7))]);
    assert_eq!(bytes(&three), [2, 3, 3, 9, 8, 7, 0b11_10_00_01, 2, 2, 0]);
}

#[test]
fn summaries_of_the_first_version_stay_readable() {
    let three = summary(3, vec![Some((1, 9)), None, Some((2, 8)), Some((2, 7))]);
    assert_eq!(ColumnSummary::decode(&[1, 3, 3, 9, 8, 7, 1, 0, 2, 3, 2, 2, 0]), Ok(three));
    assert_eq!(ColumnSummary::decode(&[1, 4, 0, 0]), Ok(summary(4, vec![None])));
    let error = ColumnSummary::decode(&[1, 4, 1, 7, 2]).unwrap_err();
    assert_eq!(error.to_string(), "byte 4: expected a place in the palette below 2, found 2");
}

#[test]
fn four_cells_merge_into_the_visible_one() {
    let merged = |cells: [Option<(i64, u32)>; 4]| {
        let cells = summary(3, cells.to_vec());
        cells.at(Detail::COARSEST).surface(0, 0).map(|cell| (cell.height, cell.block.index()))
    };
    assert_eq!(merged([None; 4]), None);
    assert_eq!(merged([Some((5, 1)), None, None, None]), None);
    assert_eq!(merged([Some((5, 1)), None, None, Some((8, 2))]), Some((6, 2)));
    assert_eq!(merged([Some((1, 1)), Some((2, 1)), Some((3, 2)), Some((90, 3))]), Some((24, 1)));
    let edge = Some((i64::MIN, 1));
    assert_eq!(merged([edge; 4]), Some((i64::MIN, 1)));
    assert_eq!(merged([Some((i64::MAX, 1)); 4]), Some((i64::MAX, 1)));
}

#[test]
fn every_truncation_is_an_error() {
    let whole = bytes(&summary(3, vec![Some((1_000, 300)), None, Some((-5, 1)), Some((i64::MIN, 300))]));
    for length in 0..whole.len() {
        assert_eq!(
            ColumnSummary::decode(&whole[..length]),
            Err(ChunkFormatError::damage(length, "expected more bytes, found the end"))
        );
    }
    let longer = [&whole[..], &[0]].concat();
    assert_eq!(
        ColumnSummary::decode(&longer),
        Err(ChunkFormatError::damage(whole.len(), "expected the end, found 1 more bytes"))
    );
}

#[test]
fn errors_name_the_problem_and_its_place() {
    let error = |bytes: &[u8]| ColumnSummary::decode(bytes).unwrap_err().to_string();
    assert_eq!(error(&[3, 0]), "byte 0: expected version 1 or 2 of a summary, found 3");
    assert_eq!(error(&[2, 5]), "byte 1: expected a detail of 4 or less, found 5");
    assert_eq!(error(&[2, 4, 2]), "byte 2: expected blocks in the palette below 2, found 2");
    assert_eq!(error(&[2, 3, 2, 7, 8, 0b11]), "byte 5: expected a place in the palette below 3, found 3");
    assert_eq!(error(&[2, 3, 2, 7, 8, 0b1100]), "byte 5: expected a place in the palette below 3, found 3");
    assert_eq!(
        error(&[2, 4, 1, 7, 0b101, 0]),
        "byte 4: expected zeros after the last place in the palette, found ones"
    );
    let long = [&[2, 4][..], &[0xFF; 10]].concat();
    assert_eq!(error(&long), "byte 2: expected a number of 64 bits or less");
}

proptest! {
    #[test]
    fn a_summary_survives_encoding(summary in any_summary()) {
        prop_assert_eq!(ColumnSummary::decode(&bytes(&summary)), Ok(summary));
    }

    #[test]
    fn hostile_bytes_are_an_error_or_a_summary(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
        form in 1..=VERSION,
        level in 0..=4_u8,
    ) {
        if let [version, detail, ..] = &mut bytes[..] {
            (*version, *detail) = (form, level);
        }
        if let Ok(summary) = ColumnSummary::decode(&bytes) {
            prop_assert_eq!(summary.cells.len(), summary.detail().cells().pow(2));
        }
    }

    /// Promise, far view: The summary of a column has the height and the visible block of each cell.
    #[test]
    fn each_cell_is_the_highest_block_there(
        blocks in proptest::collection::vec((0..16_i64, -70..70_i64, 0..16_i64, 0..4_u32), 0..200),
    ) {
        let mut column = Column::new(POS);
        for (x, y, z, block) in blocks {
            column.set_block(BlockPos::new(POS.x * 16 + x, y, POS.z * 16 + z), BlockId::new(block));
        }
        let summary = ColumnSummary::new(&column);
        for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (x, z))) {
            let height = column.surface(x, z);
            prop_assert_eq!(summary.surface(x, z).map(|cell| cell.height), height);
            if let Some(cell) = summary.surface(x, z) {
                let place = BlockPos::new(POS.x * 16 + x as i64, cell.height, POS.z * 16 + z as i64);
                prop_assert_eq!(column.block(place), cell.block);
            }
        }
    }

    #[test]
    fn a_coarser_cell_stays_within_the_heights_of_its_cells(fine in any_summary()) {
        for level in fine.detail().level()..=Detail::COARSEST.level() {
            let coarse = fine.at(Detail::new(level));
            prop_assert_eq!(coarse.detail().level(), level);
            let factor = fine.detail().cells() / coarse.detail().cells();
            for (x, z) in (0..coarse.detail().cells()).flat_map(|x| (0..coarse.detail().cells()).map(move |z| (x, z))) {
                let covered = (0..factor).flat_map(|dz| (0..factor).map(move |dx| (dx, dz)));
                let covered: Vec<_> = covered.filter_map(|(dx, dz)| fine.surface(x * factor + dx, z * factor + dz)).collect();
                if let Some(cell) = coarse.surface(x, z) {
                    prop_assert!(covered.iter().any(|it| it.block == cell.block));
                    prop_assert!(covered.iter().any(|it| it.height <= cell.height));
                    prop_assert!(covered.iter().any(|it| it.height >= cell.height));
                }
            }
        }
    }
}
