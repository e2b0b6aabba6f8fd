//! Orders of columns: their limit, their way to the threads, and the game's changes of how ground is generated.

use crate::coordinator::columns::ColumnState;
use crate::coordinator::demand::pacing::InFlightLimit;
use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::messages::generation::{DimensionGeneration, Pacing, RetryColumns};
use crate::coordinator::publish::Publisher;
use crate::coordinator::threads::columns::{ColumnOrder, ColumnThreads, Source, Urgency};
use crate::simulation::Viewer;
use crate::space::{BatchPos, ColumnPos, DimensionId, HeightSet};
use bevy::prelude::*;
use std::collections::BTreeMap;

/// The minimum of columns that may be loaded beside those that are generated, so that stored columns do not wait for a slow
/// generator.
const LEAST_LOADING: usize = 16;

/// How many more columns may be ordered.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub load: usize,
    pub generate: usize,
}

#[derive(Resource)]
pub struct Orders {
    pub threads: ColumnThreads,
    pub limit: InFlightLimit,
    /// The pass of each order, by its claim.
    pub claims: BTreeMap<u64, u64>,
    last_claim: u64,
    /// The number of the current pass.
    pub pass: u64,
    in_flight: usize,
    /// The number of columns in flight that are generated.
    generating: usize,
}

impl Orders {
    pub fn new(threads: ColumnThreads, limit: InFlightLimit) -> Self {
        Self { threads, limit, claims: BTreeMap::new(), last_claim: 0, pass: 0, in_flight: 0, generating: 0 }
    }

    /// The number of columns on order.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// How many more columns may be ordered: for loading a quarter more than for generation. Jobs wait for viewers, but
    /// viewers do not wait for jobs, so the `jobs` columns on order for jobs do not count.
    pub fn room(&self, jobs: usize) -> Room {
        let limit = self.limit.columns();
        let with_loading = limit + (limit / 4).max(LEAST_LOADING);
        let load = with_loading.saturating_sub(self.in_flight.saturating_sub(jobs));
        let generating = self.generating.saturating_sub(jobs);
        Room { load, generate: limit.saturating_sub(generating).min(load) }
    }

    /// Counts an order of so many columns, and returns its claim.
    fn begin(&mut self, dimension: &mut OpenDimension, columns: usize, generates: bool) -> u64 {
        self.last_claim += 1;
        self.claims.insert(self.last_claim, self.pass);
        self.in_flight += columns;
        self.generating += if generates { columns } else { 0 };
        dimension.orders.in_flight += columns;
        dimension.orders.last_claim = self.last_claim;
        self.last_claim
    }

    /// Notes that an order was answered or taken back. Its dimension may have been closed or reopened in the meantime, and
    /// not know the order.
    pub fn note_answered(
        &mut self,
        dimension: Option<&mut OpenDimension>,
        claim: u64,
        columns: usize,
        generates: bool,
    ) {
        self.claims.remove(&claim);
        self.in_flight = self.in_flight.saturating_sub(columns);
        if generates {
            self.generating = self.generating.saturating_sub(columns);
        }
        if let Some(dimension) = dimension {
            dimension.orders.in_flight = dimension.orders.in_flight.saturating_sub(columns);
        }
    }

    /// Orders columns of one batch to be loaded or generated.
    pub fn order(&mut self, dimension: &mut OpenDimension, batch: BatchPos, columns: Vec<ColumnPos>) {
        let (stored, new): (Vec<_>, Vec<_>) =
            columns.into_iter().partition(|column| dimension.land.stored.is_completed(*column));
        let loaded = dimension.by_source(stored, false).into_iter().map(|order| (order, false));
        let generated = dimension.by_source(new, true).into_iter().map(|order| (order, true));
        for ((columns, source), generates) in loaded.chain(generated) {
            // Parts that are read for a region with the blocks are not ordered by distance.
            let is_urgent = columns.iter().any(|column| dimension.columns.is_urgent(*column));
            let urgency = match columns.first().filter(|_| !is_urgent) {
                Some(first) => Urgency::at(dimension.distance(*first)),
                None => Urgency::AT_ONCE,
            };
            let claim = self.begin(dimension, columns.len(), generates);
            columns.iter().for_each(|column| dimension.columns.number(*column, claim));
            let ground = dimension.ground.clone();
            self.threads.order(ColumnOrder { claim, ground, batch, columns, source, generates, urgency });
        }
    }

