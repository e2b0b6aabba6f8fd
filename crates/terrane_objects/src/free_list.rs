//! [`FreeList`]: the free blocks of a file.

use std::collections::{BTreeMap, BTreeSet};

/// The free blocks, as runs with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FreeList {
    /// The first block of each run and its length.
    runs: BTreeMap<u64, u64>,
    /// The length and the first block of each run, for finding the smallest run that is large enough.
    by_length: BTreeSet<(u64, u64)>,
    blocks: u64,
}

impl FreeList {
    /// Takes this many adjacent blocks from the smallest run that is large enough.
    pub fn take(&mut self, blocks: u64) -> Option<u64> {
        let &(length, first) = self.by_length.range((blocks, 0)..).next()?;
        self.remove_run(first, length);
        if length > blocks {
            self.insert_run(first + blocks, length - blocks);
        }
        Some(first)
    }

    /// Adds free blocks. None of them may already be free.
    pub fn give(&mut self, first: u64, blocks: u64) {
        if blocks == 0 {
            return;
        }
        let (mut start, mut end) = (first, first + blocks);
        if let Some((&before, &length)) = self.runs.range(..first).next_back()
            && before + length == first
        {
            self.remove_run(before, length);
            start = before;
        }
        if let Some(&length) = self.runs.get(&end) {
            self.remove_run(end, length);
            end += length;
        }
        self.insert_run(start, end - start);
    }

    /// Removes free blocks beyond the end of the file, which should have `blocks` blocks but only has `length`. Returns the
    /// new number of blocks.
    pub fn cut(&mut self, length: u64, blocks: u64) -> u64 {
        match self.runs.last_key_value().map(|(first, blocks)| (*first, *blocks)) {
            Some((first, run)) if length < blocks && first + run == blocks => {
                self.remove_run(first, run);
                let kept = length.max(first);
                if kept > first {
                    self.insert_run(first, kept - first);
                }
                kept
            }
            _ => blocks,
        }
    }

    /// The number of free blocks.
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The runs in ascending order: first block and length.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        self.runs.iter().map(|(first, blocks)| (*first, *blocks))
    }

    fn insert_run(&mut self, first: u64, blocks: u64) {
        self.runs.insert(first, blocks);
        self.by_length.insert((blocks, first));
        self.blocks += blocks;
    }

    fn remove_run(&mut self, first: u64, blocks: u64) {
        self.runs.remove(&first);
        self.by_length.remove(&(blocks, first));
        self.blocks -= blocks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet as Set;

    proptest! {
        /// Compares with a set of single blocks.
        ///
        /// Promise, object store: An object store reuses a block only after its replacement is synced.
        #[test]
        fn blocks_are_given_out_once_and_runs_never_touch(steps in vec((any::<bool>(), 0..40_u64, 1..6_u64), 0..60)) {
            let (mut list, mut free) = (FreeList::default(), Set::new());
            for (takes, first, blocks) in steps {
                if takes {
                    let fits = |first: &u64| (*first..first + blocks).all(|block| free.contains(&block));
                    match list.take(blocks) {
                        Some(first) => {
                            prop_assert!(fits(&first));
                            free.retain(|block| !(first..first + blocks).contains(block));
                        }
                        None => prop_assert!(!free.iter().any(fits)),
                    }
                } else if (first..first + blocks).all(|block| !free.contains(&block)) {
                    list.give(first, blocks);
                    free.extend(first..first + blocks);
                }
                let listed: Vec<u64> = list.runs().flat_map(|(first, blocks)| first..first + blocks).collect();
                prop_assert!(listed.iter().eq(free.iter()));
                prop_assert_eq!(list.blocks(), free.len() as u64);
                let runs: Vec<_> = list.runs().collect();
                prop_assert!(runs.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0));
            }
        }
    }
}
