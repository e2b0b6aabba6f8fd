//! The threads: one for the coordinator, some for regions, pools for generation and loading, one for the storage.

pub(super) mod beside;
pub(super) mod columns;
pub(super) mod ready;
pub(super) mod regions;
pub(super) mod work_error;

pub use work_error::WorkError;

pub(super) use columns::ColumnThreads;
pub(super) use regions::RegionThreads;

use super::exchange::{Event, Teller};
use crate::coordinator::config::CoordinatorConfig;
use crate::simulation::RegionTemplate;
use crate::storage::{StorageThread, WorldStore};
use crate::work::Stop;
use bevy::prelude::*;
use bevy::tasks::{TaskPool, TaskPoolBuilder};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Channels to the threads, and what joins them.
#[derive(Resource)]
pub struct Threads {
    pub regions: RegionThreads,
    /// For what the main world asks of the store: columns that are loaded do not wait for it.
    answers: TaskPool,
    pub storage: StorageThread,
    pub teller: Teller,
    pub template: RegionTemplate,
    pub store: Arc<WorldStore>,
    /// Long work stops as soon as it may.
    pub ending: Stop,
    /// Threads with long work on the store.
    long_work: Vec<JoinHandle<()>>,
    is_lockstep: bool,
}

impl Threads {
    pub fn start(
        config: &CoordinatorConfig,
        template: RegionTemplate,
        store: Arc<WorldStore>,
        teller: Teller,
    ) -> io::Result<(Self, ColumnThreads)> {
        let regions = RegionThreads::start(config.region_threads, &template, &teller)?;
        let tasks = |name: &str, threads: usize| {
            TaskPoolBuilder::new().num_threads(threads.max(1)).thread_name(name.to_owned()).build()
        };
        let commits = teller.clone();
        let storage = StorageThread::start(store.clone(), move |commit| {
            commits.send(Event::Committed(Box::new(commit)));
        })?;
        let generation = tasks("terrane generation", config.generation_threads);
        let columns = ColumnThreads::new(generation, tasks("terrane loading", 1), teller.clone(), store.clone());
        let threads = Self {
            regions,
            answers: tasks("terrane answers", 1),
            storage,
            teller,
            template,
            store,
            ending: Stop::default(),
            long_work: Vec::new(),
            is_lockstep: config.mode.is_lockstep(),
        };
        Ok((threads, columns))
    }

    /// Lets the threads end when their work is done.
    pub fn join(&mut self) {
        self.ending.stop();
        self.regions.join();
        // It stops within moments, but for a backup and what jobs do with files. The store must not be in use when the app
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
