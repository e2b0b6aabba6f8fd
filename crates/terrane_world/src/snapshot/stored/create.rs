//! Creates stored snapshots.

use super::index::{IndexedColumn, IndexedFile, MAX_CHUNKS};
use super::{INDEX, Result, StoreOptions, StoredSnapshot, StoredSnapshotError};
use crate::block::BlockRegistry;
use crate::snapshot::schematic::{Schematic, WriteOptions};
use crate::snapshot::translation::{Outward, TranslationError, TranslationOptions};
use crate::snapshot::{ColumnSnapshot, Relocation, Snapshot};
use crate::space::{BlockBox, CHUNK_SIZE, ChunkPos, ColumnPos, DimensionId};
use crate::work::{FileError, Progress, Tell, sync_folder};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

impl StoredSnapshot {
    /// Stores a snapshot in a new folder, with the owner's data.
    ///
    /// Until it is complete, the folder has another name, so a crash leaves either the whole snapshot or none.
    /// Leftovers of an earlier crash with the same name are removed. No other thread or process may create a snapshot
    /// of this name at the same time.
    ///
    /// `progress` is called after each column with the number of columns, as in all methods that process a stored
    /// snapshot, and can cancel.
    ///
    /// # Errors
    /// Fails if the name exists, if the registry does not know a block, on I/O errors, and if `progress` cancels. No
    /// files are left then.
    pub fn create(
        folder: &Path,
        (dimension, snapshot): (DimensionId, &Snapshot),
        registry: &BlockRegistry,
        options: &StoreOptions,
        owner_data: BTreeMap<String, String>,
        progress: Tell<'_>,
    ) -> Result<Self> {
        let unfinished = unfinished(folder)?;
        if fs::symlink_metadata(folder).is_ok() {
            return Err(StoredSnapshotError::AlreadyExists { path: folder.to_path_buf() });
        }
        clear(&unfinished)?;
        fs::create_dir_all(&unfinished).map_err(FileError::of(&unfinished, "create"))?;
        let mut stored = Self {
            folder: folder.to_path_buf(),
            dimension,
            area: *snapshot.area(),
            parts: snapshot.parts(),
            concerned: snapshot.concerned.as_deref().cloned(),
            owner_data,
            columns: BTreeMap::new(),
        };
        let written = stored.write(&unfinished, snapshot, registry, options, progress);
        let finished = written.and_then(|()| finish(&unfinished, folder, options.sync));
        if finished.is_err() {
            // If this fails, the next call removes it.
            let _ = clear(&unfinished);
        }
        finished.map(|()| stored)
    }

    /// Removes the folder with all its content.
    pub fn remove(self) -> Result<()> {
        let gone = unfinished(&self.folder)?;
        clear(&gone)?;
        // A crash in the middle leaves nothing under the snapshot's name.
        fs::rename(&self.folder, &gone).map_err(FileError::of(&self.folder, "rename"))?;
        clear(&gone)
    }

    fn write(
        &mut self,
        unfinished: &Path,
        snapshot: &Snapshot,
        registry: &BlockRegistry,
        options: &StoreOptions,
        progress: Tell<'_>,
    ) -> Result<()> {
        let total = snapshot.columns().len() as u64;
        for (done, (pos, column)) in (1..).zip(snapshot.columns()) {
            let mut files = Vec::new();
            for span in spans(pos, column, snapshot.area()) {
                let schematic = schematic(pos, column, snapshot.area(), span, registry)
                    .map_err(|source| StoredSnapshotError::Translation { column: pos, source })?;
                let (base, chunks) = span;
                let mut file = IndexedFile { base, chunks, bytes: 0, checksum: 0 };
                let path = unfinished.join(file.name(pos));
                let mut bytes = Vec::new();
                let written = schematic.write(&mut bytes, &WriteOptions { version: 3, level: options.level });
                written.map_err(|source| StoredSnapshotError::Schematic { path: path.clone(), source })?;
                (file.bytes, file.checksum) = (bytes.len() as u64, crc32fast::hash(&bytes));
                write_file(&path, &bytes, options.sync)?;
                files.push(file);
            }
            let heights = column.heights().cloned();
            self.columns.insert(pos, IndexedColumn { tick: column.tick(), heights, files });
            if progress(&Progress::of(done, total)).is_break() {
                return Err(StoredSnapshotError::Cancelled);
            }
        }
        write_file(&unfinished.join(INDEX), self.to_text().as_bytes(), options.sync)
    }
}

