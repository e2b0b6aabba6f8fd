//! Region worlds: where the game's own systems run.
//!
//! A region world is a Bevy [`SubApp`](bevy::app::SubApp) that owns its columns and entities outright. It arrives on a
//! region thread with an inbox, runs one tick, and returns to the coordinator with an outbox:
//!
//! 1. `receive`: inserts loaded columns and entities, applies edits and delivers letters;
//! 2. `TickSchedules`: runs the game's schedules, [`RegionTick`] among them;
//! 3. `send`: puts changed chunks, entities that left the region, evicted columns, mirrored components and everything to be
//!    saved into the outbox.
//!
//! A system in a region can only touch its own world, so there is no lock and no shared mutable state.

mod actions;
mod block_types;
mod bodies;
mod columns;
mod components;
mod entities;
mod ground;
mod inbox_outbox;
mod info;
mod letters;
mod paths;
mod player;
mod position;
mod profile;
mod random;
mod schedules;
mod task_progress;
mod template;
mod template_error;
#[cfg(test)]
mod tests;
mod tick;
mod time_of_day;
mod travel;
mod work;
mod world;

pub use actions::{Action, ActionAttempt, ActionContext, ActionDone, Actor, ChangedBlock, Refusal};
pub use block_types::BlockTypes;
pub use bodies::character::{CharacterController, Intent};
pub use bodies::floor::{FloorOutcome, FloorReached, is_region_component};
pub use bodies::prediction::Prediction;
pub use bodies::steering::{Steer, SteeredBody, Steering};
pub use bodies::walk::{Walk, WalkEnd, WalkEnded};
pub use bodies::{BlockBody, BodyState, BodySystems, BodyTypes, BodyVelocity, Grounded};
pub use columns::block_ticks::{BlockTick, BlockTicks};
pub use columns::blocks::{BlockAccessError, RegionBlocks, RegionColumns};
pub use columns::column_source::ColumnError;
pub use columns::column_work::ColumnRestored;
pub use columns::notices::{BlockChanged, GroundSettings, RuleLoop};
pub use columns::random_ticks::RandomTick;
pub use components::mapping::BoxedComponent;
pub(crate) use components::mirrored::{MirroredChanges, MirroredValues};
pub use components::resources::PlacedMessage;
pub use components::resources::RegionResource;
pub use components::stored_entities::SavedComponent;
pub use entities::{EntityIndex, EntityMoved, MoveCause, Moving, StableId};
pub use ground::{BlockDropped, FallingBlock, GroundError, GroundSystems, GrowthRule};
pub(crate) use inbox_outbox::BlockEdit;
pub use inbox_outbox::SetBlock;
pub use info::{Floor, RegionInfo};
pub use letters::letter::{Address, LetterSender, Received, RegionMessage, Returned, Undeliverable};
pub use letters::post::{ColumnReady, Post};
pub use letters::shared_messages::SharedMessage;
pub use paths::{PathPlugin, PathSystems, PathTo};
pub use player::{LoggedOut, Player};
pub use position::{Position, Viewer};
pub use profile::{ProfilePart, RegionProfile, RegionProfiler};
pub use random::{RegionRandom, SplitMix64};
pub use schedules::RegionTick;
pub use template_error::RegionTemplateError;
pub use time_of_day::TimeOfDay;
pub use work::new_columns::NewColumn;

// Used by the coordinator and the plugin.
pub(crate) use crate::storage::LoadedColumn;
pub(crate) use actions::{Acting, ActionOrder, ActionTypes, DecidedAction, ErasedAction, Ground, Outcome, Values};
pub(crate) use bodies::movement::move_bodies;
pub(crate) use bodies::steering::receive_steps;
pub(crate) use bodies::walk::walk;
pub(crate) use columns::column_source::{ColumnSource, DepartedColumns, FetchedColumn, SavedChunks};
pub(crate) use columns::column_work::{Answer, ColumnAnswer, ColumnWork, OrderedWork};
pub(crate) use columns::light::{LightRules, RegionLight, light_alone};
pub(crate) use components::RegionComponents;
pub(crate) use ground::{add_falling_blocks, add_growth, add_liquids};
pub(crate) use inbox_outbox::{Inbox, MirrorUpdate, Outbox, RegionNumbers, Traveller};
pub(crate) use letters::letter::{Letter, Stamp};
pub(crate) use letters::post::{register_message, schedule};
pub(crate) use letters::shared_messages::SharedMessages;
pub(crate) use position::ViewerRadii;
pub(crate) use task_progress::TaskProgress;
pub(crate) use template::RegionTemplate;
pub(crate) use tick::assignment::{Assignment, Task};
pub(crate) use tick::salvage::Salvage;
pub(crate) use time_of_day::ClockedTimeOfDay;
pub(crate) use world::RegionWorld;
