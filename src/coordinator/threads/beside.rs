//! Work beside the coordinator: what takes its time is done elsewhere. An event always answers what is asked, but for idle work:
//! that is asked again, and if it panics, never.

use super::Threads;
use crate::block::BlockRegistry;
use crate::coordinator::exchange::Event;
use crate::storage::{StoreError, WorldStore};
use crate::work::panic_message;
use crossbeam_channel::Sender;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::Builder;
use thiserror::Error;

/// Where work is done. In lockstep it is all done here and now, so that its answer is there with the next pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::coordinator) enum Place {
    /// On a loading thread: it is short.
    Loading,
    /// On a thread of its own with this name: it may take minutes, and ground must be loaded meanwhile.
    Beside(&'static str),
}

/// Why work beside the simulation has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkError {
    /// There is no thread to do it.
    #[error("the system gives no thread for it")]
    NoThread,
    /// It panicked, in the game's code perhaps: a migration, for instance.
    #[error("it panicked: {0}")]
    Panicked(String),
    /// The store cannot be read or written, or what it holds is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Does work that may panic.
pub(in crate::coordinator) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, WorkError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| WorkError::Panicked(panic_message(&*payload)))
}

/// What the coordinator is told of the result; nothing, if it need not know.
type Answer<T> = Box<dyn FnOnce(Result<T, WorkError>) -> Option<Event> + Send>;

/// The answer to work, which is sent once.
struct Question<T> {
    answer: Option<Answer<T>>,
    sender: Sender<Event>,
}

impl<T> Question<T> {
    fn answer(&mut self, result: Result<T, WorkError>) {
        if let Some(event) = self.answer.take().and_then(|answer| answer(result)) {
            // The coordinator is gone only while the app shuts down.
            let _ = self.sender.send(event);
        }
    }
}

impl<T> Drop for Question<T> {
    /// Work that is dropped was begun by no thread.
    fn drop(&mut self) {
        self.answer(Err(WorkError::NoThread));
    }
}

impl Threads {
    /// Has work done, and sends the event that `answer` makes of what came of it.
    pub fn ask<T: 'static>(
        &mut self,
        place: Place,
        work: impl FnOnce(&WorldStore, &BlockRegistry) -> T + Send + 'static,
        answer: impl FnOnce(Result<T, WorkError>) -> Option<Event> + Send + 'static,
    ) {
        let (store, blocks) = (self.store.clone(), self.template.blocks.clone());
        let mut question = Question { answer: Some(Box::new(answer)), sender: self.sender.clone() };
        let run = move || {
            let result = caught(|| work(&store, &blocks));
            question.answer(result);
        };
        match place {
            _ if self.is_lockstep => run(),
            Place::Loading => self.loading.spawn(async move { run() }).detach(),
            Place::Beside(name) => {
                self.long_work.retain(|thread| !thread.is_finished());
                self.long_work.extend(Builder::new().name(name.to_owned()).spawn(run));
            }
        }
    }

    /// Has the storage thread do work when there is nothing to save, or, in lockstep, does it here and now. The event that it
    /// gives is sent. Says whether that was possible.
    pub fn ask_when_idle(&self, work: impl FnOnce(&WorldStore) -> Option<Event> + Send + 'static) -> bool {
        let sender = self.sender.clone();
        let run = move |store: &WorldStore| {
            if let Some(event) = work(store) {
                let _ = sender.send(event);
            }
        };
        if self.is_lockstep {
            run(&self.store);
            return true;
        }
        self.storage.try_when_idle(run)
    }
}
