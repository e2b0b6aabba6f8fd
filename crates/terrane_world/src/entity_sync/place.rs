//! [`EntityPlace`]: where an entity is, and its short form.

use crate::bytes::{ReadError, Reader};
use crate::space::{BlockPos, ChunkPos};
use std::f32::consts::{PI, TAU};

/// Where an entity is, and where it looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EntityPlace {
    /// The block.
    pub block: BlockPos,
    /// The place in the block, from 0 to 1.
    pub offset: [f32; 3],
    /// The turn to the left and up, in radians; `None` for an entity that does not look anywhere.
    pub look: Option<[f32; 2]>,
}

/// The number of parts of a block.
const PARTS: f32 = 256.0;
/// The bits of a coordinate: 16 blocks of 256 parts.
const BITS: u32 = 12;
/// The bytes of a coordinate each, and of its age and whether there is a look.
const BYTES: usize = 5;
/// The largest age, in units.
pub(super) const MAX_AGE: u8 = 7;

/// A place in its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShortPlace {
    parts: [u16; 3],
    look: Option<[u8; 2]>,
}

impl EntityPlace {
    /// The cell.
    pub fn cell(&self) -> ChunkPos {
        self.block.chunk()
    }

    pub(super) fn short(&self) -> ShortPlace {
        let within = self.block.in_chunk();
        let part = |axis: usize| {
            let offset = self.offset[axis].clamp(0.0, 1.0);
            ((within[axis] as f32 + offset) * PARTS).min(f32::from((1_u16 << BITS) - 1)) as u16
        };
        let turn = |angle: f32| (angle.rem_euclid(TAU) / TAU * 256.0) as u8;
        let rise = |angle: f32| ((angle.clamp(-PI / 2.0, PI / 2.0) / PI + 0.5) * 255.0).round() as u8;
        let look = self.look.map(|[left, up]| [turn(left), rise(up)]);
        ShortPlace { parts: [part(0), part(1), part(2)], look }
    }
}

impl ShortPlace {
    /// Appends the place, with an age of at most [`MAX_AGE`] units.
    pub fn put(self, age: u8, into: &mut Vec<u8>) {
        let [x, y, z] = self.parts.map(u64::from);
        let extra = u64::from(age.min(MAX_AGE)) << 1 | u64::from(self.look.is_some());
        let packed = x | y << BITS | z << (2 * BITS) | extra << (3 * BITS);
        into.extend_from_slice(&packed.to_le_bytes()[..BYTES]);
        into.extend(self.look.into_iter().flatten());
    }

    /// Reads a place and its age.
    pub fn read(from: &mut Reader) -> Result<(Self, u8), ReadError> {
        let mut packed = [0; 8];
        packed[..BYTES].copy_from_slice(from.slice(BYTES)?);
        let packed = u64::from_le_bytes(packed);
        let part = |axis: u32| (packed >> (axis * BITS)) as u16 & ((1 << BITS) - 1);
        let extra = (packed >> (3 * BITS)) as u8;
        let look = if extra & 1 == 1 { Some([from.byte()?, from.byte()?]) } else { None };
        Ok((Self { parts: [part(0), part(1), part(2)], look }, extra >> 1))
    }

    /// The place in this cell.
    pub fn in_cell(self, cell: ChunkPos) -> EntityPlace {
        let parts = PARTS as u16;
        let within = self.parts.map(|part| usize::from(part / parts));
        let offset = self.parts.map(|part| (f32::from(part % parts) + 0.5) / PARTS);
        let look =
            self.look.map(|[left, up]| [(f32::from(left) + 0.5) / 256.0 * TAU, (f32::from(up) / 255.0 - 0.5) * PI]);
        EntityPlace { block: cell.block(within), offset, look }
    }
}
