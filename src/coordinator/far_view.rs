//! Sends to far views what generated columns look like, near to far, coarser with distance, under a cap of bytes.
//!
//! A listener's [`Tracker`] chooses columns from the dimension's graph of stored columns. Their newest summaries come from
//! what is not stored yet, all others from the store, on the loading threads; they are sent in the order of the choices as
//! its [`Budget`] allows. Everything that waits is bounded: choices ahead of what is sent, and messages that the main world
//! has not taken.

pub(super) mod news;
mod reach;
mod read;
mod sent;
mod tracker;

pub use news::{FarCenter, FarNews, FarUpdate, FarWish};
pub use reach::{FarRadii, MAX_FAR_RADIUS};

use super::LOCKSTEP_LATENCY;
use super::clocks::clock::Clock;
use super::dimension::{Dimension, Dimensions};
use super::publish::Publisher;
use super::saving::save::Saves;
use super::streaming::failed_columns::OUTAGE_PAUSE;
use super::streaming::holders::Holder;
use super::streaming::orders::Orders;
use super::threads::{Place as WorkPlace, Threads};
use crate::chunk::ColumnSummary;
use crate::chunk_sync::Budget;
use crate::space::{ColumnPos, DimensionId};
use bevy::prelude::*;

use read::{Answer, PLACE_BYTES, SummariesReady, SummaryOrder};
use sent::Sent;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tracker::{Choice, Tracker};

/// Messages of a listener that the main world has not taken, at most.
const MAX_UNTAKEN: usize = 4096;
/// Columns of one order.
const ORDER_COLUMNS: usize = 64;
/// Columns are chosen ahead of what is sent: what can be sent in this time, within [`AHEAD_COLUMNS`].
const AHEAD: Duration = Duration::from_millis(500);
const AHEAD_COLUMNS: std::ops::RangeInclusive<usize> = 16..=2048;

/// All listeners.
#[derive(Resource, Default)]
pub struct FarViews {
    listeners: BTreeMap<Entity, Listener>,
    claims: u64,
}

struct Listener {
    life: u64,
    wish: FarWish,
    budget: Budget,
    /// What a message with a summary takes, on the average of the last ones.
    average_bytes: f64,
    untaken: usize,
    place: Option<Place>,
}

/// What a listener has to do with the dimension that it is in.
struct Place {
    dimension: DimensionId,
    tracker: Tracker,
    /// Oldest first.
    orders: VecDeque<Order>,
    /// Summaries that wait for bytes, in the order of their choices.
    ready: VecDeque<(Choice, Answer)>,
    /// Nothing is read before this time, because the store did not work.
    rests_until: Duration,
}

/// Columns whose summaries are being read.
struct Order {
    claim: u64,
    /// In which pass.
    ordered: u64,
    answers: Option<Vec<(Choice, Answer)>>,
}

impl FarViews {
    pub fn set(&mut self, listener: Entity, life: u64, wish: FarWish, dimensions: &mut Dimensions, now: Duration) {
        if self.listeners.get(&listener).is_some_and(|known| known.life != life) {
            self.remove(listener, dimensions);
        }
        let fresh = || Listener { life, wish, budget: Budget::new(now), average_bytes: 64.0, untaken: 0, place: None };
        self.listeners.entry(listener).or_insert_with(fresh).wish = wish;
    }

    pub fn remove(&mut self, listener: Entity, dimensions: &mut Dimensions) {
        let place = self.listeners.remove(&listener).and_then(|listener| listener.place);
        if let Some(place) = place
            && let Some(dimension) = dimensions.open.get_mut(&place.dimension)
        {
            place.tracker.leave(&mut dimension.stored);
        }
    }

    /// The main world has taken so many messages.
    pub fn taken(&mut self, listener: Entity, life: u64, updates: usize) {
        if let Some(known) = self.listeners.get_mut(&listener).filter(|known| known.life == life) {
            known.untaken = known.untaken.saturating_sub(updates);
        }
    }

    fn take_answers(&mut self, ready: SummariesReady) {
        let place = self.listeners.get_mut(&ready.listener).and_then(|listener| listener.place.as_mut());
        let order = place.and_then(|place| place.orders.iter_mut().find(|order| order.claim == ready.claim));
        // Without one the listener left meanwhile.
        if let Some(order) = order {
            order.answers = Some(ready.answers);
        }
    }
}

/// What far views are served from.
struct Server<'a> {
    now: Duration,
    dimensions: &'a mut Dimensions,
    saves: &'a Saves,
    threads: &'a mut Threads,
    publisher: &'a mut Publisher,
    /// The number of the last order.
    claims: &'a mut u64,
    pass: u64,
    is_lockstep: bool,
}

