//! Chunks of one block, each once.

use crate::block::BlockId;
use crate::chunk::Chunk;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Chunks of one block, each once: a large building is mostly made of few of them.
#[derive(Default)]
pub(super) struct UniformChunks(FxHashMap<BlockId, Arc<Chunk>>);

impl UniformChunks {
    /// The chunk, or the equal one that is there if it is of one block.
    pub fn shared(&mut self, chunk: Chunk) -> Arc<Chunk> {
        match chunk.uniform_block() {
            Some(block) => self.0.entry(block).or_insert_with(|| Arc::new(chunk)).clone(),
            None => Arc::new(chunk),
        }
    }
}
