//! The memory that values take, and the limit on it.

use super::{Compound, Nbt};
use crate::snapshot::schematic::SchematicError;
use std::cell::Cell;

/// Vectors of fewer bytes double when they grow. Larger ones grow by an eighth, so that little of the counted memory is unused.
const LARGE: usize = 1 << 20;
/// Items that a vector has room for at first.
const FIRST: usize = 8;

/// The memory that may still be taken.
pub(in crate::snapshot::schematic) struct Budget {
    limit: u64,
    left: Cell<u64>,
}

impl Budget {
    pub fn new(limit: u64) -> Self {
        Self { limit, left: Cell::new(limit) }
    }

    /// Counts bytes that are about to be taken. The error has no place yet.
    pub fn take(&self, bytes: usize) -> Result<(), SchematicError> {
        match self.left.get().checked_sub(bytes as u64) {
            Some(left) => self.left.set(left),
            None => {
                return Err(SchematicError::too_large("", "bytes of memory", self.limit, self.limit.saturating_add(1)));
            }
        }
        Ok(())
    }

    /// Counts bytes that are no longer held.
    pub fn give_back(&self, bytes: usize) {
        self.left.set(self.limit.min(self.left.get().saturating_add(bytes as u64)));
    }

    /// Makes room for more items in a vector that will have at most `most`, and counts it.
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

    /// Gives back the room that a vector does not use.
    pub fn shrink<T>(&self, items: &mut Vec<T>) {
        let held = on_heap(items.capacity() * size_of::<T>());
        items.shrink_to_fit();
        self.give_back(held - on_heap(items.len() * size_of::<T>()));
    }
}

/// Bytes that an allocation takes with the allocator's overhead: it has a header, a least size, and sizes in steps. Without
/// these, millions of small values would take several times what was counted.
pub(in crate::snapshot::schematic) fn on_heap(bytes: usize) -> usize {
    const HEADER: usize = 8;
    const STEP: usize = 16;
    if bytes == 0 { 0 } else { (bytes + HEADER).next_multiple_of(STEP).max(2 * STEP) }
}

impl Nbt {
    /// Bytes that it takes on the heap, if none of its vectors has room to spare.
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
    /// Bytes that it takes on the heap, if none of its vectors has room to spare.
    pub(in crate::snapshot::schematic) fn heap_bytes(&self) -> usize {
        let entries = self.0.iter().map(|(name, value)| on_heap(name.len()) + value.heap_bytes());
        on_heap(size_of_val(self.0.as_slice())) + entries.sum::<usize>()
    }
}
