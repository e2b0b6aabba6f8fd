//! What a snapshot takes of the memory.

use super::Snapshot;
use crate::chunk::Chunk;
use crate::storage::EntityRecord;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What a snapshot takes of the memory, in bytes. The maps and lists around the chunks are estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotMemory {
    /// What would be free again without the snapshot.
    pub own: usize,
    /// The chunks that others hold too: the world, or other snapshots.
    pub shared: usize,
}

/// Bytes of a chunk on the heap, with its counters.
pub(super) fn chunk_bytes(chunk: &Chunk) -> usize {
    2 * size_of::<usize>() + size_of::<Chunk>() + chunk.heap_bytes()
}

impl Snapshot {
    /// What it takes of the memory. Looks at every chunk.
    pub fn memory(&self) -> SnapshotMemory {
        let mut memory = SnapshotMemory::default();
        // How often the snapshot itself holds a chunk that is held more than once.
        let mut held: FxHashMap<*const Chunk, (usize, &Arc<Chunk>)> = FxHashMap::default();
        for column in self.columns.values() {
            // Nodes of the map are filled to two thirds.
            memory.own += (size_of_val(column) + 16) * 3 / 2;
            memory.own += column.chunks.capacity() * size_of::<(i64, Arc<Chunk>)>();
            memory.own += column.entities.iter().map(entity_bytes).sum::<usize>();
            for (_, chunk) in &column.chunks {
                if Arc::strong_count(chunk) == 1 {
                    memory.own += chunk_bytes(chunk);
                } else {
                    held.entry(Arc::as_ptr(chunk)).or_insert((0, chunk)).0 += 1;
                }
            }
        }
        for (count, chunk) in held.into_values() {
            let bytes = chunk_bytes(chunk);
            if Arc::strong_count(chunk) > count {
                memory.shared += bytes;
            } else {
                memory.own += bytes;
            }
        }
        // By UUID in which column, with a byte of the table.
        memory.own += self.entities.capacity() * 33;
        memory
    }
}

/// Bytes of an entity, itself included.
pub(super) fn entity_bytes(entity: &EntityRecord) -> usize {
    let children = entity.children.iter().map(|child| size_of_val(child) + component_bytes(&child.components));
    size_of_val(entity) + component_bytes(&entity.components) + children.sum::<usize>()
}

fn component_bytes(components: &[(String, Vec<u8>)]) -> usize {
    let one = |(name, value): &(String, Vec<u8>)| size_of::<(String, Vec<u8>)>() + name.len() + value.len();
    components.iter().map(one).sum()
}
