//! Ground with one surface: the common part of hills and height maps.

use super::COLUMN_AREA;
use super::generator::{GenerateError, GenerateRequest};
use super::surface::{Surface, SurfaceAnswer};
use crate::block::{BlockId, BlockRegistry};
use crate::chunk::{Chunk, Column};
use crate::space::{CHUNK_SIZE, ColumnPos};
use std::sync::Arc;

/// The maximum number of chunks that a generator may put into one column: a million blocks of height.
pub(super) const MAX_CHUNKS: u64 = 65_536;

/// One cell of a surface, seen from above.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    /// The y of the highest block of the ground.
    pub height: i64,
    /// The highest block of the ground.
    pub top: BlockId,
    /// The blocks just below it.
    pub under: BlockId,
}

impl Cell {
    /// This cell's surface, below a liquid that fills open space up to a level.
    pub(super) fn surface(&self, water: Option<(BlockId, i64)>, blocks: &BlockRegistry) -> SurfaceAnswer {
        let is_solid = |block: BlockId| blocks.block(block).is_solid();
        let Self { height, top, .. } = *self;
        let cover = water.map(|(block, level)| (block, level.saturating_sub(1)));
        match cover.filter(|(block, y)| *y > height && *block != BlockId::AIR) {
            // A frozen sea.
            Some((block, y)) if is_solid(block) => SurfaceAnswer::Known(Some(Surface { y, block, covered_to: None })),
            // A game may make its ground of non-solid blocks. Then only the blocks show where it ends.
            _ if !is_solid(top) => SurfaceAnswer::Unknown,
            cover => SurfaceAnswer::Known(Some(Surface { y: height, block: top, covered_to: cover.map(|(_, y)| y) })),
        }
    }
}

/// The ground of one column.
pub(super) struct Terrain {
    pub cells: [Cell; COLUMN_AREA],
    /// The number of `under` blocks below each top.
    pub under_depth: i64,
    /// The block of the deeper ground.
    pub stone: BlockId,
    /// The y of the lowest block of the ground.
    pub floor: i64,
    /// A liquid, and the y below which it fills open space above the ground.
    pub water: Option<(BlockId, i64)>,
}

/// The lowest block of a column on one axis.
///
/// Columns whose blocks would lie outside `i64` are unreachable; their coordinates wrap around.
pub(super) const fn first_block(column: i64) -> i64 {
    column << 4
}

/// The chunk heights of the blocks `from..=to`, or an error if they are too many.
pub(super) fn chunk_heights(
    column: ColumnPos,
    from: i64,
    to: i64,
) -> Result<std::ops::RangeInclusive<i64>, GenerateError> {
    let (from, to) = (from >> 4, to >> 4);
    let chunks = if from > to { 0 } else { to.abs_diff(from) + 1 };
    if chunks > MAX_CHUNKS {
        return Err(GenerateError::TooTall { column, chunks, limit: MAX_CHUNKS });
    }
    Ok(from..=to)
}

impl Terrain {
    /// The column of this ground, cut to the requested heights.
    pub(super) fn column(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let mut column = Column::new(request.column);
        if request.heights.is_empty() {
            return Ok(column);
        }
        let lowest = self.cells.iter().fold(i64::MAX, |lowest, cell| lowest.min(cell.height));
        let highest = self.cells.iter().fold(i64::MIN, |highest, cell| highest.max(cell.height));
        let bottom = self.floor.max(request.heights.start);
        let last = request.heights.end - 1;
        let top = self.water.map_or(highest, |(_, level)| highest.max(level.saturating_sub(1))).min(last);
        if bottom > top {
            return Ok(column);
        }

        let mut shared = None;
        for y in chunk_heights(request.column, bottom, top)? {
            let (low, high) = (y << 4, (y << 4) + 15);
            let whole = low >= bottom && high <= last;
            if whole && high < lowest.saturating_sub(self.under_depth) {
                put_uniform(&mut column, y, self.stone, &mut shared);
                continue;
            }
            if let Some((liquid, level)) = self.water
                && whole
                && low > highest
                && high < level
            {
                put_uniform(&mut column, y, liquid, &mut shared);
                continue;
            }
            let mut empty = true;
            let chunk = Chunk::from_fn(|[x, within, z]| {
                let height = low + within as i64;
                let block = if height < bottom || height > last { BlockId::AIR } else { self.block(x, height, z) };
                empty &= block == BlockId::AIR;
                block
            });
            if !empty {
                column.set_chunk(y, Arc::new(chunk));
            }
        }
        Ok(column)
    }

