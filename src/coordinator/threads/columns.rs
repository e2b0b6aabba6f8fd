//! Pools for generating and loading columns, and the orders that no thread has begun.

use crate::coordinator::threads::exchange::{Event, Notifier};
use crate::simulation::{ColumnError, ColumnSource, FetchedColumn, LoadedColumn};
use crate::space::{BatchPos, ColumnPos, DimensionId, HeightSet};
use crate::storage::WorldStore;
use crate::work::panic_message;
use bevy::log::debug_span;
use bevy::tasks::TaskPool;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// An order of columns.
pub struct ColumnOrder {
    pub claim: u64,
    /// The source of their dimension.
    pub ground: Arc<ColumnSource>,
    pub batch: BatchPos,
    pub columns: Vec<ColumnPos>,
    pub source: Source,
    /// `true` if it counts as generation.
    pub generates: bool,
    pub urgency: Urgency,
}

/// The source of ordered columns.
#[derive(Clone)]
pub enum Source {
    /// Stored columns are read. Damaged chunks are generated again if that is allowed.
    Store,
    /// Stored columns are read, and generated at these block heights.
    Extend(HeightSet),
    /// New columns are generated.
    Generator,
    /// In a sparse dimension, the stored chunks of these slabs are read, and the others generated if that is allowed.
    Slabs { heights: HeightSet, may_generate: bool },
}

pub struct ColumnThreads {
    generation: TaskPool,
    loading: TaskPool,
    /// Orders that no thread has begun.
    to_generate: OrderQueue,
    to_load: OrderQueue,
    notifier: Notifier,
    store: Arc<WorldStore>,
}

impl ColumnThreads {
    pub(super) fn new(generation: TaskPool, loading: TaskPool, notifier: Notifier, store: Arc<WorldStore>) -> Self {
        Self {
            generation,
            loading,
            to_generate: OrderQueue::default(),
            to_load: OrderQueue::default(),
            notifier,
            store,
        }
    }

    /// Drops all orders that have not begun.
    pub fn clear(&self) {
        self.to_generate.clear();
        self.to_load.clear();
    }

    /// Updates the orders after viewers of a dimension moved. Returns the orders that are too far now and have not begun.
    pub fn revise(&self, dimension: DimensionId, distance: impl Fn(&ColumnOrder) -> f64) -> Vec<ColumnOrder> {
        let mut far = self.to_load.revise(dimension, &distance);
        far.extend(self.to_generate.revise(dimension, distance));
        far
    }

    /// Starts an order; an event reports when its columns are ready.
    pub fn order(&self, order: ColumnOrder) {
        let (notifier, store) = (self.notifier.clone(), self.store.clone());
        let (pool, queue) = match order.source {
            Source::Store => (&self.loading, self.to_load.clone()),
            Source::Extend(_) | Source::Generator | Source::Slabs { .. } => {
                (&self.generation, self.to_generate.clone())
            }
        };
        queue.push(order);
        pool.spawn(async move {
            // Takes the nearest order by now, instead of the one that this task was made for; none if one was taken back.
            let Some(order) = queue.pop() else { return };
            notifier.send(Event::ColumnsReady(order.fill(&store)));
        })
        .detach();
    }
}

impl Drop for ColumnThreads {
    fn drop(&mut self) {
        self.clear();
    }
}

impl ColumnOrder {
    pub fn dimension(&self) -> DimensionId {
        self.ground.dimension
    }

    /// Returns `true` if part of it may be generated.
    pub fn may_generate(&self) -> bool {
        !matches!(self.source, Source::Store | Source::Slabs { may_generate: false, .. })
    }

