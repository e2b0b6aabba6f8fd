//! [`ChunkCache`]: the stored chunks of a client, in an object store.

use crate::bytes::{self, put_value};
use crate::space::{ChunkPos, ColumnPos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use terrane_objects::{FILE_BLOCK_BYTES, ObjectBatch, ObjectStore, ObjectStoreError, ObjectStoreOptions};

const CACHE_SIGNATURE: &str = "bevy_terrane chunk cache 1";

const ABOUT: &str = "about";
/// The binary logarithm of the number of chunks of a column in one object.
const STACK_SHIFT: u32 = 4;
const MAX_HELD: usize = 256;
/// The number of unwritten stacks at which they are written.
const MAX_UNWRITTEN: usize = 128;
/// The minimum size limit of a cache in bytes.
const LEAST_BYTES: u64 = 1 << 20;
const FORMAT: u8 = 1;

/// A chunk in a cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedChunk {
    /// The version on the server, in caches that an earlier protocol has written; 0 since.
    pub version: u64,
    /// The bytes in the chunk format.
    pub bytes: Vec<u8>,
}

/// Up to 16 vertically adjacent chunks of a column.
type Stack = BTreeMap<i64, CachedChunk>;
/// x, y >> 4 and z.
type StackPos = (i64, i64, i64);

/// A client's stored chunks of one dimension of one server: an object store of limited size.
///
/// The object `about` is the server's first message. `stack/x,y,z` contains the chunks `16 * y` to `16 * y + 15` of
/// the column x, z: a byte 1, then in postcard a map from their heights to versions and bytes. The version of the
/// object is the highest of theirs. When the cache is full, the farthest objects are evicted first.
///
/// A crash loses unwritten chunks, which are then requested again. Methods block on the disk: apps that draw frames
/// should use the cache on a separate thread.
#[derive(Debug)]
pub struct ChunkCache {
    store: ObjectStore,
    most_bytes: u64,
    /// Stacks in memory. The flag is `true` if a stack must be written.
    held: BTreeMap<StackPos, (Stack, bool)>,
    /// The number of unwritten stacks, and about their size in bytes.
    unwritten: usize,
    unwritten_bytes: u64,
}

/// The options of a cache's object store: new data may be lost.
fn options() -> ObjectStoreOptions {
    ObjectStoreOptions { sync: false, zero_freed: false, ..ObjectStoreOptions::default() }
}

impl ChunkCache {
    /// Opens the cache in this file, or creates it and its folder. The file takes at most about `most_bytes`, and at
    /// least 1 MiB. If it is larger because of an earlier limit, it shrinks with the first [`flush`](Self::flush) and
    /// the next opening.
    ///
    /// # Errors
    /// Fails if the file is not a cache or is in use, and on I/O errors.
    pub fn open(path: impl AsRef<Path>, most_bytes: u64) -> Result<Self, ObjectStoreError> {
        let path = path.as_ref();
        if let Some(folder) = path.parent() {
            // If this fails, so does opening the store, which reports the reason.
            let _ = fs::create_dir_all(folder);
        }
        let store = match path.try_exists() {
            Ok(false) => ObjectStore::create(path, CACHE_SIGNATURE, options()),
            _ => ObjectStore::open(path, CACHE_SIGNATURE, options()),
        };
        let mut store = store?;
        // The content beyond a former, larger limit is already gone, but not its space.
        if store.size() > most_bytes.max(LEAST_BYTES) && store.free_space() > store.size() / 4 {
            // If the store is damaged, it keeps its size.
            let _ = store.compact();
        }
        Ok(Self {
            store,
            most_bytes: most_bytes.max(LEAST_BYTES),
            held: BTreeMap::new(),
            unwritten: 0,
            unwritten_bytes: 0,
        })
    }

