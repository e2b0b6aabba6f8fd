//! Work on columns at the end of a region's tick: capturing and restoring them, within a budget of the tick.
//!
//! It comes as a letter to the column, so it finds its region through merges and splits, and the column is loaded for it. It is
//! done in the tick with which it came, after the game's systems, or comes back as postponed: nothing of it stays in a region.

mod capture;
mod look;
mod restore;

use crate::simulation::travel::departure::{followers, roots};
use crate::simulation::travel::stored_entities::record;
use crate::simulation::world::RegionContents;
use crate::simulation::{Address, ColumnError, Letter, LetterSender, Position, RegionInfo, StableId};
use crate::space::{BlockBox, BlockPos, ColumnPos, DimensionId};
use crate::storage::EntityRecord;
use crate::work::Stop;
use bevy::platform::collections::HashSet;
use bevy::prelude::*;
use std::mem;
use std::time::{Duration, Instant};
use uuid::Uuid;

pub use capture::{CaptureColumn, CapturedColumn};
pub use look::{LookForEntities, SeenEntities};
pub use restore::{ClearEntities, ClearedEntities, ColumnRestored, PlaceEntities, RestoreColumn, RestoredColumn};

/// How much of a tick may be spent on work on columns. The first column of a tick is worked on in any case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkBudget {
    /// The part of the region's period, from 0 to 1; `None` if time does not count, as in lockstep.
    pub share: Option<f64>,
    /// Chunks that may be changed in a tick.
    pub chunks: usize,
}

/// What is to be done with a column.
pub enum ColumnWork {
    /// What is in it is to be captured.
    Capture(CaptureColumn),
    /// Blocks are to be restored, and entities of the region to go.
    Restore(RestoreColumn),
    /// Entities are to come into it.
    PlaceEntities(PlaceEntities),
    /// Entities are to go from it and from the region's other columns. Like looking for them, that takes no part in the budget:
    /// it is to be done to all of them at the same moment.
    Clear(ClearEntities),
    /// It is to be looked who stands in it and in the region's other columns.
    Look(LookForEntities),
}

/// What has come of it.
#[derive(Debug)]
pub enum ColumnAnswer {
    /// It was captured.
    Captured(CapturedColumn),
    /// It was restored.
    Restored(RestoredColumn),
    /// So many entities came into it.
    Placed(usize),
    /// Whoever was there has gone.
    Cleared(ClearedEntities),
    /// It was looked who is there.
    Seen(SeenEntities),
    /// The budget was used up: it is to be sent again.
    Postponed,
    /// It could not be done, and nothing was changed.
    Failed(ColumnError),
    /// It was lost on its way, or with its region: nobody knows whether it was done.
    Lost,
}

/// The work that has come to a region in this tick.
#[derive(Default)]
pub(in crate::simulation) struct ComingWork(Vec<OrderedWork>);

/// Work with whom to tell what came of it.
struct OrderedWork {
    work: ColumnWork,
    budget: WorkBudget,
    /// Nobody wants it any more.
    is_void: Stop,
    answer: Answer,
}

/// Whoever is told what came of work, and how long it took.
type Tell = Box<dyn FnOnce(ColumnAnswer, Duration) + Send>;

/// Tells what came of the work, in any case.
struct Answer(Option<Tell>);

impl Answer {
    fn give(mut self, answer: ColumnAnswer, took: Duration) {
        if let Some(tell) = self.0.take() {
            tell(answer, took);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(tell) = self.0.take() {
            tell(ColumnAnswer::Lost, Duration::ZERO);
        }
    }
}

/// Work that was done in a tick, and whom to tell: it is told when the tick has ended well. If it panics, all of it is lost.
pub struct FinishedWork {
    answer: Answer,
    result: ColumnAnswer,
    took: Duration,
}

impl FinishedWork {
    /// Whether something in the world is not as it was.
    pub(in crate::simulation) fn has_changed(&self) -> bool {
        match &self.result {
            ColumnAnswer::Restored(restored) => !restored.chunks.is_empty() || !restored.removed.is_empty(),
            ColumnAnswer::Placed(count) => *count > 0,
            ColumnAnswer::Cleared(cleared) => !cleared.removed.is_empty(),
            _ => false,
        }
    }

