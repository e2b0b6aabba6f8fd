//! Compares undo and redo with a list of states.

use super::*;
use crate::block::BlockId;
use crate::entity::EntityRecord;
use crate::snapshot::tests::{self, Columns, capture, cells, edit, edits, entity, positions, world};
use crate::snapshot::{BlockFilter, SnapshotParts};
use crate::space::{BlockBox, BlockPos, ChunkPos};
use proptest::prelude::*;
use std::collections::BTreeMap;
use uuid::Uuid;

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
fn a_new_edit_forgets_undone_edits() {
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
}

/// The size in bytes, counted from scratch.
fn counted(history: &EditHistory) -> usize {
    let edits = || history.done.iter().chain(&history.undone);
    let chunks: BTreeMap<_, _> = edits().flat_map(Edit::chunks).map(|chunk| (Arc::as_ptr(chunk), chunk)).collect();
    assert_eq!(history.chunks.len(), chunks.len());
    edits().map(Edit::list_bytes).sum::<usize>() + chunks.values().map(|chunk| chunk_bytes(chunk)).sum::<usize>()
}

#[test]
fn an_entity_that_changed_costs_little_in_a_wide_box() {
    let wide = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(100 * 16 - 1, 15, 100 * 16 - 1));
    let capture = |x| {
        let mut snapshot = Snapshot::new(wide);
        for pos in wide.columns() {
            let mob = entity(1, BlockPos::new(x, 0, 0));
            let here = (mob.column() == pos).then_some(mob);
            snapshot.add_column(&crate::chunk::Column::new(pos), 1, here.into_iter().collect());
        }
        snapshot
    };
    let mut history = EditHistory::new(200_000);
    for step in 0..3 {
        assert_eq!(history.record(&capture(step), &capture(step + 1)), Recorded::Kept);
        assert_eq!(history.bytes(), counted(&history));
    }
    assert_eq!(history.undo_count(), 1, "each knows its 10,000 columns");
    assert_eq!(history.undo().unwrap().columns().len(), 10_000, "the entity may be in any of them by now");
}

#[test]
fn the_oldest_edits_are_forgotten_first() {
    let mut columns = world();
    let steps: Vec<_> = (1..10).map(|block| set(&mut columns, block)).collect();
    let mut all = EditHistory::new(1 << 20);
    for [before, after] in &steps {
        all.record(before, after);
    }
    let limit = all.bytes() / 2;
    let mut history = EditHistory::new(limit);
    for [before, after] in &steps {
        assert_eq!(history.record(before, after), Recorded::Kept);
        assert!(history.bytes() <= limit);
    }
    let kept = history.undo_count();
    assert!((1..9).contains(&kept), "{kept}");
    let last = history.undo().unwrap().block(BlockPos::new(1, 2, 3));
    assert_eq!(last, Some(BlockId::new(8)));

    let mut none = EditHistory::new(100);
    assert_eq!(none.record(&steps[0][0], &steps[0][1]), Recorded::TooLarge);
    assert_eq!((none.undo_count(), none.redo_count(), none.bytes()), (0, 0, 0));
}

/// The entities of a world. A capture contains those within the box.
type Mobs = BTreeMap<Uuid, EntityRecord>;

fn with_mobs(columns: &Columns, mobs: &Mobs) -> Snapshot {
    let mut snapshot = Snapshot::new(area());
    for column in columns.values() {
        let here = mobs.values().filter(|mob| mob.column() == column.pos()).cloned();
        snapshot.add_column(column, 1, here.collect());
    }
    snapshot
}

/// Restores entities as in a world.
fn restore_mobs(mobs: &mut Mobs, snapshot: &Snapshot) {
    let is_reached = |mob: &EntityRecord| area().contains(mob.block) && snapshot.column(mob.column()).is_some();
    mobs.retain(|id, mob| !(is_reached(mob) && snapshot.covers_entity(*id)));
    for mob in snapshot.entities() {
        mobs.entry(mob.id).or_insert_with(|| mob.clone());
    }
}

fn mobs(of: impl IntoIterator<Item = (u128, i64)>) -> Mobs {
    let mobs = of.into_iter().map(|(id, x)| entity(id, BlockPos::new(x, 0, 0)));
    mobs.map(|mob| (mob.id, mob)).collect()
}

