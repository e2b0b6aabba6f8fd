use super::*;
use crate::block::BlockId;
use crate::snapshot::test_world::{self, Columns, capture, cells, edit, edits, positions, world};
use crate::space::BlockPos;
use proptest::prelude::*;

fn area() -> BlockBox {
    BlockBox::new(BlockPos::new(-20, -20, -20), BlockPos::new(25, 25, 25))
}

fn taken(columns: &Columns) -> Snapshot {
    capture(columns, area(), |_| false)
}

fn set(columns: &mut Columns, block: u32) -> [Snapshot; 2] {
    let before = taken(columns);
    let pos = BlockPos::new(1, 2, 3);
    columns.get_mut(&pos.column()).unwrap().set_block(pos, BlockId::new(block));
    [before, taken(columns)]
}

fn restore(columns: &mut Columns, snapshot: &Snapshot) {
    for column in columns.values_mut() {
        let restored: Vec<_> = snapshot.restored_chunks(column, &BlockFilter::default()).collect();
        restored.into_iter().for_each(|(y, chunk)| drop(column.set_chunk(y, chunk)));
    }
}

#[test]
fn an_edit_holds_only_the_chunks_that_it_changed() {
    let mut columns = world();
    let [before, after] = set(&mut columns, 1);
    let mut history = EditHistory::new(1 << 20);
    assert_eq!(history.record(&before, &after), Recorded::Kept);
    assert_eq!(history.record(&after, &taken(&columns)), Recorded::Unchanged);
    let undo = history.undo().unwrap();
    assert_eq!(undo.columns().len(), 1);
    assert!(undo.holds(ChunkPos::new(0, 0, 0)) && !undo.holds(ChunkPos::new(0, 1, 0)));
    assert!(history.undo().is_none() && history.redo().is_some() && history.redo().is_none());
}

#[test]
fn a_new_edit_forgets_what_was_undone() {
    let mut columns = world();
    let mut history = EditHistory::new(1 << 20);
    let [before, after] = set(&mut columns, 1);
    history.record(&before, &after);
    restore(&mut columns, &history.undo().unwrap());
    assert_eq!((history.undo_count(), history.redo_count()), (0, 1));
    let [before, after] = set(&mut columns, 2);
    history.record(&before, &after);
    assert_eq!((history.undo_count(), history.redo_count()), (1, 0));
}

#[test]
fn a_chunk_that_two_edits_hold_counts_once() {
    let mut columns = world();
    let mut history = EditHistory::new(1 << 20);
    let steps: Vec<_> = (1..4).map(|block| set(&mut columns, block)).collect();
    let bytes: Vec<_> =
        steps.iter().map(|[before, after]| (history.record(before, after), history.bytes()).1).collect();
    assert_eq!(bytes[2] - bytes[1], bytes[1] - bytes[0], "only what came after is new");
    history.clear();
    assert_eq!((history.bytes(), history.undo_count()), (0, 0));
}

#[test]
fn the_oldest_edits_are_forgotten_first() {
    let mut columns = world();
    let mut history = EditHistory::new(1 << 20);
    for block in 1..10 {
        let [before, after] = set(&mut columns, block);
        history.record(&before, &after);
    }
    history.set_limit(history.bytes() / 2);
    let kept = history.undo_count();
    assert!((1..9).contains(&kept) && history.bytes() <= history.limit(), "{kept}");
    let last = history.undo().unwrap().block(BlockPos::new(1, 2, 3));
    assert_eq!(last, Some(BlockId::new(8)));

    history.set_limit(100);
    assert_eq!((history.undo_count(), history.redo_count(), history.bytes()), (0, 0, 0));
    let [before, after] = set(&mut columns, 10);
    assert_eq!(history.record(&before, &after), Recorded::TooLarge);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// A world that is edited in the box, undone and redone is always the one of a list of all its states.
    #[test]
    fn undo_and_redo_walk_through_the_states_of_the_box(
        steps in prop::collection::vec(prop_oneof![edits(30).prop_map(Some), Just(None)], 1..8),
        redoes in prop::collection::vec(any::<bool>(), 8), outside in positions(),
    ) {
        let mut columns = world();
        let mut history = EditHistory::new(usize::MAX);
        let mut states = vec![cells(&taken(&columns))];
        let mut at = 0;
        for (step, redoes) in steps.iter().zip(redoes) {
            match step {
                Some(edits) => {
                    let before = taken(&columns);
                    let inside = |edit: &&test_world::Edit| match edit {
                        test_world::Edit::Place(pos, ..) => area().contains(*pos),
                        test_world::Edit::Fill(..) => false,
                    };
                    edit(&mut columns, &edits.iter().filter(inside).cloned().collect::<Vec<_>>());
                    if history.record(&before, &taken(&columns)) == Recorded::Kept {
                        states.truncate(at + 1);
                        states.push(cells(&taken(&columns)));
                        at += 1;
                    }
                }
                None if redoes => {
                    if let Some(snapshot) = history.redo() {
                        restore(&mut columns, &snapshot);
                        at += 1;
                    }
                }
                None => {
                    if let Some(snapshot) = history.undo() {
                        restore(&mut columns, &snapshot);
                        at -= 1;
                    }
                }
            }
            // Somebody builds beside the box in the meantime, and that stays.
            if !area().contains(outside) {
                columns.get_mut(&outside.column()).unwrap().set_block(outside, BlockId::new(2));
            }
            prop_assert!(cells(&taken(&columns)) == states[at]);
            prop_assert!(area().contains(outside) || test_world::cell(&columns, outside)[0].0 == BlockId::new(2));
            prop_assert_eq!((history.undo_count(), history.undo_count() + history.redo_count() + 1), (at, states.len()));
        }
    }
}