    /// Tells what came of it.
    pub fn tell(self) {
        self.answer.give(self.result, self.took);
    }
}

impl ColumnWork {
    /// The letter that brings it to the region of a block's column. `tell` is called once, on whatever thread. If it `is_void`
    /// by then, nothing is done.
    pub fn letter(
        self,
        dimension: DimensionId,
        block: BlockPos,
        budget: WorkBudget,
        is_void: Stop,
        tell: impl FnOnce(ColumnAnswer, Duration) + Send + 'static,
    ) -> Letter {
        let answer = Answer(Some(Box::new(tell)));
        let ordered = OrderedWork { work: self, budget, is_void, answer };
        let bring = move |region: &mut World| {
            region.resource_mut::<RegionContents>().into_inner().column_work.get().0.push(ordered);
        };
        Letter::run(Address::Place(dimension, block), LetterSender::Main, Box::new(bring))
    }
}

/// Does what has come, as far as the budget goes.
pub(in crate::simulation) fn work(world: &mut World) {
    let contents = world.resource_mut::<RegionContents>().into_inner();
    let orders = mem::take(&mut contents.column_work.get().0);
    if orders.is_empty() {
        return;
    }
    let (began, period) = (Instant::now(), contents.period);
    let (mut chunks, mut is_first) = (0, true);
    let mut finished = Vec::with_capacity(orders.len());
    for OrderedWork { work, budget, is_void, answer } in orders {
        if is_void.is_stopped() {
            answer.give(ColumnAnswer::Lost, Duration::ZERO);
            continue;
        }
        let is_late =
            || budget.share.is_some_and(|share| began.elapsed().as_secs_f64() >= period.as_secs_f64() * share);
        let is_of_column = !matches!(work, ColumnWork::Look(_) | ColumnWork::Clear(_));
        if is_of_column && !mem::take(&mut is_first) && (chunks >= budget.chunks || is_late()) {
            finished.push(FinishedWork { answer, result: ColumnAnswer::Postponed, took: Duration::ZERO });
            continue;
        }
        let work_began = Instant::now();
        let done = match work {
            ColumnWork::Capture(order) => capture::capture(world, &order).map(ColumnAnswer::Captured),
            ColumnWork::Restore(order) => restore::restore(world, &order).map(|restored| {
                chunks += restored.chunks.len();
                ColumnAnswer::Restored(restored)
            }),
            ColumnWork::PlaceEntities(order) => Ok(ColumnAnswer::Placed(restore::place_entities(world, order))),
            ColumnWork::Clear(order) => Ok(ColumnAnswer::Cleared(restore::clear(world, &order))),
            ColumnWork::Look(order) => Ok(ColumnAnswer::Seen(look::look(world, &order))),
        };
        let result = done.unwrap_or_else(ColumnAnswer::Failed);
        finished.push(FinishedWork { answer, result, took: work_began.elapsed() });
    }
    world.resource_mut::<RegionContents>().outbox.get().worked = finished;
}

/// The entities that stand in a box in this column, as they are stored; but for players, who come and go with whoever plays
/// them.
fn standing_in(world: &World, area: &BlockBox, column: ColumnPos) -> Vec<(Entity, EntityRecord)> {
    standing(world, |position| position.column() == column && area.contains(position.block), |_| true)
}

/// The entities that stand here, as they are stored, as far as they are wanted; but for players.
fn standing(
    world: &World,
    here: impl Fn(&Position) -> bool,
    is_wanted: impl Fn(Uuid) -> bool,
) -> Vec<(Entity, EntityRecord)> {
    let components = world.resource::<RegionContents>().components.clone();
    // Who has just gone to another dimension is still in this world.
    let dimension = world.resource::<RegionInfo>().dimension;
    let found = roots(world, &components, |position| position.dimension == dimension && here(position)).into_iter();
    // Whatever follows one of them without being its child is stored by itself, and goes with it.
    let mut taken = HashSet::new();
    let found = found.flat_map(|root| followers(world, &components, root, &mut taken));
    let found = found.filter(|entity| world.get::<StableId>(*entity).is_some_and(|id| is_wanted(id.0)));
    let found = found.filter_map(|entity| Some((entity, record(world, &components, entity)?)));
    found.filter(|(_, record)| record.player().is_none()).collect()
}
