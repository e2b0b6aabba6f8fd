//! Sends summaries of generated columns to far views, near to far, coarser with distance, under a cap of bytes. Far views are
//! jobs without an end.
//!
//! A listener's [`Tracker`] chooses columns from the dimension's stored graph. The newest summaries of columns in the pending
//! save come from there; all others are read from the store on the loading threads. Summaries are sent in the order in which
//! their columns were chosen, as the listener's [`Budget`] allows. Both queues are bounded: columns chosen ahead, and messages
//! that the main world has not taken.

mod read;
mod sent;
mod tracker;

pub use crate::coordinator::messages::far_views::FarNews;
pub use crate::coordinator::messages::far_views::FarView;
pub(crate) use crate::coordinator::messages::far_views::Target;

use super::dimension::{DimensionBook, OpenDimension};
use crate::chunk::ColumnSummary;
use crate::chunk_sync::Budget;
use crate::coordinator::demand::failures::OUTAGE_PAUSE;
use crate::coordinator::messages::jobs::{JobId, JobProgress};
use crate::coordinator::messages::why::Ticket;
use crate::coordinator::saves::Saves;
use crate::coordinator::stream::deliver::LOCKSTEP_LATENCY;
use crate::coordinator::surroundings::Surroundings;
use crate::space::{ColumnArea, ColumnPos, DimensionId};
use bevy::prelude::*;
use read::{Answer, PLACE_BYTES, read_summaries};
use sent::Sent;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tracker::{Choice, Tracker};

/// The limit for messages of a listener that the main world has not taken.
const MAX_UNTAKEN: usize = 4096;
/// The number of columns in one order.
const ORDER_COLUMNS: usize = 64;
/// Columns are chosen ahead for as much as can be sent in this time, up to [`AHEAD_COLUMNS`].
const AHEAD: Duration = Duration::from_millis(500);
const AHEAD_COLUMNS: std::ops::RangeInclusive<usize> = 16..=2048;

/// The listener of a far view.
pub struct Listener {
    view: FarView,
    /// The position: the dimension and the column. `None` for a listener that follows a viewer.
    at: Option<(DimensionId, ColumnPos)>,
    budget: Budget,
    /// The average size of the last messages with a summary, in bytes.
    average_bytes: f64,
    untaken: usize,
    /// The number of the last order.
    claims: u64,
    place: Option<Place>,
}

/// The state of a listener in its present dimension.
struct Place {
    dimension: DimensionId,
    tracker: Tracker,
    /// Columns whose summaries are being read, by the number of the order: the pass of the order, and the answers.
    orders: BTreeMap<u64, (u64, Option<Vec<(Choice, Answer)>>)>,
    /// Summaries that wait for the byte budget, in the order of their choices.
    ready: VecDeque<(Choice, Answer)>,
    /// Nothing is read before this time because the store has failed.
    rests_until: Duration,
}

/// Summaries that were read, each with the job and the number of the order.
#[derive(Resource, Default)]
pub struct FarAnswers(pub Vec<(JobId, u64, Vec<(Choice, Answer)>)>);

/// Notes columns whose summaries may have changed.
pub fn note_edits<'a>(world: &mut Surroundings, listeners: impl Iterator<Item = &'a mut Listener>) {
    let mut places: Vec<&mut Place> = listeners.filter_map(|listener| listener.place.as_mut()).collect();
    for dimension in world.dimensions.open.values_mut() {
        for column in mem::take(&mut dimension.land.edited) {
            dimension.land.stored.edited(column);
            let of_dimension = places.iter_mut().filter(|place| place.dimension == dimension.id);
            of_dimension.for_each(|place| place.tracker.edited(column));
        }
    }
}

impl Listener {
    pub fn new(view: FarView, at: Option<(DimensionId, ColumnPos)>, now: Duration) -> Self {
        Self { view, at, budget: Budget::new(now), average_bytes: 64.0, untaken: 0, claims: 0, place: None }
    }

    /// Changes the settings or the position of the listener.
    pub fn aim(&mut self, view: FarView, at: Option<(DimensionId, ColumnPos)>) {
        (self.view, self.at) = (view, at);
    }

    /// Notes that the main world has taken `updates` messages.
    pub fn taken(&mut self, updates: usize) {
        self.untaken = self.untaken.saturating_sub(updates);
    }

