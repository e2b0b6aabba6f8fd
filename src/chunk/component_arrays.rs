//! How a chunk keeps the components of its blocks.

use super::cell_set::CellSet;
use crate::block::{BlockComponentId, BlockComponentLayout};
use std::sync::Arc;

/// The components of a chunk's blocks: an array for each component and layer that has any, by component and then layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Components(Vec<ComponentArray>);

/// One component of the blocks in one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ComponentArray {
    id: BlockComponentId,
    layer: u8,
    cells: CellSet,
    values: Values,
}

/// A value, and where it is in a chunk.
#[derive(Clone, Copy)]
pub(super) struct PlacedValue<'a> {
    pub id: BlockComponentId,
    pub layer: u8,
    pub cell: u16,
    pub value: Value<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Fixed(&'a [u8]),
    Variable(&'a Arc<[u8]>),
}

/// Values in the order of the cells.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Values {
    /// Each of `size` bytes.
    Fixed { size: usize, bytes: Vec<u8> },
    /// Shared, so that an edit of something else in the chunk does not copy a library.
    Variable(Vec<Arc<[u8]>>),
}

impl Components {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.0.iter().map(|array| array.cells.len()).sum()
    }

    pub fn get(&self, id: BlockComponentId, layer: u8, cell: usize) -> Option<&[u8]> {
        let place = self.place(id, layer).ok()?;
        self.0[place].get(cell)
    }

    /// The arrays of a component, one a layer.
    pub fn arrays(&self, id: BlockComponentId) -> &[ComponentArray] {
        let start = self.0.partition_point(|array| array.id < id);
        let length = self.0[start..].partition_point(|array| array.id == id);
        &self.0[start..start + length]
    }

    /// All components of a block, by ascending number.
    pub fn of_block(&self, layer: u8, cell: usize) -> impl Iterator<Item = (BlockComponentId, &[u8])> {
        let arrays = self.0.iter().filter(move |array| array.layer == layer);
        arrays.filter_map(move |array| Some((array.id, array.get(cell)?)))
    }

    /// Every value's component, layer and cell.
    pub fn places(&self) -> impl Iterator<Item = (BlockComponentId, u8, usize)> {
        self.0.iter().flat_map(|array| array.cells.iter().map(|cell| (array.id, array.layer, cell)))
    }

    /// Every value and its place.
    pub fn values(&self) -> impl Iterator<Item = PlacedValue<'_>> {
        self.0.iter().flat_map(|array| {
            let placed = |(rank, cell)| PlacedValue {
                id: array.id,
                layer: array.layer,
                cell: cell as u16,
                value: array.values.value(rank),
            };
            array.cells.iter().enumerate().map(placed)
        })
    }

    /// Takes values at different places. Those of variable size are shared with where they come from.
    pub fn from_values(mut values: Vec<PlacedValue<'_>>) -> Self {
        values.sort_unstable_by_key(|value| (value.id, value.layer, value.cell));
        let arrays = values.chunk_by(|a, b| (a.id, a.layer) == (b.id, b.layer));
        Self(arrays.map(ComponentArray::from_values).collect())
    }

    /// Sets a value, which has the length that the layout says.
    pub fn set(&mut self, layout: BlockComponentLayout, layer: u8, cell: usize, value: &[u8]) {
        let place = self.place(layout.id, layer).unwrap_or_else(|place| {
            self.0.insert(place, ComponentArray::new(layout, layer));
            place
        });
        self.0[place].set(cell, value);
    }

    /// Takes arrays of different components or layers, each with at least one value.
    pub fn from_arrays(mut arrays: Vec<ComponentArray>) -> Self {
        arrays.sort_unstable_by_key(|array| (array.id, array.layer));
        Self(arrays)
    }

    /// Drops all components of a block.
    pub fn remove(&mut self, layer: u8, cell: usize) {
        self.0.iter_mut().filter(|array| array.layer == layer).for_each(|array| array.remove(cell));
        self.0.retain(|array| array.cells.len() > 0);
    }

    /// Gives the components of a block to the one in the layer below it, which has none.
    pub fn move_down(&mut self, layer: u8, cell: usize) {
        let moved = |array: &ComponentArray| Some((array.layout(), array.get(cell)?.to_vec()));
        let moved: Vec<_> = self.0.iter().filter(|array| array.layer == layer).filter_map(moved).collect();
        self.remove(layer, cell);
        moved.iter().for_each(|(layout, value)| self.set(*layout, layer - 1, cell, value));
    }

    pub fn heap_bytes(&self) -> usize {
        let arrays = self.0.iter().map(|array| array.cells.heap_bytes() + array.values.heap_bytes());
        self.0.capacity() * size_of::<ComponentArray>() + arrays.sum::<usize>()
    }

    fn place(&self, id: BlockComponentId, layer: u8) -> Result<usize, usize> {
        self.0.binary_search_by_key(&(id, layer), |array| (array.id, array.layer))
    }
}

impl ComponentArray {
    fn new(layout: BlockComponentLayout, layer: u8) -> Self {
        Self { id: layout.id, layer, cells: CellSet::new(), values: Values::new(layout) }
    }

