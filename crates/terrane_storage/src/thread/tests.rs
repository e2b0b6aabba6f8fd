//! The order of commits, failures, and the end.

use super::*;
use crate::backends::test_store::TestStore;
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use crossbeam_channel::unbounded;

const DIMENSION: DimensionId = DimensionId(0);
const COLUMN: ColumnPos = ColumnPos::new(0, 0);

/// A batch with a chunk of `block` at each of these heights.
fn batch(heights: impl IntoIterator<Item = i64>, block: u32) -> SaveBatch {
    let chunk = Arc::new(Chunk::uniform(BlockId::new(block)));
    let chunks = heights.into_iter().map(|y| ((DIMENSION, ChunkPos::new(0, y, 0)), Arc::clone(&chunk)));
    SaveBatch { chunks: chunks.collect(), ..SaveBatch::default() }
}

/// Submits a batch, and waits while there is no room for it.
fn submit(thread: &StorageThread, batch: SaveBatch, number: u64) {
    let mut batch = Arc::new(batch);
    while let Err(refused) = thread.try_submit(batch, Durability::Process, number) {
        batch = refused;
        std::thread::yield_now();
    }
}

/// The heights of the stored chunks and the block of each.
fn stored(world: &WorldStore) -> Vec<(i64, u32)> {
    let loaded = world.load_batch(DIMENSION, COLUMN.batch(), &[COLUMN], 0..100).unwrap();
    loaded[0].column.chunks().map(|(y, chunk)| (y, chunk.uniform_block().unwrap().index())).collect()
}

#[test]
fn answers_come_in_order_and_dropping_waits_for_all() {
    let world = Arc::new(TestStore::default().world());
    let (answers, answered) = unbounded();
    let thread = StorageThread::start(Arc::clone(&world), move |commit| _ = answers.send(commit)).unwrap();
    for number in 0..50 {
        submit(&thread, batch([number as i64], 1 + number as u32), number);
    }
    drop(thread);
    let numbers: Vec<u64> = answered.iter().map(|commit| commit.result.map(|_| commit.number).unwrap()).collect();
    assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    assert_eq!(stored(&world), (0..50).map(|y| (y, 1 + y as u32)).collect::<Vec<_>>());
}

#[test]
fn a_full_queue_hands_the_batch_back_at_once() {
    let world = Arc::new(TestStore::default().world());
    let (entered, has_entered) = unbounded();
    let (go_on, may_go_on) = unbounded::<()>();
    let thread = StorageThread::start(Arc::clone(&world), move |commit| {
        entered.send(commit.number).unwrap();
        _ = may_go_on.recv();
    })
    .unwrap();
    submit(&thread, batch([0], 1), 0);
    // The thread is now busy with the first answer, so there is room for one more batch.
    assert_eq!(has_entered.recv(), Ok(0));
    submit(&thread, batch([1], 1), 1);
    let refused = thread.try_submit(Arc::new(batch([2], 7)), Durability::Process, 2).unwrap_err();
    assert!(*refused == batch([2], 7));
    drop(go_on);
    drop(thread);
    assert_eq!(has_entered.iter().collect::<Vec<_>>(), [1]);
    assert_eq!(stored(&world), [(0, 1), (1, 1)]);
}

#[test]
fn a_failure_loses_nothing() {
    let store = TestStore::default();
    let world = Arc::new(store.world());
    let (answers, answered) = unbounded();
    let thread = StorageThread::start(Arc::clone(&world), move |commit| _ = answers.send(commit)).unwrap();
    store.fail_writes(true);
    submit(&thread, batch([0, 1], 1), 1);
    let Commit { number, batch: failed, result } = answered.recv().unwrap();
    assert_eq!((number, stored(&world)), (1, vec![]));
    assert!(matches!(result, Err(StoreError::Backend { .. })), "{result:?}");
    store.fail_writes(false);
    // The batch has no other owner, so it need not be copied.
    let mut again = Arc::into_inner(failed).unwrap();
    again.merge(batch([1, 2], 2));
    submit(&thread, again, 2);
    assert!(answered.recv().unwrap().result.is_ok());
    assert_eq!(stored(&world), [(0, 1), (1, 2), (2, 2)]);
}
