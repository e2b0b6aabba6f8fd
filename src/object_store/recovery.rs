//! The index made anew of what the blocks say.

use super::block::{self, Content, FILE_BLOCK_BYTES, Kind};
use super::store::{CommitRecord, Entry};
use super::{Disk, ObjectStoreError, payload};
use crate::work::FileError;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks that are read at a time.
const AT_ONCE: u64 = 256;
/// Writes that a report names; of the others it only has the number.
const MAX_NAMED: usize = 1_000;

/// Whether the whole objects of a batch count if the batch is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Torn {
    /// They do not: either all of a batch counts, or nothing.
    Dropped,
    /// They do, when a damaged store is salvaged.
    Kept,
}

/// What was found in a store whose index was lost, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Blocks that were read.
    pub blocks: u64,
    /// Blocks whose checksum is wrong: they were being written, or are damaged.
    pub damaged_blocks: u64,
    /// Objects that are there.
    pub kept: usize,
    /// Old versions of these, and objects that a batch deleted: they are given up.
    pub replaced: usize,
    /// Writes that are not whole, and so not there; a thousand at the most.
    pub dropped: Vec<DroppedWrite>,
    /// How many writes are not there in all.
    pub dropped_count: usize,
}

impl Recovery {
    fn note_dropped(&mut self, write: DroppedWrite) {
        self.dropped_count += 1;
        if self.dropped.len() < MAX_NAMED {
            self.dropped.push(write);
        }
    }
}

/// A write that is not whole: the one that was under way as the process ended, or one that is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedWrite {
    /// The object.
    pub key: String,
    /// The version that was written.
    pub version: u64,
    /// Blocks of it that are there.
    pub blocks: u64,
    /// Why it is not whole.
    pub reason: &'static str,
}

/// What a scan finds.
pub(super) struct Found {
    pub entries: BTreeMap<String, Entry>,
    pub commits: BTreeMap<u64, CommitRecord>,
    pub counter: u64,
    /// Whole chains that do not count: first block and how many.
    pub stale: Vec<(u64, u64)>,
    pub report: Recovery,
}

/// By kind, key and counter.
type Chains = BTreeMap<(Kind, String, u64), Chain>;

/// What is known of a chain: its blocks by their place in it.
#[derive(Default)]
struct Chain {
    version: u64,
    /// Where the block is, and the next one.
    blocks: BTreeMap<u32, (u64, Option<u64>)>,
    is_torn: bool,
    /// The bytes, of a commit.
    payload: BTreeMap<u32, Vec<u8>>,
}

impl Chain {
    /// Its first block, if it is whole.
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

/// Reads every block once. `start` is where data begins in block 0; a commit is not larger than `most_bytes`.
pub(super) fn scan<D: Disk>(
    disk: &D,
    start: usize,
    blocks: u64,
    most_bytes: u64,
    torn: Torn,
) -> Result<Found, ObjectStoreError> {
    let mut chains = Chains::new();
    let mut report = Recovery { blocks, ..Recovery::default() };
    let mut counter = 0;
    let mut buffer = vec![0; AT_ONCE as usize * FILE_BLOCK_BYTES];
    for first in (0..blocks).step_by(AT_ONCE as usize) {
        let count = AT_ONCE.min(blocks - first) as usize;
        let bytes = &mut buffer[..count * FILE_BLOCK_BYTES];
        disk.read_at(first * FILE_BLOCK_BYTES as u64, bytes).map_err(FileError::of(disk.path(), "read"))?;
        for (at, block) in (first..).zip(bytes.as_chunks::<FILE_BLOCK_BYTES>().0) {
            match block::decode(block, if at == 0 { start } else { 0 }) {
                Content::Free => {}
                Content::Damaged => report.damaged_blocks += 1,
                // The first line is in it: there is no room for anything but the index.
                Content::Part(trailer, _) if at == 0 && trailer.kind != Kind::Index => report.damaged_blocks += 1,
                Content::Part(trailer, data) => {
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
        }
    }
    Ok(sort_out(chains, counter.saturating_add(1), report, most_bytes, torn))
}

/// The commits that are whole, of which nothing is known to be there yet, and when each key was deleted last.
fn read_commits(chains: &Chains, most_bytes: u64) -> (BTreeMap<u64, CommitRecord>, BTreeMap<String, u64>) {
    let (mut commits, mut deletes) = (BTreeMap::new(), BTreeMap::<String, u64>::new());
    // Others need not be remembered, however many a commit names.
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

fn sort_out(chains: Chains, counter: u64, mut report: Recovery, most_bytes: u64, torn: Torn) -> Found {
    let (mut commits, deletes) = read_commits(&chains, most_bytes);
    let mut stale = Vec::new();
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    for ((kind, key, counter), chain) in chains {
        let in_batch = kind == Kind::BatchObject;
        if kind == Kind::Commit {
            continue;
        }
        let is_torn = torn == Torn::Dropped && in_batch && !commits.contains_key(&counter);
        let whole = chain.first().and_then(|first| if is_torn { Err("its batch is not whole") } else { Ok(first) });
        let (version, blocks) = (chain.version, chain.blocks.len() as u64);
        let first = match whole {
            Ok(first) => first,
            Err(reason) => {
                report.note_dropped(DroppedWrite { key, version, blocks, reason });
                // What is left of it is free, and what is whole is not to be taken for something later.
                stale.extend(chain.first().ok().map(|first| (first, blocks)));
                continue;
            }
        };
        let is_deleted = deletes.get(&key).is_some_and(|deleted| counter < *deleted);
        let is_old = entries.get(&key).is_some_and(|known| counter < known.counter);
        if is_deleted || is_old {
            report.replaced += 1;
            stale.push((first, blocks));
            continue;
        }
        if let Some(old) = entries.insert(key, Entry { version, first, blocks, counter, in_batch }) {
            report.replaced += 1;
            stale.push((old.first, old.blocks));
        }
    }
    for entry in entries.values().filter(|entry| entry.in_batch) {
        if let Some(commit) = commits.get_mut(&entry.counter) {
            commit.live += 1;
        }
    }
    // A commit that only says what is deleted says it until that is gone.
    let retired: Vec<u64> =
        commits.iter().filter(|(_, commit)| commit.live == 0).map(|(counter, _)| *counter).collect();
    for commit in retired.into_iter().filter_map(|counter| commits.remove(&counter)) {
        stale.push((commit.first, commit.blocks));
    }
    report.kept = entries.len();
    Found { entries, commits, counter, stale, report }
}
