//! The world of one region, and its data that no system can reach.

use super::columns::blocks::RegionColumns;
use super::columns::column_source::ColumnSource;
use super::columns::column_work::OrderedWork;
use super::inbox_outbox::{BlockEdit, Inbox, Outbox};
use super::info::RegionInfo;
use super::player::{LoggedOut, Player};
use super::position::{Position, Viewer, ViewerRadii};
use super::profile::RegionProfiler;
use super::random::RegionRandom;
use super::schedules::TickSchedules;
use crate::chunk::Column;
use crate::region::RegionId;
use crate::simulation::components::RegionComponents;
use crate::simulation::components::unregistered::SeenArchetypes;
use crate::simulation::entities::{EntityIndex, StableId};
use crate::simulation::letters::letter::Letter;
use crate::simulation::letters::post::Post;
use crate::simulation::letters::waiting::WaitingLetters;
use crate::space::{ColumnPos, SectionPos};
use crate::storage::servers::CrossingId;
use bevy::ecs::archetype::ArchetypeId;
use bevy::ecs::change_detection::Tick;
use bevy::ecs::entity_disabling::Disabled;
use bevy::ecs::query::{Allow, QueryState};
use bevy::ecs::system::{SystemParam, SystemState};
use bevy::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use uuid::Uuid;

/// The world of one region and all its data.
pub struct RegionWorld {
    pub(super) app: SubApp,
    pub(super) contents: RegionContents,
}

/// Data that is used only when the region receives and sends. It is kept outside the world because a resource lookup in each
/// tick costs as much as a small system.
#[derive(FromWorld)]
pub(super) struct RegionContents {
    pub components: Arc<RegionComponents>,
    /// The world's seed.
    pub seed: u64,
    /// The number of the assignment.
    pub number: u64,
    /// Input that has not been received yet.
    pub inbox: Inbox,
    /// The output of the task so far.
    pub outbox: Box<Outbox>,
    pub letters: WaitingLetters,
    pub unfinished: Unfinished,
    pub params: Params,
    pub schedules: TickSchedules,
    pub profiler: RegionProfiler,
    /// The point from which the search for components that cannot travel continues.
    pub seen_archetypes: SeenArchetypes,
    pub ticks: PastTicks,
    /// The entities that have mirrors in the main world, with their archetypes; `None` for those that have just arrived.
    pub mirrored: FxHashMap<Uuid, Option<ArchetypeId>>,
    pub viewers: KnownViewers,
    pub actions: RegionActions,
    /// `true` if the coordinator may have other numbers of columns, entities and viewers than this world.
    pub is_unknown: bool,
}

/// The actions of a region's entities.
#[derive(Default)]
pub(super) struct RegionActions {
    /// The number of actions that an entity may do in a second, and at once.
    pub per_second: f32,
    /// Actions that were done since the last collection of unsaved data, with their entities.
    pub unsaved: Vec<(u64, Uuid)>,
}

/// What the current task has done so far: for its end, or if it panics.
#[derive(Default)]
pub(super) struct Unfinished {
    /// Traces of the letters delivered, for notifying their senders.
    pub handed_over: Vec<Letter>,
    /// The numbers of the letters of other servers that were handed over.
    pub received: Vec<CrossingId>,
    /// The edits applied.
    pub edits: Vec<BlockEdit>,
    /// The entities that arrived. If one is gone by the end of the task, the main world may still have its mirror.
    pub arrived: Vec<Uuid>,
    /// The columns of a world whose entities are being absorbed. If that panics, they are lost with this world.
    pub absorbing: Vec<ColumnPos>,
    /// Columns to capture or restore at the end of the tick.
    pub column_work: Vec<OrderedWork>,
    /// `true` once the outbox is complete.
    pub is_handed_out: bool,
}

