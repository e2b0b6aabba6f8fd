//! A chunk with its surroundings, as input of the mesher.

use super::looks::BlockLooks;
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME};
use block_mesh::ndshape::{ConstShape, ConstShape3u32};
use block_mesh::{MergeVoxel, Voxel, VoxelVisibility};
use std::ops::Range;
use std::sync::Arc;

/// A chunk with one layer of its surroundings on every side.
pub(super) type PaddedShape = ConstShape3u32<18, 18, 18>;

/// The cells of a [`PaddedShape`].
pub(super) const PADDED_VOLUME: usize = PaddedShape::USIZE;

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
    fn is_empty(&self, looks: &BlockLooks) -> bool {
        match self {
            Self::Air => true,
            Self::Solid => false,
            Self::Chunk(chunk) => !chunk.palette().iter().any(|block| looks.is_opaque(*block)),
        }
    }

    /// Returns `true` if it hides everything behind it, and `false` if that is not known at once.
    fn is_opaque(&self, looks: &BlockLooks) -> bool {
        match self {
            Self::Air => false,
            Self::Solid => true,
            Self::Chunk(chunk) => chunk.palette().iter().all(|block| looks.is_opaque(*block)),
        }
    }
}

/// A chunk and the 26 around it at one moment.
pub(super) struct Neighborhood([Near; 27]);

/// A cell that is not drawn and hides nothing.
const EMPTY: VoxelCell = VoxelCell(0);

/// A cell that hides the blocks behind it. It occurs only in the padding, so it is never drawn.
const SOLID: VoxelCell = VoxelCell(u32::MAX);

/// A block as the mesher sees it: the number of an opaque block plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VoxelCell(u32);

impl VoxelCell {
    fn new(block: BlockId, looks: &BlockLooks) -> Self {
        if looks.is_opaque(block) { Self(block.index().saturating_add(1)) } else { EMPTY }
    }

    pub fn is_opaque(self) -> bool {
        self != EMPTY
    }

    pub fn block(self) -> BlockId {
        BlockId::new(self.0.saturating_sub(1))
    }
}

impl Voxel for VoxelCell {
    fn get_visibility(&self) -> VoxelVisibility {
        if self.is_opaque() { VoxelVisibility::Opaque } else { VoxelVisibility::Empty }
    }
}

impl MergeVoxel for VoxelCell {
    type MergeValue = u32;

    fn merge_value(&self) -> u32 {
        self.0
    }
}

impl Neighborhood {
    /// Calls `near` for each offset of -1..=1 on each axis.
    pub fn from_fn(mut near: impl FnMut([i64; 3]) -> Near) -> Self {
        Self(std::array::from_fn(|place| near(offset(place))))
    }

    fn at(&self, [x, y, z]: [i64; 3]) -> &Near {
        &self.0[((x + 1) * 9 + (y + 1) * 3 + z + 1) as usize]
    }

    /// Returns `true` if the chunk in the middle certainly has no visible face, without meshing it.
    pub fn shows_nothing(&self, looks: &BlockLooks) -> bool {
        const SIDES: [[i64; 3]; 6] = [[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]];
        let middle = self.at([0; 3]);
        middle.is_empty(looks) || (middle.is_opaque(looks) && SIDES.iter().all(|side| self.at(*side).is_opaque(looks)))
    }

    /// The cells of the chunk in the middle and of the layer around it, in the order of [`PaddedShape`].
    pub fn cells(&self, looks: &BlockLooks) -> Box<[VoxelCell; PADDED_VOLUME]> {
        let mut cells = Box::new([EMPTY; PADDED_VOLUME]);
        for (place, near) in self.0.iter().enumerate() {
            let offset = offset(place);
            let [x, y, z] = offset.map(overlap);
            let mut fill = |cell: &mut dyn FnMut([usize; 3]) -> VoxelCell| {
                for x in x.clone() {
                    for y in y.clone() {
                        for z in z.clone() {
                            let padded = [(x, offset[0]), (y, offset[1]), (z, offset[2])].map(padded);
                            cells[PaddedShape::linearize(padded) as usize] = cell([x, y, z]);
                        }
                    }
                }
            };
            match near {
                Near::Air => {}
                Near::Solid => fill(&mut |_| SOLID),
                Near::Chunk(chunk) if offset == [0; 3] => {
                    let mut blocks = [BlockId::AIR; CHUNK_VOLUME];
                    chunk.copy_into(&mut blocks);
                    let mut blocks = blocks.iter();
                    // The loops above follow the order of a chunk's blocks.
                    fill(&mut |_| blocks.next().map_or(EMPTY, |block| VoxelCell::new(*block, looks)));
                }
                Near::Chunk(chunk) => fill(&mut |position| VoxelCell::new(chunk.block(position), looks)),
            }
        }
        cells
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

fn padded((block, offset): (usize, i64)) -> u32 {
    (block as i64 + offset * CHUNK_SIZE as i64 + 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockRegistry;

    #[test]
    fn every_cell_comes_from_its_own_place() {
        // 27 chunks, each of two blocks that identify it; a checkerboard tells neighboring cells apart.
        let blocks = {
            let mut blocks = BlockRegistry::new();
            for index in 0..54 {
                blocks.register(crate::block::BlockType::new(format!("test:{index}"))).unwrap();
            }
            blocks
        };
        let looks = BlockLooks::new(&blocks);
        let block_at = |x: i64, y: i64, z: i64| {
            let chunk = (x >> 4) * 9 + (y >> 4) * 3 + (z >> 4) + 13;
            BlockId::new((1 + chunk * 2 + ((x + y + z) & 1)) as u32)
        };
        let neighborhood = Neighborhood::from_fn(|[dx, dy, dz]| {
            let at = |base: i64, within: usize| base * 16 + within as i64;
            Near::Chunk(Arc::new(Chunk::from_fn(|[x, y, z]| block_at(at(dx, x), at(dy, y), at(dz, z)))))
        });
        let cells = neighborhood.cells(&looks);
        for x in 0..18u32 {
            for y in 0..18u32 {
                for z in 0..18u32 {
                    let expected = block_at(i64::from(x) - 1, i64::from(y) - 1, i64::from(z) - 1);
                    assert_eq!(cells[PaddedShape::linearize([x, y, z]) as usize].block(), expected, "{x} {y} {z}");
                }
            }
        }
    }
}
