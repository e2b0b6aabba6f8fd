//! The columns of a tile as masks of its batches.

use crate::envelope;
use crate::space::{ColumnPos, TILE_BATCHES, TilePos};
use std::collections::BTreeMap;

/// The masks of the batches of a tile.
pub(crate) type Masks = [u16; TILE_BATCHES];

/// The stored value of a tile.
pub(crate) fn encode(masks: &Masks) -> Vec<u8> {
    // The version of a tile is never used.
    envelope::sealed(0, &bytes_of(masks))
}

/// The masks as bytes, little-endian.
pub(crate) fn bytes_of(masks: &Masks) -> Vec<u8> {
    masks.iter().flat_map(|mask| mask.to_le_bytes()).collect()
}

/// The masks in these bytes. The error describes the damage.
pub(crate) fn masks_of(bytes: &[u8]) -> Result<Masks, String> {
    let bytes: &[u8; 2 * TILE_BATCHES] =
        bytes.try_into().map_err(|_| format!("it has {} bytes instead of {}", bytes.len(), 2 * TILE_BATCHES))?;
    let mut masks = [0; TILE_BATCHES];
    for (mask, bytes) in masks.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *mask = u16::from_le_bytes(*bytes);
    }
    Ok(masks)
}

/// Marks a column.
pub(crate) fn mark_stored(masks: &mut Masks, column: ColumnPos) {
    set_mark(masks, column, true);
}

/// Marks a column, or removes its mark.
pub(crate) fn set_mark(masks: &mut Masks, column: ColumnPos, is_marked: bool) {
    let (place, bit) = place_of(column);
    masks[place] = masks[place] & !(1 << bit) | u16::from(is_marked) << bit;
}

/// Returns `true` if the column is marked.
pub(crate) fn is_marked(masks: &Masks, column: ColumnPos) -> bool {
    let (place, bit) = place_of(column);
    masks[place] >> bit & 1 == 1
}

/// The index of a column's batch in the tile, and of the column's bit in the mask.
fn place_of(column: ColumnPos) -> (usize, u32) {
    (column.batch().in_tile(), column.in_batch())
}

/// Marks a column in its tile.
pub(crate) fn insert(tiles: &mut BTreeMap<TilePos, Masks>, column: ColumnPos) {
    mark_stored(tiles.entry(column.tile()).or_insert([0; TILE_BATCHES]), column);
}
