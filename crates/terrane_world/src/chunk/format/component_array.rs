//! Component arrays in the bytes of a chunk, and the blocks that have each component, in the same order.

use super::{ChunkFormatError, part};
use crate::block::{BlockComponentLayout, BlockLayout};
use crate::chunk::extras::Slot;
use crate::chunk::{Chunk, Content};
use crate::space::CHUNK_VOLUME;

/// Reads the array of `count` elements that begins at `offset`, right after its component's number. Returns its
/// elements by rank, and the offset of its end.
pub(super) fn read_array<'a>(
    bytes: &'a [u8],
    offset: usize,
    layout: BlockComponentLayout,
    count: usize,
) -> Result<(impl Fn(usize) -> Result<&'a [u8], ChunkFormatError>, usize), ChunkFormatError> {
    // The place of the offsets, which elements of a fixed size do not have, and the bytes of each offset.
    let (offsets_at, offset_bytes) = match layout.size {
        Some(_) => (offset, 0),
        None => (offset + 1, usize::from(part(bytes, offset, 1, "bytes per offset")?[0])),
    };
    if layout.size.is_none() && !(1..=8).contains(&offset_bytes) {
        let what = format!("expected 1 to 8 bytes per offset, found {offset_bytes}");
        return Err(ChunkFormatError::damage(offset, what));
    }
    let offsets = part(bytes, offsets_at, (count as u128 + 1) * offset_bytes as u128, "component offsets")?;
    let data_at = offsets_at + offsets.len();
    let data = match layout.size {
        Some(size) => part(bytes, data_at, u128::from(size) * count as u128, "component array")?,
        None => part(bytes, data_at, number_at(offsets, count, offset_bytes).into(), "component data")?,
    };
    let first = number_at(offsets, 0, offset_bytes);
    if first != 0 {
        return Err(ChunkFormatError::damage(offsets_at, format!("expected an offset of 0, found {first}")));
    }
    let value = move |rank: usize| {
        if let Some(size) = layout.size {
            return Ok(&data[rank * size as usize..][..size as usize]);
        }
        let (least, found) = (number_at(offsets, rank, offset_bytes), number_at(offsets, rank + 1, offset_bytes));
        data.get(least as usize..found as usize).ok_or_else(|| {
            let what = format!("expected an offset of {least} to {}, found {found}", data.len());
            ChunkFormatError::damage(offsets_at + (rank + 1) * offset_bytes, what)
        })
    };
    Ok((value, data_at + data.len()))
}

/// A number of `size` bytes, at most 8.
fn number_at(bytes: &[u8], place: usize, size: usize) -> u64 {
    let mut number = [0; 8];
    number[..size].copy_from_slice(&bytes[place * size..][..size]);
    u64::from_le_bytes(number)
}

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
