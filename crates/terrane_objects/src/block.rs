//! Blocks: data, followed by a trailer that identifies its owner.
//!
//! | bytes | content |
//! |---|---|
//! | from the start | data; in block 0 it begins after the signature's line |
//! | .. 4058 | the key |
//! | 4058 | 0 |
//! | 4059 | kind: 1 index, 2 object, 3 object of a batch, 4 commit of a batch; 0 if the block is free |
//! | 4060..4062 | `u16` length of the key in bytes |
//! | 4062..4064 | `u16` length of the data in bytes |
//! | 4064..4072 | `u64` version of the object |
//! | 4072..4080 | `u64` counter: higher for later writes |
//! | 4080..4088 | `i64` the next block of the chain, -1 in the last block |
//! | 4088..4092 | `u32` place in the chain, from 0 |
//! | 4092..4096 | `u32` CRC-32 of all bytes before it; in block 0 without the signature's line |
//!
//! All integers are little-endian. A block is free if all bytes from 4058 on are 0.

use crate::bytes::{u32_at, u64_at};

/// The size of a block in bytes.
pub const FILE_BLOCK_BYTES: usize = 4_096;
/// The maximum size of a key in bytes.
pub const MAX_KEY_BYTES: usize = 512;

/// The start of the fixed part of the trailer.
const FIXED: usize = 4_058;
const CHECKSUM: usize = FILE_BLOCK_BYTES - 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Index = 1,
    Object = 2,
    BatchObject = 3,
    Commit = 4,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer<'a> {
    pub kind: Kind,
    pub key: &'a str,
    pub version: u64,
    pub counter: u64,
    pub next: Option<u64>,
    pub sequence: u32,
}

/// The number of bytes of data in a block of a chain with this key, if data begins at `start`.
pub(super) const fn capacity(key: &str, start: usize) -> usize {
    FIXED - key.len() - start
}

/// Fills a block. The key and the data must fit.
pub(super) fn encode(block: &mut [u8; FILE_BLOCK_BYTES], start: usize, trailer: &Trailer<'_>, data: &[u8]) {
    let Trailer { kind, key, version, counter, next, sequence } = *trailer;
    block[start..].fill(0);
    block[start..start + data.len()].copy_from_slice(data);
    block[FIXED - key.len()..FIXED].copy_from_slice(key.as_bytes());
    block[FIXED + 1] = kind as u8;
    block[4_060..4_062].copy_from_slice(&(key.len() as u16).to_le_bytes());
    block[4_062..4_064].copy_from_slice(&(data.len() as u16).to_le_bytes());
    block[4_064..4_072].copy_from_slice(&version.to_le_bytes());
    block[4_072..4_080].copy_from_slice(&counter.to_le_bytes());
    block[4_080..4_088].copy_from_slice(&next.map_or(-1, |next| next as i64).to_le_bytes());
    block[4_088..CHECKSUM].copy_from_slice(&sequence.to_le_bytes());
    let checksum = crc32fast::hash(&block[start..CHECKSUM]);
    block[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
}

pub(super) fn is_free(block: &[u8; FILE_BLOCK_BYTES]) -> bool {
    block[FIXED..].iter().all(|byte| *byte == 0)
}

/// The content of a block, if data begins at `start`; `None` if its checksum is wrong or its trailer is invalid.
pub(super) fn decode(block: &[u8; FILE_BLOCK_BYTES], start: usize) -> Option<(Trailer<'_>, &[u8])> {
    if u32_at(block, CHECKSUM) != Some(crc32fast::hash(&block[start..CHECKSUM])) {
        return None;
    }
    let kind = match block[FIXED + 1] {
        1 => Kind::Index,
        2 => Kind::Object,
        3 => Kind::BatchObject,
        4 => Kind::Commit,
        _ => return None,
    };
    let [key_length, length] = [4_060, 4_062].map(|at| usize::from(u16::from_le_bytes([block[at], block[at + 1]])));
    if key_length > MAX_KEY_BYTES || start + length + key_length > FIXED {
        return None;
    }
    let key = str::from_utf8(&block[FIXED - key_length..FIXED]).ok()?;
    let next = match u64_at(block, 4_080)? as i64 {
        -1 => None,
        next => Some(u64::try_from(next).ok()?),
    };
    let (version, counter, sequence) = (u64_at(block, 4_064)?, u64_at(block, 4_072)?, u32_at(block, 4_088)?);
    Some((Trailer { kind, key, version, counter, next, sequence }, &block[start..start + length]))
}

/// The offset and length of the part of a block that marks it as free when it is zero.
pub(super) const fn mark() -> (usize, usize) {
    (FIXED, FILE_BLOCK_BYTES - FIXED)
}
