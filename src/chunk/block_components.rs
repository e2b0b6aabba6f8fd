//! The components of the blocks of one chunk: reading and setting them.

use super::format::{check_components, element_slots};
use super::{Chunk, cell};
use crate::block::{BlockComponentId, BlockId, BlockLayout};
use bytemuck::{AnyBitPattern, NoUninit};
use thiserror::Error;

/// Why a component of a block could not be set or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BlockValueError {
    /// The cell does not have that many layers.
    #[error("block [{}, {}, {}] has no layer {layer}", position[0], position[1], position[2])]
    NoBlock {
        /// The cell.
        position: [usize; 3],
        /// The layer asked for.
        layer: u8,
    },
    /// The block's type does not have the component.
    #[error("block {block} at [{}, {}, {}], layer {layer}, does not have the component {component}",
        position[0], position[1], position[2])]
    NotOfBlock {
        /// The cell.
        position: [usize; 3],
        /// The layer.
        layer: u8,
        /// The type of block there.
        block: BlockId,
        /// The component asked for.
        component: BlockComponentId,
    },
    /// A value does not have the size of its component.
    #[error("component {component} has {expected} bytes, found {found}")]
    Size {
        /// The component.
        component: BlockComponentId,
        /// The size of the component.
        expected: usize,
        /// The size of the value, or of the type that it was to be read as.
        found: usize,
    },
}

/// Block components: what single blocks hold besides their type. Which ones a type of block has is what a
/// [`BlockLayout`] says; the chunk does not know it, so it is passed where something depends on it.
///
/// Setting or removing one costs the time to move those that come after it in the chunk.
impl Chunk {
    /// Whether any block has a component.
    pub fn has_components(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| !extras.components.is_empty())
    }

    /// A component of the block in a layer. `None` if the type of block does not have it, or it was never set.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    #[inline]
    pub fn component(&self, position: [usize; 3], layer: u8, component: BlockComponentId) -> Option<&[u8]> {
        let cell = cell(position);
        self.extras.as_ref()?.components.get(component, layer, cell)
    }

    /// Like [`component`](Self::component), as a value of a type that has just its size.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn component_as<T: AnyBitPattern>(
        &self,
        position: [usize; 3],
        layer: u8,
        component: BlockComponentId,
    ) -> Result<Option<T>, BlockValueError> {
        let Some(bytes) = self.component(position, layer, component) else { return Ok(None) };
        let (expected, found) = (bytes.len(), size_of::<T>());
        let value = bytemuck::try_pod_read_unaligned(bytes);
        value.map(Some).map_err(|_| BlockValueError::Size { component, expected, found })
    }

    /// All components of the block in a layer, by ascending number.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn components(&self, position: [usize; 3], layer: u8) -> impl Iterator<Item = (BlockComponentId, &[u8])> {
        let cell = cell(position);
        self.extras.iter().flat_map(move |extras| extras.components.of_block(layer, cell))
    }

    /// Sets a component of the block in a layer, which must be of a type that has it.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn set_component(
        &mut self,
        layout: &impl BlockLayout,
        position: [usize; 3],
        layer: u8,
        component: BlockComponentId,
        value: &[u8],
    ) -> Result<(), BlockValueError> {
        let block = self.block_at(position, layer).ok_or(BlockValueError::NoBlock { position, layer })?;
        let layout = layout.components(block).iter().find(|layout| layout.id == component);
        let layout = layout.ok_or(BlockValueError::NotOfBlock { position, layer, block, component })?;
        if let Some(size) = layout.size.filter(|size| *size as usize != value.len()) {
            return Err(BlockValueError::Size { component, expected: size as usize, found: value.len() });
        }
        self.extras.get_or_insert_default().components.set(*layout, layer, cell(position), value);
        Ok(())
    }

    /// Like [`set_component`](Self::set_component), with the bytes of a value.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn set_component_as<T: NoUninit>(
        &mut self,
        layout: &impl BlockLayout,
        position: [usize; 3],
        layer: u8,
        component: BlockComponentId,
        value: &T,
    ) -> Result<(), BlockValueError> {
        self.set_component(layout, position, layer, component, bytemuck::bytes_of(value))
    }

    /// The same chunk with all the components that its blocks' types have: zeroes, or no bytes where the size is variable, for
    /// those that were not set. `None` if none is missing. A component that a block's type does not have is an error.
    pub fn with_all_components(&self, layout: &impl BlockLayout) -> Result<Option<Self>, BlockValueError> {
        let expected = element_slots(self, layout);
        check_components(self, &expected)?;
        let found = self.extras.as_ref().map_or(0, |extras| extras.components.len());
        if expected.iter().map(|component| component.slots.len()).sum::<usize>() == found {
            return Ok(None);
        }
        let mut completed = self.clone();
        let components = &mut completed.extras.get_or_insert_default().components;
        for component in expected {
            let unset = component.layout.unset();
            for slot in component.slots {
                if components.get(component.layout.id, slot.layer, slot.cell.into()).is_none() {
                    components.set(component.layout, slot.layer, slot.cell.into(), &unset);
                }
            }
        }
        Ok(Some(completed))
    }
}
