//! Orders the nearest work: over all viewers of a dimension, over loading and generating, and over the dimensions by turns.

#[cfg(test)]
mod tests;

use crate::coordinator::demand::Demand;
use crate::coordinator::demand::generation::Turns;
use crate::coordinator::demand::outlook::{Lead, Near};
use crate::coordinator::demand::tickets::ViewerState;
use crate::coordinator::demand::viewer_caps::ViewerCaps;
use crate::coordinator::dimension::{DimensionBook, Land, OpenDimension};
use crate::coordinator::messages::why::Ticket;
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::coordinator::stream::orders::{Orders, Room};
use crate::generation::DistanceGraph;
use crate::space::{BatchPos, ColumnPos, DimensionId};
use bevy::prelude::{Res, ResMut};
use std::cmp::{Ordering, Reverse};
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

/// The work for a batch. Of equally near batches, those to be loaded come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Load,
    Generate,
}

/// The data that decides the next order of a dimension.
struct Field<'a> {
    viewers: &'a mut BTreeMap<Ticket, ViewerState>,
    resident: &'a mut DistanceGraph,
    stored: &'a mut DistanceGraph,
    turns: &'a Turns,
    caps: &'a ViewerCaps,
    heading_weight: f64,
    now: Duration,
}

/// Work of one kind for one viewer. Its distance is a lower bound.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    distance: f64,
    ticket: Ticket,
    kind: Kind,
    /// Compared before the distance.
    rank: u64,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let sooner = self.rank.cmp(&other.rank).then(self.distance.total_cmp(&other.distance));
        sooner.then_with(|| (self.ticket, self.kind).cmp(&(other.ticket, other.kind)))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

impl Field<'_> {
    /// The possibly nearest work of each of these viewers.
    fn candidates(&self, tickets: &[Ticket]) -> impl Iterator<Item = Candidate> {
        let viewers = tickets.iter().filter_map(|ticket| Some((ticket, self.viewers.get(ticket)?)));
        viewers.flat_map(|(ticket, viewer)| {
            [Kind::Load, Kind::Generate].into_iter().filter_map(|kind| {
                let outlook = match kind {
                    Kind::Load => &viewer.to_load,
                    Kind::Generate => &viewer.to_generate,
                };
                // Most viewers have all their ground, wherever they are heading.
                outlook.at_least(None)?;
                let distance = outlook.at_least(self.lead(viewer, kind).as_ref())?;
                Some(Candidate { distance, ticket: *ticket, kind, rank: self.turns.rank(viewer.served) })
            })
        })
    }

    fn lead(&self, viewer: &ViewerState, kind: Kind) -> Option<Lead> {
        let weight = self.heading_weight;
        if weight == 0.0 {
            return None;
        }
        let radius = match kind {
            Kind::Load => viewer.radii.load,
            Kind::Generate => viewer.radii.generation,
        };
        let center = viewer.heading.ahead(viewer.center, self.now, radius / 2)?;
        Some(Lead { center, weight })
    }

    /// Returns `true` if the viewer may have more ground of this kind now.
    fn is_served(&self, ticket: Ticket, kind: Kind) -> bool {
        let Some(viewer) = self.viewers.get(&ticket) else { return false };
        match kind {
            Kind::Load => self.caps.may_load(ticket, viewer.radii),
            Kind::Generate => self.caps.may_generate(ticket, viewer.radii),
        }
    }

    /// The nearest work of a viewer.
    fn look(&mut self, ticket: Ticket, kind: Kind) -> Option<Near> {
        let lead = self.lead(self.viewers.get(&ticket)?, kind);
        let viewer = self.viewers.get_mut(&ticket)?;
        match kind {
            Kind::Load => viewer.to_load.nearest(self.resident, lead.as_ref()),
            Kind::Generate => viewer.to_generate.nearest(self.stored, lead.as_ref()),
        }
    }

    /// The first work of all. Searches only where it may be.
    fn first(&mut self, heap: &mut BinaryHeap<Reverse<Candidate>>, may_generate: bool) -> Option<Choice> {
        loop {
            let mut first = heap.peek_mut()?;
            let Reverse(Candidate { distance, ticket, kind, .. }) = &mut *first;
            let (ticket, kind) = (*ticket, *kind);
            let has_turn = (kind == Kind::Load || may_generate) && self.is_served(ticket, kind);
            let near = if has_turn { self.look(ticket, kind) } else { None };
            match near {
                None => drop(PeekMut::pop(first)),
                Some(near) if near.distance <= *distance => return Some(Choice { ticket, kind, near }),
                Some(near) => *distance = near.distance,
            }
        }
    }
}

