//! Writing of an export's files, and continuation of an interrupted export.

use super::ExportReport;
use super::format::{EXPORT_SIGNATURE, Files, Packed};
use super::name::Name;
use crate::bytes::record;
use crate::space::ColumnPos;
use crate::upkeep::UpkeepError;
use crate::work::{FileError, if_exists};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use terrane_objects::{FILE_BLOCK_BYTES, ObjectBatch, ObjectStore, ObjectStoreOptions};

type Result<T> = std::result::Result<T, UpkeepError>;

/// The progress of an export: the object `progress` of the file that is being written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// A checksum that distinguishes states of the world within one session.
    pub state: u64,
    /// The number of processed batches.
    pub batches: u64,
    /// The number of written batches. Batches whose columns are all lost are not written.
    pub written: u64,
    /// The key in the world of the last kept object in the files; `None` before the first.
    pub kept: Option<Vec<u8>>,
    /// The number of written batches before each file.
    pub starts: Vec<u64>,
    /// The columns that were left out because of damage.
    pub lost_columns: Vec<ColumnPos>,
    pub report: ExportReport,
}

/// The file that is being written, and the objects waiting to be written.
pub(super) struct Writer {
    path: PathBuf,
    header: Vec<u8>,
    objects_per_file: usize,
    /// The approximate size at which waiting objects are written to the file.
    at_once: usize,
    store: ObjectStore,
    number: u32,
    waiting: ObjectBatch,
    /// The room that the waiting objects take in the file.
    room: usize,
    pub progress: Progress,
}

/// The path of the file with this number, from 1, of the export whose first file is `path`.
pub fn export_file(path: &Path, number: u32) -> PathBuf {
    match number {
        1 => path.to_path_buf(),
        number => {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            name.into()
        }
    }
}

impl Writer {
    /// Begins or continues an export. Its report is `finished` if the export turns out to be complete. `at_once` is the
    /// size at which waiting objects are written, and `first` gives the first objects of a new export.
    pub fn open(
        path: &Path,
        header: Vec<u8>,
        state: u64,
        objects_per_file: usize,
        at_once: usize,
        first: impl FnOnce() -> Vec<Packed>,
    ) -> Result<Self> {
        let store = open_or_create(path)?;
        let found = read(&store, &Name::Export)?;
        let (store, number, progress) = match found {
            None => begin(store, path, &header, state, first)?,
            Some(found) if found == header => go_on(store, path, &header, state)?,
            Some(_) => return Err(UpkeepError::OtherExport { path: path.to_path_buf() }),
        };
        let (path, waiting) = (path.to_path_buf(), ObjectBatch::default());
        Ok(Self { path, header, objects_per_file, at_once, store, number, waiting, room: 0, progress })
    }

    /// Adds objects that belong together. They go into the same file, which is the next one if this one is full.
    pub fn add(&mut self, objects: Vec<Packed>) -> Result<()> {
        let count = self.store.len() + self.waiting.len();
        // The file's own objects alone never fill it.
        if count + objects.len() > self.objects_per_file && self.has_begun() {
            self.begin_file()?;
        }
        for (key, version, data) in objects {
            // Even the smallest object takes a block.
            self.room += FILE_BLOCK_BYTES + data.len();
            self.waiting.write(key, version, data);
        }
        Ok(())
    }

    /// Returns `true` if the file holds more than its own objects.
    fn has_begun(&self) -> bool {
        !self.waiting.is_empty()
            || self.progress.starts.last().is_some_and(|start| *start < self.progress.written)
            || self.progress.kept.is_some()
    }

    /// Writes the waiting objects and the progress, once they reach `at_once`.
    pub fn write_if_full(&mut self) -> Result<()> {
        match self.room >= self.at_once {
            true => self.write(),
            false => Ok(()),
        }
    }

    /// Writes the waiting objects and the progress.
    pub fn write(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.waiting.write(Name::Progress.to_string(), 0, record::encode(&self.progress));
        self.store.apply(&self.waiting)?;
        (self.waiting, self.room) = (ObjectBatch::default(), 0);
        Ok(())
    }

    fn begin_file(&mut self) -> Result<()> {
        self.write()?;
        let path = export_file(&self.path, self.number + 1);
        let mut next = open_or_create(&path)?;
        if !next.is_empty() {
            return Err(UpkeepError::OtherExport { path });
        }
        self.progress.starts.push(self.progress.written);
        let mut batch = ObjectBatch::default();
        batch.write(Name::Export.to_string(), 0, self.header.clone());
        batch.write(Name::Progress.to_string(), 0, record::encode(&self.progress));
        // From here on the export continues in the new file. The progress there takes precedence over that in the old one.
        next.apply(&batch)?;
        forget_progress(&mut self.store)?;
        std::mem::replace(&mut self.store, next).close()?;
        self.number += 1;
        Ok(())
    }

