//! Compares placed snapshots with a map of cells.

use super::*;
use crate::snapshot::tests::{BLOCKS, capture, cells, edit, edits, entity, part_of, positions, world};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn turns(turn: Turn) -> BlockTurns {
    BlockTurns::new(&BLOCKS, turn)
}

fn moved(from: [i64; 3], to: [i64; 3]) -> Relocation {
    let [from, to] = [from, to].map(|[x, y, z]| BlockPos::new(x, y, z));
    Relocation { turn: Turn::NONE, from, to }
}

#[test]
fn whole_chunks_are_shared_with_the_original() {
    let mut columns = world();
    let corner = BlockPos::new(1, 2, 3);
    edit(&mut columns, &[crate::snapshot::tests::Edit::Place(corner, 0, BlockId::new(1), vec![0; 4])]);
    let snapshot = capture(&columns, BlockBox::new(corner, BlockPos::new(20, 20, 20)), |_| false);
    let placed = snapshot.placed(&moved([0, 0, 0], [32, -16, 160]), &turns(Turn::NONE)).unwrap();
    assert_eq!(placed.block(BlockPos::new(33, -14, 163)), Some(BlockId::new(1)));
    let [here, there] = [(&snapshot, [0, 0, 0]), (&placed, [2, -1, 10])]
        .map(|(snapshot, [x, y, z])| snapshot.chunk(ChunkPos::new(x, y, z)).unwrap());
    assert!(Arc::ptr_eq(here, there));
}

#[test]
fn uniform_chunks_stay_uniform_and_cheap() {
    let columns: BTreeMap<_, _> = (0..2)
        .map(|x| {
            let mut column = crate::chunk::Column::new(ColumnPos::new(x, 0));
            (0..9).for_each(|y| drop(column.set_chunk(y, Arc::new(Chunk::uniform(BlockId::new(1))))));
            (column.pos(), column)
        })
        .collect();
    let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(31, 143, 15));
    let relocation = Relocation { turn: Turn::FLIP_X.then(Turn::quarters(1)), ..moved([0, 0, 0], [3, 5, 7]) };
    let placed = capture(&columns, area, |_| false).placed(&relocation, &turns(relocation.turn)).unwrap();
    let chunks: Vec<_> = placed.columns().flat_map(|(_, column)| column.chunks()).collect();
    assert!(
        !chunks.is_empty()
            && chunks.iter().all(|(_, chunk)| chunk.heap_bytes() == 0 || chunk.uniform_block().is_none())
    );
    assert!(cells(&placed).values().all(|cell| cell[0].0 == BlockId::new(1)));
}

#[test]
fn nothing_is_put_beyond_the_grid() {
    let snapshot = capture(&world(), BlockBox::ALL, |_| false);
    assert!(matches!(snapshot.placed(&moved([0; 3], [0, 1, 0]), &turns(Turn::NONE)), Err(PlaceError::OutOfRange(_))));
    let half = Relocation { turn: Turn::quarters(2), ..Relocation::default() };
    let other = PlaceError::OtherTurn { blocks: Turn::NONE, snapshot: half.turn };
    assert_eq!(snapshot.placed(&half, &turns(Turn::NONE)).err(), Some(other));
    let empty = Snapshot::new(BlockBox { min: BlockPos::new(0, 5, 0), max: BlockPos::new(0, 4, 0) });
    assert_eq!(empty.placed(&half, &turns(half.turn)).unwrap().columns().len(), 0);
}

#[test]
fn a_box_over_all_heights_turns_about_its_captured_heights() {
    let mut column = crate::chunk::Column::new(ColumnPos::new(0, 0));
    let corners = [i64::MIN, 3, i64::MAX].map(|y| BlockPos::new(2, y, 5));
    for pos in corners {
        column.set_block(pos, BlockId::new(1));
    }
    let area = BlockBox { min: BlockPos::new(0, i64::MIN, 0), max: BlockPos::new(15, i64::MAX, 15) };
    let mut snapshot = Snapshot::new(area);
    snapshot.add_column(&column, 1, Vec::new());
    let quarter = Relocation { turn: Turn::quarters(1), ..Relocation::default() };
    let placed = snapshot.placed(&quarter, &turns(quarter.turn)).unwrap();
    for pos in corners {
        assert_eq!(placed.block(BlockPos::new(-5, pos.y, 2)), Some(BlockId::new(1)), "{pos}");
    }
    assert!(placed.is_complete());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Promise, snapshots: A snapshot can be restored elsewhere, turned and flipped.
    #[test]
    fn every_block_and_entity_arrives_where_the_model_says(
        edits in edits(150), a in positions(), b in positions(), hole in prop::option::of(positions()),
        heights in prop::option::of((-3..3_i64, 0..4_i64)), turn in prop::sample::select(Turn::all().collect::<Vec<_>>()),
        from in positions(), to in positions(), aligned: bool,
    ) {
        let area = BlockBox::new(a, b);
        let mut columns = world();
        edit(&mut columns, &edits);
        let mut snapshot = Snapshot::new(area);
        for column in columns.values().filter(|column| hole.is_none_or(|hole| hole.column() != column.pos())) {
            let guest = entity((column.pos().x + 9) as u128 * 99 + (column.pos().z + 9) as u128, column.pos().chunk(1).min_block());
            match heights.filter(|_| column.pos() == b.column()) {
                Some((bottom, count)) => {
                    snapshot.add_column(&part_of(column, HeightSet::from(bottom..bottom + count)), 1, vec![guest])
                }
                None => snapshot.add_column(column, 1, vec![guest]),
            };
        }
        let align = |pos: BlockPos| if aligned { pos.chunk().min_block() } else { pos };
        let relocation = Relocation { turn, from: align(from), to: align(to) };
        let block_turns = turns(turn);
        let placed = snapshot.placed(&relocation, &block_turns).unwrap();
        prop_assert_eq!(Ok(*placed.area()), relocation.area(&area));

        // The slow and obvious way, block by block. A chunk with a missing block is missing.
        let mut model: BTreeMap<BlockPos, _> = BTreeMap::new();
        for (pos, mut cell) in cells(&snapshot) {
            cell.iter_mut().for_each(|(block, _)| *block = block_turns.block(*block));
            model.insert(relocation.block(pos).unwrap(), cell);
        }
        let mut lost = BTreeSet::new();
        let mut lost_columns = BTreeMap::new();
        for pos in crate::snapshot::tests::positions_of(placed.area()) {
            let source = relocation.inverse().block(pos).unwrap();
            if snapshot.block(source).is_none() {
                lost.insert(pos.chunk());
            }
            if snapshot.column(source.column()).is_none() {
                lost_columns.insert(pos.column(), ());
            }
        }
        model.retain(|pos, _| !lost.contains(&pos.chunk()));
        prop_assert!(cells(&placed) == model);

        let expected = snapshot.entities().map(|entity| relocation.entity(entity).unwrap());
        let mut expected: Vec<_> = expected.filter(|entity| !lost_columns.contains_key(&entity.column())).collect();
        let mut found: Vec<_> = placed.entities().cloned().collect();
        expected.sort_by_key(|entity| entity.id);
        found.sort_by_key(|entity| entity.id);
        prop_assert_eq!(found, expected);

        for (_, column) in placed.columns() {
            prop_assert!(column.chunks().is_sorted_by(|a, b| a.0 < b.0));
            prop_assert!(column.chunks().all(|(_, chunk)| chunk.uniform_block().is_none() || chunk.heap_bytes() == 0 || aligned && turn.is_none()));
        }
    }
}