    pub(super) fn about(&mut self) -> Result<Option<Vec<u8>>, ObjectStoreError> {
        match self.store.read(ABOUT) {
            Ok(about) => Ok(about.map(|object| object.data)),
            // Without it, the numbers in chunks have no meaning.
            Err(ObjectStoreError::Damaged { .. }) => {
                self.store.delete(ABOUT)?;
                self.clear().map(|()| None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn set_about(&mut self, message: &[u8]) -> Result<(), ObjectStoreError> {
        self.store.write(ABOUT, 0, message)
    }

    /// Removes all chunks.
    pub fn clear(&mut self) -> Result<(), ObjectStoreError> {
        self.held.clear();
        (self.unwritten, self.unwritten_bytes) = (0, 0);
        let mut all = ObjectBatch::default();
        for (key, _) in self.store.with_prefix("stack/") {
            all.delete(key);
        }
        self.store.apply(&all)
    }

    /// A chunk, if the cache has it undamaged.
    ///
    /// # Errors
    /// Fails on I/O errors.
    pub fn chunk(&mut self, chunk: ChunkPos) -> Result<Option<&CachedChunk>, ObjectStoreError> {
        Ok(self.stack(chunk)?.0.get(&chunk.y))
    }

    /// Stores a chunk. It is written with later chunks or by [`flush`](Self::flush).
    ///
    /// # Errors
    /// Fails on I/O errors.
    pub fn put(&mut self, chunk: ChunkPos, cached: CachedChunk) -> Result<(), ObjectStoreError> {
        self.unwritten_bytes += cached.bytes.len() as u64;
        self.change(chunk, |stack| stack.insert(chunk.y, cached.clone()).as_ref() != Some(&cached))
    }

    /// Removes a chunk.
    ///
    /// # Errors
    /// Fails on I/O errors.
    pub fn remove(&mut self, chunk: ChunkPos) -> Result<(), ObjectStoreError> {
        self.change(chunk, |stack| stack.remove(&chunk.y).is_some())
    }

    fn change(&mut self, at: ChunkPos, change: impl FnOnce(&mut Stack) -> bool) -> Result<(), ObjectStoreError> {
        let (stack, is_unwritten) = self.stack(at)?;
        if change(stack) && !std::mem::replace(is_unwritten, true) {
            self.unwritten += 1;
        }
        let is_much = self.unwritten >= MAX_UNWRITTEN || self.unwritten_bytes > self.most_bytes / 16;
        if is_much { self.write(at) } else { Ok(()) }
    }

    /// Writes unwritten chunks, and the index, so that the cache opens quickly. If the cache is full, chunks near
    /// `center` are kept. Call this when idle.
    ///
    /// # Errors
    /// Fails on I/O errors.
    pub fn flush(&mut self, center: ChunkPos) -> Result<(), ObjectStoreError> {
        self.write(center)?;
        self.make_room(0, center)?;
        self.store.write_index()
    }

    /// The size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.store.size()
    }

    fn write(&mut self, center: ChunkPos) -> Result<(), ObjectStoreError> {
        let mut batch = ObjectBatch::default();
        let mut bytes = 0;
        for (at, (stack, is_unwritten)) in self.held.iter_mut().filter(|(_, (_, is_unwritten))| *is_unwritten) {
            *is_unwritten = false;
            let key = key(*at);
            let Some(version) = stack.values().map(|chunk| chunk.version).max() else {
                batch.delete(key);
                continue;
            };
            let value = put_value(vec![FORMAT], stack);
            // An upper bound, in blocks with their trailers.
            bytes += (value.len() as u64 / 3_500 + 1) * FILE_BLOCK_BYTES as u64;
            batch.write(key, version, value);
        }
        (self.unwritten, self.unwritten_bytes) = (0, 0);
        if !batch.is_empty() {
            self.make_room(bytes, center)?;
            self.store.apply(&batch)?;
        }
        Ok(())
    }

    /// Removes the farthest objects until there is room for this many bytes.
    fn make_room(&mut self, bytes: u64, center: ChunkPos) -> Result<(), ObjectStoreError> {
        let used = self.store.size().saturating_sub(self.store.free_space());
        if used.saturating_add(bytes) > self.most_bytes {
            // Some more, so that this does not happen with each write.
            let goal = (self.most_bytes - self.most_bytes / 8).saturating_sub(bytes);
            let mut stacks: Vec<(u128, &str)> = Vec::new();
            for (key, _) in self.store.with_prefix("stack/") {
                let distance = |(x, _, z)| ColumnPos::new(x, z).distance_squared(center.column());
                stacks.push((parse_key(key).map_or(u128::MAX, distance), key));
            }
            stacks.sort_unstable_by(|a, b| b.cmp(a));
            // The size of an object is only known after its removal, so this assumes the average.
            let average = used / (stacks.len() as u64).max(1);
            let farthest = used.saturating_sub(goal).div_ceil(average.max(1)) as usize;
            let mut gone = ObjectBatch::default();
            for (_, key) in stacks.iter().take(farthest) {
                gone.delete(*key);
            }
            if !gone.is_empty() {
                self.store.apply(&gone)?;
            }
        }
        Ok(())
    }

    /// The stack that contains a chunk, read if it is not in memory.
    fn stack(&mut self, chunk: ChunkPos) -> Result<&mut (Stack, bool), ObjectStoreError> {
        let at = (chunk.x, chunk.y >> STACK_SHIFT, chunk.z);
        if !self.held.contains_key(&at) {
            let stack = match self.store.read(&key(at)) {
                Ok(object) => object.and_then(|object| decode(&object.data)).unwrap_or_default(),
                Err(ObjectStoreError::Damaged { .. }) => Stack::new(),
                Err(error) => return Err(error),
            };
            // Clients ask for near chunks first, column by column, so older stacks are no longer needed.
            if self.held.len() >= MAX_HELD {
                self.held.retain(|_, (_, is_unwritten)| *is_unwritten);
            }
            self.held.insert(at, (stack, false));
        }
        Ok(self.held.entry(at).or_default())
    }
}

fn key((x, y, z): StackPos) -> String {
    format!("stack/{x},{y},{z}")
}

fn parse_key(key: &str) -> Option<StackPos> {
    let mut parts = key.strip_prefix("stack/")?.split(',').map(str::parse);
    let (x, y, z) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    parts.next().is_none().then_some((x, y, z))
}

fn decode(bytes: &[u8]) -> Option<Stack> {
    let (&FORMAT, rest) = bytes.split_first()? else { return None };
    bytes::value(rest).ok()
}
