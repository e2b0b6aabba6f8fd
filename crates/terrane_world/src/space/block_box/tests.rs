//! Compares boxes with a check of every block.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn near() -> impl Strategy<Value = BlockPos> {
    (-20..20_i64, -20..20_i64, -20..20_i64).prop_map(|(x, y, z)| BlockPos::new(x, y, z))
}

/// Boxes, including empty ones.
fn boxes() -> impl Strategy<Value = BlockBox> {
    (near(), near(), any::<bool>()).prop_map(|(a, b, sorts)| match sorts {
        true => BlockBox::new(a, b),
        false => BlockBox { min: a, max: b },
    })
}

fn blocks(area: &BlockBox) -> BTreeSet<BlockPos> {
    let columns = (area.min.x..=area.max.x).flat_map(|x| (area.min.z..=area.max.z).map(move |z| (x, z)));
    columns.flat_map(|(x, z)| (area.min.y..=area.max.y).map(move |y| BlockPos::new(x, y, z))).collect()
}

#[test]
fn the_box_of_all_blocks_is_exact() {
    let all = BlockBox::ALL;
    assert_eq!(all.size(), [1 << 64; 3]);
    assert_eq!(all.volume(), u128::MAX);
    assert_eq!(all.chunk_heights(), Some(i64::MIN >> 4..=i64::MAX >> 4));
    for chunk in [i64::MIN >> 4, -1, 0, i64::MAX >> 4] {
        assert_eq!(all.part(ChunkPos::new(chunk, chunk, chunk)), Some(ChunkPart::WHOLE));
    }
    assert_eq!(all.part(ChunkPos::new(0, (i64::MAX >> 4) + 1, 0)), None, "no block lies there");
    assert_eq!(all.columns().next(), Some(ColumnPos::new(i64::MIN >> 4, i64::MIN >> 4)));

    let flat = BlockBox { max: BlockPos::new(i64::MAX, 7, 0), min: BlockPos::new(i64::MIN, 7, 0) };
    assert_eq!(flat.volume(), 1 << 64);
    let last = BlockBox::new(all.max, BlockPos::new(i64::MAX, i64::MAX - 3, i64::MAX));
    assert_eq!(last.part(all.max.chunk()).unwrap().ranges(), [15..16, 12..16, 15..16]);
}

#[test]
fn an_empty_box_has_nothing() {
    let empty = BlockBox { min: BlockPos::new(0, 1, 0), max: BlockPos::new(9, 0, 9) };
    assert!(empty.is_empty() && empty.volume() == 0 && empty.chunks().is_none());
    assert_eq!((empty.columns().count(), empty.column_area().columns()), (0, 0));
    assert!(!empty.reaches(ColumnPos::new(0, 0)) && empty.part(ChunkPos::new(0, 0, 0)).is_none());
}

#[test]
fn a_part_of_a_chunk_is_within_it() {
    assert_eq!(ChunkPart::new([0..16, 0..16, 0..16]), Some(ChunkPart::WHOLE));
    assert_eq!(ChunkPart::new([0..16, 3..3, 0..16]), None);
    assert_eq!(ChunkPart::new([0..16, 0..16, 0..17]), None);
    assert!(!ChunkPart::new([0..16, 0..15, 0..16]).unwrap().is_whole());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_box_is_a_set_of_blocks(a in boxes(), b in boxes(), some in near()) {
        let (model, other) = (blocks(&a), blocks(&b));
        prop_assert_eq!(a.volume(), model.len() as u128);
        prop_assert_eq!(a.is_empty(), model.is_empty());
        prop_assert_eq!(a.contains(some), model.contains(&some));
        prop_assert_eq!(blocks(&a.intersection(&b)), model.intersection(&other).copied().collect::<BTreeSet<_>>());

        let columns: BTreeSet<_> = model.iter().map(|block| block.column()).collect();
        prop_assert!(a.columns().eq(columns.iter().copied()));
        let mut parts = BTreeSet::new();
        for column in -3..3_i64 {
            for (y, z) in (-3..3_i64).flat_map(|y| (-3..3_i64).map(move |z| (y, z))) {
                let chunk = ChunkPos::new(column, y, z);
                let Some(part) = a.part(chunk) else { continue };
                let cells: Vec<_> = part.cells().collect();
                prop_assert!(cells.is_sorted() && cells.len() == part.volume());
                prop_assert!(cells.iter().all(|cell| part.contains(*cell)));
                let min = chunk.min_block();
                parts.extend(cells.iter().map(|[x, y, z]| min.offset(*x as i64, *y as i64, *z as i64)));
            }
        }
        prop_assert_eq!(parts, model);
    }
}
