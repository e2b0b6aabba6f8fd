//! [`BodyTable`]: the obstacles, liquids and ladders among the blocks of a registry.

use crate::block::tags::CLIMBABLE;
use crate::block::{BlockId, BlockRegistry, BlockSet, BlockShape};

/// The obstacles, liquids and ladders among the blocks of a registry, by block id. Make it once the registry is complete.
///
/// Ids that the registry has not issued are solid cubes, like the placeholders of types that the game has removed.
#[derive(Clone, Debug, Default)]
pub struct BodyTable {
    kinds: Box<[Kind]>,
    shapes: Box<[BlockShape]>,
    climbable: BlockSet,
}

/// The obstacle or liquid that a block is to bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No obstacle.
    Free,
    /// A solid cube.
    Cube,
    /// A solid block with another shape.
    Shape,
    /// A liquid of this height, in eighths of a block.
    Liquid(u8),
}

impl BodyTable {
    /// The table of these block types.
    pub fn new(blocks: &BlockRegistry) -> Self {
        let types = || (0..blocks.len() as u32).map(|id| blocks.block(BlockId::new(id)));
        let kind = |(is_solid, shape): (bool, &BlockShape)| match shape {
            BlockShape::Liquid { level } => Kind::Liquid(*level),
            _ if !is_solid => Kind::Free,
            BlockShape::Cube => Kind::Cube,
            _ => Kind::Shape,
        };
        Self {
            kinds: types().map(|block| kind((block.is_solid(), block.shape()))).collect(),
            shapes: types().map(|block| block.shape().clone()).collect(),
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

    #[inline]
    pub(super) fn is_climbable(&self, block: BlockId) -> bool {
        self.climbable.contains(block)
    }
}
