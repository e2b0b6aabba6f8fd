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

mod columns;
mod exclusive;
mod fault;
mod letter;
mod mail;
mod player;
mod pool;
mod position;
mod post;
mod progress;
mod random;
mod receive;
mod salvage;
mod schedules;
mod send;
mod strict;
mod template;
#[cfg(test)]
mod tests;
mod travel;
mod world;

pub use crate::storage::LoadedColumn;
pub use columns::block_ticks::{BlockTick, BlockTicks};
pub use columns::blocks::{BlockAccessError, RegionBlocks, RegionColumns};
pub use columns::column_work::{
    CaptureColumn, CapturedColumn, ClearEntities, ClearedEntities, ColumnAnswer, ColumnRestored, ColumnWork,
    FinishedWork, LookForEntities, PlaceEntities, RestoreColumn, SeenEntities, WorkBudget,
};
pub use columns::damaged_ground::{DamagedGround, RegeneratedChunk, Repairs};
pub use columns::ground::{ColumnError, Departed, DepartedColumns, FetchedColumn, Ground, SavedChunks};
pub use exclusive::Exclusive;
pub use letter::{
    Address, Letter, LetterSender, Received, RegionMessage, Returned, RunIfRetired, RunInWorld, RunOnEntity,
    Undeliverable,
};
pub use mail::{Inbox, MirrorUpdate, Outbox, Part, SetBlock, Traveller, ViewerReport};
pub use player::{LoggedOut, Player};
pub use pool::WorldPool;
pub use position::{Position, Viewer, ViewerRadii};
pub(crate) use post::schedule;
pub use post::{ColumnReady, Post};
pub use progress::TaskProgress;
pub use random::{RegionRandom, SplitMix64};
pub use salvage::Salvage;
pub use strict::SectionOwners;
pub use template::{BlockTypes, RegionMain, RegionSystems, RegionTemplate, RegionTemplateError, RegionTick};
pub use travel::components::{BoxedComponent, Mirrored, RegionComponents, SavedComponent};
pub use travel::entities::{EntityIndex, EntityMoved, Migration, MoveCause, StableId};
pub use travel::messages::PlacedMessage;
pub use travel::resources::{RegionResource, RegionShare, ResourcePart};
pub use travel::saved_type::SavedVersionError;
pub use travel::unregistered::UnregisteredComponents;
pub use world::{Assignment, RegionHome, RegionInfo, RegionWorld, Task};
