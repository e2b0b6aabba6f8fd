//! [`WalkTable`]: what blocks mean to a walker.

use super::walker::Walker;
use super::{LAYERS, PATH_REACH};
use crate::block::tags::CLIMBABLE;
use crate::block::{BlockId, BlockRegistry, BlockSet, BlockShape, BlockType, ShapeBox};
use crate::space::{Face, FaceSet};

/// The meaning of a registry's block types to a walker: a dense table by block id, made once the registry is complete.
///
/// Ids that the registry has not issued are closed to walkers.
#[derive(Clone, Debug)]
pub struct WalkTable {
    pub(super) size: WalkerSize,
    blocks: Box<[Cell]>,
}

/// The numbers of a walker: in sixteenths, but for its width.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkerSize {
    /// In cells.
    pub width: i32,
    pub height: i32,
    pub step: i32,
    pub jump: i32,
    pub fall: i32,
    pub swims: bool,
}

/// The meaning of one cell to a walker. Layers are bits, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// The layers in which there is no room for the walker.
    pub body: u16,
    /// The layers on which the walker can stand.
    pub support: u16,
    /// The height of the half that a walker enters first on its way to each of [`Face::SIDES`].
    pub near: [u8; 4],
    /// The factor of the cost, in sixteenths.
    pub cost: u16,
    pub hold: Hold,
}

/// The hold of a walker that stands on no ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hold {
    None,
    Ladder,
    Liquid,
}

impl Cell {
    const FREE: Self = Self { body: 0, support: 0, near: [0; 4], cost: 16, hold: Hold::None };
    /// Nothing enters and nothing stands on it.
    pub const CLOSED: Self = Self { body: u16::MAX, ..Self::FREE };

    /// Both in one cell, or in two cells at the same height.
    pub fn with(self, other: Self) -> Self {
        Self {
            body: self.body | other.body,
            support: self.support | other.support,
            near: std::array::from_fn(|side| self.near[side].max(other.near[side])),
            cost: self.cost.max(other.cost),
            hold: self.hold.max(other.hold),
        }
    }

    fn of(block: &BlockType, factor: f32, walker: &Walker) -> Self {
        let is_liquid = matches!(block.shape(), BlockShape::Liquid { .. });
        let factor = factor * if is_liquid { walker.swim.unwrap_or(f32::INFINITY) } else { 1.0 };
        if factor == f32::INFINITY {
            return Self::CLOSED;
        }
        let cell = Self { cost: (factor * 16.0).round().max(16.0) as u16, ..Self::FREE };
        if is_liquid {
            return Self { hold: Hold::Liquid, ..cell };
        }
        if walker.climb && block.tags().any(|tag| tag == CLIMBABLE) {
            return Self { hold: Hold::Ladder, ..cell };
        }
        if !block.is_solid() {
            return cell;
        }
        // Arms are counted to all sides: which ones there are makes no difference to a cell as a whole.
        block.shape().boxes(FaceSet::ALL).fold(cell, |cell, part| {
            let body = cell.body | (!0_u32 << part.min[1] & !(!0 << part.max[1])) as u16;
            let near = std::array::from_fn(|side| {
                let is_near = is_entered_first(part, Face::SIDES[side]);
                if is_near { cell.near[side].max(part.max[1]) } else { cell.near[side] }
            });
            Self { body, support: body, near, ..cell }
        })
    }
}

/// Returns `true` if the box is part of the half that is entered first on the way to a side.
fn is_entered_first(part: ShapeBox, to: Face) -> bool {
    if to.is_positive() { part.min[to.axis()] < 8 } else { part.max[to.axis()] > 8 }
}

impl WalkTable {
    /// The table of these block types for a walker.
    pub fn new(blocks: &BlockRegistry, walker: &Walker) -> Self {
        let layers = |blocks: f32| (blocks.clamp(0.0, PATH_REACH as f32) * LAYERS as f32 + 0.001) as i32;
        let size = WalkerSize {
            width: walker.width.clamp(1.0, 16.0).ceil() as i32,
            height: (walker.height.clamp(0.0, PATH_REACH as f32) * LAYERS as f32 - 0.001).ceil().max(1.0) as i32,
            step: layers(walker.step),
            jump: layers(walker.jump),
            fall: layers(walker.fall),
            swims: walker.swim.is_some_and(|factor| factor < f32::INFINITY),
        };
        let costs: Vec<_> =
            walker.costs.iter().map(|(name, factor)| (blocks.tag(name), blocks.id(name), *factor)).collect();
        let cell = |id: BlockId| {
            let is_meant = |tag: Option<&BlockSet>, named: Option<BlockId>| {
                tag.is_some_and(|tag| tag.contains(id)) || named == Some(id)
            };
            let factors = costs.iter().filter(|(tag, named, _)| is_meant(*tag, *named)).map(|(.., factor)| *factor);
            Cell::of(blocks.block(id), factors.fold(1.0, f32::max), walker)
        };
        Self { size, blocks: (0..blocks.len() as u32).map(|id| cell(BlockId::new(id))).collect() }
    }

    #[inline]
    pub(super) fn cell(&self, block: BlockId) -> Cell {
        self.blocks.get(block.index() as usize).copied().unwrap_or(Cell::CLOSED)
    }
}
