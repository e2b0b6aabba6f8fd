//! [`BlockFilter`]: the blocks that a restore may change.

use crate::block::{BlockId, BlockSet};
use serde::{Deserialize, Serialize};

/// A choice of block types.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockChoice {
    /// All types.
    #[default]
    All,
    /// The types in the set.
    Only(BlockSet),
    /// The types that are not in the set.
    AllBut(BlockSet),
}

/// The cells that a restore may change: those whose current and captured blocks in layer 0 are both chosen. A cell is
/// restored with all its layers and components, or not at all. The default is all cells.
///
/// ```
/// use terrane_world::block::BlockId;
/// use terrane_world::snapshot::{BlockChoice, BlockFilter};
///
/// // Fills holes, and leaves buildings alone.
/// let holes = BlockFilter { current: BlockChoice::only([BlockId::AIR]), ..BlockFilter::default() };
/// assert!(holes.current.contains(BlockId::AIR) && !holes.current.contains(BlockId::new(1)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockFilter {
    /// The blocks that may be replaced.
    pub current: BlockChoice,
    /// The captured blocks that may be restored.
    pub wanted: BlockChoice,
}

impl BlockChoice {
    /// Only these types.
    pub fn only(blocks: impl IntoIterator<Item = BlockId>) -> Self {
        Self::Only(blocks.into_iter().collect())
    }

    /// All types but these.
    pub fn all_but(blocks: impl IntoIterator<Item = BlockId>) -> Self {
        Self::AllBut(blocks.into_iter().collect())
    }

    /// Returns `true` if the block is chosen.
    pub fn contains(&self, block: BlockId) -> bool {
        match self {
            Self::All => true,
            Self::Only(blocks) => blocks.contains(block),
            Self::AllBut(blocks) => !blocks.contains(block),
        }
    }
}

impl BlockFilter {
    /// Returns `true` if the filter allows all blocks.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}
