//! [`Completions`]: a model checker goes through every order of two workers and the owner.

use super::super::DistanceGraph;
use crate::space::BatchPos;
use loom::sync::Arc;
use loom::thread;
use modelled::Completions;

#[allow(clippy::duplicate_mod)] // That is the point: the same source on another lock.
/// The source of the type, with the model checker's lock in place of the real one.
#[path = "../completions.rs"]
mod modelled;

mod sync {
    pub(super) use loom::sync::Mutex;
}

#[test]
fn no_order_of_workers_and_owner_loses_a_mark() {
    loom::model(|| {
        let completions = Arc::new(Completions::<1>::with_shards());
        let (one, other) = (BatchPos::new(0, 0), BatchPos::new(-1, 0));
        let worker = |marks: [(BatchPos, u16); 2]| {
            let completions = completions.clone();
            thread::spawn(move || {
                for (batch, mask) in marks {
                    // The first column alone.
                    completions.mark_completed(batch.column(mask.trailing_zeros()));
                    completions.mark_batch(batch, mask & (mask - 1));
                }
            })
        };
        let workers = [worker([(one, 0x00ff), (other, 0x0f0f)]), worker([(one, 0xff00), (other, 0xf00f)])];
        let mut graph = DistanceGraph::new();
        let early = completions.drain_into(&mut graph);
        assert_eq!(early, graph.completed_count());
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        let late = completions.drain_into(&mut graph);
        assert_eq!((graph.completed_in_batch(one), graph.completed_in_batch(other)), (0xffff, 0xff0f));
        assert_eq!(early + late, 28);
        assert_eq!(completions.drain_into(&mut graph), 0);
    });
}
