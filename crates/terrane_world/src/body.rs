//! Bodies: boxes that stand on the ground, step up, swim, climb, and never pass through a wall.
//!
//! A [`BodyMover`] moves a [`Body`] through the [shapes](crate::block::BlockShape::boxes) of solid blocks. It needs chunks and
//! a [`BodyTable`] only, so a server, a game's main world and a client that predicts its player move a body in the same way, to
//! the last bit.

mod mover;
#[cfg(test)]
mod tests;

pub use mover::BodyMover;

use crate::block::tags::CLIMBABLE;
use crate::block::{BlockId, BlockRegistry, BlockSet, BlockShape, BlockType};
use crate::liquid::is_falling;
use crate::space::BlockPos;
use mover::Stop;
use serde::{Deserialize, Serialize};

/// A box with a place and a velocity. Lengths are in blocks, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body {
    /// The block that contains the middle of the box's floor.
    pub block: BlockPos,
    /// That point in its block, 0..1 on each axis.
    pub offset: [f64; 3],
    /// The width of the box along x and z, up to [`MAX_SIZE`](Self::MAX_SIZE).
    pub width: f64,
    /// The height of the box, up to [`MAX_SIZE`](Self::MAX_SIZE).
    pub height: f64,
    /// The height of steps that the body goes up without a jump. It needs ground to step up from.
    pub step_height: f64,
    /// The velocity along each axis, in blocks per second.
    pub velocity: [f64; 3],
    /// Its contacts at the end of the last move.
    pub contact: Contact,
}

/// The contacts of a body at the end of its last move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), type_path = "bevy_terrane")]
pub struct Contact {
    /// `true` if the body stands on ground.
    pub ground: bool,
    /// `true` if a wall stopped the body, or an edge held it back.
    pub wall: bool,
    /// `true` if something above stopped the body.
    pub ceiling: bool,
    /// `true` if ground that is not loaded stopped the body. It keeps its velocity, and goes on once the ground is there.
    pub is_held: bool,
    /// `true` if the body is in blocks, and other blocks close each short straight way out of them. It stays where it is.
    pub is_stuck: bool,
    /// `true` if the body is in a block with the tag [`CLIMBABLE`].
    pub climbable: bool,
    /// The share of the body's height that is in a liquid: 0 to 1.
    pub submerged: f64,
    /// The velocity at which flowing liquid carries the body along, in blocks per second along each axis: that of the liquid, times the
    /// share of the body that is in it.
    pub drift: [f64; 3],
}

impl Body {
    /// The smallest width and height.
    pub const MIN_SIZE: f64 = 1.0 / 16.0;
    /// The largest width and height. A larger body is moved as if it had this size.
    pub const MAX_SIZE: f64 = 16.0;
    /// The longest way of one [`advance`](Self::advance), along each axis. A longer way is cut.
    pub const MAX_WAY: f64 = 256.0;
    /// The fastest fall, in blocks per second.
    pub const TERMINAL_SPEED: f64 = 78.0;

    /// A body of this width and height at rest, in the middle of the floor of `block`. It steps up 0.6 blocks.
    pub fn new(block: BlockPos, width: f64, height: f64) -> Self {
        let (velocity, contact) = ([0.0; 3], Contact::default());
        Self { block, offset: [0.5, 0.0, 0.5], width, height, step_height: 0.6, velocity, contact }
    }

    /// Lets the body fall and slide for some seconds: by gravity, in blocks per second squared, by the drag of air and liquids, and
    /// by friction on the ground. Flowing liquid carries it along.
    pub fn fall(&mut self, mover: &mut BodyMover<'_>, gravity: f64, seconds: f64) {
        let Contact { submerged, ground, drift, .. } = self.contact;
        // A body floats a little under the surface, except where the liquid carries it down.
        let weight = gravity * (1.0 - 1.1 * submerged);
        let pull = if drift[1] < 0.0 { weight.max(0.0) } else { weight };
        let friction = if ground { 8.0 } else { 0.1 } + 3.0 * submerged;
        let [x, y, z] = self.velocity;
        let fall = approached(y, drift[1], 3.0 * submerged, seconds) - pull * seconds;
        let velocity = [approached(x, drift[0], friction, seconds), fall, approached(z, drift[2], friction, seconds)];
        self.advance(mover, velocity, seconds, false);
    }

