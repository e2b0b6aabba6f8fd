//! Import and export of schematics for worlds that no game has open.
//!
//! Since no game has registered its blocks, a block state that the world does not know becomes a type of its own name
//! in the world's list. A game that registers that name later finds its blocks. Only a state whose name is not a valid
//! block name becomes [`PLACEHOLDER`](crate::block::PLACEHOLDER).
//!
//! Ground that was never generated is left alone: the generator's result there is unknown, and a part of a column would
//! be taken for the whole column. In a sparse dimension, whole chunks are written there.

mod import;
#[cfg(test)]
mod tests;
mod types;

use crate::block::BlockRegistryError;
use crate::space::{BatchPos, BlockBox, BlockPos, ColumnPos, DimensionId, HeightSet, bits};
use crate::work::{Progress, Tell};
use crate::{LoadedColumn, StoreError, WorldStore};
use std::collections::BTreeMap;
use terrane_world::snapshot::schematic::Schematic;
use terrane_world::snapshot::translation::{TranslationError, TranslationOptions, TranslationReport};
use terrane_world::snapshot::{Snapshot, Turn};
use thiserror::Error;

type Result<T> = std::result::Result<T, ClosedWorldError>;

/// A dimension of a world that no game has open.
#[derive(Clone, Copy, Debug)]
pub struct ClosedWorld<'a> {
    store: &'a WorldStore,
    dimension: DimensionId,
    is_sparse: bool,
}

/// The options of a schematic's import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchematicImport {
    /// The position of the lowest corner of the turned schematic's box.
    pub at: BlockPos,
    /// The turn of the schematic.
    pub turn: Turn,
    /// `true` if columns that were never generated are skipped. Otherwise they are an error, found before anything is changed.
    pub leaves_ungenerated: bool,
    /// `true` if entities that are already in the box are removed. Entities of an earlier import of the same schematic
    /// stay either way, and players are never touched.
    pub replaces_entities: bool,
    /// The number of layers of blocks, from the bottom up, that were read from a damaged file. Blocks above them are
    /// left unchanged. `None` for all.
    pub layers: Option<u32>,
}

/// The result of a schematic's import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchematicImportReport {
    /// `true` if the import is complete. If not, the same import continues it without rewriting finished parts.
    pub finished: bool,
    /// The number of columns that were examined.
    pub columns: u64,
    /// The number of chunks that differed and were written.
    pub chunks: u64,
    /// The number of entities that were written.
    pub entities: u64,
    /// The number of entities left out because the world already has them, in any place.
    pub known_entities: u64,
    /// The number of other entities in the box. The options decide whether they stayed or were removed.
    pub others: u64,
    /// The number of columns, or chunks of a sparse dimension, left out because they were never generated.
    pub ungenerated: u64,
    /// The number of block types that were added to the world's list.
    pub new_types: u64,
    /// The parts of the schematic that have no equivalent in a world.
    pub translation: TranslationReport,
}

/// The reason why a schematic cannot be imported into or exported from a closed world.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClosedWorldError {
    /// The store fails or holds damaged data.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Some of the ground was never generated.
    #[error("{count} columns or chunks were never generated, the first in column {first}; nothing was changed")]
    Ungenerated {
        /// The number of columns or chunks.
        count: u64,
        /// The column of the first of them.
        first: ColumnPos,
    },
    /// The list of block types cannot be used.
    #[error(transparent)]
    Types(#[from] BlockRegistryError),
    /// The schematic cannot be translated for the world, or would leave the grid.
    #[error(transparent)]
    Translation(#[from] TranslationError),
    /// The operation was cancelled before anything was changed.
    #[error("it was stopped, and nothing was changed")]
    Cancelled,
}

impl<'a> ClosedWorld<'a> {
    /// The dimension with this number.
    ///
    /// # Errors
    /// The graph of the dimension's stored columns is lost.
    pub fn new(store: &'a WorldStore, dimension: DimensionId) -> Result<Self> {
        store.expect_graph(dimension)?;
        Ok(Self { store, dimension, is_sparse: store.is_sparse(dimension)? })
    }
}

impl ClosedWorld<'_> {
    /// Exports the stored data of a box as a schematic. Chunks that were never generated become air. Their number is returned
    /// as well. `progress` is called after each batch of 4 x 4 columns, counts batches, and can cancel the export.
    ///
    /// # Errors
    /// A side of more than 65,535 blocks; damage in the store.
    pub fn export(
        &self,
        area: &BlockBox,
        options: &TranslationOptions,
        progress: Tell<'_>,
    ) -> Result<(Schematic, u64)> {
        let empty = Snapshot::new(*area);
        // Checks the size before anything is read.
        empty.to_schematic(&*self.store.blocks()?, options)?;
        let snapshot = self.capture(area, progress)?;
        Ok((snapshot.to_schematic(&*self.store.blocks()?, options)?, snapshot.missing_chunks()))
    }

    /// Captures the stored data of a box, with its entities. Chunks that were never generated are missing.
    pub fn capture(&self, area: &BlockBox, progress: Tell<'_>) -> Result<Snapshot> {
        let mut snapshot = Snapshot::new(*area);
        let Some(heights) = area.chunk_heights() else { return Ok(snapshot) };
        let heights = *heights.start()..heights.end() + 1;
        let batches = self.stored_batches(area)?;
        let total = batches.len() as u64;
        for (done, (batch, columns)) in (1..).zip(batches) {
            let of_dense = if self.is_sparse { 0..0 } else { heights.clone() };
            for LoadedColumn { mut column, entities, .. } in
                self.store.load_batch(self.dimension, batch, &columns, of_dense)?
            {
                if self.is_sparse {
                    let all = HeightSet::from(heights.clone());
                    column = self.store.load_part(self.dimension, column.pos(), &all)?.column;
                }
                snapshot.add_column(&column, 0, entities);
            }
            if progress(&Progress::of(done, total)).is_break() {
                return Err(ClosedWorldError::Cancelled);
            }
        }
        Ok(snapshot)
    }

    /// The stored columns of a box, by batch.
    fn stored_batches(&self, area: &BlockBox) -> Result<BTreeMap<BatchPos, Vec<ColumnPos>>> {
        let mut batches: BTreeMap<BatchPos, Vec<ColumnPos>> = BTreeMap::new();
        for (tile, masks) in self.store.stored_tiles(self.dimension)? {
            for (batch, mask) in tile.batches().zip(masks) {
                let columns = bits(mask.into()).map(|bit| batch.column(bit));
                let columns: Vec<_> = columns.filter(|column| area.reaches(*column)).collect();
                if !columns.is_empty() {
                    batches.insert(batch, columns);
                }
            }
        }
        Ok(batches)
    }
}
