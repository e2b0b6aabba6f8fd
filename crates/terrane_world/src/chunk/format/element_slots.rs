//! The blocks that have each component, in the order of the component's array.

use crate::block::{BlockComponentLayout, BlockLayout};
use crate::chunk::extras::Slot;
use crate::chunk::{Chunk, Content};
use crate::space::CHUNK_VOLUME;

/// All components of a chunk's blocks, by ascending number, each with the blocks that have it in the order of its array.
pub(in crate::chunk) fn element_slots(
    chunk: &Chunk,
    layout: &impl BlockLayout,
) -> Vec<(BlockComponentLayout, Vec<Slot>)> {
    let mut components: Vec<(BlockComponentLayout, Vec<Slot>)> = Vec::new();
    for (slot, layouts) in carriers(chunk, layout) {
        for layout in layouts {
            match components.iter_mut().find(|(known, _)| known.id == layout.id) {
                Some((_, slots)) => slots.push(slot),
                None => components.push((*layout, vec![slot])),
            }
        }
    }
    components.sort_unstable_by_key(|(layout, _)| layout.id);
    components
}

/// The blocks that have components, with those components.
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
    if !chunk.layers().is_empty() {
        let layered = chunk.layers().iter().map(|(slot, block)| (*slot, layout.components(*block)));
        carriers.extend(layered.filter(|(_, components)| !components.is_empty()));
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
    // Writing every cell and only advancing past wanted ones is faster than a branch.
    let mut cells = [(0, 0); CHUNK_VOLUME + 1];
    let mut length = 0;
    for (cell, id) in (0..).zip(ids) {
        cells[length] = (cell, id);
        length += usize::from(carries[usize::from(id)]);
    }
    cells[..length].to_vec()
}
