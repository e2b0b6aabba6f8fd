//! The array of one component in the bytes of a chunk.

use super::{ChunkFormatError, part};
use crate::block::BlockComponentLayout;

/// A component's array in the bytes of a chunk.
pub(super) enum ArrayBytes<'a> {
    Fixed {
        size: usize,
        values: &'a [u8],
    },
    Variable {
        offset_bytes: usize,
        offsets: &'a [u8],
        /// Where the offsets are in the chunk.
        offsets_at: usize,
        data: &'a [u8],
    },
}

impl<'a> ArrayBytes<'a> {
    /// Reads the array of `count` elements that begins at `offset`, right after its number. Gives where it ends, too.
    pub fn read(
        bytes: &'a [u8],
        offset: usize,
        layout: BlockComponentLayout,
        count: usize,
    ) -> Result<(Self, usize), ChunkFormatError> {
        if let Some(size) = layout.size {
            let values = part(bytes, offset, u128::from(size) * count as u128, "component array")?;
            return Ok((Self::Fixed { size: size as usize, values }, offset + values.len()));
        }
        let offset_bytes = part(bytes, offset, 1, "bytes per offset")?[0];
        if !(1..=8).contains(&offset_bytes) {
            return Err(ChunkFormatError::damage(
                offset,
                format!("expected 1 to 8 bytes per offset, found {offset_bytes}"),
            ));
        }
        let (offsets_at, offset_bytes) = (offset + 1, usize::from(offset_bytes));
        let offsets = part(bytes, offsets_at, (count as u128 + 1) * offset_bytes as u128, "component offsets")?;
        let data_at = offsets_at + offsets.len();
        let length = number_at(offsets, count, offset_bytes);
        let data = part(bytes, data_at, length.into(), "component data")?;
        let first = number_at(offsets, 0, offset_bytes);
        if first != 0 {
            return Err(ChunkFormatError::damage(offsets_at, format!("expected an offset of 0, found {first}")));
        }
        Ok((Self::Variable { offset_bytes, offsets, offsets_at, data }, data_at + data.len()))
    }

    /// One of its elements.
    pub fn value(&self, rank: usize) -> Result<&'a [u8], ChunkFormatError> {
        match *self {
            Self::Fixed { size, values } => Ok(&values[rank * size..][..size]),
            Self::Variable { offset_bytes, offsets, offsets_at, data } => {
                let least = number_at(offsets, rank, offset_bytes);
                let found = number_at(offsets, rank + 1, offset_bytes);
                data.get(least as usize..found as usize).ok_or_else(|| {
                    let what = format!("expected an offset of {least} to {}, found {found}", data.len());
                    ChunkFormatError::damage(offsets_at + (rank + 1) * offset_bytes, what)
                })
            }
        }
    }
}

/// A number of `size` bytes, which are 8 at most.
fn number_at(bytes: &[u8], place: usize, size: usize) -> u64 {
    let mut number = [0; 8];
    number[..size].copy_from_slice(&bytes[place * size..][..size]);
    u64::from_le_bytes(number)
}
