//! [`LayerColumn`]: the column that a layer changes.

use super::{GenerateLayer, surface_of};
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::{Chunk, Column};
use crate::generation::COLUMN_AREA;
use crate::generation::generator::{GenerateError, block_id};
use crate::generation::surface::{Surface, SurfaceRequest, SurfaceSource};
use crate::generation::terrain::first_block;
use crate::space::{BlockPos, CHUNK_SIZE, ChunkPos, ColumnPos};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// The column that a [`GenerateLayer`](super::GenerateLayer) changes, and the layer's access to surfaces and blocks.
pub struct LayerColumn<'a> {
    pub(super) column: Column,
    pub(super) heights: Range<i64>,
    pub(super) blocks: &'a BlockRegistry,
    pub(super) ground: &'a SurfaceSource,
    /// The cached surfaces of this column: most layers read them, place by place.
    pub(super) surfaces: Box<[Cell<Option<Option<Surface>>>; COLUMN_AREA]>,
    /// The layers below this one.
    pub(super) below: &'a [Box<dyn GenerateLayer>],
}

impl LayerColumn<'_> {
    /// The position of the column.
    pub fn pos(&self) -> ColumnPos {
        self.column.pos()
    }

    /// The heights that are being generated. Blocks outside of them can be neither read nor changed. They are
    /// independent of the ground, and may be another part of it next time.
    pub fn heights(&self) -> Range<i64> {
        self.heights.clone()
    }

    /// The part of these heights that contains any blocks. A layer that changes all blocks of some kind only has to
    /// visit these heights.
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

    /// The id of the block with this name. The error names the block if the game does not have it.
    pub fn id(&self, name: &str) -> Result<BlockId, GenerateError> {
        block_id(self.blocks, name)
    }

    /// The x and z of all places in this column.
    pub fn places(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        let (x, z) = (first_block(self.pos().x), first_block(self.pos().z));
        let size = CHUNK_SIZE as i64;
        (0..COLUMN_AREA as i64).map(move |at| (x + at % size, z + at / size))
    }

    /// The ground at a place in this or any other column, after the layers below.
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

    /// The block at a place; `None` if it lies in another column or outside of the current heights.
    pub fn block(&self, x: i64, y: i64, z: i64) -> Option<BlockId> {
        let place = BlockPos::new(x, y, z);
        self.holds(place).then(|| self.column.block(place))
    }

    /// Replaces the block at a place. Does nothing for places in other columns or outside of the current heights, so a
    /// layer need not check these limits.
    pub fn set_block(&mut self, x: i64, y: i64, z: i64, block: BlockId) {
        self.replace(x, y, z, |_| block);
    }

    /// Replaces the block at a place by the result of the closure, within the same limits as
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

    /// The chunks with blocks, in ascending order.
    pub(super) fn chunks(&self) -> Vec<(ChunkPos, Arc<Chunk>)> {
        self.column.chunks().map(|(y, chunk)| (self.pos().chunk(y), Arc::clone(chunk))).collect()
    }

    fn holds(&self, place: BlockPos) -> bool {
        place.column() == self.column.pos() && self.heights.contains(&place.y)
    }
}

/// Removes all blocks outside of the heights, and minimizes the number and the size of the remaining chunks.
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
        // A shared chunk was made by the generator and is already minimal.
        if let Some(chunk) = Arc::get_mut(&mut chunk) {
            chunk.compact();
        }
        if chunk.uniform_block() != Some(BlockId::AIR) {
            column.set_chunk(y, chunk);
        }
    }
}
