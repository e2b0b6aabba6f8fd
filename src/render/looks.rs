//! The look of each block type.

use crate::block::{BlockId, BlockRegistry};
use bevy::prelude::*;

/// The look of a block type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    /// `true` if the block is drawn and hides the blocks behind it.
    pub opaque: bool,
    /// The linear color, as vertex colors are linear.
    pub color: Vec3,
}

/// The looks of all block types of a world, readable from any thread.
pub(super) struct BlockLooks {
    looks: Vec<Look>,
    unknown: Look,
}

impl BlockLooks {
    pub fn new(blocks: &BlockRegistry) -> Self {
        let look = |index: usize| {
            let block = blocks.block(BlockId::new(u32::try_from(index).unwrap_or(u32::MAX)));
            let [red, green, blue] = block.color();
            let color = Color::srgb_u8(red, green, blue).to_linear();
            Look { opaque: block.is_opaque(), color: Vec3::new(color.red, color.green, color.blue) }
        };
        Self { looks: (0..blocks.len()).map(look).collect(), unknown: look(blocks.len()) }
    }

    pub fn of(&self, block: BlockId) -> Look {
        self.looks.get(block.index() as usize).copied().unwrap_or(self.unknown)
    }

    pub fn is_opaque(&self, block: BlockId) -> bool {
        self.of(block).opaque
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockType;

    #[test]
    fn colors_become_linear_and_unknown_blocks_stand_out() {
        let mut blocks = BlockRegistry::new();
        let grey = blocks.register(BlockType::new("test:grey").with_color([188, 188, 0])).unwrap();
        let looks = BlockLooks::new(&blocks);
        assert!(!looks.is_opaque(BlockId::AIR));
        let look = looks.of(grey);
        assert!(look.opaque);
        // 188 in sRGB is half of the light.
        assert!((look.color - Vec3::new(0.5, 0.5, 0.0)).abs().max_element() < 0.01, "{:?}", look.color);
        assert_eq!(looks.of(BlockId::new(u32::MAX)), Look { opaque: true, color: Vec3::new(1.0, 0.0, 1.0) });
    }
}
