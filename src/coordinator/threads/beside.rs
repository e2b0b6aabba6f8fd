//! Work beside the coordinator: slow work is done on other threads. Every question is answered, except idle work: that is asked
//! again, and never answered if it panics.

use super::Threads;
use crate::block::BlockRegistry;
use crate::coordinator::messages::faults::{WorkError, caught};
use crate::coordinator::threads::exchange::Notifier;
use crate::storage::WorldStore;
use bevy::prelude::*;
use std::thread::Builder;

type Answer<T> = Box<dyn FnOnce(&mut World, Result<T, WorkError>) + Send>;

/// The answer to a question, given once.
struct Question<T: Send + 'static> {
    answer: Option<Answer<T>>,
    notifier: Notifier,
}

impl<T: Send + 'static> Question<T> {
    fn answer(&mut self, result: Result<T, WorkError>) {
        if let Some(answer) = self.answer.take() {
            self.notifier.run(move |world| answer(world, result));
        }
    }
}

impl<T: Send + 'static> Drop for Question<T> {
    /// Work that is dropped never began.
    fn drop(&mut self) {
        self.answer(Err(WorkError::NoThread));
    }
}

/// Runs a system of the coordinator with the result of work.
pub fn hand_to<T: 'static, M: 'static>(world: &mut World, system: impl IntoSystem<In<T>, (), M> + 'static, result: T) {
    if let Err(error) = world.run_system_cached_with(system, result) {
        error!("the result of work beside the coordinator could not be handled: {error}");
    }
}

impl Threads {
    /// Runs work: on its own thread with this name if it may take minutes, since ground must be loaded meanwhile, and
    /// otherwise on a thread for short work. In lockstep it runs at once, so that the next pass has the answer. `answer`
    /// receives the result in the coordinator's world.
    pub fn ask<T: Send + 'static>(
        &mut self,
        thread: Option<&'static str>,
        work: impl FnOnce(&WorldStore, &BlockRegistry) -> T + Send + 'static,
        answer: impl FnOnce(&mut World, Result<T, WorkError>) + Send + 'static,
    ) {
        let (store, blocks) = (self.store.clone(), self.template.blocks.clone());
        let mut question = Question { answer: Some(Box::new(answer)), notifier: self.notifier.clone() };
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

    /// Runs work on the storage thread when there is nothing to save, or at once in lockstep. `answer` receives the result in the
    /// coordinator's world. Returns `false` if that was not possible.
    pub fn ask_when_idle<T: Send + 'static>(
        &self,
        work: impl FnOnce(&WorldStore) -> T + Send + 'static,
        answer: impl FnOnce(&mut World, T) + Send + 'static,
    ) -> bool {
        let notifier = self.notifier.clone();
        let run = move |store: &WorldStore| {
            let result = work(store);
            notifier.run(move |world| answer(world, result));
        };
        if self.is_lockstep {
            run(&self.store);
            return true;
        }
        self.storage.try_when_idle(run)
    }
}
