//! Cells of a chunk as another one has them, or parts of them.

use super::Chunk;
use super::assembly::{CellMask, ChunkAssembly};
use super::component_arrays::{PlacedValue, Value};
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
        if parts.is_all() {
            assembly.copy_cells(other, cells);
            assembly.copy_cells(self, &cells.inverted());
            return assembly.finish();
        }
        let zeros = other.zeros();
        let empty: Arc<[u8]> = Arc::default();
        let kept = if parts.blocks { cells.inverted() } else { CellMask::WHOLE };
        if parts.blocks {
            assembly.copy_blocks(other, cells);
        }
        assembly.copy_blocks(self, &kept);
        let takes_layers = |cell| parts.layers && cells.contains(cell);
        let keeps_layers = |cell| {
            let is_same = || self.content.block(cell) == other.content.block(cell);
            !takes_layers(cell) && (kept.contains(cell) || is_same())
        };
        assembly.add_layers(self.layer_blocks().filter(|(cell, ..)| keeps_layers(*cell)));
        assembly.add_layers(other.layer_blocks().filter(|(cell, ..)| takes_layers(*cell)));

        let becomes = |cell, layer| match layer {
            0 if kept.contains(cell) => self.block_in(cell, 0),
            0 => other.block_in(cell, 0),
            _ if takes_layers(cell) => other.block_in(cell, layer),
            _ if keeps_layers(cell) => self.block_in(cell, layer),
            _ => None,
        };
        let is_of = |chunk: &Self, value: &PlacedValue| {
            let cell = value.cell.into();
            chunk.block_in(cell, value.layer).is_some_and(|block| becomes(cell, value.layer) == Some(block))
        };
        let takes_values = |value: &PlacedValue| parts.components && cells.contains(value.cell.into());
        assembly.add_values(
            self.values().filter(|value| is_of(self, value) && !(takes_values(value) && is_of(other, value))),
        );
        let coming = other.values().filter(|value| cells.contains(value.cell.into()) && is_of(other, value));
        assembly.add_values(coming.filter_map(|value| match value.value {
            _ if takes_values(&value) => Some(value),
            _ if is_of(self, &value) => None,
            Value::Fixed(bytes) => Some(PlacedValue { value: Value::Fixed(&zeros[..bytes.len()]), ..value }),
            Value::Variable(_) => Some(PlacedValue { value: Value::Variable(&empty), ..value }),
        }));
        assembly.finish()
    }

    fn values(&self) -> impl Iterator<Item = PlacedValue<'_>> {
        self.extras.iter().flat_map(|extras| extras.components.values())
    }

    /// As many as the longest value of a fixed size has bytes.
    fn zeros(&self) -> Vec<u8> {
        let length = |value: PlacedValue| match value.value {
            Value::Fixed(bytes) => bytes.len(),
            Value::Variable(_) => 0,
        };
        vec![0; self.values().map(length).max().unwrap_or(0)]
    }
}
