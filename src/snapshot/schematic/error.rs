//! What can be wrong with a schematic's file.

use std::io;
use thiserror::Error;

/// A message quotes about this many bytes of a text.
const LONGEST_QUOTE: usize = 256;
/// Stands for the rest of a text.
pub(super) const REST: &str = "...";

/// Why a file is no schematic that can be read. Every `offset` is in bytes of the uncompressed data, from the first one;
/// a `field` is the path of names to the value. A message consists of printable characters and has at most 1 KiB, whatever the
/// file holds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchematicError {
    /// The file could not be read.
    #[error("byte {offset}: {field}: {message}")]
    Io {
        /// How far it was read.
        offset: u64,
        /// What was being read.
        field: String,
        /// What kind of failure.
        kind: io::ErrorKind,
        /// What the system says.
        message: String,
    },
    /// The compression is damaged.
    #[error("byte {offset}: {field}: the compressed data is damaged: {message}")]
    Compression {
        /// How far it could be read.
        offset: u64,
        /// What was being read.
        field: String,
        /// What is wrong with it.
        message: String,
    },
    /// It begins like no schematic: neither with gzip nor with a compound.
    #[error("byte 0: the file: expected gzip or a compound, found {found:#04x}")]
    NotASchematic {
        /// The first byte.
        found: u8,
    },
    /// The data ends too early.
    #[error("byte {offset}: {field} ends too early")]
    Truncated {
        /// Where more was expected.
        offset: u64,
        /// What was being read.
        field: String,
    },
    /// A tag that does not exist.
    #[error("byte {offset}: {field}: expected a tag of 12 or less, found {found}")]
    Tag {
        /// Where it is.
        offset: u64,
        /// In what.
        field: String,
        /// The tag.
        found: u8,
    },
    /// A value of another kind than its name asks for.
    #[error("byte {offset}: {field}: expected {expected}, found {found}")]
    WrongType {
        /// Where it begins.
        offset: u64,
        /// Which value.
        field: String,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// Text that is not modified UTF-8.
    #[error("byte {offset}: {field}: expected text in modified UTF-8")]
    Text {
        /// Where it begins.
        offset: u64,
        /// Which text.
        field: String,
    },
    /// A count below 0, or of things that have no payload.
    #[error("byte {offset}: {field}: {found} is no possible length")]
    Length {
        /// Where it is.
        offset: u64,
        /// Of what.
        field: String,
        /// The length.
        found: i64,
    },
    /// More than the [limits](super::SchematicLimits) allow.
    #[error("byte {offset}: {field}: expected {limit} {what} or less, found {found}")]
    TooLarge {
        /// Where it is.
        offset: u64,
        /// Which value.
        field: String,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// How many there are, as far as it is known.
        found: u64,
    },
    /// Something that every schematic has is not there.
    #[error("byte {offset}: {field} is missing")]
    Missing {
        /// Where the value that lacks it begins. If the schematic itself lacks it, where the schematic ends.
        offset: u64,
        /// What is missing.
        field: String,
    },
    /// A version that this crate cannot read.
    #[error("byte {offset}: {field}: expected version 1, 2 or 3, found {found}")]
    Version {
        /// Where it is.
        offset: u64,
        /// The value that says it.
        field: String,
        /// The version found.
        found: i64,
    },
    /// A number in a palette that is below 0 or not only its own.
    #[error("byte {offset}: {field}: {found} is no number of its own")]
    PaletteId {
        /// Where it is.
        offset: u64,
        /// The entry.
        field: String,
        /// The number.
        found: i64,
    },
    /// A cell has a number that the palette does not have.
    #[error("byte {offset}: {field}: cell {cell} has number {found}, which is not in the palette")]
    NotInPalette {
        /// Where it is.
        offset: u64,
        /// Which cells.
        field: String,
        /// The cell's place: x + z * width + y * width * length.
        cell: u64,
        /// The number.
        found: u32,
    },
    /// A number of more than 32 bits, or of more than 5 bytes.
    #[error("byte {offset}: {field}: expected a number of 32 bits or less")]
    Number {
        /// Where it ends.
        offset: u64,
        /// Which cells.
        field: String,
    },
    /// More or fewer cells than the size says.
    #[error("byte {offset}: {field}: expected {expected} cells, found {found}")]
    CellCount {
        /// Where they end.
        offset: u64,
        /// Which cells.
        field: String,
        /// How many there should be.
        expected: u64,
        /// How many there are, as far as they were read.
        found: u64,
    },
    /// What this crate wrote besides the schematic is not as it writes it.
    #[error("byte {offset}: {field}: {what}")]
    Extension {
        /// Where the compound of this crate begins.
        offset: u64,
        /// Which part.
        field: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The caller wanted it no longer.
    #[error("reading was cancelled")]
    Cancelled,
}

impl SchematicError {
    /// Whether the file is damaged, rather than of an unknown kind or version, too large, or out of reach.
    pub fn is_damage(&self) -> bool {
        let is_sound = matches!(
            self,
            Self::Io { .. }
                | Self::NotASchematic { .. }
                | Self::Version { .. }
                | Self::TooLarge { .. }
                | Self::Cancelled
        );
        !is_sound
    }

    /// There is no memory left under this limit.
    pub(super) fn no_memory(offset: u64, field: impl Into<String>, limit: u64) -> Self {
        Self::TooLarge { offset, field: field.into(), what: "bytes of memory", limit, found: limit.saturating_add(1) }
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

/// Why a schematic could not be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchematicWriteError {
    /// The file could not be written.
    #[error("writing failed: {message}")]
    Io {
        /// What kind of failure.
        kind: io::ErrorKind,
        /// What the system says.
        message: String,
    },
    /// Only versions 2 and 3 are written.
    #[error("expected version 2 or 3, found {found}")]
    Version {
        /// The version asked for.
        found: u8,
    },
    /// More than the format can hold.
    #[error("{field}: expected {limit} {what} or less, found {found}")]
    TooLarge {
        /// Which part.
        field: String,
        /// What there is too much of.
        what: &'static str,
        /// How much the format can hold.
        limit: u64,
        /// How much there is.
        found: u64,
    },
    /// A list holds a value of another kind than its others.
    #[error("{field}: a list of {expected} holds {found}")]
    MixedList {
        /// Which list.
        field: String,
        /// The kind of its items.
        expected: &'static str,
        /// The kind of one of them.
        found: &'static str,
    },
    /// A block or a component has no name.
    #[error("{what} {number} occurs, but has no name")]
    Unnamed {
        /// A block, a biome or a component.
        what: &'static str,
        /// Its number.
        number: u64,
    },
    /// The caller wanted it no longer.
    #[error("writing was cancelled")]
    Cancelled,
}

impl From<io::Error> for SchematicWriteError {
    fn from(error: io::Error) -> Self {
        Self::Io { kind: error.kind(), message: shortened(&error.to_string()) }
    }
}
