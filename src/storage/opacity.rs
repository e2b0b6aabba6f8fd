//! The opacity map: which blocks of each block column are opaque, one [`BatchOpacity`] for each batch of columns. It follows
//! the stored chunks: of new ground it is written with the chunks, and a commit that changes others removes what the store
//! has of the map there. The changed tile is kept in memory, and written some minutes later or at the end.

pub(super) mod batch_opacity;
mod saving;
#[cfg(test)]
mod tests;
pub(super) mod unwritten;

use super::values::blocks::OpaqueBlocks;
use super::{Family, StoreError, StoredItem, WorldStore, keys};
use crate::space::{BatchPos, CHUNK_COORDINATES, ColumnPos, DimensionId};
use batch_opacity::BatchOpacity;
use unwritten::TilePlace;

impl WorldStore {
    /// Which blocks of a batch of columns are opaque, as they are stored. What nobody has said the opacity of is opaque.
    ///
    /// It is one value to read, unless the map is lost or damaged, or was made when other types of blocks were opaque: then
    /// it is made from the chunks.
    pub fn opacity(&self, dimension: DimensionId, batch: BatchPos) -> Result<BatchOpacity, StoreError> {
        let (blocks, unknown) = (self.known_blocks()?, OpaqueBlocks::unknown());
        let opaque = blocks.opaque().unwrap_or(&unknown);
        let place = (dimension, batch);
        let value = match self.unwritten_opacity.get(place) {
            None => self.store.get(Family::Opacity, &keys::opacity_key(dimension, batch))?,
            unwritten => unwritten,
        };
        match value.map(|value| self.read_opacity(place, &value, Some(opaque))) {
            Some(Ok(Some(tile))) => return Ok(tile),
            Some(Err(error)) => bevy::log::warn!("{error}; it is made anew from the chunks"),
            Some(Ok(None)) | None => {}
        }
        self.opacity_of_chunks(place, opaque)
    }

    /// The tile with this stored value; `None` if it was made when other types of blocks were opaque than these.
    pub(super) fn read_opacity(
        &self,
        (dimension, batch): TilePlace,
        value: &[u8],
        opaque: Option<&OpaqueBlocks>,
    ) -> Result<Option<BatchOpacity>, StoreError> {
        let item = || StoredItem::Opacity(dimension, batch);
        let (_, payload) = self.open_envelope(value, item)?;
        let Some((fingerprint, tile)) = payload.split_first_chunk() else {
            return Err(self.corrupt(item(), "it ends too early"));
        };
        if opaque.is_some_and(|opaque| opaque.fingerprint() != u32::from_le_bytes(*fingerprint)) {
            return Ok(None);
        }
        BatchOpacity::decode(tile).map(Some).map_err(|error| self.corrupt(item(), error))
    }

    fn opacity_of_chunks(
        &self,
        (dimension, batch): TilePlace,
        opaque: &OpaqueBlocks,
    ) -> Result<BatchOpacity, StoreError> {
        let columns: Vec<ColumnPos> = batch.columns().collect();
        let mut tile = BatchOpacity::default();
        for stored in self.peek_batch(dimension, batch, &columns, CHUNK_COORDINATES)? {
            for (y, chunk) in stored.column.chunks() {
                tile.set_chunk(stored.column.pos(), y, chunk, |block| opaque.contains(block));
            }
        }
        Ok(tile)
    }
}
