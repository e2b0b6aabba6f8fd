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

mod reader;
mod text;
mod value;
mod writer;

pub(super) use reader::Reader;
pub use value::{Compound, Nbt, NbtKind};
pub(super) use writer::Writer;

use crate::snapshot::schematic::SchematicError;
use std::cell::Cell;

/// The maximum nesting depth, regardless of the options: the stack suffices for this many.
pub(super) const DEEPEST: usize = 512;

/// Replaces an empty path.
pub(super) const FILE: &str = "the file";

/// Vectors below this size in bytes double when they grow. Larger ones grow by an eighth, so that little counted
/// memory is unused.
const LARGE: usize = 1 << 20;
const FIRST: usize = 8;

/// The memory that is still available.
pub(in crate::snapshot::schematic) struct Budget {
    limit: u64,
    left: Cell<u64>,
}

impl Budget {
    pub fn new(limit: u64) -> Self {
        Self { limit, left: Cell::new(limit) }
    }

    /// Counts bytes that are about to be allocated. The error has no place yet.
    pub fn take(&self, bytes: usize) -> Result<(), SchematicError> {
        match self.left.get().checked_sub(bytes as u64) {
            Some(left) => self.left.set(left),
            None => {
                return Err(SchematicError::too_large("", "bytes of memory", self.limit, self.limit.saturating_add(1)));
            }
        }
        Ok(())
    }

    /// Returns bytes that were freed.
    pub fn give_back(&self, bytes: usize) {
        self.left.set(self.limit.min(self.left.get().saturating_add(bytes as u64)));
    }

    /// Reserves room for more items in a vector that will have at most `most`, and counts it.
    pub fn make_room<T>(&self, items: &mut Vec<T>, more: usize, most: u64) -> Result<(), SchematicError> {
        let (held, needed, size) = (items.capacity(), items.len() + more, size_of::<T>());
        if needed <= held {
            return Ok(());
        }
        let step = if held * size < LARGE { held.max(FIRST) } else { held / 8 };
        let wanted = usize::try_from(most).unwrap_or(usize::MAX).min(held + step).max(needed);
        self.take(on_heap(wanted * size) - on_heap(held * size))?;
        items.reserve_exact(wanted - items.len());
        Ok(())
    }

    /// Frees the unused capacity of a vector.
    pub fn shrink<T>(&self, items: &mut Vec<T>) {
        let held = on_heap(items.capacity() * size_of::<T>());
        items.shrink_to_fit();
        self.give_back(held - on_heap(items.len() * size_of::<T>()));
    }
}

/// The size of an allocation with the allocator's overhead: a header, a minimum size and size classes. Without the
/// overhead, millions of small values would take several times the counted memory.
pub(in crate::snapshot::schematic) fn on_heap(bytes: usize) -> usize {
    const HEADER: usize = 8;
    const STEP: usize = 16;
    if bytes == 0 { 0 } else { (bytes + HEADER).next_multiple_of(STEP).max(2 * STEP) }
}

impl Nbt {
    /// The heap memory in bytes, if no vector has spare capacity.
    pub(in crate::snapshot::schematic) fn heap_bytes(&self) -> usize {
        match self {
            Self::ByteArray(bytes) => on_heap(bytes.len()),
            Self::String(text) => on_heap(text.len()),
            Self::List(_, items) => {
                on_heap(size_of_val(items.as_slice())) + items.iter().map(Self::heap_bytes).sum::<usize>()
            }
            Self::Compound(compound) => compound.heap_bytes(),
            Self::IntArray(numbers) => on_heap(size_of_val(numbers.as_slice())),
            Self::LongArray(numbers) => on_heap(size_of_val(numbers.as_slice())),
            Self::Byte(_) | Self::Short(_) | Self::Int(_) | Self::Long(_) | Self::Float(_) | Self::Double(_) => 0,
        }
    }
}

impl Compound {
    /// The heap memory in bytes, if no vector has spare capacity.
    pub(in crate::snapshot::schematic) fn heap_bytes(&self) -> usize {
        let entries = self.0.iter().map(|(name, value)| on_heap(name.len()) + value.heap_bytes());
        on_heap(size_of_val(self.0.as_slice())) + entries.sum::<usize>()
    }
}
