//! Frees blocks: decides when they can be reused, and ensures that their content never reappears.

use super::{ObjectStore, Result};
use crate::Disk;
use crate::block::{self, FILE_BLOCK_BYTES};
use crate::work::FileError;
use std::mem;

/// The number of blocks that are zeroed at a time.
const AT_ONCE: u64 = 16;
const ZEROS: &[u8] = &[0; AT_ONCE as usize * FILE_BLOCK_BYTES];

impl<D: Disk> ObjectStore<D> {
    /// Frees the blocks of replaced objects after a sync.
    pub(super) fn settle(&mut self) {
        for (first, blocks) in mem::take(&mut self.superseded) {
            self.free_blocks(first, blocks);
        }
        if !self.is_synced {
            return;
        }
        // A commit may list deletes, so the deleted objects must be gone first.
        for counter in mem::take(&mut self.retired) {
            let Some(commit) = self.index.commits.remove(&counter) else { continue };
            self.free_blocks(commit.first, commit.blocks);
        }
    }

    fn free_blocks(&mut self, first: u64, blocks: u64) {
        self.is_synced = false;
        match self.mark_free(first) {
            Ok(()) => self.release(first, blocks),
            Err(_) => self.to_discard.push((first, blocks)),
        }
    }

    pub(super) fn sync_disk(&mut self) -> Result<()> {
        Ok(self.disk.sync().map_err(FileError::of(self.disk.path(), "sync"))?)
    }

    /// Syncs everything and frees all replaced blocks.
    pub(super) fn quiesce(&mut self) -> Result<()> {
        while !self.is_synced || !self.superseded.is_empty() || !self.retired.is_empty() {
            self.sync_disk()?;
            self.is_synced = true;
            self.settle();
        }
        Ok(())
    }

    /// Frees blocks whose first one is marked as free.
    pub(super) fn release(&mut self, first: u64, blocks: u64) {
        if self.options.zero_freed {
            self.is_synced = false;
            // Best effort: the blocks are free in any case, and those beyond the end of the file do not exist.
            let end = self.disk.len().unwrap_or(0) / FILE_BLOCK_BYTES as u64;
            let end = end.min(first + blocks);
            let _ = (first..end).step_by(AT_ONCE as usize).try_for_each(|at| {
                let count = AT_ONCE.min(end - at) as usize;
                self.disk.write_at(at * FILE_BLOCK_BYTES as u64, &ZEROS[..count * FILE_BLOCK_BYTES])
            });
        }
        self.index.free.give(first, blocks);
    }

    pub(super) fn sync_or_discard(&mut self, runs: &[(u64, u64)]) -> Result<()> {
        let synced = self.sync_disk();
        match synced {
            Ok(()) => self.is_synced = true,
            Err(_) => self.discard(runs),
        }
        synced
    }

    /// Marks blocks with unacknowledged writes, which must not reappear later.
    pub(super) fn discard(&mut self, runs: &[(u64, u64)]) {
        self.to_discard.extend_from_slice(runs);
        // If this fails, it is repeated before the next change.
        let _ = self.discard_pending();
    }

    pub(super) fn discard_pending(&mut self) -> Result<()> {
        while let Some((first, blocks)) = self.to_discard.last().copied() {
            self.is_synced = false;
            // Without its first block, a chain is invalid.
            self.mark_free(first)?;
            self.to_discard.pop();
            self.release(first, blocks);
        }
        Ok(())
    }

    /// Makes a block free for a scan of the file.
    pub(super) fn mark_free(&mut self, block: u64) -> Result<()> {
        let (offset, length) = block::mark();
        let is_there =
            self.disk.len().map_err(FileError::of(self.disk.path(), "measure"))? / FILE_BLOCK_BYTES as u64 > block;
        if is_there {
            let written = self.disk.write_at(block * FILE_BLOCK_BYTES as u64 + offset as u64, &ZEROS[..length]);
            written.map_err(FileError::of(self.disk.path(), "write"))?;
        }
        Ok(())
    }
}
