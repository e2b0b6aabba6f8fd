//! Snapshots in folders: a version 3 schematic for each column, which other programs can open, and an index.
//!
//! ```text
//! arena/
//!   index.txt       the box, and of each column: heights, tick, length and checksum of its files
//!   -3_12_0.schem   the column -3, 12, from the block height 0 on, as far as there is anything but air
//! ```
//!
//! `docs/snapshots.md` describes the format. A folder is written under another name and renamed when it is complete.
//! No file is parsed before its checksum is verified.

mod create;
mod index;
mod read;
#[cfg(test)]
mod tests;

use super::translation::TranslationReport;
use super::{Snapshot, SnapshotParts};
use crate::block::BlockRegistry;
use crate::snapshot::schematic::SchematicError;
use crate::snapshot::translation::TranslationError;
use crate::space::{BlockBox, ColumnPos, DimensionId};
use crate::work::{FileError, Progress, Tell};
use index::IndexedColumn;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use uuid::Uuid;

const INDEX: &str = "index.txt";

type Result<T> = std::result::Result<T, StoredSnapshotError>;

/// Options for storing a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// The compression level: 0 for none to 9 for the smallest files.
    pub level: u32,
    /// `true` to wait until the snapshot would survive a loss of power.
    pub sync: bool,
}

impl Default for StoreOptions {
    /// Level 3, synced.
    fn default() -> Self {
        Self { level: 3, sync: true }
    }
}

/// A snapshot in a folder. Its index is in memory and has been verified.
///
/// Several threads can read columns at once:
///
/// ```no_run
/// # use terrane_world::block::BlockRegistry;
/// # use terrane_world::snapshot::{Snapshot, StoredSnapshot};
/// # use terrane_world::space::ColumnPos;
/// # fn read(folder: &std::path::Path, registry: &BlockRegistry) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let stored = StoredSnapshot::open(folder)?;
/// let columns: Vec<ColumnPos> = stored.columns().collect();
/// let mut snapshot = stored.without_columns();
/// std::thread::scope(|scope| {
///     let read = |part: Vec<ColumnPos>| {
///         let stored = &stored;
///         let one = move |pos| Ok((pos, stored.read_column(pos, registry)?));
///         scope.spawn(move || part.into_iter().map(one).collect::<Result<Vec<_>, terrane_world::snapshot::StoredSnapshotError>>())
///     };
///     let threads: Vec<_> = columns.chunks(columns.len() / 2 + 1).map(|part| read(part.to_vec())).collect();
///     for thread in threads {
///         for (pos, (column, _)) in thread.join().map_err(|_| "a thread failed")?? {
///             snapshot.insert_column(pos, column);
///         }
///     }
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSnapshot {
    folder: PathBuf,
    dimension: DimensionId,
    area: BlockBox,
    parts: SnapshotParts,
    /// The entities that the snapshot covers; `None` for all.
    concerned: Option<BTreeSet<Uuid>>,
    owner_data: BTreeMap<String, String>,
    columns: BTreeMap<ColumnPos, IndexedColumn>,
}