    /// Moves the body for some seconds, during which its velocity changes evenly to `velocity`. A block that it touches stops it along
    /// that axis. If it `holds_edges`, it does not leave ground on which it stands for a fall of more than a step.
    ///
    /// The body moves up to [`MAX_WAY`](Self::MAX_WAY) in one call. A velocity that is not finite counts as 0.
    pub fn advance(&mut self, mover: &mut BodyMover<'_>, velocity: [f64; 3], seconds: f64, holds_edges: bool) {
        let before = self.velocity.map(finite);
        let mut after = velocity.map(finite);
        after[1] = after[1].max(-Self::TERMINAL_SPEED);
        let way = [0, 1, 2].map(|axis| finite((before[axis] + after[axis]) / 2.0 * seconds));
        let stops = mover.shift(self, way, holds_edges);
        self.velocity = [0, 1, 2].map(|axis| match stops[axis] {
            None => after[axis],
            Some(Stop::Ground) => 0.0,
            // It does not gather speed while it waits.
            Some(Stop::Unloaded) => before[axis],
        });
    }
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

/// The value after some seconds, if the difference to `target` fades at this rate per second.
///
/// This is an implicit step, which never overshoots, and consists of operations whose results are the same on all machines. A
/// difference below 1/1024 is gone, so that bodies come to rest.
pub fn approached(value: f64, target: f64, rate: f64, seconds: f64) -> f64 {
    const LEAST: f64 = 1.0 / 1024.0;
    let share = rate * seconds / (1.0 + rate * seconds);
    let faded = value + (target - value) * share;
    if (target - faded).abs() < LEAST { target } else { faded }
}

/// The height of a block, in sixteenths.
const EDGE: u8 = 16;

/// The obstacles, liquids and ladders among the blocks of a registry, by block id. Make it once the registry is complete.
///
/// Ids that the registry has not issued are solid cubes, like the placeholders of types that the game has removed.
#[derive(Clone, Debug, Default)]
pub struct BodyTable {
    kinds: Box<[Kind]>,
    shapes: Box<[BlockShape]>,
    /// In sixteenths.
    heights: Box<[u8]>,
    /// There are obstacles that reach beyond their block.
    pub(super) has_tall: bool,
    climbable: BlockSet,
}

/// The obstacle or liquid that a block is to bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No obstacle.
    Free,
    /// A solid cube.
    Cube,
    /// A solid block with another shape, or a taller one.
    Shape,
    Liquid(Liquid),
}

/// A liquid as bodies feel it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Liquid {
    /// The height, in eighths of a block.
    pub level: u8,
    /// The speed at which it flows, in sixteenths of a block per second.
    pub current: u8,
    pub falls: bool,
}

impl BodyTable {
    /// The table of these block types.
    pub fn new(blocks: &BlockRegistry) -> Self {
        let types = || (0..blocks.len() as u32).map(|id| blocks.block(BlockId::new(id)));
        let kind = |block: &BlockType| match block.shape() {
            BlockShape::Liquid { level } => {
                Kind::Liquid(Liquid { level: *level, current: block.current(), falls: is_falling(block) })
            }
            _ if !block.is_solid() => Kind::Free,
            BlockShape::Cube if block.collision_height() <= EDGE => Kind::Cube,
            _ => Kind::Shape,
        };
        let height = |block: &BlockType| if block.is_solid() { block.collision_height() } else { 0 };
        let heights: Box<[u8]> = types().map(height).collect();
        Self {
            kinds: types().map(kind).collect(),
            shapes: types().map(|block| block.shape().clone()).collect(),
            has_tall: heights.iter().any(|height| *height > EDGE),
            heights,
            climbable: blocks.tag(CLIMBABLE).cloned().unwrap_or_default(),
        }
    }

    #[inline]
    pub(super) fn kind(&self, block: BlockId) -> Kind {
        self.kinds.get(block.index() as usize).copied().unwrap_or(Kind::Cube)
    }

    pub(super) fn shape(&self, block: BlockId) -> &BlockShape {
        self.shapes.get(block.index() as usize).unwrap_or(&BlockShape::Cube)
    }

    /// The height in sixteenths to which the boxes of a block are raised.
    #[inline]
    pub(super) fn height(&self, block: BlockId) -> u8 {
        self.heights.get(block.index() as usize).copied().unwrap_or_default()
    }

    /// Returns `true` if the block may reach beyond its cell.
    #[inline]
    pub(super) fn is_tall(&self, block: BlockId) -> bool {
        self.height(block) > EDGE
    }

    #[inline]
    pub(super) fn is_climbable(&self, block: BlockId) -> bool {
        self.climbable.contains(block)
    }
}
