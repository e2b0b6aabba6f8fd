//! [`ShapeBox`]: an axis-aligned part of a block.

use crate::space::{Face, FaceSet, Turn};
use std::array;

/// The length of a block's edges, in sixteenths of a block.
const EDGE: u8 = 16;

/// A part of a block between two corners, in sixteenths of a block from the block's lowest corner: 0 to 16 on each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeBox {
    /// The lowest corner.
    pub min: [u8; 3],
    /// The highest corner.
    pub max: [u8; 3],
}

impl ShapeBox {
    /// The whole block.
    pub const BLOCK: Self = Self::new([0; 3], [EDGE; 3]);

    /// The box between these corners.
    pub const fn new(min: [u8; 3], max: [u8; 3]) -> Self {
        Self { min, max }
    }

    /// Returns `true` if the box has a volume and does not reach beyond the block.
    pub(super) fn is_valid(self) -> bool {
        (0..3).all(|axis| self.min[axis] < self.max[axis] && self.max[axis] <= EDGE)
    }

    pub(super) fn turned(self, turn: Turn) -> Self {
        const MIDDLE: i128 = EDGE as i128 / 2;
        self.mapped(|[x, y, z]| {
            let turned = turn.vector(i128::from(x) - MIDDLE, i128::from(z) - MIDDLE);
            let [x, z] = turned.map(|along| (along + MIDDLE) as u8);
            [x, y, z]
        })
    }

    pub(super) fn upside_down(self) -> Self {
        self.mapped(|[x, y, z]| [x, EDGE.saturating_sub(y), z])
    }

    fn mapped(self, corner: impl Fn([u8; 3]) -> [u8; 3]) -> Self {
        let (one, other) = (corner(self.min), corner(self.max));
        Self {
            min: array::from_fn(|axis| one[axis].min(other[axis])),
            max: array::from_fn(|axis| one[axis].max(other[axis])),
        }
    }

    /// The box as bodies see it, if they collide with it up to this height.
    pub(crate) fn raised(mut self, collision_height: u8) -> Self {
        self.max[1] = self.max[1].max(collision_height);
        self
    }

    pub(super) fn touches(self, face: Face) -> bool {
        let axis = face.axis();
        if face.is_positive() { self.max[axis] == EDGE } else { self.min[axis] == 0 }
    }

    /// The sixteenths that the box takes along an axis, a bit for each.
    fn span(self, axis: usize) -> u16 {
        let below = |end: u8| (1_u32 << end.min(EDGE)) - 1;
        (below(self.max[axis]) & !below(self.min[axis])) as u16
    }
}

/// The faces of the block that the boxes cover wholly, each alone or several together.
pub(super) fn covered_faces(boxes: &[ShapeBox]) -> FaceSet {
    Face::ALL.into_iter().filter(|face| is_covered(boxes, *face)).collect()
}

fn is_covered(boxes: &[ShapeBox], face: Face) -> bool {
    let [across, along] = [1, 2].map(|other| (face.axis() + other) % 3);
    let mut rows = [0_u16; EDGE as usize];
    for part in boxes.iter().filter(|part| part.touches(face)) {
        let (taken, row) = (part.span(across), part.span(along));
        (0..).zip(&mut rows).filter(|(index, _)| taken >> index & 1 != 0).for_each(|(_, cells)| *cells |= row);
    }
    rows == [u16::MAX; EDGE as usize]
}
