//! Named binary tags, the format of schematic files: big-endian, each value with a tag for its kind.
//!
//! | tag | kind | payload |
//! |---|---|---|
//! | 0 | end | none: closes a compound, or is the element of an empty list |
//! | 1, 2, 3, 4 | byte, short, int, long | 1, 2, 4, 8 bytes |
//! | 5, 6 | float, double | 4, 8 bytes |
//! | 7 | byte array | `i32` count, bytes |
//! | 8 | string | `u16` count of bytes, modified UTF-8 |
//! | 9 | list | a tag, `i32` count, that many payloads |
//! | 10 | compound | a tag, a name as a string and a payload each, then tag 0 |
//! | 11, 12 | int array, long array | `i32` count, 4 or 8 bytes each |
//!
//! [`Nbt`] is a value of a schematic, in metadata and block entities.

mod memory;
mod reader;
mod text;
mod value;
mod writer;

pub(super) use memory::{Budget, on_heap};
pub(super) use reader::Reader;
pub use value::{Compound, Nbt, NbtKind};
pub(super) use writer::Writer;

/// The maximum nesting depth, regardless of the options: the stack suffices for this many.
pub(super) const DEEPEST: usize = 512;

/// Replaces an empty path.
pub(super) const FILE: &str = "the file";
