//! Pools for generating and loading columns.

use super::ready::ColumnsReady;
use crate::coordinator::threads::exchange::{Event, Notifier};
use crate::coordinator::threads::order_queue::{OrderQueue, Urgency};
use crate::simulation::{ColumnError, ColumnSource, FetchedColumn, LoadedColumn};
use crate::space::{BatchPos, ColumnPos, DimensionId, HeightSet};
use crate::storage::WorldStore;
use crate::work::panic_message;
use bevy::log::debug_span;
use bevy::tasks::TaskPool;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

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
        let mut fetched = self.fetch(ground, read)?;
        if is_lit {
            let column = &fetched.loaded.column;
            fetched.loaded.light = caught(column.pos(), || Ok(ground.light_of(column)))?;
        }
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
