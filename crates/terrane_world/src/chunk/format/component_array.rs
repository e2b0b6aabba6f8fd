//! Component arrays in the bytes of a chunk.

use super::{ChunkFormatError, part};
use crate::block::BlockComponentLayout;

/// Reads the array of `count` elements that begins at `offset`, right after its component's number. Returns its
/// elements by rank, and the offset of its end.
pub(super) fn read_array<'a>(
    bytes: &'a [u8],
    offset: usize,
    layout: BlockComponentLayout,
    count: usize,
) -> Result<(impl Fn(usize) -> Result<&'a [u8], ChunkFormatError>, usize), ChunkFormatError> {
    // The place of the offsets, which elements of a fixed size do not have, and the bytes of each offset.
    let (offsets_at, offset_bytes) = match layout.size {
        Some(_) => (offset, 0),
        None => (offset + 1, usize::from(part(bytes, offset, 1, "bytes per offset")?[0])),
    };
    if layout.size.is_none() && !(1..=8).contains(&offset_bytes) {
        let what = format!("expected 1 to 8 bytes per offset, found {offset_bytes}");
        return Err(ChunkFormatError::damage(offset, what));
    }
    let offsets = part(bytes, offsets_at, (count as u128 + 1) * offset_bytes as u128, "component offsets")?;
    let data_at = offsets_at + offsets.len();
    let data = match layout.size {
        Some(size) => part(bytes, data_at, u128::from(size) * count as u128, "component array")?,
        None => part(bytes, data_at, number_at(offsets, count, offset_bytes).into(), "component data")?,
    };
    let first = number_at(offsets, 0, offset_bytes);
    if first != 0 {
        return Err(ChunkFormatError::damage(offsets_at, format!("expected an offset of 0, found {first}")));
    }
    let value = move |rank: usize| {
        if let Some(size) = layout.size {
            return Ok(&data[rank * size as usize..][..size as usize]);
        }
        let (least, found) = (number_at(offsets, rank, offset_bytes), number_at(offsets, rank + 1, offset_bytes));
        data.get(least as usize..found as usize).ok_or_else(|| {
            let what = format!("expected an offset of {least} to {}, found {found}", data.len());
            ChunkFormatError::damage(offsets_at + (rank + 1) * offset_bytes, what)
        })
    };
    Ok((value, data_at + data.len()))
}

/// A number of `size` bytes, at most 8.
fn number_at(bytes: &[u8], place: usize, size: usize) -> u64 {
    let mut number = [0; 8];
    number[..size].copy_from_slice(&bytes[place * size..][..size]);
    u64::from_le_bytes(number)
}
