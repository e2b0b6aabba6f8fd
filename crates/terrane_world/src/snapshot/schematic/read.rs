//! Reads schematics of all versions, and decompresses them while reading.

use super::draft::Draft;
use super::nbt::{Budget, NbtKind, Reader};
use super::{ReadOptions, ReadReport, Result, Schematic, SchematicError};
use crate::work::Tell;
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;

/// The number of bytes after the data to read, for the checksum and for trailing bytes.
const LOOKED_AT: u64 = 1 << 16;

impl Schematic {
    /// Reads a file, compressed with gzip or not.
    ///
    /// Allocates memory for content of the file, never for a declared length, and no more than the options allow.
    pub fn read(source: impl Read, options: &ReadOptions) -> Result<(Self, ReadReport)> {
        Self::read_with(source, options, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`read`](Self::read), and reports progress in blocks. While cells are set aside because they cannot be
    /// decoded yet, it reports 0 blocks and the number of their bytes.
    pub fn read_with(source: impl Read, options: &ReadOptions, progress: Tell<'_>) -> Result<(Self, ReadReport)> {
        let budget = Budget::new(options.memory);
        let start = || "byte 0: the file".to_owned();
        let (source, first) = Source::open(source).map_err(|error| SchematicError::io(start(), &error))?;
        match first {
            Some(0x1F | 0x0A) => {}
            Some(found) => return Err(SchematicError::NotASchematic { found }),
            None => return Err(SchematicError::Truncated { at: start() }),
        }
        let mut reader = Reader::new(source, options, &budget);
        let mut draft = Draft::new(options, &budget, progress);
        let read = read_root(&mut reader, &mut draft);
        draft.report.bytes = reader.offset();
        let ended = if read.is_ok() { read_end(reader, &mut draft.report) } else { Ok(()) };
        let is_final = matches!(read, Err(SchematicError::Cancelled | SchematicError::Version { .. }));
        if is_final || !options.salvage || !draft.has_size() {
            read.clone()?;
            ended.clone()?;
        }
        let settled = draft.settle();
        if settled == Err(SchematicError::Cancelled) || !options.salvage || !draft.has_size() {
            settled.clone()?;
        }
        let (schematic, mut report, finished) = draft.finish();
        if !options.salvage {
            finished.clone()?;
        }
        report.damage = [read, ended, settled, finished].into_iter().find_map(Result::err);
        Ok((schematic, report))
    }
}

fn read_root<R: Read>(reader: &mut Reader<'_, R>, draft: &mut Draft<'_>) -> Result<()> {
    let kind = reader.tag()?;
    reader.expect(NbtKind::Compound, kind)?;
    reader.text()?;
    draft.read(reader, 1)
}

/// Checks the bytes after the data.
fn read_end<R: Read>(mut reader: Reader<'_, Source<R>>, report: &mut ReadReport) -> Result<()> {
    let end = reader.offset();
    while reader.offset() - end < LOOKED_AT {
        match reader.is_at_end() {
            Ok(true) => break,
            Ok(false) => {
                report.has_trailing_bytes = true;
                reader.part(LOOKED_AT)?;
            }
            Err(SchematicError::Truncated { .. }) => {
                report.lacks_checksum = true;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    // Trailing bytes cannot damage the data.
    report.has_trailing_bytes |= reader.into_source().has_more().unwrap_or(true);
    Ok(())
}

/// The number of compressed bytes that are read at once.
const BUFFER: usize = 1 << 15;
const MAGIC: [u8; 2] = [0x1F, 0x8B];

/// A file, decompressed: gzip with one or more members, or plain data.
pub(super) enum Source<R: Read> {
    Plain(BufReader<R>),
    Gzip(Box<GzDecoder<BufReader<R>>>),
    /// After the last member. The reader is at the bytes that follow it.
    Ended(BufReader<R>),
    /// Temporary state between two members.
    Changing,
}

impl<R: Read> Source<R> {
    /// Opens a file and also returns its first byte; `None` if it is empty.
    pub fn open(source: R) -> io::Result<(Self, Option<u8>)> {
        let mut reader = BufReader::with_capacity(BUFFER, source);
        let first = reader.fill_buf()?.first().copied();
        let source =
            if first == Some(MAGIC[0]) { Self::Gzip(Box::new(GzDecoder::new(reader))) } else { Self::Plain(reader) };
        Ok((source, first))
    }

    /// Returns `true` if bytes follow the last member that belong to no member.
    pub fn has_more(&mut self) -> io::Result<bool> {
        match self {
            Self::Ended(reader) => Ok(!reader.fill_buf()?.is_empty()),
            _ => Ok(false),
        }
    }

    /// After a member: moves on to the next one, or to the end.
    fn change(&mut self) -> io::Result<()> {
        if let Self::Gzip(decoder) = std::mem::replace(self, Self::Changing) {
            let mut reader = decoder.into_inner();
            let is_member = reader.fill_buf().map(|bytes| bytes.starts_with(&MAGIC));
            *self = match is_member {
                Ok(true) => Self::Gzip(Box::new(GzDecoder::new(reader))),
                _ => Self::Ended(reader),
            };
            is_member?;
        }
        Ok(())
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                Self::Plain(reader) => return reader.read(buffer),
                Self::Gzip(decoder) => match decoder.read(buffer)? {
                    0 if !buffer.is_empty() => self.change()?,
                    count => return Ok(count),
                },
                Self::Ended(_) | Self::Changing => return Ok(0),
            }
        }
    }
}
