//! The world of one region, and its data that no system can reach.

use super::columns::block_ticks::{due_after, ticks_until};
use super::columns::blocks::RegionColumns;
use super::columns::column_source::ColumnSource;
use super::columns::column_work::OrderedWork;
use super::inbox_outbox::{BlockEdit, Inbox, Outbox};
use super::info::RegionInfo;
use super::player::{LoggedOut, Player};
use super::position::{Position, Viewer, ViewerRadii};
use super::random::RegionRandom;
use super::schedules::TickSchedules;
use crate::chunk::Column;
use crate::region::RegionId;
use crate::simulation::components::RegionComponents;
use crate::simulation::components::unregistered::SeenArchetypes;
use crate::simulation::entities::{EntityIndex, StableId};
use crate::simulation::letters::letter::Letter;
use crate::simulation::letters::post::Post;
use crate::space::{ColumnPos, SectionPos};
use crate::storage::servers::CrossingId;
use bevy::ecs::change_detection::Tick;
use bevy::ecs::entity_disabling::Disabled;
use bevy::ecs::query::{Allow, QueryState};
use bevy::ecs::system::{SystemParam, SystemState};
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::{sync::Arc, time::Duration};
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
    /// The dimension's clock at the last tick, and the time from one tick to the next.
    pub clock: Duration,
    pub period: Duration,
    /// The number of entities from which the systems run in parallel, and whether they do now.
    pub parallel_from: usize,
    pub is_parallel: bool,
    /// Input that has not been received yet.
    pub inbox: Inbox,
    /// The output of the task so far.
    pub outbox: Box<Outbox>,
    /// Letters that wait for their delay, by due time on the dimension's clock, then in the order of arrival.
    pub waiting: BTreeMap<(Duration, u64), Letter>,
    /// The number of letters that have arrived.
    pub(super) arrivals: u64,
    /// Traces of the letters delivered in this task, for notifying their senders if it panics.
    pub handed_over: Vec<Letter>,
    /// The numbers of the letters of other servers that were handed over in this task.
    pub received: Vec<CrossingId>,
    // The parameters of every tick are cached, since they remember the ids of components and the matching archetypes.
    pub begin: SystemState<Begin<'static>>,
    pub look: SystemState<Look<'static, 'static>>,
    pub ends: SystemState<Ends<'static>>,
    pub schedules: TickSchedules,
    pub mirrored_query: QueryState<(EntityRef<'static>, &'static StableId, Ref<'static, Position>)>,
    /// The change tick of the last sending of mirrors.
    pub last_send: Tick,
    /// The point from which the search for components that cannot travel continues.
    pub seen_archetypes: SeenArchetypes,
    /// The change tick at which the last tick of this world began.
    pub began: Option<Tick>,
    /// The change tick at which the last tick whose systems ran began. Its systems have seen any arrival that is not newer.
    pub seen: Option<Tick>,
    /// The change tick of the last collection of unsaved data.
    pub last_collect: Option<Tick>,
    /// The entities that have mirrors in the main world.
    pub mirrored: FxHashSet<Uuid>,
    /// The entities that arrived in this task. If one is gone by the end of the task, the main world may still have its mirror.
    pub arrived: Vec<Uuid>,
    /// The viewers that the coordinator expects in this world.
    pub viewers: FxHashSet<Uuid>,
    /// The viewers at the end of the last task, sorted, and a list to be filled at the end of this one.
    pub viewer_places: Vec<ViewerPlace>,
    pub next_viewer_places: Vec<ViewerPlace>,
    /// The columns of a world whose entities are being absorbed. If that panics, they are lost with this world.
    pub absorbing: Vec<ColumnPos>,
    /// The edits applied in this task.
    pub edits: Vec<BlockEdit>,
    /// Columns to capture or restore at the end of this tick.
    pub column_work: Vec<OrderedWork>,
    /// `true` once the outbox of this task is complete.
    pub is_handed_out: bool,
    /// `true` if the coordinator may have other numbers of columns, entities and viewers than this world.
    pub is_unknown: bool,
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

impl RegionContents {
    /// Stores letters until they are due.
    pub fn receive_letters(&mut self, letters: impl IntoIterator<Item = Letter>) {
        for letter in letters {
            // Letters without a delay stay in the order of arrival, independent of the clock.
            let due = match letter.delay {
                0 => Duration::ZERO,
                delay => due_after(delay, self.clock, self.period),
            };
            self.keep_until(due, letter);
        }
    }

    pub fn keep_until(&mut self, due: Duration, letter: Letter) {
        self.arrivals += 1;
        self.waiting.insert((due, self.arrivals), letter);
    }

    /// Takes out the next letter that is due. The others survive a panic in its delivery.
    pub fn next_due(&mut self, clock: Duration) -> Option<Letter> {
        let next = self.waiting.first_entry().filter(|next| next.key().0 <= clock)?;
        Some(next.remove())
    }

    /// Takes out the waiting letters for which `wanted` returns `true`, each with its remaining ticks.
    pub fn take_waiting(&mut self, mut wanted: impl FnMut(&Letter) -> bool) -> Vec<Letter> {
        let taken = self.waiting.extract_if(.., |_, letter| wanted(letter));
        taken.map(|((due, _), letter)| letter.with_delay(ticks_until(due, self.clock, self.period))).collect()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::letters::letter::{Address, LetterSender};
    use crate::space::{BlockPos, DimensionId};

    #[test]
    fn due_letters_come_in_the_order_of_time_and_arrival() {
        let mut contents = RegionContents::from_world(&mut World::new());
        let tick = Duration::from_millis(50);
        (contents.clock, contents.period) = (tick * 2, tick);
        for (number, due) in [(1, 3), (2, 1), (3, 1), (4, 2)] {
            let to = Address::Place(DimensionId(0), BlockPos::new(number * 16, 0, 0));
            contents.keep_until(tick * due, Letter::message(to, LetterSender::Main, number));
        }
        let places = |letters: Vec<Letter>| -> Vec<i64> {
            letters.iter().filter_map(|letter| Some(letter.column()?.1.x)).collect()
        };
        assert_eq!(places(std::iter::from_fn(|| contents.next_due(tick * 2)).collect()), [2, 3, 4]);
        assert!(contents.next_due(tick * 2).is_none());
        let left = contents.take_waiting(|_| true);
        assert_eq!((left[0].delay, places(left)), (1, vec![1]));
    }
}
