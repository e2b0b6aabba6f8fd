#![doc = include_str!("../README.md")]
#![cfg_attr(doc, doc = include_str!("guide_links.html"))]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
#![cfg_attr(doc, doc = "| [`guide`] | a guide, chapter by chapter |")]
//! | [`space`] | positions and conversions between them |
//! | [`work`] | progress, cancellation and errors of long work |
//! | [`block`] | block types, their components and their ids |
//! | [`light`] | sky light and block light |
//! | [`liquid`] | the rules of liquids |
//! | [`body`] | boxes that stand on the ground, step up, swim, and never pass through a wall |
//! | [`chunk`] | chunks, columns, and their binary format |
//! | [`path`] | paths for walkers over the ground: a plain search |
//! | [`region`] | the state machine of regions: a plain data structure |
//! | [`generation`] | generators, and the graph that finds the nearest missing column |
//! | [`object_store`] | one portable file of versioned objects |
//! | [`chunk_sync`] | the chunk protocol of multiplayer clients and servers, and the client's cache |
//! | [`entity_sync`] | the same for entities and their places |
//! | [`storage`] | key-value stores, keys, the world on disk |
//! | [`snapshot`] | saved parts of a world, to be restored there or elsewhere |
//! | [`simulation`] | region worlds, in which your systems run |
//! | [`entity`] | stored entities |
//! | `coordinator` | the pass between the main world and the regions: collect, stream, deliver, dispatch, publish |
//! | [`view`] | the main world's side |
//! | [`plugin`] | [`TerranePlugin`](plugin::TerranePlugin): assembles the modules |
#![cfg_attr(feature = "testing", doc = "| [`testing`] | a harness for tests of a game |")]

mod coordinator;
#[cfg(any(doc, doctest))]
pub mod guide;
pub mod plugin;
pub mod simulation;
#[cfg(feature = "testing")]
pub mod testing;
pub mod view;

use terrane_objects::bytes;
pub use terrane_objects::work;
pub use terrane_storage as storage;
pub use terrane_world::{
    block, body, chunk, chunk_sync, entity, entity_sync, generation, light, liquid, path, region, space,
};

/// One portable file of versioned objects.
pub mod object_store {
    pub use terrane_objects::{
        FILE_BLOCK_BYTES, MAX_KEY_BYTES, Object, ObjectBatch, ObjectStore, ObjectStoreError, ObjectStoreOptions,
        Recovery,
    };
}

/// Saved parts of a world, to be restored there or elsewhere.
///
/// A game reads a file on its own thread, and lets a snapshot job place it in the running world:
///
/// ```
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::snapshot::Snapshot;
/// use bevy_terrane::view::{Jobs, RestoreSnapshot};
/// use bevy_terrane::snapshot::schematic::{ReadOptions, Schematic};
/// use bevy_terrane::snapshot::translation::TranslationOptions;
/// use bevy_terrane::snapshot::{BlockTurns, Relocation, Turn};
/// use std::sync::Arc;
///
/// fn paste(jobs: Res<Jobs>, types: Res<BlockTypes>, dimensions: Res<Dimensions>) {
///     let (jobs, types, dimension) = (jobs.clone(), types.clone(), dimensions.id("overworld"));
///     std::thread::spawn(move || -> Result {
///         let file = std::fs::File::open("house.schem")?;
///         let (schematic, _) = Schematic::read(file, &ReadOptions::default())?;
///         let turn = Turn::quarters(1);
///         let options = TranslationOptions { turn, ..TranslationOptions::default() };
///         let (house, report) = Snapshot::from_schematic(schematic, dimension, &types, &options)?;
///         info!("{} blocks are not known", report.placeholders);
///         let place = Relocation { turn, to: BlockPos::new(100, 64, 100), ..Relocation::default() };
///         let house = house.placed(&place, &BlockTurns::new(&types, turn))?;
///         jobs.restore(RestoreSnapshot::new(dimension, Arc::new(house)));
///         Ok(())
///     });
/// }
/// # App::new().add_systems(Startup, paste);
/// ```
pub mod snapshot {
    pub use terrane_storage::upkeep::schematics as closed_world;
    pub use terrane_world::snapshot::*;
}

/// The usual imports of a game, together with `bevy::prelude`.
pub mod prelude {
    pub use crate::block::{BlockComponent, BlockId, BlockRegistry, BlockShape, BlockStates, BlockType};
    pub use crate::chunk::{Chunk, Column};
    pub use crate::generation::{Features, Flat, Generator, Hills, Layers};
    pub use crate::plugin::{BodyPlugin, TerraneAppExt, TerranePlugin, TickMode, WorldFailure};
    pub use crate::region::RegionPart;
    pub use crate::simulation::{
        Action, ActionAttempt, ActionContext, ActionDone, Actor, BlockAccessError, BlockBody, BlockTick, BlockTypes,
        BodySystems, BodyVelocity, CharacterController, EntityIndex, EntityMoved, Floor, Grounded, Intent, Moving,
        NewColumn, Player, Position, Post, Received, Refusal, RegionBlocks, RegionInfo, RegionMessage, RegionRandom,
        RegionResource, RegionTick, Returned, StableId, TimeOfDay, Undeliverable, Viewer,
    };
    pub use crate::space::{BlockPos, ChunkPos, ColumnPos, DimensionId};
    pub use crate::view::{
        ActionAnswer, ActionOutcome, Actions, BlockRefused, ColumnFailed, Dimension, DimensionFailed, DimensionOpened,
        Dimensions, Mirror, OwnBody, PublishedBlocks, RegionCommands, RegionHalted, Regions, SetBlock, ViewSystems,
    };
    #[doc(no_inline)]
    pub use bevy::prelude::*;
}
