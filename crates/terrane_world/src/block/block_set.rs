//! Sets of block types.

use super::BlockId;
use crate::space::bits;
use serde::{Deserialize, Serialize};

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
