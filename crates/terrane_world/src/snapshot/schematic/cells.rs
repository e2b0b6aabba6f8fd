//! Packed cells of files: one LEB128 number each, x fastest, then z, then y.

use super::filler::Filler;
use super::nbt::Reader;
use super::palette::{Numbers, UNKNOWN};
use super::{Result, SchematicError};
use crate::work::{Progress, Tell};
use std::borrow::Cow;
use std::io::Read;

/// The number of cells that are passed on at once.
const BATCH: usize = 4096;
/// The number of bytes that are checked together.
const GROUP: usize = 8;
const BAD_NUMBER: &str = "expected a number of 32 bits or less";

struct Unpacker<'a> {
    numbers: &'a Numbers,
    /// The bits of an incomplete number, and how many there are.
    bits: u32,
    shift: u32,
    cells: Box<[u16; BATCH]>,
    count: usize,
}

/// Reads `length` bytes of packed cells into the filler. Cells before an error are kept.
pub(super) fn read_cells<R: Read>(
    reader: &mut Reader<'_, R>,
    length: u64,
    numbers: &Numbers,
    filler: &mut Filler<'_>,
    progress: Tell<'_>,
) -> Result<()> {
    let mut unpacker = Unpacker { numbers, bits: 0, shift: 0, cells: Box::new([0; BATCH]), count: 0 };
    let path = reader.path().to_owned();
    let mut left = length;
    while left > 0 {
        let before = reader.offset();
        let mut part = reader.part(left)?;
        left -= part.len() as u64;
        let end = before + part.len() as u64;
        while !part.is_empty() {
            let unpacked = unpacker.unpack(&mut part);
            let at = || format!("byte {}: {path}", end - part.len() as u64);
            push(filler, &unpacker.cells[..unpacker.count]).map_err(|error| error.within(&at()))?;
            unpacker.count = 0;
            unpacked.map_err(|what| SchematicError::malformed(at(), format!("cell {}: {what}", filler.filled())))?;
        }
        if progress(&Progress::of(filler.filled(), filler.volume())).is_break() {
            return Err(SchematicError::Cancelled);
        }
    }
    match filler.filled() {
        _ if unpacker.shift > 0 => Err(reader.malformed(BAD_NUMBER)),
        found if found < filler.volume() => Err(count_error(filler.volume(), found).within(&reader.place())),
        _ => Ok(()),
    }
}

/// Passes cells on. An error has no place yet.
fn push(filler: &mut Filler<'_>, cells: &[u16]) -> Result<()> {
    let room = filler.volume() - filler.filled();
    let fitting = cells.len().min(usize::try_from(room).unwrap_or(usize::MAX));
    filler.push(&cells[..fitting])?;
    match cells.len() - fitting {
        0 => Ok(()),
        more => Err(count_error(filler.volume(), filler.volume() + more as u64)),
    }
}

fn count_error(expected: u64, found: u64) -> SchematicError {
    SchematicError::malformed("", format!("expected {expected} cells, found {found}"))
}

impl Unpacker<'_> {
    /// Unpacks until the batch is full or the bytes are used up. An error is a description, and the cells before it are kept.
    fn unpack(&mut self, bytes: &mut &[u8]) -> std::result::Result<(), Cow<'static, str>> {
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

    /// Unpacks numbers of one byte each.
    fn unpack_single(&mut self, group: &[u8]) -> std::result::Result<(), Cow<'static, str>> {
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
    fn unpack_byte(&mut self, byte: u8) -> std::result::Result<(), Cow<'static, str>> {
        let bits = u32::from(byte & 0x7F);
        if self.shift > 28 || bits << self.shift >> self.shift != bits {
            return Err(BAD_NUMBER.into());
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
            return Err(format!("number {number} is not in the palette").into());
        }
        self.cells[self.count] = place;
        self.count += 1;
        Ok(())
    }
}

/// The number of leading bytes that are complete numbers, in whole groups.
fn single_bytes(bytes: &[u8]) -> usize {
    const MORE: u64 = 0x8080_8080_8080_8080;
    let (groups, _) = bytes.as_chunks::<GROUP>();
    let is_single = |group: &&[u8; GROUP]| u64::from_le_bytes(**group) & MORE == 0;
    groups.iter().take_while(is_single).count() * GROUP
}
