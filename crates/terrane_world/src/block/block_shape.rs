//! [`BlockShape`]: the form of the blocks of a type, and [`ShapeBox`]: an axis-aligned part of a block.

#[cfg(test)]
mod tests;

use crate::space::{Face, FaceSet, Turn};
use std::sync::Arc;
use std::{array, slice};
use thiserror::Error;

/// The maximum number of boxes in a list.
const MAX_BOXES: usize = 64;

/// A little narrower than the block, like a plant.
const CROSS: ShapeBox = ShapeBox::new([2, 0, 2], [14, 16, 14]);

/// The form of the blocks of a type. It is made of boxes, in sixteenths of a block.
///
/// | question | answer |
/// |---|---|
/// | what does a ray hit, and, if the type is [solid](super::BlockType::is_solid), a body? | [`boxes`](Self::boxes), to bodies [as tall as the type says](super::BlockType::with_collision_height) |
/// | which faces hide the neighbor and stop light? | [`closed_faces`](Self::closed_faces), unless the type is transparent |
/// | which neighbors do a pane's arms reach for? | [`joins`](Self::joins) |
///
/// ```
/// use terrane_world::block::{BlockShape, ShapeBox, ShapeError};
/// use terrane_world::space::{Face, FaceSet, Turn};
///
/// let stairs = BlockShape::stairs().turned(Turn::quarters(1));
/// assert!(stairs.closed_faces().iter().eq([Face::Bottom, Face::East]));
///
/// let table = BlockShape::from_boxes([
///     ShapeBox::new([7, 0, 7], [9, 14, 9]),
///     ShapeBox::new([0, 14, 0], [16, 16, 16]),
/// ])?;
/// assert!(table.closed_faces().iter().eq([Face::Top]));
/// assert_eq!(table.boxes(FaceSet::NONE).count(), 2);
/// # Ok::<(), ShapeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BlockShape {
    /// No form, as air has none.
    Empty,
    /// The whole block.
    #[default]
    Cube,
    /// Boxes, made by [`from_boxes`](Self::from_boxes).
    #[non_exhaustive]
    Boxes {
        /// The boxes, sorted.
        boxes: Arc<[ShapeBox]>,
    },
    /// Two vertical planes that cross in the middle, like a plant.
    Cross,
    /// A post, with an arm to each side that has something to hold on to, like a fence. Made by [`joined`](Self::joined).
    #[non_exhaustive]
    Joined {
        /// The post.
        post: ShapeBox,
        /// The boxes of the northern arm, sorted. The other arms are this one, turned.
        arm: Arc<[ShapeBox]>,
    },
    /// A liquid, made by [`liquid`](Self::liquid).
    #[non_exhaustive]
    Liquid {
        /// The height in eighths of a block, 1 to 8. A source has 8.
        level: u8,
    },
}

/// The error for a shape that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// A box is empty, or reaches beyond the block.
    #[error(
        "box {index} of a shape, from {min:?} to {max:?}, must have a volume within the block: 0 to 16 on each axis",
        min = .found.min, max = .found.max
    )]
    InvalidBox {
        /// The place of the box in the list, from 0. The post of a joined shape comes before its arm.
        index: usize,
        /// The box.
        found: ShapeBox,
    },
    /// There are too many boxes.
    #[error("a shape has more than 64 boxes")]
    TooManyBoxes,
    /// A liquid cannot have this level.
    #[error("{level} is not the level of a liquid, which is 1 to 8")]
    InvalidLevel {
        /// The level.
        level: u8,
    },
}

impl BlockShape {
    /// The lower half of the block.
    pub fn slab() -> Self {
        Self::of([ShapeBox::new([0, 0, 0], [16, 8, 16])])
    }

    /// Stairs that lead up to the north: the lower half of the block, and the northern half of the upper half.
    pub fn stairs() -> Self {
        Self::of([ShapeBox::new([0, 0, 0], [16, 8, 16]), ShapeBox::new([0, 8, 0], [16, 16, 8])])
    }

    /// A thin post, 10 sixteenths high, in the middle of the block.
    pub fn torch() -> Self {
        Self::of([ShapeBox::new([7, 0, 7], [9, 10, 9])])
    }

    /// A window pane, 2 sixteenths thick.
    pub fn pane() -> Self {
        Self::Joined {
            post: ShapeBox::new([7, 0, 7], [9, 16, 9]),
            arm: Arc::new([ShapeBox::new([7, 0, 0], [9, 16, 7])]),
        }
    }

    /// A fence: a post with two rails to each side that it joins.
    pub fn fence() -> Self {
        Self::Joined {
            post: ShapeBox::new([6, 0, 6], [10, 16, 10]),
            arm: Arc::new([ShapeBox::new([7, 6, 0], [9, 9, 6]), ShapeBox::new([7, 12, 0], [9, 15, 6])]),
        }
    }

    /// A liquid that is this many eighths of a block high, 1 to 8.
    pub fn liquid(level: u8) -> Result<Self, ShapeError> {
        if (1..=8).contains(&level) { Ok(Self::Liquid { level }) } else { Err(ShapeError::InvalidLevel { level }) }
    }

    /// A shape of up to 64 boxes, which may overlap. Without boxes it is [`Empty`](Self::Empty), and with the
    /// [whole block](ShapeBox::BLOCK) among them it is [`Cube`](Self::Cube).
    pub fn from_boxes(boxes: impl IntoIterator<Item = ShapeBox>) -> Result<Self, ShapeError> {
        let boxes = checked(boxes)?;
        Ok(match boxes.is_empty() {
            true => Self::Empty,
            false if boxes.contains(&ShapeBox::BLOCK) => Self::Cube,
            false => Self::of(boxes),
        })
    }

