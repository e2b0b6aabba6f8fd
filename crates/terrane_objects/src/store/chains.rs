//! Reads chains of blocks, and writes them to free blocks.

use super::{Entry, ObjectStore, Result};
use crate::Disk;
use crate::block::{self, FILE_BLOCK_BYTES, Kind, Trailer};
use crate::work::FileError;

/// The maximum number of blocks that are read or written at a time.
const MAX_AT_ONCE: usize = 1_024;

/// The number of blocks for this many bytes, if data of the first one begins at `start`.
pub(super) fn blocks_of(key: &str, bytes: usize, start: usize) -> u64 {
    let rest = bytes.saturating_sub(block::capacity(key, start));
    1 + rest.div_ceil(block::capacity(key, 0)) as u64
}

impl<D: Disk> ObjectStore<D> {
    pub(super) fn read_chain(&self, key: &str, entry: &Entry) -> Result<Vec<u8>> {
        let Entry { version, first, blocks, counter, .. } = *entry;
        let mut payload = Vec::new();
        for at_once in (0..blocks).step_by(MAX_AT_ONCE) {
            let (begin, count) = (payload.len(), (blocks - at_once).min(MAX_AT_ONCE as u64) as usize);
            payload.resize(begin + count * FILE_BLOCK_BYTES, 0);
            let read = self.disk.read_at((first + at_once) * FILE_BLOCK_BYTES as u64, &mut payload[begin..]);
            read.map_err(FileError::of(self.disk.path(), "read"))?;
            // Moves the data to its final place in the buffer.
            let mut end = begin;
            for place in 0..count {
                let (sequence, offset) = (at_once + place as u64, begin + place * FILE_BLOCK_BYTES);
                let damaged = |reason| self.damaged(key, first + sequence, reason);
                let (block, _) = payload[offset..].split_first_chunk().ok_or_else(|| damaged("it is not there"))?;
                if block::is_free(block) {
                    return Err(damaged("the block is empty"));
                }
                let (found, data) =
                    block::decode(block, 0).ok_or_else(|| damaged("the checksum of the block is wrong"))?;
                let is_object = matches!(found.kind, Kind::Object | Kind::BatchObject);
                let is_same = (found.key, found.version, found.counter) == (key, version, counter);
                if !is_object || !is_same || u64::from(found.sequence) != sequence {
                    return Err(damaged("the block belongs to something else"));
                }
                if found.next != (sequence + 1 < blocks).then_some(first + sequence + 1) {
                    return Err(damaged("the next block is another one"));
                }
                let length = data.len();
                payload.copy_within(offset..offset + length, end);
                end += length;
            }
            payload.truncate(end);
        }
        Ok(payload)
    }

    /// Writes a chain to free blocks. After an error, the written part is never valid.
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
        let mut buffer = vec![0; (blocks as usize).min(MAX_AT_ONCE) * FILE_BLOCK_BYTES];
        let mut parts = payload.chunks(capacity).chain(payload.is_empty().then_some(payload));
        self.is_synced = false;
        for at_once in (0..blocks).step_by(MAX_AT_ONCE) {
            let count = (blocks - at_once).min(MAX_AT_ONCE as u64) as usize;
            for (place, block) in buffer.as_chunks_mut::<FILE_BLOCK_BYTES>().0[..count].iter_mut().enumerate() {
                let sequence = at_once + place as u64;
                let next = (sequence + 1 < blocks).then_some(first + sequence + 1);
                let trailer = Trailer { kind, key, version, counter, next, sequence: sequence as u32 };
                block::encode(block, 0, &trailer, parts.next().unwrap_or_default());
            }
            let offset = (first + at_once) * FILE_BLOCK_BYTES as u64;
            if let Err(error) = self.disk.write_at(offset, &buffer[..count * FILE_BLOCK_BYTES]) {
                self.discard(&[(first, blocks)]);
                return Err(FileError::of(self.disk.path(), "write")(error).into());
            }
        }
        Ok(Entry { version, first, blocks, counter, in_batch: false })
    }

    /// Allocates adjacent free blocks.
    pub(super) fn allocate(&mut self, blocks: u64) -> u64 {
        self.index.free.take(blocks).unwrap_or_else(|| {
            self.index.blocks += blocks;
            self.index.blocks - blocks
        })
    }
}
