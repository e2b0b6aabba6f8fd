//! The binary format of a chunk and of a cluster of chunks, version 1. `docs/chunk-format.md` describes it completely.
//!
//! All integers are little-endian, bits come least significant first, and offsets count from the chunk's first byte.
//!
//! | part | content |
//! |---|---|
//! | header | `u64` each: format version, component offset, entity offset, layered block count, palette count |
//! | palette | a `u64` [`BlockId`](crate::block::BlockId) for each local id |
//! | blocks | 4,096 local ids of `b = ceil(log2(palette count))` bits, x slowest, then y, then z |
//! | layers | 12 bits x-y-z and `b` bits of local id for each block above layer 0 |
//! | components | a `u64` [`BlockComponentId`](crate::block::BlockComponentId) and an array for each |
//! | entities | `u64` count, then that many 16-byte UUIDs |
//!
//! The order of a component array follows from the blocks, by a [`BlockLayout`](crate::block::BlockLayout).

pub mod cluster;
mod component_array;
mod decode;
mod encode;
mod encoded_chunk;
#[cfg(test)]
mod tests;

pub(super) use component_array::element_slots;
pub use decode::decode;
pub(super) use encode::check_components;
pub use encode::encode;
pub use encoded_chunk::EncodedChunk;

use crate::bytes::{self, ReadError};
use thiserror::Error;

/// The version that is written.
pub const FORMAT_VERSION: u64 = 1;

const COMPONENT_OFFSET_AT: usize = 8;
const ENTITY_OFFSET_AT: usize = 16;
const LAYERED_BLOCK_COUNT_AT: usize = 24;
const PALETTE_COUNT_AT: usize = 32;
const HEADER_BYTES: usize = 40;
const PALETTE_ENTRY_BYTES: usize = 8;
/// The bits of an entry of the layers that hold the cell.
const CELL_BITS: u32 = 12;
const UUID_BYTES: usize = 16;

/// The bytes of a part, checked to be complete.
fn part<'a>(bytes: &'a [u8], offset: usize, length: u128, part: &'static str) -> Result<&'a [u8], ChunkFormatError> {
    let rest = bytes.get(offset..).unwrap_or_default();
    let in_rest = usize::try_from(length).ok().and_then(|length| rest.get(..length));
    let truncated = || format!("expected {length} bytes of {part}, found {}", rest.len());
    in_rest.ok_or_else(|| ChunkFormatError::damage(offset, truncated()))
}

/// The caller has checked that there are 8 bytes.
fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    bytes::u64_at(bytes, offset).unwrap_or_default()
}

/// The error for bytes that are not a readable chunk, cluster of chunks or summary.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChunkFormatError {
    /// The bytes have a format version that this crate cannot read.
    #[error("byte 0: expected format version {FORMAT_VERSION}, found {found}")]
    Version {
        /// The version found.
        found: u64,
    },
    /// The bytes violate the format.
    #[error("byte {at}: {what}")]
    Damage {
        /// The offset of the fault in bytes.
        at: usize,
        /// The expected and the found content.
        what: String,
    },
}

impl ChunkFormatError {
    #[cold]
    pub(in crate::chunk) fn damage(at: usize, what: impl Into<String>) -> Self {
        Self::Damage { at, what: what.into() }
    }
}

impl From<ReadError> for ChunkFormatError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Truncated { offset } => Self::damage(offset, "expected more bytes, found the end"),
            ReadError::TooLong { offset } => Self::damage(offset, "expected a number of 64 bits or less"),
        }
    }
}
