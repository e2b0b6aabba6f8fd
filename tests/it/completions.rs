//! Several threads complete columns of one distance graph without losing any.

use bevy_terrane::generation::DistanceGraph;
use bevy_terrane::space::{ColumnArea, ColumnPos};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

const SIDE: i64 = 256;
const TRIALS: usize = 300;

/// Decides which thread completes a column: the division determines how often two threads meet in one batch.
type Share = fn(ColumnPos) -> [bool; 2];

const SHARES: [Share; 5] = [
    |column| [column.x < SIDE / 2, column.x >= SIDE / 2],
    |column| [column.x & 1 == 0, column.x & 1 == 1],
    |column| [column.x >> 2 & 1 == 0, column.x >> 2 & 1 == 1],
    |_| [true, true],
    |column| [column.z & 1 == 0, column.z & 1 == 1],
];

#[test]
fn two_threads_in_the_same_batches_lose_no_mark() {
    for trial in 0..TRIALS {
        let share = SHARES[trial % SHARES.len()];
        let graph = Mutex::new(DistanceGraph::new());
        let (start, working) = (Barrier::new(3), AtomicUsize::new(2));
        thread::scope(|scope| {
            for number in 0..2 {
                let (graph, start, working) = (&graph, &start, &working);
                scope.spawn(move || {
                    start.wait();
                    let all = (0..SIDE).flat_map(|z| (0..SIDE).map(move |x| ColumnPos::new(x, z)));
                    all.filter(|column| share(*column)[number])
                        .for_each(|column| _ = graph.lock().unwrap().mark_completed(column));
                    working.fetch_sub(1, Ordering::Release);
                });
            }
            start.wait();
            while working.load(Ordering::Acquire) > 0 {
                // The work is returned together with the columns of its batch that are completed by now.
                let mut graph = graph.lock().unwrap();
                if let Some(work) = graph.find_work(ColumnPos::new(SIDE / 2, SIDE / 2), 256) {
                    graph.release_batch(work.batch(), u16::MAX);
                }
            }
        });
        let graph = graph.into_inner().unwrap();
        assert_eq!(graph.completed_count(), (SIDE * SIDE) as u64, "trial {trial}");
        let mut expected = DistanceGraph::new();
        let all = ColumnArea::Box { min: ColumnPos::new(0, 0), max: ColumnPos::new(SIDE - 1, SIDE - 1) };
        all.batches().for_each(|(batch, mask)| _ = expected.mark_batch(batch, mask));
        assert!(graph.completed_batches().eq(expected.completed_batches()));
    }
}