pub fn serve_far_views(
    clock: Res<Clock>,
    orders: Res<Orders>,
    mut dimensions: ResMut<Dimensions>,
    saves: Res<Saves>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
    mut views: ResMut<FarViews>,
) {
    let FarViews { listeners, claims } = &mut *views;
    for dimension in dimensions.open.values_mut() {
        for column in mem::take(&mut dimension.edited) {
            dimension.stored.edited(column);
            let places = listeners.values_mut().filter_map(|listener| listener.place.as_mut());
            places.filter(|place| place.dimension == dimension.id).for_each(|place| place.tracker.edited(column));
        }
    }
    let (is_lockstep, pass) = (orders.limit.is_lockstep(), orders.pass);
    let (dimensions, threads, publisher) = (&mut *dimensions, &mut *threads, &mut *publisher);
    let mut server =
        Server { now: clock.now, dimensions, saves: &saves, threads, publisher, claims, pass, is_lockstep };
    listeners.iter_mut().for_each(|(entity, listener)| server.serve(*entity, listener));
}

impl Server<'_> {
    fn serve(&mut self, entity: Entity, listener: &mut Listener) {
        listener.budget.refill(self.now, listener.wish.bytes_per_second);
        let center = self.center_of(listener);
        // Elsewhere, or its dimension closes.
        if let Some(place) = listener.place.take_if(|place| center.is_none_or(|(id, _)| place.dimension != id)) {
            self.tell(entity, listener, place.dimension, FarNews::AllGone);
            if let Some(dimension) = self.dimensions.open.get_mut(&place.dimension) {
                place.tracker.leave(&mut dimension.stored);
            }
        }
        let Some((id, center)) = center else { return };
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let reach = listener.wish.reach;
        let mut place = listener.place.take().unwrap_or_else(|| {
            let tracker = Tracker::new(&mut dimension.stored, center, reach);
            Place {
                dimension: id,
                tracker,
                orders: VecDeque::new(),
                ready: VecDeque::new(),
                rests_until: Duration::ZERO,
            }
        });
        place.tracker.aim(center, reach);
        self.tell_gone(entity, listener, &mut place);
        place.take_due(self.is_lockstep.then_some(self.pass));
        self.send_ready(entity, listener, &mut place);
        self.order_summaries(entity, listener, &mut place);
        listener.place = Some(place);
    }

    /// The dimension and the column that the listener is in; `None` while there is no such place.
    fn center_of(&self, listener: &Listener) -> Option<(DimensionId, ColumnPos)> {
        let open = &self.dimensions.open;
        match listener.wish.center {
            FarCenter::Column { dimension, column } => {
                let id = *self.dimensions.by_entity.get(&dimension)?;
                open.get(&id).filter(|dimension| !dimension.is_closing()).map(|_| (id, column))
            }
            FarCenter::Viewer(viewer) => {
                let center = |dimension: &Dimension| Some(dimension.viewers.get(&Holder::Region(viewer))?.center);
                let mut places = open.iter().filter(|(_, dimension)| !dimension.is_closing());
                let found = places.find_map(|(id, dimension)| Some((*id, center(dimension)?)));
                // While it is nowhere, what was last seen of it counts.
                let last = || {
                    let place = listener.place.as_ref()?;
                    let dimension = open.get(&place.dimension).filter(|dimension| !dimension.is_closing())?;
                    Some((dimension.id, place.tracker.center()))
                };
                found.or_else(last)
            }
        }
    }

    fn tell(&mut self, entity: Entity, listener: &mut Listener, dimension: DimensionId, news: FarNews) {
        listener.untaken += 1;
        self.publisher.far_view(FarUpdate { listener: entity, life: listener.life, dimension, news });
    }

    fn tell_gone(&mut self, entity: Entity, listener: &mut Listener, place: &mut Place) {
        let Some(dimension) = self.dimensions.open.get_mut(&place.dimension) else { return };
        let mut told = Vec::new();
        for column in place.tracker.gone(MAX_UNTAKEN.saturating_sub(listener.untaken)) {
            if !listener.budget.spend(PLACE_BYTES) {
                place.tracker.gone_again();
                break;
            }
            if let Some(Sent::Summary(..)) = place.tracker.forget(&mut dimension.stored, column) {
                told.push(column);
            }
        }
        for column in told {
            self.tell(entity, listener, place.dimension, FarNews::Gone(column));
        }
    }

    fn send_ready(&mut self, entity: Entity, listener: &mut Listener, place: &mut Place) {
        while let Some((choice, answer)) = place.ready.front() {
            let column = choice.column;
            if !place.tracker.awaits(choice) {
                place.ready.pop_front();
                continue;
            }
            let is_outage = matches!(answer, Answer::NotNow);
            if is_outage {
                place.rests_until = self.now.saturating_add(OUTAGE_PAUSE);
            }
            if is_outage || !place.tracker.keeps(column) {
                if let Some(dimension) = self.dimensions.open.get_mut(&place.dimension) {
                    place.tracker.give_up(&mut dimension.stored, column);
                }
                place.ready.pop_front();
                continue;
            }
            let (sent, news) = match answer {
                Answer::Unchanged => (None, None),
                Answer::Unreadable | Answer::NotNow => (Some(Sent::Unreadable), None),
                Answer::Summary { summary, bytes, sent } => {
                    if listener.untaken >= MAX_UNTAKEN || !listener.budget.spend(*bytes) {
                        return;
                    }
                    listener.average_bytes = 0.95 * listener.average_bytes + 0.05 * *bytes as f64;
                    (Some(*sent), Some(FarNews::Column { column, summary: summary.clone(), bytes: *bytes }))
                }
            };
            place.ready.pop_front();
            place.tracker.settle(column, sent);
            if let Some(news) = news {
                self.tell(entity, listener, place.dimension, news);
            }
        }
    }

    fn order_summaries(&mut self, entity: Entity, listener: &Listener, place: &mut Place) {
        let Some(dimension) = self.dimensions.open.get_mut(&place.dimension) else { return };
        if self.now < place.rests_until {
            return;
        }
        let mut free = listener.columns_ahead().saturating_sub(place.tracker.awaited());
        while free > 0 {
            let choices = place.tracker.choose(&mut dimension.stored, free.min(ORDER_COLUMNS));
            if choices.is_empty() {
                return;
            }
            free -= choices.len();
            *self.claims += 1;
            let saves = self.saves;
            let known = |choice: Choice| (choice, saves.unwritten_summary(dimension.id, choice.column));
            let order = SummaryOrder {
                listener: entity,
                claim: *self.claims,
                dimension: dimension.id,
                chunk_heights: dimension.chunk_heights(),
                columns: choices.into_iter().map(known).collect(),
            };
            place.orders.push_back(Order { claim: *self.claims, ordered: self.pass, answers: None });
            self.threads.ask(
                WorkPlace::Loading,
                move |store, _| order.read(store),
                |world, ready| {
                    if let Ok(ready) = ready {
                        world.resource_mut::<FarViews>().take_answers(ready);
                    }
                },
            );
        }
    }
}