    /// Takes the values in the order of the cells, which must ascend.
    pub fn from_ascending<'a>(
        layout: BlockComponentLayout,
        layer: u8,
        cells: &[u16],
        values: impl Iterator<Item = &'a [u8]>,
    ) -> Self {
        let values = Values::collect(layout, cells.len(), values);
        Self { id: layout.id, layer, cells: CellSet::from_ascending(cells), values }
    }

    /// Takes values of one component in one layer, at least one, by ascending cells.
    fn from_values(values: &[PlacedValue<'_>]) -> Self {
        let cells: Vec<u16> = values.iter().map(|value| value.cell).collect();
        Self {
            id: values[0].id,
            layer: values[0].layer,
            cells: CellSet::from_ascending(&cells),
            values: Values::from_values(values),
        }
    }

    pub fn layer(&self) -> u8 {
        self.layer
    }

    #[inline]
    pub fn get(&self, cell: usize) -> Option<&[u8]> {
        self.cells.rank(cell).ok().map(|rank| self.values.get(rank))
    }

    fn set(&mut self, cell: usize, value: &[u8]) {
        match self.cells.rank(cell) {
            Ok(rank) => self.values.replace(rank, value),
            Err(rank) => {
                self.cells.insert(cell);
                self.values.insert(rank, value);
            }
        }
    }

    fn remove(&mut self, cell: usize) {
        if let Ok(rank) = self.cells.rank(cell) {
            self.cells.remove(cell);
            self.values.remove(rank);
        }
    }

    /// The bytes of each value, if they are all alike.
    pub fn size(&self) -> Option<usize> {
        match self.values {
            Values::Fixed { size, .. } => Some(size),
            Values::Variable(_) => None,
        }
    }

    fn layout(&self) -> BlockComponentLayout {
        BlockComponentLayout { id: self.id, size: self.size().map(|size| size as u32) }
    }
}

impl Values {
    fn new(layout: BlockComponentLayout) -> Self {
        match layout.size {
            Some(size) => Self::Fixed { size: size as usize, bytes: Vec::new() },
            None => Self::Variable(Vec::new()),
        }
    }

    fn collect<'a>(layout: BlockComponentLayout, count: usize, values: impl Iterator<Item = &'a [u8]>) -> Self {
        match layout.size {
            Some(size) => {
                let mut bytes = Vec::with_capacity(size as usize * count);
                values.for_each(|value| bytes.extend_from_slice(value));
                Self::Fixed { size: size as usize, bytes }
            }
            None => Self::Variable(values.map(Arc::from).collect()),
        }
    }

    fn from_values(placed: &[PlacedValue<'_>]) -> Self {
        let size = match placed[0].value {
            Value::Fixed(bytes) => Some(bytes.len()),
            Value::Variable(_) => None,
        };
        let is_alike = |placed: &PlacedValue| matches!(placed.value, Value::Fixed(bytes) if Some(bytes.len()) == size);
        match size.filter(|_| placed.iter().all(is_alike)) {
            Some(size) => {
                let mut bytes = Vec::with_capacity(size * placed.len());
                placed.iter().for_each(|placed| bytes.extend_from_slice(placed.value.bytes()));
                Self::Fixed { size, bytes }
            }
            None => Self::Variable(placed.iter().map(|placed| placed.value.share()).collect()),
        }
    }

    fn value(&self, rank: usize) -> Value<'_> {
        match self {
            Self::Fixed { .. } => Value::Fixed(self.get(rank)),
            Self::Variable(values) => Value::Variable(&values[rank]),
        }
    }

    #[inline]
    fn get(&self, rank: usize) -> &[u8] {
        match self {
            Self::Fixed { size, bytes } => &bytes[rank * size..][..*size],
            Self::Variable(values) => &values[rank],
        }
    }

    fn replace(&mut self, rank: usize, value: &[u8]) {
        match self {
            Self::Fixed { size, bytes } => bytes[rank * *size..][..*size].copy_from_slice(value),
            Self::Variable(values) => values[rank] = value.into(),
        }
    }

    fn insert(&mut self, rank: usize, value: &[u8]) {
        match self {
            Self::Fixed { size, bytes } => {
                debug_assert_eq!(value.len(), *size);
                bytes.splice(rank * *size..rank * *size, value.iter().copied());
            }
            Self::Variable(values) => values.insert(rank, value.into()),
        }
    }

    fn remove(&mut self, rank: usize) {
        match self {
            Self::Fixed { size, bytes } => drop(bytes.drain(rank * *size..(rank + 1) * *size)),
            Self::Variable(values) => drop(values.remove(rank)),
        }
    }

    fn heap_bytes(&self) -> usize {
        let counters = 2 * size_of::<usize>();
        match self {
            Self::Fixed { bytes, .. } => bytes.capacity(),
            Self::Variable(values) => {
                let data: usize = values.iter().map(|value| counters + value.len()).sum();
                values.capacity() * size_of::<Arc<[u8]>>() + data
            }
        }
    }
}

impl<'a> Value<'a> {
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Variable(bytes) => bytes,
        }
    }

    fn share(self) -> Arc<[u8]> {
        match self {
            Self::Fixed(bytes) => bytes.into(),
            Self::Variable(bytes) => bytes.clone(),
        }
    }
}
