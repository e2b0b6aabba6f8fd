//! A chunk with its surroundings, as input of meshers.

use super::looks::LookTable;
use super::quads::{CornerLight, OPEN_SKY, corner_light};
use bevy_terrane::block::BlockId;
use bevy_terrane::chunk::Chunk;
use bevy_terrane::light::ChunkLight;
use bevy_terrane::space::{CHUNK_SIZE, CHUNK_VOLUME};
use std::ops::Range;
use std::sync::Arc;

/// The edge of a chunk with one layer of its surroundings on every side.
pub(super) const PADDED: usize = CHUNK_SIZE + 2;

const VOLUME: usize = PADDED * PADDED * PADDED;

/// The blocks of a chunk and one layer around it, and their light. The space below the world and ground that is not loaded are of a
/// block that no registry has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaddedBlocks {
    pub(super) ids: Box<[BlockId; VOLUME]>,
    pub(super) light: Box<[CornerLight; VOLUME]>,
}

impl PaddedBlocks {
    /// The block at a place relative to the chunk's lowest block, -1 to 16 on each axis; others wrap around.
    pub fn block(&self, place: [i32; 3]) -> BlockId {
        self.ids[Self::index(place)]
    }

    /// The levels of sky light and of block light, 0 to 15, at a place relative to the chunk's lowest block, -1 to 16 on each axis;
    /// others wrap around. Opaque blocks are dark inside. Where light is not known, the sky is open.
    pub fn light(&self, place: [i32; 3]) -> [u8; 2] {
        let light = self.light[Self::index(place)];
        [light & 15, light >> 4]
    }

    /// Air under the open sky.
    pub(super) fn air() -> Self {
        Self { ids: Box::new([BlockId::AIR; VOLUME]), light: Box::new([OPEN_SKY; VOLUME]) }
    }