    /// Hands columns that are marked as resident to the region of their place: recently departed ones as they are, the
    /// others when they are loaded or generated.
    pub fn take_back_or_order(
        &mut self,
        dimension: &mut OpenDimension,
        batch: BatchPos,
        wanted: Vec<ColumnPos>,
        publisher: &mut Publisher,
    ) {
        if wanted.is_empty() {
            return;
        }
        let mut missing = Vec::with_capacity(wanted.len());
        for column in wanted {
            if dimension.columns.is_in_region(column) {
                if dimension.columns.want(column) {
                    missing.push(column);
                }
                continue;
            }
            if let Err(error) = dimension.regions.regionizer.add_column(column) {
                // The resident columns and the regionizer's columns are the same, so this cannot happen.
                error!("{}: {error}", dimension.id);
                continue;
            }
            match dimension.departed().get(column) {
                Some(departed) => {
                    let blocks = departed.column.clone();
                    if dimension.deliver(departed) {
                        publisher.loaded(dimension.id, blocks);
                    }
                }
                None if dimension.columns.want(column) => missing.push(column),
                None => {}
            }
        }
        dimension.tell_owners();
        self.order(dimension, batch, missing);
    }

    /// Orders columns of one batch to be generated for the store without loading them, except those that are stored or in
    /// flight to the store. They wait until everything that viewers need has begun.
    pub fn order_for_store(&mut self, dimension: &mut OpenDimension, batch: BatchPos, columns: Vec<ColumnPos>) {
        // In a sparse dimension, the ground around sea level.
        let heights = dimension.ground.window(0, Viewer::DEFAULT_VERTICAL_RADIUS);
        self.order_apart(dimension, batch, columns, heights, Urgency::WHEN_IDLE);
    }

    /// Orders columns near to a viewer for the store.
    pub fn order_nearby_for_store(&mut self, dimension: &mut OpenDimension, batch: BatchPos, columns: Vec<ColumnPos>) {
        let Some(first) = columns.first().copied() else { return };
        let (heights, distance) = (dimension.slabs_to_generate(first), dimension.distance(first));
        self.order_apart(dimension, batch, columns, heights, Urgency::at(distance));
    }

    fn order_apart(
        &mut self,
        dimension: &mut OpenDimension,
        batch: BatchPos,
        mut columns: Vec<ColumnPos>,
        heights: HeightSet,
        urgency: Urgency,
    ) {
        columns
            .retain(|column| !dimension.land.stored.is_completed(*column) && !dimension.columns.is_under_way(*column));
        if columns.is_empty() {
            return;
        }
        let claim = self.begin(dimension, columns.len(), true);
        columns.iter().for_each(|column| dimension.columns.make(*column, claim));
        let source = match dimension.is_sparse() {
            true => Source::Slabs { heights, may_generate: true },
            false => Source::Generator,
        };
        let ground = dimension.ground.clone();
        self.threads.order(ColumnOrder { claim, ground, batch, columns, source, generates: true, urgency });
    }

    /// Takes back the orders of columns like these that no thread has begun.
    pub fn take_back(
        &mut self,
        dimension: &mut OpenDimension,
        is_to_go: impl Fn(ColumnPos) -> bool,
        publisher: &mut Publisher,
    ) {
        let distance = |order: &ColumnOrder| match order.columns.iter().any(|column| is_to_go(*column)) {
            true => f64::INFINITY,
            false => order.urgency.distance,
        };
        let taken = self.threads.revise(dimension.id, distance);
        taken.into_iter().for_each(|order| self.undo(dimension, order, publisher));
    }

    /// Takes back an order that no thread has begun, as if it had never been made.
    fn undo(&mut self, dimension: &mut OpenDimension, order: ColumnOrder, publisher: &mut Publisher) {
        let may_generate = order.may_generate();
        let ColumnOrder { claim, columns, generates, .. } = order;
        self.note_answered(Some(dimension), claim, columns.len(), generates);
        if generates {
            dimension.orders.generation.bucket.give_back(columns.len());
        }
        for column in columns {
            match dimension.columns.awaits(column, claim) {
                Some(ColumnState::Ordered(_)) => dimension.forget(column, publisher),
                Some(ColumnState::ForStore(_)) => dimension.columns.forget(column),
                // These are more slabs, which are ordered again if they are needed.
                Some(ColumnState::Owned(_)) => {
                    dimension.orders.generation.bucket.give_back(may_generate.into());
                    dimension.keep(column);
                }
                // A region fetched its blocks in the meantime, and waits for the rest.
                Some(_) => dimension.orders.to_complete.push(column),
                None => {}
            }
            if generates {
                dimension.release_generation(column);
            }
        }
    }
}

