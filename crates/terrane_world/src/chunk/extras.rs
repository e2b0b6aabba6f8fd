//! Layers and components, which few chunks have. They are stored separately, so that other chunks stay small.

use crate::block::{BlockComponentId, BlockComponentLayout, BlockId};
use std::sync::Arc;

/// A block in a chunk. Ordered like the elements of a component's array in the format: by cell, then by layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub cell: u16,
    pub layer: u8,
}

/// The layers and components of a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extras {
    /// The blocks above layer 0, in order. A cell's layers have no gaps.
    pub layers: Vec<(Slot, BlockId)>,
    /// Ordered by component. No array is empty.
    pub components: Vec<ComponentArray>,
}

/// One component, with the values of all blocks that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ComponentArray {
    pub layout: BlockComponentLayout,
    /// In order.
    pub slots: Vec<Slot>,
    values: Values,
}

/// The values of a component, in the order of the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Values {
    /// The layout gives the size of each value.
    Fixed(Vec<u8>),
    /// Shared, so that copying the chunk for an unrelated edit does not copy large values.
    Variable(Vec<Arc<[u8]>>),
}

/// A value to put into an array. A shared value stays shared if its size is variable.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Bytes(&'a [u8]),
    Shared(&'a Arc<[u8]>),
}

/// A value and its place in a chunk.
pub(super) type PlacedValue<'a> = (BlockComponentLayout, Slot, Value<'a>);

impl Slot {
    #[inline]
    pub const fn new(cell: usize, layer: u8) -> Self {
        Self { cell: cell as u16, layer }
    }
}

impl Extras {
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty() && self.components.is_empty()
    }

    /// The number of a cell's blocks above layer 0.
    pub fn layer_count(&self, cell: usize) -> usize {
        let end = self.layers.partition_point(|(slot, _)| usize::from(slot.cell) <= cell);
        match self.layers[..end].last() {
            Some((top, _)) if usize::from(top.cell) == cell => top.layer.into(),
            _ => 0,
        }
    }

    /// A block above layer 0.
    pub fn layer(&self, slot: Slot) -> Option<BlockId> {
        self.find_layer(slot).ok().map(|place| self.layers[place].1)
    }

    /// Replaces a block above layer 0, or adds one on top of a cell's blocks.
    pub fn set_layer(&mut self, slot: Slot, block: BlockId) -> Option<BlockId> {
        match self.find_layer(slot) {
            Ok(place) => Some(std::mem::replace(&mut self.layers[place].1, block)),
            Err(place) => {
                self.layers.insert(place, (slot, block));
                None
            }
        }
    }

    /// Removes a block and its components. The blocks above it move down by one with their components. If the block
    /// was in layer 0, the lowest of them leaves the extras.
    pub fn remove(&mut self, slot: Slot) {
        self.remove_components(slot);
        if let Ok(place) = self.find_layer(Slot { layer: slot.layer.max(1), ..slot }) {
            self.layers.remove(place);
            move_down(self.layers[place..].iter_mut().map(|(slot, _)| slot), slot.cell);
        }
        for array in &mut self.components {
            let above = array.slots.partition_point(|other| *other < slot);
            move_down(array.slots[above..].iter_mut(), slot.cell);
        }
    }

    fn find_layer(&self, slot: Slot) -> Result<usize, usize> {
        self.layers.binary_search_by_key(&slot, |(slot, _)| *slot)
    }

    pub fn component(&self, id: BlockComponentId, slot: Slot) -> Option<&[u8]> {
        self.components.iter().filter(|array| array.layout.id == id).find_map(|array| array.get(slot))
    }

    /// Sets a value, which must have the length of the layout.
    pub fn set_component(&mut self, layout: BlockComponentLayout, slot: Slot, value: Value<'_>) {
        let place = self.components.binary_search_by_key(&layout, |array| array.layout).unwrap_or_else(|place| {
            self.components.insert(place, ComponentArray::new(layout, Vec::new(), std::iter::empty()));
            place
        });
        self.components[place].set(slot, value);
    }

    /// Drops all components of a block.
    pub fn remove_components(&mut self, slot: Slot) {
        self.components.iter_mut().for_each(|array| array.remove(slot));
        self.components.retain(|array| !array.slots.is_empty());
    }

    pub fn heap_bytes(&self) -> usize {
        let arrays = self.components.iter().map(ComponentArray::heap_bytes).sum::<usize>();
        size_of::<Self>()
            + self.layers.capacity() * size_of::<(Slot, BlockId)>()
            + self.components.capacity() * size_of::<ComponentArray>()
            + arrays
    }
}

