//! Reads, writes and rebuilds the index in the file.

use super::chains::blocks_of;
use super::{ObjectStore, Result};
use crate::block::{self, FILE_BLOCK_BYTES, Kind, Trailer};
use crate::index::{self, Index};
use crate::work::FileError;
use crate::{Disk, payload, recovery};

/// The compression level of the index: it is written often, and higher levels hardly make its numbers smaller.
const LEVEL: u32 = 3;

impl<D: Disk> ObjectStore<D> {
    /// The index in the file and its blocks, if it is complete and consistent.
    pub(super) fn stored_index(&self, first: &[u8; FILE_BLOCK_BYTES]) -> Option<(Index, Vec<u64>)> {
        let (payload, chain) = self.read_index_chain(first)?;
        let index = Index::decode(&payload::decode(payload, index::most_bytes(self.index.blocks)).ok()?)?;
        // Adding blocks makes the index invalid first.
        (index.blocks <= self.index.blocks && index.is_disjoint(&chain)).then_some((index, chain))
    }

    /// Rebuilds the index from the existing blocks. `keeps_torn` decides whether complete objects of an incomplete
    /// batch count.
    pub(super) fn recover(&mut self, blocks: u64, keeps_torn: bool) -> Result<()> {
        let found = recovery::scan(&self.disk, self.start, blocks, self.options.most_bytes, keeps_torn)?;
        let (index, stale, recovery) = found;
        // Block 0 may be incomplete.
        self.index = Index { blocks: self.index.blocks, ..index };
        let mut used: Vec<(u64, u64)> = self.index.runs().chain(stale.iter().copied()).collect();
        used.sort_unstable();
        let mut end = 1;
        for (first, blocks) in used.into_iter().chain([(self.index.blocks, 0)]) {
            self.index.free.give(end, first.saturating_sub(end));
            end = end.max(first + blocks);
        }
        self.recovery = Some(recovery);
        // They must not reappear when their replacements are deleted.
        self.to_discard = stale;
        Ok(())
    }

    /// The bytes of the index and its blocks, if it is complete. `first` is block 0; the others may be anywhere.
    fn read_index_chain(&self, first: &[u8; FILE_BLOCK_BYTES]) -> Option<(Vec<u8>, Vec<u64>)> {
        let (Trailer { counter, mut next, sequence: 0, .. }, data) = part_of_index(first, self.start)? else {
            return None;
        };
        let (mut payload, mut chain) = (data.to_vec(), vec![0]);
        while let Some(at) = next {
            // A chain that returns to a block would never end.
            if chain.len() as u64 >= self.index.blocks || at >= self.index.blocks {
                return None;
            }
            let mut block = [0; FILE_BLOCK_BYTES];
            self.disk.read_at(at * FILE_BLOCK_BYTES as u64, &mut block).ok()?;
            let (found, data) = part_of_index(&block, 0)?;
            if found.counter != counter || u64::from(found.sequence) != chain.len() as u64 {
                return None;
            }
            payload.extend_from_slice(data);
            chain.push(at);
            next = found.next;
        }
        Some((payload, chain))
    }

    /// Writes the index, so that opening the store again needs no scan. Call this when idle; [`close`](Self::close)
    /// does it too.
    ///
    /// # Errors
    /// Fails on I/O errors. Earlier writes are not affected.
    pub fn write_index(&mut self) -> Result<()> {
        if self.is_index_written || !self.is_writable {
            return Ok(());
        }
        self.discard_pending()?;
        self.quiesce()?;
        // Failed writes at the end may have left the file shorter.
        let length = self.disk.len().map_err(FileError::of(self.disk.path(), "measure"))?;
        self.index.blocks = self.index.free.cut(length / FILE_BLOCK_BYTES as u64, self.index.blocks);
        let counter = self.next_counter()?;
        let payload = self.encoded_index();
        self.write_index_chain(counter, &payload)?;
        (self.is_synced, self.is_index_written) = (true, true);
        Ok(())
    }

    /// The encoded index, after extending its chain to the required length.
    fn encoded_index(&mut self) -> Vec<u8> {
        // The chain of the index changes the free blocks, and so the index itself.
        loop {
            let payload = payload::encode(&mut None, LEVEL, &self.index.encode());
            let wanted = blocks_of("", payload.len(), self.start);
            if wanted <= self.chain.len() as u64 {
                return payload;
            }
            while (self.chain.len() as u64) < wanted {
                let block = self.allocate(1);
                self.chain.push(block);
            }
        }
    }

    fn write_index_chain(&mut self, counter: u64, payload: &[u8]) -> Result<()> {
        let mut rest = payload;
        let mut blocks = Vec::with_capacity(self.chain.len());
        // A chain that has become shorter keeps its blocks, with empty ones at the end.
        for (sequence, at) in self.chain.iter().enumerate() {
            let start = if *at == 0 { self.start } else { 0 };
            let (part, behind) = rest.split_at(rest.len().min(block::capacity("", start)));
            rest = behind;
            let next = self.chain.get(sequence + 1).copied();
            let trailer = Trailer { kind: Kind::Index, key: "", version: 0, counter, next, sequence: sequence as u32 };
            let mut block = [0; FILE_BLOCK_BYTES];
            block::encode(&mut block, start, &trailer, part);
            blocks.push((*at, start, block));
        }
        debug_assert!(rest.is_empty());
        let failed = FileError::of(self.disk.path(), "write");
        self.is_synced = false;
        for (at, start, block) in blocks.iter().skip(1) {
            self.disk.write_at(at * FILE_BLOCK_BYTES as u64 + *start as u64, &block[*start..]).map_err(&failed)?;
        }
        self.disk.sync().map_err(&failed)?;
        // This write makes the index valid. It leaves the signature's line unchanged.
        if let Some((at, start, block)) = blocks.first() {
            self.disk.write_at(at * FILE_BLOCK_BYTES as u64 + *start as u64, &block[*start..]).map_err(&failed)?;
        }
        Ok(self.disk.sync().map_err(&failed)?)
    }
}

fn part_of_index(block: &[u8; FILE_BLOCK_BYTES], start: usize) -> Option<(Trailer<'_>, &[u8])> {
    block::decode(block, start).filter(|(found, _)| found.kind == Kind::Index)
}
