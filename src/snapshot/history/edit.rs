//! One edit of a box: what it changed, as it was before and after.

use crate::chunk::Chunk;
use crate::snapshot::memory::{chunk_bytes, entity_bytes};
use crate::snapshot::restore::restored_chunk;
use crate::snapshot::{BlockFilter, ColumnSnapshot, Snapshot, SnapshotParts};
use crate::space::{BlockBox, ChunkPos, ColumnPos, HeightSet};
use crate::storage::EntityRecord;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// How often each chunk is held by the edits of a history.
pub(super) type HeldChunks = FxHashMap<*const Chunk, usize>;

#[derive(Clone, Debug)]
pub(super) struct Edit {
    area: BlockBox,
    parts: SnapshotParts,
    /// In the order of the columns.
    chunks: Vec<ChunkChange>,
    entities: Vec<EntityChange>,
    /// If entities changed, all columns that were captured both times: they may stand anywhere in them by now.
    columns: Vec<ColumnPos>,
}

#[derive(Clone, Debug)]
struct ChunkChange {
    chunk: ChunkPos,
    tick_before: u64,
    tick_after: u64,
    before: Option<Arc<Chunk>>,
    after: Option<Arc<Chunk>>,
}

/// Somebody who came, went, or is not as before.
#[derive(Clone, Debug)]
struct EntityChange {
    id: Uuid,
    before: Option<EntityRecord>,
    after: Option<EntityRecord>,
}

/// One of the two states that an edit lies between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

impl Edit {
    /// What differs between two snapshots, where both have it.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Self {
        let area = before.area.intersection(&after.area);
        let parts = before.parts.intersection(after.parts);
        let entities = if parts.entities { entity_changes(before, after, &area) } else { Vec::new() };
        let columns = before.columns.keys().filter(|_| !entities.is_empty()).copied();
        Self {
            area,
            parts,
            chunks: chunk_changes(before, after, &area, parts),
            columns: columns.filter(|column| after.column(*column).is_some() && area.reaches(*column)).collect(),
            entities,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.entities.is_empty()
    }

    /// What is to be restored, so that the box is as it was on this side.
    pub fn snapshot(&self, side: Side) -> Snapshot {
        let mut snapshot = Snapshot::of_parts(self.area, self.parts);
        snapshot.concerned = Some(self.entities.iter().map(|change| change.id).collect::<BTreeSet<_>>().into());
        for column in &self.columns {
            snapshot.add_chunks(*column, ColumnSnapshot { heights: Some(HeightSet::new()), ..Default::default() });
        }
        for column in self.chunks.chunk_by(|a, b| a.chunk.column() == b.chunk.column()) {
            let chunks = column.iter().filter_map(|change| Some((change.chunk.y, change.side(side).1.clone()?)));
            let chunks = ColumnSnapshot {
                tick: column[0].side(side).0,
                chunks: chunks.collect(),
                heights: Some(column.iter().map(|change| change.chunk.y).collect()),
                entities: Vec::new(),
            };
            snapshot.add_chunks(column[0].chunk.column(), chunks);
        }
        for entity in self.entities.iter().filter_map(|change| change.side(side)) {
            snapshot.add_entity(entity.column(), entity.clone());
        }
        snapshot
    }

    /// Bytes that it takes besides its chunks.
    pub fn list_bytes(&self) -> usize {
        let chunks = self.chunks.capacity() * size_of::<ChunkChange>();
        let columns = self.columns.capacity() * size_of::<ColumnPos>();
        let records = self.entities.iter().flat_map(|change| [&change.before, &change.after]).flatten();
        let entities: usize = records.map(|record| entity_bytes(record) - size_of_val(record)).sum();
        size_of::<Self>() + chunks + columns + self.entities.capacity() * size_of::<EntityChange>() + entities
    }

    /// Holds its chunks. Gives the bytes of those that nobody held before.
    pub fn hold(&self, held: &mut HeldChunks) -> usize {
        let mut bytes = 0;
        for chunk in self.held_chunks() {
            let count = held.entry(Arc::as_ptr(chunk)).or_insert(0);
            *count += 1;
            if *count == 1 {
                bytes += chunk_bytes(chunk);
            }
        }
        bytes
    }

    /// Lets go of its chunks. Gives the bytes of those that nobody holds any more.
    pub fn release(&self, held: &mut HeldChunks) -> usize {
        let mut bytes = 0;
        for chunk in self.held_chunks() {
            let Some(count) = held.get_mut(&Arc::as_ptr(chunk)) else { continue };
            *count -= 1;
            if *count == 0 {
                held.remove(&Arc::as_ptr(chunk));
                bytes += chunk_bytes(chunk);
            }
        }
        bytes
    }

    fn held_chunks(&self) -> impl Iterator<Item = &Arc<Chunk>> {
        self.chunks.iter().flat_map(|change| [&change.before, &change.after]).flatten()
    }
}

impl ChunkChange {
    /// The tick of the column, and the chunk.
    const fn side(&self, side: Side) -> (u64, &Option<Arc<Chunk>>) {
        match side {
            Side::Before => (self.tick_before, &self.before),
            Side::After => (self.tick_after, &self.after),
        }
    }
}

impl EntityChange {
    const fn side(&self, side: Side) -> Option<&EntityRecord> {
        match side {
            Side::Before => self.before.as_ref(),
            Side::After => self.after.as_ref(),
        }
    }
}

/// The chunks that differ within the box, where both snapshots have them.
fn chunk_changes(before: &Snapshot, after: &Snapshot, area: &BlockBox, parts: SnapshotParts) -> Vec<ChunkChange> {
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
            if restored_chunk(before, after, &part, &filter, parts).is_some() {
                let (before, after) = (before.cloned(), after.cloned());
                changes.push(ChunkChange { chunk, tick_before: old.tick, tick_after: new.tick, before, after });
            }
        }
    }
    changes.shrink_to_fit();
    changes
}

/// The entities that differ within the box, in columns that both snapshots have, by their UUIDs.
fn entity_changes(before: &Snapshot, after: &Snapshot, area: &BlockBox) -> Vec<EntityChange> {
    let entities = |of: &Snapshot, other: &Snapshot| -> FxHashMap<Uuid, EntityRecord> {
        let in_both = |entity: &&EntityRecord| area.contains(entity.block) && other.column(entity.column()).is_some();
        of.entities().filter(in_both).map(|entity| (entity.id, entity.clone())).collect()
    };
    let (mut old, mut new) = (entities(before, after), entities(after, before));
    let ids: BTreeSet<Uuid> = old.keys().chain(new.keys()).copied().collect();
    let changes = ids.into_iter().map(|id| EntityChange { id, before: old.remove(&id), after: new.remove(&id) });
    let mut changes: Vec<_> = changes.filter(|change| change.before != change.after).collect();
    changes.shrink_to_fit();
    changes
}
