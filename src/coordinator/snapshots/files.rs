//! What jobs do with files, on a thread of its own.

use super::{RestoreSnapshot, SnapshotJobError, StoreSnapshot, records};
use crate::block::BlockRegistry;
use crate::coordinator::threads::WorkError;
use crate::snapshot::{Snapshot, StoreOptions, StoredSnapshot, StoredSnapshotError};
use crate::space::{ColumnPos, DimensionId};
use crate::storage::{StoreError, WorldStore};
use crate::work::{Progress, Stop};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is to be done.
#[derive(Debug)]
pub enum FileWork {
    /// A snapshot is to be read.
    Read(Arc<StoredSnapshot>),
    /// A snapshot is to be stored.
    Store(StoreSnapshot, DimensionId, Arc<Snapshot>),
    /// A restore is to be remembered there.
    Record(PathBuf, Box<RestoreSnapshot>),
}

/// What has come of it.
#[derive(Debug)]
pub enum FileAnswer {
    /// The snapshot was read.
    Read(Arc<Snapshot>),
    /// It was stored.
    Stored(Arc<StoredSnapshot>),
    /// It is remembered.
    Recorded,
}

impl FileWork {
    /// A world whose folder was deleted or moved is not begun anew with what should be a part of it.
    pub fn expect_place(&self, store: &WorldStore) -> Result<(), WorkError> {
        let path = match self {
            Self::Read(_) => return Ok(()),
            Self::Store(StoreSnapshot { folder, .. }, ..) => folder,
            Self::Record(path, _) => path,
        };
        match store.folder() {
            Some(world) if path.starts_with(world) && !world.is_dir() => {
                Err(StoreError::FolderLost { path: world.to_path_buf() }.into())
            }
            _ => Ok(()),
        }
    }

    /// Does it, until it `is_void`, and says how many columns are `done`.
    pub fn run(
        self,
        blocks: &BlockRegistry,
        is_void: &Stop,
        done: &AtomicUsize,
    ) -> Result<FileAnswer, SnapshotJobError> {
        let mut go_on = |progress: &Progress| {
            done.store(progress.done as usize, Ordering::Relaxed);
            is_void.go_on()
        };
        match self {
            Self::Read(stored) => Ok(FileAnswer::Read(Arc::new(read(&stored, blocks, is_void, done)?))),
            Self::Store(StoreSnapshot { folder, level, owner_data }, dimension, snapshot) => {
                let options = StoreOptions { level, sync: true };
                let stored =
                    StoredSnapshot::create(&folder, (dimension, &snapshot), blocks, &options, owner_data, &mut go_on);
                Ok(FileAnswer::Stored(Arc::new(stored?)))
            }
            Self::Record(path, restore) => {
                records::write(&path, &restore, blocks, &mut go_on)?;
                Ok(FileAnswer::Recorded)
            }
        }
    }
}

/// Reads all columns on two threads: mostly they are inflated, and the other cores have a world to run.
fn read(
    stored: &StoredSnapshot,
    blocks: &BlockRegistry,
    is_void: &Stop,
    done: &AtomicUsize,
) -> Result<Snapshot, StoredSnapshotError> {
    let columns: Vec<ColumnPos> = stored.columns().collect();
    let read_part = |part: &[ColumnPos]| {
        let read_one = |pos: &ColumnPos| {
            if is_void.is_stopped() {
                return Err(StoredSnapshotError::Cancelled);
            }
            let (column, _) = stored.read_column(*pos, blocks)?;
            done.fetch_add(1, Ordering::Relaxed);
            Ok((*pos, column))
        };
        part.iter().map(read_one).collect::<Result<Vec<_>, _>>()
    };
    let (first, second) = columns.split_at(columns.len() / 2);
    let (first, second) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| read_part(second));
        (read_part(first), beside.join())
    });
    // What panicked there goes on here.
    let second = second.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let mut snapshot = stored.without_columns();
    for (pos, column) in first?.into_iter().chain(second?) {
        snapshot.insert_column(pos, column);
    }
    Ok(snapshot)
}
