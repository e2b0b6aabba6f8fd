//! What can be wrong with a schematic and with its file.

use super::nbt::FILE;
use std::io;
use thiserror::Error;

/// A message quotes about this many bytes of a text.
const LONGEST_QUOTE: usize = 256;
/// Stands for the rest of a text.
pub(super) const REST: &str = "...";

/// Why a file is no schematic that can be read, or a schematic cannot be written.
///
/// `at` is the place: the path of names to the value, and in a file that is read its byte before that, counted in the uncompressed
/// data from the first one, as in `byte 17: Schematic.Width`. A message consists of printable characters and has at most 1 KiB,
/// whatever the file holds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchematicError {
    /// The file could not be read or written.
    #[error("{at}: {message}")]
    Io {
        /// What was being read or written.
        at: String,
        /// What kind of failure.
        kind: io::ErrorKind,
        /// What the system says.
        message: String,
    },
    /// It begins like no schematic: neither with gzip nor with a compound.
    #[error("byte 0: the file: expected gzip or a compound, found {found:#04x}")]
    NotASchematic {
        /// The first byte.
        found: u8,
    },
    /// A version that this crate cannot read, or not write.
    #[error("{at}: expected version {expected}, found {found}")]
    Version {
        /// The value that says it.
        at: String,
        /// The versions that there are.
        expected: &'static str,
        /// The version found.
        found: i64,
    },
    /// More than the [options](super::ReadOptions) allow, or than the format can hold.
    #[error("{at}: expected {limit} {what} or less, found {found}")]
    TooLarge {
        /// Which value.
        at: String,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// How many there are, as far as it is known.
        found: u64,
    },
    /// The data ends too early.
    #[error("{at} ends too early")]
    Truncated {
        /// What was being read.
        at: String,
    },
    /// Something makes no sense.
    #[error("{at}: {what}")]
    Malformed {
        /// Where it is.
        at: String,
        /// What is wrong with it.
        what: String,
    },
    /// The caller wanted it no longer.
    #[error("it was cancelled")]
    Cancelled,
}

impl SchematicError {
    /// Whether the file is damaged, rather than of an unknown kind or version, too large, or out of reach.
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

    /// The same error, whose place so far is within this one.
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

/// A text as a message quotes it.
pub(in crate::snapshot) fn shortened(text: &str) -> String {
    let mut quote = String::new();
    push_shortened(&mut quote, text, LONGEST_QUOTE);
    quote
}

/// Adds about the first `most` bytes of a text. Characters that cannot be printed are escaped.
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