impl StoredSnapshot {
    /// Reads the index of a snapshot, but no columns.
    ///
    /// # Errors
    /// Fails if the folder has no index, or if the index is damaged or of an unknown version.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(INDEX);
        let text = match fs::read(&path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(StoredSnapshotError::NotASnapshot { path: folder.to_path_buf() });
            }
            other => other.map_err(FileError::of(&path, "read"))?,
        };
        Self::parse(&text, folder)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The box.
    pub fn area(&self) -> &BlockBox {
        &self.area
    }

    /// The parts of its box that it contains.
    pub fn parts(&self) -> SnapshotParts {
        self.parts
    }

    /// The snapshot with all columns missing. [`Snapshot::insert_column`] adds columns that were read.
    pub fn without_columns(&self) -> Snapshot {
        let mut snapshot = Snapshot::of_parts(self.area, self.parts);
        snapshot.concerned = self.concerned.clone().map(Arc::new);
        snapshot
    }

    /// The number of the captured dimension in its world.
    pub fn dimension(&self) -> DimensionId {
        self.dimension
    }

    /// The data that the owner stored with the snapshot.
    pub fn owner_data(&self) -> &BTreeMap<String, String> {
        &self.owner_data
    }

    /// The columns, ascending.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = ColumnPos> {
        self.columns.keys().copied()
    }

    /// The paths of the files of one column, from the bottom up. None if the column is not part of the snapshot.
    pub fn files(&self, column: ColumnPos) -> impl Iterator<Item = PathBuf> {
        let files = self.columns.get(&column).map(|column| &column.files[..]).unwrap_or_default();
        files.iter().map(move |file| self.folder.join(file.name(column)))
    }

    /// The size of all columns on disk in bytes.
    pub fn bytes(&self) -> u64 {
        self.columns.values().flat_map(|column| &column.files).map(|file| file.bytes).sum()
    }

    /// Reads every file, and checks its length and its checksum.
    ///
    /// # Errors
    /// Fails at the first damaged file, or if the progress callback cancels.
    pub fn verify(&self, progress: Tell<'_>) -> Result<()> {
        for (done, pos) in (1..).zip(self.columns()) {
            self.verify_column(pos)?;
            self.tell(done, progress)?;
        }
        Ok(())
    }

    /// Reads the whole snapshot, and reports content that the registry has no place for. Fails completely if any part
    /// is damaged.
    ///
    /// # Errors
    /// Those of [`read_column`](Self::read_column), and cancellation by the progress callback.
    pub fn read(&self, registry: &BlockRegistry, progress: Tell<'_>) -> Result<(Snapshot, TranslationReport)> {
        let (mut snapshot, mut report) = (self.without_columns(), TranslationReport::default());
        for (done, pos) in (1..).zip(self.columns()) {
            let (column, of_column) = self.read_column(pos, registry)?;
            snapshot.insert_column(pos, column);
            report.add(&of_column);
            self.tell(done, progress)?;
        }
        Ok((snapshot, report))
    }

    fn tell(&self, done: u64, progress: Tell<'_>) -> Result<()> {
        match progress(&Progress::of(done, self.columns.len() as u64)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(StoredSnapshotError::Cancelled),
        }
    }
}

fn damaged(path: impl Into<PathBuf>, what: impl Into<String>) -> StoredSnapshotError {
    StoredSnapshotError::Damaged { path: path.into(), what: what.into() }
}

fn wrong_checksum(stored: u32, found: u32) -> String {
    format!("its checksum is {found:08x}, but {stored:08x} was stored")
}

/// The error for a snapshot that cannot be stored or read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoredSnapshotError {
    /// A disk operation failed.
    #[error(transparent)]
    Io(#[from] FileError),
    /// The name of the new snapshot already exists.
    #[error("{} exists already", path.display())]
    AlreadyExists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder does not contain a snapshot.
    #[error("{} is not a folder with an index.txt", path.display())]
    NotASnapshot {
        /// The folder.
        path: PathBuf,
    },
    /// A later version of this crate wrote the snapshot.
    #[error("{} has version {found}, but only version 1 is known", path.display())]
    Version {
        /// The index.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// The index or the file of a column is missing, damaged or invalid.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file's path. The name of a column's file begins with the column's position.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// The snapshot does not have the column.
    #[error("column {column} is not part of it")]
    NoSuchColumn {
        /// The column.
        column: ColumnPos,
    },
    /// The file of a column is not a readable schematic, or the column cannot be written as one.
    #[error("{}: {source}", path.display())]
    Schematic {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: SchematicError,
    },
    /// The registry and a column do not match.
    #[error("column {column}: {source}")]
    Translation {
        /// The column.
        column: ColumnPos,
        /// The reason.
        source: TranslationError,
    },
    /// The caller cancelled the operation.
    #[error("it was cancelled")]
    Cancelled,
}
