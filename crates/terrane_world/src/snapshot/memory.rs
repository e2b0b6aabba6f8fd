//! The memory of snapshots.

use super::Snapshot;
use crate::chunk::Chunk;
use crate::entity::EntityRecord;
use std::sync::Arc;

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
