//! [`BodyTable`]: the obstacles, liquids and ladders among the blocks of a registry.

use crate::block::tags::CLIMBABLE;
use crate::block::{BlockId, BlockRegistry, BlockSet, BlockShape, BlockType};
use crate::liquid::is_falling;

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
