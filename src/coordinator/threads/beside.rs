//! Work beside the coordinator: what takes its time is done elsewhere. What is asked is always answered, but for idle work: that
//! is asked again, and if it panics, never.

use super::Threads;
use super::work_error::{WorkError, caught};
use crate::block::BlockRegistry;
use crate::coordinator::exchange::Teller;
use crate::storage::WorldStore;
use bevy::prelude::*;
use std::thread::Builder;

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

/// Has a system of the coordinator handle what came of work.
pub fn hand_to<T: 'static, M: 'static>(world: &mut World, system: impl IntoSystem<In<T>, (), M> + 'static, result: T) {
    if let Err(error) = world.run_system_cached_with(system, result) {
        error!("what came of work beside the coordinator could not be handled: {error}");
    }
}

impl Threads {
    /// Has work done: on a thread of its own with this name if it may take minutes, since ground must be loaded meanwhile, and
    /// otherwise on a thread for short work; in lockstep here and now, so that its answer is there with the next pass. What came of it is
    /// handed to `answer` in the coordinator's world.
    pub fn ask<T: Send + 'static>(
        &mut self,
        thread: Option<&'static str>,
        work: impl FnOnce(&WorldStore, &BlockRegistry) -> T + Send + 'static,
        answer: impl FnOnce(&mut World, Result<T, WorkError>) + Send + 'static,
    ) {
        let (store, blocks) = (self.store.clone(), self.template.blocks.clone());
        let mut question = Question { answer: Some(Box::new(answer)), teller: self.teller.clone() };
        let run = move || {
            let result = caught(|| work(&store, &blocks));
            question.answer(result);
        };
        match thread {
            _ if self.is_lockstep => run(),
            None => self.answers.spawn(async move { run() }).detach(),
            Some(name) => {
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
