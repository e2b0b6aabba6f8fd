//! How a column comes out of its files.

use super::create::corner;
use super::index::{IndexedColumn, IndexedFile};
use super::{Result, StoredSnapshot, StoredSnapshotError};
use crate::block::BlockRegistry;
use crate::snapshot::schematic::{ReadOptions, Schematic, SchematicLimits};
use crate::snapshot::translation::{Inward, TranslationError, TranslationOptions, TranslationReport};
use crate::snapshot::{ColumnSnapshot, Relocation};
use crate::space::{BlockBox, BlockPos, CHUNK_SIZE, ColumnPos};
use crate::work::FileError;
use std::fs::File;
use std::io::{ErrorKind, Read};

pub(super) fn column(
    stored: &StoredSnapshot,
    pos: ColumnPos,
    registry: &BlockRegistry,
) -> Result<(ColumnSnapshot, TranslationReport)> {
    let Some(indexed) = stored.index.columns.get(&pos) else {
        return Err(StoredSnapshotError::NoSuchColumn { column: pos });
    };
    let IndexedColumn { tick, heights, files } = indexed;
    let mut column = ColumnSnapshot { tick: *tick, heights: heights.clone(), ..ColumnSnapshot::default() };
    let mut report = TranslationReport::default();
    for file in files {
        let of_file = stored.read_file(pos, file, registry, &mut column)?;
        report.add(&of_file);
    }
    column.chunks.shrink_to_fit();
    Ok((column, report))
}

impl StoredSnapshot {
    /// The bytes of a file, when they are what was written.
    pub(super) fn bytes_of(&self, column: ColumnPos, file: &IndexedFile) -> Result<Vec<u8>> {
        let path = self.folder.join(file.name(column));
        let opened = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(StoredSnapshotError::FileMissing { column, path });
            }
            other => other.map_err(FileError::of(&path, "open"))?,
        };
        let mut bytes = Vec::new();
        // Never more than there should be, however long it has become.
        let read = opened.take(file.bytes.saturating_add(1)).read_to_end(&mut bytes);
        let found = read.map_err(FileError::of(&path, "read"))? as u64;
        if found != file.bytes {
            return Err(StoredSnapshotError::FileLength { column, path, expected: file.bytes, found });
        }
        let found = crc32fast::hash(&bytes);
        match found == file.checksum {
            true => Ok(bytes),
            false => Err(StoredSnapshotError::FileChecksum { column, path, stored: file.checksum, found }),
        }
    }

    /// Adds what a file has to a column.
    fn read_file(
        &self,
        pos: ColumnPos,
        file: &IndexedFile,
        registry: &BlockRegistry,
        column: &mut ColumnSnapshot,
    ) -> Result<TranslationReport> {
        let bytes = self.bytes_of(pos, file)?;
        let path = || self.folder.join(file.name(pos));
        let side = CHUNK_SIZE as u32;
        let size = [side, file.chunks * side, side];
        let volume = size.map(u64::from).iter().product();
        let limits = SchematicLimits { volume, ..SchematicLimits::default() };
        let broken = |source| StoredSnapshotError::Schematic { column: pos, path: path(), source };
        let read = Schematic::read(&bytes[..], &ReadOptions { limits, salvage: false });
        let (schematic, report) = read.map_err(broken)?;
        if let Some(source) = report.first_malformed {
            return Err(broken(source));
        }
        let wrong = |what| StoredSnapshotError::Content { column: pos, path: path(), what };
        if schematic.size() != size {
            return Err(wrong("it has another size than the index says"));
        }
        let failed = |source: TranslationError| StoredSnapshotError::Translation { column: pos, source };
        let (options, mut content) = (TranslationOptions::default(), ());
        let mut inward = Inward::new(&schematic, registry, &options, &mut content).map_err(failed)?;
        let whole = BlockBox::new(BlockPos::default(), BlockPos::new(15, i64::from(size[1]) - 1, 15));
        let back = Relocation { to: corner(pos, file.base), ..Relocation::default() };
        for (number, entity) in (0..).zip(&schematic.entities) {
            let entity = inward.entity(entity, number, self.index.dimension, &whole);
            let entity = entity.and_then(|entity| back.entity(&entity).ok());
            let entity = entity.filter(|entity| entity.column() == pos && self.index.area.contains(entity.block));
            column.entities.push(entity.ok_or_else(|| wrong("an entity is outside of the column"))?);
        }
        inward.add_block_entities(schematic.block_entities).map_err(failed)?;
        for (at, chunk) in schematic.blocks.into_chunks() {
            if let Some(chunk) = inward.chunk(at, chunk).map_err(failed)? {
                let y = file.base + at.y;
                if !column.holds(y) {
                    return Err(wrong("there are blocks at a height that was not captured"));
                }
                column.chunks.push((y, chunk));
            }
        }
        Ok(inward.finish())
    }
}
