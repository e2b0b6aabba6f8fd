//! [`Quad`]: a rectangle of a mesh in 16 bytes, as the vertex shader `chunk.wgsl` reads it.
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0 | 0..27 | the lowest corner along x, y and z, in sixteenths of a block from the mesh's origin: 3 x 9 bits |
//! | 0 | 27..30 | the [side](Side) |
//! | 1 | 0..18 | width and height in sixteenths: 2 x 9 bits |
//! | 1 | 18..26 | the openness of the four corners: 4 x 2 bits |
//! | 2 | 0..16 | the number of the face's look |
//! | 2 | 16..32 | how far each corner is lowered, in sixteenths: 4 x 4 bits |
//! | 3 | 0..32 | the [light](CornerLight) of the four corners: 4 x 8 bits |
//! | 0 | 30..32 | the chunk's [salt](salt), with which textures turn differently in each chunk: its lower 2 bits |
//! | 1 | 26..32 | its higher 6 bits |
//!
//! The corners are in this order: lowest, along the width, along the height, both. Width and height are along z and y for faces
//! to the west and east, x and z for those down and up, x and y for those to the north and south.

use bevy_terrane::light::Light;
use bevy_terrane::space::ChunkPos;

/// A packed quad.
pub(super) type Quad = [u32; 4];

/// The sides of a quad: the six faces of a block, in the order west, down, north, east, up, south, and the two diagonals of plants.
pub(super) type Side = u8;

/// The light of a corner or a cell: the level of the sky in the lower four bits, and that of blocks in the higher four.
pub(super) type CornerLight = u8;

/// The light under the open sky.
pub(super) const OPEN_SKY: CornerLight = corner_light(Light::OPEN_SKY);

pub(super) const fn corner_light([sky, block]: [u8; 2]) -> CornerLight {
    sky & 15 | block << 4
}

/// The quad with the same light at all corners.
pub(super) const fn evenly_lit([corner, size, look, _]: Quad, light: CornerLight) -> Quad {
    [corner, size, look, u32::from_le_bytes([light; 4])]
}

pub(super) const UP: Side = 4;
/// From the north-western to the south-eastern edge.
pub(super) const DIAGONAL: Side = 6;
/// From the south-western to the north-eastern edge.
pub(super) const OTHER_DIAGONAL: Side = 7;

/// The axes of a side's width and height: 0 for x, 1 for y, 2 for z.
pub(super) const fn axes(side: Side) -> [usize; 2] {
    match side {
        0 | 3 => [2, 1],
        1 | 4 => [0, 2],
        _ => [0, 1],
    }
}

/// The axis along the normal of one of the six faces.
pub(super) const fn normal_axis(side: Side) -> usize {
    (side % 3) as usize
}

/// One of the six faces, seen from the other block.
pub(super) const fn opposite(side: Side) -> Side {
    (side + 3) % 6
}

/// A hash of a chunk's position.
pub(super) fn salt(chunk: ChunkPos) -> u8 {
    let mix = |sum: u64, axis: i64| {
        let mixed = (sum ^ axis as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ mixed >> 29
    };
    ([chunk.x, chunk.y, chunk.z].into_iter().fold(0, mix).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 56) as u8
}

/// The quad with a salt, which [`Rectangle::pack`] leaves at 0.
pub(super) fn salted([corner, size, look, light]: Quad, salt: u8) -> Quad {
    let salt = u32::from(salt);
    [corner | salt << 30, size | salt >> 2 << 26, look, light]
}

/// A quad before it is packed. Lengths are in sixteenths of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rectangle {
    pub corner: [u16; 3],
    pub side: Side,
    pub size: [u16; 2],
    /// 0 between two walls, 3 in the open.
    pub openness: [u8; 4],
    pub look: u16,
    pub drops: [u8; 4],
    pub light: [CornerLight; 4],
}

impl Rectangle {
    /// The corner opposite to the lowest one.
    pub fn far_corner(&self) -> [u16; 3] {
        let mut corner = self.corner;
        let [along_width, along_height] = axes(self.side);
        corner[along_width] += self.size[0];
        corner[along_height] += self.size[1];
        if self.side >= DIAGONAL {
            corner[2] += self.size[0];
        }
        corner
    }

