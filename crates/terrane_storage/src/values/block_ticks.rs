//! Stored block ticks: one list for each chunk that has some.
//!
//! The value is a [record](super::record) in an [envelope](crate::envelope), like that of a chunk, because a flipped
//! bit would otherwise be a wrong time. The record holds the name of each kind once. Each tick has its cell in the
//! chunk, the number of its kind and the remaining ticks. So a value can never name a block of another chunk, and its
//! size in memory is a small multiple of its size in the store.

#[cfg(test)]
mod tests;

use crate::bytes::record;
use crate::space::{BlockPos, CHUNK_VOLUME, ChunkPos, cell_index, cell_position};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A stored event that happens to a block after some more ticks of its region.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoredBlockTick {
    /// The block.
    pub block: BlockPos,
    /// The kind of event, by a name with the same meaning in every session.
    pub kind: Arc<str>,
    /// The number of ticks until the event.
    pub remaining: u64,
}

type Entry = (u16, u32, u64);

/// Encodes a chunk's list of block ticks, independently of the order of the list. The error is the reason why the list
/// cannot be encoded.
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

/// Decodes a list of block ticks. The error describes the damage.
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
