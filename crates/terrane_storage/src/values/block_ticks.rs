//! Scheduled block ticks as they are stored: one list for each chunk that has some.
//!
//! The value is a [record](super::record) in an [envelope](crate::envelope), as a chunk is, because a wrong bit in it
//! would otherwise be a wrong time. The record holds each kind's name once, then for each tick its cell in the chunk,
//! the number of its kind and the remaining ticks. So no value can name a block of another chunk, and what it takes in
//! memory is a small multiple of what it takes in the store.

#[cfg(test)]
mod tests;

use crate::bytes::record;
use crate::space::{BlockPos, CHUNK_VOLUME, ChunkPos, cell_index, cell_position};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Something that is to happen to a block after some more ticks of its region.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoredBlockTick {
    /// The block.
    pub block: BlockPos,
    /// What is to happen, by a name that means the same in every session.
    pub kind: Arc<str>,
    /// After how many more ticks.
    pub remaining: u64,
}

/// Cell, number of the kind, remaining ticks.
type Entry = (u16, u32, u64);

/// The record of a chunk's whole list, the same in whatever order the list is. The reason, if it has none.
pub(crate) fn encode(chunk: ChunkPos, ticks: &[StoredBlockTick]) -> Result<Vec<u8>, String> {
    let mut sorted: Vec<&StoredBlockTick> = ticks.iter().collect();
    sorted.sort_unstable();
    let mut numbers: BTreeMap<&str, u32> = sorted.iter().map(|tick| (&*tick.kind, 0)).collect();
    for (number, next) in numbers.values_mut().zip(0..) {
        *number = next;
    }
    let mut entries: Vec<Entry> = Vec::with_capacity(sorted.len());
    for tick in sorted {
        if tick.block.chunk() != chunk {
            return Err(format!("the batch holds a tick of block {} under this chunk", tick.block));
        }
        let kind = numbers.get(&*tick.kind).copied().unwrap_or_default();
        entries.push((cell(tick.block), kind, tick.remaining));
    }
    Ok(record::encode(&(numbers.into_keys().collect::<Vec<_>>(), entries)))
}

/// The list in a record. The reason, if there is none.
pub(crate) fn decode(chunk: ChunkPos, bytes: &[u8]) -> Result<Vec<StoredBlockTick>, String> {
    let (kinds, entries): (Vec<String>, Vec<Entry>) = record::decode(bytes)?;
    let kinds: Vec<Arc<str>> = kinds.into_iter().map(Arc::from).collect();
    let tick = |(cell, kind, remaining): Entry| {
        let block = block(chunk, cell).ok_or_else(|| format!("a chunk has no cell {cell}"))?;
        let named = usize::try_from(kind).ok().and_then(|kind| kinds.get(kind));
        let kind = named.ok_or_else(|| format!("there is no kind {kind} among its {}", kinds.len()))?;
        Ok(StoredBlockTick { block, kind: Arc::clone(kind), remaining })
    };
    entries.into_iter().map(tick).collect()
}

fn cell(block: BlockPos) -> u16 {
    cell_index(block.in_chunk()) as u16
}

fn block(chunk: ChunkPos, cell: u16) -> Option<BlockPos> {
    let (min, cell) = (chunk.min_block(), usize::from(cell));
    let [x, y, z] = cell_position(cell).map(|at| at as i64);
    (cell < CHUNK_VOLUME).then(|| BlockPos::new(min.x | x, min.y | y, min.z | z))
}
