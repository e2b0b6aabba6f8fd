//! What happens in the simulation, for the main world to hear of.

use crate::coordinator::answers::question::{AskError, ChunkState};
use crate::coordinator::arenas::arena::{ArenaError, ArenaOrder};
use crate::coordinator::clocks::orders::{ControlError, ControlRegion, StepDimension};
use crate::coordinator::dimension::spec::DimensionError;
use crate::coordinator::fault::region_fault::RegionFault;
use crate::coordinator::saving::request::SaveError;
use crate::coordinator::snapshots::outcome::JobOutcome;
use crate::coordinator::threads::work_error::WorkError;
use crate::coordinator::travel::log_in::LogInError;
use crate::region::RegionId;
use crate::simulation::{Address, BlockAccessError, ColumnError, SetBlock, Undeliverable};
use crate::space::{BatchPos, BlockPos, ChunkPos, ColumnPos, DimensionId};
use crate::storage::{BatchOpacity, StoreError};
use bevy::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Makes a message type of each event, and one type that can be any of them.
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

        /// Something that happened.
        #[derive(Clone, Debug)]
        pub enum WorldEvent {
            $($(#[$docs])* $name($name),)*
        }

        impl WorldEvent {
            /// Makes the app's world ready for the messages.
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
        /// Its number in the world.
        dimension: DimensionId,
        /// Columns of it that the store holds.
        stored_columns: u64,
        /// Stored viewers that came back with it: entities of regions that hold ground loaded.
        viewers: usize,
    }
    /// A dimension could not be opened.
    DimensionFailed {
        /// The dimension's entity.
        entity: Entity,
        /// Why.
        error: DimensionError,
    }
    /// A column, or a part of one in a sparse dimension, could not be generated or loaded; it is tried again later, or set
    /// aside.
    ColumnFailed {
        /// Its dimension.
        dimension: DimensionId,
        /// The column.
        column: ColumnPos,
        /// Why.
        error: ColumnError,
        /// How often it failed.
        attempts: u32,
        /// It is not tried again before a `RetryColumns` asks for it. What is stored and cannot be read is never given up.
        given_up: bool,
    }
    /// A chunk that was stored and damaged was generated anew, since that is the
    /// [setting](crate::plugin::TerranePlugin::with_damaged_ground_regenerated); what had been changed in it is lost.
    GroundRegenerated {
        /// Its dimension.
        dimension: DimensionId,
        /// The chunk.
        chunk: ChunkPos,
        /// What was wrong with it.
        error: StoreError,
    }
    /// A region came to be.
    RegionCreated {
        /// Its dimension.
        dimension: DimensionId,
        /// The new region.
        region: RegionId,
    }
    /// A region became a part of another.
    RegionMerged {
        /// Their dimension.
        dimension: DimensionId,
        /// The region that is no more.
        from: RegionId,
        /// The region that took over.
        into: RegionId,
    }
    /// A region fell apart; it keeps its largest part.
    RegionSplit {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        from: RegionId,
        /// The regions that its other parts became.
        into: Vec<RegionId>,
    }
    /// A region is no more.
    RegionDestroyed {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        region: RegionId,
    }
    /// A region's tick panicked: it does not tick any more, its last saved state stays. A `ControlRegion` restarts it.
    /// What was handed over to it in that tick comes back or is told of by `LetterLost` and `BlockRefused`; what still
    /// waited there waits for the restart.
    RegionHalted {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        region: RegionId,
        /// Why.
        fault: Arc<RegionFault>,
    }
    /// A halted region begins again from the store.
    RegionRestarted {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        region: RegionId,
    }
    /// A region's task takes longer than the watchdog's limit. Told again each time that the limit is over.
    RegionHung {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        region: RegionId,
        /// The lowest of its columns.
        column: Option<ColumnPos>,
        /// How long it has been running.
        running_for: Duration,
        /// The last marker that it passed: a step of ours, or the game's schedule that runs.
        step: String,
        /// Transient regions that wait for it.
        waiting: Vec<RegionId>,
    }
    /// A message or a closure was dropped, and nobody waited for its return; or it came back to a region that is gone.
    /// It is not handed to the main world in that region's place: what it says is for systems that may not be here.
    LetterLost {
        /// The message's type, or that it was a closure.
        what: &'static str,
        /// Where it was to go.
        to: Address,
        /// Why it could not.
        reason: Undeliverable,
    }
    /// What was stored of a dimension is erased; its name can be given to a new one.
    DimensionRemoved {
        /// The entity that it had.
        entity: Entity,
        /// Its name.
        name: String,
        /// Entries of the store that were erased.
        entries: u64,
        /// Why it could not be erased, if it could not. Asking for it again goes on with what is left.
        error: Option<WorkError>,
    }
    /// A dimension was saved and closed; its name can be opened again.
    DimensionClosed {
        /// The entity that it had.
        entity: Entity,
        /// Its number in the world.
        dimension: DimensionId,
        /// Its name.
        name: String,
    }
    /// A player is in the world: on [`StableId`](crate::simulation::StableId) `id`, where it was when it left.
    PlayerLoggedIn {
        /// Its name.
        name: String,
        /// Its stable id, the same in every session.
        id: Uuid,
        /// Its dimension.
        dimension: DimensionId,
        /// Where it is.
        block: BlockPos,
        /// It has never been in the world before.
        is_new: bool,
    }
    /// A player does not come into the world.
    LogInRefused {
        /// Its name.
        name: String,
        /// Why not.
        reason: LogInError,
    }
    /// A player is in the world no more: it logged out, died, or its region halted. It can log in again.
    PlayerLoggedOut {
        /// Its name.
        name: String,
        /// Its stable id.
        id: Uuid,
    }
    /// Everything that was unsaved when the `SaveWorld` with this number was sent is durable.
    WorldSaved {
        /// The number of the request.
        request: u64,
    }
    /// The store could not write, which loses nothing since it is tried again; or a region halted before it could be
    /// saved, which fails each `SaveWorld` that was under way.
    SaveFailed {
        /// Why.
        error: SaveError,
        /// The numbers of the requests that failed: no `WorldSaved` follows for them. None if the store is tried again.
        requests: Vec<u64>,
    }
    /// Everything that was unsaved when the [`BackupWorld`](super::BackupWorld) with this number was sent is in a backup.
    WorldBackedUp {
        /// The number of the request.
        request: u64,
        /// The number of the backup in its folder.
        number: u32,
        /// The bytes that it restores. Backups in a folder share what they have in common.
        bytes: u64,
    }
    /// An arena was captured and stored.
    ArenaCreated {
        /// Its name.
        name: String,
        /// What was captured, column by column.
        outcome: Arc<JobOutcome>,
    }
    /// A revert of an arena has come to its end.
    ArenaReverted {
        /// Its name.
        name: String,
        /// How long it took.
        took: Duration,
        /// What came of it, column by column.
        outcome: Arc<JobOutcome>,
        /// Why not all of it is what it was; `None` if it is.
        error: Option<ArenaError>,
    }
    /// An arena and its snapshot are gone.
    ArenaRemoved {
        /// Its name.
        name: String,
    }
    /// Something that was asked of an arena is not done.
    ArenaRefused {
        /// Its name.
        name: String,
        /// What was asked.
        order: ArenaOrder,
        /// Why it is not done.
        error: ArenaError,
    }
    /// There is no backup for the [`BackupWorld`](super::BackupWorld) with this number.
    BackupFailed {
        /// The number of the request.
        request: u64,
        /// Why.
        error: SaveError,
    }
    /// Answers an [`AskOpacity`](super::AskOpacity).
    OpacityAnswer {
        /// The number of the question.
        request: u64,
        /// The dimension's entity.
        entity: Entity,
        /// The columns.
        batch: BatchPos,
        /// Which of their blocks are opaque.
        opacity: Result<Arc<BatchOpacity>, AskError>,
    }
    /// Answers an [`AskChunks`](super::AskChunks).
    ChunksAnswer {
        /// Whose question it was.
        asker: Entity,
        /// The dimension's entity.
        entity: Entity,
        /// What the chunks are; `None` for one that is not generated yet.
        chunks: Vec<(ChunkPos, Result<Option<ChunkState>, AskError>)>,
    }
    /// A [`ControlRegion`] that comes to nothing.
    ControlRefused {
        /// What was asked for. A halt that waited for the end of a tick names the region of that tick.
        request: ControlRegion,
        /// Why it is not done.
        error: ControlError,
    }
    /// A [`StepDimension`] that comes to nothing. A clock that runs makes its ticks anyway.
    StepRefused {
        /// What was asked for.
        request: StepDimension,
        /// Why it is not done.
        error: ControlError,
    }
    /// A [`SetBlock`] that could not be done.
    BlockRefused {
        /// What was asked for.
        request: SetBlock,
        /// Why not.
        error: BlockAccessError,
    }
}
