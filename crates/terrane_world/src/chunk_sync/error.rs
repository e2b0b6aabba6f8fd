//! [`SyncError`].

use thiserror::Error;

/// The error for an invalid message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SyncError {
    /// The other side uses another format version.
    #[error("the message has format {found}, but only formats up to {known} are known")]
    Format {
        /// The format version of the message.
        found: u8,
        /// The newest format version that this crate knows.
        known: u8,
    },
    /// The bytes of the message are invalid.
    #[error("the message cannot be read: {reason}")]
    Malformed {
        /// The reason.
        reason: String,
    },
    /// The message is too large, before or after decompression.
    #[error("the message has more than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// A client sent a message before it got the server's first one.
    #[error("the message arrived before the server's first one")]
    Early,
}
