//! The store: opening, reading, writing.

mod chains;
mod giving_up;

use super::block::{self, BLOCK_SIZE, Kind, MOST_KEY_BYTES, Trailer};
use super::free_list::FreeList;
use super::index::{self, Index};
use super::payload::{self, Encoder, PayloadError};
use super::recovery::{self, Recovery};
use super::{Batch, Disk, FileDisk, ObjectStoreError, file};
use crate::bytes::put_number;
use crate::work::FileError;
use chains::blocks_of;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

/// How much the index is compressed: it is written often, and its numbers do not become much smaller.
const INDEX_LEVEL: u32 = 3;

type Result<T> = std::result::Result<T, ObjectStoreError>;

/// How a store is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectStoreOptions {
    /// How much time is spent on making objects small: 0 for none at all to 9.
    pub level: u32,
    /// Whether a write or a delete returns only when it outlives a loss of power. Otherwise [`ObjectStore::sync`] does that for
    /// all before it. Batches are synced in any case.
    pub sync: bool,
    /// Whether blocks that are not needed any more are filled with zeros, so that nothing can be found in them.
    pub zero_freed: bool,
    /// Bytes of an object at the most, so that no file can ask for more memory.
    pub most_bytes: u64,
}

impl Default for ObjectStoreOptions {
    /// Level 3; synced; freed blocks are zeroed; objects of up to 1 GiB.
    fn default() -> Self {
        Self { level: 3, sync: true, zero_freed: true, most_bytes: 1 << 30 }
    }
}

/// An object that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// How often the object changed, or what else whoever wrote it counts.
    pub version: u64,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub version: u64,
    pub first: u64,
    pub blocks: u64,
    pub counter: u64,
    pub in_batch: bool,
}

/// Where it says that a batch is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitRecord {
    pub first: u64,
    pub blocks: u64,
    /// Objects of the batch that are there.
    pub live: u64,
}

/// A portable file of versioned objects. See the [module](super).
///
/// Whoever drops it without [`close`](Self::close) does not hear of errors.
#[derive(Debug)]
pub struct ObjectStore<D: Disk = FileDisk> {
    disk: D,
    signature: String,
    /// Where data begins in block 0: bytes of the first line.
    start: usize,
    pub(super) options: ObjectStoreOptions,
    is_writable: bool,
    encoder: Encoder,
    entries: BTreeMap<String, Entry>,
    commits: BTreeMap<u64, CommitRecord>,
    free: FreeList,
    /// Replaced by what is not synced yet.
    superseded: Vec<(u64, u64)>,
    /// Commits of batches of which nothing is left, once what replaced it is synced.
    retired: Vec<u64>,
    /// Blocks of what must never come back and could not be marked as free.
    haunted: Vec<(u64, u64)>,
    /// Blocks of the file.
    blocks: u64,
    /// That of the next write.
    counter: u64,
    /// The blocks of the index.
    index: Vec<u64>,
    /// The index in the file is the one in memory.
    is_index_written: bool,
    is_synced: bool,
    recovery: Option<Recovery>,
}

impl<D: Disk> ObjectStore<D> {
    /// Makes a store on an empty disk.
    pub(super) fn create_on(disk: D, signature: &str, options: ObjectStoreOptions) -> Result<Self> {
        let line = file::line(signature)?;
        let index = Index { counter: 1, blocks: 1, ..Index::default() };
        let mut store = Self::new(disk, signature, options, true, index);
        let mut block = [0; BLOCK_SIZE];
        block[..line.len()].copy_from_slice(line.as_bytes());
        store.disk.write_at(0, &block).map_err(FileError::of(store.disk.path(), "write"))?;
        store.write_index()?;
        Ok(store)
    }

    /// Opens the store on a disk.
    pub(super) fn open_on(disk: D, expected: &str, options: ObjectStoreOptions, is_writable: bool) -> Result<Self> {
        let length = disk.len().map_err(FileError::of(disk.path(), "measure"))?;
        let mut first = [0; BLOCK_SIZE];
        let known = usize::try_from(length).unwrap_or(BLOCK_SIZE).min(BLOCK_SIZE);
        disk.read_at(0, &mut first[..known]).map_err(FileError::of(disk.path(), "read"))?;
        let found = file::parse(disk.path(), &first[..known])?;
        if found != expected {
            let (path, expected) = (disk.path().to_path_buf(), expected.to_owned());
            return Err(ObjectStoreError::Signature { path, expected, found });
        }
        // One that was cut short has a block 0 all the same, which is nobody else's.
        let blocks = (length / BLOCK_SIZE as u64).max(1);
        let mut store =
            Self::new(disk, expected, options, is_writable, Index { counter: 1, blocks, ..Index::default() });
        if let Some((index, chain)) = store.stored_index(&first) {
            let Index { counter, blocks, entries, commits, free } = index;
            (store.counter, store.blocks, store.entries) = (counter, blocks, entries);
            (store.commits, store.free, store.index) = (commits, free, chain);
            store.is_index_written = true;
            return Ok(store);
        }
        store.recover(length / BLOCK_SIZE as u64)?;
        Ok(store)
    }

