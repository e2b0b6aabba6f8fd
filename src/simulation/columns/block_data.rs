//! What a block is besides its type: its layers, its components, and whether the sky is above it.

use crate::block::{BlockComponentId, BlockId};
use crate::chunk::BlockValueError;
use crate::simulation::{BlockAccessError, RegionColumns};
use crate::space::BlockPos;
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::Range;

/// Layers: what else is in a cell, such as the water in a fence. Layer 0 is what [`block`](RegionColumns::block) means.
impl RegionColumns {
    /// How many blocks are in a cell: 1, or more with layers above layer 0.
    pub fn layer_count(&self, position: BlockPos) -> Result<usize, BlockAccessError> {
        self.read(position, |chunk, at| chunk.map_or(1, |chunk| chunk.layer_count(at)))
    }

    /// The block in a layer, if the cell has that many.
    pub fn block_at(&self, position: BlockPos, layer: u8) -> Result<Option<BlockId>, BlockAccessError> {
        let air = (layer == 0).then_some(BlockId::AIR);
        self.read(position, |chunk, at| chunk.map_or(air, |chunk| chunk.block_at(at, layer)))
    }

    /// Replaces the block in a layer, or adds the layer next to the last, and gives the block that was there. It has the
    /// components of its type, zeroes or of no bytes.
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
        self.edit(position, |chunk, blocks, at| chunk.place_block(blocks, at, layer, block).map_err(gap))
    }

    /// Takes a block out of its layer with its components, and gives it. The layers above it move down by one; where there
    /// are none, air is left of layer 0. `None` if the cell does not have the layer.
    pub fn remove_block(&mut self, position: BlockPos, layer: u8) -> Result<Option<BlockId>, BlockAccessError> {
        if self.block_at(position, layer)?.is_none() {
            return Ok(None);
        }
        self.edit(position, |chunk, _, at| Ok(chunk.remove_block(at, layer)))
    }
}

/// Block components: what single blocks hold, as their [types](crate::block::BlockType::with_component) say. They are saved
/// with their chunk.
impl RegionColumns {
    /// A component of the block in a layer; `None` if its type does not have it.
    pub fn component(
        &self,
        position: BlockPos,
        layer: u8,
        component: BlockComponentId,
    ) -> Result<Option<&[u8]>, BlockAccessError> {
        self.read(position, |chunk, at| chunk?.component(at, layer, component))
    }

    /// Like [`component`](Self::component), as a value of a type that has just its size.
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

    /// Sets a component of the block in a layer, which must be of a type that has it.
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

/// Opacity: what hides what is behind it. Of a sparse dimension only the heights that are loaded are known;
/// [`AskOpacity`](crate::view::AskOpacity) answers for what is not.
impl RegionColumns {
    /// The highest opaque block at `x`, `z`; `None` if there is none, or the column is not here.
    pub fn highest_opaque(&self, x: i64, z: i64) -> Option<BlockPos> {
        let place = BlockPos::new(x, 0, z);
        let [in_x, _, in_z] = place.in_chunk();
        let y = self.column(place.column())?.highest(in_x, in_z, |block| self.is_opaque_type(block))?;
        Some(BlockPos::new(x, y, z))
    }

    /// Whether the sky can be seen from a block: nothing above it is opaque.
    pub fn sees_sky(&self, position: BlockPos) -> Result<bool, BlockAccessError> {
        self.check(position)?;
        Ok(self.highest_opaque(position.x, position.z).is_none_or(|highest| highest.y <= position.y))
    }

    /// Whether all blocks of this range of heights are opaque.
    pub fn is_opaque(&self, x: i64, z: i64, mut heights: Range<i64>) -> Result<bool, BlockAccessError> {
        heights.try_fold(true, |is_opaque, y| Ok(is_opaque && self.is_opaque_type(self.block(BlockPos::new(x, y, z))?)))
    }

    fn is_opaque_type(&self, block: BlockId) -> bool {
        self.block_types().is_none_or(|blocks| blocks.block(block).is_opaque())
    }
}
