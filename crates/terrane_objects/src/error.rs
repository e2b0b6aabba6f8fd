//! What can go wrong with an object store, and where.

use super::MAX_KEY_BYTES;
use crate::work::FileError;
use std::path::PathBuf;
use thiserror::Error;

/// Why something could not be done with an object store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ObjectStoreError {
    /// The system refused, for instance because the disk is full, or a new file is there already. The store goes on with what it had.
    #[error(transparent)]
    Io(#[from] FileError),
    /// The file does not begin with a signature.
    #[error("{} is no object store: {reason}", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What is wrong with its beginning.
        reason: &'static str,
    },
    /// The file is of another kind, or of another version of it.
    #[error("{}: expected the signature {expected:?}, found {found:?}", path.display())]
    Signature {
        /// The file.
        path: PathBuf,
        /// The signature that was asked for.
        expected: String,
        /// The one that it has.
        found: String,
    },
    /// Somebody else writes to the file, or reads it while it is to be written.
    #[error("{} is in use elsewhere", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// It was opened only to be read.
    #[error("{} was opened only to be read", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// A signature that cannot be one.
    #[error("{signature:?} is no signature: expected a line of 1 to {} bytes", super::file::MAX_SIGNATURE_BYTES)]
    InvalidSignature {
        /// The signature.
        signature: String,
    },
    /// A key that cannot be one.
    #[error("a key has 1 to {MAX_KEY_BYTES} bytes, and this one has {length}")]
    Key {
        /// Its bytes.
        length: usize,
    },
    /// The file says that its last write has the highest counter that there is.
    #[error("{}: no counter is left for another write", path.display())]
    Exhausted {
        /// The file.
        path: PathBuf,
    },
    /// An object that is to be written is larger than the options allow.
    #[error("{key:?}: expected {limit} bytes or less, found {found}")]
    TooLarge {
        /// The object.
        key: String,
        /// The limit.
        limit: u64,
        /// How many there are.
        found: u64,
    },
    /// An object is not what was written.
    #[error("{}: {key:?} is damaged in block {block}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The object.
        key: String,
        /// The block.
        block: u64,
        /// What is wrong with it.
        reason: String,
    },
}

impl ObjectStoreError {
    /// Whether the file is damaged: it does not hold what was written.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::NotAStore { .. } | Self::Damaged { .. } | Self::Exhausted { .. })
    }
}
