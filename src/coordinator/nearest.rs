//! Orders the nearest work: over all viewers of a dimension, over what is to be loaded and what is to be generated, and
//! over the dimensions by turns.

use super::collect::Desk;
use super::dimension::{Dimension, Holder, ViewerState};
use super::turns::Want;
use crate::generation::DistanceGraph;
use crate::space::{BatchPos, ColumnPos, DimensionId};
use std::time::Duration;

/// Columns for loading that may be in flight beside those that are generated, at least: what is stored does not wait for
/// a slow generator.
const LEAST_LOADING: usize = 16;

/// How many columns more may be ordered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub load: usize,
    pub generate: usize,
}

/// Whether a batch is to be loaded or generated; of equally near ones those to be loaded come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Load,
    Generate,
}

/// The nearest work of one kind for one viewer.
#[derive(Clone, Copy, Debug)]
struct Near {
    batch: BatchPos,
    /// In columns; work ahead of a viewer that moves is nearer than it is.
    distance: f64,
    /// The place that it is near to.
    center: ColumnPos,
}

/// What one viewer wants next.
struct Candidate {
    holder: Holder,
    load: Option<Near>,
    generate: Option<Near>,
}

/// What the viewers of one dimension want next.
struct Candidates {
    dimension: DimensionId,
    of: Vec<Candidate>,
    /// Columns that may be generated now.
    allowance: usize,
}

impl Candidate {
    fn best(&self, may_generate: bool) -> Option<(Kind, Near)> {
        let load = self.load.map(|near| (Kind::Load, near));
        let generate = self.generate.filter(|_| may_generate).map(|near| (Kind::Generate, near));
        let nearer = |a: &(Kind, Near), b: &(Kind, Near)| a.1.distance.total_cmp(&b.1.distance).then(a.0.cmp(&b.0));
        load.into_iter().chain(generate).min_by(nearer)
    }

    /// Looks for the nearest work, of the kinds of which there may be some.
    fn look(&mut self, dimension: &mut Dimension, may_generate: bool, now: Duration) {
        let weight = dimension.generation.heading_weight();
        let Dimension { viewers, resident, stored, .. } = dimension;
        (self.load, self.generate) = (None, None);
        let Some(viewer) = viewers.get_mut(&self.holder) else { return };
        if !viewer.is_loaded {
            self.load = near(resident, viewer, viewer.radii.load, weight, now);
            viewer.is_loaded = self.load.is_none();
        }
        if !viewer.is_generated && may_generate {
            self.generate = near(stored, viewer, viewer.radii.generation, weight, now);
            viewer.is_generated = self.generate.is_none();
        }
    }
}

impl Candidates {
    fn new(dimension: &mut Dimension, now: Duration) -> Self {
        let allowance = dimension.generation.allowance(now);
        let holders: Vec<_> = dimension.viewers.keys().copied().collect();
        let mut of: Vec<_> =
            holders.into_iter().map(|holder| Candidate { holder, load: None, generate: None }).collect();
        of.iter_mut().for_each(|candidate| candidate.look(dimension, allowance > 0, now));
        of.retain(|candidate| candidate.load.is_some() || candidate.generate.is_some());
        Self { dimension: dimension.id, of, allowance }
    }

    fn has_work(&self, room: Room) -> bool {
        let may_generate = self.may_generate(room);
        self.of.iter().any(|candidate| candidate.best(may_generate).is_some())
    }

    fn may_generate(&self, room: Room) -> bool {
        room.generate > 0 && self.allowance > 0
    }

    /// Whose turn it is, and what is ordered for it.
    fn choose(&self, dimension: &mut Dimension, room: Room) -> Option<(Holder, Kind, Near)> {
        let may_generate = self.may_generate(room);
        let want = |candidate: &Candidate| {
            let (_, near) = candidate.best(may_generate)?;
            Some(Want { distance: near.distance, served: dimension.viewers.get(&candidate.holder)?.served })
        };
        let wants: Vec<_> = self.of.iter().map(want).collect();
        let chosen = self.of.get(dimension.generation.turns.choose(&wants)?)?;
        let (kind, near) = chosen.best(may_generate)?;
        Some((chosen.holder, kind, near))
    }

    /// Something of the batch was claimed: whoever wanted it looks again.
    fn refresh(&mut self, dimension: &mut Dimension, batch: BatchPos, now: Duration) {
        self.allowance = dimension.generation.allowance(now);
        let wants_it = |near: Option<Near>| near.is_some_and(|near| near.batch == batch);
        for candidate in &mut self.of {
            if wants_it(candidate.load) || wants_it(candidate.generate) {
                candidate.look(dimension, self.allowance > 0, now);
            }
        }
    }
}

