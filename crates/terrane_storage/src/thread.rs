//! The thread that commits, so that other threads do not wait for the disk.

#[cfg(test)]
mod tests;

use super::{CommitReport, Durability, SaveBatch, StoreError, WorldStore};
use crate::work::panic_message;
use crossbeam_channel::{Receiver, Sender, bounded, select_biased};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

/// A thread that commits submitted batches in order. Dropping it waits for all of them.
///
/// A failed batch is returned with its answer. The next batch may be submitted only then, and must be merged into the
/// failed one: if it was committed first, the retry would undo it.
pub struct StorageThread {
    // `None` only while this is dropped.
    queue: Option<Sender<Submission>>,
    idle_work: Option<Sender<IdleWork>>,
    thread: Option<JoinHandle<()>>,
}

/// Work for times without commits.
type IdleWork = Box<dyn FnOnce(&WorldStore) + Send>;

type Submission = (Arc<SaveBatch>, Durability, u64);

/// The answer to a submitted batch.
#[derive(Debug)]
pub struct Commit {
    /// The number from the submission.
    pub number: u64,
    /// The batch. It must be submitted again if it was not committed.
    pub batch: Arc<SaveBatch>,
    /// The result of the commit.
    pub result: Result<CommitReport, StoreError>,
}

impl StorageThread {
    /// Starts the thread. It calls `on_commit` with each answer, in the order of submission. `on_commit` must not panic.
    pub fn start(store: Arc<WorldStore>, on_commit: impl FnMut(Commit) + Send + 'static) -> io::Result<Self> {
        let (queue, submissions) = bounded(1);
        let (idle_work, idle) = bounded(1);
        let thread = std::thread::Builder::new()
            .name("terrane storage".into())
            .spawn(move || run(&store, &submissions, &idle, on_commit))?;
        Ok(Self { queue: Some(queue), idle_work: Some(idle_work), thread: Some(thread) })
    }

    /// Submits a batch without blocking. Returns the batch if another one is waiting or the thread has ended.
    pub fn try_submit(&self, batch: Arc<SaveBatch>, durability: Durability, number: u64) -> Result<(), Arc<SaveBatch>> {
        let Some(queue) = &self.queue else { return Err(batch) };
        queue.try_send((batch, durability, number)).map_err(|refused| refused.into_inner().0)
    }

    /// Submits work for a time when no batch is waiting, without blocking. Batches that are submitted meanwhile wait
    /// for it, so it should be short. Work that has not begun when the thread ends is dropped. Returns `false` if other
    /// work is waiting or the thread has ended.
    pub fn try_when_idle(&self, work: impl FnOnce(&WorldStore) + Send + 'static) -> bool {
        self.idle_work.as_ref().is_some_and(|queue| queue.try_send(Box::new(work)).is_ok())
    }
}

impl Drop for StorageThread {
    fn drop(&mut self) {
        self.queue = None;
        self.idle_work = None;
        if let Some(thread) = self.thread.take() {
            // The thread can only have panicked in the caller's own function, and that panic was reported.
            _ = thread.join();
        }
    }
}

fn run(
    store: &WorldStore,
    submissions: &Receiver<Submission>,
    idle: &Receiver<IdleWork>,
    mut on_commit: impl FnMut(Commit),
) {
    while let Some((batch, durability, number)) = next_submission(store, submissions, idle) {
        let span = tracing::debug_span!("commit");
        let result = span
            .in_scope(|| catch_unwind(AssertUnwindSafe(|| store.commit(&batch, durability))))
            .unwrap_or_else(|panic| {
                let reason = format!("the commit panicked: {}", panic_message(&*panic));
                Err(StoreError::backend("write", None, store.path(), reason))
            });
        on_commit(Commit { number, batch, result });
    }
}

/// The next batch. While there is none, other work is done. `None` when the thread should end.
fn next_submission(
    store: &WorldStore,
    submissions: &Receiver<Submission>,
    idle: &Receiver<IdleWork>,
) -> Option<Submission> {
    loop {
        select_biased! {
            recv(submissions) -> submission => return submission.ok(),
            recv(idle) -> work => {
                let Ok(work) = work else { return submissions.recv().ok() };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(store))) {
                    // The requester of the work gets no answer, and commits continue.
                    tracing::error!("work on the store panicked: {}", panic_message(&*panic));
                }
            }
        }
    }
}
