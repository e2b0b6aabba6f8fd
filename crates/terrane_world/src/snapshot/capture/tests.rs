//! Compares captures with a map of cells.

use super::*;
use crate::snapshot::tests::{self, REACH, capture, cells, child, edit, edits, entity, part_of, positions, world};
use crate::space::HeightSet;
use proptest::prelude::*;

const STONE: BlockId = BlockId::new(1);

fn stone_column(pos: ColumnPos) -> Column {
    let mut column = Column::new(pos);
    column.set_chunk(0, Arc::new(Chunk::uniform(STONE)));
    column
}

fn area(min: i64, max: i64) -> BlockBox {
    BlockBox::new(BlockPos::new(min, min, min), BlockPos::new(max, max, max))
}

/// Promise, snapshots: A capture copies one pointer per chunk.
#[test]
fn chunks_are_shared_also_where_the_box_cuts_through_them() {
    let column = stone_column(ColumnPos::new(0, 0));
    let mut snapshot = Snapshot::new(area(3, 5));
    assert!(snapshot.add_column(&column, 7, Vec::new()));
    assert!(Arc::ptr_eq(snapshot.chunk(ChunkPos::new(0, 0, 0)).unwrap(), column.chunk(0).unwrap()));
    assert_eq!(snapshot.block(BlockPos::new(3, 5, 4)), Some(STONE));
    assert_eq!(snapshot.block(BlockPos::new(2, 5, 4)), None, "outside of the box");
    assert_eq!(snapshot.column(ColumnPos::new(0, 0)).unwrap().tick(), 7);
}

#[test]
fn columns_that_were_not_added_are_missing() {
    let mut snapshot = Snapshot::new(area(0, 31));
    assert!(!snapshot.add_column(&stone_column(ColumnPos::new(2, 0)), 1, Vec::new()), "outside of the box");
    snapshot.add_column(&stone_column(ColumnPos::new(1, 0)), 1, Vec::new());
    let missing = [(0, 0), (0, 1), (1, 1)].map(|(x, z)| ColumnPos::new(x, z));
    assert!(missing.into_iter().all(|column| snapshot.column(column).is_none()) && !snapshot.is_complete());
    assert_eq!(
        (snapshot.block(BlockPos::new(0, 0, 0)), snapshot.block(BlockPos::new(16, 20, 0))),
        (None, Some(BlockId::AIR))
    );
    for pos in missing {
        snapshot.add_column(&Column::new(pos), 1, Vec::new());
    }
    assert!(snapshot.is_complete());
    assert!(snapshot.remove_column(ColumnPos::new(0, 1)).is_some() && !snapshot.is_complete());
}

#[test]
fn heights_that_were_not_loaded_are_missing_until_they_are_added() {
    let pos = ColumnPos::new(0, 0);
    let column = stone_column(pos);
    let mut snapshot = Snapshot::new(BlockBox { max: BlockPos::new(15, 31, 15), min: BlockPos::new(0, -16, 0) });
    snapshot.add_column(&part_of(&column, HeightSet::from(-9..0)), 1, Vec::new());
    assert_eq!(snapshot.column(pos).unwrap().heights(), Some(&HeightSet::from(-1..0)));
    assert!(snapshot.holds(pos.chunk(-1)) && !snapshot.holds(pos.chunk(0)) && !snapshot.holds(pos.chunk(-2)));
    assert_eq!(snapshot.block(BlockPos::new(0, 0, 0)), None);
    snapshot.add_column(&part_of(&column, HeightSet::from(0..9)), 3, Vec::new());
    assert!(snapshot.is_complete());
    assert_eq!((snapshot.block(BlockPos::new(0, 0, 0)), snapshot.column(pos).unwrap().tick()), (Some(STONE), 3));
}

#[test]
fn an_empty_box_has_no_columns() {
    let mut snapshot = Snapshot::new(BlockBox { min: BlockPos::new(1, 0, 0), max: BlockPos::new(0, 9, 9) });
    assert!(!snapshot.add_column(&stone_column(ColumnPos::new(0, 0)), 1, Vec::new()));
    assert!(snapshot.is_complete());
}

