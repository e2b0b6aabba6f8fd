//! Schematics in and out of worlds that no game has open.
//!
//! A game that registers the blocks is not there, so a state that the world does not know becomes a type of its own name in
//! the world's list: a game that registers that name later finds its blocks. Only what is no name of a block becomes
//! [`PLACEHOLDER`](crate::block::PLACEHOLDER).
//!
//! Ground that was never generated is not touched: what a generator would make there is not known, and a part of a column
//! would be taken for all of it. In a sparse dimension whole chunks are written there.

mod export;
mod import;
#[cfg(test)]
mod tests;
mod types;

use crate::block::BlockRegistryError;
use crate::space::{BlockPos, ColumnPos, DimensionId};
use crate::{StoreError, WorldStore};
use terrane_world::snapshot::Turn;
use terrane_world::snapshot::translation::{TranslationError, TranslationReport};
use thiserror::Error;

type Result<T> = std::result::Result<T, ClosedWorldError>;

/// A dimension of a world that only this has open.
#[derive(Clone, Copy, Debug)]
pub struct ClosedWorld<'a> {
    store: &'a WorldStore,
    dimension: DimensionId,
    is_sparse: bool,
}

/// How a schematic comes into a world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchematicImport {
    /// Where the lowest corner of its box goes, as it is when it is turned.
    pub at: BlockPos,
    /// How it is turned.
    pub turn: Turn,
    /// Whether ground that was never generated is left out. Without, it is an error that comes before anything is changed.
    pub leaves_ungenerated: bool,
    /// Whether the entities that are already in the box are removed; otherwise they stay. Entities that an earlier import of the
    /// same schematic brought stay either way, and players are never touched.
    pub replaces_entities: bool,
    /// So many layers of blocks, from the bottom up, were read of a damaged file: the rest is left as it is. `None` for all.
    pub layers: Option<u32>,
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchematicImportReport {
    /// Whether it came to the end. If not, the same import again goes on: what is there already is not written again.
    pub finished: bool,
    /// Columns that were looked at.
    pub columns: u64,
    /// Chunks that differed and were written.
    pub chunks: u64,
    /// Entities that were written.
    pub entities: u64,
    /// Entities that the world has already, wherever they are: nobody is there twice.
    pub known_entities: u64,
    /// Entities that were already in the box. They stayed or were removed, as the options say.
    pub others: u64,
    /// Columns, or chunks of a sparse dimension, that were left out since they were never generated.
    pub ungenerated: u64,
    /// Types of blocks that are new in the world's list.
    pub new_types: u64,
    /// What of the schematic has no place in a world.
    pub translation: TranslationReport,
}

/// Why a schematic does not come into a closed world, or out of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClosedWorldError {
    /// The store fails, or something in it is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is ground that was never generated.
    #[error("{count} columns or chunks were never generated, the first in column {first}; nothing was changed")]
    Ungenerated {
        /// How many.
        count: u64,
        /// One of them, or where it is.
        first: ColumnPos,
    },
    /// The list of types of blocks cannot be used.
    #[error(transparent)]
    Types(#[from] BlockRegistryError),
    /// The world and the schematic do not go together, or it would leave the grid.
    #[error(transparent)]
    Translation(#[from] TranslationError),
    /// It was broken off before anything was changed.
    #[error("it was stopped, and nothing was changed")]
    Cancelled,
}

impl<'a> ClosedWorld<'a> {
    /// The dimension with this number.
    ///
    /// # Errors
    /// If it is not known which of its columns are stored.
    pub fn new(store: &'a WorldStore, dimension: DimensionId) -> Result<Self> {
        store.expect_graph(dimension)?;
        Ok(Self { store, dimension, is_sparse: store.is_sparse(dimension)? })
    }
}
