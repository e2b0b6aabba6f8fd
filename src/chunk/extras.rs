//! What few chunks have, so that the others are small.

use super::component_arrays::Components;
use super::layer_lists::Layers;

/// What few chunks have besides one block a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extras {
    pub layers: Layers,
    pub components: Components,
}

impl Extras {
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty() && self.components.is_empty()
    }

    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.layers.heap_bytes() + self.components.heap_bytes()
    }
}
