//! Moves, turns and flips snapshots.

#[cfg(test)]
mod tests;

use super::capture::{is_air, shared};
use super::{BlockTurns, ColumnSnapshot, Relocation, Snapshot, Turn};
use crate::block::BlockId;
use crate::chunk::{Chunk, ChunkAssembly};
use crate::space::{BlockBox, BlockPos, ChunkPos, ColumnPos, HeightSet};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;

/// The error for content that cannot be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlaceError {
    /// A block would be outside of the grid.
    #[error("block {0} would be outside the world")]
    OutOfRange(BlockPos),
    /// The blocks were looked up for another turn.
    #[error("the blocks are turned by {blocks:?}, and the snapshot by {snapshot:?}")]
    OtherTurn {
        /// The turn of the blocks.
        blocks: Turn,
        /// The turn of the snapshot.
        snapshot: Turn,
    },
}

impl Snapshot {
    /// The same snapshot at another place, turned and flipped, with its blocks, layers, block components and entities.
    ///
    /// A move by whole chunks without a turn shares all chunks with this snapshot. Otherwise a chunk of the result is
    /// missing if any part of it is missing here, and entities in missing columns are left out.
    ///
    /// Components of blocks and of entities are unchanged. A game can turn the direction in which entities look by
    /// adding them again: [`add_entity`](Self::add_entity) replaces them.
    pub fn placed(&self, relocation: &Relocation, turns: &BlockTurns) -> Result<Self, PlaceError> {
        if turns.turn() != relocation.turn {
            return Err(PlaceError::OtherTurn { blocks: turns.turn(), snapshot: relocation.turn });
        }
        let mut placed = Self::of_parts(relocation.area(&self.area)?, self.parts);
        placed.concerned = self.concerned.clone();
        match relocation.shift() {
            Some(shift) if shift.iter().all(|distance| distance & 15 == 0) => {
                placed.columns.extend(self.columns.iter().map(|(pos, column)| shifted(*pos, column, shift)));
            }
            _ => {
                let mut packer = Packer {
                    from: self,
                    relocation,
                    back: relocation.inverse(),
                    turns,
                    area: placed.area,
                    uniform: FxHashMap::default(),
                };
                for pos in packer.columns()? {
                    if let Some(column) = packer.column(pos)? {
                        placed.columns.insert(pos, column);
                    }
                }
            }
        }
        for entity in self.entities() {
            let entity = relocation.entity(entity)?;
            placed.add_entity(entity.column(), entity);
        }
        Ok(placed)
    }
}

/// A column that is moved by whole chunks, without its entities.
fn shifted(pos: ColumnPos, column: &ColumnSnapshot, shift: [i128; 3]) -> (ColumnPos, ColumnSnapshot) {
    // Positions in the box stay on the grid, and so do its chunks.
    let [x, y, z] = shift.map(|distance| (distance >> 4) as i64);
    let heights = column.heights.as_ref().map(|heights| {
        let mut shifted = HeightSet::new();
        heights.ranges().for_each(|range| shifted.insert(range.start + y..range.end + y));
        shifted
    });
    let chunks = column.chunks.iter().map(|(height, chunk)| (height + y, chunk.clone())).collect();
    (ColumnPos::new(pos.x + x, pos.z + z), ColumnSnapshot { tick: column.tick, chunks, heights, entities: Vec::new() })
}

struct Packer<'a> {
    from: &'a Snapshot,
    relocation: &'a Relocation,
    back: Relocation,
    turns: &'a BlockTurns,
    /// The destination of the box.
    area: BlockBox,
    /// Chunks of a single block, one for each block.
    uniform: FxHashMap<BlockId, Arc<Chunk>>,
}

