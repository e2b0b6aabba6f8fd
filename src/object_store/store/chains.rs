//! Chains of blocks: read, and written to where nothing is.

use super::{Entry, ObjectStore, Result};
use crate::object_store::Disk;
use crate::object_store::block::{self, BLOCK_SIZE, Content, Kind, Trailer};
use crate::object_store::error::failed;

/// Blocks that are read or written at a time.
const MOST_AT_ONCE: usize = 1_024;

/// What the blocks of a chain must say.
pub(super) struct Chain<'a> {
    /// `None` for an object, of a batch or not.
    pub(super) kind: Option<Kind>,
    pub(super) key: &'a str,
    pub(super) version: u64,
    pub(super) counter: u64,
    pub(super) first: u64,
    pub(super) blocks: u64,
}

/// Blocks that so many bytes take, if data of the first one begins at `start`.
pub(super) fn blocks_of(key: &str, bytes: usize, start: usize) -> u64 {
    let rest = bytes.saturating_sub(block::capacity(key, start));
    1 + rest.div_ceil(block::capacity(key, 0)) as u64
}

impl<D: Disk> ObjectStore<D> {
    /// The bytes of a chain, and its blocks. If so many blocks may be in it, it is followed to its end; else it must have as many
    /// as it says.
    pub(super) fn read_chain(&self, chain: &Chain<'_>, most: Option<u64>) -> Result<(Vec<u8>, Vec<u64>)> {
        let Chain { kind, key, version, counter, first, blocks } = *chain;
        let read = failed(self.disk.path(), "read");
        // Mostly the blocks follow each other.
        let at_once = blocks.min(MOST_AT_ONCE as u64);
        let mut run = vec![0; at_once as usize * BLOCK_SIZE];
        let (mut run_first, mut payload, mut visited) = (first, Vec::with_capacity(run.len()), Vec::new());
        self.disk.read_at(first * BLOCK_SIZE as u64, &mut run).map_err(&read)?;
        let (mut next, limit) = (Some(first), most.unwrap_or(blocks));
        while let Some(at) = next {
            if visited.len() as u64 >= limit || at >= self.blocks {
                return Err(self.damaged(key, at, "its blocks have no end"));
            }
            if !(run_first..run_first + (run.len() / BLOCK_SIZE) as u64).contains(&at) {
                let left = (limit - visited.len() as u64).min(MOST_AT_ONCE as u64).min(self.blocks - at);
                run.resize(if most.is_some() { BLOCK_SIZE } else { left as usize * BLOCK_SIZE }, 0);
                run_first = at;
                self.disk.read_at(at * BLOCK_SIZE as u64, &mut run).map_err(&read)?;
            }
            let (of_run, _) = run.as_chunks::<BLOCK_SIZE>();
            let start = if at == 0 { self.start } else { 0 };
            match block::decode(&of_run[(at - run_first) as usize], start) {
                Content::Free => return Err(self.damaged(key, at, "the block is empty")),
                Content::Damaged => return Err(self.damaged(key, at, "the checksum of the block is wrong")),
                Content::Part(found, data) => {
                    let is_kind = match kind {
                        Some(kind) => found.kind == kind,
                        None => matches!(found.kind, Kind::Object | Kind::BatchObject),
                    };
                    let is_same = (found.key, found.version, found.counter) == (key, version, counter);
                    if !is_kind || !is_same || u64::from(found.sequence) != visited.len() as u64 {
                        return Err(self.damaged(key, at, "the block belongs to something else"));
                    }
                    payload.extend_from_slice(data);
                    visited.push(at);
                    next = found.next;
                }
            }
        }
        match most.is_some() || visited.len() as u64 == blocks {
            true => Ok((payload, visited)),
            false => Err(self.damaged(key, first, "it ends too early")),
        }
    }

    /// Writes a chain to where nothing is. What is there of it after an error never counts.
    pub(super) fn write_chain(
        &mut self,
        kind: Kind,
        key: &str,
        (version, counter): (u64, u64),
        payload: &[u8],
    ) -> Result<Entry> {
        let capacity = block::capacity(key, 0);
        let blocks = blocks_of(key, payload.len(), 0);
        let first = self.allocate(blocks);
        let mut buffer = vec![0; (blocks as usize).min(MOST_AT_ONCE) * BLOCK_SIZE];
        let mut parts = payload.chunks(capacity).chain(payload.is_empty().then_some(payload));
        self.is_synced = false;
        for at_once in (0..blocks).step_by(MOST_AT_ONCE) {
            let count = (blocks - at_once).min(MOST_AT_ONCE as u64) as usize;
            for (place, block) in buffer.as_chunks_mut::<BLOCK_SIZE>().0[..count].iter_mut().enumerate() {
                let sequence = at_once + place as u64;
                let next = (sequence + 1 < blocks).then_some(first + sequence + 1);
                let trailer = Trailer { kind, key, version, counter, next, sequence: sequence as u32 };
                block::encode(block, 0, &trailer, parts.next().unwrap_or_default());
            }
            let offset = (first + at_once) * BLOCK_SIZE as u64;
            if let Err(error) = self.disk.write_at(offset, &buffer[..count * BLOCK_SIZE]) {
                self.haunt(&[(first, blocks)]);
                return Err(failed(self.disk.path(), "write")(error));
            }
        }
        Ok(Entry { version, first, blocks, counter, in_batch: false })
    }

    /// Blocks in a row that nobody needs.
    pub(super) fn allocate(&mut self, blocks: u64) -> u64 {
        self.free.take(blocks).unwrap_or_else(|| {
            self.blocks += blocks;
            self.blocks - blocks
        })
    }
}
