//! [`EditHistory`]: undo and redo, and the memory of snapshots.

mod edit;
#[cfg(test)]
mod tests;

use super::Snapshot;
use crate::chunk::Chunk;
use crate::entity::EntityRecord;
use edit::Edit;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::VecDeque;
use std::sync::Arc;

/// Edits of boxes that can be undone, the last one first, and redone.
///
/// A history keeps the chunks and entities that an edit changed, as they were before and after. Chunks that several
/// edits share count once; chunks that the world or another history also holds count in full. Edits beyond the size
/// limit are dropped, oldest first.
///
/// An edit includes entities that were added, removed or changed within the box; moving is a change. Restoring an
/// undone edit resets these entities and neither adds nor removes others that are in the box by then. Entities that
/// have left the box stay where they are. Captures without entities make edits of blocks only.
#[derive(Debug)]
pub struct EditHistory {
    limit: usize,
    /// Oldest first.
    done: VecDeque<Edit>,
    /// The most recently undone edit is last.
    undone: Vec<Edit>,
    /// The number of references from edits to each chunk, by its address.
    chunks: FxHashMap<usize, usize>,
    bytes: usize,
}

/// The result of recording an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recorded {
    /// The edit can be undone.
    Kept,
    /// The edit changed nothing, so there is nothing to undo. Undone edits can still be redone.
    Unchanged,
    /// The edit alone exceeds the limit. Earlier edits are dropped too, because they cannot be undone without it.
    TooLarge,
}

impl EditHistory {
    /// A history that takes at most `limit` bytes.
    pub const fn new(limit: usize) -> Self {
        let chunks = FxHashMap::with_hasher(FxBuildHasher);
        Self { limit, done: VecDeque::new(), undone: Vec::new(), chunks, bytes: 0 }
    }

    /// Records an edit as the difference between captures of its box before and after. A chunk or a column that is
    /// missing in one of them counts as unchanged. Undone edits can no longer be redone afterwards.
    pub fn record(&mut self, before: &Snapshot, after: &Snapshot) -> Recorded {
        let Some(edit) = Edit::between(before, after) else { return Recorded::Unchanged };
        for undone in std::mem::take(&mut self.undone) {
            self.forget(&undone);
        }
        self.count(&edit);
        self.done.push_back(edit);
        while self.bytes > self.limit
            && let Some(oldest) = self.done.pop_front()
        {
            self.forget(&oldest);
        }
        if self.done.is_empty() { Recorded::TooLarge } else { Recorded::Kept }
    }

    /// Undoes the last edit: returns the snapshot to restore, in which all other chunks and entities are missing.
    pub fn undo(&mut self) -> Option<Snapshot> {
        let edit = self.done.pop_back()?;
        let snapshot = edit.undo();
        self.undone.push(edit);
        Some(snapshot)
    }

    /// Redoes the most recently undone edit: returns the snapshot to restore, in which all other chunks and entities
    /// are missing.
    pub fn redo(&mut self) -> Option<Snapshot> {
        let edit = self.undone.pop()?;
        let snapshot = edit.redo();
        self.done.push_back(edit);
        Some(snapshot)
    }

    /// The number of edits that can be undone.
    pub fn undo_count(&self) -> usize {
        self.done.len()
    }

    /// The number of edits that can be redone.
    pub fn redo_count(&self) -> usize {
        self.undone.len()
    }

    /// The size of the history in bytes, with each chunk counted once.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds an edit to the size of the history.
    fn count(&mut self, edit: &Edit) {
        self.bytes += edit.list_bytes();
        for chunk in edit.chunks() {
            let holders = self.chunks.entry(Arc::as_ptr(chunk).addr()).or_default();
            *holders += 1;
            if *holders == 1 {
                self.bytes += chunk_bytes(chunk);
            }
        }
    }

    /// Removes an edit from the size of the history.
    fn forget(&mut self, edit: &Edit) {
        self.bytes -= edit.list_bytes();
        for chunk in edit.chunks() {
            let address = Arc::as_ptr(chunk).addr();
            let Some(holders) = self.chunks.get_mut(&address) else { continue };
            *holders -= 1;
            if *holders == 0 {
                self.chunks.remove(&address);
                self.bytes -= chunk_bytes(chunk);
            }
        }
    }
}

/// The heap memory of a chunk in bytes, including its reference counts.
pub(super) fn chunk_bytes(chunk: &Chunk) -> usize {
    2 * size_of::<usize>() + size_of::<Chunk>() + chunk.heap_bytes()
}

impl Snapshot {
    /// The size of the snapshot in bytes, without its chunks. The size of maps and lists is an estimate.
    pub(super) fn list_bytes(&self) -> usize {
        let of_columns = self.columns.values().map(|column| {
            // Nodes of the map are two thirds full.
            (size_of_val(column) + 16) * 3 / 2
                + column.chunks.capacity() * size_of::<(i64, Arc<Chunk>)>()
                + column.entities.iter().map(entity_bytes).sum::<usize>()
        });
        // The map from UUIDs to columns, with one byte per entry of its table.
        of_columns.sum::<usize>() + self.entities.capacity() * 33
    }
}

/// The size of an entity in bytes.
fn entity_bytes(entity: &EntityRecord) -> usize {
    let children = entity.children.iter().map(|child| size_of_val(child) + component_bytes(&child.components));
    size_of_val(entity) + component_bytes(&entity.components) + children.sum::<usize>()
}

fn component_bytes(components: &[(String, Vec<u8>)]) -> usize {
    let one = |(name, value): &(String, Vec<u8>)| size_of::<(String, Vec<u8>)>() + name.len() + value.len();
    components.iter().map(one).sum()
}