#[test]
fn entities_that_an_edit_did_not_change_are_left_alone() {
    let columns = world();
    let mut history = EditHistory::new(1 << 20);
    let before = with_mobs(&columns, &mobs([(1, 0), (2, 5), (3, 9)]));
    let after = with_mobs(&columns, &mobs([(1, 0), (3, -9), (4, 12)]));
    assert_eq!(history.record(&before, &after), Recorded::Kept);
    // One wanders off, and another one enters the box.
    let mut now = mobs([(1, 7), (3, -9), (4, 15), (5, 3)]);
    restore_mobs(&mut now, &history.undo().unwrap());
    assert_eq!(now, mobs([(1, 7), (2, 5), (3, 9), (5, 3)]));
    restore_mobs(&mut now, &history.redo().unwrap());
    assert_eq!(now, mobs([(1, 7), (3, -9), (4, 12), (5, 3)]));
    assert_eq!(history.record(&after, &after), Recorded::Unchanged);
}

#[test]
fn entities_count_as_bytes_and_are_left_out_if_either_capture_leaves_them_out() {
    let columns = world();
    let mut mob = entity(1, BlockPos::new(0, 0, 0));
    let empty = with_mobs(&columns, &Mobs::new());
    let bytes = |mob: &EntityRecord| {
        let mut history = EditHistory::new(1 << 20);
        history.record(&empty, &with_mobs(&columns, &Mobs::from([(mob.id, mob.clone())])));
        history.bytes()
    };
    let bare = bytes(&mob);
    mob.components.push(("bag".to_owned(), vec![0; 10_000]));
    assert!(bare > 0 && (10_000..10_200).contains(&(bytes(&mob) - bare)));
    let mut history = EditHistory::new(5_000);
    let with_bag = with_mobs(&columns, &Mobs::from([(mob.id, mob)]));
    assert_eq!(history.record(&empty, &with_bag), Recorded::TooLarge);

    let without = Snapshot::of_parts(area(), SnapshotParts { entities: false, ..SnapshotParts::ALL });
    assert_eq!(history.record(&without, &with_bag), Recorded::Unchanged);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// In each step, some of eight entities are anywhere in the box, or nowhere.
    ///
    /// Promise, snapshots: `EditHistory` undoes and redoes edits of a box, entities included.
    #[test]
    fn undo_and_redo_walk_through_the_entities_of_the_box(
        steps in prop::collection::vec(prop_oneof![
            3 => prop::collection::btree_map(0..8_u128, -20..26_i64, 0..8).prop_map(Some), 2 => Just(None)
        ], 1..10), redoes in prop::collection::vec(any::<bool>(), 10),
    ) {
        let columns = world();
        let mut now = Mobs::new();
        let mut history = EditHistory::new(usize::MAX);
        let (mut states, mut at) = (vec![Mobs::new()], 0);
        for (step, redoes) in steps.into_iter().zip(redoes) {
            match step {
                Some(places) => {
                    let before = with_mobs(&columns, &now);
                    now = mobs(places);
                    if history.record(&before, &with_mobs(&columns, &now)) == Recorded::Kept {
                        states.truncate(at + 1);
                        states.push(now.clone());
                        at += 1;
                    }
                }
                None => {
                    let restored = if redoes { history.redo() } else { history.undo() };
                    let Some(restored) = restored else { continue };
                    restore_mobs(&mut now, &restored);
                    at = if redoes { at + 1 } else { at - 1 };
                }
            }
            prop_assert_eq!(&now, &states[at]);
            prop_assert_eq!(history.bytes(), counted(&history));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Editing, undoing and redoing in the box always gives a state from the list of all states.
    ///
    /// Promise, snapshots: `EditHistory` undoes and redoes edits of a box, entities included.
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
                    let inside = |edit: &&tests::Edit| match edit {
                        tests::Edit::Place(pos, ..) => area().contains(*pos),
                        tests::Edit::Fill(..) => false,
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
            // In the meantime, a player builds beside the box. That must stay.
            if !area().contains(outside) {
                columns.get_mut(&outside.column()).unwrap().set_block(outside, BlockId::new(2));
            }
            prop_assert!(cells(&taken(&columns)) == states[at]);
            prop_assert_eq!(history.bytes(), counted(&history));
            prop_assert!(area().contains(outside) || tests::cell(&columns, outside)[0].0 == BlockId::new(2));
            prop_assert_eq!((history.undo_count(), history.undo_count() + history.redo_count() + 1), (at, states.len()));
        }
    }
}
