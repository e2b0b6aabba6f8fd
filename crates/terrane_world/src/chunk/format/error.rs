//! What can be wrong with the bytes of a chunk.

use super::FORMAT_VERSION;
use crate::bytes::ReadError;
use thiserror::Error;

/// Why bytes are not a chunk, a cluster of chunks or a summary that can be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChunkFormatError {
    /// They have another version of their format, which this crate cannot read.
    #[error("byte 0: expected format version {FORMAT_VERSION}, found {found}")]
    Version {
        /// The version found.
        found: u64,
    },
    /// They are not what the format says.
    #[error("byte {at}: {what}")]
    Damage {
        /// Where, in bytes from the first one.
        at: usize,
        /// What was expected there, and what was found.
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