/// Builds the arrays of values at distinct places.
pub(super) fn arrays(mut values: Vec<PlacedValue<'_>>) -> Vec<ComponentArray> {
    values.sort_unstable_by_key(|(layout, slot, _)| (*layout, *slot));
    let arrays = values.chunk_by(|a, b| a.0 == b.0).map(|values| {
        let slots = values.iter().map(|(_, slot, _)| *slot).collect();
        ComponentArray::new(values[0].0, slots, values.iter().map(|(.., value)| *value))
    });
    arrays.collect()
}

fn move_down<'a>(slots: impl Iterator<Item = &'a mut Slot>, cell: u16) {
    slots.take_while(|slot| slot.cell == cell).for_each(|slot| slot.layer -= 1);
}

impl ComponentArray {
    /// Takes as many values as slots. The slots must ascend.
    pub fn new<'a>(layout: BlockComponentLayout, slots: Vec<Slot>, values: impl Iterator<Item = Value<'a>>) -> Self {
        debug_assert!(slots.is_sorted_by(|a, b| a < b));
        let values = match layout.size {
            Some(size) => {
                let mut bytes = Vec::with_capacity(size as usize * slots.len());
                values.for_each(|value| bytes.extend_from_slice(value.bytes()));
                Values::Fixed(bytes)
            }
            None => Values::Variable(values.map(Value::share).collect()),
        };
        Self { layout, slots, values }
    }

    #[inline]
    pub fn get(&self, slot: Slot) -> Option<&[u8]> {
        self.slots.binary_search(&slot).ok().map(|rank| self.value(rank).bytes())
    }

    /// The value of the slot at this rank.
    #[inline]
    pub fn value(&self, rank: usize) -> Value<'_> {
        match &self.values {
            Values::Fixed(bytes) => Value::Bytes(&bytes[rank * self.size()..][..self.size()]),
            Values::Variable(values) => Value::Shared(&values[rank]),
        }
    }

    /// The values of ascending slots, which include all slots of the array. Other slots give `None`.
    pub fn values_at<'a>(array: Option<&'a Self>, slots: &[Slot]) -> impl Iterator<Item = Option<Value<'a>>> {
        let mut rank = 0;
        slots.iter().map(move |slot| {
            let array = array.filter(|array| array.slots.get(rank) == Some(slot))?;
            rank += 1;
            Some(array.value(rank - 1))
        })
    }

    fn set(&mut self, slot: Slot, value: Value<'_>) {
        let (size, found) = (self.size(), self.slots.binary_search(&slot));
        debug_assert!(self.layout.size.is_none() || value.bytes().len() == size);
        match (&mut self.values, found) {
            (Values::Fixed(bytes), Ok(rank)) => bytes[rank * size..][..size].copy_from_slice(value.bytes()),
            (Values::Fixed(bytes), Err(rank)) => {
                bytes.splice(rank * size..rank * size, value.bytes().iter().copied());
            }
            (Values::Variable(values), Ok(rank)) => values[rank] = value.share(),
            (Values::Variable(values), Err(rank)) => values.insert(rank, value.share()),
        }
        if let Err(rank) = found {
            self.slots.insert(rank, slot);
        }
    }

    fn remove(&mut self, slot: Slot) {
        let Ok(rank) = self.slots.binary_search(&slot) else { return };
        let size = self.size();
        self.slots.remove(rank);
        match &mut self.values {
            Values::Fixed(bytes) => drop(bytes.drain(rank * size..(rank + 1) * size)),
            Values::Variable(values) => drop(values.remove(rank)),
        }
    }

    fn size(&self) -> usize {
        self.layout.size.map_or(0, |size| size as usize)
    }

    fn heap_bytes(&self) -> usize {
        let counters = 2 * size_of::<usize>();
        let values = match &self.values {
            Values::Fixed(bytes) => bytes.capacity(),
            Values::Variable(values) => {
                let data: usize = values.iter().map(|value| counters + value.len()).sum();
                values.capacity() * size_of::<Arc<[u8]>>() + data
            }
        };
        self.slots.capacity() * size_of::<Slot>() + values
    }
}

impl<'a> Value<'a> {
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    fn share(self) -> Arc<[u8]> {
        match self {
            Self::Bytes(bytes) => bytes.into(),
            Self::Shared(bytes) => bytes.clone(),
        }
    }
}
