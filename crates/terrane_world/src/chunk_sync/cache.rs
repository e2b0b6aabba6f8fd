//! What a client remembers of chunks until it comes again, in an object store.

use crate::bytes::{self, put_value};
use crate::space::{ChunkPos, ColumnPos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use terrane_objects::{FILE_BLOCK_BYTES, ObjectBatch, ObjectStore, ObjectStoreError, ObjectStoreOptions};

/// The signature of a cache's file.
const CACHE_SIGNATURE: &str = "bevy_terrane chunk cache 1";

/// The key of the server's first message.
const ABOUT: &str = "about";
/// Chunks of a column that are kept in one object.
const STACK_SHIFT: u32 = 4;
/// Stacks that are held in memory.
const MAX_HELD: usize = 256;
/// With so many that are not written, they are.
const MAX_UNWRITTEN: usize = 128;
/// Bytes that a cache may take in any case.
const LEAST_BYTES: u64 = 1 << 20;
/// The format of a stack.
const FORMAT: u8 = 1;

/// A chunk in a cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedChunk {
    /// Its version on the server.
    pub version: u64,
    /// Its bytes, in the chunk format.
    pub bytes: Vec<u8>,
}

/// Up to 16 chunks of a column, one over the other.
type Stack = BTreeMap<i64, CachedChunk>;
/// x, y >> 4 and z.
type StackPos = (i64, i64, i64);

/// What a client remembers of one dimension of one server: an object store of a bounded size.
///
/// The object `about` is the server's first message. `stack/x,y,z` has the chunks `16 * y` to `16 * y + 15` of the column x, z: a
/// byte 1, then in postcard a map of their heights to versions and bytes; its version is the highest of theirs. What is farthest
/// goes first when there is no more room.
///
/// A crash loses what was not written yet; of a cache that is only asked for again. It blocks on the disk: whoever has frames
/// to draw gives it a worker of its own.
#[derive(Debug)]
pub struct ChunkCache {
    store: ObjectStore,
    most_bytes: u64,
    /// Stacks in memory, each with whether it is to be written.
    held: BTreeMap<StackPos, (Stack, bool)>,
    /// Stacks that are not written, and about the bytes of them.
    unwritten: usize,
    unwritten_bytes: u64,
}

/// How the object store of a cache is written: it may lose what is new.
fn options() -> ObjectStoreOptions {
    ObjectStoreOptions { sync: false, zero_freed: false, ..ObjectStoreOptions::default() }
}

impl ChunkCache {
    /// The cache in this file, made with its folder if there is none. Its file takes about `most_bytes` at the most,
    /// and at least 1 MiB. If it is larger, from when it was allowed to be, it gets smaller with the first
    /// [`flush`](Self::flush) and the opening after.
    ///
    /// # Errors
    /// A file that is no cache, or is in use; what the system says.
    pub fn open(path: impl AsRef<Path>, most_bytes: u64) -> Result<Self, ObjectStoreError> {
        let path = path.as_ref();
        if let Some(folder) = path.parent() {
            // If that fails, so does what follows, and says why.
            let _ = fs::create_dir_all(folder);
        }
        let store = match path.try_exists() {
            Ok(false) => ObjectStore::create(path, CACHE_SIGNATURE, options()),
            _ => ObjectStore::open(path, CACHE_SIGNATURE, options()),
        };
        let mut store = store?;
        // What it had when it might be larger is gone, but for its room.
        if store.size() > most_bytes.max(LEAST_BYTES) && store.free_space() > store.size() / 4 {
            // What is damaged keeps it as large as it is.
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

    /// The server's first message.
    pub(super) fn about(&mut self) -> Result<Option<Vec<u8>>, ObjectStoreError> {
        match self.store.read(ABOUT) {
            Ok(about) => Ok(about.map(|object| object.data)),
            // Nobody knows what the numbers in its chunks mean.
            Err(ObjectStoreError::Damaged { .. }) => {
                self.store.delete(ABOUT)?;
                self.clear().map(|()| None)
            }
            Err(error) => Err(error),
        }
    }

    /// Remembers the server's first message.
    pub(super) fn set_about(&mut self, message: &[u8]) -> Result<(), ObjectStoreError> {
        self.store.write(ABOUT, 0, message)
    }

    /// Forgets all chunks.
    pub fn clear(&mut self) -> Result<(), ObjectStoreError> {
        self.held.clear();
        (self.unwritten, self.unwritten_bytes) = (0, 0);
        let mut all = ObjectBatch::default();
        for (key, _) in self.store.with_prefix("stack/") {
            all.delete(key);
        }
        self.store.apply(&all)
    }

    /// A chunk, if it is there. What is damaged is not.
    ///
    /// # Errors
    /// What the system says.
    pub fn chunk(&mut self, chunk: ChunkPos) -> Result<Option<&CachedChunk>, ObjectStoreError> {
        Ok(self.stack(chunk)?.0.get(&chunk.y))
    }

    /// Remembers a chunk; it is written with the next ones or with [`flush`](Self::flush).
    ///
    /// # Errors
    /// What the system says.
    pub fn put(&mut self, chunk: ChunkPos, cached: CachedChunk) -> Result<(), ObjectStoreError> {
        self.unwritten_bytes += cached.bytes.len() as u64;
        self.change(chunk, |stack| stack.insert(chunk.y, cached.clone()).as_ref() != Some(&cached))
    }

    /// Forgets a chunk.
    ///
    /// # Errors
    /// What the system says.
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

    /// Writes what is not written yet, and the index, so that the cache opens quickly. `center` is what stays when something
    /// must go. To be called when there is nothing else to do.
    ///
    /// # Errors
    /// What the system says.
    pub fn flush(&mut self, center: ChunkPos) -> Result<(), ObjectStoreError> {
        self.write(center)?;
        self.make_room(0, center)?;
        self.store.write_index()
    }

    /// Bytes of the file.
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
            // At the most, in blocks with their trailers.
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

    /// Has the farthest go until so many more bytes have room.
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
            // What an object takes is known only when it is gone: about as much as the others.
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

    /// The stack that a chunk is in, read if it is not held.
    fn stack(&mut self, chunk: ChunkPos) -> Result<&mut (Stack, bool), ObjectStoreError> {
        let at = (chunk.x, chunk.y >> STACK_SHIFT, chunk.z);
        if !self.held.contains_key(&at) {
            let stack = match self.store.read(&key(at)) {
                Ok(object) => object.and_then(|object| decode(&object.data)).unwrap_or_default(),
                Err(ObjectStoreError::Damaged { .. }) => Stack::new(),
                Err(error) => return Err(error),
            };
            // A client asks for what is near first, column by column: what was asked for before is over.
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

/// What another version wrote is not known.
fn decode(bytes: &[u8]) -> Option<Stack> {
    let (&FORMAT, rest) = bytes.split_first()? else { return None };
    bytes::value(rest).ok()
}
