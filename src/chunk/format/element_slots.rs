//! Which blocks of a chunk have which component, in the order of its array.

use crate::block::{BlockComponentLayout, BlockLayout};
use crate::chunk::{Chunk, Content};
use crate::space::CHUNK_VOLUME;

/// A block in a chunk. Ordered like the elements of a component's array: by cell, the layer fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::chunk) struct Slot {
    pub cell: u16,
    pub layer: u8,
}

/// The blocks that have a component, in the order of its array.
#[derive(Debug)]
pub(in crate::chunk) struct ElementSlots {
    pub layout: BlockComponentLayout,
    pub slots: Vec<Slot>,
}

/// All components of a chunk's blocks, by ascending number.
pub(in crate::chunk) fn element_slots(chunk: &Chunk, layout: &impl BlockLayout) -> Vec<ElementSlots> {
    let mut components: Vec<ElementSlots> = Vec::new();
    for (slot, layouts) in carriers(chunk, layout) {
        for layout in layouts {
            match components.iter_mut().find(|component| component.layout.id == layout.id) {
                Some(component) => component.slots.push(slot),
                None => components.push(ElementSlots { layout: *layout, slots: vec![slot] }),
            }
        }
    }
    components.sort_unstable_by_key(|component| component.layout.id);
    components
}

/// The blocks that have components, and which.
fn carriers<'a>(chunk: &Chunk, layout: &'a impl BlockLayout) -> Vec<(Slot, &'a [BlockComponentLayout])> {
    let palette = chunk.palette();
    let by_local_id = || palette.iter().map(|block| layout.components(*block));
    let mut carriers = Vec::new();
    if by_local_id().any(|components| !components.is_empty()) {
        let by_local_id: Vec<_> = by_local_id().collect();
        for (cell, id) in carrying_cells(chunk, &by_local_id) {
            carriers.push((Slot { cell, layer: 0 }, by_local_id[usize::from(id)]));
        }
    }
    if let Some(extras) = &chunk.extras {
        let layered = extras.layers.iter().map(|(cell, layer, block)| (cell as u16, layer, layout.components(block)));
        let layered = layered.filter(|(_, _, components)| !components.is_empty());
        carriers.extend(layered.map(|(cell, layer, components)| (Slot { cell, layer }, components)));
        carriers.sort_unstable_by_key(|(slot, _)| *slot);
    }
    carriers
}

/// The cells whose block of layer 0 has components, with their local ids.
fn carrying_cells(chunk: &Chunk, by_local_id: &[&[BlockComponentLayout]]) -> Vec<(u16, u16)> {
    let Content::Mixed(mixed) = &chunk.content else {
        return (0..CHUNK_VOLUME as u16).map(|cell| (cell, 0)).collect();
    };
    let carries: Vec<bool> = by_local_id.iter().map(|components| !components.is_empty()).collect();
    let ids = mixed.ids.unpack();
    // Written always and kept if it counts, which is faster than to guess.
    let mut cells = [(0, 0); CHUNK_VOLUME + 1];
    let mut length = 0;
    for (cell, id) in (0..).zip(ids) {
        cells[length] = (cell, id);
        length += usize::from(carries[usize::from(id)]);
    }
    cells[..length].to_vec()
}