    /// Loads or generates its columns.
    fn fill(self, store: &WorldStore) -> ColumnsReady {
        let _span = debug_span!("columns", batch = ?self.batch, generated = self.generates).entered();
        let ground = &self.ground;
        // New columns are read only for entities that went there before the ground existed.
        let heights = match self.source {
            Source::Store | Source::Extend(_) => ground.chunk_heights.clone(),
            Source::Generator | Source::Slabs { .. } => 0..0,
        };
        let read = load(store, ground, self.batch, self.columns, heights).into_iter();
        // Columns that go straight to the store need no light.
        let is_seen = self.urgency != Urgency::WHEN_IDLE;
        let ready = |read: LoadedColumn| self.source.finish(ground, read, is_seen);
        let columns = read.map(|(column, read)| (column, read.and_then(ready))).collect();
        ColumnsReady { claim: self.claim, dimension: ground.dimension, generated: self.generates, columns }
    }
}

impl Source {
    /// Completes a column after the read that every order needs.
    fn finish(&self, ground: &ColumnSource, read: LoadedColumn, is_lit: bool) -> Result<FetchedColumn, ColumnError> {
        let began = Instant::now();
        let mut fetched = self.fetch(ground, read)?;
        if is_lit {
            let column = &fetched.loaded.column;
            fetched.loaded.light = caught(column.pos(), || Ok(ground.light_of(column)))?;
        }
        fetched.made_in = began.elapsed();
        Ok(fetched)
    }

    fn fetch(&self, ground: &ColumnSource, read: LoadedColumn) -> Result<FetchedColumn, ColumnError> {
        let column = read.column.pos();
        match self {
            Self::Store => Ok(read.into()),
            Self::Extend(heights) => caught(column, || ground.extend(read, heights.clone())),
            Self::Generator => {
                let made = caught(column, || ground.make(column, ground.heights.clone()))?;
                Ok(LoadedColumn { entities: read.entities, ..made.into() }.into())
            }
            Self::Slabs { heights, may_generate } => {
                let mut fetched = caught(column, || ground.gather(column, heights, *may_generate))?;
                fetched.loaded.entities = read.entities;
                Ok(fetched)
            }
        }
    }
}

/// Runs the game's code and turns a panic into an error.
fn caught<T>(column: ColumnPos, work: impl FnOnce() -> Result<T, ColumnError>) -> Result<T, ColumnError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|payload| Err(ColumnError::Panicked { column, message: panic_message(&*payload) }))
}

fn load(
    store: &WorldStore,
    ground: &ColumnSource,
    batch: BatchPos,
    columns: Vec<ColumnPos>,
    chunk_heights: Range<i64>,
) -> Vec<(ColumnPos, Result<LoadedColumn, ColumnError>)> {
    let Some(&first) = columns.first() else { return Vec::new() };
    let load_batch = |store: &WorldStore| store.load_batch(ground.dimension, batch, &columns, chunk_heights.clone());
    let read = || match columns[..] {
        [column] => ground.read_repaired(store, column, load_batch),
        _ => load_batch(store),
    };
    let failed = |source| ColumnError::Store { column: first, source };
    match caught(first, || read().map_err(failed)) {
        Ok(loaded) => loaded.into_iter().map(|loaded| (loaded.column.pos(), Ok(loaded))).collect(),
        // One damaged chunk must not take its 15 neighbours with it.
        Err(_) if columns.len() > 1 => columns
            .into_iter()
            .flat_map(|column| load(store, ground, batch, vec![column], chunk_heights.clone()))
            .collect(),
        Err(error) => vec![(first, Err(error))],
    }
}

/// The columns of an order, or the reasons why they failed.
pub struct ColumnsReady {
    pub claim: u64,
    pub dimension: DimensionId,
    pub generated: bool,
    pub columns: Vec<(ColumnPos, Result<FetchedColumn, ColumnError>)>,
}

/// The urgency of an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Urgency {
    /// The distance from the nearest viewer, in columns.
    pub distance: f64,
    /// The distance when it was ordered; `None` if it may not be taken back.
    pub ordered_at: Option<f64>,
}

impl Urgency {
    /// The urgency of an order that is awaited wherever viewers are.
    pub const AT_ONCE: Self = Self { distance: 0.0, ordered_at: None };
    /// The urgency of an order that is not awaited.
    pub const WHEN_IDLE: Self = Self { distance: f64::INFINITY, ordered_at: None };

    /// The urgency of an order at this distance from a viewer.
    pub fn at(distance: f64) -> Self {
        Self { distance, ordered_at: Some(distance) }
    }
}

