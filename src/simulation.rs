//! Region worlds: where the game's own systems run.
//!
//! A region world is a Bevy [`SubApp`](bevy::app::SubApp) that owns its columns and entities outright. It comes to a
//! region thread with an inbox, runs one tick, and goes back to the coordinator with an outbox:
//!
//! 1. [`RegionSystems::Receive`]: take in loaded columns, entities, edits and mail;
//! 2. [`RegionSystems::Simulate`]: the schedules of the game, [`RegionTick`] among them;
//! 3. [`RegionSystems::Send`]: changed chunks, entities that walked out, columns that nobody needs, mirrored components,
//!    what is to be saved.
//!
//! What a system in a region can touch is what is in its world, so there is no lock and no shared mutable state.

mod arrival;
mod block_data;
mod block_ticks;
mod blocks;
mod column_work;
mod components;
mod damaged_ground;
mod departure;
mod entities;
mod exclusive;
mod fault;
mod ground;
mod journey;
mod letter;
mod mail;
mod messages;
mod player;
mod pool;
mod position;
mod post;
mod progress;
mod random;
mod receive;
mod records;
mod relationships;
mod resources;
mod salvage;
mod saved_type;
mod schedules;
mod send;
mod strict;
mod template;
#[cfg(test)]
mod tests;
mod ticks;
mod unregistered;
mod unsaved;
mod world;

pub use block_ticks::{BlockTick, BlockTicks};
pub use blocks::{BlockAccessError, RegionBlocks, RegionColumns};
pub use column_work::{
    CaptureColumn, CapturedColumn, ClearEntities, ClearedEntities, ColumnAnswer, ColumnRestored, ColumnWork,
    FinishedWork, LookForEntities, PlaceEntities, RestoreColumn, SeenEntities, WorkBudget,
};
pub use components::{Mirrored, RegionComponents, SavedComponent};
pub use damaged_ground::{DamagedGround, RegeneratedChunk, Repairs};
pub use entities::{EntityIndex, EntityMoved, Migration, MoveCause, StableId};
pub use exclusive::Exclusive;
pub use ground::{ColumnError, Departed, DepartedColumns, FetchedColumn, Ground, SavedChunks};
pub use letter::{
    Address, Letter, LetterSender, Received, RegionMessage, Returned, RunIfRetired, RunInWorld, RunOnEntity,
    Undeliverable,
};
pub use mail::{BlockEdit, Inbox, LoadedColumn, MirrorUpdate, Outbox, Part, Traveller, ViewerReport};
pub use messages::PlacedMessage;
pub use player::{LoggedOut, Player};
pub use pool::WorldPool;
pub use position::{Position, Viewer, ViewerRadii};
pub(crate) use post::schedule;
pub use post::{ColumnReady, Post};
pub use progress::TaskProgress;
pub use random::{RegionRandom, SplitMix64};
pub use resources::{RegionResource, RegionShare, ResourcePart};
pub use salvage::Salvage;
pub use saved_type::SavedVersionError;
pub use strict::SectionOwners;
pub use template::{BlockTypes, RegionMain, RegionSystems, RegionTemplate, RegionTemplateError, RegionTick};
pub use unregistered::UnregisteredComponents;
pub use world::{Assignment, RegionHome, RegionInfo, RegionWorld, Task};
