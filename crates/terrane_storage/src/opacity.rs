//! Opacity maps: the opaque blocks of each block column, one [`BatchOpacity`] per batch of columns. A map is made from
//! the chunks on demand and stored. The write that changes its chunks removes it.

pub(super) mod batch_opacity;
#[cfg(test)]
mod tests;

use super::servers::Plot;
use super::{Durability, Family, StoreError, StoredItem, WorldStore, WriteBatch, envelope, keys};
use crate::space::{BatchPos, CHUNK_COORDINATES, ColumnPos, DimensionId};
use crate::values::blocks::KnownBlocks;
use batch_opacity::BatchOpacity;
use std::sync::atomic::Ordering;

impl WorldStore {
    /// The opaque blocks of a batch of columns, as stored. Blocks of unknown opacity count as opaque.
    ///
    /// This reads one value if a map was made since the chunks changed, for the same opaque block types. Otherwise the
    /// map is made from the chunks.
    pub fn opacity(&self, dimension: DimensionId, batch: BatchPos) -> Result<BatchOpacity, StoreError> {
        let (blocks, key) = (self.known_blocks()?, keys::opacity_key(dimension, batch));
        let stored = self.store.get(Family::Opacity, &key)?;
        match stored.map(|value| self.read_opacity(dimension, batch, &value, Some(&blocks))) {
            Some(Ok(Some(tile))) => return Ok(tile),
            Some(Err(error)) => tracing::warn!("{error}; it is computed again from the chunks"),
            Some(Ok(None)) | None => {}
        }
        let written = self.written.load(Ordering::Acquire);
        let plot = (dimension, batch.column(0).tile());
        // The map of another server's ground is not kept.
        let owner = match self.incarnation() {
            Some(incarnation) => incarnation.own_row(plot)?.map(|row| Some((plot, row))),
            None => Some(None),
        };
        let tile = self.opacity_of_chunks(dimension, batch, &blocks)?;
        if let Some(owner) = owner.filter(|_| blocks.are_registered()) {
            self.keep_opacity(dimension, key, &tile, &blocks, written, owner);
        }
        Ok(tile)
    }

    /// Decodes the stored value of a map; `None` if it was made for other opaque block types than these.
    pub(super) fn read_opacity(
        &self,
        dimension: DimensionId,
        batch: BatchPos,
        value: &[u8],
        blocks: Option<&KnownBlocks>,
    ) -> Result<Option<BatchOpacity>, StoreError> {
        self.open_as(value, StoredItem::Opacity(dimension, batch), |payload| {
            let (fingerprint, tile) = payload.split_first_chunk().ok_or("it ends too early")?;
            if blocks.is_some_and(|blocks| blocks.fingerprint() != u32::from_le_bytes(*fingerprint)) {
                return Ok(None);
            }
            BatchOpacity::decode(tile).map(Some)
        })
    }

    fn opacity_of_chunks(
        &self,
        dimension: DimensionId,
        batch: BatchPos,
        blocks: &KnownBlocks,
    ) -> Result<BatchOpacity, StoreError> {
        /// A batch is as wide as a group of chunks, so one group at a time is in memory.
        const GROUP: u32 = 2;
        let columns: Vec<ColumnPos> = batch.columns().collect();
        let mut tile = BatchOpacity::default();
        self.visit_cubes(dimension, batch.column(0), CHUNK_COORDINATES, GROUP, |bottom| {
            let heights = bottom..bottom + (1 << GROUP);
            for stored in self.peek_batch(dimension, batch, &columns, heights)? {
                for (y, chunk) in stored.column.chunks() {
                    tile.set_chunk(stored.column.pos(), y, chunk, |block| blocks.is_opaque(block));
                }
            }
            Ok(())
        })?;
        Ok(tile)
    }

    /// Stores a map, unless another write happened since `written` was read, is in progress, or failed and may still happen:
    /// the map may be outdated by then. A map that is not stored is made again, so this does not wait and ignores errors. Maps of
    /// empty ground are not stored, so that looking at distant ground leaves nothing behind. In a shared world, `owner` is the
    /// plot and its row: the plot may change hands meanwhile.
    fn keep_opacity(
        &self,
        dimension: DimensionId,
        key: Vec<u8>,
        tile: &BatchOpacity,
        blocks: &KnownBlocks,
        written: u64,
        owner: Option<(Plot, Vec<u8>)>,
    ) {
        if !tile.is_worth_storing() {
            return;
        }
        let mut value = envelope::unsealed();
        value.extend(blocks.fingerprint().to_le_bytes());
        tile.encode(&mut value);
        // The version of a map is never used.
        envelope::seal(&mut value, 0);
        let mut writes = WriteBatch::default();
        writes.put(Family::Opacity, key, value);
        if let Some(((dimension, plot), row)) = owner {
            writes.require(Family::Meta, keys::plot_key(dimension, plot), Some(row));
        }
        let Some(_writing) = self.try_lock_writes() else { return };
        if self.written.load(Ordering::Acquire) != written || self.is_marked(dimension) != Ok(false) {
            return;
        }
        let _ = self.write(writes, Durability::Process);
    }
}
