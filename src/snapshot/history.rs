//! Undo and redo.

mod edit;
#[cfg(test)]
mod tests;

use super::Snapshot;
use edit::{Edit, HeldChunks, Side};
use std::collections::VecDeque;

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
    bytes: usize,
    /// The oldest first.
    done: VecDeque<Edit>,
    /// The one that was undone last is last.
    undone: Vec<Edit>,
    /// How often each chunk is held.
    held: HeldChunks,
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
    pub fn new(limit: usize) -> Self {
        Self { limit, bytes: 0, done: VecDeque::new(), undone: Vec::new(), held: HeldChunks::default() }
    }

    /// Remembers an edit by what its box held before and after it; where one of the two has a chunk or a column missing,
    /// nothing is known to have changed. What was undone cannot be done again after that.
    pub fn record(&mut self, before: &Snapshot, after: &Snapshot) -> Recorded {
        let edit = Edit::between(before, after);
        if edit.is_empty() {
            return Recorded::Unchanged;
        }
        for undone in std::mem::take(&mut self.undone) {
            self.release(&undone);
        }
        self.hold(&edit);
        self.done.push_back(edit);
        self.shrink();
        if self.done.is_empty() { Recorded::TooLarge } else { Recorded::Kept }
    }

    /// Takes back the last edit: gives what is to be restored, whose other chunks and entities are missing.
    pub fn undo(&mut self) -> Option<Snapshot> {
        let edit = self.done.pop_back()?;
        let snapshot = edit.snapshot(Side::Before);
        self.undone.push(edit);
        Some(snapshot)
    }

    /// Does the edit again that was undone last: gives what is to be restored, whose other chunks and entities are missing.
    pub fn redo(&mut self) -> Option<Snapshot> {
        let edit = self.undone.pop()?;
        let snapshot = edit.snapshot(Side::After);
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
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The most bytes that it takes.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Sets the limit, and forgets what does not fit.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.shrink();
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::new(self.limit);
    }

    /// Forgets until it fits: the oldest edits, and after all of them those that would be done again last.
    fn shrink(&mut self) {
        while self.bytes > self.limit {
            let forgotten = match self.done.pop_front() {
                Some(edit) => edit,
                None if self.undone.is_empty() => return,
                None => self.undone.remove(0),
            };
            self.release(&forgotten);
        }
    }

    fn hold(&mut self, edit: &Edit) {
        self.bytes += edit.list_bytes() + edit.hold(&mut self.held);
    }

    fn release(&mut self, edit: &Edit) {
        self.bytes -= edit.list_bytes() + edit.release(&mut self.held);
    }
}
