//! [`Edit`]: the changed content of a box, before and after.

use crate::chunk::Chunk;
use crate::entity::EntityRecord;
use crate::snapshot::restore::restored_chunk;
use crate::snapshot::{BlockFilter, ColumnSnapshot, Snapshot};
use crate::space::{ColumnPos, HeightSet};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// Snapshots to restore, so that the box is as it was before or after the edit. Unchanged content is missing in both.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    before: Snapshot,
    after: Snapshot,
    /// If entities changed: the columns that both snapshots captured, in which the entities may be by now.
    columns: Box<[ColumnPos]>,
}

impl Edit {
    /// The difference between two snapshots, where both have content; `None` if they are equal.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Option<Self> {
        let area = before.area.intersection(&after.area);
        let parts = before.parts.intersection(after.parts);
        let (old, new) = (Snapshot::of_parts(area, parts), Snapshot::of_parts(area, parts));
        let mut edit = Self { before: old, after: new, columns: Box::default() };
        edit.add_chunks(before, after);
        let has_entities = parts.entities && edit.add_entities(before, after);
        (has_entities || !edit.before.columns.is_empty()).then_some(edit)
    }

    /// Adds the chunks that differ within the box, where both snapshots have them.
    fn add_chunks(&mut self, before: &Snapshot, after: &Snapshot) {
        let filter = BlockFilter::default();
        for (pos, old) in before.columns() {
            let Some(new) = after.column(pos) else { continue };
            let mut heights: Vec<i64> = old.chunks().chain(new.chunks()).map(|(y, _)| y).collect();
            heights.sort_unstable();
            heights.dedup();
            let differs = |y: &i64| {
                let part = self.before.area.part(pos.chunk(*y)).filter(|_| old.holds(*y) && new.holds(*y));
                part.is_some_and(|part| {
                    restored_chunk(old.chunk(*y), new.chunk(*y), &part, &filter, self.before.parts).is_some()
                })
            };
            heights.retain(differs);
            if heights.is_empty() {
                continue;
            }
            for (from, to) in [(old, &mut self.before), (new, &mut self.after)] {
                let chunks = heights.iter().filter_map(|y| Some((*y, from.chunk(*y)?.clone())));
                let chunks = chunks.collect();
                let heights = Some(heights.iter().copied().collect());
                to.add_chunks(pos, ColumnSnapshot { tick: from.tick, chunks, heights, entities: Vec::new() });
            }
        }
    }

    /// Adds the entities that differ within the box, in columns that both snapshots have. Returns `true` if there are any.
    fn add_entities(&mut self, before: &Snapshot, after: &Snapshot) -> bool {
        let area = self.before.area;
        let entities = |of: &Snapshot, other: &Snapshot| -> FxHashMap<Uuid, EntityRecord> {
            let in_both =
                |entity: &&EntityRecord| area.contains(entity.block) && other.column(entity.column()).is_some();
            of.entities().filter(in_both).map(|entity| (entity.id, entity.clone())).collect()
        };
        let (old, new) = (entities(before, after), entities(after, before));
        let ids = old.keys().chain(new.keys()).copied().filter(|id| old.get(id) != new.get(id));
        let concerned: Arc<BTreeSet<Uuid>> = Arc::new(ids.collect());
        if concerned.is_empty() {
            return false;
        }
        self.columns =
            before.columns.keys().copied().filter(|pos| after.column(*pos).is_some() && area.reaches(*pos)).collect();
        for (from, to) in [(old, &mut self.before), (new, &mut self.after)] {
            for entity in concerned.iter().filter_map(|id| from.get(id)) {
                to.add_chunks(entity.column(), without_blocks());
                to.add_entity(entity.column(), entity.clone());
            }
            to.concerned = Some(concerned.clone());
        }
        true
    }

    /// The snapshot that undoes the edit.
    pub fn undo(&self) -> Snapshot {
        self.with_columns(&self.before)
    }

    /// The snapshot that redoes the edit.
    pub fn redo(&self) -> Snapshot {
        self.with_columns(&self.after)
    }

    fn with_columns(&self, side: &Snapshot) -> Snapshot {
        let mut snapshot = side.clone();
        self.columns.iter().for_each(|column| snapshot.add_chunks(*column, without_blocks()));
        snapshot
    }

    /// The chunks of the edit, possibly with duplicates.
    pub fn chunks(&self) -> impl Iterator<Item = &Arc<Chunk>> {
        let columns = [&self.before, &self.after].into_iter().flat_map(|side| side.columns.values());
        columns.flat_map(|column| &column.chunks).map(|(_, chunk)| chunk)
    }

    /// The size of the edit in bytes, without its chunks.
    pub fn list_bytes(&self) -> usize {
        self.before.list_bytes() + self.after.list_bytes() + size_of_val(&*self.columns)
    }
}

/// A captured column in which no blocks changed, only entities if anything.
fn without_blocks() -> ColumnSnapshot {
    ColumnSnapshot { heights: Some(HeightSet::new()), ..ColumnSnapshot::default() }
}
