//! Compares restores with a map of cells.

use super::*;
use crate::block::{BlockComponentId, BlockId, BlockLayout};
use crate::snapshot::BlockChoice;
use crate::snapshot::tests::{
    BLOCKS, Cell, Columns, capture, cell, cell_of, edit, edits, entity, part_of, positions, positions_of, world,
};
use crate::space::{BlockBox, BlockPos, ChunkPos, ColumnPos, HeightSet};
use proptest::prelude::*;
use uuid::Uuid;

const STONE: BlockId = BlockId::new(1);
const WATER: BlockId = BlockId::new(2);

fn part(x: std::ops::Range<u8>) -> ChunkPart {
    ChunkPart::new([x, 0..16, 0..16]).unwrap()
}

fn all() -> BlockFilter {
    BlockFilter::default()
}

fn noise(kinds: u32) -> Arc<Chunk> {
    Arc::new(Chunk::from_fn(|[x, y, z]| BlockId::new((x * 31 + y * 17 + z * 7) as u32 % kinds)))
}

#[test]
fn a_whole_chunk_is_the_very_same_one() {
    let (now, then) = (noise(5), noise(7));
    let restored = restored_chunk(Some(&now), Some(&then), &ChunkPart::WHOLE, &all(), SnapshotParts::ALL).unwrap();
    assert!(Arc::ptr_eq(&restored, &then));
    assert_eq!(
        *restored_chunk(Some(&now), None, &ChunkPart::WHOLE, &all(), SnapshotParts::ALL).unwrap(),
        Chunk::default()
    );
    assert!(Arc::ptr_eq(
        &restored_chunk(None, Some(&then), &ChunkPart::WHOLE, &all(), SnapshotParts::ALL).unwrap(),
        &then
    ));
}

/// Promise, snapshots: A restore changes only chunks that differ from the snapshot.
#[test]
fn nothing_is_restored_where_nothing_differs() {
    let then = noise(7);
    let mut edited = Chunk::clone(&then);
    edited.set_block([1, 2, 3], WATER);
    edited.set_block([1, 2, 3], then.block([1, 2, 3]));
    edited.set_block([0, 0, 0], BlockId::new(99));
    edited.set_block([0, 0, 0], then.block([0, 0, 0]));
    let air = Arc::new(Chunk::default());
    for (now, then) in [
        (None, None),
        (Some(&then), Some(&then)),
        (Some(&Arc::new(edited)), Some(&then)),
        (None, Some(&air)),
        (Some(&air), None),
        (Some(&noise(7)), Some(&then)),
    ] {
        assert_eq!(restored_chunk(now, then, &ChunkPart::WHOLE, &all(), SnapshotParts::ALL), None);
        assert_eq!(restored_chunk(now, then, &part(3..4), &all(), SnapshotParts::ALL), None);
    }
}

#[test]
fn differences_outside_of_the_part_stay() {
    let then = noise(7);
    let mut now = Chunk::clone(&then);
    now.set_block([9, 0, 0], WATER);
    let now = Arc::new(now);
    assert_eq!(restored_chunk(Some(&now), Some(&then), &part(0..9), &all(), SnapshotParts::ALL), None);
    let restored = restored_chunk(Some(&now), Some(&then), &part(9..10), &all(), SnapshotParts::ALL).unwrap();
    assert!(Arc::ptr_eq(&restored, &then), "with that it is the same as before");
}

#[test]
fn a_filter_selects_removed_and_inserted_blocks() {
    let now = Arc::new(Chunk::from_fn(|[x, ..]| if x < 8 { STONE } else { BlockId::AIR }));
    let then = Arc::new(Chunk::from_fn(|[_, y, _]| if y < 8 { WATER } else { BlockId::AIR }));
    let restore = |current, wanted| {
        restored_chunk(Some(&now), Some(&then), &ChunkPart::WHOLE, &BlockFilter { current, wanted }, SnapshotParts::ALL)
    };
    let only_air = restore(BlockChoice::only([BlockId::AIR]), BlockChoice::All).unwrap();
    assert_eq!([only_air.block([0, 0, 0]), only_air.block([8, 0, 0])], [STONE, WATER]);
    let only_water = restore(BlockChoice::All, BlockChoice::only([WATER])).unwrap();
    assert_eq!([[0, 0, 0], [0, 8, 0], [8, 8, 0]].map(|cell| only_water.block(cell)), [WATER, STONE, BlockId::AIR]);
    assert_eq!(restore(BlockChoice::only([WATER]), BlockChoice::All), None);
    assert_eq!(restore(BlockChoice::All, BlockChoice::all_but([WATER, BlockId::AIR])), None);
    let whole = restore(BlockChoice::all_but([WATER]), BlockChoice::All).unwrap();
    assert!(Arc::ptr_eq(&whole, &then));
}

