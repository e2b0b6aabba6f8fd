//! A chunk with its surroundings, as input of meshers.

use super::looks::LookTable;
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME};
use std::ops::Range;
use std::sync::Arc;

/// The edge of a chunk with one layer of its surroundings on every side.
pub(super) const PADDED: usize = CHUNK_SIZE + 2;

/// The blocks of a chunk and one layer around it. The space below the world and ground that is not loaded are of a block that no
/// registry has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaddedBlocks(pub(super) Box<[BlockId; PADDED * PADDED * PADDED]>);

impl PaddedBlocks {
    /// The block at a place relative to the chunk's lowest block, -1 to 16 on each axis; others wrap around.
    pub fn block(&self, place: [i32; 3]) -> BlockId {
        let [x, y, z] = place.map(|axis| (axis + 1).rem_euclid(PADDED as i32) as usize);
        self.0[(x * PADDED + y) * PADDED + z]
    }

    /// Air everywhere.
    pub(super) fn air() -> Self {
        Self(Box::new([BlockId::AIR; PADDED * PADDED * PADDED]))
    }
}

/// A block that hides everything, in the padding.
const SOLID: BlockId = BlockId::new(u32::MAX);

/// The content of one of the 27 places around a chunk.
#[derive(Clone, Debug)]
pub(super) enum Near {
    /// Nothing.
    Air,
    /// Solid blocks that hide everything: the space below the world.
    Solid,
    /// A chunk.
    Chunk(Arc<Chunk>),
}

impl Near {
    /// Returns `true` if nothing in it is drawn, and `false` if that is not known at once.
    fn is_empty(&self, looks: &LookTable) -> bool {
        match self {
            Self::Air => true,
            Self::Solid => false,
            Self::Chunk(chunk) => chunk.palette().iter().all(|block| looks.is_invisible(*block)),
        }
    }

    /// Returns `true` if it hides everything behind it, and `false` if that is not known at once.
    fn is_opaque(&self, looks: &LookTable) -> bool {
        match self {
            Self::Air => false,
            Self::Solid => true,
            Self::Chunk(chunk) => chunk.palette().iter().all(|block| looks.is_opaque(*block)),
        }
    }
}

/// A chunk and the 26 around it at one moment.
pub(super) struct Neighborhood([Near; 27]);

impl Neighborhood {
    /// Calls `near` for each offset of -1..=1 on each axis.
    pub fn from_fn(mut near: impl FnMut([i64; 3]) -> Near) -> Self {
        Self(std::array::from_fn(|place| near(offset(place))))
    }

    fn at(&self, [x, y, z]: [i64; 3]) -> &Near {
        &self.0[((x + 1) * 9 + (y + 1) * 3 + z + 1) as usize]
    }

    /// Returns `true` if the chunk in the middle certainly has no visible face, without meshing it.
    pub fn shows_nothing(&self, looks: &LookTable) -> bool {
        const SIDES: [[i64; 3]; 6] = [[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]];
        let middle = self.at([0; 3]);
        middle.is_empty(looks) || (middle.is_opaque(looks) && SIDES.iter().all(|side| self.at(*side).is_opaque(looks)))
    }

    /// The blocks of the chunk in the middle and of the layer around it.
    pub fn copy_into(&self, blocks: &mut PaddedBlocks) {
        for (place, near) in self.0.iter().enumerate() {
            let offset = offset(place);
            let [xs, ys, zs] = offset.map(overlap);
            let start = |x: usize, y: usize| {
                let [x, y, z] = [(x, offset[0]), (y, offset[1]), (zs.start, offset[2])].map(padded);
                (x * PADDED + y) * PADDED + z
            };
            let rows = xs.flat_map(|x| ys.clone().map(move |y| (x, y)));
            let uniform = match near {
                Near::Air => Some(BlockId::AIR),
                Near::Solid => Some(SOLID),
                Near::Chunk(chunk) => chunk.uniform_block(),
            };
            match (near, uniform) {
                (_, Some(block)) => rows.for_each(|(x, y)| blocks.0[start(x, y)..][..zs.len()].fill(block)),
                (Near::Chunk(chunk), None) if offset == [0; 3] => {
                    let mut own = [BlockId::AIR; CHUNK_VOLUME];
                    chunk.copy_into(&mut own);
                    for ((x, y), row) in rows.zip(own.chunks_exact(CHUNK_SIZE)) {
                        blocks.0[start(x, y)..][..CHUNK_SIZE].copy_from_slice(row);
                    }
                }
                (Near::Chunk(chunk), None) => {
                    for (x, y) in rows {
                        let row = &mut blocks.0[start(x, y)..][..zs.len()];
                        row.iter_mut().zip(zs.clone()).for_each(|(cell, z)| *cell = chunk.block([x, y, z]));
                    }
                }
                (Near::Air | Near::Solid, None) => {}
            }
        }
    }
}

fn offset(place: usize) -> [i64; 3] {
    [place / 9, place / 3 % 3, place % 3].map(|axis| axis as i64 - 1)
}

/// The blocks of a chunk at this offset that are in or next to the chunk in the middle, along one axis.
fn overlap(offset: i64) -> Range<usize> {
    match offset {
        ..0 => CHUNK_SIZE - 1..CHUNK_SIZE,
        0 => 0..CHUNK_SIZE,
        1.. => 0..1,
    }
}

fn padded((block, offset): (usize, i64)) -> usize {
    (block as i64 + offset * CHUNK_SIZE as i64 + 1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_comes_from_its_own_place() {
        // 27 chunks, each of two blocks that identify it; a checkerboard tells neighboring cells apart.
        let block_at = |x: i64, y: i64, z: i64| {
            let chunk = (x >> 4) * 9 + (y >> 4) * 3 + (z >> 4) + 13;
            BlockId::new((1 + chunk * 2 + ((x + y + z) & 1)) as u32)
        };
        let neighborhood = Neighborhood::from_fn(|[dx, dy, dz]| {
            let at = |base: i64, within: usize| base * 16 + within as i64;
            Near::Chunk(Arc::new(Chunk::from_fn(|[x, y, z]| block_at(at(dx, x), at(dy, y), at(dz, z)))))
        });
        let mut blocks = PaddedBlocks::air();
        neighborhood.copy_into(&mut blocks);
        for x in -1..=16 {
            for y in -1..=16 {
                for z in -1..=16 {
                    let expected = block_at(i64::from(x), i64::from(y), i64::from(z));
                    assert_eq!(blocks.block([x, y, z]), expected, "{x} {y} {z}");
                }
            }
        }
    }

    #[test]
    fn uniform_surroundings_fill_their_part() {
        let stone = Arc::new(Chunk::uniform(BlockId::new(7)));
        let neighborhood = Neighborhood::from_fn(|[x, y, _]| match (x, y) {
            (1, 0) => Near::Chunk(stone.clone()),
            (_, -1) => Near::Solid,
            _ => Near::Air,
        });
        let mut blocks = PaddedBlocks::air();
        blocks.0.fill(BlockId::new(9));
        neighborhood.copy_into(&mut blocks);
        assert_eq!(
            [[16, 5, 5], [15, 5, 5], [3, -1, 16]].map(|place| blocks.block(place)),
            [BlockId::new(7), BlockId::AIR, SOLID]
        );
        assert!(!blocks.0.contains(&BlockId::new(9)));
    }
}
