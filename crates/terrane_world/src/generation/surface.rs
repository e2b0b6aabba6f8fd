//! Where the ground ends, seen from above: what later steps of a generator stand on.

use super::digest::Digest;
use super::generator::{GenerateError, GenerateRequest, Generator, block_id};
use super::terrain::COLUMN_AREA;
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::Column;
use crate::space::{BlockPos, CHUNK_SIZE, ColumnPos};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the ground ends at one place, seen from above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// y of the highest solid block.
    pub y: i64,
    /// That block.
    pub block: BlockId,
    /// y of the highest block of what covers it without being solid, such as water. Nothing if the place is bare.
    pub covered_to: Option<i64>,
}

/// What a [`Generator`] knows of the surface at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceAnswer {
    /// It would have to make the column to tell.
    Unknown,
    /// This is the surface; nothing if there is no ground at this place.
    Known(Option<Surface>),
}

/// The place whose [`Surface`] is asked for.
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
    /// The id of the block with this name; an error that names it if the game has none.
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

/// Heights in which the surface of a generator that does not tell it is looked for.
pub(super) const DEFAULT_SEARCH: Range<i64> = -512..1_024;

/// Columns whose surfaces are remembered: 2 MiB, and enough for the neighbours of what a few threads work on.
const REMEMBERED_COLUMNS: usize = 256;

type Surfaces = [Option<Surface>; COLUMN_AREA];

/// A generator whose surface can always be asked for: by its own answer, or by making columns and remembering some.
pub(super) struct SurfaceSource {
    pub generator: Box<dyn Generator>,
    pub search: Range<i64>,
    /// The surfaces of some columns, and these columns. The oldest is forgotten first: work moves on, and does not come back.
    remembered: Mutex<(FxHashMap<Key, Arc<Surfaces>>, VecDeque<Key>)>,
}

/// A column, and the fingerprint of the block types it was made with.
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

    /// With all that the surface depends on.
    pub fn digest(&self, digest: Digest) -> Digest {
        digest.identity(&self.generator.identity()).heights(&self.search)
    }

    fn found_surface(&self, request: &SurfaceRequest<'_>) -> Result<Option<Surface>, GenerateError> {
        let key = (request.column(), request.blocks.fingerprint());
        // Only whole entries are ever put in, so a panic elsewhere leaves nothing half done.
        let known = self.remembered.lock().unwrap_or_else(PoisonError::into_inner).0.get(&key).cloned();
        if let Some(surfaces) = known {
            return Ok(surfaces[request.place()]);
        }
        // Not under the lock: two threads may make the same column, which is the same for both.
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

/// The surfaces of all places of a column; a place's index is `x + 16 * z`.
pub(super) fn surfaces_of(column: &Column, blocks: &BlockRegistry) -> Surfaces {
    let highest = column.highest_of_all(|block| blocks.block(block).is_solid());
    std::array::from_fn(|place| {
        let (y, block) = highest[place]?;
        // The upper end of what lies, without a gap, on the surface.
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
