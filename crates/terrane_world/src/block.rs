//! Block types: their names, their properties, the stable numbers that chunks store, and sets of them.
//!
//! A [`BlockRegistry`] gives every [`BlockType`] a [`BlockId`], and every [`BlockComponent`] a [`BlockComponentId`]. A
//! world stores the registry's lists in the order of the ids, so a number keeps its meaning when the game later adds,
//! renames, removes or reorders its types.
//!
//! | data | source |
//! |---|---|
//! | a type's appearance, shape, light and tags | the game, at each start |
//! | its number, its name, its components with their versions and sizes | the world; for new types, the game |
//! | how values of older versions are read | the game: a migration of the [`Schema`] |

mod block_name;
mod block_shape;
mod block_states;
mod block_type;
mod component_layout;
mod component_table;
mod nearest_name;
mod registry;
mod schema;
mod state_shapes;
mod state_turns;
pub mod tags;

#[doc(hidden)]
pub use block_name::joined;
pub use block_name::{BlockName, BlockNameError};
pub use block_shape::{BlockShape, ShapeBox, ShapeError};
pub use block_states::BlockStates;
pub use block_type::BlockType;
pub use component_layout::{BlockComponentId, BlockComponentLayout, BlockLayout};
pub use component_table::{BlockComponentError, BlockComponentRecord, BlockRecord};
pub use registry::{BLOCK_ENTITY, BlockRegistry, BlockRegistryError, PLACEHOLDER, STATE};
pub use schema::{BlockComponent, MigrationFailure, Schema, SchemaError};
pub use state_turns::turned_state;

use crate::space::bits;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of a block type in a [`BlockRegistry`]: its place in the order of registration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlockId(u32);

impl BlockId {
    /// `terrane:air`, the first block of every registry.
    pub const AIR: Self = Self(0);

    /// The id with this number.
    #[inline]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The number: the place in the registry.
    #[inline]
    pub const fn index(self) -> u32 {
        self.0
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of block types, such as all types with one tag. Takes one bit for each id up to the highest in the set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSet {
    words: Vec<u64>,
}

impl BlockSet {
    /// Returns `true` if the set contains the block.
    #[inline]
    pub fn contains(&self, block: BlockId) -> bool {
        let (word, bit) = place(block);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Adds a block.
    pub fn insert(&mut self, block: BlockId) {
        let (word, bit) = place(block);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
    }

    /// The blocks, by id.
    pub fn iter(&self) -> impl Iterator<Item = BlockId> {
        let words = (0..).zip(&self.words);
        words.flat_map(|(index, word)| bits(*word).map(move |bit| BlockId::new(64 * index + bit)))
    }
}

impl FromIterator<BlockId> for BlockSet {
    fn from_iter<I: IntoIterator<Item = BlockId>>(blocks: I) -> Self {
        let mut set = Self::default();
        blocks.into_iter().for_each(|block| set.insert(block));
        set
    }
}

#[inline]
fn place(block: BlockId) -> (usize, u64) {
    (block.index() as usize / 64, 1 << (block.index() % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(blocks in prop::collection::vec(0_u32..300, 0..40), others in prop::collection::vec(any::<u32>(), 9)) {
            let model: BTreeSet<_> = blocks.iter().copied().collect();
            let mut set = BlockSet::default();
            blocks.iter().for_each(|block| set.insert(BlockId::new(*block)));
            prop_assert!(set.iter().eq(model.iter().copied().map(BlockId::new)));
            for block in blocks.into_iter().chain(others) {
                prop_assert_eq!(set.contains(BlockId::new(block)), model.contains(&block));
            }
        }
    }
}
