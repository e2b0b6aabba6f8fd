//! Export of schematics.

use super::{ClosedWorld, ClosedWorldError, Result};
use crate::LoadedColumn;
use crate::space::{BatchPos, BlockBox, ColumnPos, HeightSet, bits};
use crate::work::{Progress, Tell};
use std::collections::BTreeMap;
use terrane_world::snapshot::Snapshot;
use terrane_world::snapshot::schematic::Schematic;
use terrane_world::snapshot::translation::TranslationOptions;

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
