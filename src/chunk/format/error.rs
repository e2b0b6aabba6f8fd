//! What can be wrong with the bytes of a chunk.

use crate::block::BlockComponentId;
use thiserror::Error;

/// Why bytes are not a chunk that can be read. Every `offset` is in bytes, from the chunk's first.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChunkFormatError {
    /// A part reaches beyond the end of the bytes.
    #[error("byte {offset}: expected {expected} bytes of {part}, found {found}")]
    Truncated {
        /// Where the part begins.
        offset: usize,
        /// Which part it is.
        part: &'static str,
        /// The length of the part.
        expected: u128,
        /// The bytes that are left.
        found: usize,
    },
    /// The format version is not 1.
    #[error("byte 0: expected format version 1, found {found}")]
    Version {
        /// The version found.
        found: u64,
    },
    /// A chunk has at least one block, so its palette has too.
    #[error("byte {offset}: expected a palette count of 1 or more, found 0")]
    EmptyPalette {
        /// Where the palette count is.
        offset: usize,
    },
    /// A global block id that is no [`BlockId`](crate::block::BlockId).
    #[error("byte {offset}: expected a block id below 2^32, found {found}")]
    BlockId {
        /// Where the palette entry is.
        offset: usize,
        /// The id found.
        found: u64,
    },
    /// A local id that is no place in the palette.
    #[error("byte {offset}: expected a local id below the palette count of {palette_count}, found {found}")]
    LocalId {
        /// The byte with the id's first bit.
        offset: usize,
        /// The number of entries in the palette.
        palette_count: usize,
        /// The id found.
        found: u64,
    },
    /// The header says that a part begins elsewhere than right after the part before it.
    #[error("byte {offset}: expected the {part} at {expected}, found the offset {found}")]
    PartOffset {
        /// Where the header says it.
        offset: usize,
        /// Which part it is.
        part: &'static str,
        /// Where the part before it ends.
        expected: usize,
        /// The offset found.
        found: u64,
    },
    /// A cell has more blocks than this crate can hold.
    #[error("byte {offset}: expected at most {most} blocks above layer 0 in a cell, found one more", most = u8::MAX)]
    TooManyLayers {
        /// The byte with the first bit of the block that is too many.
        offset: usize,
    },
    /// A component that no block of the chunk has.
    #[error("byte {offset}: expected a component of a block in the chunk, found {component}")]
    UnknownComponent {
        /// Where the component's number is.
        offset: usize,
        /// The component found.
        component: BlockComponentId,
    },
    /// A component that was there before.
    #[error("byte {offset}: found the component {component} again")]
    RepeatedComponent {
        /// Where the component's number is.
        offset: usize,
        /// The component found.
        component: BlockComponentId,
    },
    /// Blocks of the chunk have a component, and it is not there.
    #[error("byte {offset}: expected the component {component}, found the end of the components")]
    MissingComponent {
        /// Where the components end.
        offset: usize,
        /// The component expected.
        component: BlockComponentId,
    },
    /// An offset into the data of a variable-size component has no bytes or more than 8.
    #[error("byte {offset}: expected 1 to 8 bytes per offset, found {found}")]
    OffsetBytes {
        /// Where it is said.
        offset: usize,
        /// The number found.
        found: u8,
    },
    /// Offsets into the data of a variable-size component begin with 0 and do not descend.
    #[error("byte {offset}: expected an offset of {least} to {most}, found {found}")]
    DataOffset {
        /// Where the offset is.
        offset: usize,
        /// The offset before it.
        least: u64,
        /// The length of the data, or 0 for the first offset.
        most: u64,
        /// The offset found.
        found: u64,
    },
    /// There are bytes after the last part.
    #[error("byte {offset}: expected the end, found {found} more bytes")]
    TrailingBytes {
        /// Where the last part ends.
        offset: usize,
        /// How many bytes follow.
        found: usize,
    },
}
