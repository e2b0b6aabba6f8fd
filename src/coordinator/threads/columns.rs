//! Pools for generation and loading: columns that are wanted, and what came of it.

use super::ready::ColumnsReady;
use crate::coordinator::exchange::{Event, Teller};
use crate::coordinator::streaming::order_queue::{OrderQueue, Urgency};
use crate::simulation::{ColumnError, ColumnSource, FetchedColumn, LoadedColumn};
use crate::space::{BatchPos, ColumnPos, DimensionId, HeightSet};
use crate::storage::WorldStore;
use crate::work::panic_message;
use bevy::tasks::TaskPool;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Columns that are wanted.
pub struct ColumnOrder {
    pub claim: u64,
    /// Their dimension's.
    pub ground: Arc<ColumnSource>,
    pub batch: BatchPos,
    pub columns: Vec<ColumnPos>,
    pub source: Source,
    /// It counts among what is being generated.
    pub generates: bool,
    pub urgency: Urgency,
}

/// Where columns come from.
#[derive(Clone)]
pub enum Source {
    /// They are stored: they are read, and chunks made anew that are damaged, if they may be.
    Store,
    /// They are new: they are generated.
    Generator,
    /// Of a sparse dimension: what of these slabs is stored is read, the rest is generated, if it may be.
    Slabs { heights: HeightSet, may_generate: bool },
}

/// The pools.
pub struct ColumnThreads {
    generation: TaskPool,
    loading: TaskPool,
    /// Orders that no thread has begun.
    to_generate: OrderQueue,
    to_load: OrderQueue,
    teller: Teller,
    store: Arc<WorldStore>,
}

impl ColumnThreads {
    pub(super) fn new(generation: TaskPool, loading: TaskPool, teller: Teller, store: Arc<WorldStore>) -> Self {
        Self { generation, loading, to_generate: OrderQueue::default(), to_load: OrderQueue::default(), teller, store }
    }

    /// Nothing that was ordered is begun any more.
    pub fn clear(&self) {
        self.to_generate.clear();
        self.to_load.clear();
    }

    /// Viewers of a dimension moved: gives back what is too far now and was not begun.
    pub fn revise(&self, dimension: DimensionId, distance: impl Fn(&ColumnOrder) -> f64) -> Vec<ColumnOrder> {
        let mut far = self.to_load.revise(dimension, &distance);
        far.extend(self.to_generate.revise(dimension, distance));
        far
    }

    /// Has columns generated or loaded; an event tells when they are there.
    pub fn order(&self, order: ColumnOrder) {
        let (teller, store) = (self.teller.clone(), self.store.clone());
        let (pool, queue) = match order.source {
            Source::Store => (&self.loading, self.to_load.clone()),
            Source::Generator | Source::Slabs { .. } => (&self.generation, self.to_generate.clone()),
        };
        queue.push(order);
        pool.spawn(async move {
            // Not the order that this task was made for, but the nearest there is by now; none if one was taken back.
            let Some(order) = queue.pop() else { return };
            teller.send(Event::ColumnsReady(order.fill(&store)));
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

    /// Whether something of it may be generated.
    pub fn may_generate(&self) -> bool {
        !matches!(self.source, Source::Store | Source::Slabs { may_generate: false, .. })
    }

    /// Loads or generates its columns.
    fn fill(self, store: &WorldStore) -> ColumnsReady {
        let ground = &self.ground;
        // Entities may have gone to ground that was not there yet: of new columns only those are read.
        let heights = if let Source::Store = self.source { ground.chunk_heights.clone() } else { 0..0 };
        let read = load(store, ground, self.batch, self.columns, heights).into_iter();
        let ready = |read: LoadedColumn| self.source.finish(ground, read);
        let columns = read.map(|(column, read)| (column, read.and_then(ready))).collect();
        ColumnsReady { claim: self.claim, dimension: ground.dimension, generated: self.generates, columns }
    }
}

impl Source {
    /// A column of which that is read which is always read.
    fn finish(&self, ground: &ColumnSource, read: LoadedColumn) -> Result<FetchedColumn, ColumnError> {
        let column = read.column.pos();
        match self {
            Self::Store => Ok(read.into()),
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

/// What the game's code says, also if it panics.
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