    /// Measures the progress: the columns that the listener has, out of those in its disc.
    pub fn measure(&self, progress: &mut JobProgress) {
        let disc = ColumnArea::Disc { center: ColumnPos::new(0, 0), radius: self.view.reach() };
        let (known, total) = (self.place.as_ref().map_or(0, |place| place.tracker.len() as u64), disc.columns());
        // The listener also keeps columns a little beyond the disc.
        (progress.done, progress.total) = (u64::try_from(total).map_or(known, |total| known.min(total)), total);
    }

    /// Leaves the dimension.
    pub fn leave(&mut self, dimensions: &mut DimensionBook) {
        if let Some(place) = self.place.take()
            && let Some(dimension) = dimensions.open.get_mut(&place.dimension)
        {
            place.tracker.leave(&mut dimension.land.stored);
        }
    }

    pub fn take_answers(&mut self, claim: u64, answers: Vec<(Choice, Answer)>) {
        // Without an order, the listener has left since.
        if let Some((_, answered)) = self.place.as_mut().and_then(|place| place.orders.get_mut(&claim)) {
            *answered = Some(answers);
        }
    }

    /// Leaves the old dimension if the listener is now elsewhere or the dimension closes.
    pub fn move_on(&mut self, id: JobId, world: &mut Surroundings) {
        let Some(left) = self.place.as_ref().map(|place| place.dimension) else { return };
        if self.center(&world.dimensions).is_none_or(|(id, _)| left != id) {
            self.tell(id, world, left, FarNews::AllGone);
            self.leave(&mut world.dimensions);
        }
    }

    /// Sends the news that the limits allow, and orders more summaries.
    pub fn serve(&mut self, id: JobId, world: &mut Surroundings) {
        self.budget.refill(world.clock.now, self.view.bytes_per_second);
        let Some((dimension, center)) = self.center(&world.dimensions) else { return };
        let Some(open) = world.dimensions.open.get_mut(&dimension) else { return };
        let mut place = self.place.take().unwrap_or_else(|| Place::new(open, center, self.view));
        place.tracker.aim(center, self.view);
        self.tell_gone(id, world, &mut place);
        place.take_due(world.orders.limit.is_lockstep().then_some(world.orders.pass));
        self.send_ready(id, world, &mut place);
        self.order_summaries(id, world, &mut place);
        self.place = Some(place);
    }

    /// The dimension and the column of the listener; `None` while they are unknown.
    fn center(&self, dimensions: &DimensionBook) -> Option<(DimensionId, ColumnPos)> {
        let open = &dimensions.open;
        if let Some((id, column)) = self.at {
            return open.get(&id).filter(|dimension| !dimension.is_closing()).map(|_| (id, column));
        }
        let Target::Viewer(viewer) = self.view.target else { return None };
        let center = |dimension: &OpenDimension| Some(dimension.demand.viewers.get(&Ticket::Region(viewer))?.center);
        let mut places = open.iter().filter(|(_, dimension)| !dimension.is_closing());
        let found = places.find_map(|(id, dimension)| Some((*id, center(dimension)?)));
        // While the viewer is in no region, its last place is used.
        let last = || {
            let place = self.place.as_ref()?;
            let dimension = open.get(&place.dimension).filter(|dimension| !dimension.is_closing())?;
            Some((dimension.id, place.tracker.center()))
        };
        found.or_else(last)
    }

    fn tell(&mut self, job: JobId, world: &mut Surroundings, dimension: DimensionId, news: FarNews) {
        self.untaken += 1;
        world.publisher.far_view((job, dimension, news));
    }

    fn tell_gone(&mut self, job: JobId, world: &mut Surroundings, place: &mut Place) {
        let Some(dimension) = world.dimensions.open.get_mut(&place.dimension) else { return };
        let mut told = Vec::new();
        for column in place.tracker.gone(MAX_UNTAKEN.saturating_sub(self.untaken)) {
            if !self.budget.spend(PLACE_BYTES) {
                place.tracker.gone_again();
                break;
            }
            if let Some(Sent::Summary(..)) = place.tracker.forget(&mut dimension.land.stored, column) {
                told.push(column);
            }
        }
        for column in told {
            self.tell(job, world, place.dimension, FarNews::Gone(column));
        }
    }

