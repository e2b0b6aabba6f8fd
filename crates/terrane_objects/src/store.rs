//! [`ObjectStore`]: opening, reading and writing.

mod batches;
mod chains;
mod freeing;
mod stored_index;

use super::block::{FILE_BLOCK_BYTES, Kind, MAX_KEY_BYTES};
use super::index::{Entry, Index};
use super::payload;
use super::recovery::Recovery;
use super::{Disk, FileDisk, ObjectStoreError, file};
use crate::work::FileError;
use flate2::Compress;
use std::ops::Bound;
use std::path::Path;

type Result<T> = std::result::Result<T, ObjectStoreError>;

/// Options for writing a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectStoreOptions {
    /// The compression level: 0 for none to 9 for the smallest objects.
    pub level: u32,
    /// `true` if a write or a delete only returns once it survives a loss of power. Otherwise [`ObjectStore::sync`] does
    /// this for all earlier changes. Batches are always synced.
    pub sync: bool,
    /// `true` to fill unused blocks with zeros, so that their old content cannot be read.
    pub zero_freed: bool,
    /// The maximum size of an object in bytes, which limits the memory that a file can cause.
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
    /// The number of changes of the object, or another number of the writer's choice.
    pub version: u64,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// A portable file of versioned objects. See the [module](super).
///
/// Dropping a store without [`close`](Self::close) ignores errors.
#[derive(Debug)]
pub struct ObjectStore<D: Disk = FileDisk> {
    disk: D,
    signature: String,
    /// The offset of data in block 0: the length of the first line.
    start: usize,
    pub(super) options: ObjectStoreOptions,
    is_writable: bool,
    tables: Option<Compress>,
    /// The places of all objects.
    index: Index,
    /// Blocks that were replaced by writes that are not synced yet.
    superseded: Vec<(u64, u64)>,
    /// Commits of batches without remaining objects, to be removed once the replacing writes are synced.
    retired: Vec<u64>,
    /// Chains that must never become valid, but could not be marked as free yet.
    to_discard: Vec<(u64, u64)>,
    /// The blocks of the index in the file.
    chain: Vec<u64>,
    /// `true` if the index in the file equals the one in memory.
    is_index_written: bool,
    is_synced: bool,
    recovery: Option<Recovery>,
}

impl<D: Disk> ObjectStore<D> {
    pub(super) fn create_on(disk: D, signature: &str, options: ObjectStoreOptions) -> Result<Self> {
        let line = file::line(signature)?;
        let mut store = Self::new(disk, signature, options, true, 1);
        let mut block = [0; FILE_BLOCK_BYTES];
        block[..line.len()].copy_from_slice(line.as_bytes());
        store.disk.write_at(0, &block).map_err(FileError::of(store.disk.path(), "write"))?;
        store.write_index()?;
        Ok(store)
    }

    pub(super) fn open_on(disk: D, expected: &str, options: ObjectStoreOptions, is_writable: bool) -> Result<Self> {
        let (mut store, first, blocks) = Self::begun_on(disk, expected, options, is_writable)?;
        match store.stored_index(&first) {
            Some((index, chain)) => (store.index, store.chain, store.is_index_written) = (index, chain, true),
            None => store.recover(blocks, false)?,
        }
        Ok(store)
    }

    /// Opens the store on a disk to read all undamaged objects.
    pub(super) fn salvage_on(disk: D, expected: &str) -> Result<Self> {
        let (mut store, _, blocks) = Self::begun_on(disk, expected, ObjectStoreOptions::default(), false)?;
        store.recover(blocks, true)?;
        Ok(store)
    }

