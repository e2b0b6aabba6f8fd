//! The thread that commits, so that nobody else waits for the disk.

#[cfg(test)]
mod tests;

use super::{CommitReport, Durability, SaveBatch, StoreError, WorldStore};
use crate::work::panic_message;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, select};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use thiserror::Error;

/// A thread that commits the batches submitted to it, in their order. Dropping it waits for all of them.
///
/// Once a commit has failed, every later batch is handed back untried: committed out of order, a retry of the first
/// would undo the later ones. When all of them are answered, merge them, oldest first, call
/// [`resume`](Self::resume) and submit the result.
pub struct StorageThread {
    // These are taken when this is dropped.
    queue: Option<Sender<Submission>>,
    idle_work: Option<Sender<IdleWork>>,
    thread: Option<JoinHandle<()>>,
    state: Arc<State>,
}

/// Work for when there is nothing to commit.
type IdleWork = Box<dyn FnOnce(&WorldStore) + Send>;

#[derive(Default)]
struct State {
    is_halted: AtomicBool,
    unanswered: AtomicUsize,
}

struct Submission {
    batch: Arc<SaveBatch>,
    durability: Durability,
    ticket: u64,
}

/// The answer to a submitted batch.
#[derive(Debug)]
pub struct Commit {
    /// The number that it was submitted with.
    pub ticket: u64,
    /// What became of it.
    pub result: Result<CommitReport, FailedCommit>,
}

/// A batch that was not committed.
#[derive(Debug, Error)]
#[error("{} changes are not saved: {source}", batch.len())]
pub struct FailedCommit {
    /// Why not.
    pub source: CommitError,
    /// The batch, to be submitted again.
    pub batch: Arc<SaveBatch>,
}

/// Why a batch was not committed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommitError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was not tried, because the one before failed.
    #[error("an earlier commit failed")]
    Untried,
    /// A defect in the store.
    #[error("the commit panicked: {0}")]
    Panicked(String),
}

impl StorageThread {
    /// Starts the thread. Behind the batch that is being committed, one other may wait.
    /// `on_commit` is called on the thread with each answer, in the order of submission; it must not panic.
    pub fn start(store: Arc<WorldStore>, on_commit: impl FnMut(Commit) + Send + 'static) -> io::Result<Self> {
        let (queue, submissions) = bounded(1);
        let (idle_work, idle) = bounded(1);
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("terrane storage".into())
            .spawn(move || run(&store, &submissions, &idle, &shared, on_commit))?;
        Ok(Self { queue: Some(queue), idle_work: Some(idle_work), thread: Some(thread), state })
    }

    /// Submits a batch if there is room for it, and gives it back if not; never waits.
    pub fn try_submit(&self, batch: Arc<SaveBatch>, durability: Durability, ticket: u64) -> Result<(), Arc<SaveBatch>> {
        let Some(queue) = &self.queue else { return Err(batch) };
        self.state.unanswered.fetch_add(1, Ordering::AcqRel);
        queue.try_send(Submission { batch, durability, ticket }).map_err(|refused| {
            self.state.unanswered.fetch_sub(1, Ordering::AcqRel);
            refused.into_inner().batch
        })
    }

    /// Has some work done on the thread when no batch waits; never waits itself. Batches that are submitted meanwhile wait for
    /// it, so it should be short. At the end it is left undone. `false` if other work waits already, or the thread has ended.
    pub fn try_when_idle(&self, work: impl FnOnce(&WorldStore) + Send + 'static) -> bool {
        self.idle_work.as_ref().is_some_and(|queue| queue.try_send(Box::new(work)).is_ok())
    }

    /// How many submitted batches are not committed or handed back yet.
    pub fn unanswered(&self) -> usize {
        self.state.unanswered.load(Ordering::Acquire)
    }

    /// Commits again after a failure. `false`, and without effect, while batches submitted before are unanswered.
    pub fn resume(&self) -> bool {
        let may_resume = self.unanswered() == 0;
        if may_resume {
            self.state.is_halted.store(false, Ordering::Release);
        }
        may_resume
    }
}

impl Drop for StorageThread {
    fn drop(&mut self) {
        self.queue = None;
        self.idle_work = None;
        if let Some(thread) = self.thread.take() {
            // It can only have panicked in the caller's own function, and was reported then.
            _ = thread.join();
        }
    }
}

fn run(
    store: &WorldStore,
    submissions: &Receiver<Submission>,
    idle: &Receiver<IdleWork>,
    state: &State,
    mut on_commit: impl FnMut(Commit),
) {
    while let Some(Submission { batch, durability, ticket }) = next_submission(store, submissions, idle) {
        let result = if state.is_halted.load(Ordering::Acquire) {
            Err(CommitError::Untried)
        } else {
            catch_unwind(AssertUnwindSafe(|| store.commit(&batch, durability)))
                .map_or_else(|panic| Err(CommitError::Panicked(panic_message(&*panic))), |result| Ok(result?))
        };
        if result.is_err() {
            state.is_halted.store(true, Ordering::Release);
        }
        state.unanswered.fetch_sub(1, Ordering::AcqRel);
        on_commit(Commit { ticket, result: result.map_err(|source| FailedCommit { source, batch }) });
    }
}

/// The next batch; while there is none, other work is done. `None` at the end.
fn next_submission(
    store: &WorldStore,
    submissions: &Receiver<Submission>,
    idle: &Receiver<IdleWork>,
) -> Option<Submission> {
    loop {
        match submissions.try_recv() {
            Ok(submission) => return Some(submission),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => {}
        }
        select! {
            recv(submissions) -> submission => return submission.ok(),
            recv(idle) -> work => {
                let Ok(work) = work else { return submissions.recv().ok() };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(store))) {
                    // Whoever asked for it gets no answer, and the batches go on.
                    bevy::log::error!("work on the store panicked: {}", panic_message(&*panic));
                }
            }
        }
    }
}
