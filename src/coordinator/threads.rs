//! The threads: one for the coordinator, some for regions, pools for generation and loading, one for the storage.

use super::answers::chunk_states::ChunkStateOrder;
use super::answers::opacity::OpacityOrder;
use super::arenas::Arenas;
use super::events::{DimensionRemoved, WorldEvent};
use super::exchange::{Event, Inbound, MainLink};
use super::far_view::SummaryOrder;
use super::fault::panic::{self, CaughtPanic};
use super::saving::backup::BackupOrder;
use super::saving::tiers::StepDone;
use super::snapshots::{SnapshotEvent, SnapshotJobId, SnapshotJobs};
use super::statistics::Totals;
use super::streaming::order_queue::{OrderQueue, Urgency};
use super::streaming::rebuild::Search;
use super::travel::players::PlayerRead;
use super::{CoordinatorConfig, CoordinatorMain, TickMode, dispatch, saving::shutdown};
use crate::block::BlockRegistry;
use crate::generation::{self, GenerateRequest, Generator};
use crate::region::RegionId;
use crate::simulation::Exclusive;
use crate::simulation::{
    Assignment, FetchedColumn, LoadedColumn, Outbox, RegionHome, RegionTemplate, RegionWorld, Salvage, WorldPool,
};
use crate::space::{BatchPos, ColumnPos, DimensionId, HeightSet};
use crate::storage::upkeep::FoundRequest;
use crate::storage::{EntityRecord, StorageThread, StoreError, StoredColumn, StoredDimension, WorldStore};
use crate::work::Stop;
use bevy::prelude::*;
use bevy::tasks::{TaskPool, TaskPoolBuilder};
use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};
use std::collections::VecDeque;
use std::io;
use std::mem;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// A region's task.
pub(super) struct RegionTask {
    pub dimension: DimensionId,
    pub region: RegionId,
    pub assignment: Assignment,
}

/// Tasks of coupled regions that a region thread does one after the other; most often a single one. What one of the
/// regions sends to a later one is there when that begins.
pub(super) struct RegionJob {
    pub tasks: VecDeque<RegionTask>,
}

/// Tasks that ended and that the coordinator has not seen. It is woken only by the first of them.
#[derive(Default)]
pub(super) struct FinishedTasks {
    waiting: Mutex<Waiting>,
    all: Condvar,
}

#[derive(Default)]
struct Waiting {
    tasks: Vec<TaskDone>,
    /// Somebody waits until there are so many.
    wanted: usize,
}

impl FinishedTasks {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Vec<TaskDone> {
        mem::take(&mut self.waiting().tasks)
    }

