//! Reading and setting the layers of a chunk's cells.

use super::extras::{Slot, Value};
use super::{BlockValueError, Chunk, cell};
use crate::block::{BlockId, BlockLayout};
use crate::space::cell_position;
use std::iter;

/// Block layers: further blocks in the same cell, such as water in a fence. [`block`](Self::block) and
/// [`set_block`](Self::set_block) use layer 0, which always exists and may be air.
///
/// A block keeps its components until it is removed or replaced by a block of another type.
impl Chunk {
    /// The number of blocks in a cell: 1, plus the layers above layer 0.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    #[inline]
    pub fn layer_count(&self, position: [usize; 3]) -> usize {
        1 + self.extras.as_ref().map_or(0, |extras| extras.layer_count(cell(position)))
    }

    /// Returns `true` if a cell may have more than one layer.
    #[inline]
    pub(crate) fn has_layers(&self) -> bool {
        self.extras.is_some()
    }

    /// The block in a layer; `None` if the cell has fewer layers.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    #[inline]
    pub fn block_at(&self, position: [usize; 3], layer: u8) -> Option<BlockId> {
        self.block_in(Slot::new(cell(position), layer))
    }

    #[inline]
    pub(super) fn block_in(&self, slot: Slot) -> Option<BlockId> {
        match slot.layer {
            0 => Some(self.content.block(slot.cell.into())),
            _ => self.extras.as_ref()?.layer(slot),
        }
    }

    /// The blocks of a cell, from layer 0 up.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    #[inline]
    pub fn blocks_at(&self, position: [usize; 3]) -> impl Iterator<Item = BlockId> + '_ {
        let layers = 1..=if self.has_layers() { u8::MAX } else { 0 };
        let above = layers.map_while(move |layer| self.block_at(position, layer));
        iter::once(self.block(position)).chain(above)
    }

    /// Replaces the block in a layer, or adds the next layer. Returns the old block.
    ///
    /// The components of its type are missing until they are set; [`place_block`](Self::place_block) sets them.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn set_block_at(
        &mut self,
        position: [usize; 3],
        layer: u8,
        block: BlockId,
    ) -> Result<Option<BlockId>, BlockValueError> {
        if layer == 0 {
            return Ok(Some(self.set_block(position, block)));
        }
        let count = self.layer_count(position);
        if usize::from(layer) > count {
            return Err(BlockValueError::NoLayer { position, count, layer });
        }
        let slot = Slot::new(cell(position), layer);
        let old = self.extras.get_or_insert_default().set_layer(slot, block);
        self.drop_components_if(old.is_some_and(|old| old != block), slot);
        Ok(old)
    }

    /// Like [`set_block_at`](Self::set_block_at), but also sets the components of a new block's type: zeros for a
    /// fixed size, empty for a variable size.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn place_block(
        &mut self,
        layout: &impl BlockLayout,
        position: [usize; 3],
        layer: u8,
        block: BlockId,
    ) -> Result<Option<BlockId>, BlockValueError> {
        let old = self.set_block_at(position, layer, block)?;
        let components = layout.components(block);
        if old != Some(block) && !components.is_empty() {
            let extras = self.extras.get_or_insert_default();
            for component in components {
                let slot = Slot::new(cell(position), layer);
                extras.set_component(*component, slot, Value::Bytes(&component.unset()));
            }
        }
        Ok(old)
    }

    /// Removes a block and its components from its layer, and returns it. The layers above it move down by one; if
    /// there are none, layer 0 becomes air. `None` if the cell does not have the layer.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn remove_block(&mut self, position: [usize; 3], layer: u8) -> Option<BlockId> {
        let removed = self.block_at(position, layer)?;
        if layer == 0 {
            self.content.set_block(cell(position), self.block_at(position, 1).unwrap_or(BlockId::AIR));
        }
        if let Some(extras) = &mut self.extras {
            extras.remove(Slot::new(cell(position), layer));
        }
        self.extras.take_if(|extras| extras.is_empty());
        Some(removed)
    }

    /// Every block above layer 0 with its position and layer, in the order of [`blocks`](Self::blocks), the layer
    /// changing fastest.
    pub fn layered_blocks(&self) -> impl Iterator<Item = ([usize; 3], u8, BlockId)> {
        self.layers().iter().map(|(slot, block)| (cell_position(slot.cell.into()), slot.layer, *block))
    }

    /// [`layered_blocks`](Self::layered_blocks) by slots.
    pub(super) fn layers(&self) -> &[(Slot, BlockId)] {
        self.extras.as_ref().map_or(&[], |extras| &extras.layers)
    }

    /// Drops the components of a block if it has been replaced by another. The condition is hard to predict, so callers
    /// on a hot path do not test it before they know that there are extras.
    #[cold]
    pub(super) fn drop_components_if(&mut self, is_replaced: bool, slot: Slot) {
        if is_replaced && let Some(extras) = &mut self.extras {
            extras.remove_components(slot);
            self.extras.take_if(|extras| extras.is_empty());
        }
    }
}