/// The next order and its viewer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Choice {
    ticket: Ticket,
    kind: Kind,
    near: Near,
}

/// The next work of one dimension's viewers, in one pass.
struct Candidates {
    dimension: DimensionId,
    tickets: Vec<Ticket>,
    by_distance: BinaryHeap<Reverse<Candidate>>,
}

impl Candidates {
    fn new(dimension: &mut OpenDimension) -> Self {
        let tickets =
            dimension.demand.wanting.take().unwrap_or_else(|| dimension.demand.viewers.keys().copied().collect());
        let candidates = Self::of(dimension.id, &dimension.field(), &tickets);
        dimension.demand.wanting = Some(candidates.tickets.clone());
        candidates
    }

    /// The work of these viewers.
    fn of(dimension: DimensionId, field: &Field, tickets: &[Ticket]) -> Self {
        let found: Vec<_> = field.candidates(tickets).map(|candidate| Candidate { rank: 0, ..candidate }).collect();
        let mut tickets: Vec<_> = found.iter().map(|candidate| candidate.ticket).collect();
        tickets.dedup();
        Self { dimension, tickets, by_distance: found.into_iter().map(Reverse).collect() }
    }

    /// Chooses the next viewer and its work.
    fn choose(&mut self, field: &mut Field, may_generate: bool) -> Option<Choice> {
        match field.turns.is_round() {
            // This turn has an order of its own.
            true => field.first(&mut field.candidates(&self.tickets).map(Reverse).collect(), may_generate),
            false => field.first(&mut self.by_distance, may_generate),
        }
    }
}

/// Orders as many columns as may be in flight, unless the store is behind. The dimension with the least in flight comes first
/// each time, and of equal ones the one that has waited longest, so that none starves another.
pub fn order_nearest(
    mut dimensions: ResMut<DimensionBook>,
    mut orders: ResMut<Orders>,
    saves: Res<Saves>,
    mut publisher: ResMut<Publisher>,
) {
    let jobs = dimensions.in_flight_for_jobs();
    if saves.is_behind() || orders.room(jobs).load == 0 {
        return;
    }
    let rested = dimensions.open.values_mut().filter(|open| open.orders.rest_until <= open.time.real_now);
    let mut candidates: Vec<_> = rested.map(Candidates::new).collect();
    loop {
        let room = orders.room(jobs);
        let order =
            |id: DimensionId| dimensions.open.get(&id).map(|open| (open.orders.in_flight, open.orders.last_claim));
        let first = (0..candidates.len()).min_by_key(|place| order(candidates[*place].dimension));
        let Some(place) = first.filter(|_| room.load > 0) else { return };
        let dimension = dimensions.open.get_mut(&candidates[place].dimension);
        let has_ordered = dimension
            .is_some_and(|dimension| dimension.order_next(&mut candidates[place], room, &mut orders, &mut publisher));
        if !has_ordered {
            // There is no room for any work of this dimension.
            candidates.remove(place);
        }
    }
}

impl OpenDimension {
    /// Orders the nearest work of the dimension. Returns `false` if there is none.
    fn order_next(
        &mut self,
        candidates: &mut Candidates,
        room: Room,
        orders: &mut Orders,
        publisher: &mut Publisher,
    ) -> bool {
        let allowance = self.orders.generation.allowance(self.time.real_now);
        let may_generate = room.generate > 0 && allowance > 0;
        let Some(Choice { ticket, kind, near }) = candidates.choose(&mut self.field(), may_generate) else {
            return false;
        };
        match kind {
            // More ground is needed only where a viewer loads it.
            _ if !self.may_have(near.batch.column(0)) => self.await_plot(near.batch, kind == Kind::Load),
            Kind::Load => self.order_loading(ticket, near, allowance, orders, publisher),
            Kind::Generate => self.order_generation(ticket, near, allowance, orders, publisher),
        }
        true
    }