    /// Completes the export, and adds `last` to the first file.
    pub fn finish(mut self, last: Vec<Packed>) -> Result<ExportReport> {
        self.write()?;
        let mut batch = batch_of(last);
        let files = Files { starts: self.progress.starts.clone(), columns: self.progress.report.columns };
        batch.write(Name::Files.to_string(), 0, record::encode(&files));
        let report = ExportReport { finished: true, ..self.report() };
        if self.number == 1 {
            batch.delete(Name::Progress.to_string());
            self.store.apply(&batch)?;
        } else {
            let mut first = open_or_create(&self.path)?;
            first.apply(&batch)?;
            first.close()?;
            forget_progress(&mut self.store)?;
        }
        self.store.close()?;
        Ok(report)
    }

    /// The totals so far.
    pub fn report(&self) -> ExportReport {
        ExportReport { files: self.number, ..self.progress.report.clone() }
    }
}

/// Begins an export in an empty store. Returns the store, its number and the progress.
fn begin(
    mut store: ObjectStore,
    path: &Path,
    header: &[u8],
    state: u64,
    first: impl FnOnce() -> Vec<Packed>,
) -> Result<(ObjectStore, u32, Progress)> {
    if !store.is_empty() {
        return Err(UpkeepError::OtherExport { path: path.to_path_buf() });
    }
    let next = export_file(path, 2);
    if exists(&next)? {
        return Err(UpkeepError::OtherExport { path: next });
    }
    let progress = Progress { state, starts: vec![0], ..Progress::default() };
    let mut batch = batch_of(first());
    batch.write(Name::Export.to_string(), 0, header);
    batch.write(Name::Progress.to_string(), 0, record::encode(&progress));
    store.apply(&batch)?;
    Ok((store, 1, progress))
}

/// The file in which the export with this first file continues, with its number and the progress.
fn go_on(first: ObjectStore, path: &Path, header: &[u8], state: u64) -> Result<(ObjectStore, u32, Progress)> {
    let is_finished = first.contains(&Name::Files.to_string());
    let last = last_with_progress(path, first, header)?;
    let Some((mut store, number)) = last else { return Err(UpkeepError::Exists { path: path.to_path_buf() }) };
    let other = || UpkeepError::OtherExport { path: export_file(path, number) };
    let progress = read(&store, &Name::Progress)?.ok_or_else(other)?;
    let mut progress: Progress = record::decode(&progress).map_err(|_| other())?;
    if progress.state != state {
        return Err(other());
    }
    if is_finished {
        forget_progress(&mut store)?;
        progress.report.finished = true;
    }
    Ok((store, number, progress))
}

fn batch_of(objects: Vec<Packed>) -> ObjectBatch {
    let mut batch = ObjectBatch::default();
    for (key, version, data) in objects {
        batch.write(key, version, data);
    }
    batch
}

/// The last file with a progress object; `None` if no file has one.
fn last_with_progress(path: &Path, first: ObjectStore, header: &[u8]) -> Result<Option<(ObjectStore, u32)>> {
    let is_it = |store: &ObjectStore| store.contains(&Name::Progress.to_string());
    let mut found = Some((first, 1)).filter(|(store, _)| is_it(store));
    for number in 2.. {
        let next = export_file(path, number);
        if !exists(&next)? {
            break;
        }
        let store = open_or_create(&next)?;
        if read(&store, &Name::Export)?.is_some_and(|of| of != header) {
            return Err(UpkeepError::OtherExport { path: next });
        }
        if is_it(&store)
            && let Some((mut older, _)) = found.replace((store, number))
        {
            // The process ended just after the next file was begun.
            forget_progress(&mut older)?;
            older.close()?;
        }
    }
    Ok(found)
}

fn forget_progress(store: &mut ObjectStore) -> Result<()> {
    let mut batch = ObjectBatch::default();
    batch.delete(Name::Progress.to_string());
    Ok(store.apply(&batch)?)
}

fn read(store: &ObjectStore, name: &Name<'_>) -> Result<Option<Vec<u8>>> {
    Ok(store.read(&name.to_string())?.map(|object| object.data))
}

fn exists(path: &Path) -> Result<bool> {
    Ok(path.try_exists().map_err(FileError::of(path, "look for"))?)
}

/// Opens an object store, or creates it. An empty file is left over from one that was never begun.
fn open_or_create(path: &Path) -> Result<ObjectStore> {
    let options = ObjectStoreOptions::default();
    match if_exists(fs::metadata(path)).map_err(FileError::of(path, "look for"))? {
        Some(file) if file.is_file() && file.len() == 0 => {
            fs::remove_file(path).map_err(FileError::of(path, "remove"))?;
        }
        Some(_) => return Ok(ObjectStore::open(path, EXPORT_SIGNATURE, options)?),
        None => {}
    }
    Ok(ObjectStore::create(path, EXPORT_SIGNATURE, options)?)
}
