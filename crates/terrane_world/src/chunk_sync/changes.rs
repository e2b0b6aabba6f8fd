//! [`ChunkChange`]: changed blocks of a chunk, encoded once for all clients.

use super::messages::{CHANGES, MAX_CLIENT_BYTES, PROTOCOL, parse};
use super::{ChunkHash, SyncError};
use crate::block::{BlockId, BlockRegistry};
use crate::bytes::{put_number, put_value, up_to};
use crate::chunk::{Chunk, format};
use crate::space::{CHUNK_VOLUME, ChunkPos, cell_position};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The maximum number of changed blocks. Larger changes are sent as a whole chunk.
const MAX_BLOCKS: usize = 256;
/// The binary logarithm of the number of chunks along a cell. Within it, a change names its chunk by a number below 4,096.
const CELL_SHIFT: u32 = 4;
const CELL_MASK: i64 = (1 << CELL_SHIFT) - 1;
/// The maximum number of cells in a message, and of changes in each.
const MAX_CHANGES: usize = 1 << 14;

/// Changed blocks of a chunk. All clients that have the chunk are sent the same bytes. A client sets the blocks in its own chunk, and
/// takes the result only if it has the right hash.
#[derive(Debug)]
pub struct ChunkChange {
    pub(super) chunk: ChunkPos,
    /// The hash of the changed chunk.
    pub(super) hash: ChunkHash,
    encoded: Vec<u8>,
}

/// A change as in a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SentChange {
    /// The chunk's place in the cell, by x, y and z, x slowest.
    place: u16,
    #[serde(with = "postcard::fixint::le")]
    check: u32,
    /// The numbers of cells in the chunk, and their new blocks.
    #[serde(deserialize_with = "up_to::<_, _, MAX_BLOCKS>")]
    blocks: Vec<(u16, u32)>,
}

impl ChunkChange {
    /// The change of a chunk, with the numbers of the world; `None` if it is not one of a few blocks. Then clients are sent the whole
    /// chunk.
    pub fn between(chunk: ChunkPos, old: &Chunk, new: &Chunk, types: &BlockRegistry) -> Option<Arc<Self>> {
        let mut made = old.clone();
        let mut blocks = Vec::new();
        for (cell, (old, new)) in old.blocks().zip(new.blocks()).enumerate() {
            if old != new {
                made.set_block(cell_position(cell), new);
                blocks.push((cell as u16, new.index()));
            }
        }
        let is_all = blocks.len() <= MAX_BLOCKS && made == *new;
        let mut bytes = Vec::new();
        if !is_all || format::encode(types, new, &[], &mut bytes).is_err() {
            return None;
        }
        let hash = ChunkHash::of(&bytes);
        let along = |coordinate: i64| (coordinate & CELL_MASK) as u16;
        let place = along(chunk.x) << (2 * CELL_SHIFT) | along(chunk.y) << CELL_SHIFT | along(chunk.z);
        let encoded = put_value(Vec::new(), &SentChange { place, check: hash.short(), blocks });
        Some(Arc::new(Self { chunk, hash, encoded }))
    }

    /// The size in a message, without that of the cell.
    pub(super) fn bytes(&self) -> usize {
        self.encoded.len()
    }

    fn cell(&self) -> ChunkPos {
        let ChunkPos { x, y, z } = self.chunk;
        ChunkPos::new(x >> CELL_SHIFT, y >> CELL_SHIFT, z >> CELL_SHIFT)
    }

    /// The message with these changes. Those of one chunk keep their order.
    pub(super) fn message(mut changes: Vec<Arc<Self>>) -> Vec<u8> {
        changes.sort_by_key(|change| change.cell());
        let cells = changes.chunk_by(|a, b| a.cell() == b.cell());
        let mut message = vec![PROTOCOL, CHANGES];
        put_number(&mut message, cells.clone().count() as u64);
        for changes in cells {
            message = put_value(message, &changes[0].cell());
            put_number(&mut message, changes.len() as u64);
            changes.iter().for_each(|change| message.extend_from_slice(&change.encoded));
        }
        message
    }
}

/// A server's message with changes, as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkChanges {
    #[serde(deserialize_with = "up_to::<_, _, MAX_CHANGES>")]
    cells: Vec<(ChunkPos, CellChanges)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CellChanges(#[serde(deserialize_with = "up_to::<_, _, MAX_CHANGES>")] Vec<SentChange>);

impl ChunkChanges {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        put_value(vec![PROTOCOL, CHANGES], self)
    }

    /// Decodes a message; `None` if it is not one of changes.
    ///
    /// # Errors
    /// Fails if the bytes are not such a message, or too many.
    pub fn decode(message: &[u8]) -> Option<Result<Self, SyncError>> {
        let body = message.strip_prefix(&[PROTOCOL, CHANGES])?;
        Some(if message.len() > MAX_CLIENT_BYTES {
            Err(SyncError::TooLarge { limit: MAX_CLIENT_BYTES })
        } else {
            parse(body)
        })
    }

    /// Calls `each` for the changes, in their order, with a function that makes the change in the client's bytes of the chunk. It returns
    /// `None` if the change does not fit.
    pub(super) fn make(self, mut each: impl FnMut(ChunkPos, &dyn Fn(&[u8], &BlockRegistry) -> Option<Vec<u8>>)) {
        for (cell, CellChanges(changes)) in self.cells {
            for SentChange { place, check, blocks } in changes {
                let along = |cell: i64, shift: u32| {
                    Some(cell.checked_mul(1 << CELL_SHIFT)? + (i64::from(place >> shift) & CELL_MASK))
                };
                if let (Some(x), Some(y), Some(z)) =
                    (along(cell.x, 2 * CELL_SHIFT), along(cell.y, CELL_SHIFT), along(cell.z, 0))
                {
                    each(ChunkPos::new(x, y, z), &|old, types| changed(old, types, &blocks, check));
                }
            }
        }
    }
}

/// The bytes of a chunk with other blocks; `None` if their hash is wrong.
fn changed(old: &[u8], types: &BlockRegistry, blocks: &[(u16, u32)], check: u32) -> Option<Vec<u8>> {
    let (mut chunk, entities) = format::decode(types, old).ok()?;
    for (cell, block) in blocks {
        let cell = Some(usize::from(*cell)).filter(|cell| *cell < CHUNK_VOLUME)?;
        chunk.set_block(cell_position(cell), BlockId::new(*block));
    }
    let mut bytes = Vec::new();
    format::encode(types, &chunk, &entities, &mut bytes).ok()?;
    (ChunkHash::of(&bytes).short() == check).then_some(bytes)
}