    /// Waits until there are so many, and takes them.
    fn take_all(&self, tasks: usize) -> Vec<TaskDone> {
        let mut waiting = self.waiting();
        waiting.wanted = tasks;
        while waiting.tasks.len() < tasks {
            waiting = self.all.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.wanted = 0;
        mem::take(&mut waiting.tasks)
    }

    fn push(self: &Arc<Self>, done: TaskDone, wake: &Sender<Event>) {
        let mut waiting = self.waiting();
        waiting.tasks.push(done);
        if waiting.tasks.len() == waiting.wanted {
            self.all.notify_all();
        } else if waiting.tasks.len() == 1 && waiting.wanted == 0 {
            // The coordinator is gone only while the app shuts down.
            let _ = wake.send(Event::TasksDone(self.clone()));
        }
    }
}

impl From<RegionTask> for RegionJob {
    fn from(task: RegionTask) -> Self {
        Self { tasks: VecDeque::from([task]) }
    }
}

/// A region's task that has ended.
pub(super) struct TaskDone {
    pub dimension: DimensionId,
    pub region: RegionId,
    pub took: Duration,
    pub outcome: Result<(Option<Box<RegionWorld>>, Box<Outbox>), Fault>,
}

/// A task that panicked, and what is left of it.
pub(super) struct Fault {
    pub panic: CaughtPanic,
    pub salvage: Box<Salvage>,
}

/// Columns that are wanted.
pub(super) struct ColumnOrder {
    pub claim: u64,
    pub dimension: DimensionId,
    pub batch: BatchPos,
    pub columns: Vec<ColumnPos>,
    pub source: Source,
    /// It counts among what is being generated.
    pub generates: bool,
    pub urgency: Urgency,
}

/// Where columns come from.
#[derive(Clone)]
pub(super) enum Source {
    /// They are stored: their chunks at these chunk heights are read, and made anew if they are damaged and may be.
    Store(Range<i64>, Option<Arc<RegionHome>>),
    /// They are new: they are generated at these heights, in blocks.
    Generator(Arc<dyn Generator>, Range<i64>),
    /// Of a sparse dimension: what of these chunk heights is stored is read, the rest is generated, if it may be.
    Parts { home: Arc<RegionHome>, heights: HeightSet, may_generate: bool },
}

/// A column that is there.
pub(super) struct ReadyColumn {
    pub loaded: LoadedColumn,
    /// In a sparse dimension: the chunk heights that are new.
    pub made: HeightSet,
    /// In a sparse dimension: those that are not stored, and were not to be generated.
    pub left_out: HeightSet,
}

impl From<LoadedColumn> for ReadyColumn {
    fn from(loaded: LoadedColumn) -> Self {
        Self { loaded, made: HeightSet::new(), left_out: HeightSet::new() }
    }
}

/// Columns that are there, or the reason why not.
pub(super) struct ColumnsReady {
    pub claim: u64,
    pub dimension: DimensionId,
    pub generated: bool,
    pub columns: Vec<(ColumnPos, Result<ReadyColumn, String>)>,
}

/// Channels to the threads, and what joins them.
#[derive(Resource)]
pub(super) struct Threads {
    pub events: Receiver<Event>,
    regions: Option<Sender<RegionJob>>,
    tasks_out: usize,
    finished: Arc<FinishedTasks>,
    region_threads: Vec<JoinHandle<()>>,
    generation: TaskPool,
    loading: TaskPool,
    /// Orders that no thread has begun.
    to_generate: OrderQueue,
    to_load: OrderQueue,
    pub storage: StorageThread,
    sender: Sender<Event>,
    pool: Arc<WorldPool>,
    template: RegionTemplate,
    store: Arc<WorldStore>,
    /// Long work stops as soon as it may.
    ending: Stop,
    /// Threads with long work on the store.
    long_work: Vec<JoinHandle<()>>,
    is_lockstep: bool,
}

/// The time between two lines in the log about a removal.
const REMOVAL_REPORT: Duration = Duration::from_secs(5);

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
        let (regions, jobs) = unbounded::<RegionJob>();
        let pool = Arc::new(WorldPool::new(POOLED_WORLDS));
        let finished = Arc::<FinishedTasks>::default();
        let region_threads = (0..config.region_threads.max(1))
            .map(|number| {
                let (jobs, sender) = (jobs.clone(), sender.clone());
                let (template, pool, finished) = (template.clone(), pool.clone(), finished.clone());
                let name = format!("terrane region {number}");
                let run = move || {
                    while let Some(job) = next_job(&jobs, &template, &pool) {
                        run_job(job, &template, &pool, |done| finished.push(done, &sender));
                    }
                };
                std::thread::Builder::new().name(name).spawn(run)
            })
            .collect::<io::Result<_>>()?;
        let tasks = |name: &str, threads: usize| {
            TaskPoolBuilder::new().num_threads(threads.max(1)).thread_name(name.to_owned()).build()
        };
        let commits = sender.clone();
        let storage = StorageThread::start(store.clone(), 1, move |commit| {
            let _ = commits.send(Event::Committed(Box::new(commit)));
        })?;
        let link =
            MainLink { events: sender.clone(), published: Default::default(), frames: Default::default(), snapshots };