    fn index(place: [i32; 3]) -> usize {
        let [x, y, z] = place.map(|axis| (axis + 1).rem_euclid(PADDED as i32) as usize);
        (x * PADDED + y) * PADDED + z
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
pub(super) struct Neighborhood {
    near: [Near; 27],
    light: [ChunkLight; 27],
}

impl Neighborhood {
    /// Calls `near` for each offset of -1..=1 on each axis. The sky is open everywhere.
    pub fn from_fn(mut near: impl FnMut([i64; 3]) -> Near) -> Self {
        let near = std::array::from_fn(|place| near(offset(place)));
        Self { near, light: [const { ChunkLight::open_sky() }; 27] }
    }

    /// The same; `None` if the chunk in the middle certainly has no visible face. Most chunks of a world have none, and
    /// are found without looking at all their surroundings.
    pub fn with_faces(near: impl Fn([i64; 3]) -> Near, looks: &LookTable) -> Option<Self> {
        const SIDES: [[i64; 3]; 6] = [[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]];
        let middle = near([0; 3]);
        let is_enclosed = || middle.is_opaque(looks) && SIDES.iter().all(|side| near(*side).is_opaque(looks));
        (!middle.is_empty(looks) && !is_enclosed()).then(|| Self::from_fn(near))
    }

    /// Calls `light` for each offset of -1..=1 on each axis.
    pub fn with_light(self, mut light: impl FnMut([i64; 3]) -> ChunkLight) -> Self {
        Self { light: std::array::from_fn(|place| light(offset(place))), ..self }
    }

    /// The blocks of the chunk in the middle and of the layer around it, and their light. Returns the light if it is the same
    /// everywhere.
    pub fn copy_into(&self, blocks: &mut PaddedBlocks) -> Option<CornerLight> {
        self.copy_blocks(&mut blocks.ids);
        let uniform = self.uniform_light();
        match uniform {
            Some(light) => blocks.light.fill(light),
            None => self.copy_light(&mut blocks.light),
        }
        uniform
    }

    fn copy_blocks(&self, ids: &mut [BlockId; VOLUME]) {
        let mut decoded = [BlockId::AIR; CHUNK_VOLUME];
        for (place, near) in self.near.iter().enumerate() {
            let Part { xs, ys, zs } = Part::new(place);
            let is_side = xs.len() * ys.len() * zs.len() >= CHUNK_SIZE * CHUNK_SIZE;
            let uniform = match near {
                Near::Air => Some(BlockId::AIR),
                Near::Solid => Some(SOLID),
                Near::Chunk(chunk) => chunk.uniform_block(),
            };
            match (near, uniform) {
                (_, Some(block)) => for_rows(place, |_, start| ids[start..][..zs.len()].fill(block)),
                (Near::Chunk(chunk), None) if is_side => {
                    chunk.copy_into(&mut decoded);
                    let row = |[x, y]: [usize; 2]| &decoded[(x * CHUNK_SIZE + y) * CHUNK_SIZE..][..CHUNK_SIZE];
                    match zs.len() {
                        1 => for_rows(place, |at, start| ids[start] = row(at)[zs.start]),
                        _ => for_rows(place, |at, start| ids[start..][..CHUNK_SIZE].copy_from_slice(row(at))),
                    }
                }
                (Near::Chunk(chunk), None) => for_rows(place, |[x, y], start| {
                    for (cell, z) in ids[start..][..zs.len()].iter_mut().zip(zs.clone()) {
                        *cell = chunk.block([x, y, z]);
                    }
                }),
                (Near::Air | Near::Solid, None) => {}
            }
        }
    }

    fn copy_light(&self, light: &mut [CornerLight; VOLUME]) {
        for (place, near) in self.light.iter().enumerate() {
            let Part { zs, .. } = Part::new(place);
            match uniform(near) {
                Some(uniform) => for_rows(place, |_, start| light[start..][..zs.len()].fill(uniform)),
                None if zs.len() == 1 => {
                    for_rows(place, |[x, y], start| light[start] = corner_light(near.levels([x, y, zs.start])));
                }
                None => for_rows(place, |[x, y], start| {
                    let [sky, block] = [&near.sky, &near.block].map(|levels| bytes(levels.row(x, y)));
                    let row = (sky | block << 4).to_le_bytes();
                    light[start..][..zs.len()].copy_from_slice(&row[zs.clone()]);
                }),
            }
        }
    }

    /// The light, if it was found to be the same everywhere.
    fn uniform_light(&self) -> Option<CornerLight> {
        let first = uniform(&self.light[0])?;
        self.light.iter().all(|near| uniform(near) == Some(first)).then_some(first)
    }
}

/// The light of all cells, if it was found to be the same.
fn uniform(light: &ChunkLight) -> Option<CornerLight> {
    Some(corner_light([light.sky.uniform_level()?, light.block.uniform_level()?]))
}

/// The part of one of the 27 places that is copied, in blocks of its chunk.
struct Part {
    xs: Range<usize>,
    ys: Range<usize>,
    zs: Range<usize>,
}

impl Part {
    fn new(place: usize) -> Self {
        let [xs, ys, zs] = offset(place).map(overlap);
        Self { xs, ys, zs }
    }
}

/// Calls `row` for each row along z of one of the 27 places, with its x and y in its chunk and the index of the first padded cell.
#[inline]
fn for_rows(place: usize, mut row: impl FnMut([usize; 2], usize)) {
    let (offset, Part { xs, ys, zs }) = (offset(place), Part::new(place));
    let first = padded((zs.start, offset[2]));
    for x in xs {
        let padded_x = padded((x, offset[0])) * PADDED;
        for y in ys.clone() {
            row([x, y], (padded_x + padded((y, offset[1]))) * PADDED + first);
        }
    }
}

/// Moves the 16 groups of four bits apart, into a byte each.
#[inline]
fn bytes(nibbles: u64) -> u128 {
    let half = |bits: u64| {
        let bits = (bits | bits << 16) & 0x0000_FFFF_0000_FFFF;
        let bits = (bits | bits << 8) & 0x00FF_00FF_00FF_00FF;
        (bits | bits << 4) & 0x0F0F_0F0F_0F0F_0F0F
    };
    u128::from(half(nibbles & 0xFFFF_FFFF)) | u128::from(half(nibbles >> 32)) << 64
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
    use bevy_terrane::light::LightLevels;

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
        blocks.ids.fill(BlockId::new(9));
        neighborhood.copy_into(&mut blocks);
        assert_eq!(
            [[16, 5, 5], [15, 5, 5], [3, -1, 16]].map(|place| blocks.block(place)),
            [BlockId::new(7), BlockId::AIR, SOLID]
        );
        assert!(!blocks.ids.contains(&BlockId::new(9)));
    }
    #[test]
    fn the_light_of_every_cell_comes_from_its_own_place() {
        let random = |place: [usize; 3], salt: usize| (place.iter().fold(salt, |sum, axis| sum * 31 + axis) % 16) as u8;
        let mixed = ChunkLight {
            sky: LightLevels::from_fn(|place| random(place, 7)),
            block: LightLevels::from_fn(|place| random(place, 5)),
        };
        // Each place is mixed, bright or dark.
        let of = |place: [i64; 3]| match place.iter().sum::<i64>().rem_euclid(3) {
            0 => mixed.clone(),
            1 => ChunkLight::open_sky(),
            _ => ChunkLight::default(),
        };
        let neighborhood = Neighborhood::from_fn(|_| Near::Air).with_light(of);
        let mut blocks = PaddedBlocks::air();
        assert_eq!(neighborhood.copy_into(&mut blocks), None);
        for place in (-1..=16).flat_map(|x| (-1..=16).flat_map(move |y| (-1..=16).map(move |z| [x, y, z]))) {
            let expected = of(place.map(|axis| i64::from(axis >> 4))).levels(place.map(|axis| (axis & 15) as usize));
            assert_eq!(blocks.light(place), expected, "{place:?}");
        }
    }

    #[test]
    fn light_that_is_the_same_everywhere_is_found_and_copied() {
        let mut blocks = PaddedBlocks::air();
        let dark = Neighborhood::from_fn(|_| Near::Air).with_light(|_| ChunkLight::default());
        assert_eq!(dark.copy_into(&mut blocks), Some(0));
        assert_eq!([blocks.light([-1; 3]), blocks.light([16; 3])], [[0, 0]; 2]);
        assert_eq!(Neighborhood::from_fn(|_| Near::Air).copy_into(&mut blocks), Some(OPEN_SKY));
        assert_eq!(blocks.light([5; 3]), [15, 0]);
    }
}