    /// A store without its objects, its first block, and the number of complete blocks in its file.
    fn begun_on(
        disk: D,
        expected: &str,
        options: ObjectStoreOptions,
        is_writable: bool,
    ) -> Result<(Self, [u8; FILE_BLOCK_BYTES], u64)> {
        let length = disk.len().map_err(FileError::of(disk.path(), "measure"))?;
        let mut first = [0; FILE_BLOCK_BYTES];
        let known = usize::try_from(length).unwrap_or(FILE_BLOCK_BYTES).min(FILE_BLOCK_BYTES);
        disk.read_at(0, &mut first[..known]).map_err(FileError::of(disk.path(), "read"))?;
        let found = file::parse(disk.path(), &first[..known])?;
        if found != expected {
            let (path, expected) = (disk.path().to_path_buf(), expected.to_owned());
            return Err(ObjectStoreError::Signature { path, expected, found });
        }
        let blocks = length / FILE_BLOCK_BYTES as u64;
        // Block 0 of a truncated file still belongs to the index.
        Ok((Self::new(disk, expected, options, is_writable, blocks.max(1)), first, blocks))
    }

    /// An empty store in a file of this many blocks.
    fn new(disk: D, signature: &str, options: ObjectStoreOptions, is_writable: bool, blocks: u64) -> Self {
        Self {
            disk,
            signature: signature.to_owned(),
            start: file::line_bytes(signature),
            options,
            is_writable,
            tables: None,
            index: Index { counter: 1, blocks, ..Index::default() },
            superseded: Vec::new(),
            retired: Vec::new(),
            to_discard: Vec::new(),
            chain: vec![0],
            is_index_written: false,
            is_synced: true,
            recovery: None,
        }
    }

