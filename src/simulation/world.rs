//! The world of one region, and what of the region no system can reach.

use super::columns::block_ticks::{due_after, ticks_until};
use super::columns::blocks::RegionColumns;
use super::columns::column_source::ColumnSource;
use super::columns::column_work::OrderedWork;
use super::inbox_outbox::{Inbox, Outbox, SetBlock};
use super::info::RegionInfo;
use super::letter::Letter;
use super::player::{LoggedOut, Player};
use super::position::{Position, Viewer};
use super::travel::components::RegionComponents;
use super::travel::entities::{EntityIndex, StableId};
use super::travel::unregistered::SeenArchetypes;
use crate::chunk::Column;
use crate::region::RegionId;
use crate::space::{ColumnPos, SectionPos};
use bevy::ecs::change_detection::Tick;
use bevy::ecs::entity_disabling::Disabled;
use bevy::ecs::query::{Allow, QueryState};
use bevy::prelude::*;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::{sync::Arc, time::Duration};
use uuid::Uuid;

/// The world of one region, with all that is the region's.
pub struct RegionWorld {
    pub(super) app: SubApp,
    /// [`RegionMain`](super::RegionMain): nobody else runs it, so it need not be taken out of the world for each tick.
    pub(super) main: Schedule,
    pub(super) contents: RegionContents,
}

/// What of a region only its ends touch, where it receives and sends. It lies beside the world: a resource that a tick looks
/// for costs as much as a small system.
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
    /// From how many entities on the systems run in parallel, and whether they do.
    pub parallel_from: usize,
    pub is_parallel: bool,
    /// What came in and is not taken in yet.
    pub inbox: Inbox,
    /// What goes out, as far as this task has come.
    pub outbox: Box<Outbox>,
    /// Letters that wait for their time: by the dimension's clock, then in the order of arrival.
    pub waiting: BTreeMap<(Duration, u64), Letter>,
    /// Letters that have arrived.
    pub(super) arrivals: u64,
    /// What was handed over in this task, as its senders are told of it if that panics.
    pub handed_over: Vec<Letter>,
    // What every tick looks for is found by queries that remember where they looked.
    pub viewer_query: QueryState<(Entity, &'static StableId, &'static Viewer)>,
    pub mirrored_query: QueryState<(EntityRef<'static>, &'static StableId, Ref<'static, Position>)>,
    /// Of disabled entities too: they travel like others.
    pub position_query: QueryState<Ref<'static, Position>, Allow<Disabled>>,
    /// Players who have to leave or who hang on something.
    pub player_query: QueryState<Entity, (With<Player>, Or<(With<LoggedOut>, With<ChildOf>)>)>,
    /// When mirrors were sent the last time, in change ticks.
    pub last_send: Tick,
    /// When it was looked last for entities outside, in change ticks.
    pub last_look: Tick,
    /// Where the search for components that cannot travel goes on.
    pub seen_archetypes: SeenArchetypes,
    /// When the last tick of this world began, in change ticks.
    pub began: Option<Tick>,
    /// When the last tick whose systems have run began: what arrives and is no newer, they have seen.
    pub seen: Option<Tick>,
    /// When what is unsaved was collected the last time.
    pub last_collect: Option<Tick>,
    /// The entities that the main world has mirrors of.
    pub mirrored: FxHashSet<Uuid>,
    /// The viewers that the coordinator believes to be here.
    pub viewers: FxHashSet<Uuid>,
    /// The columns of a world whose entities are being absorbed: if that panics, they are lost with this world.
    pub absorbing: Vec<ColumnPos>,
    /// The edits that were made in this task.
    pub edits: Vec<SetBlock>,
    /// Columns to be captured and restored at the end of this tick.
    pub column_work: Vec<OrderedWork>,
    /// The outbox of this task is whole.
    pub is_handed_out: bool,
}

impl RegionContents {
    /// Keeps letters until their time.
    pub fn take_in_letters(&mut self, letters: impl IntoIterator<Item = Letter>) {
        for letter in letters {
            // Those without a delay stay in the order of their arrival, whatever the clock was.
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

    /// Takes out the next letter that is due. If it panics as it is handed over, the others are still here.
    pub fn next_due(&mut self, clock: Duration) -> Option<Letter> {
        let next = self.waiting.first_entry().filter(|next| next.key().0 <= clock)?;
        Some(next.remove())
    }

    /// Takes out the letters that `wanted` names and whose time has not come, each with the ticks that it still has to
    /// wait.
    pub fn take_waiting(&mut self, mut wanted: impl FnMut(&Letter) -> bool) -> Vec<Letter> {
        let taken = self.waiting.extract_if(.., |_, letter| wanted(letter));
        taken.map(|((due, _), letter)| letter.with_delay(ticks_until(due, self.clock, self.period))).collect()
    }
}

impl RegionWorld {
    /// The world becomes that of a region.
    pub(super) fn settle(&mut self, region: RegionId, ground: &Arc<ColumnSource>) {
        let world = self.app.world_mut();
        let mut info = world.resource_mut::<RegionInfo>();
        (info.region, info.dimension) = (region, ground.dimension);
        (info.heights, info.section_shift) = (ground.heights.clone(), ground.section_shift);
        world.resource_mut::<RegionColumns>().settle(ground);
    }

    /// The sections that are the region's own.
    pub fn sections(&mut self) -> &mut FxHashSet<SectionPos> {
        &mut self.app.world_mut().resource_mut::<RegionColumns>().into_inner().sections
    }

    /// The region whose world this was in its last task.
    pub fn region(&self) -> RegionId {
        self.app.world().resource::<RegionInfo>().region
    }

    /// The columns that the region has loaded.
    pub fn column_positions(&self) -> &[ColumnPos] {
        self.app.world().resource::<RegionColumns>().columns()
    }

    /// The columns that the region has loaded.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        let columns = self.app.world().resource::<RegionColumns>();
        columns.columns().iter().filter_map(|position| columns.column(*position))
    }

    /// Whether the target of the letter is in this world as far as it knows.
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
    use crate::simulation::{Address, LetterSender};
    use crate::space::{BlockPos, DimensionId};

    #[test]
    fn what_is_due_comes_in_the_order_of_time_and_arrival() {
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
