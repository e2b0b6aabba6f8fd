//! The opacity map: which blocks of each block column are opaque, one [`BatchOpacity`] for each batch of columns. A tile is made
//! from the chunks when somebody asks for it, and stored for whoever asks next; the write that changes its chunks removes it.

pub(super) mod batch_opacity;
#[cfg(test)]
mod tests;

use super::values::blocks::KnownBlocks;
use super::{Durability, Family, StoreError, StoredItem, WorldStore, WriteBatch, envelope, keys};
use crate::space::{BatchPos, CHUNK_COORDINATES, ColumnPos, DimensionId};
use batch_opacity::BatchOpacity;
use std::sync::atomic::Ordering;

impl WorldStore {
    /// Which blocks of a batch of columns are opaque, as they are stored. What nobody has said the opacity of is opaque.
    ///
    /// It is one value to read if somebody has asked since the chunks changed, and no other types of blocks were opaque then.
    /// Otherwise it is made from the chunks.
    pub fn opacity(&self, dimension: DimensionId, batch: BatchPos) -> Result<BatchOpacity, StoreError> {
        let (blocks, key) = (self.known_blocks()?, keys::opacity_key(dimension, batch));
        let stored = self.store.get(Family::Opacity, &key)?;
        match stored.map(|value| self.read_opacity(dimension, batch, &value, Some(&blocks))) {
            Some(Ok(Some(tile))) => return Ok(tile),
            Some(Err(error)) => tracing::warn!("{error}; it is made anew from the chunks"),
            Some(Ok(None)) | None => {}
        }
        let written = self.written.load(Ordering::Acquire);
        let tile = self.opacity_of_chunks(dimension, batch, &blocks)?;
        if blocks.are_registered() {
            self.keep_opacity(dimension, key, &tile, &blocks, written);
        }
        Ok(tile)
    }

    /// The tile with this stored value; `None` if it was made when other types of blocks were opaque than these.
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
        /// A batch of columns is as wide as a group of chunks: one group is in memory at a time.
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

    /// Stores a tile, unless something was written since there were so many writes, or is being written: its chunks may be
    /// others by now. Without it the tile is made once more, so nobody waits for this and no error counts. A tile of empty ground
    /// is not stored: whoever looks around far away leaves nothing behind.
    fn keep_opacity(
        &self,
        dimension: DimensionId,
        key: Vec<u8>,
        tile: &BatchOpacity,
        blocks: &KnownBlocks,
        written: u64,
    ) {
        if !tile.is_worth_storing() {
            return;
        }
        let mut value = envelope::unsealed();
        value.extend(blocks.fingerprint().to_le_bytes());
        tile.encode(&mut value);
        // Nobody asks how often a tile changed.
        envelope::seal(&mut value, 0);
        let mut writes = WriteBatch::default();
        writes.put(Family::Opacity, key, value);
        let Ok(_writing) = self.try_lock_writes() else { return };
        if self.written.load(Ordering::Acquire) != written || self.is_marked(dimension) != Ok(false) {
            return;
        }
        let _ = self.write(writes, Durability::Process);
    }
}