    /// Returns `true` if a quad in the same plane lies within this one.
    pub fn covers(&self, other: &Self) -> bool {
        let (far, other_far) = (self.far_corner(), other.far_corner());
        axes(self.side).iter().all(|axis| self.corner[*axis] <= other.corner[*axis] && other_far[*axis] <= far[*axis])
    }

    /// The lowest and highest coordinates along the axes, with the drops of the corners.
    pub fn bounds(&self) -> [[u16; 3]; 2] {
        let (mut low, mut high) = (self.corner, self.far_corner());
        let height = if axes(self.side)[1] == 1 { self.size[1] } else { 0 };
        let heights = [0, 0, height, height].into_iter().zip(self.drops);
        let heights = heights.map(|(height, drop)| self.corner[1] + height - u16::from(drop));
        (low[1], high[1]) = heights.fold((u16::MAX, 0), |(low, high), height| (low.min(height), high.max(height)));
        [low, high]
    }

    /// Returns `true` for an upright or level rectangle along the axes, and `false` for diagonals, and for faces of liquids whose
    /// corners are of different heights.
    pub fn is_straight(&self) -> bool {
        let is_even = self.drops == [self.drops[0]; 4] && (normal_axis(self.side) == 1 || self.drops[0] == 0);
        self.side < DIAGONAL && is_even
    }

    /// The two parts of a [straight](Self::is_straight) quad before and after a plane that crosses it. Light and openness of the new
    /// corners are between those of the old ones.
    pub fn cut(&self, axis: usize, at: u16) -> [Self; 2] {
        let along = usize::from(axes(self.side)[1] == axis);
        let (whole, first) = (u32::from(self.size[along]), u32::from(at - self.corner[axis]));
        let between = |low: u8, high: u8| {
            ((u32::from(low) * (whole - first) + u32::from(high) * first + whole / 2) / whole) as u8
        };
        let light = |low: u8, high: u8| between(low & 15, high & 15) | between(low >> 4, high >> 4) << 4;
        let [mut before, mut after] = [*self; 2];
        (before.size[along], after.size[along]) = (first as u16, (whole - first) as u16);
        after.corner[axis] = at;
        let step = 1 << along;
        for low in [0, 3 - step] {
            let high = low + step;
            let openness = between(self.openness[low], self.openness[high]);
            let light = light(self.light[low], self.light[high]);
            (before.openness[high], before.light[high]) = (openness, light);
            (after.openness[low], after.light[low]) = (openness, light);
        }
        [before, after]
    }

    pub fn pack(&self) -> Quad {
        let [x, y, z] = self.corner.map(u32::from);
        let [width, height] = self.size.map(u32::from);
        let bits = |parts: [u8; 4], each: u32| {
            let part = |sum, (place, part): (u32, &u8)| sum | u32::from(*part) << (place * each);
            (0..).zip(&parts).fold(0, part)
        };
        [
            x | y << 9 | z << 18 | u32::from(self.side) << 27,
            width | height << 9 | bits(self.openness, 2) << 18,
            u32::from(self.look) | bits(self.drops, 4) << 16,
            u32::from_le_bytes(self.light),
        ]
    }

    pub fn unpack([corner, size, look, light]: Quad) -> Self {
        let part = |word: u32, from: u32, bits: u32| (word >> from & ((1 << bits) - 1)) as u16;
        Self {
            corner: [0, 9, 18].map(|from| part(corner, from, 9)),
            side: part(corner, 27, 3) as u8,
            size: [0, 9].map(|from| part(size, from, 9)),
            openness: [18, 20, 22, 24].map(|from| part(size, from, 2) as u8),
            look: part(look, 0, 16),
            drops: [16, 20, 24, 28].map(|from| part(look, from, 4) as u8),
            light: light.to_le_bytes(),
        }
    }
}

/// The number of passes, one for each [`RenderMode`](super::RenderMode). Each has an entity of its own.
pub(super) const PASSES: usize = 3;