impl Packer<'_> {
    /// The columns that receive captured content.
    fn columns(&self) -> Result<BTreeSet<ColumnPos>, PlaceError> {
        let mut columns = BTreeSet::new();
        for pos in self.from.columns.keys() {
            columns.extend(self.relocation.area(&of_column(*pos, &self.from.area))?.columns());
        }
        Ok(columns)
    }

    /// A column without its entities; `None` if a part of it is missing.
    fn column(&mut self, pos: ColumnPos) -> Result<Option<ColumnSnapshot>, PlaceError> {
        let sources = self.back.area(&of_column(pos, &self.area))?;
        let from = self.from;
        let sources: Option<Vec<_>> = sources.columns().map(|source| from.column(source)).collect();
        let Some(sources) = sources else { return Ok(None) };
        let held: Option<HeightSet> = sources
            .iter()
            .filter_map(|source| source.heights())
            .map(|heights| moved_heights(heights, &self.from.area, &self.area))
            .reduce(|both, heights| both.intersection(&heights));
        let mut heights = BTreeSet::new();
        for (y, _) in sources.iter().flat_map(|source| source.chunks()) {
            let blocks = BlockBox::of_chunk(ChunkPos::new(0, y, 0));
            let (low, high) = (blocks.min.y.max(self.from.area.min.y), blocks.max.y.min(self.from.area.max.y));
            let moved = |y: i64| (i128::from(y) - i128::from(self.from.area.min.y) + i128::from(self.area.min.y)) >> 4;
            heights.extend([moved(low) as i64, moved(high) as i64]);
        }
        let mut chunks = Vec::new();
        for y in heights.into_iter().filter(|y| held.as_ref().is_none_or(|held| held.contains(*y))) {
            chunks.extend(self.chunk(pos.chunk(y))?.map(|chunk| (y, chunk)));
        }
        chunks.shrink_to_fit();
        let tick = sources.iter().map(|source| source.tick).max().unwrap_or(0);
        Ok(Some(ColumnSnapshot { tick, chunks, heights: held, entities: Vec::new() }))
    }

    /// A chunk; `None` if it is all air.
    fn chunk(&mut self, pos: ChunkPos) -> Result<Option<Arc<Chunk>>, PlaceError> {
        let blocks = self.back.area(&BlockBox::of_chunk(pos).intersection(&self.area))?;
        let Some((min, max)) = blocks.chunks() else { return Ok(None) };
        let from = self.from;
        let rows = (min.x..=max.x).flat_map(|x| (min.y..=max.y).map(move |y| (x, y)));
        let places = rows.flat_map(|(x, y)| (min.z..=max.z).map(move |z| ChunkPos::new(x, y, z)));
        let sources: Vec<(ChunkPos, Option<&Arc<Chunk>>)> = places.map(|source| (source, from.chunk(source))).collect();
        if let Some(block) = self.only_block(&sources) {
            return Ok((block != BlockId::AIR).then(|| shared(&mut self.uniform, Chunk::uniform(block))));
        }
        let mut assembly = ChunkAssembly::default();
        for (source, chunk) in &sources {
            if let (Some(chunk), Some(part)) = (chunk, blocks.part(*source)) {
                assembly.copy_part(chunk, &part, self.cell_map(*source, pos), |block| self.turns.block(block));
            }
        }
        let chunk = assembly.finish();
        Ok((!is_air(&chunk)).then(|| Arc::new(chunk)))
    }

    /// The block that fills all sources.
    fn only_block(&self, sources: &[(ChunkPos, Option<&Arc<Chunk>>)]) -> Option<BlockId> {
        let block = |chunk: &Option<&Arc<Chunk>>| match chunk {
            Some(chunk) => chunk.uniform_block().map(|block| self.turns.block(block)),
            None => Some(BlockId::AIR),
        };
        let first = block(&sources.first()?.1)?;
        sources[1..].iter().all(|(_, chunk)| block(chunk) == Some(first)).then_some(first)
    }

    /// Maps cells of one chunk to cells of another.
    fn cell_map(&self, from: ChunkPos, to: ChunkPos) -> impl Fn([usize; 3]) -> usize + use<> {
        let stride = |[x, z]: [i128; 2]| (x * 256 + z) as i32;
        let (arrived, min) = (self.relocation.exact(from.min_block()), to.min_block());
        let distance = |arrived: i128, min: i64| (arrived - i128::from(min)) as i32;
        let [x, y, z] = [distance(arrived[0], min.x), distance(arrived[1], min.y), distance(arrived[2], min.z)];
        let turn = self.relocation.turn;
        let (origin, strides) = (x * 256 + y * 16 + z, [stride(turn.vector(1, 0)), 16, stride(turn.vector(0, 1))]);
        move |position| {
            let [x, y, z] = position.map(|coordinate| coordinate as i32);
            (origin + x * strides[0] + y * strides[1] + z * strides[2]) as usize
        }
    }
}

/// The part of a box in a column, from its lowest to its highest block.
fn of_column(pos: ColumnPos, area: &BlockBox) -> BlockBox {
    let chunk = BlockBox::of_chunk(pos.chunk(0));
    let all_heights = BlockBox {
        min: BlockPos::new(chunk.min.x, i64::MIN, chunk.min.z),
        max: BlockPos::new(chunk.max.x, i64::MAX, chunk.max.z),
    };
    all_heights.intersection(area)
}

/// The complete chunk heights of the box `to` after moving these heights of the box `from` to it.
fn moved_heights(heights: &HeightSet, from: &BlockBox, to: &BlockBox) -> HeightSet {
    let mut moved = HeightSet::new();
    let arrived = |y: i128| y - i128::from(from.min.y) + i128::from(to.min.y);
    let (bottom, top) = (i128::from(to.min.y), i128::from(to.max.y));
    for range in heights.ranges() {
        // Heights outside of the box are not needed to fill a chunk.
        let low = arrived(i128::from(range.start) << 4).max(bottom);
        let high = arrived((i128::from(range.end) << 4) - 1).min(top);
        let first = if low == bottom { low >> 4 } else { (low + 15) >> 4 };
        let end = if high == top { (high >> 4) + 1 } else { (high + 1) >> 4 };
        if low <= high {
            moved.insert(first as i64..end as i64);
        }
    }
    moved
}
