//! The events of the simulation that the main world receives.

use crate::coordinator::messages::arenas::{ArenaError, ArenaOrder};
use crate::coordinator::messages::clocks::{ControlError, ControlRegion, StepDimension};
use crate::coordinator::messages::dimensions::DimensionError;
use crate::coordinator::messages::faults::RegionFault;
use crate::coordinator::messages::faults::WorkError;
use crate::coordinator::messages::players::LogInError;
use crate::coordinator::messages::questions::{AskError, ChunkState};
use crate::coordinator::messages::saving::SaveError;
use crate::coordinator::messages::snapshots::JobOutcome;
use crate::coordinator::messages::why::{ColumnReport, Whereabouts};
use crate::region::RegionId;
use crate::simulation::{Address, BlockAccessError, ColumnError, SetBlock, Undeliverable};
use crate::space::{BatchPos, BlockPos, ChunkPos, ColumnPos, DimensionId};
use crate::storage::{BatchOpacity, StoreError};
use bevy::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Declares a message type for each event, and an enum of all events.
macro_rules! events {
    ($($(#[$docs:meta])* $name:ident { $($(#[$field_docs:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$docs])*
            #[derive(Message, Clone, Debug)]
            pub struct $name {
                $($(#[$field_docs])* pub $field: $type,)*
            }

            impl From<$name> for WorldEvent {
                fn from(event: $name) -> Self {
                    Self::$name(event)
                }
            }
        )*

        /// An event of the simulation.
        #[derive(Clone, Debug)]
        pub enum WorldEvent {
            $($(#[$docs])* $name($name),)*
        }

        impl WorldEvent {
            /// Registers every event as a message of the app.
            pub fn register(app: &mut App) {
                app$(.add_message::<$name>())*;
            }

            /// Writes the event as a message of its own type.
            pub fn write(self, world: &mut World) {
                match self {
                    $(Self::$name(event) => drop(world.write_message(event)),)*
                }
            }
        }
    };
}

events! {
    /// A dimension is open.
    DimensionOpened {
        /// The dimension's entity.
        entity: Entity,
        /// The dimension.
        dimension: DimensionId,
        /// The number of its columns in the store.
        stored_columns: u64,
        /// The [time of day](crate::simulation::TimeOfDay) that was saved, in days.
        stored_days: Option<f64>,
        /// The number of stored viewers that came back with it: region entities that keep ground loaded.
        viewers: usize,
    }
    /// A dimension could not be opened.
    DimensionFailed {
        /// The dimension's entity.
        entity: Entity,
        /// The reason.
        error: DimensionError,
    }
    /// A column could not be generated or loaded; in a sparse dimension, possibly only part of it. It is tried again
    /// later, or set aside.
    ColumnFailed {
        /// Its dimension.
        dimension: DimensionId,
        /// The column.
        column: ColumnPos,
        /// The reason.
        error: ColumnError,
        /// The number of failed attempts so far.
        attempts: u32,
        /// `true` if only a `RetryColumns` makes it try again. Stored columns that cannot be read are never set aside.
        set_aside: bool,
    }
    /// A damaged stored chunk was generated again, because the
    /// [setting](crate::plugin::SaveSettings::regenerate_damaged) says so. Its changes are lost.
    GroundRegenerated {
        /// Its dimension.
        dimension: DimensionId,
        /// The chunk.
        chunk: ChunkPos,
        /// The damage.
        error: StoreError,
    }
    /// A region was created.
    RegionCreated {
        /// Its dimension.
        dimension: DimensionId,
        /// The new region.
        region: RegionId,
    }
    /// A region was merged into another.
    RegionMerged {
        /// Their dimension.
        dimension: DimensionId,
        /// The region that was absorbed.
        from: RegionId,
        /// The region that absorbed it.
        into: RegionId,
    }
    /// A region was split. It keeps its largest part.
    RegionSplit {
        /// Its dimension.
        dimension: DimensionId,
        /// The region that was split.
        from: RegionId,
        /// The regions of its other parts.
        into: Vec<RegionId>,
    }
    /// A region no longer exists.
    RegionDestroyed {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        region: RegionId,
    }
    /// A region's tick panicked. The region stops ticking and its last saved state stays; a `ControlRegion` restarts it.
    /// Letters and edits that were delivered in that tick come back or are reported by `LetterLost` and `BlockRefused`.
    /// Those that were still waiting wait for the restart.
    RegionHalted {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        region: RegionId,
        /// The reason.
        fault: Arc<RegionFault>,
    }
    /// A halted region was restarted from the store.
    RegionRestarted {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        region: RegionId,
    }
    /// A region's task takes longer than the watchdog's limit. Repeated each time the limit passes again.
    RegionHung {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        region: RegionId,
        /// The lowest of its columns.
        column: Option<ColumnPos>,
        /// How long the task has been running.
        running_for: Duration,
        /// The last marker that the task passed: a step of the crate, or the game's schedule that is running.
        step: String,
        /// The transient regions that wait for it.
        waiting: Vec<RegionId>,
    }
    /// A message or a closure was dropped, and its sender did not ask for its return or is a region that is gone. It does
    /// not go to the main world instead, because its content is for systems that may not exist there.
    LetterLost {
        /// The message's type, or a word for a closure.
        what: &'static str,
        /// Its address.
        to: Address,
        /// The reason why it was not delivered.
        reason: Undeliverable,
    }
    /// The stored data of a dimension was erased. Its name is free for a new dimension.
    DimensionRemoved {
        /// The entity of the dimension.
        entity: Entity,
        /// Its name.
        name: String,
        /// The number of store entries that were erased.
        entries: u64,
        /// The reason why erasing failed, if it did. A second request erases the rest.
        error: Option<WorkError>,
    }
    /// A dimension was saved and closed. Its name can be opened again.
    DimensionClosed {
        /// The entity of the dimension.
        entity: Entity,
        /// The dimension.
        dimension: DimensionId,
        /// Its name.
        name: String,
    }
    /// A player is in the world, where it was when it left. Its [`StableId`](crate::simulation::StableId) is `id`.
    PlayerLoggedIn {
        /// Its name.
        name: String,
        /// Its stable id, the same in every session.
        id: Uuid,
        /// Its dimension.
        dimension: DimensionId,
        /// Its position.
        block: BlockPos,
        /// `true` if the player was never in the world before.
        new: bool,
    }
    /// A player could not log in.
    LogInRefused {
        /// Its name.
        name: String,
        /// The reason.
        reason: LogInError,
    }
    /// A player left the world: it logged out, died, or its region halted. It can log in again.
    PlayerLoggedOut {
        /// Its name.
        name: String,
        /// Its stable id.
        id: Uuid,
    }
    /// A player of a world that several servers share belongs to another server now, with everything that it has: it walked or
    /// was moved there, or its ground went there. Its client should connect to that address and log in there.
    PlayerMoved {
        /// Its name.
        name: String,
        /// Its stable id.
        id: Uuid,
        /// The incarnation of the other server.
        server: u64,
        /// The address that the other server gave when it joined.
        address: Vec<u8>,
    }
    /// This server has given all of its ground to another one, as a `DrainServer` asked for.
    ServerDrained {
        /// The incarnation of the other server.
        to: u64,
    }
    /// Another server took this one for dead and ended it. Unsaved changes are lost, and the app ends with an error.
    ServerEnded {
        /// The incarnation of this server.
        incarnation: u64,
    }
    /// Everything that was unsaved when the `SaveWorld` of this number was sent is durable.
    WorldSaved {
        /// The number of the request.
        request: u64,
    }
    /// The store could not write, which loses nothing because it tries again; or a region halted before it could be saved, or
    /// another server has ended this one, which fails every pending `SaveWorld`.
    SaveFailed {
        /// The reason.
        error: SaveError,
        /// The numbers of the failed requests, which get no `WorldSaved`. Empty if the store tries again, or if
        /// there were none.
        requests: Vec<u64>,
    }
    /// Everything that was unsaved when the [`BackupWorld`](crate::view::BackupWorld) of this number was sent is in a backup.
    WorldBackedUp {
        /// The number of the request.
        request: u64,
        /// The number of the backup in its folder.
        number: u32,
        /// The size of the restored world in bytes. Backups in the same folder share equal data.
        bytes: u64,
    }
    /// An arena was captured and stored.
    ArenaCreated {
        /// Its name.
        name: String,
        /// The result of the capture, column by column.
        outcome: Arc<JobOutcome>,
    }
    /// The revert of an arena has ended.
    ArenaReverted {
        /// Its name.
        name: String,
        /// How long it took.
        took: Duration,
        /// The result of the restore, column by column.
        outcome: Arc<JobOutcome>,
        /// The reason why part of the arena was not reverted; `None` if all of it was.
        error: Option<ArenaError>,
    }
    /// An arena and its snapshot were removed.
    ArenaRemoved {
        /// Its name.
        name: String,
    }
    /// An order for an arena was refused.
    ArenaRefused {
        /// Its name.
        name: String,
        /// The refused order.
        order: ArenaOrder,
        /// The reason.
        error: ArenaError,
    }
    /// The backup that the [`BackupWorld`](crate::view::BackupWorld) of this number asked for failed.
    BackupFailed {
        /// The number of the request.
        request: u64,
        /// The reason.
        error: SaveError,
    }
    /// Answers an [`AskOpacity`](crate::view::AskOpacity).
    OpacityAnswer {
        /// The number of the question.
        request: u64,
        /// The dimension.
        dimension: DimensionId,
        /// The columns.
        batch: BatchPos,
        /// The opaque blocks of these columns.
        opacity: Result<Arc<BatchOpacity>, AskError>,
    }
    /// Answers an [`AskColumn`](crate::view::AskColumn).
    ColumnAnswer {
        /// The number of the question.
        request: u64,
        /// The dimension.
        dimension: DimensionId,
        /// The column.
        column: ColumnPos,
        /// What is known about it.
        report: Result<ColumnReport, AskError>,
    }
    /// A followed entity has another place, or is gone: see [`FollowEntity`](crate::view::FollowEntity). An entity that goes from one
    /// region to another is on its way in between, unless one of them absorbs the other.
    EntityPlaced {
        /// The stable id of the entity.
        id: Uuid,
        /// The time on the coordinator's clock.
        at: Duration,
        /// Its place; `None` if it is despawned, unloaded with its ground, lost with a halted region, or on another server.
        place: Option<Whereabouts>,
    }
    /// Answers an [`AskChunks`](crate::view::AskChunks).
    ChunksAnswer {
        /// The number of the question.
        request: u64,
        /// The dimension.
        dimension: DimensionId,
        /// The states of the chunks; `None` for a chunk that is not generated yet.
        chunks: Vec<(ChunkPos, Result<Option<ChunkState>, AskError>)>,
    }
    /// A [`ControlRegion`] was refused.
    ControlRefused {
        /// The refused request. For a halt that waited for the end of a tick, it names the region of that tick.
        request: ControlRegion,
        /// The reason.
        error: ControlError,
    }
    /// A [`StepDimension`] was refused. A running clock ticks regardless.
    StepRefused {
        /// The refused request.
        request: StepDimension,
        /// The reason.
        error: ControlError,
    }
    /// A [`SetBlock`] was refused.
    BlockRefused {
        /// The refused request.
        request: SetBlock,
        /// The reason.
        error: BlockAccessError,
    }
}