#[test]
fn heights_that_are_not_loaded_are_left_alone() {
    let pos = ColumnPos::new(0, 0);
    let mut column = Column::new(pos);
    (0..4).for_each(|y| drop(column.set_chunk(y, noise(3))));
    let mut snapshot = Snapshot::new(BlockBox::ALL);
    snapshot.add_column(&part_of(&column, HeightSet::from(0..3)), 1, Vec::new());
    let heights = |column: &Column| snapshot.restored_chunks(column, &all()).map(|(y, _)| y).collect::<Vec<_>>();
    assert_eq!(heights(&Column::new(pos)), [0, 1, 2]);
    assert_eq!(heights(&Column::partial(pos, HeightSet::from(1..9))), [1, 2]);
    assert_eq!(heights(&Column::new(ColumnPos::new(1, 0))), [0; 0]);
    assert_eq!(heights(&column), [0; 0]);
}

#[test]
fn palettes_of_more_blocks_than_a_chunk_has_cells_are_put_together() {
    let [now, then] = [0, 4096_u32]
        .map(|first| Arc::new(Chunk::from_fn(|[x, y, z]| BlockId::new(first + 1 + (x * 256 + y * 16 + z) as u32))));
    let restored = restored_chunk(Some(&now), Some(&then), &part(4..5), &all(), SnapshotParts::ALL).unwrap();
    for cell in ChunkPart::WHOLE.cells() {
        assert_eq!(restored.block(cell), if cell[0] == 4 { &then } else { &now }.block(cell));
    }
}

fn restore(columns: &mut Columns, snapshot: &Snapshot, filter: &BlockFilter) {
    for column in columns.values_mut() {
        let restored: Vec<_> = snapshot.restored_chunks(column, filter).collect();
        assert!(restored.is_sorted_by(|a, b| a.0 < b.0));
        restored.into_iter().for_each(|(y, chunk)| drop(column.set_chunk(y, chunk)));
        assert_eq!(snapshot.restored_chunks(column, filter).count(), 0, "nothing is left to do");
    }
}

fn choices() -> impl Strategy<Value = BlockChoice> {
    let blocks = || {
        prop::collection::vec(0..6_u32, 0..5)
            .prop_map(|blocks| blocks.into_iter().map(BlockId::new).collect::<Vec<_>>())
    };
    prop_oneof![Just(BlockChoice::All), blocks().prop_map(BlockChoice::only), blocks().prop_map(BlockChoice::all_but)]
}

#[test]
fn a_snapshot_without_blocks_holds_none_and_one_of_nothing_restores_nothing() {
    let mut column = Column::new(ColumnPos::new(0, 0));
    column.set_chunk(0, noise(7));
    let without = |parts| {
        let mut snapshot = Snapshot::of_parts(BlockBox::ALL, parts);
        snapshot.add_column(&column, 1, vec![entity(1, BlockPos::new(0, 0, 0))]);
        snapshot
    };
    let no_blocks = without(SnapshotParts { blocks: false, ..SnapshotParts::ALL });
    assert_eq!((no_blocks.block(BlockPos::new(0, 0, 0)), no_blocks.entities().count()), (None, 1));
    assert!(no_blocks.covers_entity(Uuid::from_u128(9)), "of all entities");
    let nothing = without(SnapshotParts { blocks: false, layers: false, components: false, entities: false });
    assert_eq!((nothing.chunk(ChunkPos::new(0, 0, 0)), nothing.entities().count()), (None, 0));
    assert!(!nothing.covers_entity(Uuid::from_u128(1)));
    column.set_chunk(0, noise(5));
    assert_eq!(nothing.restored_chunks(&column, &all()).count(), 0);
    assert_eq!(no_blocks.restored_chunks(&column, &all()).count(), 0, "there are no layers and no components");
}

