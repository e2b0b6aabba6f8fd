//! What the main world and the coordinator hand each other. Neither ever waits.

use super::answers::chunk_states::AskChunks;
use super::answers::opacity::AskOpacity;
use super::arenas::{ArenaEvent, Arenas};
use super::clocks::clock::DimensionClock;
use super::clocks::control::{ControlRegion, StepDimension};
use super::clocks::coupling::Coupling;
use super::dimension::DimensionSpec;
use super::events::{DimensionRemoved, WorldEvent};
use super::far_view::{FarWish, SummariesReady};
use super::pregeneration::PregenerationOrder;
use super::published::Published;
use super::saving::backup::BackupWorld;
use super::saving::tiers::StepDone;
use super::snapshots::{SnapshotEvent, SnapshotJobs};
use super::streaming::generation_control::{DimensionGeneration, RetryColumns};
use super::streaming::pacing::{FrameTimes, Pacing};
use super::streaming::rebuild::GraphRebuilt;
use super::threads::{ColumnsReady, FinishedTasks, TaskDone};
use super::travel::players::PlayerRead;
use crate::chunk::{Chunk, Column};
use crate::simulation::{Exclusive, Letter, SetBlock, ViewerRadii};
use crate::space::{BlockPos, ChunkPos, ColumnArea, DimensionId};
use crate::storage::upkeep::FoundRequest;
use crate::storage::{Commit, StoreError};
use bevy::prelude::*;
use crossbeam_channel::Sender;
use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the main world asks for. Dimensions are named by their entity in the main world.
pub enum FromMain {
    /// A dimension was spawned.
    OpenDimension(DimensionSpec),
    /// A viewer of the main world is here now.
    MoveViewer {
        /// The viewer's entity.
        viewer: Entity,
        /// The dimension's entity.
        dimension: Entity,
        /// The chunk that the viewer is in.
        chunk: ChunkPos,
        /// How far it reaches.
        radii: ViewerRadii,
    },
    /// A viewer of the main world is no more.
    RemoveViewer(Entity),
    /// A block is to be changed.
    Edit(SetBlock),
    /// A message or a closure.
    Post(Letter),
    /// A message or a closure to a place, which is loaded for it.
    PostToPlace {
        /// The dimension's entity.
        dimension: Entity,
        /// The place.
        block: BlockPos,
        /// What goes there.
        letter: Letter,
    },
    /// How a dimension's time passes.
    SetClock {
        /// The dimension's entity.
        dimension: Entity,
        /// Its clock.
        clock: DimensionClock,
    },
    /// How a dimension's ground is generated.
    SetGeneration {
        /// The dimension's entity.
        dimension: Entity,
        /// Its settings.
        generation: DimensionGeneration,
    },
    /// Between which bounds the number of columns in flight adapts.
    SetPacing(Pacing),
    /// Columns that failed are to be tried again.
    Retry(RetryColumns),
    /// Single steps of a paused dimension.
    Step(StepDimension),
    /// An order for one region.
    Control(ControlRegion),
    /// Two places whose regions tick together, by the coupling's entity in the main world.
    Couple(Entity, Coupling),
    /// They do not any more.
    Uncouple(Entity),
    /// A pre-generation was spawned.
    StartPregeneration {
        /// Its entity.
        entity: Entity,
        /// The dimension's entity.
        dimension: Entity,
        /// What is to be generated.
        area: ColumnArea,
        /// It begins when it is resumed.
        is_paused: bool,
    },
    /// A pre-generation that the store remembered has an entity now.
    AdoptPregeneration {
        /// Its entity.
        entity: Entity,
        /// Its dimension.
        dimension: DimensionId,
        /// Its number in the dimension.
        number: u64,
    },
    /// An order for a pre-generation.
    ControlPregeneration {
        /// Its entity.
        entity: Entity,
        /// What it is to do.
        order: PregenerationOrder,
    },
    /// A dimension is to be saved and closed.
    CloseDimension {
        /// The dimension's entity.
        dimension: Entity,
        /// What is stored of it is to be removed too.
        remove: bool,
    },
    /// Everything is to be saved now; [`WorldSaved`](super::WorldSaved) with this number answers when it is durable.
    Save(u64),
    /// Everything is to be saved now and backed up then.
    BackUp(BackupWorld),
    /// Which blocks of a batch of columns are opaque; those of it that are published.
    AskOpacity(AskOpacity, Vec<Column>),
    /// What chunks are; those of them that are published.
    AskChunks(AskChunks, Vec<Option<Arc<Chunk>>>),
    /// A player is to come into the world.
    LogIn {
        /// Its name.
        name: String,
        /// The dimension's entity and the block where it begins if it is new.
        first_place: Option<(Entity, BlockPos)>,
    },
    /// A player is to leave the world.
    LogOut {
        /// Its name.
        name: String,
    },
    /// What generated columns look like is to be sent to a listener, or otherwise than before.
    SetFarView {
        /// The listener's entity in the main world.
        listener: Entity,
        /// Another number means that what was sent before is forgotten.
        life: u64,
        /// What it asks for.
        wish: FarWish,
    },
    /// A listener is no more.
    RemoveFarView(Entity),
    /// Messages to a listener were taken: so many more may follow.
    FarViewTaken {
        /// The listener's entity in the main world.
        listener: Entity,
        /// Of which of its far views.
        life: u64,
        /// How many.
        updates: usize,
    },
}