    fn send_ready(&mut self, job: JobId, world: &mut Surroundings, place: &mut Place) {
        while let Some((choice, answer)) = place.ready.front() {
            let column = choice.column;
            if !place.tracker.awaits(choice) {
                place.ready.pop_front();
                continue;
            }
            let is_outage = matches!(answer, Answer::NotNow);
            if is_outage {
                place.rests_until = world.clock.now.saturating_add(OUTAGE_PAUSE);
            }
            if is_outage || !place.tracker.keeps(column) {
                if let Some(dimension) = world.dimensions.open.get_mut(&place.dimension) {
                    place.tracker.drop_choice(&mut dimension.land.stored, column);
                }
                place.ready.pop_front();
                continue;
            }
            let (sent, news) = match answer {
                Answer::Unchanged => (None, None),
                Answer::Unreadable | Answer::NotNow => (Some(Sent::Unreadable), None),
                Answer::Summary { summary, bytes, sent } => {
                    if self.untaken >= MAX_UNTAKEN || !self.budget.spend(*bytes) {
                        return;
                    }
                    self.average_bytes = 0.95 * self.average_bytes + 0.05 * *bytes as f64;
                    (Some(*sent), Some(FarNews::Column { column, summary: summary.clone(), bytes: *bytes }))
                }
            };
            place.ready.pop_front();
            place.tracker.settle(column, sent);
            if let Some(news) = news {
                self.tell(job, world, place.dimension, news);
            }
        }
    }

    fn order_summaries(&mut self, job: JobId, world: &mut Surroundings, place: &mut Place) {
        let Some(dimension) = world.dimensions.open.get_mut(&place.dimension) else { return };
        if world.clock.now < place.rests_until {
            return;
        }
        let mut free = self.columns_ahead().saturating_sub(place.tracker.awaited());
        while free > 0 {
            let choices = place.tracker.choose(&mut dimension.land.stored, free.min(ORDER_COLUMNS));
            if choices.is_empty() {
                return;
            }
            free -= choices.len();
            self.claims += 1;
            let claim = self.claims;
            let saves = &*world.saves;
            let known = |choice: Choice| (choice, saves.unwritten_summary(dimension.id, choice.column));
            let (id, heights) = (dimension.id, dimension.chunk_heights());
            let columns = choices.into_iter().map(known).collect();
            place.orders.insert(claim, (world.orders.pass, None));
            world.threads.ask(
                None,
                move |store, _| read_summaries(store, id, &heights, columns),
                move |world, answers| {
                    world.resource_mut::<FarAnswers>().0.extend(answers.map(|answers| (job, claim, answers)));
                },
            );
        }
    }

    /// How many columns may be chosen ahead.
    fn columns_ahead(&self) -> usize {
        if self.view.bytes_per_second == 0 {
            return 0;
        }
        let columns = self.budget.in_time(AHEAD) as f64 / self.average_bytes;
        (columns as usize).clamp(*AHEAD_COLUMNS.start(), *AHEAD_COLUMNS.end())
    }
}

impl Place {
    fn new(dimension: &mut OpenDimension, center: ColumnPos, view: FarView) -> Self {
        Self {
            dimension: dimension.id,
            tracker: Tracker::new(&mut dimension.land.stored, center, view),
            orders: BTreeMap::new(),
            ready: VecDeque::new(),
            rests_until: Duration::ZERO,
        }
    }

    /// Takes the summaries that were read, in the order of the claims; in lockstep exactly those that are due in this pass.
    fn take_due(&mut self, pass: Option<u64>) {
        let has_waited = |ordered: u64| pass.is_none_or(|pass| ordered + LOCKSTEP_LATENCY <= pass);
        while let Some(mut order) = self.orders.first_entry()
            && has_waited(order.get().0)
            && let Some(answers) = order.get_mut().1.take()
        {
            order.remove();
            self.ready.extend(answers);
        }
    }
}

impl Saves {
    /// The summary of a column, if the store may not have its newest state yet.
    pub(super) fn unwritten_summary(&self, dimension: DimensionId, column: ColumnPos) -> Option<Arc<ColumnSummary>> {
        self.unwritten_batches().find_map(|batch| batch.summaries.get(&(dimension, column)).cloned())
    }
}
