//! One edit of a box: what it changed, as it was before and after.

use crate::chunk::Chunk;
use crate::snapshot::memory::chunk_bytes;
use crate::snapshot::restore::restored_chunk;
use crate::snapshot::{BlockFilter, ColumnSnapshot, Snapshot};
use crate::space::HeightSet;
use crate::storage::EntityRecord;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// What is to be restored, so that the box is as it was before or after the edit. What did not change is missing in both.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub before: Snapshot,
    pub after: Snapshot,
}

impl Edit {
    /// What differs between two snapshots, where both have it; `None` if nothing does.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Option<Self> {
        let area = before.area.intersection(&after.area);
        let parts = before.parts.intersection(after.parts);
        let mut edit = Self { before: Snapshot::of_parts(area, parts), after: Snapshot::of_parts(area, parts) };
        edit.add_chunks(before, after);
        let has_entities = parts.entities && edit.add_entities(before, after);
        (has_entities || !edit.before.columns.is_empty()).then_some(edit)
    }

    /// Puts in the chunks that differ within the box, where both snapshots have them.
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

    /// Puts in the entities that differ within the box, in columns that both snapshots have, and says whether there are any.
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
        // They may stand anywhere by now in the columns that were captured both times.
        let both = before.columns.keys().filter(|pos| after.column(**pos).is_some() && area.reaches(**pos));
        let both: Vec<_> = both.copied().filter(|_| !concerned.is_empty()).collect();
        for (from, to) in [(old, &mut self.before), (new, &mut self.after)] {
            for column in &both {
                to.add_chunks(*column, ColumnSnapshot { heights: Some(HeightSet::new()), ..Default::default() });
            }
            for id in concerned.iter() {
                if let Some(entity) = from.get(id) {
                    to.add_entity(entity.column(), entity.clone());
                }
            }
            to.concerned = Some(concerned.clone());
        }
        !concerned.is_empty()
    }

    /// Bytes that it takes, without the chunks that were counted already.
    pub fn bytes(&self, counted: &mut FxHashSet<*const Chunk>) -> usize {
        let sides = [&self.before, &self.after];
        let chunks = sides.into_iter().flat_map(|side| side.columns.values()).flat_map(|column| &column.chunks);
        let new = chunks.filter(|(_, chunk)| counted.insert(Arc::as_ptr(chunk)));
        new.map(|(_, chunk)| chunk_bytes(chunk)).sum::<usize>() + sides.map(Snapshot::list_bytes).iter().sum::<usize>()
    }
}