/// All that reaches the coordinator.
pub(super) enum Event {
    Main(FromMain),
    TasksDone(Arc<FinishedTasks>),
    ColumnsReady(ColumnsReady),
    SummariesReady(SummariesReady),
    Committed(Box<Commit>),
    DimensionRemoved(DimensionRemoved),
    GraphRebuilt(GraphRebuilt),
    TierStep(Box<Result<StepDone, StoreError>>),
    PlayerRead(PlayerRead),
    BackupRequests(Vec<FoundRequest>),
    Snapshot(SnapshotEvent),
    Arena(ArenaEvent),
    /// Something that only the main world is to hear of.
    Happened(WorldEvent),
    Shutdown,
}

/// What reached the coordinator and is not handled yet.
#[derive(Resource, Default)]
pub(super) struct Inbound {
    pub main: Vec<FromMain>,
    pub tasks: Exclusive<Vec<TaskDone>>,
    pub columns: Vec<ColumnsReady>,
    pub summaries: Vec<SummariesReady>,
    pub commits: Vec<Commit>,
    pub removed: Vec<DimensionRemoved>,
    pub rebuilt: Vec<GraphRebuilt>,
    pub tier_steps: Vec<Result<StepDone, StoreError>>,
    pub players: Vec<PlayerRead>,
    pub backup_requests: Vec<FoundRequest>,
    pub snapshots: Vec<SnapshotEvent>,
    pub arenas: Vec<ArenaEvent>,
    pub news: Vec<WorldEvent>,
    pub shutdown: bool,
    /// What the first region panicked with: in lockstep it goes on to the app.
    pub panic: Exclusive<Option<Box<dyn Any + Send>>>,
}

impl Inbound {
    pub fn push(&mut self, event: Event) {
        match event {
            Event::Main(request) => self.main.push(request),
            Event::TasksDone(done) => self.tasks.get().extend(done.take()),
            Event::ColumnsReady(ready) => self.columns.push(ready),
            Event::SummariesReady(ready) => self.summaries.push(ready),
            Event::Committed(commit) => self.commits.push(*commit),
            Event::DimensionRemoved(removed) => self.removed.push(removed),
            Event::GraphRebuilt(rebuilt) => self.rebuilt.push(rebuilt),
            Event::TierStep(done) => self.tier_steps.push(*done),
            Event::PlayerRead(read) => self.players.push(read),
            Event::Snapshot(event) => self.snapshots.push(event),
            Event::Arena(event) => self.arenas.push(event),
            Event::BackupRequests(found) => self.backup_requests.extend(found),
            Event::Happened(event) => self.news.push(event),
            Event::Shutdown => self.shutdown = true,
        }
    }
}

/// The main world's end of the exchange.
#[derive(Resource, Clone)]
pub struct MainLink {
    pub(super) events: Sender<Event>,
    pub(super) published: Arc<Mutex<Published>>,
    pub(super) frames: Arc<FrameTimes>,
    pub(super) snapshots: SnapshotJobs,
}

impl MainLink {
    /// Queues snapshot jobs.
    pub fn snapshot_jobs(&self) -> SnapshotJobs {
        self.snapshots.clone()
    }

    /// Orders what is to become of arenas.
    pub fn arenas(&self) -> Arenas {
        Arenas::new(self.events.clone())
    }

    /// Asks the coordinator for something. Once it has ended, requests are dropped.
    pub fn send(&self, request: FromMain) {
        // The coordinator is gone only while the app shuts down.
        let _ = self.events.send(Event::Main(request));
    }

    /// Tells how long a frame of the main world took, without what it waited for the next one.
    pub fn note_frame(&self, took: Duration) {
        self.frames.note(took);
    }

    /// Takes what was published, unless the coordinator is writing to it at this moment: then the next frame does.
    pub fn take_published(&self) -> Option<Published> {
        let mut published = match self.published.try_lock() {
            Ok(published) => published,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return None,
        };
        Some(std::mem::take(&mut *published))
    }
}
