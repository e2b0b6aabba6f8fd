//! A block's layers and components, and its view of the sky.

use crate::block::{BlockComponentId, BlockId};
use crate::chunk::BlockValueError;
use crate::simulation::{BlockAccessError, RegionColumns};
use crate::space::BlockPos;
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::Range;

/// Layers: further blocks in the same cell, such as the water in a fence. [`block`](RegionColumns::block) is layer 0.
impl RegionColumns {
    /// The number of blocks in a cell: 1, or more if there are layers above layer 0.
    pub fn layer_count(&self, position: BlockPos) -> Result<usize, BlockAccessError> {
        self.read(position, |chunk, at| chunk.map_or(1, |chunk| chunk.layer_count(at)))
    }

    /// The block in a layer; `None` if the cell has fewer layers.
    pub fn block_at(&self, position: BlockPos, layer: u8) -> Result<Option<BlockId>, BlockAccessError> {
        let air = (layer == 0).then_some(BlockId::AIR);
        self.read(position, |chunk, at| chunk.map_or(air, |chunk| chunk.block_at(at, layer)))
    }

    /// Replaces the block in a layer, or adds the next layer above, and returns the block that was there. The components of the
    /// new block, if its type has any, are all zero or, if of variable size, empty.
    pub fn set_block_at(
        &mut self,
        position: BlockPos,
        layer: u8,
        block: BlockId,
    ) -> Result<Option<BlockId>, BlockAccessError> {
        if self.block_at(position, layer)? == Some(block) {
            return Ok(Some(block));
        }
        self.check_type(position, block)?;
        let gap = |source: BlockValueError| BlockAccessError::Value { block: position, source };
        let before =
            self.edit(position, |chunk, blocks, at| chunk.place_block(blocks, at, layer, block).map_err(gap))?;
        self.note_block(position);
        Ok(before)
    }

    /// Removes a block and its components from a layer and returns it. The layers above it move down by one. If there are none,
    /// layer 0 becomes air. `None` if the cell does not have the layer.
    pub fn remove_block(&mut self, position: BlockPos, layer: u8) -> Result<Option<BlockId>, BlockAccessError> {
        if self.block_at(position, layer)?.is_none() {
            return Ok(None);
        }
        let removed = self.edit(position, |chunk, _, at| Ok(chunk.remove_block(at, layer)))?;
        self.note_block(position);
        Ok(removed)
    }
}

/// Block components: data of single blocks, as declared by their [types](crate::block::BlockType::with_component). They are
/// saved with their chunk.
impl RegionColumns {
    /// The bytes of a component of the block in a layer; `None` if the block's type does not have the component.
    pub fn component(
        &self,
        position: BlockPos,
        layer: u8,
        component: BlockComponentId,
    ) -> Result<Option<&[u8]>, BlockAccessError> {
        self.read(position, |chunk, at| chunk?.component(at, layer, component))
    }

    /// Like [`component`](Self::component), as a value of a type of exactly the component's size.
    ///
    /// ```
    /// use bevy_terrane::prelude::*;
    /// use bevy_terrane::block::BlockComponentId;
    ///
    /// #[derive(Resource)]
    /// struct Fuel(BlockComponentId);
    ///
    /// fn burn(mut blocks: RegionBlocks, fuel: Res<Fuel>, furnaces: Query<&Position>) -> Result {
    ///     for Position { block, .. } in &furnaces {
    ///         let left: u32 = blocks.component_as(*block, 0, fuel.0)?.unwrap_or(0);
    ///         if left > 0 {
    ///             blocks.set_component_as(*block, 0, fuel.0, &(left - 1))?;
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// # App::new().add_systems(RegionTick, burn);
    /// ```
    pub fn component_as<T: AnyBitPattern>(
        &self,
        position: BlockPos,
        layer: u8,
        component: BlockComponentId,
    ) -> Result<Option<T>, BlockAccessError> {
        let unfit = |source| BlockAccessError::Value { block: position, source };
        let read =
            self.read(position, |chunk, at| chunk.map_or(Ok(None), |chunk| chunk.component_as(at, layer, component)));
        read?.map_err(unfit)
    }

    /// Sets a component of the block in a layer. The block's type must have the component.
    pub fn set_component(
        &mut self,
        position: BlockPos,
        layer: u8,
        component: BlockComponentId,
        value: &[u8],
    ) -> Result<(), BlockAccessError> {
        if self.component(position, layer, component)? == Some(value) {
            return Ok(());
        }
        let unfit = |source: BlockValueError| BlockAccessError::Value { block: position, source };
        self.edit(position, |chunk, blocks, at| chunk.set_component(blocks, at, layer, component, value).map_err(unfit))
    }

    /// Like [`set_component`](Self::set_component), with the bytes of a value.
    pub fn set_component_as<T: NoUninit>(
        &mut self,
        position: BlockPos,
        layer: u8,
        component: BlockComponentId,
        value: &T,
    ) -> Result<(), BlockAccessError> {
        self.set_component(position, layer, component, bytemuck::bytes_of(value))
    }
}

/// Opacity: blocks that hide the blocks behind them. In a sparse dimension only the loaded heights are known;
/// [`AskOpacity`](crate::view::AskOpacity) answers for the others.
impl RegionColumns {
    /// The highest opaque block at `x`, `z`; `None` if there is none or the column is not in this region.
    pub fn highest_opaque(&self, x: i64, z: i64) -> Option<BlockPos> {
        let place = BlockPos::new(x, 0, z);
        let [in_x, _, in_z] = place.in_chunk();
        let y = self.column(place.column())?.highest(in_x, in_z, |block| self.is_opaque_type(block))?;
        Some(BlockPos::new(x, y, z))
    }

    /// Returns `true` if the sky is visible from the block, so that nothing above it is opaque.
    pub fn sees_sky(&self, position: BlockPos) -> Result<bool, BlockAccessError> {
        self.check(position)?;
        Ok(self.highest_opaque(position.x, position.z).is_none_or(|highest| highest.y <= position.y))
    }

    /// Returns `true` if all blocks of this range of heights are opaque.
    pub fn is_opaque(&self, x: i64, z: i64, mut heights: Range<i64>) -> Result<bool, BlockAccessError> {
        heights.try_fold(true, |is_opaque, y| Ok(is_opaque && self.is_opaque_type(self.block(BlockPos::new(x, y, z))?)))
    }

    fn is_opaque_type(&self, block: BlockId) -> bool {
        self.block_types().is_none_or(|blocks| blocks.block(block).is_opaque())
    }
}