    /// Orders loading of the stored columns of the batch, and of more slabs of resident ones. The others are claimed, and
    /// wait until they are generated.
    fn order_loading(
        &mut self,
        ticket: Ticket,
        near: Near,
        allowance: usize,
        orders: &mut Orders,
        publisher: &mut Publisher,
    ) {
        let Some(work) = self.land.resident.claim(near.batch, near.center) else { return };
        let nearest = work.first();
        let is_loaded_along = self.loaders(near.batch);
        let mut stored = Vec::with_capacity(work.len());
        // Slabs of stored columns may have to be generated.
        let generates = !self.orders.generation.settings.paused;
        let mut slabs = 0;
        for column in work {
            // The rest of the batch would only take memory.
            if !is_loaded_along(column) {
                self.land.resident.release(column);
            } else if self.columns.is_resident(column) {
                // Columns in any other state come here again when that state ends.
                self.land.resident.mark_completed(column);
                let may_order = self.columns.may_lack_slabs(column);
                if may_order && generates && slabs == allowance {
                    self.orders.revised.insert(column);
                } else if may_order {
                    slabs += 1;
                    stored.push(column);
                }
            } else if self.land.stored.is_completed(column) {
                self.land.resident.mark_completed(column);
                stored.push(column);
            }
        }
        if generates {
            self.orders.generation.bucket.take(slabs);
        }
        if !stored.is_empty() {
            self.demand.caps.note_loaded(ticket, stored.len());
            self.serve(nearest);
        }
        orders.take_back_or_order(self, near.batch, stored, publisher);
    }

    /// Orders generation of as much of the batch as is allowed. Held columns go to their region, the others only to the store.
    fn order_generation(
        &mut self,
        ticket: Ticket,
        near: Near,
        allowance: usize,
        orders: &mut Orders,
        publisher: &mut Publisher,
    ) {
        let Some(work) = self.land.stored.claim(near.batch, near.center) else { return };
        let nearest = work.first();
        let takes_rim = self.demand.viewers.get(&ticket).is_some_and(ViewerState::generates_further);
        let is_loaded_along = self.loaders(near.batch);
        let (mut awaited, mut others) = (Vec::new(), Vec::new());
        for column in work {
            // Its claim ends with the order that is out.
            if self.columns.is_under_way(column) {
                continue;
            }
            let is_wanted = takes_rim || is_loaded_along(column);
            if !is_wanted || awaited.len() + others.len() >= allowance {
                self.land.stored.release(column);
            } else if self.land.resident.is_claimed(column) {
                self.land.resident.mark_completed(column);
                awaited.push(column);
            } else {
                others.push(column);
            }
        }
        let ordered = awaited.len() + others.len();
        self.orders.generation.bucket.take(ordered);
        if ordered > 0 {
            self.demand.caps.note_generated(ticket, ordered);
            self.serve(nearest);
        }
        orders.take_back_or_order(self, near.batch, awaited, publisher);
        orders.order_nearby_for_store(self, near.batch, others);
    }
}

impl OpenDimension {
    /// Returns a test for whether a viewer loads a column of the batch along with others of the batch.
    fn loaders(&self, batch: BatchPos) -> impl Fn(ColumnPos) -> bool + use<> {
        /// More than the diagonal of a batch.
        const BATCH: u32 = 5;
        let corner = batch.column(0);
        let loader = |viewer: &ViewerState| {
            let reach = viewer.takes_along();
            let is_near = corner.distance_squared(viewer.center) <= u128::from(reach + BATCH).pow(2);
            is_near.then_some((viewer.center, u128::from(reach).pow(2)))
        };
        let loaders: Vec<_> = self.demand.viewers.values().filter_map(loader).collect();
        move |column| loaders.iter().any(|(center, squared)| column.distance_squared(*center) <= *squared)
    }

    fn field(&mut self) -> Field<'_> {
        let Demand { viewers, caps, .. } = &mut self.demand;
        let (Land { resident, stored, .. }, generation) = (&mut self.land, &mut self.orders.generation);
        let now = &self.time.real_now;
        let (turns, heading_weight) = (&generation.turns, generation.heading_weight());
        Field { viewers, resident, stored, turns, caps, heading_weight, now: *now }
    }

    /// Notes an order, which serves the viewers that have this column in range.
    fn serve(&mut self, column: Option<ColumnPos>) {
        let (turn, Some(column)) = (self.orders.generation.turns.end_turn(), column) else { return };
        self.demand
            .viewers
            .values_mut()
            .filter(|viewer| viewer.reaches(column))
            .for_each(|viewer| viewer.served = turn);
    }
}