    fn new(disk: D, signature: &str, options: ObjectStoreOptions, is_writable: bool, index: Index) -> Self {
        let Index { counter, blocks, entries, commits, free } = index;
        Self {
            disk,
            signature: signature.to_owned(),
            start: file::line_bytes(signature),
            options,
            is_writable,
            encoder: Encoder::new(options.level),
            entries,
            commits,
            free,
            superseded: Vec::new(),
            retired: Vec::new(),
            haunted: Vec::new(),
            blocks,
            counter,
            index: vec![0],
            is_index_written: false,
            is_synced: true,
            recovery: None,
        }
    }

    /// The index in the file with its blocks, if it is whole and can be true.
    fn stored_index(&self, first: &[u8; BLOCK_SIZE]) -> Option<(Index, Vec<u64>)> {
        let (payload, chain) = self.read_index_chain(first)?;
        let index = index::decode(&payload::decode(payload, index::most_bytes(self.blocks)).ok()?)?;
        // Whoever adds blocks first makes the index invalid.
        (index.blocks <= self.blocks && index.is_disjoint(&chain)).then_some((index, chain))
    }

    /// Makes the index anew of what the blocks say that are there.
    fn recover(&mut self, blocks: u64) -> Result<()> {
        let found = recovery::scan(&self.disk, self.start, blocks, self.options.most_bytes)?;
        (self.entries, self.commits, self.counter) = (found.entries, found.commits, found.counter);
        self.recovery = Some(found.report);
        let mut used: Vec<(u64, u64)> = self.entries.values().map(|entry| (entry.first, entry.blocks)).collect();
        used.extend(self.commits.values().map(|commit| (commit.first, commit.blocks)));
        used.extend(&found.stale);
        used.sort_unstable();
        let mut end = 1;
        for (first, blocks) in used.into_iter().chain([(self.blocks, 0)]) {
            self.free.give(end, first.saturating_sub(end));
            end = end.max(first + blocks);
        }
        // They are not to come back when what replaced them is deleted.
        self.haunted = found.stale;
        Ok(())
    }

