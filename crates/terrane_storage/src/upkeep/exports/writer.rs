//! The files of an export as they are written, and where an export that was cut short goes on.

use super::ExportReport;
use super::format::{EXPORT_SIGNATURE, Files, Packed};
use super::name::Name;
use crate::bytes::record;
use crate::space::ColumnPos;
use crate::upkeep::UpkeepError;
use crate::work::{FileError, if_there};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use terrane_objects::{FILE_BLOCK_BYTES, ObjectBatch, ObjectStore, ObjectStoreOptions};

type Result<T> = std::result::Result<T, UpkeepError>;

/// How far an export has come: the object `progress` of the file that is written to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// What tells the state of the world from others that it had in the same session.
    pub state: u64,
    /// Batches that were come to.
    pub batches: u64,
    /// Those of them that are in the files: not all of whose columns are lost.
    pub written: u64,
    /// The key in the world of the last kept object that is in the files, if that has begun.
    pub kept: Option<Vec<u8>>,
    /// With how many written batches before it each file began.
    pub starts: Vec<u64>,
    /// Columns that were left out because something of them is damaged.
    pub lost_columns: Vec<ColumnPos>,
    pub report: ExportReport,
}

/// The file that is written to, and what waits to be written.
pub(super) struct Writer {
    path: PathBuf,
    header: Vec<u8>,
    objects_per_file: usize,
    /// About the room in the file with which a change is made.
    at_once: usize,
    store: ObjectStore,
    number: u32,
    waiting: ObjectBatch,
    /// What that takes in the file.
    room: usize,
    pub progress: Progress,
}

/// The file with this number, from 1, of an export whose first one this is.
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
    /// Begins an export, or goes on with one, whose report is finished if it turns out to be whole. `at_once` is the room in the
    /// file that is written at a time, and `first` what a new export begins with.
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

    /// Adds objects that belong together. They are in one file, the next one if this is full.
    pub fn add(&mut self, objects: Vec<Packed>) -> Result<()> {
        let count = self.store.len() + self.waiting.len();
        // The file's own objects alone are never too many.
        if count + objects.len() > self.objects_per_file && self.has_begun() {
            self.begin_file()?;
        }
        for (key, version, data) in objects {
            // The smallest takes a block.
            self.room += FILE_BLOCK_BYTES + data.len();
            self.waiting.write(key, version, data);
        }
        Ok(())
    }

    /// Whether anything but its head is in the file.
    fn has_begun(&self) -> bool {
        !self.waiting.is_empty()
            || self.progress.starts.last().is_some_and(|start| *start < self.progress.written)
            || self.progress.kept.is_some()
    }

    /// Writes what waits, if it is enough, together with how far the export is.
    pub fn write_if_full(&mut self) -> Result<()> {
        match self.room >= self.at_once {
            true => self.write(),
            false => Ok(()),
        }
    }

    /// Writes what waits, together with how far the export is.
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
        // From here on the export goes on there; what is left in the old one is told apart by that.
        next.apply(&batch)?;
        forget_progress(&mut self.store)?;
        std::mem::replace(&mut self.store, next).close()?;
        self.number += 1;
        Ok(())
    }

    /// Ends the export. `last` is what the first file gets besides.
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

    /// What was written so far.
    pub fn report(&self) -> ExportReport {
        ExportReport { files: self.number, ..self.progress.report.clone() }
    }
}

/// Begins an export in an empty store. Gives that and its number, and how far the export is.
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

/// The file with which an export goes on whose first one this is, its number, and how far it is.
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

/// The last file that says how far the export is, from this first one on; `None` if none does.
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
            // That is as far as the beginning of a file had come.
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

/// A file of no bytes is what is left of one that was never begun.
fn open_or_create(path: &Path) -> Result<ObjectStore> {
    let options = ObjectStoreOptions::default();
    match if_there(fs::metadata(path)).map_err(FileError::of(path, "look for"))? {
        Some(file) if file.is_file() && file.len() == 0 => {
            fs::remove_file(path).map_err(FileError::of(path, "remove"))?;
        }
        Some(_) => return Ok(ObjectStore::open(path, EXPORT_SIGNATURE, options)?),
        None => {}
    }
    Ok(ObjectStore::create(path, EXPORT_SIGNATURE, options)?)
}
