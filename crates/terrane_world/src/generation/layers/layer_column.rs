//! The column in the hands of a layer.

use super::{GenerateLayer, surface_of};
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::{Chunk, Column};
use crate::generation::generator::{GenerateError, block_id};
use crate::generation::surface::{Surface, SurfaceRequest, SurfaceSource};
use crate::generation::terrain::{COLUMN_AREA, first_block};
use crate::space::{BlockPos, CHUNK_SIZE, ChunkPos, ColumnPos};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// The column that a [`GenerateLayer`](super::GenerateLayer) changes, and what the layer may know besides.
pub struct LayerColumn<'a> {
    pub(super) column: Column,
    pub(super) heights: Range<i64>,
    pub(super) blocks: &'a BlockRegistry,
    pub(super) ground: &'a SurfaceSource,
    /// The surface of the ground in this column, as far as it is known: most layers ask for it, place by place.
    pub(super) surfaces: Box<[Cell<Option<Option<Surface>>>; COLUMN_AREA]>,
    /// The layers that came before.
    pub(super) below: &'a [Box<dyn GenerateLayer>],
}

impl LayerColumn<'_> {
    /// Where the column is.
    pub fn pos(&self) -> ColumnPos {
        self.column.pos()
    }

    /// The heights that are made now: what lies outside can neither be seen nor changed. They say nothing of the
    /// ground, and may be another part of it next time.
    pub fn heights(&self) -> Range<i64> {
        self.heights.clone()
    }

    /// The heights, of those that are made now, in which there are blocks at all: what a layer that changes all of
    /// some kind has to go through.
    pub fn filled_heights(&self) -> Range<i64> {
        let mut chunks = self.column.chunks().map(|(y, _)| y);
        let Some(lowest) = chunks.next() else { return self.heights.start..self.heights.start };
        let highest = chunks.next_back().unwrap_or(lowest);
        (lowest << 4).max(self.heights.start)..((highest << 4) | 15).saturating_add(1).min(self.heights.end)
    }

    /// The blocks of the game.
    pub fn blocks(&self) -> &BlockRegistry {
        self.blocks
    }

    /// The id of the block with this name; an error that names it if the game has none.
    pub fn id(&self, name: &str) -> Result<BlockId, GenerateError> {
        block_id(self.blocks, name)
    }

    /// x and z of all places in this column.
    pub fn places(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        let (x, z) = (first_block(self.pos().x), first_block(self.pos().z));
        let size = CHUNK_SIZE as i64;
        (0..COLUMN_AREA as i64).map(move |at| (x + at % size, z + at / size))
    }

    /// The ground at a place in this column or any other, as the layers below left it.
    pub fn surface(&self, x: i64, z: i64) -> Result<Option<Surface>, GenerateError> {
        let request = SurfaceRequest { x, z, blocks: self.blocks };
        surface_of(self.ground_surface(&request)?, self.below, &request)
    }

    fn ground_surface(&self, request: &SurfaceRequest<'_>) -> Result<Option<Surface>, GenerateError> {
        if request.column() != self.pos() {
            return self.ground.surface(request);
        }
        let place = &self.surfaces[request.place()];
        if let Some(surface) = place.get() {
            return Ok(surface);
        }
        let surface = self.ground.surface(request)?;
        place.set(Some(surface));
        Ok(surface)
    }

    /// The block at a place; nothing if that lies in another column, or outside of the heights that are made now.
    pub fn block(&self, x: i64, y: i64, z: i64) -> Option<BlockId> {
        let place = BlockPos::new(x, y, z);
        self.holds(place).then(|| self.column.block(place))
    }

    /// Replaces the block at a place. What lies in another column, or outside of the heights that are made now, stays
    /// as it is, so that a layer need not look where they end.
    pub fn set_block(&mut self, x: i64, y: i64, z: i64, block: BlockId) {
        self.replace(x, y, z, |_| block);
    }

    /// Replaces the block at a place by what the closure makes of it, under the same conditions as
    /// [`set_block`](Self::set_block).
    pub fn replace(&mut self, x: i64, y: i64, z: i64, block: impl FnOnce(BlockId) -> BlockId) {
        let place = BlockPos::new(x, y, z);
        if self.holds(place) {
            let old = self.column.block(place);
            let new = block(old);
            if new != old {
                self.column.set_block(place, new);
            }
        }
    }

    /// The chunks that have blocks, from the bottom up.
    pub(super) fn chunks(&self) -> Vec<(ChunkPos, Arc<Chunk>)> {
        self.column.chunks().map(|(y, chunk)| (self.pos().chunk(y), Arc::clone(chunk))).collect()
    }

    fn holds(&self, place: BlockPos) -> bool {
        place.column() == self.column.pos() && self.heights.contains(&place.y)
    }
}

/// Leaves only what lies within the heights, in as few and as small chunks as that needs.
pub(in crate::generation) fn cut(column: &mut Column, heights: &Range<i64>) {
    let chunks: Vec<_> = column.chunks().map(|(y, _)| y).collect();
    for y in chunks {
        let (low, high) = (y << 4, (y << 4) + 15);
        let Some(mut chunk) = column.remove_chunk(y) else { continue };
        if high < heights.start || low >= heights.end {
            continue;
        }
        if low < heights.start || high >= heights.end {
            chunk = Arc::new(Chunk::from_fn(|[x, within, z]| {
                let kept = heights.contains(&(low + within as i64));
                if kept { chunk.block([x, within, z]) } else { BlockId::AIR }
            }));
        }
        // A chunk that others share is one of the generator's own, and as small as it can be.
        if let Some(chunk) = Arc::get_mut(&mut chunk) {
            chunk.compact();
        }
        if chunk.uniform_block() != Some(BlockId::AIR) {
            column.set_chunk(y, chunk);
        }
    }
}
