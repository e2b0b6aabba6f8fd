//! [`ObjectStoreError`].

use super::MAX_KEY_BYTES;
use crate::work::FileError;
use std::path::PathBuf;
use thiserror::Error;

/// The maximum length of a signature.
pub(super) const MAX_SIGNATURE_BYTES: usize = 256;

/// The error of an operation on an object store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ObjectStoreError {
    /// An I/O operation failed, for instance because the disk is full or a new file already exists. The
    /// store continues with its previous content.
    #[error(transparent)]
    Io(#[from] FileError),
    /// The file does not begin with a signature.
    #[error("{} is not an object store: {reason}", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// The fault at its beginning.
        reason: &'static str,
    },
    /// The file has another kind or another version.
    #[error("{}: expected the signature {expected:?}, found {found:?}", path.display())]
    Signature {
        /// The file.
        path: PathBuf,
        /// The requested signature.
        expected: String,
        /// The signature of the file.
        found: String,
    },
    /// Another process or store has the file open for writing, or has it open when it is to be written.
    #[error("{} is in use elsewhere", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The store was opened read-only.
    #[error("{} was opened read-only", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The signature is invalid.
    #[error("{signature:?} is not a signature: expected a line of 1 to {} bytes", MAX_SIGNATURE_BYTES)]
    InvalidSignature {
        /// The signature.
        signature: String,
    },
    /// The key is invalid.
    #[error("a key has 1 to {MAX_KEY_BYTES} bytes, but this one has {length}")]
    Key {
        /// The key's length in bytes.
        length: usize,
    },
    /// The file's last write already has the highest possible counter.
    #[error("{}: the counter of writes is exhausted", path.display())]
    Exhausted {
        /// The file.
        path: PathBuf,
    },
    /// An object to be written exceeds the limit of the options.
    #[error("{key:?}: expected {limit} bytes or less, found {found}")]
    TooLarge {
        /// The object's key.
        key: String,
        /// The limit.
        limit: u64,
        /// The object's size.
        found: u64,
    },
    /// An object is damaged.
    #[error("{}: {key:?} is damaged in block {block}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The object's key.
        key: String,
        /// The block.
        block: u64,
        /// The fault.
        reason: String,
    },
}

impl ObjectStoreError {
    /// Returns `true` if the file is damaged.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::NotAStore { .. } | Self::Damaged { .. } | Self::Exhausted { .. })
    }
}
