//! Undo and redo.

mod edit;
#[cfg(test)]
mod tests;

use super::Snapshot;
use super::memory::chunk_bytes;
use edit::Edit;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::VecDeque;
use std::sync::Arc;

/// Edits of boxes that can be undone, the last one first, and then be done again.
///
/// It keeps the chunks and entities that an edit changed, as they were before and after. Chunks that are the same in several
/// edits are shared and count once; those that the world or another history holds too count as if they were not. What does
/// not fit into the limit is forgotten, the oldest edits first.
///
/// Entities that came, went, or have changed within the box are part of an edit; those that only walked have changed too.
/// When it is undone by a restore, they are again as they were before, and nobody else who is in the box by then comes or
/// goes. Whoever is outside of the box by then stays there. Captures that leave entities out make edits of blocks only.
#[derive(Debug)]
pub struct EditHistory {
    limit: usize,
    /// The oldest first.
    done: VecDeque<Edit>,
    /// The one that was undone last is last.
    undone: Vec<Edit>,
    /// How often the edits hold each chunk, by its address.
    chunks: FxHashMap<usize, usize>,
    bytes: usize,
}

/// What became of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recorded {
    /// It can be undone.
    Kept,
    /// It changed nothing, so there is nothing to undo, and what was undone can still be done again.
    Unchanged,
    /// It alone is above the limit. The edits before it are forgotten too: they cannot be undone without it.
    TooLarge,
}

impl EditHistory {
    /// A history that takes at most so many bytes.
    pub const fn new(limit: usize) -> Self {
        let chunks = FxHashMap::with_hasher(FxBuildHasher);
        Self { limit, done: VecDeque::new(), undone: Vec::new(), chunks, bytes: 0 }
    }

    /// Remembers an edit by what its box held before and after it; where one of the two has a chunk or a column missing,
    /// nothing is known to have changed. What was undone cannot be done again after that.
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

    /// Takes back the last edit: gives what is to be restored, whose other chunks and entities are missing.
    pub fn undo(&mut self) -> Option<Snapshot> {
        let edit = self.done.pop_back()?;
        let snapshot = edit.undo();
        self.undone.push(edit);
        Some(snapshot)
    }

    /// Does the edit again that was undone last: gives what is to be restored, whose other chunks and entities are missing.
    pub fn redo(&mut self) -> Option<Snapshot> {
        let edit = self.undone.pop()?;
        let snapshot = edit.redo();
        self.done.push_back(edit);
        Some(snapshot)
    }

    /// How many edits can be undone.
    pub fn undo_count(&self) -> usize {
        self.done.len()
    }

    /// How many edits can be done again.
    pub fn redo_count(&self) -> usize {
        self.undone.len()
    }

    /// Bytes that it takes, each chunk counted once.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The edit is held from now on.
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

    /// The edit is held no more.
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
