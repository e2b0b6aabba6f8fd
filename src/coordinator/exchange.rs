//! What the main world and the coordinator hand each other. Neither ever waits.

use super::answers::chunk_states::AskChunks;
use super::answers::opacity::AskOpacity;
use super::arenas::{Arena, ArenaEvent, ArenaStatus, Arenas};
use super::clocks::clock::DimensionClock;
use super::clocks::coupling::Coupling;
use super::dimension::DimensionSpec;
use super::events::{ControlRegion, DimensionRemoved, StepDimension, WorldEvent};
use super::far_view::{FarUpdate, FarWish, SummariesReady};
use super::pregeneration::{PregenerationOrder, PregenerationStatus};
use super::saving::backup::BackupWorld;
use super::saving::tiers::StepDone;
use super::snapshots::{SnapshotEvent, SnapshotJobId, SnapshotJobStatus, SnapshotJobs};
use super::statistics::Statistics;
use super::streaming::generation_control::{DimensionGeneration, RetryColumns};
use super::streaming::pacing::{FrameTimes, Pacing};
use super::streaming::rebuild::GraphRebuilt;
use super::threads::{ColumnsReady, FinishedTasks, TaskDone};
use super::travel::players::PlayerRead;
use crate::chunk::{Chunk, Column};
use crate::simulation::{BoxedComponent, Exclusive, Letter, Position, SetBlock, ViewerRadii};
use crate::space::{BlockPos, ChunkPos, ColumnArea, ColumnPos, DimensionId, HeightSet};
use crate::storage::upkeep::FoundRequest;
use crate::storage::{Commit, StoreError};
use bevy::prelude::*;
use crossbeam_channel::Sender;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

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

/// A published column as it is now.
#[derive(Clone, Debug)]
pub enum ColumnUpdate {
    /// It is loaded.
    Loaded {
        /// Its blocks.
        blocks: Column,
        /// The main world was never told of it, or that it was unloaded since.
        is_new: bool,
    },
    /// It is loaded, and other parts of it than before.
    Changed {
        /// The chunk heights that are not loaded any more, or have come anew since.
        lost: HeightSet,
        /// The part that has come.
        gained: Column,
    },
    /// It is not loaded any more.
    Unloaded,
}

impl ColumnUpdate {
    /// Whether what is known of the chunk at this height from before counts no more.
    fn replaces(&self, height: i64) -> bool {
        match self {
            Self::Loaded { .. } | Self::Unloaded => true,
            Self::Changed { lost, gained } => lost.contains(height) || gained.is_loaded(height),
        }
    }
}

/// The newest state of a mirrored entity.
pub struct MirrorState {
    /// The main world was never told of it, or that it was gone since.
    pub is_new: bool,
    /// Where it is and the dimension's clock there; `None` if it is gone.
    pub position: Option<(Position, Duration)>,
    /// The mirrored components that changed, by the number of their registration.
    pub components: FxHashMap<usize, BoxedComponent>,
}

/// What changed since the main world looked last: state, not a stream. What came and went since then is not told at all.
/// So however long the main world stalls, what waits for it is bounded: the newest state of what is loaded and mirrored
/// now, a word for each column and mirror that it still has and that is gone, and for the events and the letters a queue
/// each, of which the oldest are dropped and counted.
#[derive(Default)]
pub struct Published {
    /// Columns that came or went.
    pub columns: BTreeMap<(DimensionId, ColumnPos), ColumnUpdate>,
    /// Chunks that changed within loaded columns; apply after `columns`.
    pub chunks: BTreeMap<(DimensionId, ChunkPos), Arc<Chunk>>,
    /// Mirrored entities that changed.
    pub mirrors: FxHashMap<Uuid, MirrorState>,
    /// Pre-generations that came on, by dimension and number.
    pub pregenerations: BTreeMap<(DimensionId, u64), PregenerationStatus>,
    /// Snapshot jobs that came on.
    pub snapshots: BTreeMap<SnapshotJobId, SnapshotJobStatus>,
    /// Arenas that changed, by name; without a status those that are gone.
    pub arenas: BTreeMap<String, (Arena, Option<ArenaStatus>)>,
    /// What happened, oldest first.
    pub events: VecDeque<WorldEvent>,
    /// Events and letters that were dropped since their queue was full.
    pub dropped_events: u64,
    /// Messages and closures for the main world, oldest first.
    pub letters: VecDeque<Letter>,
    /// What listeners of far views are told, oldest first: a listener gets no more before it took what is here.
    pub far_views: VecDeque<FarUpdate>,
    /// What a region panicked with, if that is to end the app.
    pub panic: Option<Exclusive<Box<dyn Any + Send>>>,
    /// The newest statistics.
    pub statistics: Option<Arc<Statistics>>,
}

