//! From a file to a schematic, whichever version it has.

use super::cells::CellSource;
use super::draft::Draft;
use super::error::shortened;
use super::nbt::{Budget, FILE, NbtKind, Reader};
use super::source::Source;
use super::{ReadOptions, Schematic, SchematicError};
use crate::work::Tell;
use std::io::Read;
use std::ops::ControlFlow;

/// Bytes behind the data that are looked at: for the checksum, and for what does not belong there.
const LOOKED_AT: u64 = 1 << 16;

/// What is to be said of a file besides what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// What is wrong with it, if it was to be salvaged: what came after that is missing.
    pub damage: Option<SchematicError>,
    /// Blocks that were read. The rest is air.
    pub blocks: u64,
    /// Uncompressed bytes that were read.
    pub bytes: u64,
    /// The data is complete, but the checksum behind it is missing.
    pub lacks_checksum: bool,
    /// Something follows the data. It was not read.
    pub has_trailing_bytes: bool,
    /// Block entities outside of the box. They are kept.
    pub stray_block_entities: u64,
    /// Block entities and entities without a valid place or name. They were left out, and the rest was read.
    pub malformed: u64,
    /// The error in the first of those, with its index in the path.
    pub first_malformed: Option<SchematicError>,
}

impl<R: Read> CellSource for Reader<'_, R> {
    fn part(&mut self, most: u64) -> Result<&[u8], SchematicError> {
        self.part(most)
    }

    fn offset(&self) -> u64 {
        self.offset()
    }
}

impl Schematic {
    /// Reads a file, from gzip or plain.
    ///
    /// Memory is taken for what is in it and never for a length that it declares, and no more than the
    /// [limits](super::SchematicLimits) allow.
    pub fn read(source: impl Read, options: &ReadOptions) -> Result<(Self, ReadReport), SchematicError> {
        Self::read_with(source, options, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`read`](Self::read), and tells how far it is, in blocks. Where blocks come before what is needed to understand
    /// them, it is told that none are done, and of how many bytes they are.
    pub fn read_with(
        source: impl Read,
        options: &ReadOptions,
        progress: Tell<'_>,
    ) -> Result<(Self, ReadReport), SchematicError> {
        let budget = Budget::new(options.limits.memory);
        let opened = Source::open(source);
        let failed = |error: std::io::Error| {
            let (kind, message) = (error.kind(), shortened(&error.to_string()));
            SchematicError::Io { offset: 0, field: FILE.to_owned(), kind, message }
        };
        let (source, first) = opened.map_err(failed)?;
        match first {
            Some(0x1F | 0x0A) => {}
            Some(found) => return Err(SchematicError::NotASchematic { found }),
            None => return Err(SchematicError::Truncated { offset: 0, field: FILE.to_owned() }),
        }
        let mut reader = Reader::new(source, &options.limits, &budget);
        let mut report = ReadReport::default();
        let mut draft = Draft::new(&options.limits, &budget, progress);
        let read = read_root(&mut reader, &mut draft);
        report.bytes = reader.offset();
        let ended = if read.is_ok() { read_end(reader, &mut report) } else { Ok(()) };
        let is_final = matches!(read, Err(SchematicError::Cancelled | SchematicError::Version { .. }));
        if is_final || !options.salvage || !draft.has_size() {
            read.clone()?;
            ended.clone()?;
        }
        let settled = draft.settle(report.bytes);
        if settled == Err(SchematicError::Cancelled) || !options.salvage || !draft.has_size() {
            settled.clone()?;
        }
        let (schematic, finished) = draft.finish(&mut report);
        if !options.salvage {
            finished.clone()?;
        }
        report.damage = [read, ended, settled, finished].into_iter().find_map(Result::err);
        Ok((schematic, report))
    }
}

fn read_root<R: Read>(reader: &mut Reader<'_, R>, draft: &mut Draft<'_>) -> Result<(), SchematicError> {
    let kind = reader.tag()?;
    reader.expect(NbtKind::Compound, kind)?;
    reader.text()?;
    draft.read(reader, 1)
}

/// Looks at what follows the data.
fn read_end<R: Read>(mut reader: Reader<'_, Source<R>>, report: &mut ReadReport) -> Result<(), SchematicError> {
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
    // What does not belong to it cannot damage it.
    report.has_trailing_bytes |= reader.into_source().has_more().unwrap_or(true);
    Ok(())
}