impl Listener {
    /// How many columns may be chosen and not sent.
    fn columns_ahead(&self) -> usize {
        if self.wish.bytes_per_second == 0 {
            return 0;
        }
        let columns = self.budget.in_time(AHEAD) as f64 / self.average_bytes;
        (columns as usize).clamp(*AHEAD_COLUMNS.start(), *AHEAD_COLUMNS.end())
    }
}

impl Place {
    /// Takes in what was read, in the order of the claims; in lockstep exactly what is due in this pass.
    fn take_due(&mut self, pass: Option<u64>) {
        let is_due = |order: &Order| {
            let has_waited = pass.is_none_or(|pass| order.ordered + LOCKSTEP_LATENCY <= pass);
            order.answers.is_some() && has_waited
        };
        while self.orders.front().is_some_and(is_due) {
            let answers = self.orders.pop_front().and_then(|order| order.answers);
            self.ready.extend(answers.into_iter().flatten());
        }
    }
}

impl Saves {
    /// What a column looks like, if the store may not know it yet.
    pub(super) fn unwritten_summary(&self, dimension: DimensionId, column: ColumnPos) -> Option<Arc<ColumnSummary>> {
        self.unwritten_batches().find_map(|batch| batch.summaries.get(&(dimension, column)).cloned())
    }
}

pub(crate) fn set_far_view(
    In((listener, life, wish)): In<(Entity, u64, FarWish)>,
    mut views: ResMut<FarViews>,
    mut dimensions: ResMut<Dimensions>,
    clock: Res<Clock>,
) {
    views.set(listener, life, wish, &mut dimensions, clock.now);
}

pub(crate) fn remove_far_view(
    In(listener): In<Entity>,
    mut views: ResMut<FarViews>,
    mut dimensions: ResMut<Dimensions>,
) {
    views.remove(listener, &mut dimensions);
}

/// The main world has taken so many messages of this life of a far view.
pub(crate) fn note_taken(In((listener, life, updates)): In<(Entity, u64, usize)>, mut views: ResMut<FarViews>) {
    views.taken(listener, life, updates);
}
