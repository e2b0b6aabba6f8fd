//! Reads schematics of all versions.

use super::draft::Draft;
use super::nbt::{Budget, NbtKind, Reader};
use super::source::Source;
use super::{ReadOptions, ReadReport, Result, Schematic, SchematicError};
use crate::work::Tell;
use std::io::Read;
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
