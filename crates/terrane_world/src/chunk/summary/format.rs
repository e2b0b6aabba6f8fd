//! The binary form of summaries, version 1.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | version (1) |
//! | 1 | detail: 0 for cells of one block, 4 for one cell of 16 x 16 |
//! | .. | LEB128: the number of blocks in the palette, 0 to the number of cells |
//! | .. | LEB128 each: the palette |
//! | .. | per cell, x fastest: LEB128, 0 for a cell without ground, otherwise its place in the palette + 1 |
//! | .. | per cell with ground: LEB128 of the zigzag difference between its height and the previous one, starting from 0 |

use super::{ColumnSummary, Detail, SummaryCell};
use crate::block::BlockId;
use crate::bytes::{Reader, put_number, put_signed};
use crate::chunk::format::ChunkFormatError;

pub(super) const VERSION: u8 = 1;

impl ColumnSummary {
    /// Appends the binary form.
    pub fn encode(&self, into: &mut Vec<u8>) {
        let mut palette: Vec<BlockId> = Vec::new();
        let places: Vec<usize> = self
            .cells
            .iter()
            .map(|cell| {
                let Some(SummaryCell { block, .. }) = cell else { return 0 };
                let known = palette.iter().position(|known| known == block);
                known.unwrap_or_else(|| {
                    palette.push(*block);
                    palette.len() - 1
                }) + 1
            })
            .collect();
        into.extend([VERSION, self.detail.0]);
        put_number(into, palette.len() as u64);
        palette.iter().for_each(|block| put_number(into, block.index().into()));
        places.iter().for_each(|place| put_number(into, *place as u64));
        let mut before = 0;
        for cell in self.cells.iter().flatten() {
            let step = cell.height.wrapping_sub(before);
            put_signed(into, step);
            before = cell.height;
        }
    }

    /// Reads the binary form.
    pub fn decode(bytes: &[u8]) -> Result<Self, ChunkFormatError> {
        let mut reader = Reader::new(bytes);
        let version = reader.byte()?;
        if version != VERSION {
            return Err(ChunkFormatError::Version { found: version.into() });
        }
        let level = reader.byte()?;
        if level > Detail::COARSEST.0 {
            let what = format!("expected a detail of {} or less, found {level}", Detail::COARSEST.0);
            return Err(ChunkFormatError::damage(1, what));
        }
        let detail = Detail(level);
        let count = detail.cells() * detail.cells();
        let length = number_below(&mut reader, count as u64 + 1, "blocks in the palette")?;
        let palette = (0..length)
            .map(|_| Ok(BlockId::new(number_below(&mut reader, 1 << 32, "a block id")? as u32)))
            .collect::<Result<Vec<_>, ChunkFormatError>>()?;
        let places = (0..count)
            .map(|_| Ok(number_below(&mut reader, length + 1, "a place in the palette")? as usize))
            .collect::<Result<Vec<_>, ChunkFormatError>>()?;
        let mut height = 0_i64;
        let cells = places
            .into_iter()
            .map(|place| {
                let Some(block) = place.checked_sub(1).and_then(|place| palette.get(place)) else { return Ok(None) };
                height = height.wrapping_add(reader.signed()?);
                Ok(Some(SummaryCell { height, block: *block }))
            })
            .collect::<Result<_, ChunkFormatError>>()?;
        match reader.left() {
            0 => Ok(Self { detail, cells }),
            left => {
                Err(ChunkFormatError::damage(reader.offset(), format!("expected the end, found {left} more bytes")))
            }
        }
    }
}

fn number_below(reader: &mut Reader<'_>, limit: u64, what: &str) -> Result<u64, ChunkFormatError> {
    let offset = reader.offset();
    let found = reader.number()?;
    let too_large = || ChunkFormatError::damage(offset, format!("expected {what} below {limit}, found {found}"));
    if found < limit { Ok(found) } else { Err(too_large()) }
}