    fn block(&self, x: usize, y: i64, z: usize) -> BlockId {
        let cell = &self.cells[x + CHUNK_SIZE * z];
        match cell.height.saturating_sub(y) {
            0 => cell.top,
            ..0 => self.water.map_or(BlockId::AIR, |(water, level)| if y < level { water } else { BlockId::AIR }),
            depth if depth <= self.under_depth => cell.under,
            _ => self.stone,
        }
    }
}

/// The most recent uniform chunk of a column. Following chunks of the same block reuse it, which are mostly adjacent:
/// the column only gets another reference.
pub(super) type SharedChunk = Option<(BlockId, Arc<Chunk>)>;

/// Sets the chunk at `y` to a uniform chunk of this block. Air is omitted.
pub(super) fn put_uniform(column: &mut Column, y: i64, block: BlockId, shared: &mut SharedChunk) {
    if block == BlockId::AIR {
        return;
    }
    let (_, chunk) = match shared {
        Some(last) if last.0 == block => last,
        _ => shared.insert((block, Arc::new(Chunk::uniform(block)))),
    };
    column.set_chunk(y, Arc::clone(chunk));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::basic_blocks;
    use crate::space::BlockPos;
    use proptest::prelude::*;

    const NAMES: [&str; 4] = ["terrane:stone", "terrane:dirt", "terrane:grass", "terrane:water"];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// Uniform chunks, shared chunks, cuts and omitted air are shortcuts: every block follows the plain rule.
        #[test]
        fn every_block_follows_the_rule(
            base in -40i64..80,
            steps in proptest::collection::vec(0i64..40, COLUMN_AREA),
            under_depth in 0i64..6,
            floor in -90i64..0,
            level in proptest::option::of(-60i64..160),
            from in -100i64..20,
            length in 0i64..200,
        ) {
            let registry = basic_blocks();
            let [stone, under, top, water] = NAMES.map(|name| registry.id(name).unwrap());
            let column = ColumnPos::new(-2, 5);
            let request = GenerateRequest { column, heights: from..from + length, blocks: &registry };
            let terrain = Terrain {
                cells: std::array::from_fn(|at| Cell { height: base + steps[at], top, under }),
                under_depth,
                stone,
                floor,
                water: level.map(|level| (water, level)),
            };
            let made = terrain.column(&request).unwrap();

            for y in -128i64..224 {
                for (at, step) in steps.iter().enumerate() {
                    let height = base + step;
                    let expected = if !request.heights.contains(&y) || y < floor {
                        BlockId::AIR
                    } else if y == height {
                        top
                    } else if y < height {
                        if y >= height - under_depth { under } else { stone }
                    } else if level.is_some_and(|level| y < level) {
                        water
                    } else {
                        BlockId::AIR
                    };
                    let (x, z) = ((at % 16) as i64, (at / 16) as i64);
                    let place = BlockPos::new((column.x << 4) + x, y, (column.z << 4) + z);
                    prop_assert_eq!(made.block(place), expected, "at {}", place);
                }
            }
            for y in -8i64..14 {
                let air = (0..16).all(|within| (0..COLUMN_AREA).all(|at| {
                    let (x, z) = ((at % 16) as i64, (at / 16) as i64);
                    made.block(BlockPos::new((column.x << 4) + x, (y << 4) + within, (column.z << 4) + z)) == BlockId::AIR
                }));
                prop_assert_eq!(made.chunk(y).is_none(), air, "all air is left out, nothing else: chunk {}", y);
            }
        }
    }

    #[test]
    fn a_column_of_endless_height_is_refused() {
        let registry = basic_blocks();
        let stone = registry.id("terrane:stone").unwrap();
        let request = GenerateRequest { column: ColumnPos::new(0, 0), heights: i64::MIN..i64::MAX, blocks: &registry };
        let terrain = Terrain {
            cells: [Cell { height: i64::MAX, top: stone, under: stone }; COLUMN_AREA],
            under_depth: 3,
            stone,
            floor: i64::MIN,
            water: Some((stone, i64::MIN)),
        };
        assert!(matches!(terrain.column(&request), Err(GenerateError::TooTall { limit: MAX_CHUNKS, .. })));
    }
}
