//! The layers of a chunk's cells: reading and setting them.

use super::{Chunk, cell};
use crate::block::{BlockId, BlockLayout};
use crate::space::cell_position;
use thiserror::Error;

/// Why a block could not be set in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LayerError {
    /// A cell's layers have no gaps.
    #[error("block [{}, {}, {}] has {count} layers, expected a layer up to {count}, found {layer}",
        position[0], position[1], position[2])]
    Gap {
        /// The cell.
        position: [usize; 3],
        /// How many layers it has, layer 0 included.
        count: usize,
        /// The layer asked for.
        layer: u8,
    },
}

/// Block layers: what else is in a cell, such as water in a fence. Layer 0 is what [`block`](Self::block) and
/// [`set_block`](Self::set_block) mean; it is always there, and may be air.
///
/// A block keeps its components until it is replaced by one of another type, or removed.
impl Chunk {
    /// How many blocks are in a cell: 1, or more with layers above layer 0.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn layer_count(&self, position: [usize; 3]) -> usize {
        1 + self.extras.as_ref().map_or(0, |extras| extras.layers.count(cell(position)))
    }

    /// The block in a layer, if the cell has that many.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn block_at(&self, position: [usize; 3], layer: u8) -> Option<BlockId> {
        self.block_in(cell(position), layer)
    }

    /// The block of a cell in a layer.
    #[inline]
    pub(super) fn block_in(&self, cell: usize, layer: u8) -> Option<BlockId> {
        match layer {
            0 => Some(self.content.block(cell)),
            _ => self.extras.as_ref()?.layers.block(cell, layer),
        }
    }

    /// Replaces the block in a layer, or adds the layer next to the last. Returns the old block.
    ///
    /// Components that its type has are missing until they are set; [`place_block`](Self::place_block) sets them.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn set_block_at(
        &mut self,
        position: [usize; 3],
        layer: u8,
        block: BlockId,
    ) -> Result<Option<BlockId>, LayerError> {
        if layer == 0 {
            return Ok(Some(self.set_block(position, block)));
        }
        let count = self.layer_count(position);
        if usize::from(layer) > count {
            return Err(LayerError::Gap { position, count, layer });
        }
        let old = self.extras.get_or_insert_default().layers.set(cell(position), layer, block);
        if old.is_some_and(|old| old != block) {
            self.drop_components(cell(position), layer);
        }
        Ok(old)
    }

    /// Like [`set_block_at`](Self::set_block_at), and gives a new block the components of its type: zeros for those of fixed
    /// size, and nothing for the others.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn place_block(
        &mut self,
        layout: &impl BlockLayout,
        position: [usize; 3],
        layer: u8,
        block: BlockId,
    ) -> Result<Option<BlockId>, LayerError> {
        let old = self.set_block_at(position, layer, block)?;
        let components = layout.components(block);
        if old != Some(block) && !components.is_empty() {
            let extras = self.extras.get_or_insert_default();
            for component in components {
                extras.components.set(*component, layer, cell(position), &component.unset());
            }
        }
        Ok(old)
    }

    /// Takes a block out of its layer with its components, and returns it. The layers above it move down by one; where
    /// there are none, air is left of layer 0. `None` if the cell does not have the layer.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn remove_block(&mut self, position: [usize; 3], layer: u8) -> Option<BlockId> {
        let removed = self.block_at(position, layer)?;
        let top = (self.layer_count(position) - 1) as u8;
        let cell = cell(position);
        self.drop_components(cell, layer);
        for below in layer..top {
            self.move_block_down(position, below + 1);
        }
        match &mut self.extras {
            Some(extras) if top > 0 => drop(extras.layers.pop(cell)),
            _ => drop(self.content.set_block(cell, BlockId::AIR)),
        }
        self.extras.take_if(|extras| extras.is_empty());
        Some(removed)
    }

    /// Every block above layer 0 with its position and layer: in the order of [`blocks`](Self::blocks), the layer fastest.
    pub fn layered_blocks(&self) -> impl Iterator<Item = ([usize; 3], u8, BlockId)> {
        self.layer_blocks().map(|(cell, layer, block)| (cell_position(cell), layer, block))
    }

    /// The same, by cells.
    pub(super) fn layer_blocks(&self) -> impl Iterator<Item = (usize, u8, BlockId)> {
        self.extras.iter().flat_map(|extras| extras.layers.iter())
    }

    /// Repeats a block in the layer below it, and gives that its components.
    fn move_block_down(&mut self, position: [usize; 3], layer: u8) {
        let cell = cell(position);
        let Some(extras) = &mut self.extras else { return };
        let Some(block) = extras.layers.block(cell, layer) else { return };
        match layer - 1 {
            0 => drop(self.content.set_block(cell, block)),
            below => drop(extras.layers.set(cell, below, block)),
        }
        extras.components.move_down(layer, cell);
    }

    /// Drops the components of one block.
    #[cold]
    pub(super) fn drop_components(&mut self, cell: usize, layer: u8) {
        if let Some(extras) = &mut self.extras {
            extras.components.remove(layer, cell);
            self.extras.take_if(|extras| extras.is_empty());
        }
    }
}