/// How many columns farther from the viewers an order may be than at first before it is taken back.
const SLACK: f64 = 4.0;

/// Orders that no thread has begun. A thread takes the nearest order at the last moment, and orders that are far by then can
/// be taken back.
#[derive(Clone, Default)]
pub struct OrderQueue(Arc<Mutex<Vec<ColumnOrder>>>);

impl OrderQueue {
    fn orders(&self) -> MutexGuard<'_, Vec<ColumnOrder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, order: ColumnOrder) {
        self.orders().push(order);
    }

    /// The nearest order; the oldest of equally near ones.
    pub fn pop(&self) -> Option<ColumnOrder> {
        let mut orders = self.orders();
        let nearer = |(_, a): &(usize, &ColumnOrder), (_, b): &(usize, &ColumnOrder)| {
            a.urgency.distance.total_cmp(&b.urgency.distance).then(a.claim.cmp(&b.claim))
        };
        let (place, _) = orders.iter().enumerate().min_by(nearer)?;
        Some(orders.swap_remove(place))
    }

    /// Updates the distances after viewers of a dimension moved; `distance` returns the new distance of an order. Returns
    /// the orders that were nearer when they were made, oldest first, and drops them.
    pub fn revise(&self, dimension: DimensionId, distance: impl Fn(&ColumnOrder) -> f64) -> Vec<ColumnOrder> {
        let mut orders = self.orders();
        let is_too_far = |order: &mut ColumnOrder| {
            let Some(ordered_at) = order.urgency.ordered_at.filter(|_| order.dimension() == dimension) else {
                return false;
            };
            order.urgency.distance = distance(order);
            order.urgency.distance > ordered_at + SLACK
        };
        let mut far: Vec<_> = orders.extract_if(.., |order| is_too_far(order)).collect();
        far.sort_unstable_by_key(|order| order.claim);
        far
    }

    /// Drops all orders.
    pub fn clear(&self) {
        self.orders().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::Void;
    use crate::simulation::ColumnSource;
    use crate::space::{BatchPos, ColumnPos};
    use std::sync::Weak;

    fn order(claim: u64, dimension: u64, urgency: Urgency) -> ColumnOrder {
        let ground = ColumnSource::new(DimensionId(dimension), 0..16, Arc::new(Void), Arc::default(), Weak::new());
        let ground = Arc::new(ground);
        let (batch, columns) = (BatchPos::new(0, 0), vec![ColumnPos::new(claim as i64, 0)]);
        ColumnOrder { claim, ground, batch, columns, source: Source::Store, generates: false, urgency }
    }

    fn claims(orders: impl IntoIterator<Item = ColumnOrder>) -> Vec<u64> {
        orders.into_iter().map(|order| order.claim).collect()
    }

    #[test]
    fn the_nearest_at_that_moment_is_taken() {
        let queue = OrderQueue::default();
        for (claim, distance) in [(1, 5.0), (2, 3.0), (3, 9.0), (4, 3.0)] {
            queue.push(order(claim, 0, Urgency::at(distance)));
        }
        queue.push(order(5, 0, Urgency::WHEN_IDLE));
        queue.push(order(6, 0, Urgency::AT_ONCE));
        assert_eq!(claims(std::iter::from_fn(|| queue.pop())), [6, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn only_orders_that_became_far_are_cancelled() {
        let queue = OrderQueue::default();
        for (claim, distance) in [(3, 6.0), (1, 1.0), (2, 20.0)] {
            queue.push(order(claim, 0, Urgency::at(distance)));
        }
        queue.push(order(4, 0, Urgency::AT_ONCE));
        queue.push(order(5, 1, Urgency::at(1.0)));
        // The viewer is 20 columns farther along x.
        let distance = |order: &ColumnOrder| (order.columns[0].x - 20).abs() as f64;
        assert_eq!(claims(queue.revise(DimensionId(0), distance)), [1, 3]);
        assert_eq!(claims(std::iter::from_fn(|| queue.pop())), [4, 5, 2]);
    }
}
