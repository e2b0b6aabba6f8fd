//! Where a region gets a column from within a tick: what the store holds, or the dimension's generator.

use super::LoadedColumn;
use crate::block::BlockRegistry;
use crate::chunk::{Chunk, Column};
use crate::generation::{DistanceGraph, GenerateError, GenerateRequest, Generator, TilePos};
use crate::space::{ColumnPos, DimensionId};
use crate::storage::{StoreError, WorldStore};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Why a column could not be had within a tick.
#[derive(Debug, thiserror::Error)]
pub enum ColumnError {
    /// Its section is not the region's own.
    #[error("column {0} lies in a section that this region does not own")]
    NotOwned(ColumnPos),
    /// The world was closed meanwhile.
    #[error("column {0} cannot be had: the world is closed")]
    Closed(ColumnPos),
    /// It could not be generated.
    #[error("column {column}: {source}")]
    Generate {
        /// The column.
        column: ColumnPos,
        /// What the generator said.
        source: GenerateError,
    },
    /// It could not be read.
    #[error("column {column}: {source}")]
    Store {
        /// The column.
        column: ColumnPos,
        /// What the store said.
        source: StoreError,
    },
    /// What the store says of the columns near it is damaged.
    #[error("column {column}: {reason}")]
    Damaged {
        /// The column.
        column: ColumnPos,
        /// What is wrong.
        reason: String,
    },
}

/// A column that a region gave up, until it is durable.
#[derive(Clone, Debug)]
pub struct Departed {
    /// The column, with the entities that were in it.
    pub loaded: LoadedColumn,
    /// The commit that makes it durable.
    pub until: u64,
}

/// The columns of a dimension that are not with a region and of which the store has not everything yet: those that
/// regions gave up, and those whose region halted.
#[derive(Debug, Default)]
pub struct DepartedColumns {
    given_up: Mutex<FxHashMap<ColumnPos, Departed>>,
    lost: Mutex<FxHashMap<ColumnPos, SavedChunks>>,
}

/// Chunks of a column that were handed out to be saved, by their height.
pub type SavedChunks = Vec<(i64, Arc<Chunk>)>;

impl DepartedColumns {
    fn columns(&self) -> MutexGuard<'_, FxHashMap<ColumnPos, Departed>> {
        // Every change is a single insert or removal, so what a panic left behind is whole.
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self) -> MutexGuard<'_, FxHashMap<ColumnPos, SavedChunks>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The column went with the world of a halted region, and is to be read again. These chunks of it are on their way
    /// into the store, newer than anything else that is known of it.
    pub fn lose(&self, column: ColumnPos, chunks: SavedChunks) {
        self.columns().remove(&column);
        self.lost().insert(column, chunks);
    }

    /// The column was read again, or is nobody's any more.
    pub fn find_again(&self, column: ColumnPos) {
        let mut lost = self.lost();
        if !lost.is_empty() {
            lost.remove(&column);
        }
    }

    fn unwritten(&self, column: ColumnPos) -> SavedChunks {
        self.lost().get(&column).cloned().unwrap_or_default()
    }

    /// Keeps a column until its commit is durable.
    pub fn insert(&self, departed: Departed) {
        self.columns().insert(departed.loaded.column.pos(), departed);
    }

    /// Whether the column was given up and is not durable yet.
    pub fn contains(&self, column: ColumnPos) -> bool {
        self.columns().contains_key(&column)
    }

    /// The column as it was given up. It stays here until it is durable: what the store has is older.
    pub fn get(&self, column: ColumnPos) -> Option<LoadedColumn> {
        self.columns().get(&column).map(|departed| departed.loaded.clone())
    }

    /// Forgets what is durable with `commit`.
    pub fn forget_until(&self, commit: u64) {
        self.columns().retain(|_, departed| departed.until > commit);
    }
}

/// All that is needed to load or generate a column of one dimension on any thread.
pub struct Ground {
    /// The dimension.
    pub dimension: DimensionId,
    /// Its heights, in blocks.
    pub heights: Range<i64>,
    /// Its heights, in chunks.
    pub chunk_heights: Range<i64>,
    /// What makes new ground.
    pub generator: Arc<dyn Generator>,
    /// The block types of the world.
    pub blocks: Arc<BlockRegistry>,
    /// What is stored. A region that hangs when the app ends must not keep the world open.
    pub store: Weak<WorldStore>,
    /// What is newer than that.
    pub departed: Arc<DepartedColumns>,
}

/// A column that a region loaded or generated within a tick; its stored entities come later.
#[derive(Clone, Debug)]
pub struct FetchedColumn {
    /// The column as it was when it came.
    pub column: Column,
    /// It is new, and not stored yet.
    pub generated: bool,
}

impl Ground {
    pub(super) fn fetch(&self, column: ColumnPos) -> Result<FetchedColumn, ColumnError> {
        // Before the store is read: what is written in between is found there, and is the same.
        let unwritten = self.departed.unwritten(column);
        let mut fetched = self.read_or_generate(column)?;
        for (height, chunk) in unwritten {
            fetched.column.set_chunk(height, chunk);
        }
        Ok(fetched)
    }

    fn read_or_generate(&self, column: ColumnPos) -> Result<FetchedColumn, ColumnError> {
        if let Some(departed) = self.departed.get(column) {
            return Ok(FetchedColumn { column: departed.column, generated: false });
        }
        let store = self.store.upgrade().ok_or(ColumnError::Closed(column))?;
        if self.is_stored(&store, column)? {
            let load = store.load_batch(self.dimension, column.batch(), &[column], self.chunk_heights.clone());
            let loaded = load.map_err(|source| ColumnError::Store { column, source })?;
            let found = loaded.into_iter().next().map_or_else(|| Column::new(column), |stored| stored.column);
            return Ok(FetchedColumn { column: found, generated: false });
        }
        let request = GenerateRequest { column, heights: self.heights.clone(), blocks: &self.blocks };
        let made = self.generator.generate(&request).map_err(|source| ColumnError::Generate { column, source })?;
        Ok(FetchedColumn { column: made, generated: true })
    }

    /// Whether the store has the column, also if it is all air.
    fn is_stored(&self, store: &WorldStore, column: ColumnPos) -> Result<bool, ColumnError> {
        let tile = TilePos::from(column);
        let masks = store.stored_tile(self.dimension, (tile.x, tile.z));
        let Some(masks) = masks.map_err(|source| ColumnError::Store { column, source })? else { return Ok(false) };
        let mut graph = DistanceGraph::new();
        let restored = graph.restore_tile(tile, &masks);
        restored.map_err(|error| ColumnError::Damaged { column, reason: error.to_string() })?;
        Ok(graph.is_completed(column))
    }
}