    /// What was found and made of it, if the index had to be made anew when the store was opened.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.recovery.as_ref()
    }

    /// The signature.
    pub fn signature(&self) -> &str {
        &self.signature
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.blocks * BLOCK_SIZE as u64
    }

    /// Bytes of the file that nothing is in.
    pub fn free_space(&self) -> u64 {
        let superseded: u64 = self.superseded.iter().chain(&self.haunted).map(|(_, blocks)| blocks).sum();
        (self.free.blocks() + superseded) * BLOCK_SIZE as u64
    }

    /// Whether there is an object of this key.
    pub fn contains(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// The version of an object, if it is there.
    pub fn version(&self, key: &str) -> Option<u64> {
        self.entries.get(key).map(|entry| entry.version)
    }

    /// Keys and versions by position in the index, from this one on. They are in the order of their keys, so a position means
    /// another object after a write or a delete.
    pub fn entries_from(&self, position: usize) -> impl Iterator<Item = (&str, u64)> {
        self.entries.iter().skip(position).map(|(key, entry)| (key.as_str(), entry.version))
    }

    /// Keys and versions of all objects whose keys begin so, by key.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        let from = self.entries.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.take_while(move |(key, _)| key.starts_with(prefix)).map(|(key, entry)| (key.as_str(), entry.version))
    }

    /// Reads an object; `None` if there is none.
    ///
    /// # Errors
    /// An object that is damaged, or larger than the options allow; what the system says.
    pub fn read(&self, key: &str) -> Result<Option<Object>> {
        let Some(entry) = self.entries.get(key) else { return Ok(None) };
        let Entry { version, first, .. } = *entry;
        let payload = self.read_chain(key, entry)?;
        match payload::decode(payload, self.options.most_bytes) {
            Ok(data) => Ok(Some(Object { version, data })),
            Err(PayloadError::TooLarge(found)) => {
                Err(ObjectStoreError::TooLarge { key: key.to_owned(), limit: self.options.most_bytes, found })
            }
            Err(PayloadError::Damaged(reason)) => Err(self.damaged(key, first, reason)),
        }
    }

    fn damaged(&self, key: &str, block: u64, reason: &'static str) -> ObjectStoreError {
        ObjectStoreError::Damaged { path: self.disk.path().to_path_buf(), key: key.to_owned(), block, reason }
    }

    /// Writes an object; an old version of it is gone then.
    ///
    /// # Errors
    /// A key of no bytes or too many; an object that is too large; what the system says. The old version is there then, and
    /// after a crash it is that or the new one.
    pub fn write(&mut self, key: &str, version: u64, data: &[u8]) -> Result<()> {
        self.check(key, data)?;
        self.begin()?;
        let counter = self.next_counter()?;
        let payload = self.encoder.encode(data);
        let entry = self.write_chain(Kind::Object, key, (version, counter), &payload)?;
        if self.options.sync {
            self.sync_or_haunt(&[(entry.first, entry.blocks)])?;
        }
        self.put(key, entry);
        if self.options.sync {
            self.settle();
        }
        Ok(())
    }

    /// Deletes an object; says whether it was there.
    ///
    /// # Errors
    /// What the system says. It may be gone then, and may be there again after a crash.
    pub fn delete(&mut self, key: &str) -> Result<bool> {
        if !self.entries.contains_key(key) {
            return Ok(false);
        }
        self.begin()?;
        // No older version may be left that comes back instead.
        self.quiesce()?;
        let Some(entry) = self.entries.get(key).copied() else { return Ok(false) };
        self.is_synced = false;
        self.mark_free(entry.first)?;
        self.entries.remove(key);
        self.leave_batch(&entry);
        if self.options.sync {
            self.sync_or_haunt(&[(entry.first, entry.blocks)])?;
        }
        self.release(entry.first, entry.blocks);
        Ok(true)
    }

    /// Makes several changes, which are there after a crash all or none.
    ///
    /// # Errors
    /// As [`write`](Self::write); then nothing has changed.
    pub fn apply(&mut self, batch: &Batch) -> Result<()> {
        for (key, change) in &batch.changes {
            self.check(key, change.as_ref().map_or(&[], |(_, data)| data))?;
        }
        self.begin()?;
        self.quiesce()?;
        let counter = self.next_counter()?;
        let mut written = Vec::new();
        let mut deleted = Vec::new();
        let result = batch.changes.iter().try_for_each(|(key, change)| {
            match change {
                Some((version, data)) => {
                    let payload = self.encoder.encode(data);
                    let entry = self.write_chain(Kind::BatchObject, key, (*version, counter), &payload)?;
                    written.push((key, Entry { in_batch: true, ..entry }));
                }
                None => {
                    put_number(&mut deleted, key.len() as u64);
                    deleted.extend_from_slice(key.as_bytes());
                }
            }
            Ok(())
        });
        let runs: Vec<(u64, u64)> = written.iter().map(|(_, entry)| (entry.first, entry.blocks)).collect();
        if let Err(error) = result {
            self.haunt(&runs);
            return Err(error);
        }
        // All of it is there before it is said to be.
        self.sync_or_haunt(&runs)?;
        let payload = self.encoder.encode(&deleted);
        let commit = match self.write_chain(Kind::Commit, "", (0, counter), &payload) {
            Ok(commit) => commit,
            Err(error) => {
                self.haunt(&runs);
                return Err(error);
            }
        };
        self.sync_or_haunt(&[&runs[..], &[(commit.first, commit.blocks)]].concat())?;
        self.commits.insert(counter, CommitRecord { first: commit.first, blocks: commit.blocks, live: 0 });
        for (key, entry) in written {
            self.put(key, entry);
            if let Some(commit) = self.commits.get_mut(&counter) {
                commit.live += 1;
            }
        }
        for (key, _) in batch.changes.iter().filter(|(_, change)| change.is_none()) {
            if let Some(entry) = self.entries.remove(key) {
                self.leave_batch(&entry);
                self.superseded.push((entry.first, entry.blocks));
            }
        }
        if self.commits.get(&counter).is_some_and(|commit| commit.live == 0) {
            self.retired.push(counter);
        }
        self.settle();
        Ok(())
    }

    /// All that was written outlives a loss of power.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&mut self) -> Result<()> {
        if !self.is_synced {
            self.sync_disk()?;
            self.is_synced = true;
            self.settle();
        }
        Ok(())
    }

    /// Writes the index, so that the next one who opens the store need not scan it. To be called when there is nothing else to
    /// do; [`close`](Self::close) does it too.
    ///
    /// # Errors
    /// What the system says. What was written is there all the same.
    pub fn write_index(&mut self) -> Result<()> {
        if self.is_index_written || !self.is_writable {
            return Ok(());
        }
        self.exorcise()?;
        self.quiesce()?;
        // What could not be written at the end is not there.
        let length = self.disk.len().map_err(FileError::of(self.disk.path(), "measure"))?;
        self.blocks = self.free.cut(length / BLOCK_SIZE as u64, self.blocks);
        let counter = self.next_counter()?;
        // Its own chain changes what is free, and so what is in it.
        let payload = loop {
            let encoded = index::encode((self.counter, self.blocks), &self.entries, &self.commits, &self.free);
            let payload = Encoder::new(INDEX_LEVEL).encode(&encoded);
            let wanted = blocks_of("", payload.len(), self.start);
            if wanted <= self.index.len() as u64 {
                break payload;
            }
            while (self.index.len() as u64) < wanted {
                let block = self.allocate(1);
                self.index.push(block);
            }
        };
        let chain = self.index.clone();
        let mut rest = &payload[..];
        let mut blocks = Vec::with_capacity(chain.len());
        // One that has become shorter keeps its blocks, empty ones at the end.
        for (sequence, at) in chain.iter().enumerate() {
            let start = if *at == 0 { self.start } else { 0 };
            let (part, behind) = rest.split_at(rest.len().min(block::capacity("", start)));
            rest = behind;
            let next = chain.get(sequence + 1).copied();
            let trailer = Trailer { kind: Kind::Index, key: "", version: 0, counter, next, sequence: sequence as u32 };
            let mut block = [0; BLOCK_SIZE];
            block::encode(&mut block, start, &trailer, part);
            blocks.push((*at, start, block));
        }
        debug_assert!(rest.is_empty());
        let failed = FileError::of(self.disk.path(), "write");
        self.is_synced = false;
        for (at, start, block) in blocks.iter().skip(1) {
            self.disk.write_at(at * BLOCK_SIZE as u64 + *start as u64, &block[*start..]).map_err(&failed)?;
        }
        self.disk.sync().map_err(&failed)?;
        // With this it counts. The signature's line is left alone.
        if let Some((at, start, block)) = blocks.first() {
            self.disk.write_at(at * BLOCK_SIZE as u64 + *start as u64, &block[*start..]).map_err(&failed)?;
        }
        self.disk.sync().map_err(&failed)?;
        (self.is_synced, self.is_index_written) = (true, true);
        Ok(())
    }

    /// Writes the index and gives the file back.
    ///
    /// # Errors
    /// As [`write_index`](Self::write_index).
    pub fn close(mut self) -> Result<()> {
        self.write_index()
    }

    fn check(&self, key: &str, data: &[u8]) -> Result<()> {
        if key.is_empty() || key.len() > MOST_KEY_BYTES {
            return Err(ObjectStoreError::Key { length: key.len() });
        }
        let (limit, found) = (self.options.most_bytes, data.len() as u64);
        match found <= limit {
            true => Ok(()),
            false => Err(ObjectStoreError::TooLarge { key: key.to_owned(), limit, found }),
        }
    }

    /// Before anything changes: the index in the file does not count any more.
    fn begin(&mut self) -> Result<()> {
        if !self.is_writable {
            return Err(ObjectStoreError::ReadOnly { path: self.disk.path().to_path_buf() });
        }
        if self.is_index_written {
            self.mark_free(0)?;
            self.sync_disk()?;
            self.is_index_written = false;
        }
        self.exorcise()
    }

    fn next_counter(&mut self) -> Result<u64> {
        // No writer comes so far: somebody made the file say so.
        let exhausted = || ObjectStoreError::Exhausted { path: self.disk.path().to_path_buf() };
        let counter = self.counter;
        self.counter = counter.checked_add(1).ok_or_else(exhausted)?;
        Ok(counter)
    }

    /// Takes in where an object is now. What it replaces is given up when that is synced.
    fn put(&mut self, key: &str, entry: Entry) {
        if let Some(old) = self.entries.insert(key.to_owned(), entry) {
            self.superseded.push((old.first, old.blocks));
            self.leave_batch(&old);
        }
    }

    fn leave_batch(&mut self, entry: &Entry) {
        if let Some(commit) = self.commits.get_mut(&entry.counter).filter(|_| entry.in_batch) {
            commit.live = commit.live.saturating_sub(1);
            if commit.live == 0 {
                self.retired.push(entry.counter);
            }
        }
    }
}

impl ObjectStore<FileDisk> {
    /// The same store, whose file has another name by now.
    pub(super) fn renamed(mut self, path: &Path) -> Self {
        self.disk.rename(path);
        self
    }
}

impl<D: Disk> Drop for ObjectStore<D> {
    fn drop(&mut self) {
        // Whoever wants to hear of it closes the store.
        let _ = self.write_index();
    }
}
