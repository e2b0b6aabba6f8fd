//! Cells of a chunk as another one has them, or parts of them.

use super::Chunk;
use super::assembly::{CellMask, ChunkAssembly};
use super::extras::{self, Slot, Value};
use std::sync::Arc;

/// Which parts of a cell are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellParts {
    /// Its block in layer 0.
    pub blocks: bool,
    /// Its blocks in the layers above.
    pub layers: bool,
    /// The components of its blocks.
    pub components: bool,
}

impl CellParts {
    pub const fn is_all(self) -> bool {
        self.blocks && self.layers && self.components
    }
}

impl Chunk {
    /// The same chunk, but for these parts of these cells, which are as `other` has them.
    ///
    /// Layers that are not taken over go with a block that changes below them. Components are those of `other` or of this
    /// chunk, of the one that has the same block there; a new block whose components are not taken over has zeros and empty
    /// values.
    pub(crate) fn with_cells_of(&self, other: &Self, cells: &CellMask, parts: CellParts) -> Self {
        let mut assembly = ChunkAssembly::new();
        let taken = |cell| cells.contains(cell).then_some(cell);
        let kept = |cell| (!cells.contains(cell)).then_some(cell);
        if parts.is_all() {
            assembly.copy(other, taken, |block| block);
            assembly.copy(self, kept, |block| block);
            return assembly.finish();
        }
        assembly.copy_blocks(self, Some, |block| block);
        if parts.blocks {
            assembly.copy_blocks(other, taken, |block| block);
        }
        let is_taken = |slot: Slot| cells.contains(slot.cell.into());
        let takes_layers = |slot: Slot| parts.layers && is_taken(slot);
        let keeps_layers = |slot: Slot| {
            let below = Slot { layer: 0, ..slot };
            let is_same = || !parts.blocks || self.block_in(below) == other.block_in(below);
            !takes_layers(slot) && (!is_taken(slot) || is_same())
        };
        assembly.add_layers(self.layers().iter().filter(|(slot, _)| keeps_layers(*slot)));
        assembly.add_layers(other.layers().iter().filter(|(slot, _)| takes_layers(*slot)));
        let mixed = assembly.finish();

        let has = |chunk: &Self, slot| chunk.block_in(slot).is_some_and(|block| mixed.block_in(slot) == Some(block));
        let takes_value = |slot| parts.components && is_taken(slot) && has(other, slot);
        let empty: Arc<[u8]> = Arc::default();
        let zeros = other.arrays().iter().map(|array| array.layout.unset()).max_by_key(Vec::len).unwrap_or_default();
        let kept = self.values().filter(|(_, slot, _)| has(self, *slot) && !takes_value(*slot));
        let coming = other.values().filter(|(_, slot, _)| is_taken(*slot) && has(other, *slot));
        let coming = coming.filter_map(|(layout, slot, value)| match layout.size {
            _ if parts.components => Some((layout, slot, value)),
            _ if has(self, slot) => None,
            Some(size) => Some((layout, slot, Value::Bytes(&zeros[..size as usize]))),
            None => Some((layout, slot, Value::Shared(&empty))),
        });
        let arrays = extras::arrays(kept.chain(coming).collect());
        mixed.with_arrays(arrays)
    }
}
