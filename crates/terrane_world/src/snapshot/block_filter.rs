//! Which blocks a restore touches.

use crate::block::{BlockId, BlockSet};
use serde::{Deserialize, Serialize};

/// Some types of blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockChoice {
    /// All.
    #[default]
    All,
    /// Those of the set.
    Only(BlockSet),
    /// Those that are not in the set.
    AllBut(BlockSet),
}

/// Which cells a restore touches: those whose block in layer 0 is chosen, as it is now and as it is to be. A cell is
/// restored with all its layers and components, or not at all. The default is all.
///
/// ```
/// use terrane_world::block::BlockId;
/// use terrane_world::snapshot::{BlockChoice, BlockFilter};
///
/// // Fills holes, and leaves alone what somebody built there.
/// let holes = BlockFilter { current: BlockChoice::only([BlockId::AIR]), ..BlockFilter::default() };
/// assert!(holes.current.contains(BlockId::AIR) && !holes.current.contains(BlockId::new(1)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockFilter {
    /// What may be replaced.
    pub current: BlockChoice,
    /// What may be put back.
    pub wanted: BlockChoice,
}

impl BlockChoice {
    /// These types only.
    pub fn only(blocks: impl IntoIterator<Item = BlockId>) -> Self {
        Self::Only(blocks.into_iter().collect())
    }

    /// All types but these.
    pub fn all_but(blocks: impl IntoIterator<Item = BlockId>) -> Self {
        Self::AllBut(blocks.into_iter().collect())
    }

    /// Whether it is one of them.
    pub fn contains(&self, block: BlockId) -> bool {
        match self {
            Self::All => true,
            Self::Only(blocks) => blocks.contains(block),
            Self::AllBut(blocks) => !blocks.contains(block),
        }
    }
}

impl BlockFilter {
    /// Whether it lets everything through.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}
