//! [`Form`]: the quads of a block's shape.

use super::{LookQuad, QuadSide};
use crate::quads::{DIAGONAL, OPEN_SKY, OTHER_DIAGONAL, Rectangle, Side, axes, normal_axis};
use bevy_terrane::block::{BlockShape, ShapeBox};
use bevy_terrane::space::FaceSet;
use std::sync::Arc;

/// The quads of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// No quads.
    Nothing,
    /// A whole cube, which the mesher joins with others.
    Cube,
    /// These quads.
    Quads(Arc<[FormQuad]>),
    /// The quads for each set of joined sides: west 1, north 2, east 4, south 8.
    Joined(Arc<[Vec<FormQuad>; 16]>),
    /// A liquid of this level, 1 to 8.
    Liquid(u8),
}

/// A quad of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormQuad {
    /// Its place in the block. The look is that of the block's face at its side.
    pub rectangle: Rectangle,
    /// `true` if it lies on the border of the block, so that the block beside it may hide it.
    pub on_border: bool,
}

impl Form {
    /// The form of a shape. `look` returns the number of the look of each of the six faces.
    pub fn of_shape(shape: &BlockShape, look: impl Fn(Side) -> u16) -> Self {
        match shape {
            BlockShape::Empty => Self::Nothing,
            BlockShape::Cube => Self::Cube,
            BlockShape::Liquid { level, .. } => Self::Liquid((*level).clamp(1, 8)),
            BlockShape::Cross => {
                let diagonal =
                    |side| FormQuad { rectangle: rectangle(side, [0; 3], [16, 16], look(2)), on_border: false };
                Self::Quads([DIAGONAL, OTHER_DIAGONAL].map(diagonal).into())
            }
            BlockShape::Boxes { .. } => Self::Quads(quads(shape, FaceSet::NONE, &look).into()),
            BlockShape::Joined { .. } => {
                Self::Joined(Arc::new(std::array::from_fn(|joined| quads(shape, joined_sides(joined), &look))))
            }
        }
    }

    /// The form of quads that a look has in place of those of the shape.
    pub fn of_quads(quads: &[LookQuad], mut look: impl FnMut(&LookQuad, Side) -> u16) -> Self {
        let quad = |quad: &LookQuad| {
            let side = match quad.side {
                QuadSide::West => 0,
                QuadSide::Bottom => 1,
                QuadSide::North => 2,
                QuadSide::East => 3,
                QuadSide::Top => 4,
                QuadSide::South => 5,
                QuadSide::Diagonal => DIAGONAL,
                QuadSide::OtherDiagonal => OTHER_DIAGONAL,
            };
            let size = axes(side).map(|axis| u16::from(quad.to[axis] - quad.from[axis]));
            let rectangle = rectangle(side, quad.from, size, look(quad, if side < 6 { side } else { 2 }));
            FormQuad { rectangle, on_border: is_on_border(&rectangle) }
        };
        Self::Quads(quads.iter().map(quad).collect())
    }
}

/// The faces of the set with this number: west 1, north 2, east 4, south 8.
fn joined_sides(number: usize) -> FaceSet {
    use bevy_terrane::space::Face::{East, North, South, West};
    let joined = [West, North, East, South].into_iter().enumerate().filter(|(bit, _)| number >> bit & 1 == 1);
    joined.map(|(_, face)| face).collect()
}

/// The visible faces of the shape's boxes.
fn quads(shape: &BlockShape, joined: FaceSet, look: &impl Fn(Side) -> u16) -> Vec<FormQuad> {
    let boxes: Vec<ShapeBox> = shape.boxes(joined).collect();
    let mut quads = Vec::new();
    for (number, part) in boxes.iter().enumerate() {
        for side in 0..6 {
            let axis = normal_axis(side);
            let is_high = side >= 3;
            let plane = if is_high { part.max[axis] } else { part.min[axis] };
            let mut corner = part.min;
            corner[axis] = plane;
            // Another box that touches the whole face hides it. Of two equal faces that look the same way, the first is drawn.
            let is_hidden = boxes.iter().enumerate().any(|(other_number, other)| {
                let covers = axes(side)
                    .iter()
                    .all(|axis| other.min[*axis] <= part.min[*axis] && part.max[*axis] <= other.max[*axis]);
                let (near, far) =
                    if is_high { (other.min[axis], other.max[axis]) } else { (other.max[axis], other.min[axis]) };
                let goes_beyond = if is_high { near <= plane && plane < far } else { far < plane && plane <= near };
                covers && number != other_number && (goes_beyond || far == plane && other_number < number)
            });
            if !is_hidden {
                let size = axes(side).map(|axis| u16::from(part.max[axis] - part.min[axis]));
                let rectangle = rectangle(side, corner, size, look(side));
                quads.push(FormQuad { rectangle, on_border: is_on_border(&rectangle) });
            }
        }
    }
    quads
}

fn rectangle(side: Side, corner: [u8; 3], size: [u16; 2], look: u16) -> Rectangle {
    Rectangle { corner: corner.map(u16::from), side, size, openness: [3; 4], look, drops: [0; 4], light: [OPEN_SKY; 4] }
}

fn is_on_border(rectangle: &Rectangle) -> bool {
    let Rectangle { side, corner, .. } = *rectangle;
    side < 6 && corner[normal_axis(side)] == if side < 3 { 0 } else { 16 }
}

/// The height of the surface of a liquid, in sixteenths.
pub(crate) const fn liquid_height(level: u8) -> u8 {
    // Even a full block ends a little below the blocks around it.
    (level * 14 + 4) / 8
}