impl Desk<'_> {
    /// Orders as much as may be in flight. The dimension with the least in flight comes first each time, of equal ones the
    /// one that has waited longest, so that none takes what another one needs.
    pub fn order_nearest(&mut self, ids: &[DimensionId]) {
        let now = self.clock.now;
        let candidates = |id: &DimensionId| Some(Candidates::new(self.dimensions.open.get_mut(id)?, now));
        let mut candidates: Vec<_> = ids.iter().filter_map(candidates).collect();
        loop {
            let room = self.room();
            let order = |id: DimensionId| self.dimensions.open.get(&id).map(|open| (open.in_flight, open.last_claim));
            let with_work = candidates.iter_mut().filter(|of| room.load > 0 && of.has_work(room));
            let Some(next) = with_work.min_by_key(|of| order(of.dimension)) else { return };
            let id = next.dimension;
            let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
            let Some((holder, kind, near)) = next.choose(dimension, room) else { return };
            match kind {
                Kind::Load => self.order_loading(id, near),
                Kind::Generate => self.order_generation(id, holder, near, next.allowance),
            }
            let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
            next.refresh(dimension, near.batch, now);
        }
    }

    /// How many columns more may be ordered: loading has a quarter more than generation.
    pub fn room(&self) -> Room {
        let limit = self.limit.columns();
        let with_loading = limit + (limit / 4).max(LEAST_LOADING);
        // Jobs wait for viewers, not viewers for jobs.
        let jobs = self.in_flight_for_pregenerations();
        let load = with_loading.saturating_sub(self.totals.in_flight.saturating_sub(jobs));
        let generating = self.totals.generating.saturating_sub(jobs);
        Room { load, generate: limit.saturating_sub(generating).min(load) }
    }

    /// Has what is stored of the batch loaded; the rest is claimed, and waits until it is generated.
    fn order_loading(&mut self, id: DimensionId, near: Near) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let Some(work) = dimension.resident.claim(near.batch, near.center) else { return };
        let nearest = work.columns.first();
        let mut stored = Vec::with_capacity(work.columns.len());
        for column in work.columns {
            // The rim of a batch that lies beyond every viewer would be let go as soon as it is there.
            if !dimension.is_held(column) {
                dimension.resident.release(column);
            } else if dimension.stored.is_completed(column) {
                dimension.resident.mark_completed(column);
                stored.push(column);
            } else {
                dimension.awaited.insert(column);
            }
        }
        if !stored.is_empty() {
            dimension.serve(nearest);
        }
        self.take_back_or_order(id, near.batch, stored);
    }

    /// Has as much of the batch generated as is allowed: what is awaited comes to its region, the rest is stored.
    fn order_generation(&mut self, id: DimensionId, holder: Holder, near: Near, allowance: usize) {
        let Some(dimension) = self.dimensions.open.get_mut(&id) else { return };
        let Some(work) = dimension.stored.claim(near.batch, near.center) else { return };
        let nearest = work.columns.first();
        let takes_rim = dimension.viewers.get(&holder).is_some_and(ViewerState::generates_further);
        let (mut awaited, mut others) = (Vec::new(), Vec::new());
        for column in work.columns {
            // Its claim ends with the order that is out.
            if dimension.is_under_way(column) {
                continue;
            }
            let is_wanted = takes_rim || dimension.is_held(column);
            if !is_wanted || awaited.len() + others.len() >= allowance {
                dimension.stored.release(column);
            } else if dimension.awaited.remove(&column) {
                dimension.resident.mark_completed(column);
                awaited.push(column);
            } else {
                others.push(column);
            }
        }
        let ordered = awaited.len() + others.len();
        dimension.generation.bucket.take(ordered);
        if ordered > 0 {
            dimension.serve(nearest);
        }
        self.take_back_or_order(id, near.batch, awaited);
        self.order_nearby_for_store(id, near.batch, others);
    }
}

impl Dimension {
    /// Something was ordered, which serves the viewers in whose range this column lies.
    fn serve(&mut self, column: Option<ColumnPos>) {
        let (turn, Some(column)) = (self.generation.turns.end_turn(), column) else { return };
        self.viewers.values_mut().filter(|viewer| viewer.reaches(column)).for_each(|viewer| viewer.served = turn);
    }
}

/// The work that is nearest to where the viewer is, or to where it is heading.
fn near(graph: &mut DistanceGraph, viewer: &ViewerState, radius: u32, weight: f64, now: Duration) -> Option<Near> {
    let (batch, squared) = graph.nearest_missing(viewer.center, radius)?;
    let here = Near { batch, distance: (squared as f64).sqrt(), center: viewer.center };
    if weight == 0.0 {
        return Some(here);
    }
    let Some(center) = viewer.heading.ahead(viewer.center, now, radius / 2) else { return Some(here) };
    let way = (center.distance_squared(viewer.center) as f64).sqrt();
    // So that what is found there lies in the viewer's range too.
    let radius = radius.saturating_sub(way.ceil() as u32);
    let Some((batch, squared)) = graph.nearest_missing(center, radius) else { return Some(here) };
    let distance = (squared as f64).sqrt() + way * (1.0 - weight);
    Some(if distance < here.distance { Near { batch, distance, center } } else { here })
}