        let threads = Self {
            events,
            regions: Some(regions),
            tasks_out: 0,
            finished,
            region_threads,
            generation: tasks("terrane generation", config.generation_threads),
            loading: tasks("terrane loading", 1),
            to_generate: OrderQueue::default(),
            to_load: OrderQueue::default(),
            pool,
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

    /// Hands regions to the region threads.
    pub fn run_regions(&mut self, job: impl Into<RegionJob>) {
        let job = job.into();
        self.tasks_out += job.tasks.len();
        if let Some(regions) = &self.regions
            && let Err(refused) = regions.send(job)
        {
            // No thread could be started: better late than never.
            let push = |done| self.finished.push(done, &self.sender);
            run_job(refused.into_inner(), &self.template, &self.pool, push);
        }
    }

    /// Waits for all tasks but so many, which are back already.
    pub fn wait_for_all(&self, back: usize) -> Vec<TaskDone> {
        self.finished.take_all(self.tasks_out.saturating_sub(back))
    }

    /// To be called when so many tasks came back.
    pub fn tasks_finished(&mut self, tasks: usize) {
        self.tasks_out = self.tasks_out.saturating_sub(tasks);
    }

    /// The block types of the world.
    pub fn blocks(&self) -> &Arc<BlockRegistry> {
        &self.template.blocks
    }

    /// Runs a region on this thread.
    pub fn run_region_here(&self, task: RegionTask) -> TaskDone {
        run_task(task, &self.template, &self.pool)
    }

    /// Viewers of a dimension moved: gives back what is too far now and was not begun.
    pub fn revise(&self, dimension: DimensionId, distance: impl Fn(&ColumnOrder) -> f64) -> Vec<ColumnOrder> {
        let mut far = self.to_load.revise(dimension, &distance);
        far.extend(self.to_generate.revise(dimension, distance));
        far
    }

    /// Has columns generated or loaded; an event tells when they are there.
    pub fn order(&self, order: ColumnOrder) {
        let (sender, store, blocks) = (self.sender.clone(), self.store.clone(), self.template.blocks.clone());
        let (pool, queue) = match order.source {
            Source::Store(..) => (&self.loading, self.to_load.clone()),
            Source::Generator(..) | Source::Parts { .. } => (&self.generation, self.to_generate.clone()),
        };
        queue.push(order);
        pool.spawn(async move {
            // Not the order that this task was made for, but the nearest there is by now; none if one was taken back.
            let Some(order) = queue.pop() else { return };
            let ColumnOrder { claim, dimension, batch, columns, source, generates: generated, urgency: _ } = order;
            // Entities may have gone to ground that was not there yet: of new columns only those are read.
            let (heights, home) = match &source {
                Source::Store(heights, home) => (heights.clone(), home.as_deref()),
                _ => (0..0, None),
            };
            let read = load(&store, home, dimension, batch, columns, heights);
            let finish = |(column, read): (ColumnPos, Result<LoadedColumn, String>)| {
                let ready = read.and_then(|read| match &source {
                    Source::Store(..) => Ok(read.into()),
                    Source::Generator(generator, heights) => {
                        let request = GenerateRequest { column, heights: heights.clone(), blocks: &blocks };
                        Ok(generate(&**generator, &request, read.entities)?.into())
                    }
                    Source::Parts { home, heights, may_generate } => {
                        let gather = || home.ground.gather(column, heights, *may_generate);
                        let FetchedColumn { column, block_ticks, made } = caught(gather)?;
                        let left_out = column.loaded().map_or_else(HeightSet::new, |loaded| heights.difference(loaded));
                        let loaded = LoadedColumn { column, block_ticks, entities: read.entities };
                        Ok(ReadyColumn { loaded, made, left_out })
                    }
                });
                (column, ready)
            };
            let columns = read.into_iter().map(finish).collect();
            let _ = sender.send(Event::ColumnsReady(ColumnsReady { claim, dimension, generated, columns }));
        })
        .detach();
    }

    /// Has the opacity map read; an event tells when it is there.
    pub fn order_opacity(&self, order: OpacityOrder) {
        self.answer(move |store, blocks| order.read(store, blocks).into());
    }

    /// Has chunks read; an event tells what they are.
    pub fn order_chunk_states(&self, order: ChunkStateOrder) {
        self.answer(move |store, blocks| order.read(store, blocks).into());
    }

    /// Answers a question of the main world on a loading thread. In lockstep the answer is there with the next pass.
    fn answer(&self, read: impl FnOnce(&WorldStore, &BlockRegistry) -> WorldEvent + Send + 'static) {
        let (sender, store, blocks) = (self.sender.clone(), self.store.clone(), self.template.blocks.clone());
        let answer = move || drop(sender.send(Event::Happened(read(&store, &blocks))));
        match self.is_lockstep {
            true => answer(),
            false => self.loading.spawn(async move { answer() }).detach(),
        }
    }

    /// What the world's random numbers come from.
    pub fn seed(&self) -> u64 {
        self.template.seed
    }

    /// Has the player of this name looked for; an event tells what was found. In lockstep that is with the next pass.
    pub fn read_player(&self, name: String) {
        let (sender, store) = (self.sender.clone(), self.store.clone());
        let read = move || {
            let found = store.player(&name).map_err(|error| error.to_string());
            let is_homeless = found.as_ref().is_ok_and(|found| {
                let home = found.as_ref().map(|record| record.dimension);
                let is_home = |known: &StoredDimension| Some(known.id) == home && !known.being_removed;
                home.is_some() && store.dimensions().is_ok_and(|known| !known.iter().any(is_home))
            });
            let _ = sender.send(Event::PlayerRead(PlayerRead { name, found, is_homeless }));
        };
        match self.is_lockstep {
            true => read(),
            false => self.loading.spawn(async move { read() }).detach(),
        }
    }

    /// Has summaries read; an event tells when they are there.
    pub fn order_summaries(&self, order: SummaryOrder) {
        let (sender, store) = (self.sender.clone(), self.store.clone());
        let read = async move { drop(sender.send(Event::SummariesReady(order.read(&store)))) };
        self.loading.spawn(read).detach();
    }

    /// Erases what is stored of a closed dimension; an event tells when it is done. It goes on after a restart if the app
    /// ends before.
    pub fn remove_dimension(&mut self, entity: Entity, name: String) {
        let (sender, store, ending) = (self.sender.clone(), self.store.clone(), self.ending.clone());
        let (failed, dimension) = (self.sender.clone(), name.clone());
        let remove = move || {
            let mut told = Instant::now();
            let result = store.remove_dimension(&name, |progress| {
                if told.elapsed() >= REMOVAL_REPORT {
                    told = Instant::now();
                    info!("removing dimension {name:?}: {} entries so far", progress.done);
                }
                ending.go_on()
            });
            let (entries, error) = match result {
                Ok(removed) if removed.finished => (removed.entries, None),
                // The rest is removed when a dimension of this name is asked for again.
                Ok(_) => return,
                Err(error) => (0, Some(error.to_string())),
            };
            let _ = sender.send(Event::DimensionRemoved(DimensionRemoved { entity, name, entries, error }));
        };
        if let Err(error) = self.begin_long_work("terrane removal", remove) {
            let (name, error) = (dimension, Some(error.to_string()));
            let _ = failed.send(Event::DimensionRemoved(DimensionRemoved { entity, name, entries: 0, error }));
        }
    }

    /// Has the storage thread do a step of the work on tiers when there is nothing to save; an event tells when it is done. In
    /// lockstep that is with the next pass. Says whether that was possible.
    pub fn run_tier_step(
        &self,
        step: impl FnOnce(&WorldStore) -> Result<StepDone, StoreError> + Send + 'static,
    ) -> bool {
        let sender = self.sender.clone();
        let run = move |store: &WorldStore| drop(sender.send(Event::TierStep(Box::new(step(store)))));
        if self.is_lockstep {
            run(&self.store);
            return true;
        }
        self.storage.try_when_idle(run)
    }

    /// Finds out what is stored of a dimension; an event tells when it is done. In lockstep that is with the next pass.
    pub fn rebuild(&mut self, search: Search) -> io::Result<()> {
        let (sender, store, ending) = (self.sender.clone(), self.store.clone(), self.ending.clone());
        let run = move || drop(sender.send(Event::GraphRebuilt(search.run(&store, &ending))));
        self.run_beside("terrane rebuild", run)
    }

    /// Where what happens elsewhere is told to the coordinator.
    pub fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// Finds out where entities are stored; an event tells. In lockstep that is with the next pass.
    pub fn find_stored(&self, job: SnapshotJobId, entities: Vec<Uuid>) {
        let (sender, store) = (self.sender.clone(), self.store.clone());
        let find = move || {
            let places = store.entity_places(&entities).map_err(|error| error.to_string());
            drop(sender.send(Event::Snapshot(SnapshotEvent::Found(job, places))));
        };
        match self.is_lockstep {
            true => find(),
            false => self.loading.spawn(async move { find() }).detach(),
        }
    }

    /// Makes a backup of what is stored; an event tells when it is done. In lockstep that is with the next pass.
    pub fn back_up(&mut self, order: BackupOrder) {
        let (sender, store) = (self.sender.clone(), self.store.clone());
        let refusal = order.refusal("the system gives no thread for it".into());
        let work = move || {
            let made = store.back_up(&order.folder, order.keep).map_err(|error| error.to_string());
            if let Some(event) = order.answer(made) {
                let _ = sender.send(Event::Happened(event));
            }
        };
        if self.run_beside("terrane backup", work).is_err()
            && let Some(event) = refusal
        {
            let _ = self.sender.send(Event::Happened(event));
        }
    }

    /// Has the storage thread look for backups that other processes ask for, when there is nothing to save; an event brings
    /// them. In lockstep that is with the next pass. Says whether that was possible.
    pub fn look_for_backup_requests(&self) -> bool {
        let sender = self.sender.clone();
        let look = move |store: &WorldStore| match store.folder().map(FoundRequest::find) {
            Some(Ok(found)) if !found.is_empty() => drop(sender.send(Event::BackupRequests(found))),
            Some(Err(error)) => warn!("nobody can ask for a backup of the running world: {error}"),
            _ => {}
        };
        if self.is_lockstep {
            look(&self.store);
            return true;
        }
        self.storage.try_when_idle(look)
    }

    /// On a thread of its own; in lockstep here and now.
    pub fn run_beside(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        if self.is_lockstep {
            work();
            return Ok(());
        }
        self.begin_long_work(name, work)
    }

    /// On a thread of its own: it may take minutes, and ground must be loaded meanwhile.
    fn begin_long_work(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.long_work.retain(|thread| !thread.is_finished());
        self.long_work.push(std::thread::Builder::new().name(name.to_owned()).spawn(work)?);
        Ok(())
    }

    /// Lets the threads end when their work is done. Those that hang are left alone.
    pub fn join(&mut self) {
        self.ending.stop();
        self.to_generate.clear();
        self.to_load.clear();
        self.regions = None;
        for thread in self.region_threads.drain(..) {
            if thread.is_finished() {
                // A region thread catches the panics of the game.
                let _ = thread.join();
            }
        }
        // It stops within moments, but for a backup and what jobs do with files. The store must not be in use when the app
        // is gone.
        for thread in self.long_work.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Region worlds that are made in advance.
const POOLED_WORLDS: usize = 8;

/// The next job; while there is none, fresh worlds are made.
fn next_job(jobs: &Receiver<RegionJob>, template: &RegionTemplate, pool: &WorldPool) -> Option<RegionJob> {
    loop {
        match jobs.try_recv() {
            Ok(job) => return Some(job),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => {}
        }
        if !panic::catch(|| pool.refill(template)).unwrap_or(false) {
            return jobs.recv().ok();
        }
    }
}

fn run_job(job: RegionJob, template: &RegionTemplate, pool: &WorldPool, mut push: impl FnMut(TaskDone)) {
    let RegionJob { mut tasks } = job;
    while let Some(task) = tasks.pop_front() {
        let mut ended = run_task(task, template, pool);
        if let Ok((_, outbox)) = &mut ended.outcome
            && !tasks.is_empty()
        {
            pass_letters(outbox, &mut tasks);
        }
        push(ended);
    }
}

/// Hands letters to the regions that tick next on this thread. What these do not have goes through the coordinator.
fn pass_letters(outbox: &mut Outbox, tasks: &mut VecDeque<RegionTask>) {
    for letter in mem::take(&mut outbox.letters) {
        let has_target =
            |task: &&mut RegionTask| task.assignment.world.as_ref().is_some_and(|world| world.has_target(&letter));
        match tasks.iter_mut().find(has_target) {
            Some(task) => task.assignment.inbox.letters.push(letter),
            None => outbox.letters.push(letter),
        }
    }
}

fn run_task(task: RegionTask, template: &RegionTemplate, pool: &WorldPool) -> TaskDone {
    let RegionTask { dimension, region, mut assignment } = task;
    let started = Instant::now();
    let ended = panic::catch(|| assignment.run(template, pool)).and_then(|made| {
        made.map_err(|error| CaughtPanic {
            reason: error.to_string(),
            location: None,
            system: None,
            payload: Some(Box::new(error.to_string())),
        })
    });
    let outcome = match ended {
        Ok(outbox) => Ok((assignment.world.take(), outbox)),
        Err(panic) => Err(Fault { panic, salvage: salvage(assignment) }),
    };
    TaskDone { dimension, region, took: started.elapsed(), outcome }
}

/// What is left of a task that panicked. What it holds may panic once more as it is dropped.
fn salvage(mut assignment: Assignment) -> Box<Salvage> {
    let salvaged = panic::catch(|| assignment.salvage()).map(Box::new);
    let dropped = panic::catch(|| drop(assignment));
    if let Some(CaughtPanic { reason, .. }) = dropped.err() {
        warn!("a region's world panicked once more as it was dropped: {reason}");
    }
    salvaged.unwrap_or_else(|panic| {
        error!("what was on its way into a region that panicked is lost: {}", panic.reason);
        Box::default()
    })
}

fn generate(
    generator: &dyn Generator,
    request: &GenerateRequest,
    entities: Vec<EntityRecord>,
) -> Result<LoadedColumn, String> {
    let column = caught(|| generation::generate(generator, request))?;
    Ok(LoadedColumn { entities, ..column.into() })
}

/// What the game's generator says, also if it panics.
fn caught<T, E: ToString>(generate: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(generate)) {
        Ok(made) => made.map_err(|error| error.to_string()),
        Err(payload) => Err(format!("the generator panicked: {}", panic::message(&*payload))),
    }
}

fn load(
    store: &WorldStore,
    home: Option<&RegionHome>,
    dimension: DimensionId,
    batch: BatchPos,
    columns: Vec<ColumnPos>,
    chunk_heights: Range<i64>,
) -> Vec<(ColumnPos, Result<LoadedColumn, String>)> {
    let load_batch = |store: &WorldStore| store.load_batch(dimension, batch, &columns, chunk_heights.clone());
    let read = || match (&columns[..], home) {
        (&[column], Some(home)) => home.ground.read_repaired(store, column, load_batch),
        _ => load_batch(store),
    };
    let loaded = catch_unwind(AssertUnwindSafe(read)).map_err(|payload| panic::message(&*payload));
    match loaded.and_then(|loaded| loaded.map_err(|error| error.to_string())) {
        Ok(stored) => stored
            .into_iter()
            .map(|stored| {
                let StoredColumn { column, entities, block_ticks } = stored;
                (column.pos(), Ok(LoadedColumn { column, entities, block_ticks }))
            })
            .collect(),
        // One damaged chunk must not take its 15 neighbours with it.
        Err(_) if columns.len() > 1 => columns
            .into_iter()
            .flat_map(|column| load(store, home, dimension, batch, vec![column], chunk_heights.clone()))
            .collect(),
        Err(error) => columns.into_iter().map(|column| (column, Err(error.clone()))).collect(),
    }
}

/// Keeps the coordinator running; dropping it saves everything and ends it.
#[derive(Resource)]
pub struct CoordinatorHandle {
    home: Home,
    link: MainLink,
}

enum Home {
    Thread(JoinHandle<()>),
    /// In lockstep: boxed, since a `SubApp` is large.
    Inline(Box<Exclusive<SubApp>>),
    Ended,
}

impl CoordinatorHandle {
    /// Moves the coordinator to where it runs: a thread of its own, or in here for [`TickMode::Lockstep`].
    pub fn start(mut app: SubApp, link: MainLink) -> io::Result<Self> {
        if app.world().resource::<CoordinatorConfig>().mode.is_lockstep() {
            return Ok(Self { home: Home::Inline(Box::new(Exclusive::new(app))), link });
        }
        let thread = std::thread::Builder::new().name("terrane coordinator".to_owned()).spawn(move || {
            run(&mut app);
            shutdown::shut_down(app.world_mut());
        })?;
        Ok(Self { home: Home::Thread(thread), link })
    }

    /// Runs one pass, in which every region ticks once, if the coordinator runs in lockstep.
    pub fn update_inline(&mut self) {
        if let Home::Inline(app) = &mut self.home {
            pass(app.get());
        }
    }

    /// Saves everything and ends the coordinator. Returns when it is done; a second call does nothing.
    pub fn shut_down(&mut self) {
        match mem::replace(&mut self.home, Home::Ended) {
            Home::Thread(thread) => {
                // If it is gone already, so is the receiver.
                let _ = self.link.events.send(Event::Shutdown);
                if thread.join().is_err() && !std::thread::panicking() {
                    error!("the coordinator panicked; what was not saved before is lost");
                }
            }
            Home::Inline(mut app) => shutdown::shut_down(app.get().world_mut()),
            Home::Ended => {}
        }
    }
}

impl Drop for CoordinatorHandle {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// How long the coordinator sleeps at most; statistics and autosave need no more.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

fn run(app: &mut SubApp) {
    let events = app.world().resource::<Threads>().events.clone();
    loop {
        let sleep = dispatch::until_next_deadline(app.world_mut()).min(LONGEST_SLEEP);
        let first = events.recv_timeout(sleep);
        let mut inbound = app.world_mut().resource_mut::<Inbound>();
        first.into_iter().chain(events.try_iter()).for_each(|event| inbound.push(event));
        if inbound.shutdown {
            return;
        }
        pass(app);
    }
}

fn pass(app: &mut SubApp) {
    let began = Instant::now();
    app.world_mut().run_schedule(CoordinatorMain);
    app.world_mut().resource_mut::<Totals>().note_pass(began.elapsed());
    app.world_mut().clear_trackers();
    app.world_mut().check_change_ticks();
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.join();
    }
}

impl TickMode {
    pub(super) fn is_lockstep(self) -> bool {
        self == Self::Lockstep
    }
}
