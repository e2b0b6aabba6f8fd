#[cfg(test)]
mod tests;

use super::memory::chunk_bytes;
use super::restore::restored_chunk;
use super::{BlockFilter, ColumnSnapshot, Snapshot};
use crate::chunk::Chunk;
use crate::space::{BlockBox, ChunkPos, HeightSet};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Edits of boxes that can be undone, the last one first, and then be done again.
///
/// It keeps the chunks that an edit changed, as they were before and after. Chunks that are the same in several edits are
/// shared and count once; those that the world or another history holds too count as if they were not. What does not fit
/// into the limit is forgotten, the oldest edits first. Entities are not part of it.
#[derive(Debug)]
pub struct EditHistory {
    limit: usize,
    bytes: usize,
    /// The oldest first.
    done: VecDeque<Edit>,
    /// The one that was undone last is last.
    undone: Vec<Edit>,
    /// How often each chunk is held.
    held: FxHashMap<*const Chunk, usize>,
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

#[derive(Clone, Debug)]
struct Edit {
    area: BlockBox,
    /// In the order of the columns.
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
struct Change {
    chunk: ChunkPos,
    tick_before: u64,
    tick_after: u64,
    before: Option<Arc<Chunk>>,
    after: Option<Arc<Chunk>>,
}

impl EditHistory {
    /// A history that takes at most so many bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, bytes: 0, done: VecDeque::new(), undone: Vec::new(), held: FxHashMap::default() }
    }

    /// Remembers an edit by what its box held before and after it; where one of the two has a chunk missing, nothing is
    /// known to have changed. What was undone cannot be done again after that.
    pub fn record(&mut self, before: &Snapshot, after: &Snapshot) -> Recorded {
        let area = before.area.intersection(&after.area);
        let edit = Edit { area, changes: changes(before, after, &area) };
        if edit.changes.is_empty() {
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

    /// Takes back the last edit: gives what is to be restored, whose other chunks are missing.
    pub fn undo(&mut self) -> Option<Snapshot> {
        let edit = self.done.pop_back()?;
        let snapshot = edit.snapshot(|change| (change.tick_before, &change.before));
        self.undone.push(edit);
        Some(snapshot)
    }

    /// Does the edit again that was undone last: gives what is to be restored, whose other chunks are missing.
    pub fn redo(&mut self) -> Option<Snapshot> {
        let edit = self.undone.pop()?;
        let snapshot = edit.snapshot(|change| (change.tick_after, &change.after));
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
        self.bytes += edit.list_bytes();
        for chunk in edit.chunks() {
            let count = self.held.entry(Arc::as_ptr(chunk)).or_insert(0);
            *count += 1;
            if *count == 1 {
                self.bytes += chunk_bytes(chunk);
            }
        }
    }

    fn release(&mut self, edit: &Edit) {
        self.bytes -= edit.list_bytes();
        for chunk in edit.chunks() {
            let Some(count) = self.held.get_mut(&Arc::as_ptr(chunk)) else { continue };
            *count -= 1;
            if *count == 0 {
                self.held.remove(&Arc::as_ptr(chunk));
                self.bytes -= chunk_bytes(chunk);
            }
        }
    }
}

impl Edit {
    fn list_bytes(&self) -> usize {
        size_of::<Self>() + self.changes.capacity() * size_of::<Change>()
    }

    fn chunks(&self) -> impl Iterator<Item = &Arc<Chunk>> {
        self.changes.iter().flat_map(|change| [&change.before, &change.after]).flatten()
    }

    fn snapshot<'a>(&'a self, side: impl Fn(&'a Change) -> (u64, &'a Option<Arc<Chunk>>)) -> Snapshot {
        let mut snapshot = Snapshot::new(self.area);
        for column in self.changes.chunk_by(|a, b| a.chunk.column() == b.chunk.column()) {
            let chunks = column.iter().filter_map(|change| Some((change.chunk.y, side(change).1.clone()?)));
            let chunks = ColumnSnapshot {
                tick: side(&column[0]).0,
                chunks: chunks.collect(),
                heights: Some(column.iter().map(|change| change.chunk.y).collect::<HeightSet>()),
                entities: Vec::new(),
            };
            snapshot.add_chunks(column[0].chunk.column(), chunks);
        }
        snapshot
    }
}

/// The chunks that differ within the box, where both snapshots have them.
fn changes(before: &Snapshot, after: &Snapshot, area: &BlockBox) -> Vec<Change> {
    let mut changes = Vec::new();
    let filter = BlockFilter::default();
    for (pos, old) in before.columns() {
        let Some(new) = after.column(pos) else { continue };
        let mut heights: Vec<i64> = old.chunks().chain(new.chunks()).map(|(y, _)| y).collect();
        heights.sort_unstable();
        heights.dedup();
        for y in heights.into_iter().filter(|y| old.holds(*y) && new.holds(*y)) {
            let (chunk, before, after) = (pos.chunk(y), old.chunk(y), new.chunk(y));
            let Some(part) = area.part(chunk) else { continue };
            if restored_chunk(before, after, &part, &filter).is_some() {
                let (before, after) = (before.cloned(), after.cloned());
                changes.push(Change { chunk, tick_before: old.tick, tick_after: new.tick, before, after });
            }
        }
    }
    changes.shrink_to_fit();
    changes
}