    /// The result of rebuilding the index, if that was necessary when the store was opened.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.recovery.as_ref()
    }

    /// The signature.
    pub fn signature(&self) -> &str {
        &self.signature
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.index.entries.len()
    }

    /// Returns `true` if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.index.entries.is_empty()
    }

    /// The size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.index.blocks * FILE_BLOCK_BYTES as u64
    }

    /// The size of the file's unused space in bytes.
    pub fn free_space(&self) -> u64 {
        let superseded: u64 = self.superseded.iter().chain(&self.to_discard).map(|(_, blocks)| blocks).sum();
        (self.index.free.blocks() + superseded) * FILE_BLOCK_BYTES as u64
    }

    /// Returns `true` if there is an object with this key.
    pub fn contains(&self, key: &str) -> bool {
        self.index.entries.contains_key(key)
    }

    /// The keys and versions of all objects whose keys begin with `prefix`, sorted by key. All keys begin with "".
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        let from = self.index.entries.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.take_while(move |(key, _)| key.starts_with(prefix)).map(|(key, entry)| (key.as_str(), entry.version))
    }

    /// Returns `true` if the object `key` may have been lost with the end of the batch of the object `written`: the
    /// objects of a batch are written in the order of their keys. Only a [salvaged](ObjectStore::open_to_salvage)
    /// store contains incomplete batches.
    #[doc(hidden)]
    pub fn may_be_cut_off(&self, key: &str, written: &str) -> bool {
        let torn = self
            .index
            .entries
            .get(written)
            .filter(|entry| entry.in_batch && !self.index.commits.contains_key(&entry.counter));
        let Some(Entry { counter, .. }) = torn else { return false };
        let of_batch = self.index.entries.iter().filter(|(_, entry)| entry.in_batch && entry.counter == *counter);
        // The last key may belong to a small object that fills an earlier gap, so the position decides.
        of_batch.max_by_key(|(_, entry)| entry.first).is_some_and(|(last, _)| key > last.as_str())
    }

    /// Reads an object; `None` if there is none.
    ///
    /// # Errors
    /// Fails if the object is damaged, and on I/O errors. An object beyond the size limit of the options counts as damaged.
    pub fn read(&self, key: &str) -> Result<Option<Object>> {
        let Some(entry) = self.index.entries.get(key) else { return Ok(None) };
        let Entry { version, first, .. } = *entry;
        let payload = self.read_chain(key, entry)?;
        let data = payload::decode(payload, self.options.most_bytes);
        data.map(|data| Some(Object { version, data })).map_err(|reason| self.damaged(key, first, reason))
    }

    fn damaged(&self, key: &str, block: u64, reason: impl Into<String>) -> ObjectStoreError {
        let (path, key) = (self.disk.path().to_path_buf(), key.to_owned());
        ObjectStoreError::Damaged { path, key, block, reason: reason.into() }
    }

    /// Writes an object and replaces its old version.
    ///
    /// # Errors
    /// Fails if the key is empty or too long, if the object is too large, and on I/O errors. The old version
    /// then remains; after a crash it may be either version.
    pub fn write(&mut self, key: &str, version: u64, data: &[u8]) -> Result<()> {
        self.check(key, data)?;
        self.begin()?;
        let counter = self.next_counter()?;
        let payload = payload::encode(&mut self.tables, self.options.level, data);
        let entry = self.write_chain(Kind::Object, key, (version, counter), &payload)?;
        if self.options.sync {
            self.sync_or_discard(&[(entry.first, entry.blocks)])?;
        }
        self.put(key, entry);
        if self.options.sync {
            self.settle();
        }
        Ok(())
    }

    /// Deletes an object. Returns `true` if it existed.
    ///
    /// # Errors
    /// Fails on I/O errors. The object may be gone then, and may exist again after a crash.
    pub fn delete(&mut self, key: &str) -> Result<bool> {
        if !self.index.entries.contains_key(key) {
            return Ok(false);
        }
        self.begin()?;
        // Older versions must not reappear.
        self.quiesce()?;
        let Some(entry) = self.index.entries.get(key).copied() else { return Ok(false) };
        self.is_synced = false;
        self.mark_free(entry.first)?;
        self.index.entries.remove(key);
        self.leave_batch(&entry);
        if self.options.sync {
            self.sync_or_discard(&[(entry.first, entry.blocks)])?;
        }
        self.release(entry.first, entry.blocks);
        Ok(true)
    }

    /// Makes all earlier writes survive a loss of power.
    ///
    /// # Errors
    /// Fails on I/O errors.
    pub fn sync(&mut self) -> Result<()> {
        if !self.is_synced {
            self.sync_disk()?;
            self.is_synced = true;
            self.settle();
        }
        Ok(())
    }

    /// Writes the index and closes the file.
    ///
    /// # Errors
    /// Those of [`write_index`](Self::write_index).
    pub fn close(mut self) -> Result<()> {
        self.write_index()
    }

    fn check(&self, key: &str, data: &[u8]) -> Result<()> {
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            return Err(ObjectStoreError::Key { length: key.len() });
        }
        let (limit, found) = (self.options.most_bytes, data.len() as u64);
        match found <= limit {
            true => Ok(()),
            false => Err(ObjectStoreError::TooLarge { key: key.to_owned(), limit, found }),
        }
    }

    /// Called before the first change: makes the index in the file invalid.
    fn begin(&mut self) -> Result<()> {
        if !self.is_writable {
            return Err(ObjectStoreError::ReadOnly { path: self.disk.path().to_path_buf() });
        }
        if self.is_index_written {
            self.mark_free(0)?;
            self.sync_disk()?;
            self.is_index_written = false;
        }
        self.discard_pending()
    }

    fn next_counter(&mut self) -> Result<u64> {
        // No real writer gets this far: the file was manipulated.
        let exhausted = || ObjectStoreError::Exhausted { path: self.disk.path().to_path_buf() };
        let counter = self.index.counter;
        self.index.counter = counter.checked_add(1).ok_or_else(exhausted)?;
        Ok(counter)
    }

    /// Records the new place of an object. Its old blocks are freed when the new ones are synced.
    fn put(&mut self, key: &str, entry: Entry) {
        if let Some(old) = self.index.entries.insert(key.to_owned(), entry) {
            self.superseded.push((old.first, old.blocks));
            self.leave_batch(&old);
        }
    }

    fn leave_batch(&mut self, entry: &Entry) {
        if let Some(commit) = self.index.commits.get_mut(&entry.counter).filter(|_| entry.in_batch) {
            commit.live = commit.live.saturating_sub(1);
            if commit.live == 0 {
                self.retired.push(entry.counter);
            }
        }
    }
}

impl ObjectStore<FileDisk> {
    /// The same store after its file was renamed.
    pub(super) fn renamed(mut self, path: &Path) -> Self {
        self.disk.rename(path);
        self
    }
}

impl<D: Disk> Drop for ObjectStore<D> {
    fn drop(&mut self) {
        // To get errors, call `close`.
        let _ = self.write_index();
    }
}
