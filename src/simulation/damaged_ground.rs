//! Ground that is stored and cannot be read: it is refused, or made anew.

use super::Ground;
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::space::{ChunkPos, ColumnPos};
use crate::storage::{Durability, SaveBatch, StoreError, StoredItem, WorldStore};
use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// What becomes of a chunk that is stored but damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DamagedGround {
    /// Its column is not loaded, which is told and tried again: it can still be restored from a backup.
    #[default]
    Refuse,
    /// It is generated anew and stored at once, and what was changed in it is lost. What can be read of the damaged value
    /// is [kept aside](WorldStore::set_aside).
    Regenerate,
}

/// A chunk that was damaged and is made anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegeneratedChunk {
    /// The chunk.
    pub chunk: ChunkPos,
    /// What was wrong with it.
    pub error: StoreError,
}

/// What becomes of a dimension's damaged chunks, and what became of them.
#[derive(Debug, Default)]
pub struct Repairs {
    policy: DamagedGround,
    made: Mutex<Vec<RegeneratedChunk>>,
}

impl Repairs {
    /// Repairs by this rule.
    pub fn new(policy: DamagedGround) -> Self {
        Self { policy, made: Mutex::default() }
    }

    /// The chunks that were made anew since the last call.
    pub fn take(&self) -> Vec<RegeneratedChunk> {
        mem::take(&mut self.made.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, made: RegeneratedChunk) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(made);
    }
}

impl Ground {
    /// Reads something of a column, after the chunks of it that turn out to be damaged are made anew, if they may be.
    ///
    /// # Errors
    /// Whatever `read` says, if it is not about a chunk of the column, or that may not or cannot be made anew.
    pub fn read_repaired<T>(
        &self,
        store: &WorldStore,
        column: ColumnPos,
        read: impl Fn(&WorldStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut made = BTreeSet::new();
        loop {
            let error = match read(store) {
                Err(error) if self.repairs.policy == DamagedGround::Regenerate => error,
                read => return read,
            };
            let chunk = match error {
                StoreError::Corrupt { what: StoredItem::Chunk(dimension, chunk), .. }
                    if dimension == self.dimension && chunk.column() == column && made.insert(chunk) =>
                {
                    chunk
                }
                error => return Err(error),
            };
            let Some(blocks) = self.generate_chunk(chunk) else { return Err(error) };
            let chunks = [((self.dimension, chunk), blocks)].into();
            // Whatever is newer than what is stored is committed later, and so takes its place.
            store.commit(&SaveBatch { chunks, ..SaveBatch::default() }, Durability::Sync)?;
            self.repairs.note(RegeneratedChunk { chunk, error });
        }
    }

    /// The chunk as the generator makes it, if it can.
    fn generate_chunk(&self, chunk: ChunkPos) -> Option<Arc<Chunk>> {
        // Where columns are made whole, a generator need not know how to make a part of one.
        let heights = if self.is_sparse { chunk.y..chunk.y + 1 } else { self.chunk_heights.clone() };
        let column = self.generate(chunk.column(), heights).ok()?;
        Some(column.chunk(chunk.y).cloned().unwrap_or_else(|| Arc::new(Chunk::uniform(BlockId::AIR))))
    }
}
