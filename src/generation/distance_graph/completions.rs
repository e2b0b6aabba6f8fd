//! [`Completions`]: where several threads complete columns of one graph.

use super::DistanceGraph;
use super::sync::Mutex;
use crate::space::{BatchPos, ColumnPos};
use rustc_hash::FxHashMap;
use std::mem;
use std::sync::PoisonError;

/// So many threads seldom wait for each other.
const SHARDS: usize = 16;

type Shard = Mutex<FxHashMap<BatchPos, u16>>;

/// Completed columns on their way into a [`DistanceGraph`], from any number of threads.
///
/// A graph is changed through `&mut` alone, so it cannot lose a mark; but workers do not own it. They put their columns
/// here, also columns of the same batch, and the graph's owner takes everything out now and then. A column is in exactly
/// one of three places, the worker, this, or the graph, and goes from one to the next under a lock: a batch always has
/// the same one. A model checker goes through every order in which two workers and the owner can meet.
#[derive(Debug)]
pub struct Completions<const N: usize = SHARDS> {
    shards: [Shard; N],
}

impl Completions {
    /// An empty one.
    pub fn new() -> Self {
        Self::with_shards()
    }
}

impl Default for Completions {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Completions<N> {
    /// An empty one with a number of locks of your own choice: one at least.
    pub fn with_shards() -> Self {
        const { assert!(N > 0, "there must be a place for every batch") };
        Self { shards: std::array::from_fn(|_| Mutex::new(FxHashMap::default())) }
    }

    /// Completes a column with the next [`drain_into`](Self::drain_into).
    pub fn mark_completed(&self, column: ColumnPos) {
        self.mark_batch(column.batch(), 1 << column.in_batch());
    }

    /// Completes columns of a batch (bit x + 4 * z) with the next [`drain_into`](Self::drain_into).
    pub fn mark_batch(&self, batch: BatchPos, mask: u16) {
        // Nothing panics while it has the lock, and a map of marks is whole at any time.
        let mut shard = self.shard(batch).lock().unwrap_or_else(PoisonError::into_inner);
        *shard.entry(batch).or_default() |= mask;
    }

    /// Completes in the graph whatever was marked before this call, and answers how many columns were missing.
    pub fn drain_into(&self, graph: &mut DistanceGraph) -> u64 {
        let mut added = 0;
        for shard in &self.shards {
            let marks = mem::take(&mut *shard.lock().unwrap_or_else(PoisonError::into_inner));
            for (batch, mask) in marks {
                added += u64::from(graph.mark_batch(batch, mask).count_ones());
            }
        }
        added
    }

    /// Neighbouring batches have different locks, so that workers side by side seldom meet.
    fn shard(&self, batch: BatchPos) -> &Shard {
        let number = (batch.x as u64).wrapping_add((batch.z as u64).wrapping_mul(5)) % N as u64;
        &self.shards[number as usize]
    }
}
