//! Random ticks: some of the blocks that ask for it, chosen at random.

use super::blocks::RegionColumns;
use crate::block::BlockSet;
use crate::chunk::{Chunk, Column};
use crate::simulation::SplitMix64;
use crate::space::{BlockPos, CHUNK_VOLUME, ChunkPos, DimensionId, cell_position};
use bevy::prelude::*;
use std::time::Duration;

/// A block with the tag [`RANDOM_TICKS`](crate::block::tags::RANDOM_TICKS) was drawn. Read it with `MessageReader<RandomTick>` in a
/// region.
///
/// In each tick, [`GroundSettings::random_ticks`](crate::simulation::GroundSettings::random_ticks) cells are drawn of each chunk
/// that has such a block in its palette. Which cells depends on the world's seed, the session, the dimension's clock and the chunk, and
/// not on regions and threads.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomTick {
    /// The block.
    pub block: BlockPos,
    /// Random bits for the game's rules, which are the same in each run in lockstep, like the choice of the block.
    pub random: u64,
}

impl RegionColumns {
    /// Finds the chunks of a new column that get random ticks.
    pub(super) fn find_random_chunks(&mut self, column: &Column) {
        let Some(types) = self.ground_types().and_then(|types| types.random.as_ref()) else { return };
        let heights: Vec<_> = column.chunks().filter(|(_, chunk)| has_any(chunk, types)).map(|(y, _)| y).collect();
        self.random_chunks.extend(heights.into_iter().map(|y| column.pos().chunk(y)));
    }

    /// Announces that a block has changed.
    pub(super) fn find_random_block(&mut self, block: BlockPos) {
        let Some(types) = self.ground_types().and_then(|types| types.random.as_ref()) else { return };
        if self.known_block(block).is_some_and(|id| types.contains(id)) {
            self.random_chunks.insert(block.chunk());
        }
    }

    /// Announces that a chunk was replaced.
    pub(super) fn find_random_chunk(&mut self, pos: ChunkPos) {
        let Some(types) = self.ground_types().and_then(|types| types.random.as_ref()) else { return };
        let chunk = self.column(pos.column()).and_then(|column| column.chunk(pos.y));
        if chunk.is_some_and(|chunk| has_any(chunk, types)) {
            self.random_chunks.insert(pos);
        }
    }

    /// Returns `true` if there are chunks that may get random ticks.
    pub(crate) fn has_random_chunks(&self) -> bool {
        !self.random_chunks.is_empty()
    }

    /// The number of chunks that may get random ticks.
    #[cfg(test)]
    pub(crate) fn random_chunk_count(&self) -> usize {
        self.random_chunks.len()
    }

    /// Draws the random ticks of a tick, sorted by chunk. Chunks that are gone, or have no such block any more, are dropped.
    pub(crate) fn draw_random_ticks(
        &mut self,
        seed: u64,
        dimension: DimensionId,
        clock: Duration,
        share: u32,
    ) -> Vec<RandomTick> {
        let mut drawn = Vec::new();
        if self.random_chunks.is_empty() {
            return drawn;
        }
        let mut chunks = std::mem::take(&mut self.random_chunks);
        if let Some(types) = self.ground_types().and_then(|types| types.random.as_ref()) {
            let now = SplitMix64::from_parts([seed, dimension.0, clock.as_nanos() as u64]).next_u64();
            chunks.retain(|pos| {
                let chunk = self.column(pos.column()).and_then(|column| column.chunk(pos.y));
                let Some(chunk) = chunk.filter(|chunk| has_any(chunk, types)) else { return false };
                let mut random = SplitMix64::from_parts([now, pos.x as u64, pos.y as u64, pos.z as u64]);
                for _ in 0..share {
                    let cell = cell_position(random.below(CHUNK_VOLUME as u32) as usize);
                    let bits = random.next_u64();
                    if types.contains(chunk.block(cell)) {
                        drawn.push(RandomTick { block: pos.block(cell), random: bits });
                    }
                }
                true
            });
        }
        self.random_chunks = chunks;
        drawn
    }
}

fn has_any(chunk: &Chunk, types: &BlockSet) -> bool {
    chunk.palette().iter().any(|block| types.contains(*block))
}
