//! Encodes chunks.

use super::component_array::element_slots;
use super::encoded_chunk::put_bits;
use super::{
    CELL_BITS, COMPONENT_OFFSET_AT, ENTITY_OFFSET_AT, FORMAT_VERSION, HEADER_BYTES, PALETTE_ENTRY_BYTES, UUID_BYTES,
};
use crate::block::{BlockComponentLayout, BlockId, BlockLayout};
use crate::chunk::extras::{ComponentArray, Slot};
use crate::chunk::packed_ids::{MAX_BITS, PackedIds};
use crate::chunk::{BlockValueError, Chunk, Content, bits_for};
use crate::space::{CHUNK_VOLUME, cell_position};
use rustc_hash::FxHashMap;
use uuid::Uuid;

/// Appends a chunk and the entities stored with it.
///
/// Equal chunks give equal bytes: the palette is written in the order of first appearance. Unset components of a block
/// type are written as zeros, or as empty if their size is variable. A component that the block's type does not have
/// by this layout is an error, and then nothing is appended.
pub fn encode(
    layout: &impl BlockLayout,
    chunk: &Chunk,
    entities: &[Uuid],
    out: &mut Vec<u8>,
) -> Result<(), BlockValueError> {
    let components = element_slots(chunk, layout);
    check_components(chunk, &components)?;
    let start = out.len();
    write_blocks(chunk, out);
    set_offset(out, start, COMPONENT_OFFSET_AT);
    components.iter().for_each(|(layout, slots)| write_component(*layout, slots, chunk.array(layout.id), out));
    set_offset(out, start, ENTITY_OFFSET_AT);
    write_entities(entities, out);
    Ok(())
}

/// Writes all parts before the components.
fn write_blocks(chunk: &Chunk, out: &mut Vec<u8>) {
    let content = chunk.content.canonical();
    let (new, layer_ids) = layer_ids(chunk.layers(), content.palette());
    let palette_count = content.palette().len() + new.len();
    let bits = bits_for(palette_count);
    out.reserve(HEADER_BYTES + palette_count * PALETTE_ENTRY_BYTES + CHUNK_VOLUME / 8 * bits as usize + 64);

    let header = [FORMAT_VERSION, 0, 0, layer_ids.len() as u64, palette_count as u64];
    out.extend_from_slice(header.map(u64::to_le_bytes).as_flattened());
    for block in content.palette().iter().chain(&new) {
        out.extend_from_slice(&u64::from(block.index()).to_le_bytes());
    }
    write_ids(&content, bits, out);
    let layers = chunk.layers().iter().zip(layer_ids);
    put_bits(out, layers.flat_map(|((slot, _), id)| [(slot.cell.into(), CELL_BITS), (id as u64, bits)]));
}

/// Writes the current length to the header as the offset of a part.
fn set_offset(out: &mut [u8], start: usize, at: usize) {
    let offset = (out.len() - start) as u64;
    out[start + at..][..size_of::<u64>()].copy_from_slice(&offset.to_le_bytes());
}

fn write_ids(content: &Content, bits: u32, out: &mut Vec<u8>) {
    match content {
        Content::Uniform(_) => out.resize(out.len() + CHUNK_VOLUME / 8 * bits as usize, 0),
        Content::Mixed(mixed) if mixed.ids.bits() == bits => out.extend_from_slice(mixed.ids.bytes()),
        Content::Mixed(mixed) if bits <= MAX_BITS => {
            out.extend_from_slice(PackedIds::pack(&mixed.ids.unpack(), bits).bytes());
        }
        Content::Mixed(mixed) => put_bits(out, mixed.ids.unpack().into_iter().map(|id| (id.into(), bits))),
    }
}

fn write_entities(entities: &[Uuid], out: &mut Vec<u8>) {
    out.reserve(size_of::<u64>() + entities.len() * UUID_BYTES);
    out.extend_from_slice(&(entities.len() as u64).to_le_bytes());
    for entity in entities {
        out.extend_from_slice(entity.as_bytes());
    }
}

/// The local ids of the blocks above layer 0, and the blocks among them that are not in the palette of layer 0, in the
/// order of first appearance.
fn layer_ids(layers: &[(Slot, BlockId)], palette: &[BlockId]) -> (Vec<BlockId>, Vec<usize>) {
    if layers.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut local_ids: FxHashMap<BlockId, usize> = palette.iter().copied().zip(0..).collect();
    let mut new = Vec::new();
    let ids = layers.iter().map(|(_, block)| {
        *local_ids.entry(*block).or_insert_with(|| {
            new.push(*block);
            palette.len() + new.len() - 1
        })
    });
    let ids = ids.collect();
    (new, ids)
}

/// Checks that all components of the chunk will be written.
pub(in crate::chunk) fn check_components(
    chunk: &Chunk,
    expected: &[(BlockComponentLayout, Vec<Slot>)],
) -> Result<(), BlockValueError> {
    for array in chunk.arrays() {
        let component = array.layout.id;
        let known = expected.iter().find(|(layout, _)| layout.id == component);
        if let Some((layout, slots)) = known {
            if *layout != array.layout {
                let [expected, found] = [layout, &array.layout].map(|layout| layout.unset().len());
                return Err(BlockValueError::Size { component, expected, found });
            }
            if *slots == array.slots {
                continue;
            }
        }
        let slots = known.map_or(&[][..], |(_, slots)| slots);
        if let Some(lost) = array.slots.iter().find(|slot| slots.binary_search(slot).is_err()) {
            let (position, layer) = (cell_position(lost.cell.into()), lost.layer);
            let block = chunk.block_in(*lost).unwrap_or_default();
            return Err(BlockValueError::NotOfBlock { position, layer, block, component });
        }
    }
    Ok(())
}

fn write_component(layout: BlockComponentLayout, slots: &[Slot], array: Option<&ComponentArray>, out: &mut Vec<u8>) {
    let unset = layout.unset();
    let values =
        || ComponentArray::values_at(array, slots).map(|value| value.map_or(&unset[..], |value| value.bytes()));
    out.extend_from_slice(&layout.id.number().to_le_bytes());
    if layout.size.is_none() {
        let length = values().map(|value| value.len() as u64).sum::<u64>();
        let offset_bytes = (u64::BITS - length.leading_zeros()).div_ceil(8).max(1);
        out.push(offset_bytes as u8);
        let mut offset = 0_u64;
        for length in std::iter::once(0).chain(values().map(<[u8]>::len)) {
            offset += length as u64;
            out.extend_from_slice(&offset.to_le_bytes()[..offset_bytes as usize]);
        }
    }
    values().for_each(|value| out.extend_from_slice(value));
}
