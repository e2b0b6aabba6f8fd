//! [`Surface`]: the end of the ground, on which later steps of a generator stand.

use super::COLUMN_AREA;
use super::digest::Digest;
use super::generator::{GenerateError, GenerateRequest, Generator, block_id};
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::Column;
use crate::space::{BlockPos, CHUNK_SIZE, ColumnPos};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The end of the ground at one place, seen from above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// The y of the highest solid block.
    pub y: i64,
    /// The highest solid block.
    pub block: BlockId,
    /// The y of the highest non-solid block that covers the surface, such as water; `None` if the place is bare.
    pub covered_to: Option<i64>,
}

/// A [`Generator`]'s knowledge of the surface at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceAnswer {
    /// The generator would have to generate the column to find it.
    Unknown,
    /// The surface; `None` if there is no ground at this place.
    Known(Option<Surface>),
}

/// A request for the [`Surface`] at a place.
#[derive(Clone, Copy, Debug)]
pub struct SurfaceRequest<'a> {
    /// The block coordinate along x.
    pub x: i64,
    /// The block coordinate along z.
    pub z: i64,
    /// The blocks of the game, by name.
    pub blocks: &'a BlockRegistry,
}

impl SurfaceRequest<'_> {
    /// The id of the block with this name. The error names the block if the game does not have it.
    pub fn block(&self, name: &str) -> Result<BlockId, GenerateError> {
        block_id(self.blocks, name)
    }

    pub(super) const fn column(&self) -> ColumnPos {
        BlockPos::new(self.x, 0, self.z).column()
    }

    /// The place within the column, `x + 16 * z`.
    pub(super) const fn place(&self) -> usize {
        (self.x & 15) as usize + CHUNK_SIZE * (self.z & 15) as usize
    }
}

/// The heights in which to search the surface of a generator that cannot compute it.
pub(super) const DEFAULT_SEARCH: Range<i64> = -512..1_024;

/// The number of columns whose surfaces are cached: 2 MiB, enough for the neighbours of the work of a few threads.
const REMEMBERED_COLUMNS: usize = 256;

type Surfaces = [Option<Surface>; COLUMN_AREA];

/// A generator whose surface is always available: from its own answer, or by generating columns and caching some.
pub(super) struct SurfaceSource {
    pub generator: Box<dyn Generator>,
    pub search: Range<i64>,
    /// The cached surfaces by column, and the columns in order. The oldest is dropped first: work moves on and does
    /// not return.
    remembered: Mutex<(FxHashMap<Key, Arc<Surfaces>>, VecDeque<Key>)>,
}

/// A column, and the fingerprint of the block types that it was generated with.
type Key = (ColumnPos, u64);

impl SurfaceSource {
    pub fn new(generator: impl Generator) -> Self {
        Self { generator: Box::new(generator), search: DEFAULT_SEARCH, remembered: Mutex::default() }
    }

    pub fn surface(&self, request: &SurfaceRequest<'_>) -> Result<Option<Surface>, GenerateError> {
        match self.generator.surface(request)? {
            SurfaceAnswer::Known(surface) => Ok(surface),
            SurfaceAnswer::Unknown => self.found_surface(request),
        }
    }

    /// Adds everything that the surface depends on.
    pub fn digest(&self, digest: Digest) -> Digest {
        digest.identity(&self.generator.identity()).heights(&self.search)
    }

    fn found_surface(&self, request: &SurfaceRequest<'_>) -> Result<Option<Surface>, GenerateError> {
        let key = (request.column(), request.blocks.fingerprint());
        // Entries are only inserted complete, so a panic elsewhere leaves the cache valid.
        let known = self.remembered.lock().unwrap_or_else(PoisonError::into_inner).0.get(&key).cloned();
        if let Some(surfaces) = known {
            return Ok(surfaces[request.place()]);
        }
        // Not under the lock: two threads may generate the same column, with the same result.
        let whole = GenerateRequest { column: key.0, heights: self.search.clone(), blocks: request.blocks };
        let surfaces = Arc::new(surfaces_of(&self.generator.generate(&whole)?, request.blocks));
        let (remembered, order) = &mut *self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.insert(key, Arc::clone(&surfaces)).is_none() {
            order.push_back(key);
        }
        if order.len() > REMEMBERED_COLUMNS
            && let Some(oldest) = order.pop_front()
        {
            remembered.remove(&oldest);
        }
        Ok(surfaces[request.place()])
    }
}

/// The surfaces of all places of a column, at index `x + 16 * z`.
pub(super) fn surfaces_of(column: &Column, blocks: &BlockRegistry) -> Surfaces {
    let highest = column.highest_of_all(|block| blocks.block(block).is_solid());
    std::array::from_fn(|place| {
        let (y, block) = highest[place]?;
        // The upper end of the non-solid blocks that lie on the surface without a gap.
        let above = (1..).map_while(|step| y.checked_add(step));
        let covering =
            above.take_while(|y| block_at(column, [place % CHUNK_SIZE, place / CHUNK_SIZE], *y) != BlockId::AIR);
        Some(Surface { y, block, covered_to: covering.last() })
    })
}

/// The block at x and z within a column, and y in the world.
pub(super) fn block_at(column: &Column, [x, z]: [usize; 2], y: i64) -> BlockId {
    column.chunk(y >> 4).map_or(BlockId::AIR, |chunk| chunk.block([x, (y & 15) as usize, z]))
}
