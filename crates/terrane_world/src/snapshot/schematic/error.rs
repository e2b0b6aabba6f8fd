//! [`SchematicError`].

use super::nbt::FILE;
use std::io;
use thiserror::Error;

/// The approximate number of bytes of a text that a message quotes.
const LONGEST_QUOTE: usize = 256;
/// Replaces the rest of a text.
pub(super) const REST: &str = "...";

/// The error for a file that cannot be read as a schematic, or a schematic that cannot be written.
///
/// `at` is the place: the path of names to the value, after the offset of its byte in the uncompressed data if a file
/// is read, as in `byte 17: Schematic.Width`. A message consists of printable characters and has at most 1 KiB,
/// whatever the file contains.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchematicError {
    /// The file could not be read or written.
    #[error("{at}: {message}")]
    Io {
        /// The value that was being read or written.
        at: String,
        /// The kind of failure.
        kind: io::ErrorKind,
        /// The system's message.
        message: String,
    },
    /// The file begins neither with gzip nor with a compound, so it is not a schematic.
    #[error("byte 0: the file: expected gzip or a compound, found {found:#04x}")]
    NotASchematic {
        /// The first byte.
        found: u8,
    },
    /// The version cannot be read or written by this crate.
    #[error("{at}: expected version {expected}, found {found}")]
    Version {
        /// The value with the version.
        at: String,
        /// The supported versions.
        expected: &'static str,
        /// The version found.
        found: i64,
    },
    /// The size exceeds the limits of the [options](super::ReadOptions) or of the format.
    #[error("{at}: expected {limit} {what} or less, found {found}")]
    TooLarge {
        /// The value's place.
        at: String,
        /// The unit that is counted.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The number that was found, as far as it is known.
        found: u64,
    },
    /// The data ends too early.
    #[error("{at} ends too early")]
    Truncated {
        /// The value that was being read.
        at: String,
    },
    /// The data is invalid.
    #[error("{at}: {what}")]
    Malformed {
        /// The place of the fault.
        at: String,
        /// The fault.
        what: String,
    },
    /// The caller cancelled the operation.
    #[error("it was cancelled")]
    Cancelled,
}

impl SchematicError {
    /// Returns `true` if the file is damaged, rather than of an unknown kind or version, too large, or unreadable.
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Truncated { .. } | Self::Malformed { .. })
    }

    pub(super) fn io(at: String, error: &io::Error) -> Self {
        Self::Io { at, kind: error.kind(), message: shortened(&error.to_string()) }
    }

    pub(super) fn malformed(at: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Malformed { at: at.into(), what: what.into() }
    }

    pub(super) fn too_large(at: impl Into<String>, what: &'static str, limit: u64, found: u64) -> Self {
        Self::TooLarge { at: at.into(), what, limit, found }
    }

    /// The same error, with its place nested in this one.
    pub(super) fn within(mut self, outer: &str) -> Self {
        if let Self::Io { at, .. }
        | Self::Version { at, .. }
        | Self::TooLarge { at, .. }
        | Self::Truncated { at }
        | Self::Malformed { at, .. } = &mut self
        {
            let separator = if at.is_empty() { "" } else { "." };
            at.insert_str(0, &format!("{outer}{separator}"));
        }
        self
    }
}

impl From<io::Error> for SchematicError {
    fn from(error: io::Error) -> Self {
        Self::io(FILE.to_owned(), &error)
    }
}

/// A text, shortened for quoting in a message.
pub(in crate::snapshot) fn shortened(text: &str) -> String {
    let mut quote = String::new();
    push_shortened(&mut quote, text, LONGEST_QUOTE);
    quote
}

/// Appends about the first `most` bytes of a text. Unprintable characters are escaped.
pub(super) fn push_shortened(into: &mut String, text: &str, most: usize) {
    let end = into.len() + most;
    for character in text.chars() {
        if into.len() >= end {
            into.push_str(REST);
            return;
        }
        match character {
            '"' | '\'' => into.push(character),
            _ => into.extend(character.escape_debug()),
        }
    }
}