    /// A shape with this post and arms like this one, which is given as it is to the north. Post and arm together have
    /// up to 64 boxes.
    pub fn joined(post: ShapeBox, arm: impl IntoIterator<Item = ShapeBox>) -> Result<Self, ShapeError> {
        let boxes = checked([post].into_iter().chain(arm))?;
        Ok(Self::Joined { post, arm: sorted(boxes.into_iter().skip(1)) })
    }

    fn of(boxes: impl IntoIterator<Item = ShapeBox>) -> Self {
        Self::Boxes { boxes: sorted(boxes) }
    }

    /// The shape after a turn. Cubes, crosses and liquids look the same from all sides.
    pub fn turned(&self, turn: Turn) -> Self {
        // The arms are turned copies of each other, so a quarter turn of all arms changes nothing.
        let flip = if turn.is_flipped() { Turn::FLIP_X } else { Turn::NONE };
        self.mapped(|part| part.turned(turn), |arm| arm.turned(flip))
    }

    /// The shape with top and bottom exchanged. Crosses and liquids stay as they are.
    pub fn upside_down(&self) -> Self {
        self.mapped(ShapeBox::upside_down, ShapeBox::upside_down)
    }

    fn mapped(&self, part: impl Fn(ShapeBox) -> ShapeBox, arm_part: impl Fn(ShapeBox) -> ShapeBox) -> Self {
        match self {
            Self::Boxes { boxes } => Self::of(boxes.iter().copied().map(part)),
            Self::Joined { post, arm } => {
                Self::Joined { post: part(*post), arm: sorted(arm.iter().copied().map(arm_part)) }
            }
            Self::Empty | Self::Cube | Self::Cross | Self::Liquid { .. } => self.clone(),
        }
    }

    /// Returns `true` if the shape is the whole block.
    #[inline]
    pub const fn is_cube(&self) -> bool {
        matches!(self, Self::Cube)
    }

    /// The faces of the block that the shape covers wholly: all of a cube, the bottom of a slab, none of a plant or a
    /// liquid. Arms are not counted.
    pub fn closed_faces(&self) -> FaceSet {
        match self {
            Self::Cube => FaceSet::ALL,
            Self::Boxes { boxes } => covered_faces(boxes),
            Self::Joined { post, .. } => covered_faces(slice::from_ref(post)),
            Self::Empty | Self::Cross | Self::Liquid { .. } => FaceSet::NONE,
        }
    }

    /// The boxes that a ray hits, with arms to these sides. A cross has one box around it, and a liquid has one up to its
    /// level. Bodies collide with the same boxes if the type is [solid](super::BlockType::is_solid), which plants and
    /// liquids never are. To bodies, they may [be taller](super::BlockType::with_collision_height).
    pub fn boxes(&self, joins: FaceSet) -> impl Iterator<Item = ShapeBox> {
        let (single, boxes, arm): (_, &[ShapeBox], &[ShapeBox]) = match self {
            Self::Empty => (None, &[], &[]),
            Self::Cube => (Some(ShapeBox::BLOCK), &[], &[]),
            Self::Boxes { boxes } => (None, boxes, &[]),
            Self::Cross => (Some(CROSS), &[], &[]),
            Self::Joined { post, arm } => (Some(*post), &[], arm),
            Self::Liquid { level } => (Some(ShapeBox::new([0; 3], [16, level.saturating_mul(2), 16])), &[], &[]),
        };
        let turns = (0..).map(Turn::quarters).zip(Face::SIDES).filter(move |(_, side)| joins.contains(*side));
        let arms = turns.flat_map(|(turn, _)| arm.iter().map(move |part| part.turned(turn)));
        single.into_iter().chain(boxes.iter().copied()).chain(arms)
    }

    /// The sides to which this shape has arms, by the neighbors' shapes.
    pub(crate) fn joined_sides<'a>(&self, neighbor: impl Fn(Face) -> Option<&'a Self>) -> FaceSet {
        if !matches!(self, Self::Joined { .. }) {
            return FaceSet::NONE;
        }
        let is_joined = |side: &Face| neighbor(*side).is_some_and(|neighbor| self.joins(neighbor, *side));
        Face::SIDES.into_iter().filter(is_joined).collect()
    }

    /// Returns `true` if this shape has an arm to the neighbor at this side, because the neighbor has arms too or closes
    /// the face that it touches. Only [`Joined`](Self::Joined) shapes have arms.
    pub fn joins(&self, neighbor: &Self, side: Face) -> bool {
        let reaches = matches!(self, Self::Joined { .. }) && Face::SIDES.contains(&side);
        reaches && (matches!(neighbor, Self::Joined { .. }) || neighbor.closed_faces().contains(side.opposite()))
    }
}

fn checked(boxes: impl IntoIterator<Item = ShapeBox>) -> Result<Vec<ShapeBox>, ShapeError> {
    let boxes: Vec<_> = boxes.into_iter().take(MAX_BOXES + 1).collect();
    if let Some((index, found)) = (0..).zip(&boxes).find(|(_, found)| !found.is_valid()) {
        return Err(ShapeError::InvalidBox { index, found: *found });
    }
    if boxes.len() > MAX_BOXES { Err(ShapeError::TooManyBoxes) } else { Ok(boxes) }
}

/// Shapes with the same boxes are equal, in whatever order the boxes were given.
fn sorted(boxes: impl IntoIterator<Item = ShapeBox>) -> Arc<[ShapeBox]> {
    let mut boxes: Vec<_> = boxes.into_iter().collect();
    boxes.sort_unstable();
    boxes.dedup();
    boxes.into()
}

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
