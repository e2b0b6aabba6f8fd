//! Pools for generation and loading: columns that are wanted, and what came of it.

use super::Threads;
use crate::coordinator::exchange::Event;
use crate::coordinator::streaming::order_queue::Urgency;
use crate::generation::{self, GenerateRequest, Generator};
use crate::simulation::{ColumnError, FetchedColumn, LoadedColumn, RegionHome};
use crate::space::{BatchPos, ColumnPos, DimensionId, HeightSet};
use crate::storage::{EntityRecord, WorldStore};
use crate::work::panic_message;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Columns that are wanted.
pub(in crate::coordinator) struct ColumnOrder {
    pub claim: u64,
    pub dimension: DimensionId,
    pub batch: BatchPos,
    pub columns: Vec<ColumnPos>,
    pub source: Source,
    /// It counts among what is being generated.
    pub generates: bool,
    pub urgency: Urgency,
}

/// Where columns come from.
#[derive(Clone)]
pub(in crate::coordinator) enum Source {
    /// They are stored: their chunks at these chunk heights are read, and made anew if they are damaged and may be.
    Store(Range<i64>, Option<Arc<RegionHome>>),
    /// They are new: they are generated at these heights, in blocks.
    Generator(Arc<dyn Generator>, Range<i64>),
    /// Of a sparse dimension: what of these chunk heights is stored is read, the rest is generated, if it may be.
    Parts { home: Arc<RegionHome>, heights: HeightSet, may_generate: bool },
}

/// A column that is there.
pub(in crate::coordinator) struct ReadyColumn {
    pub loaded: LoadedColumn,
    /// In a sparse dimension: the chunk heights that are new.
    pub made: HeightSet,
    /// In a sparse dimension: those that are not stored, and were not to be generated.
    pub left_out: HeightSet,
}

impl From<LoadedColumn> for ReadyColumn {
    fn from(loaded: LoadedColumn) -> Self {
        Self { loaded, made: HeightSet::new(), left_out: HeightSet::new() }
    }
}

/// Columns that are there, or the reason why not.
pub(in crate::coordinator) struct ColumnsReady {
    pub claim: u64,
    pub dimension: DimensionId,
    pub generated: bool,
    pub columns: Vec<(ColumnPos, Result<ReadyColumn, ColumnError>)>,
}

impl Threads {
    /// Viewers of a dimension moved: gives back what is too far now and was not begun.
    pub fn revise(&self, dimension: DimensionId, distance: impl Fn(&ColumnOrder) -> f64) -> Vec<ColumnOrder> {
        let mut far = self.to_load.revise(dimension, &distance);
        far.extend(self.to_generate.revise(dimension, distance));
        far
    }

    /// Has columns generated or loaded; an event tells when they are there.
    pub fn order(&self, order: ColumnOrder) {
        let (sender, store, blocks) = (self.sender.clone(), self.store.clone(), self.template.blocks.clone());
        let (pool, queue) = match order.source {
            Source::Store(..) => (&self.loading, self.to_load.clone()),
            Source::Generator(..) | Source::Parts { .. } => (&self.generation, self.to_generate.clone()),
        };
        queue.push(order);
        pool.spawn(async move {
            // Not the order that this task was made for, but the nearest there is by now; none if one was taken back.
            let Some(order) = queue.pop() else { return };
            let ColumnOrder { claim, dimension, batch, columns, source, generates: generated, urgency: _ } = order;
            // Entities may have gone to ground that was not there yet: of new columns only those are read.
            let (heights, home) = match &source {
                Source::Store(heights, home) => (heights.clone(), home.as_deref()),
                _ => (0..0, None),
            };
            let read = load(&store, home, dimension, batch, columns, heights);
            let finish = |(column, read): (ColumnPos, Result<LoadedColumn, ColumnError>)| {
                let ready = read.and_then(|read| match &source {
                    Source::Store(..) => Ok(read.into()),
                    Source::Generator(generator, heights) => {
                        let request = GenerateRequest { column, heights: heights.clone(), blocks: &blocks };
                        Ok(generate(&**generator, &request, read.entities)?.into())
                    }
                    Source::Parts { home, heights, may_generate } => {
                        let gather = || home.ground.gather(column, heights, *may_generate);
                        let FetchedColumn { column, block_ticks, made } = caught(column, gather)?;
                        let left_out = column.loaded().map_or_else(HeightSet::new, |loaded| heights.difference(loaded));
                        let loaded = LoadedColumn { column, block_ticks, entities: read.entities };
                        Ok(ReadyColumn { loaded, made, left_out })
                    }
                });
                (column, ready)
            };
            let columns = read.into_iter().map(finish).collect();
            let _ = sender.send(Event::ColumnsReady(ColumnsReady { claim, dimension, generated, columns }));
        })
        .detach();
    }
}

fn generate(
    generator: &dyn Generator,
    request: &GenerateRequest,
    entities: Vec<EntityRecord>,
) -> Result<LoadedColumn, ColumnError> {
    let column = request.column;
    let failed = |source| ColumnError::Generate { column, source };
    let blocks = caught(column, || generation::generate(generator, request).map_err(failed))?;
    Ok(LoadedColumn { entities, ..blocks.into() })
}

/// What the game's code says, also if it panics.
fn caught<T>(column: ColumnPos, work: impl FnOnce() -> Result<T, ColumnError>) -> Result<T, ColumnError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|payload| Err(ColumnError::Panicked { column, message: panic_message(&*payload) }))
}

fn load(
    store: &WorldStore,
    home: Option<&RegionHome>,
    dimension: DimensionId,
    batch: BatchPos,
    columns: Vec<ColumnPos>,
    chunk_heights: Range<i64>,
) -> Vec<(ColumnPos, Result<LoadedColumn, ColumnError>)> {
    let Some(&first) = columns.first() else { return Vec::new() };
    let load_batch = |store: &WorldStore| store.load_batch(dimension, batch, &columns, chunk_heights.clone());
    let read = || match (&columns[..], home) {
        (&[column], Some(home)) => home.ground.read_repaired(store, column, load_batch),
        _ => load_batch(store),
    };
    let failed = |source| ColumnError::Store { column: first, source };
    match caught(first, || read().map_err(failed)) {
        Ok(loaded) => loaded.into_iter().map(|loaded| (loaded.column.pos(), Ok(loaded))).collect(),
        // One damaged chunk must not take its 15 neighbours with it.
        Err(_) if columns.len() > 1 => columns
            .into_iter()
            .flat_map(|column| load(store, home, dimension, batch, vec![column], chunk_heights.clone()))
            .collect(),
        Err(error) => vec![(first, Err(error))],
    }
}