/// The restored cell that is `now`, if these parts of `then` were captured.
fn partly(now: &Cell, then: &Cell, parts: SnapshotParts) -> Cell {
    let block_of = |cell: &Cell, layer: usize| cell.get(layer).map(|(block, _)| *block);
    let ground = if parts.blocks { then[0].0 } else { now[0].0 };
    let above = match () {
        () if parts.layers => &then[1..],
        () if ground == now[0].0 => &now[1..],
        () => &[],
    };
    let blocks = [ground].into_iter().chain(above.iter().map(|(block, _)| *block));
    let components = |(layer, block): (usize, BlockId)| {
        let components = if parts.components && block_of(then, layer) == Some(block) {
            then[layer].1.clone()
        } else if block_of(now, layer) == Some(block) {
            now[layer].1.clone()
        } else {
            // Unset values stay unset.
            let unset = |(id, _): &(BlockComponentId, Vec<u8>)| {
                let layout = BLOCKS.components(block).iter().find(|of| of.id == *id);
                (*id, vec![0; layout.and_then(|of| of.size).unwrap_or(0) as usize])
            };
            then[layer].1.iter().map(unset).collect()
        };
        (block, components)
    };
    blocks.enumerate().map(components).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Promise, snapshots: A restore leaves parts alone that the capture excluded.
    #[test]
    fn parts_that_a_snapshot_leaves_out_stay_where_possible(
        first in edits(120), later in edits(120), a in positions(), b in positions(),
        [blocks, layers, components] in any::<[bool; 3]>(), current in choices(),
    ) {
        let (area, parts) = (BlockBox::new(a, b), SnapshotParts { blocks, layers, components, entities: false });
        let filter = BlockFilter { current, ..BlockFilter::default() };
        let mut columns = world();
        edit(&mut columns, &first);
        let before = columns.clone();
        let mut snapshot = Snapshot::of_parts(area, parts);
        for column in columns.values() {
            snapshot.add_column(column, 1, Vec::new());
        }
        edit(&mut columns, &later);
        let edited = columns.clone();
        for column in columns.values_mut() {
            let restored: Vec<_> = snapshot.restored_chunks(column, &filter).collect();
            restored.into_iter().for_each(|(y, chunk)| drop(column.set_chunk(y, chunk)));
        }
        let everywhere = BlockBox::new(BlockPos::new(-48, -48, -48), BlockPos::new(47, 47, 47));
        for pos in positions_of(&everywhere).filter(|pos| columns.contains_key(&pos.column())) {
            let (then, now) = (cell(&before, pos), cell(&edited, pos));
            let is_chosen = area.contains(pos) && filter.current.contains(now[0].0);
            let expected = if is_chosen { partly(&now, &then, parts) } else { now };
            prop_assert_eq!(cell(&columns, pos), expected, "{}", pos);
        }
        if filter.is_all() {
            restore(&mut columns, &snapshot, &filter);
        }
    }

    #[test]
    fn a_restore_changes_the_chosen_cells_of_the_box_and_no_others(
        first in edits(120), later in edits(120), a in positions(), b in positions(), hole in positions(),
        current in choices(), wanted in choices(),
    ) {
        let (area, filter) = (BlockBox::new(a, b), BlockFilter { current, wanted });
        let mut columns = world();
        edit(&mut columns, &first);
        let before = columns.clone();
        let snapshot = capture(&columns, area, |pos| pos == hole.column());
        edit(&mut columns, &later);
        let edited = columns.clone();
        // After a restore, a filter of current blocks may allow fewer cells.
        if filter.is_all() || filter.current == BlockChoice::All {
            restore(&mut columns, &snapshot, &filter);
        } else {
            for column in columns.values_mut() {
                let restored: Vec<_> = snapshot.restored_chunks(column, &filter).collect();
                restored.into_iter().for_each(|(y, chunk)| drop(column.set_chunk(y, chunk)));
            }
        }
        let everywhere = BlockBox::new(BlockPos::new(-48, -48, -48), BlockPos::new(47, 47, 47));
        for pos in positions_of(&everywhere).filter(|pos| columns.contains_key(&pos.column())) {
            let (old, now) = (cell(&before, pos), cell(&edited, pos));
            let is_chosen = area.contains(pos) && pos.column() != hole.column()
                && filter.current.contains(now[0].0) && filter.wanted.contains(old[0].0);
            let found = cell(&columns, pos);
            prop_assert!(found == if is_chosen { old } else { now }, "{}", pos);
        }
        // The chunks are valid: their components match their blocks, so they can be stored.
        for chunk in columns.values().flat_map(|column| column.chunks()).map(|(_, chunk)| chunk) {
            for cell in ChunkPart::WHOLE.cells().step_by(37) {
                for (block, components) in cell_of(Some(chunk), cell) {
                    prop_assert!(components.len() <= BLOCKS.components(block).len());
                }
            }
        }
    }
}