/// The parameters of every tick. They are cached, since they remember the ids of components and the matching archetypes.
#[derive(FromWorld)]
pub(super) struct Params {
    pub begin: SystemState<Begin<'static>>,
    pub look: SystemState<Look<'static, 'static>>,
    pub ends: SystemState<Ends<'static>>,
    pub mirrored: QueryState<(EntityRef<'static>, &'static StableId, Ref<'static, Position>)>,
}

/// Change ticks since which something may have changed.
#[derive(Default)]
pub(super) struct PastTicks {
    /// The last sending of mirrors.
    pub sent: Tick,
    /// The beginning of the last tick of this world.
    pub began: Option<Tick>,
    /// The beginning of the last tick whose systems ran. They have seen any arrival that is not newer.
    pub seen: Option<Tick>,
    /// The last collection of unsaved data.
    pub collected: Option<Tick>,
}

/// The viewers of a region world.
#[derive(Default)]
pub(super) struct KnownViewers {
    /// Those that the coordinator expects in this world.
    pub expected: FxHashSet<Uuid>,
    /// Those at the end of the last task, sorted, and a list to be filled at the end of this one.
    pub places: Vec<ViewerPlace>,
    pub next_places: Vec<ViewerPlace>,
}

/// A viewer with its place and its radii.
pub type ViewerPlace = (Uuid, Position, ViewerRadii);

/// The resources that a task changes as it begins.
#[derive(SystemParam)]
pub(super) struct Begin<'w> {
    pub columns: ResMut<'w, RegionColumns>,
    pub info: ResMut<'w, RegionInfo>,
    pub index: ResMut<'w, EntityIndex>,
    pub random: ResMut<'w, RegionRandom>,
    pub post: ResMut<'w, Post>,
    pub time: ResMut<'w, Time>,
}

/// The resources from which a task fills its outbox as it ends.
#[derive(SystemParam)]
pub(super) struct Ends<'w> {
    pub columns: ResMut<'w, RegionColumns>,
    pub info: ResMut<'w, RegionInfo>,
    pub index: ResMut<'w, EntityIndex>,
    pub post: ResMut<'w, Post>,
}

/// The resources and entities that a task checks after the game's systems.
#[derive(SystemParam)]
pub(super) struct Look<'w, 's> {
    pub columns: ResMut<'w, RegionColumns>,
    pub index: ResMut<'w, EntityIndex>,
    pub post: ResMut<'w, Post>,
    pub viewers: Query<'w, 's, (Entity, &'static StableId, &'static Viewer, Option<&'static Position>)>,
    /// Includes disabled entities, which travel like others.
    pub positions: Query<'w, 's, Ref<'static, Position>, Allow<Disabled>>,
    /// Players who must leave or who are children of another entity.
    pub players: Query<'w, 's, Entity, (With<Player>, Or<(With<LoggedOut>, With<ChildOf>)>)>,
}

/// Fetches the parameters. A region in which the game has removed a resource of this crate halts.
pub(super) fn get<'w, 's, P: SystemParam>(state: &'s mut SystemState<P>, world: &'w mut World) -> P::Item<'w, 's> {
    state.get_mut(world).unwrap_or_else(|error| panic!("a resource of this crate was removed: {error}"))
}

impl RegionWorld {
    /// Assigns the world to a region.
    pub(super) fn settle(&mut self, region: RegionId, ground: &Arc<ColumnSource>) {
        let world = self.app.world_mut();
        let mut info = world.resource_mut::<RegionInfo>();
        (info.region, info.dimension) = (region, ground.dimension);
        (info.heights, info.floor, info.section_shift) = (ground.heights.clone(), ground.floor, ground.section_shift);
        world.resource_mut::<RegionColumns>().settle(ground);
    }

    /// The sections that the region owns.
    pub fn sections(&mut self) -> &mut FxHashSet<SectionPos> {
        &mut self.app.world_mut().resource_mut::<RegionColumns>().into_inner().sections
    }

    /// The region that the world belonged to in its last task.
    pub fn region(&self) -> RegionId {
        self.app.world().resource::<RegionInfo>().region
    }

    /// The positions of the region's loaded columns.
    pub fn column_positions(&self) -> &[ColumnPos] {
        self.app.world().resource::<RegionColumns>().columns()
    }

    /// The region's loaded columns.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        let columns = self.app.world().resource::<RegionColumns>();
        columns.columns().iter().filter_map(|position| columns.column(*position))
    }

    /// Returns `true` if the target of the letter is in this world, as far as the world knows.
    pub fn has_target(&self, letter: &Letter) -> bool {
        let world = self.app.world();
        let place = letter.column().is_some_and(|(dimension, column)| {
            dimension == world.resource::<RegionInfo>().dimension && world.resource::<RegionColumns>().contains(column)
        });
        place || letter.entity().is_some_and(|id| world.resource::<EntityIndex>().entity(id).is_some())
    }
}
