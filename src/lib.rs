#![doc = include_str!("../README.md")]
//!
//! # Rooms
//!
//! | room | what is in it |
//! |---|---|
//! | [`space`] | positions and conversions between them |
//! | [`work`] | how far long work is, what stops it, what the system refused |
//! | [`block`] | block types, their components and their ids |
//! | [`chunk`] | chunks, columns, and their binary format |
//! | [`region`] | the state machine of regions: a plain data structure |
//! | [`generation`] | generators, and the graph that knows the nearest missing ground |
//! | [`object_store`] | one portable file of versioned objects |
//! | [`chunk_sync`] | what a multiplayer client and its server say of chunks, and the client's cache |
//! | [`storage`] | key-value stores, keys, the world on disk |
//! | [`snapshot`] | parts of a world as they were, to be put back there or elsewhere |
//! | [`simulation`] | region worlds: what your systems run in |
//! | [`entity`] | entities as they are stored |
//! | `coordinator` | collect, stream, deliver, dispatch, publish, save |
//! | [`view`] | the main world's side |
//! | [`plugin`] | [`TerranePlugin`](plugin::TerranePlugin): puts the rooms together |
#![cfg_attr(feature = "render", doc = "| [`render`] | meshes for the main world |")]
#![cfg_attr(feature = "overlay", doc = "| [`overlay`] | the egui overlay |")]
#![cfg_attr(feature = "testing", doc = "| [`testing`] | a harness for tests of a game |")]

mod coordinator;
#[cfg(feature = "overlay")]
pub mod overlay;
pub mod plugin;
#[cfg(feature = "render")]
pub mod render;
pub mod simulation;
#[cfg(feature = "testing")]
pub mod testing;
pub mod view;

use terrane_objects::bytes;
pub use terrane_objects::work;
pub use terrane_storage as storage;
pub use terrane_world::{block, chunk, chunk_sync, entity, generation, region, space};

/// One portable file of versioned objects.
pub mod object_store {
    pub use terrane_objects::{
        FILE_BLOCK_BYTES, MAX_KEY_BYTES, Object, ObjectBatch, ObjectStore, ObjectStoreError, ObjectStoreOptions,
        Recovery,
    };
}

/// Parts of a world as they were, to be put back there or elsewhere.
pub mod snapshot {
    pub use terrane_storage::upkeep::schematics as closed_world;
    pub use terrane_world::snapshot::*;
}

/// What a game imports, together with `bevy::prelude`.
pub mod prelude {
    pub use crate::block::{BlockComponent, BlockComponentId, BlockId, BlockRegistry, BlockStates, BlockType, Schema};
    pub use crate::chunk::{Chunk, Column};
    pub use crate::generation::{
        Boulder, Caves, Feature, FeatureCanvas, FeatureError, FeatureRandom, FeatureReach, Features, Flat,
        GenerateError, GenerateLayer, GenerateRequest, Generator, GeneratorIdentity, GroundCover, Heightmap, Hills,
        LayerColumn, Layers, Mask, NoiseMask, Placement, Select, Surface, SurfaceAnswer, SurfaceRequest, Tree,
        TreeShape, Veins, Void, WaterFill,
    };
    #[cfg(feature = "overlay")]
    pub use crate::overlay::OverlayPlugin;
    pub use crate::plugin::{
        LetterLimits, RegionFaults, SaveDurability, TerraneAppExt, TerranePlugin, TickMode, ViewerLimits, WorldFailure,
    };
    pub use crate::region::{RegionId, RegionPart, RegionizerConfig};
    #[cfg(feature = "render")]
    pub use crate::render::{ChunkRenderPlugin, FarRenderPlugin};
    pub use crate::simulation::{
        Address, BlockAccessError, BlockTick, BlockTicks, BlockTypes, ColumnError, ColumnReady, ColumnRestored,
        EntityIndex, EntityMoved, LetterSender, LoggedOut, MoveCause, Moving, PlacedMessage, Player, Position, Post,
        Received, RegionBlocks, RegionColumns, RegionInfo, RegionMessage, RegionRandom, RegionResource, RegionSystems,
        RegionTick, Returned, StableId, Undeliverable, Viewer,
    };
    pub use crate::snapshot::{RestoreSequence, Snapshot, SnapshotParts};
    pub use crate::space::{BatchPos, BlockBox, BlockPos, ChunkPos, ColumnArea, ColumnPos, DimensionId, SectionPos};
    pub use crate::storage::{StorageConfig, TierConfig};
    pub use crate::view::{
        AfterCrash, Arena, ArenaCreated, ArenaError, ArenaOrder, ArenaRefused, ArenaRemoved, ArenaReverted,
        ArenaSettings, ArenaState, ArenaStatus, AskChunks, AskError, AskOpacity, Backlog, BackupFailed, BackupWorld,
        BlockRefused, CaptureSnapshot, ChunkState, ChunkSyncClient, ChunkSyncPeer, ChunksAnswer, ColumnChange,
        ColumnChanged, ColumnFailed, ControlError, ControlJob, ControlRefused, ControlRegion, Coupling, Dimension,
        DimensionClock, DimensionClosed, DimensionFailed, DimensionGeneration, DimensionOpen, DimensionOpened,
        DimensionRemoved, DimensionStatistics, EntityRestore, FailedColumn, FarColumnChanged, FarColumns, FarView,
        GroundRegenerated, Job, JobEnded, JobError, JobId, JobKind, JobOrder, JobOutcome, JobProgress, JobState, Jobs,
        LetterLost, LogIn, LogInError, LogInRefused, LogOut, Mirror, MirrorIndex, OpacityAnswer, Pacing,
        PlayerLoggedIn, PlayerLoggedOut, Pregeneration, PublishedBlocks, PublishedColumns, RegionCommands,
        RegionCreated, RegionDestroyed, RegionFault, RegionHalted, RegionHung, RegionMerged, RegionOrder,
        RegionRestarted, RegionSplit, RegionStatistics, Regions, RemoveDimension, RestoreSnapshot, RetryColumns,
        SaveError, SaveFailed, SaveWorld, SetBlock, SnapshotConfig, SnapshotSource, StepDimension, StepRefused,
        StoreSnapshot, TickWindow, ViewSystems, WorkError, WorldBackedUp, WorldSaved, WorldStatistics,
    };
    #[doc(no_inline)]
    pub use bevy::prelude::*;
}