#[test]
fn the_box_of_all_blocks_can_be_captured() {
    let mut snapshot = Snapshot::new(BlockBox::ALL);
    let mut column = Column::new(ColumnPos::new(i64::MAX >> 4, i64::MIN >> 4));
    let corner = BlockPos::new(i64::MAX, i64::MAX, i64::MIN);
    column.set_block(corner, STONE);
    assert!(snapshot.add_column(&column, 1, vec![entity(1, corner)]));
    assert_eq!((snapshot.block(corner), snapshot.entities().count()), (Some(STONE), 1));
    assert!(!snapshot.is_complete());
}

#[test]
fn an_entity_that_crossed_between_two_ticks_is_captured_in_its_later_column() {
    let id = Uuid::from_u128;
    let [west, east] = [0, 1].map(|x| ColumnPos::new(x, 0));
    let [in_west, in_east] = [BlockPos::new(5, 5, 5), BlockPos::new(20, 5, 5)];
    let caught = |west_tick, east_tick| {
        let mut snapshot = Snapshot::new(area(0, 31));
        snapshot.add_column(&Column::new(west), west_tick, vec![entity(1, in_west), entity(2, in_west)]);
        snapshot.add_column(
            &Column::new(east),
            east_tick,
            vec![entity(1, in_east), entity(3, BlockPos::new(40, 0, 0))],
        );
        assert_eq!(snapshot.entities().count(), 2, "nobody twice, and nobody from outside of the box");
        assert_eq!(snapshot.entity_column(id(2)), Some(west));
        snapshot.entity_column(id(1))
    };
    assert_eq!(caught(4, 5), Some(east));
    assert_eq!(caught(5, 4), Some(west));
    assert_eq!(caught(5, 5), Some(east), "the one that was added last");
}

#[test]
fn an_entity_that_mounted_between_two_ticks_is_captured_once() {
    let id = Uuid::from_u128;
    let [west, east] = [0, 1].map(|x| ColumnPos::new(x, 0));
    let [in_west, in_east] = [BlockPos::new(5, 5, 5), BlockPos::new(20, 5, 5)];
    let mut horse = entity(1, in_east);
    horse.children = vec![child(2, None), child(3, Some(0))];
    let mut snapshot = Snapshot::new(area(0, 31));
    snapshot.add_column(&Column::new(west), 1, vec![entity(2, in_west)]);
    snapshot.add_column(&Column::new(east), 2, vec![horse.clone()]);
    assert_eq!(snapshot.entities().collect::<Vec<_>>(), [&horse]);

    let mut snapshot = Snapshot::new(area(0, 31));
    snapshot.add_column(&Column::new(east), 2, vec![horse]);
    snapshot.add_column(&Column::new(west), 3, vec![entity(2, in_west)]);
    let caught: Vec<_> = snapshot.entities().map(|entity| (entity.id, entity.children.len())).collect();
    assert_eq!(caught, [(id(2), 0), (id(1), 0)], "the rider dismounted, with all that hung on it");
    assert_eq!(snapshot.entity_column(id(3)), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_snapshot_keeps_the_contents_of_the_box(first in edits(150), later in edits(50), a in positions(), b in positions(), hole in positions()) {
        let area = BlockBox::new(a, b);
        let mut columns = world();
        edit(&mut columns, &first);
        let snapshot = capture(&columns, area, |pos| pos == hole.column());
        let held = tests::positions_of(&area).filter(|pos| pos.column() != hole.column());
        let model: BTreeMap<_, _> = held.map(|pos| (pos, tests::cell(&columns, pos))).collect();
        edit(&mut columns, &later);
        prop_assert!(cells(&snapshot) == model);
        for pos in [a, b, hole, BlockPos::new(REACH, 0, 0)] {
            prop_assert_eq!(snapshot.block(pos), model.get(&pos).map(|cell| cell[0].0));
        }
    }
}
