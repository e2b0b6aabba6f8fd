//! The threads: one for the coordinator, some for regions, pools for generation and loading, one for the storage.

pub mod beside;
pub mod columns;
pub mod exchange;
pub mod panic;
pub mod regions;

pub(super) use columns::ColumnThreads;
pub(super) use regions::RegionThreads;

use crate::coordinator::messages::settings::Settings;
use crate::coordinator::threads::exchange::{Event, Notifier};
use crate::simulation::RegionTemplate;
use crate::storage::{StorageThread, WorldStore};
use crate::work::Stop;
use bevy::prelude::*;
use bevy::tasks::{TaskPool, TaskPoolBuilder};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The channels and handles of the threads.
#[derive(Resource)]
pub struct Threads {
    pub regions: RegionThreads,
    /// Answers the main world's questions to the store, so that loading columns does not wait for them.
    answers: TaskPool,
    pub storage: StorageThread,
    pub notifier: Notifier,
    pub template: RegionTemplate,
    pub store: Arc<WorldStore>,
    /// Stops long work as soon as possible.
    pub ending: Stop,
    /// The threads with long work on the store.
    long_work: Vec<JoinHandle<()>>,
    is_lockstep: bool,
}

impl Threads {
    pub fn start(
        config: &Settings,
        template: RegionTemplate,
        store: Arc<WorldStore>,
        notifier: Notifier,
    ) -> io::Result<(Self, ColumnThreads)> {
        let regions = RegionThreads::start(config.threads.regions, &template, &notifier)?;
        let tasks = |name: &str, threads: usize| {
            TaskPoolBuilder::new().num_threads(threads.max(1)).thread_name(name.to_owned()).build()
        };
        let commits = notifier.clone();
        let storage = StorageThread::start(store.clone(), move |commit| {
            commits.send(Event::Committed(Box::new(commit)));
        })?;
        let generation = tasks("terrane generation", config.threads.generation);
        let columns = ColumnThreads::new(generation, tasks("terrane loading", 1), notifier.clone(), store.clone());
        let threads = Self {
            regions,
            answers: tasks("terrane answers", 1),
            storage,
            notifier,
            template,
            store,
            ending: Stop::default(),
            long_work: Vec::new(),
            is_lockstep: config.tick_mode.is_lockstep(),
        };
        Ok((threads, columns))
    }

    /// Ends the threads when their work is done.
    pub fn join(&mut self) {
        self.ending.stop();
        self.regions.join();
        // Long work stops within moments, except backups and file operations of jobs. The store must not be in use when the app
        // is gone.
        for thread in self.long_work.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.join();
    }
}
