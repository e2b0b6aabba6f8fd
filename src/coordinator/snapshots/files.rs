//! File operations of jobs, on a thread of their own.

use crate::block::BlockRegistry;
use crate::coordinator::messages::faults::WorkError;
use crate::coordinator::messages::snapshots::JobError;
use crate::coordinator::messages::snapshots::StoreSnapshot;
use crate::snapshot::{Snapshot, StoreOptions, StoredSnapshot, StoredSnapshotError};
use crate::space::{ColumnPos, DimensionId};
use crate::storage::{StoreError, WorldStore};
use crate::work::{Stop, Tell};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fails if the world's folder was deleted or moved, so that no new folder is created for a part of it.
pub fn expect_place(store: &WorldStore, path: &Path) -> Result<(), WorkError> {
    match store.folder() {
        Some(world) if path.starts_with(world) && !world.is_dir() => {
            Err(StoreError::FolderLost { path: world.to_path_buf() }.into())
        }
        _ => Ok(()),
    }
}

pub fn store(
    order: StoreSnapshot,
    captured: (DimensionId, &Snapshot),
    blocks: &BlockRegistry,
    tell: Tell<'_>,
) -> Result<Arc<StoredSnapshot>, JobError> {
    let StoreSnapshot { folder, level, owner_data } = order;
    let options = StoreOptions { level, sync: true };
    Ok(Arc::new(StoredSnapshot::create(&folder, captured, blocks, &options, owner_data, tell)?))
}

/// Reads all columns on two threads and counts the finished ones. Most of the time goes into decompression, and the other
/// cores are needed by the world.
pub fn read(
    stored: &StoredSnapshot,
    blocks: &BlockRegistry,
    is_void: &Stop,
    done: &AtomicUsize,
) -> Result<Arc<Snapshot>, JobError> {
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
    // Propagates a panic of the second thread.
    let second = second.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let mut snapshot = stored.without_columns();
    for (pos, column) in first?.into_iter().chain(second?) {
        snapshot.insert_column(pos, column);
    }
    Ok(Arc::new(snapshot))
}
