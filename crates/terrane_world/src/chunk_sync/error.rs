//! What can be wrong with a message.

use thiserror::Error;

/// A message that is not one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SyncError {
    /// The other side speaks another version.
    #[error("the message has format {found}, but only format {known} is known")]
    Format {
        /// That of the message.
        found: u8,
        /// That of this crate.
        known: u8,
    },
    /// Its bytes make no sense.
    #[error("the message cannot be read: {reason}")]
    Malformed {
        /// Why.
        reason: String,
    },
    /// It is larger than a message may be, before or after it is decompressed.
    #[error("the message has more than {limit} bytes")]
    TooLarge {
        /// Bytes at the most.
        limit: usize,
    },
    /// A client says something before it was told what it must know.
    #[error("the message comes before the server has said anything")]
    Early,
}
