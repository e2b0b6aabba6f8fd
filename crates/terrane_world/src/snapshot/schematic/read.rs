//! From a file to a schematic, whichever version it has.

use super::draft::Draft;
use super::nbt::{Budget, NbtKind, Reader};
use super::source::Source;
use super::{Result, Schematic, SchematicError};
use crate::work::Tell;
use std::io::Read;
use std::ops::ControlFlow;

/// Bytes behind the data that are looked at: for the checksum, and for what does not belong there.
const LOOKED_AT: u64 = 1 << 16;

/// How a schematic is read, and what its file may ask for at the most: checked before anything is done with a number that the
/// file declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Bytes after decompression.
    pub inflated_bytes: u64,
    /// Bytes of memory that the schematic takes in all, with the allocator's overhead for each value.
    pub memory: u64,
    /// Blocks in the volume that the size declares. The format itself has no room for more than 2^31 - 1.
    pub volume: u64,
    /// Whether to keep what could be read of a damaged file and the memory suffices for. The rest is air, and
    /// [`ReadReport::damage`] says what is wrong.
    pub salvage: bool,
}

impl Default for ReadOptions {
    /// Room for the largest volume, 4 GiB of data and 1 GiB of memory; damaged files are refused.
    fn default() -> Self {
        Self { inflated_bytes: 4 << 30, memory: 1 << 30, volume: (1 << 31) - 1, salvage: false }
    }
}

/// What is to be said of a file besides what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// What is wrong with it, if it was to be salvaged: what came after that is missing.
    pub damage: Option<SchematicError>,
    /// Blocks that were read, up to the first one for which there was no memory. The rest is air.
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

impl Schematic {
    /// Reads a file, from gzip or plain.
    ///
    /// Memory is taken for what is in it and never for a length that it declares, and no more than the options allow.
    pub fn read(source: impl Read, options: &ReadOptions) -> Result<(Self, ReadReport)> {
        Self::read_with(source, options, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`read`](Self::read), and tells how far it is, in blocks. Where blocks come before what is needed to understand
    /// them, it is told that none are done, and of how many bytes they are.
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

/// Looks at what follows the data.
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
    // What does not belong to it cannot damage it.
    report.has_trailing_bytes |= reader.into_source().has_more().unwrap_or(true);
    Ok(())
}
