//! The stored index: an object of its own, whose chain begins in block 0.
//!
//! | content | form |
//! |---|---|
//! | next counter, blocks of the file, number of objects | varints |
//! | each object, by key | bytes shared with the previous key, number of other bytes, the other bytes; version, first block, blocks, counter: varints; 1 if it is part of a batch, otherwise 0 |
//! | number of commits | varint |
//! | each commit | counter, first block, blocks, remaining objects of its batch: varints |
//! | number of runs of free blocks | varint |
//! | each run, ascending | blocks since the end of the previous one, blocks: varints |
//!
//! Varints are LEB128. The index is compressed like every object.

use super::MAX_KEY_BYTES;
use super::free_list::FreeList;
use crate::bytes::{Reader, put_number};
use std::collections::BTreeMap;
use std::mem;

/// The place of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub version: u64,
    pub first: u64,
    pub blocks: u64,
    pub counter: u64,
    pub in_batch: bool,
}

/// The place of a commit, which makes a batch complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitRecord {
    pub first: u64,
    pub blocks: u64,
    /// The number of remaining objects of the batch.
    pub live: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    /// The counter of the next write.
    pub counter: u64,
    /// The number of blocks of the file.
    pub blocks: u64,
    pub entries: BTreeMap<String, Entry>,
    pub commits: BTreeMap<u64, CommitRecord>,
    pub free: FreeList,
}

impl Index {
    /// The blocks of all objects and commits: first block and length.
    pub fn runs(&self) -> impl Iterator<Item = (u64, u64)> {
        let entries = self.entries.values().map(|entry| (entry.first, entry.blocks));
        entries.chain(self.commits.values().map(|commit| (commit.first, commit.blocks)))
    }

    /// Returns `true` if each block belongs to at most one object, commit, free run, or the chain of the index. Using
    /// any other index would overwrite needed blocks.
    pub fn is_disjoint(&self, chain: &[u64]) -> bool {
        let mut is_taken = vec![false; usize::try_from(self.blocks).unwrap_or(usize::MAX)];
        let chain = chain.iter().map(|block| (*block, 1));
        self.runs().chain(self.free.runs()).chain(chain).all(|(first, blocks)| {
            let run = first as usize..(first + blocks) as usize;
            is_taken.get_mut(run).is_some_and(|run| !run.iter_mut().any(|is_taken| mem::replace(is_taken, true)))
        })
    }

    /// Encodes the index.
    pub fn encode(&self) -> Vec<u8> {
        let Self { counter, blocks, entries, commits, free } = self;
        let mut bytes = Vec::with_capacity(64 + entries.len() * 16);
        [*counter, *blocks, entries.len() as u64].into_iter().for_each(|number| put_number(&mut bytes, number));
        let mut before = "";
        for (key, entry) in entries {
            let shared = key.bytes().zip(before.bytes()).take_while(|(a, b)| a == b).count();
            let Entry { version, first, blocks, counter, in_batch } = *entry;
            [shared as u64, (key.len() - shared) as u64].into_iter().for_each(|number| put_number(&mut bytes, number));
            bytes.extend_from_slice(&key.as_bytes()[shared..]);
            [version, first, blocks, counter, in_batch.into()]
                .into_iter()
                .for_each(|number| put_number(&mut bytes, number));
            before = key;
        }
        put_number(&mut bytes, commits.len() as u64);
        for (counter, CommitRecord { first, blocks, live }) in commits {
            [*counter, *first, *blocks, *live].into_iter().for_each(|number| put_number(&mut bytes, number));
        }
        put_number(&mut bytes, free.runs().len() as u64);
        let mut end = 0;
        for (first, blocks) in free.runs() {
            [first - end, blocks].into_iter().for_each(|number| put_number(&mut bytes, number));
            end = first + blocks;
        }
        bytes
    }

    /// Decodes an index; `None` if it is invalid. Never allocates by a declared number.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let reader = &mut Reader::new(bytes);
        let mut index = Self { counter: take(reader)?, blocks: take(reader)?, ..Self::default() };
        let is_inside = |first: u64, blocks: u64, all: u64| {
            blocks > 0 && first > 0 && first.checked_add(blocks).is_some_and(|end| end <= all)
        };
        let (mut key, mut entries) = (Vec::new(), Vec::new());
        for _ in 0..take(reader)? {
            let (shared, rest) = (usize::try_from(take(reader)?).ok()?, usize::try_from(take(reader)?).ok()?);
            let rest = reader.slice(rest).ok()?;
            if rest <= key.get(shared..)? || shared + rest.len() > MAX_KEY_BYTES {
                return None;
            }
            key.truncate(shared);
            key.extend_from_slice(rest);
            let (version, first, blocks) = (take(reader)?, take(reader)?, take(reader)?);
            let (counter, in_batch) = (take(reader)?, take(reader)? == 1);
            if !is_inside(first, blocks, index.blocks) || counter >= index.counter {
                return None;
            }
            entries.push((str::from_utf8(&key).ok()?.to_owned(), Entry { version, first, blocks, counter, in_batch }));
        }
        // They are sorted, so collecting is faster than inserting one by one.
        index.entries = entries.into_iter().collect();
        for _ in 0..take(reader)? {
            let (counter, first, blocks, live) = (take(reader)?, take(reader)?, take(reader)?, take(reader)?);
            if !is_inside(first, blocks, index.blocks) || counter >= index.counter {
                return None;
            }
            index.commits.insert(counter, CommitRecord { first, blocks, live });
        }
        let mut end = 0_u64;
        for _ in 0..take(reader)? {
            let (gap, blocks) = (take(reader)?, take(reader)?);
            let first = end.checked_add(gap)?;
            if !is_inside(first, blocks, index.blocks) {
                return None;
            }
            index.free.give(first, blocks);
            end = first + blocks;
        }
        (reader.left() == 0).then_some(index)
    }
}

/// The maximum size in bytes of the index of a file with this many blocks: every object, commit and free run has at
/// least one block.
pub(super) const fn most_bytes(blocks: u64) -> u64 {
    blocks.saturating_mul((MAX_KEY_BYTES + 10 * 10) as u64).saturating_add(100)
}

fn take(reader: &mut Reader<'_>) -> Option<u64> {
    reader.number().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_index_comes_back_and_random_bytes_are_none(
            keys in btree_map("[a-c/]{1,8}", (any::<u64>(), 1..900_u64, 1..9_u64, 0..50_u64, any::<bool>()), 0..20),
            runs in vec((1..5_u64, 1..5_u64), 0..8), noise in vec(any::<u8>(), 0..64),
        ) {
            let entries = keys.into_iter().map(|(key, (version, first, blocks, counter, in_batch))| {
                (key, Entry { version, first, blocks, counter, in_batch })
            });
            let mut free = FreeList::default();
            let mut end = 0;
            for (gap, blocks) in runs {
                free.give(end + gap, blocks);
                end += gap + blocks;
            }
            let commits = [(3, CommitRecord { first: 9, blocks: 1, live: 2 })].into();
            let index = Index { counter: 50, blocks: 1_000, entries: entries.collect(), commits, free };
            let bytes = index.encode();
            prop_assert_eq!(Index::decode(&bytes), Some(index));
            (0..bytes.len()).for_each(|end| assert_eq!(Index::decode(&bytes[..end]), None));
            let _ = Index::decode(&noise);
        }
    }
}
