//! Work beside the coordinator: what takes its time is done elsewhere. What is asked is always answered, but for idle work: that
//! is asked again, and if it panics, never.

use super::Threads;
use crate::block::BlockRegistry;
use crate::coordinator::exchange::Teller;
use crate::storage::{StoreError, WorldStore};
use crate::work::panic_message;
use bevy::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::Builder;
use thiserror::Error;

/// Where work is done. In lockstep it is all done here and now, so that its answer is there with the next pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
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
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, WorkError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| WorkError::Panicked(panic_message(&*payload)))
}

type Answer<T> = Box<dyn FnOnce(&mut World, Result<T, WorkError>) + Send>;

/// The answer to work, which is given once.
struct Question<T: Send + 'static> {
    answer: Option<Answer<T>>,
    teller: Teller,
}

impl<T: Send + 'static> Question<T> {
    fn answer(&mut self, result: Result<T, WorkError>) {
        if let Some(answer) = self.answer.take() {
            self.teller.tell(move |world| answer(world, result));
        }
    }
}

impl<T: Send + 'static> Drop for Question<T> {
    /// Work that is dropped was begun by no thread.
    fn drop(&mut self) {
        self.answer(Err(WorkError::NoThread));
    }
}

impl Threads {
    /// Has work done. What came of it is handed to `answer` in the coordinator's world.
    pub fn ask<T: Send + 'static>(
        &mut self,
        place: Place,
        work: impl FnOnce(&WorldStore, &BlockRegistry) -> T + Send + 'static,
        answer: impl FnOnce(&mut World, Result<T, WorkError>) + Send + 'static,
    ) {
        let (store, blocks) = (self.store.clone(), self.template.blocks.clone());
        let mut question = Question { answer: Some(Box::new(answer)), teller: self.teller.clone() };
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

    /// Has the storage thread do work when there is nothing to save, or, in lockstep, does it here and now. What came of it is
    /// handed to `answer` in the coordinator's world. Says whether that was possible.
    pub fn ask_when_idle<T: Send + 'static>(
        &self,
        work: impl FnOnce(&WorldStore) -> T + Send + 'static,
        answer: impl FnOnce(&mut World, T) + Send + 'static,
    ) -> bool {
        let teller = self.teller.clone();
        let run = move |store: &WorldStore| {
            let result = work(store);
            teller.tell(move |world| answer(world, result));
        };
        if self.is_lockstep {
            run(&self.store);
            return true;
        }
        self.storage.try_when_idle(run)
    }
}
