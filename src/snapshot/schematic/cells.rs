//! Cells as files pack them: a LEB128 number each, x fastest, then z, then y.

use super::palette::{Numbers, UNKNOWN};
use super::{SchematicError, filler::Filler};
use crate::work::{Progress, Tell};

/// Cells that are passed on at once.
const BATCH: usize = 4096;
/// Bytes that are looked at together.
const GROUP: usize = 8;

/// Where packed cells come from.
pub(super) trait CellSource {
    /// At least one byte, and at most so many.
    fn part(&mut self, most: u64) -> Result<&[u8], SchematicError>;
    /// Where the next byte is in the file.
    fn offset(&self) -> u64;
}

/// What is wrong with packed cells.
enum CellError {
    NotInPalette { place: usize, number: u32 },
    Number,
}

/// Unpacks cells.
struct Unpacker<'a> {
    numbers: &'a Numbers,
    /// The bits of a number whose last byte has not come, and how many.
    bits: u32,
    shift: u32,
    cells: Box<[u16; BATCH]>,
    count: usize,
}

/// Reads `length` bytes of packed cells into what they fill. What was read before an error is kept there.
pub(super) fn read_cells(
    source: &mut impl CellSource,
    length: u64,
    field: &str,
    numbers: &Numbers,
    filler: &mut Filler<'_>,
    progress: Tell<'_>,
) -> Result<(), SchematicError> {
    let mut unpacker = Unpacker { numbers, bits: 0, shift: 0, cells: Box::new([0; BATCH]), count: 0 };
    let mut left = length;
    while left > 0 {
        let before = source.offset();
        let mut part = source.part(left)?;
        left -= part.len() as u64;
        let end = before + part.len() as u64;
        while !part.is_empty() {
            let unpacked = unpacker.unpack(&mut part);
            let offset = end - part.len() as u64;
            let cells = &unpacker.cells[..unpacker.count];
            let known = match unpacked {
                Err(CellError::NotInPalette { place, .. }) => place,
                _ => cells.len(),
            };
            push(filler, &cells[..known], offset, field)?;
            unpacker.count = 0;
            let field = || field.to_owned();
            unpacked.map_err(|error| match error {
                CellError::Number => SchematicError::Number { offset, field: field() },
                CellError::NotInPalette { number, .. } => {
                    SchematicError::NotInPalette { offset, field: field(), cell: filler.filled(), found: number }
                }
            })?;
        }
        if progress(&Progress::of(filler.filled(), filler.volume())).is_break() {
            return Err(SchematicError::Cancelled);
        }
    }
    let (offset, expected, found) = (source.offset(), filler.volume(), filler.filled());
    match () {
        () if unpacker.shift > 0 => Err(SchematicError::Number { offset, field: field.to_owned() }),
        () if found < expected => Err(SchematicError::CellCount { offset, field: field.to_owned(), expected, found }),
        () => Ok(()),
    }
}

fn push(filler: &mut Filler<'_>, cells: &[u16], offset: u64, field: &str) -> Result<(), SchematicError> {
    let expected = filler.volume();
    let room = expected - filler.filled();
    let fitting = cells.len().min(usize::try_from(room).unwrap_or(usize::MAX));
    filler.push(&cells[..fitting]).map_err(|limit| SchematicError::no_memory(offset, field, limit))?;
    if fitting < cells.len() {
        let found = expected + (cells.len() - fitting) as u64;
        return Err(SchematicError::CellCount { offset, field: field.to_owned(), expected, found });
    }
    Ok(())
}

impl Unpacker<'_> {
    /// Unpacks until the batch is full or the bytes are used up. At an error, the cells before it are there.
    fn unpack(&mut self, bytes: &mut &[u8]) -> Result<(), CellError> {
        while self.count < BATCH && !bytes.is_empty() {
            let room = bytes.len().min(BATCH - self.count);
            let single = if self.shift == 0 { single_bytes(&bytes[..room]) } else { 0 };
            let taken = if single > 0 { single } else { room.min(GROUP) };
            let (group, rest) = bytes.split_at(taken);
            *bytes = rest;
            if single > 0 {
                self.unpack_single(group)?;
            } else {
                group.iter().try_for_each(|byte| self.unpack_byte(*byte))?;
            }
        }
        Ok(())
    }

    /// Numbers of one byte each.
    fn unpack_single(&mut self, group: &[u8]) -> Result<(), CellError> {
        let cells = &mut self.cells[self.count..][..group.len()];
        let are_known = match self.numbers.same_below {
            Some(limit) => {
                cells.iter_mut().zip(group).for_each(|(cell, byte)| *cell = u16::from(*byte));
                group.iter().fold(0, |most, byte| (*byte).max(most)) < limit
            }
            None => {
                let places = &self.numbers.single;
                cells.iter_mut().zip(group).for_each(|(cell, byte)| *cell = places[usize::from(*byte & 127)]);
                cells.iter().fold(0, |most, cell| (*cell).max(most)) != UNKNOWN
            }
        };
        if are_known {
            self.count += group.len();
            return Ok(());
        }
        group.iter().try_for_each(|byte| self.unpack_byte(*byte))
    }

    #[inline]
    fn unpack_byte(&mut self, byte: u8) -> Result<(), CellError> {
        let bits = u32::from(byte & 0x7F);
        if self.shift > 28 || bits << self.shift >> self.shift != bits {
            return Err(CellError::Number);
        }
        self.bits |= bits << self.shift;
        if byte >= 0x80 {
            self.shift += 7;
            return Ok(());
        }
        let number = std::mem::take(&mut self.bits);
        self.shift = 0;
        let place = self.numbers.place(number);
        if place == UNKNOWN {
            return Err(CellError::NotInPalette { place: self.count, number });
        }
        self.cells[self.count] = place;
        self.count += 1;
        Ok(())
    }
}

/// How many bytes from the front on are numbers of their own, in whole groups.
fn single_bytes(bytes: &[u8]) -> usize {
    const MORE: u64 = 0x8080_8080_8080_8080;
    let (groups, _) = bytes.as_chunks::<GROUP>();
    let is_single = |group: &&[u8; GROUP]| u64::from_le_bytes(**group) & MORE == 0;
    groups.iter().take_while(is_single).count() * GROUP
}
