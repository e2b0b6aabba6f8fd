//! Rebuilds the index from the blocks.

use super::block::{self, FILE_BLOCK_BYTES, Kind};
use super::index::{CommitRecord, Entry, Index};
use super::{Disk, ObjectStoreError, payload};
use crate::work::FileError;
use std::collections::{BTreeMap, BTreeSet};

/// The number of blocks that are read at a time.
const AT_ONCE: u64 = 256;
/// The findings in a store whose index was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The number of blocks with wrong checksums, which were being written or are damaged.
    pub damaged_blocks: u64,
    /// The incomplete writes, which were dropped, with the reason: unfinished when the process ended, or damaged. Of
    /// several writes of one key, the last.
    pub dropped: BTreeMap<String, &'static str>,
}

/// By kind, key and counter.
type Chains = BTreeMap<(Kind, String, u64), Chain>;

/// The known parts of a chain: its blocks by their place in the chain.
#[derive(Default)]
struct Chain {
    version: u64,
    /// The position of the block, and the next block.
    blocks: BTreeMap<u32, (u64, Option<u64>)>,
    is_torn: bool,
    /// The bytes, if it is a commit.
    payload: BTreeMap<u32, Vec<u8>>,
}

impl Chain {
    /// The first block, if the chain is complete.
    fn first(&self) -> Result<u64, &'static str> {
        if self.is_torn {
            return Err("a block of it is there twice");
        }
        let Some((0, (first, _))) = self.blocks.first_key_value() else { return Err("a block of it is missing") };
        let (mut expected_sequence, mut expected) = (0, Some(*first));
        for (sequence, (at, next)) in &self.blocks {
            if *sequence != expected_sequence {
                return Err("a block of it is missing");
            }
            if expected != Some(*at) || next.is_some_and(|next| next != at + 1) {
                return Err("its blocks do not follow each other");
            }
            (expected_sequence, expected) = (sequence.wrapping_add(1), *next);
        }
        match expected {
            None => Ok(*first),
            Some(_) => Err("its end is missing"),
        }
    }
}

/// Reads every block once. Returns an index without free blocks, the complete but obsolete chains (first block and
/// length), and a report. `start` is the offset of data in block 0. A commit has at most `most_bytes`.
pub(super) fn scan<D: Disk>(
    disk: &D,
    start: usize,
    blocks: u64,
    most_bytes: u64,
    keeps_torn: bool,
) -> Result<(Index, Vec<(u64, u64)>, Recovery), ObjectStoreError> {
    let (mut chains, mut report, mut counter) = (Chains::new(), Recovery::default(), 0_u64);
    let mut buffer = vec![0; AT_ONCE as usize * FILE_BLOCK_BYTES];
    for first in (0..blocks).step_by(AT_ONCE as usize) {
        let count = AT_ONCE.min(blocks - first) as usize;
        let bytes = &mut buffer[..count * FILE_BLOCK_BYTES];
        disk.read_at(first * FILE_BLOCK_BYTES as u64, bytes).map_err(FileError::of(disk.path(), "read"))?;
        for (at, block) in (first..).zip(bytes.as_chunks::<FILE_BLOCK_BYTES>().0) {
            if block::is_free(block) {
                continue;
            }
            let found = block::decode(block, if at == 0 { start } else { 0 });
            // Block 0 also has the first line, so only the index can be in it.
            let Some((trailer, data)) = found.filter(|(trailer, _)| at > 0 || trailer.kind == Kind::Index) else {
                report.damaged_blocks += 1;
                continue;
            };
            counter = counter.max(trailer.counter);
            if trailer.kind == Kind::Index {
                continue;
            }
            let chain = chains.entry((trailer.kind, trailer.key.to_owned(), trailer.counter)).or_default();
            chain.is_torn |= !chain.blocks.is_empty() && chain.version != trailer.version;
            chain.version = trailer.version;
            chain.is_torn |= chain.blocks.insert(trailer.sequence, (at, trailer.next)).is_some();
            if trailer.kind == Kind::Commit {
                chain.payload.insert(trailer.sequence, data.to_vec());
            }
        }
    }
    let (commits, deletes) = read_commits(&chains, most_bytes);
    let mut index = Index { counter: counter.saturating_add(1), blocks, commits, ..Index::default() };
    let stale = sort_out(chains, &mut index, &deletes, &mut report, keeps_torn);
    Ok((index, stale, report))
}

/// The complete commits, none of whose objects have been found yet, and the counter of the last delete of each key.
fn read_commits(chains: &Chains, most_bytes: u64) -> (BTreeMap<u64, CommitRecord>, BTreeMap<String, u64>) {
    let (mut commits, mut deletes) = (BTreeMap::new(), BTreeMap::<String, u64>::new());
    // Other keys need not be remembered, however many a commit names.
    let keys: BTreeSet<&str> = chains.keys().map(|(_, key, _)| key.as_str()).collect();
    for ((_, _, counter), chain) in chains.iter().filter(|((kind, ..), _)| *kind == Kind::Commit) {
        let payload = chain.payload.values().flatten().copied().collect();
        let (Ok(first), Ok(data)) = (chain.first(), payload::decode(payload, most_bytes)) else { continue };
        if payload::deleted_keys(&data, |_| {}).is_none() {
            continue;
        }
        commits.insert(*counter, CommitRecord { first, blocks: chain.blocks.len() as u64, live: 0 });
        payload::deleted_keys(&data, |key| {
            if keys.contains(key) {
                let latest = deletes.entry(key.to_owned()).or_default();
                *latest = (*latest).max(*counter);
            }
        });
    }
    (commits, deletes)
}

/// Adds the valid objects to the index. Returns the complete but obsolete chains.
fn sort_out(
    chains: Chains,
    index: &mut Index,
    deletes: &BTreeMap<String, u64>,
    report: &mut Recovery,
    keeps_torn: bool,
) -> Vec<(u64, u64)> {
    let Index { entries, commits, .. } = index;
    let mut stale = Vec::new();
    for ((kind, key, counter), chain) in chains {
        let in_batch = kind == Kind::BatchObject;
        if kind == Kind::Commit {
            continue;
        }
        let is_torn = !keeps_torn && in_batch && !commits.contains_key(&counter);
        let whole = chain.first().and_then(|first| if is_torn { Err("its batch is not whole") } else { Ok(first) });
        let (version, blocks) = (chain.version, chain.blocks.len() as u64);
        let first = match whole {
            Ok(first) => first,
            Err(reason) => {
                report.dropped.insert(key, reason);
                // Its blocks are free, and a complete chain must not become valid later.
                stale.extend(chain.first().ok().map(|first| (first, blocks)));
                continue;
            }
        };
        let is_deleted = deletes.get(&key).is_some_and(|deleted| counter < *deleted);
        let is_old = entries.get(&key).is_some_and(|known| counter < known.counter);
        if is_deleted || is_old {
            stale.push((first, blocks));
        } else if let Some(old) = entries.insert(key, Entry { version, first, blocks, counter, in_batch }) {
            stale.push((old.first, old.blocks));
        }
    }
    for entry in entries.values().filter(|entry| entry.in_batch) {
        if let Some(commit) = commits.get_mut(&entry.counter) {
            commit.live += 1;
        }
    }
    // A commit with only deletes is needed until the deleted objects are gone.
    stale.extend(commits.values().filter(|commit| commit.live == 0).map(|commit| (commit.first, commit.blocks)));
    commits.retain(|_, commit| commit.live > 0);
    stale
}
