//! The binary form of summaries, version 2.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | version (2) |
//! | 1 | detail: 0 for cells of one block, 4 for one cell of 16 x 16 |
//! | .. | LEB128: the number of blocks in the palette, 0 to the number of cells |
//! | .. | LEB128 each: the palette |
//! | .. | per cell, x fastest: 0 for a cell without ground, otherwise its place in the palette + 1; in as few bits as the palette's length takes, lowest bit first, and at the end zeros up to a whole byte |
//! | .. | per cell with ground: LEB128 of the zigzag difference between its height and the previous one, starting from 0 |
//!
//! In version 1, each place is a LEB128.

use super::{ColumnSummary, Detail, SummaryCell};
use crate::block::BlockId;
use crate::bytes::{ReadError, Reader, put_number, put_signed};
use crate::chunk::format::ChunkFormatError;

pub(super) const VERSION: u8 = 2;
/// The older version that is still read.
const UNPACKED: u8 = 1;

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
        put_packed(into, &places, bits_of(palette.len()));
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
        if version != VERSION && version != UNPACKED {
            let what = format!("expected version {UNPACKED} or {VERSION} of a summary, found {version}");
            return Err(ChunkFormatError::damage(0, what));
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
        let mut packed = Packed { bits: bits_of(palette.len()), ..Packed::default() };
        let places = (0..count)
            .map(|_| {
                if version == UNPACKED {
                    return Ok(number_below(&mut reader, length + 1, "a place in the palette")? as usize);
                }
                let place = packed.next(&mut reader)?;
                // It ends in the last byte that was read, for this place or an earlier one.
                let at = reader.offset().saturating_sub(1);
                Ok(below(at, place, length + 1, "a place in the palette")? as usize)
            })
            .collect::<Result<Vec<_>, ChunkFormatError>>()?;
        if packed.rest != 0 {
            let what = "expected zeros after the last place in the palette, found ones";
            return Err(ChunkFormatError::damage(reader.offset().saturating_sub(1), what));
        }
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
    below(offset, reader.number()?, limit, what)
}

fn below(offset: usize, found: u64, limit: u64, what: &str) -> Result<u64, ChunkFormatError> {
    let too_large = || ChunkFormatError::damage(offset, format!("expected {what} below {limit}, found {found}"));
    if found < limit { Ok(found) } else { Err(too_large()) }
}

/// The number of bits that a place in a palette of this length takes, with 0 for no ground.
fn bits_of(length: usize) -> u32 {
    usize::BITS - length.leading_zeros()
}

/// Appends numbers of so many bits without gaps.
fn put_packed(into: &mut Vec<u8>, numbers: &[usize], bits: u32) {
    let (mut rest, mut filled) = (0_u64, 0);
    for number in numbers {
        rest |= (*number as u64) << filled;
        filled += bits;
        while filled >= u8::BITS {
            into.push(rest as u8);
            (rest, filled) = (rest >> u8::BITS, filled - u8::BITS);
        }
    }
    if filled > 0 {
        into.push(rest as u8);
    }
}

/// Reads numbers that [`put_packed`] appended.
#[derive(Default)]
struct Packed {
    bits: u32,
    /// The bits of the last byte that are not used yet.
    rest: u64,
    filled: u32,
}

impl Packed {
    fn next(&mut self, reader: &mut Reader<'_>) -> Result<u64, ReadError> {
        while self.filled < self.bits {
            self.rest |= u64::from(reader.byte()?) << self.filled;
            self.filled += u8::BITS;
        }
        let number = self.rest & !(u64::MAX << self.bits);
        (self.rest, self.filled) = (self.rest >> self.bits, self.filled - self.bits);
        Ok(number)
    }
}
