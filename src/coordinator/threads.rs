//! The threads: one for the coordinator, some for regions, pools for generation and loading, one for the storage.

mod beside;
mod columns;
mod handle;
mod regions;

pub use beside::WorkError;
pub use handle::CoordinatorHandle;

pub(super) use beside::{Place, caught};
pub(super) use columns::{ColumnOrder, ColumnsReady, ReadyColumn, Source};
pub(super) use regions::{Fault, FinishedTasks, RegionJob, RegionThreads, TaskDone};

use super::CoordinatorConfig;
use super::arenas::Arenas;
use super::exchange::{Event, MainLink};
use super::far_view::SummaryOrder;
use super::snapshots::SnapshotJobs;
use super::streaming::order_queue::OrderQueue;
use crate::block::BlockRegistry;
use crate::simulation::RegionTemplate;
use crate::storage::{StorageThread, WorldStore};
use crate::work::Stop;
use bevy::prelude::*;
use bevy::tasks::{TaskPool, TaskPoolBuilder};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Channels to the threads, and what joins them.
#[derive(Resource)]
pub(super) struct Threads {
    pub events: Receiver<Event>,
    pub regions: RegionThreads,
    generation: TaskPool,
    loading: TaskPool,
    /// Orders that no thread has begun.
    to_generate: OrderQueue,
    to_load: OrderQueue,
    pub storage: StorageThread,
    sender: Sender<Event>,
    template: RegionTemplate,
    store: Arc<WorldStore>,
    /// Long work stops as soon as it may.
    ending: Stop,
    /// Threads with long work on the store.
    long_work: Vec<JoinHandle<()>>,
    is_lockstep: bool,
}

impl Threads {
    pub fn start(
        config: &CoordinatorConfig,
        mut template: RegionTemplate,
        store: Arc<WorldStore>,
    ) -> io::Result<(Self, MainLink)> {
        let (sender, events) = unbounded();
        let snapshots = SnapshotJobs::new(sender.clone());
        // So that systems of regions can queue jobs.
        let (jobs, arenas) = (snapshots.clone(), Arenas::new(sender.clone()));
        template.plugins.push(Arc::new(move |region| {
            region.insert_resource(jobs.clone()).insert_resource(arenas.clone());
        }));
        let regions = RegionThreads::start(config.region_threads, &template, &sender)?;
        let tasks = |name: &str, threads: usize| {
            TaskPoolBuilder::new().num_threads(threads.max(1)).thread_name(name.to_owned()).build()
        };
        let commits = sender.clone();
        let storage = StorageThread::start(store.clone(), move |commit| {
            let _ = commits.send(Event::Committed(Box::new(commit)));
        })?;
        let link =
            MainLink { events: sender.clone(), published: Default::default(), frames: Default::default(), snapshots };

        let threads = Self {
            events,
            regions,
            generation: tasks("terrane generation", config.generation_threads),
            loading: tasks("terrane loading", 1),
            to_generate: OrderQueue::default(),
            to_load: OrderQueue::default(),
            storage,
            sender,
            template,
            store,
            ending: Stop::default(),
            long_work: Vec::new(),
            is_lockstep: config.mode.is_lockstep(),
        };
        Ok((threads, link))
    }

    /// The block types of the world.
    pub fn blocks(&self) -> &Arc<BlockRegistry> {
        &self.template.blocks
    }

    /// What the world's random numbers come from.
    pub fn seed(&self) -> u64 {
        self.template.seed
    }

    /// Where what happens elsewhere is told to the coordinator.
    pub fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// Says that the app ends, and long work stops as soon as it may.
    pub fn ending(&self) -> Stop {
        self.ending.clone()
    }

    /// Has summaries read; an event tells when they are there.
    pub fn order_summaries(&self, order: SummaryOrder) {
        let (sender, store) = (self.sender.clone(), self.store.clone());
        let read = async move { drop(sender.send(Event::SummariesReady(order.read(&store)))) };
        self.loading.spawn(read).detach();
    }

    /// Lets the threads end when their work is done.
    pub fn join(&mut self) {
        self.ending.stop();
        self.to_generate.clear();
        self.to_load.clear();
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
