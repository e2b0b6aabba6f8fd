//! What the main world and the coordinator say to each other: settings, requests, answers, events, errors, statuses and
//! statistics. Plain data, which knows no other room of the coordinator.
//!
//! `view` re-exports these names: this is the only list of them. A new request or answer gets a type here, a system that
//! carries it out, and a line in `view` that sends it.

pub(in crate::coordinator) mod actions;
pub(in crate::coordinator) mod arenas;
pub(in crate::coordinator) mod clocks;
pub(in crate::coordinator) mod dimensions;
pub(in crate::coordinator) mod events;
pub(in crate::coordinator) mod far_views;
pub(in crate::coordinator) mod faults;
pub(in crate::coordinator) mod generation;
pub(in crate::coordinator) mod jobs;
pub(in crate::coordinator) mod players;
pub(in crate::coordinator) mod published;
pub(in crate::coordinator) mod questions;
pub(in crate::coordinator) mod saving;
pub(crate) mod settings;
pub(in crate::coordinator) mod snapshots;
pub(in crate::coordinator) mod statistics;
pub(in crate::coordinator) mod why;

pub use actions::{ActionAnswer, ActionId, ActionOutcome};
pub use arenas::{Arena, ArenaError, ArenaOrder, ArenaSettings, ArenaState, ArenaStatus};
pub use clocks::{ControlError, ControlRegion, Coupling, DimensionClock, RegionOrder, StepDimension};
pub use dimensions::DimensionError;
pub(crate) use dimensions::DimensionSpec;
pub(crate) use events::WorldEvent;
pub use events::{
    ArenaCreated, ArenaRefused, ArenaRemoved, ArenaReverted, BackupFailed, BlockRefused, ChunksAnswer, ColumnAnswer,
    ColumnFailed, ControlRefused, DimensionClosed, DimensionFailed, DimensionOpened, DimensionRemoved, EntityPlaced,
    GroundRegenerated, LetterLost, LogInRefused, OpacityAnswer, PlayerLoggedIn, PlayerLoggedOut, PlayerMoved,
    RegionCreated, RegionDestroyed, RegionHalted, RegionHung, RegionMerged, RegionRestarted, RegionSplit, SaveFailed,
    ServerDrained, ServerEnded, StepRefused, WorldBackedUp, WorldSaved,
};
pub use far_views::FarView;
pub(crate) use far_views::{FarNews, Target};
pub use faults::{RegionFault, WorkError};
pub use generation::{DimensionGeneration, FailedColumn, Pacing, RetryColumns};
pub(crate) use jobs::JobStatus;
pub use jobs::{Job, JobId, JobKind, JobOrder, JobProgress, JobState, Pregeneration};
pub use players::{LogIn, LogInError, LogOut};
pub(crate) use published::{ColumnUpdate, DecidedEdit, Published};
pub use questions::{AskChunks, AskError, AskOpacity, ChunkState};
pub use saving::{BackupWorld, SaveError, SaveWorld};
pub use settings::Backlog;
pub use snapshots::{
    AfterCrash, CaptureSnapshot, ColumnOutcome, ColumnResult, EntityRestore, JobError, JobOutcome, RestoreSnapshot,
    SnapshotConfig, SnapshotSource, StoreSnapshot,
};
pub use statistics::{
    DimensionStatistics, DrainServer, RegionStatistics, ServerStatistics, TickWindow, TierStatistics, TimeWindow,
    WorldStatistics,
};
pub use why::{
    AskColumn, ColumnCause, ColumnPhase, ColumnReport, FollowEntity, HeldBy, RegionCause, Ticket, Whereabouts,
};