/// After moves of viewers, sorts the orders that no thread has begun by their new distances, and takes back those that are much
/// farther now, so that nearer ones take their place in this pass.
pub fn recall(mut dimensions: ResMut<DimensionBook>, mut orders: ResMut<Orders>, mut publisher: ResMut<Publisher>) {
    for dimension in dimensions.open.values_mut() {
        // In lockstep, thread timing must not decide which orders are taken back.
        if !std::mem::take(&mut dimension.demand.has_moved_viewers) || orders.limit.is_lockstep() {
            continue;
        }
        let is_paused = dimension.orders.generation.settings.paused;
        let distance = |order: &ColumnOrder| match is_paused && order.may_generate() {
            true => f64::INFINITY,
            false => order.columns.first().map_or(0.0, |column| dimension.distance(*column)),
        };
        let far = orders.threads.revise(dimension.id, distance);
        far.into_iter().for_each(|order| orders.undo(dimension, order, &mut publisher));
    }
}

impl OpenDimension {
    /// Groups the columns of an order by source; in a sparse dimension by the wanted slabs of each, and in others by the heights
    /// for which they were never generated.
    fn by_source(&self, columns: Vec<ColumnPos>, generates: bool) -> Vec<(Vec<ColumnPos>, Source)> {
        if columns.is_empty() {
            return Vec::new();
        }
        if !self.is_sparse() && generates {
            return vec![(columns, Source::Generator)];
        }
        let may_generate = generates || !self.orders.generation.settings.paused;
        let mut parts: Vec<(HeightSet, Vec<ColumnPos>)> = Vec::new();
        for column in columns {
            let wanted = match self.is_sparse() {
                true => self.slabs_to_order(column),
                // While generation is paused, they load as they are.
                false if !may_generate => HeightSet::new(),
                false => self.missing(column),
            };
            match parts.iter_mut().find(|(heights, _)| *heights == wanted) {
                Some((_, columns)) => columns.push(column),
                None => parts.push((wanted, vec![column])),
            }
        }
        let source = |heights: HeightSet| match self.is_sparse() {
            true => Source::Slabs { heights, may_generate },
            false if heights.is_empty() => Source::Store,
            false => Source::Extend(heights),
        };
        parts.into_iter().map(|(heights, columns)| (columns, source(heights))).collect()
    }
}

/// Sets how the ground of a dimension is generated.
pub(crate) fn set_generation(
    In((dimension, settings)): In<(DimensionId, DimensionGeneration)>,
    mut dimensions: ResMut<DimensionBook>,
) {
    let Some(dimension) = dimensions.open.get_mut(&dimension) else { return };
    dimension.orders.generation.settings = settings;
    if !settings.paused {
        dimension.orders.revised.extend(dimension.columns.resume());
    }
    // A pause takes back the orders that have not begun.
    dimension.demand.has_moved_viewers |= settings.paused;
}

/// Changes the limits of what may be in flight.
pub(crate) fn set_pacing(In(pacing): In<Pacing>, mut orders: ResMut<Orders>) {
    orders.limit.settings = pacing;
}

/// Retries failed columns.
pub(crate) fn retry_columns(In(retry): In<RetryColumns>, mut dimensions: ResMut<DimensionBook>) {
    let Some(dimension) = dimensions.open.get_mut(&retry.dimension) else { return };
    let columns: Vec<_> = match retry.column {
        Some(column) => vec![column],
        None => {
            let failed = dimension.columns.failed().map(|(column, _)| column);
            failed.chain(dimension.orders.generation.failures.forget_all()).collect()
        }
    };
    for column in columns {
        let failed = matches!(dimension.columns.get(column), Some(ColumnState::Failed(_)));
        if failed {
            dimension.columns.forget(column);
        }
        if dimension.orders.generation.failures.forget(column) || failed || retry.column.is_none() {
            dimension.reopen(column);
        }
    }
}