/// Events, and letters, that wait at most for the main world.
const MAX_EVENTS: usize = 65_536;

impl Published {
    pub(super) fn push_event(&mut self, event: WorldEvent) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
            self.dropped_events += 1;
        }
        self.events.push_back(event);
    }

    pub(super) fn push_letter(&mut self, letter: Letter) {
        if self.letters.len() == MAX_EVENTS {
            self.letters.pop_front();
            self.dropped_events += 1;
        }
        self.letters.push_back(letter);
    }

    /// What comes and goes before anyone looks leaves nothing behind.
    pub(super) fn push_column(&mut self, column: (DimensionId, ColumnPos), mut update: ColumnUpdate) {
        match (self.columns.get_mut(&column), &mut update) {
            (Some(ColumnUpdate::Loaded { blocks, .. }), ColumnUpdate::Changed { lost, gained }) => {
                blocks.cut(lost);
                blocks.extend(gained);
                return;
            }
            (Some(ColumnUpdate::Changed { lost, gained }), ColumnUpdate::Changed { lost: cut, gained: added }) => {
                // What came and went before anyone looked was never there.
                let unseen = gained.cut(cut);
                gained.extend(added);
                lost.insert_all(&unseen.loaded().map_or_else(|| cut.clone(), |unseen| cut.difference(unseen)));
                return;
            }
            (Some(ColumnUpdate::Loaded { is_new: true, .. }), ColumnUpdate::Unloaded) => {
                self.columns.remove(&column);
                return;
            }
            (Some(ColumnUpdate::Loaded { is_new: was_new, .. }), ColumnUpdate::Loaded { is_new, .. }) => {
                *is_new = *was_new;
            }
            (Some(ColumnUpdate::Unloaded), ColumnUpdate::Loaded { is_new, .. }) => *is_new = false,
            (Some(_) | None, _) => {}
        }
        self.columns.insert(column, update);
    }

    /// A column came, changed or went: older changes of it are part of that.
    pub fn update_column(&mut self, column: (DimensionId, ColumnPos), update: ColumnUpdate) {
        self.chunks.retain(|(of, chunk), _| (*of, chunk.column()) != column || !update.replaces(chunk.y));
        self.push_column(column, update);
    }

    pub(super) fn push_mirror(&mut self, id: Uuid, state: MirrorState) {
        match (self.mirrors.get_mut(&id), &state.position) {
            (Some(known), None) if known.is_new => drop(self.mirrors.remove(&id)),
            (Some(known), Some(_)) => {
                known.position = state.position;
                known.components.extend(state.components);
            }
            (Some(_) | None, _) => drop(self.mirrors.insert(id, state)),
        }
    }

    /// Takes over what `newer` has to say.
    pub fn append(&mut self, newer: Self) {
        // Older changes of a column are part of its newer state, or it is gone.
        if !newer.columns.is_empty() && !self.chunks.is_empty() {
            self.chunks.retain(|(dimension, chunk), _| {
                let update = newer.columns.get(&(*dimension, chunk.column()));
                update.is_none_or(|update| !update.replaces(chunk.y))
            });
        }
        newer.columns.into_iter().for_each(|(column, update)| self.push_column(column, update));
        self.chunks.extend(newer.chunks);
        newer.mirrors.into_iter().for_each(|(id, state)| self.push_mirror(id, state));
        self.pregenerations.extend(newer.pregenerations);
        self.snapshots.extend(newer.snapshots);
        self.arenas.extend(newer.arenas);
        newer.events.into_iter().for_each(|event| self.push_event(event));
        newer.letters.into_iter().for_each(|letter| self.push_letter(letter));
        self.far_views.extend(newer.far_views);
        self.panic = self.panic.take().or(newer.panic);
        self.dropped_events += newer.dropped_events;
        self.statistics = newer.statistics.or(self.statistics.take());
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
            && self.chunks.is_empty()
            && self.mirrors.is_empty()
            && self.pregenerations.is_empty()
            && self.snapshots.is_empty()
            && self.arenas.is_empty()
            && self.events.is_empty()
            && self.letters.is_empty()
            && self.far_views.is_empty()
            && self.panic.is_none()
            && self.statistics.is_none()
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
