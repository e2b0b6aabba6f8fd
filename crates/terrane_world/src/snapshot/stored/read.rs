//! Reads columns from their files.

use super::index::{IndexedColumn, IndexedFile};
use super::{Result, StoredSnapshot, StoredSnapshotError, damaged, wrong_checksum};
use crate::block::BlockRegistry;
use crate::snapshot::schematic::{ReadOptions, Schematic};
use crate::snapshot::translation::{TranslationError, TranslationOptions, TranslationReport};
use crate::snapshot::{BlockTurns, ColumnSnapshot, Relocation, Snapshot};
use crate::space::{CHUNK_SIZE, ColumnPos};
use crate::work::FileError;
use std::fs::File;
use std::io::{ErrorKind, Read};

/// The number of bytes read at a time.
const PIECE: usize = 1 << 16;

impl StoredSnapshot {
    /// Reads one column after verifying its checksum, and reports content that the registry has no place for.
    ///
    /// # Errors
    /// Fails if the column is not part of the snapshot, if a file is missing or damaged, or if the registry knows a
    /// block neither by name nor as a placeholder.
    pub fn read_column(&self, pos: ColumnPos, registry: &BlockRegistry) -> Result<(ColumnSnapshot, TranslationReport)> {
        let indexed = self.columns.get(&pos).ok_or(StoredSnapshotError::NoSuchColumn { column: pos })?;
        let IndexedColumn { tick, heights, files } = indexed;
        let mut column = ColumnSnapshot { tick: *tick, heights: heights.clone(), ..ColumnSnapshot::default() };
        let mut report = TranslationReport::default();
        for file in files {
            report.add(&self.read_file(pos, file, registry, &mut column)?);
        }
        column.chunks.shrink_to_fit();
        Ok((column, report))
    }

    /// Reads the files of one column, and checks their lengths and checksums. Takes little memory, however large the files are.
    ///
    /// # Errors
    /// Fails if the column is not part of the snapshot, or at its first missing or damaged file.
    pub fn verify_column(&self, pos: ColumnPos) -> Result<()> {
        let indexed = self.columns.get(&pos).ok_or(StoredSnapshotError::NoSuchColumn { column: pos })?;
        indexed.files.iter().try_for_each(|file| self.read_through(pos, file, |_| {}))
    }

    /// The verified bytes of a file.
    pub(super) fn bytes_of(&self, column: ColumnPos, file: &IndexedFile) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_through(column, file, |piece| bytes.extend_from_slice(piece))?;
        Ok(bytes)
    }

    /// Reads a file piece by piece, and verifies it at the end.
    fn read_through(&self, column: ColumnPos, file: &IndexedFile, mut take: impl FnMut(&[u8])) -> Result<()> {
        let path = self.folder.join(file.name(column));
        let opened = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(damaged(path, "it is missing"));
            }
            other => other.map_err(FileError::of(&path, "open"))?,
        };
        // Never reads more than the expected length, however long the file is.
        let mut rest = opened.take(file.bytes.saturating_add(1));
        let (mut piece, mut hasher, mut found) = (vec![0; PIECE], crc32fast::Hasher::new(), 0);
        loop {
            let read = match rest.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.map_err(FileError::of(&path, "read"))?,
            };
            if read == 0 {
                break;
            }
            hasher.update(&piece[..read]);
            take(&piece[..read]);
            found += read as u64;
        }
        if found != file.bytes {
            return Err(damaged(path, format!("it should have {} bytes, found {found}", file.bytes)));
        }
        match hasher.finalize() {
            found if found == file.checksum => Ok(()),
            found => Err(damaged(path, wrong_checksum(file.checksum, found))),
        }
    }

    /// Adds the content of a file to a column.
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
        let broken = |source| StoredSnapshotError::Schematic { path: path(), source };
        let read = Schematic::read(&bytes[..], &ReadOptions { volume, ..ReadOptions::default() });
        let (schematic, report) = read.map_err(broken)?;
        if let Some(source) = report.first_malformed {
            return Err(broken(source));
        }
        let wrong = |what: &str| damaged(path(), what);
        if schematic.size() != size {
            return Err(wrong("it has another size than the index says"));
        }
        let failed = |source: TranslationError| StoredSnapshotError::Translation { column: pos, source };
        let options = TranslationOptions::default();
        let read = Snapshot::from_schematic(schematic, self.dimension, registry, &options);
        let (snapshot, report) = read.map_err(failed)?;
        let to_column = Relocation { to: pos.chunk(file.base).min_block(), ..Relocation::default() };
        let placed = snapshot.placed(&to_column, &BlockTurns::default());
        let mut placed = placed.map_err(|source| failed(source.into()))?;
        let Some(mut read) = placed.remove_column(pos) else { return Ok(report) };
        let is_inside = read.entities.iter().all(|entity| self.area.contains(entity.block));
        if !is_inside || report.entities > 0 {
            return Err(wrong("an entity is outside of the column"));
        }
        if !read.chunks.iter().all(|(y, _)| column.holds(*y)) {
            return Err(wrong("there are blocks at a height that was not captured"));
        }
        column.chunks.append(&mut read.chunks);
        column.entities.append(&mut read.entities);
        Ok(report)
    }
}
