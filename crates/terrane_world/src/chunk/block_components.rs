//! Reading and setting the components of a chunk's blocks.

use super::extras::{ComponentArray, PlacedValue, Slot, Value};
use super::format::{check_components, element_slots};
use super::{Chunk, cell};
use crate::block::{BlockComponentId, BlockId, BlockLayout};
use bytemuck::AnyBitPattern;
use std::sync::Arc;
use thiserror::Error;

/// The error for a layer or a component of a block that cannot be read or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BlockValueError {
    /// The cell does not have the layer. New layers are added without gaps.
    #[error("there is no layer {layer} in block [{}, {}, {}], which has {count}", position[0], position[1], position[2])]
    NoLayer {
        /// The cell.
        position: [usize; 3],
        /// The number of its layers, layer 0 included.
        count: usize,
        /// The requested layer.
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
        /// The block's type.
        block: BlockId,
        /// The requested component.
        component: BlockComponentId,
    },
    /// A value does not have the size of its component.
    #[error("component {component} has {expected} bytes, found {found}")]
    Size {
        /// The component.
        component: BlockComponentId,
        /// The size of the component.
        expected: usize,
        /// The size of the value, or of the type that it was read as.
        found: usize,
    },
}

/// Block components: data that single blocks have besides their type. A [`BlockLayout`] gives the components of each
/// block type. A chunk does not store it, so methods that depend on it have a parameter for it.
///
/// Setting or removing a component moves all components that come after it in the chunk.
impl Chunk {
    /// Returns `true` if any block has a component.
    pub fn has_components(&self) -> bool {
        !self.arrays().is_empty()
    }

    /// A component of the block in a layer. `None` if the block's type does not have it, or if it was never set.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    #[inline]
    pub fn component(&self, position: [usize; 3], layer: u8, component: BlockComponentId) -> Option<&[u8]> {
        let slot = Slot::new(cell(position), layer);
        self.extras.as_ref()?.component(component, slot)
    }

    /// Like [`component`](Self::component), as a value of a type of exactly that size.
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
        let slot = Slot::new(cell(position), layer);
        self.arrays().iter().filter_map(move |array| Some((array.layout.id, array.get(slot)?)))
    }

    /// Sets a component of the block in a layer. The block's type must have the component.
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
        let count = self.layer_count(position);
        let block = self.block_at(position, layer).ok_or(BlockValueError::NoLayer { position, count, layer })?;
        let layout = layout.component_layout(block, component);
        let layout = layout.ok_or(BlockValueError::NotOfBlock { position, layer, block, component })?;
        if let Some(size) = layout.size.filter(|size| *size as usize != value.len()) {
            return Err(BlockValueError::Size { component, expected: size as usize, found: value.len() });
        }
        let slot = Slot::new(cell(position), layer);
        self.extras.get_or_insert_default().set_component(layout, slot, Value::Bytes(value));
        Ok(())
    }

    /// The same chunk with all components of its blocks' types. Unset ones become zeros, or empty if they have a
    /// variable size. `None` if no component is missing. A component that a block's type does not have is an error.
    pub fn with_all_components(&self, layout: &impl BlockLayout) -> Result<Option<Self>, BlockValueError> {
        let expected = element_slots(self, layout);
        check_components(self, &expected)?;
        if expected.iter().map(|(_, slots)| slots).eq(self.arrays().iter().map(|array| &array.slots)) {
            return Ok(None);
        }
        let empty: Arc<[u8]> = Arc::default();
        let completed = expected.into_iter().map(|(layout, slots)| {
            let zeros = layout.unset();
            let unset = if layout.size.is_some() { Value::Bytes(&zeros) } else { Value::Shared(&empty) };
            let values: Vec<_> = ComponentArray::values_at(self.array(layout.id), &slots).collect();
            ComponentArray::new(layout, slots, values.into_iter().map(|value| value.unwrap_or(unset)))
        });
        let completed = completed.collect();
        Ok(Some(self.clone().with_arrays(completed)))
    }

    pub(super) fn with_arrays(mut self, arrays: Vec<ComponentArray>) -> Self {
        if !arrays.is_empty() {
            self.extras.get_or_insert_default().components = arrays;
        }
        self
    }

    pub(super) fn values(&self) -> impl Iterator<Item = PlacedValue<'_>> {
        let arrays = self.arrays().iter();
        arrays.flat_map(|array| (0..).zip(&array.slots).map(|(rank, slot)| (array.layout, *slot, array.value(rank))))
    }

    pub(super) fn arrays(&self) -> &[ComponentArray] {
        self.extras.as_ref().map_or(&[], |extras| &extras.components)
    }

    pub(super) fn array(&self, component: BlockComponentId) -> Option<&ComponentArray> {
        self.arrays().iter().find(|array| array.layout.id == component)
    }
}
