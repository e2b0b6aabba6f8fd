//! What a snapshot takes of the memory.

use super::Snapshot;
use crate::chunk::Chunk;
use crate::entity::EntityRecord;
use std::sync::Arc;

/// Bytes of a chunk on the heap, with its counters.
pub(super) fn chunk_bytes(chunk: &Chunk) -> usize {
    2 * size_of::<usize>() + size_of::<Chunk>() + chunk.heap_bytes()
}

impl Snapshot {
    /// Bytes that it takes besides its chunks. The maps and lists around them are estimated.
    pub(super) fn list_bytes(&self) -> usize {
        let of_columns = self.columns.values().map(|column| {
            // Nodes of the map are filled to two thirds.
            (size_of_val(column) + 16) * 3 / 2
                + column.chunks.capacity() * size_of::<(i64, Arc<Chunk>)>()
                + column.entities.iter().map(entity_bytes).sum::<usize>()
        });
        // By UUID in which column, with a byte of the table.
        of_columns.sum::<usize>() + self.entities.capacity() * 33
    }
}

/// Bytes of an entity, itself included.
fn entity_bytes(entity: &EntityRecord) -> usize {
    let children = entity.children.iter().map(|child| size_of_val(child) + component_bytes(&child.components));
    size_of_val(entity) + component_bytes(&entity.components) + children.sum::<usize>()
}

fn component_bytes(components: &[(String, Vec<u8>)]) -> usize {
    let one = |(name, value): &(String, Vec<u8>)| size_of::<(String, Vec<u8>)>() + name.len() + value.len();
    components.iter().map(one).sum()
}
