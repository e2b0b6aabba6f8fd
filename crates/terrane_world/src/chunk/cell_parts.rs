//! Copies cells, or parts of cells, from one chunk to another.

use super::Chunk;
use super::assembly::{CellMask, ChunkAssembly};
use super::extras::{self, Slot, Value};
use std::sync::Arc;

impl Chunk {
    /// The same chunk with blocks of layer 0 of some cells, blocks of higher layers of some cells, and components of
    /// some cells taken from `other`.
    ///
    /// If a cell's block of layer 0 changes, layers that are not taken from `other` are removed. Components come from
    /// whichever of the two chunks has the same block there. A new block whose components are not taken has zeros and
    /// empty values.
    pub(crate) fn with_cells_of(
        &self,
        other: &Self,
        blocks: &CellMask,
        layers: &CellMask,
        components: &CellMask,
    ) -> Self {
        let mut assembly = ChunkAssembly::default();
        let taken = |cell| blocks.contains(cell).then_some(cell);
        let kept = |cell| (!blocks.contains(cell)).then_some(cell);
        if blocks == layers && blocks == components {
            assembly.copy(other, taken, |block| block);
            assembly.copy(self, kept, |block| block);
            return assembly.finish();
        }
        assembly.copy_blocks(self, Some, |block| block);
        assembly.copy_blocks(other, taken, |block| block);
        let takes_layers = |slot: Slot| layers.contains(slot.cell.into());
        let keeps_layers = |slot: Slot| {
            let below = Slot { layer: 0, ..slot };
            let is_same = || self.block_in(below) == other.block_in(below);
            !takes_layers(slot) && (!blocks.contains(slot.cell.into()) || is_same())
        };
        assembly.add_layers(self.layers().iter().filter(|(slot, _)| keeps_layers(*slot)));
        assembly.add_layers(other.layers().iter().filter(|(slot, _)| takes_layers(*slot)));
        let mixed = assembly.finish();

        let has = |chunk: &Self, slot| chunk.block_in(slot).is_some_and(|block| mixed.block_in(slot) == Some(block));
        let takes_value = |slot: Slot| components.contains(slot.cell.into()) && has(other, slot);
        let empty: Arc<[u8]> = Arc::default();
        let zeros = other.arrays().iter().map(|array| array.layout.unset()).max_by_key(Vec::len).unwrap_or_default();
        let kept = self.values().filter(|(_, slot, _)| has(self, *slot) && !takes_value(*slot));
        let coming = other.values().filter(|(_, slot, _)| has(other, *slot));
        let coming = coming.filter_map(|(layout, slot, value)| match layout.size {
            _ if components.contains(slot.cell.into()) => Some((layout, slot, value)),
            _ if has(self, slot) => None,
            Some(size) => Some((layout, slot, Value::Bytes(&zeros[..size as usize]))),
            None => Some((layout, slot, Value::Shared(&empty))),
        });
        let arrays = extras::arrays(kept.chain(coming).collect());
        mixed.with_arrays(arrays)
    }
}
