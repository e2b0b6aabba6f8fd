//! The value that is upgraded: how high the ground of a column is.

/// Blocks in a layer of a column.
const CELLS: usize = 256;

/// From a byte a height to an `i32` a height, little-endian: the new world is higher than 255 blocks.
pub fn convert(old: &[u8]) -> Result<Vec<u8>, String> {
    match old.len() {
        CELLS => Ok(old.iter().flat_map(|height| i32::from(*height).to_le_bytes()).collect()),
        length => Err(format!("expected {CELLS} heights, found {length}")),
    }
}