/// The name of a snapshot's folder until it is complete.
pub(super) fn unfinished(folder: &Path) -> Result<PathBuf> {
    let name = folder.file_name().ok_or_else(|| FileError::of(folder, "name")(ErrorKind::InvalidInput.into()))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(".unfinished");
    Ok(folder.with_file_name(hidden))
}

/// Removes leftovers of an earlier attempt.
pub(super) fn clear(unfinished: &Path) -> Result<()> {
    match fs::remove_dir_all(unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(FileError::of(unfinished, "remove")(error).into()),
        _ => Ok(()),
    }
}

/// Renames the complete folder to the snapshot's name.
fn finish(unfinished: &Path, folder: &Path, sync: bool) -> Result<()> {
    if sync {
        sync_folder(unfinished)?;
    }
    fs::rename(unfinished, folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory => {
            StoredSnapshotError::AlreadyExists { path: folder.to_path_buf() }
        }
        _ => FileError::of(folder, "create")(error).into(),
    })?;
    Ok(folder.parent().filter(|_| sync).map_or(Ok(()), sync_folder)?)
}

/// The chunk heights of each file as base and count. A file is as high as its content, up to the limit of the format.
fn spans(pos: ColumnPos, column: &ColumnSnapshot, area: &BlockBox) -> Vec<(i64, u32)> {
    let chunks = column.chunks().map(|(y, _)| y).filter(|y| area.part(pos.chunk(*y)).is_some());
    let entities = column.entities().iter().map(|entity| entity.block.chunk().y);
    let mut spans: Vec<(i64, u32)> = Vec::new();
    for y in chunks.chain(entities).collect::<BTreeSet<_>>() {
        match spans.last_mut() {
            Some((base, chunks)) if y.abs_diff(*base) < MAX_CHUNKS.into() => *chunks = (y.abs_diff(*base) + 1) as u32,
            _ => spans.push((y, 1)),
        }
    }
    if spans.is_empty() {
        // A column of air has a file too.
        spans.push((area.min.chunk().y, 1));
    }
    spans
}

/// The schematic of one file of a column.
fn schematic(
    pos: ColumnPos,
    column: &ColumnSnapshot,
    area: &BlockBox,
    (base, chunks): (i64, u32),
    registry: &BlockRegistry,
) -> std::result::Result<Schematic, TranslationError> {
    let translation = TranslationOptions { keeps_ids: true, ..TranslationOptions::default() };
    let side = CHUNK_SIZE as u32;
    let mut outward = Outward::new(registry, &translation, [side, chunks * side, side]);
    let is_inside = |y: i64| y.checked_sub(base).is_some_and(|y| (0..i64::from(chunks)).contains(&y));
    for (y, chunk) in column.chunks().filter(|(y, _)| is_inside(*y)) {
        if let Some(part) = area.part(pos.chunk(y)) {
            outward.add_chunk(ChunkPos::new(0, y - base, 0), chunk, &part)?;
        }
    }
    let corner = pos.chunk(base).min_block();
    for entity in column.entities().iter().filter(|entity| is_inside(entity.block.chunk().y)) {
        let to_corner = Relocation { from: corner, ..Relocation::default() };
        outward.add_entity(&to_corner.entity(entity)?);
    }
    Ok(outward.finish(corner))
}

fn write_file(path: &Path, bytes: &[u8], sync: bool) -> Result<()> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        if sync { file.sync_all() } else { Ok(()) }
    };
    Ok(write().map_err(FileError::of(path, "write"))?)
}
