//! [`ChunkFormatError`].

use super::FORMAT_VERSION;
use crate::bytes::ReadError;
use thiserror::Error;

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
