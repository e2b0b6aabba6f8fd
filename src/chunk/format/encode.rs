//! From a chunk to bytes.

use super::bits::BitWriter;
use super::element_slots::{ElementSlots, Slot, element_slots};
use super::{
    CELL_BITS, COMPONENT_OFFSET_AT, ENTITY_OFFSET_AT, FORMAT_VERSION, HEADER_BYTES, PALETTE_ENTRY_BYTES, UUID_BYTES,
};
use crate::block::{BlockId, BlockLayout};
use crate::chunk::component_arrays::ComponentArray;
use crate::chunk::packed_ids::{MAX_BITS, PackedIds};
use crate::chunk::{BlockValueError, Chunk, Content, bits_for};
use crate::space::{CHUNK_VOLUME, cell_position};
use rustc_hash::FxHashMap;
use uuid::Uuid;

/// Appends a chunk whose blocks have no components, and the entities stored with it.
///
/// Equal chunks give equal bytes: the palette is written in the order in which its blocks first appear. Components are left
/// out, so a chunk that may have some is for [`encode_with`].
pub fn encode(chunk: &Chunk, entities: &[Uuid], out: &mut Vec<u8>) {
    debug_assert!(!chunk.has_components(), "a chunk with components needs their layout");
    write_blocks(chunk, out, |_| {});
    write_entities(entities, out);
}

/// Appends a chunk and the entities stored with it.
///
/// Equal chunks give equal bytes. A component that a type of block has and that was not set is written as zeros, or as
/// nothing if its size is variable. One that was set and that the type does not have by this layout is an error, and then
/// nothing is appended.
pub fn encode_with(
    layout: &impl BlockLayout,
    chunk: &Chunk,
    entities: &[Uuid],
    out: &mut Vec<u8>,
) -> Result<(), BlockValueError> {
    let components = element_slots(chunk, layout);
    check_components(chunk, &components)?;
    write_blocks(chunk, out, |out| components.iter().for_each(|component| write_component(chunk, component, out)));
    write_entities(entities, out);
    Ok(())
}

/// Writes everything up to the entities.
fn write_blocks(chunk: &Chunk, out: &mut Vec<u8>, write_components: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    let content = chunk.content.canonical();
    let layered = LayeredBlocks::new(chunk, content.palette());
    let palette_count = content.palette().len() + layered.new.len();
    let bits = bits_for(palette_count);
    out.reserve(HEADER_BYTES + palette_count * PALETTE_ENTRY_BYTES + CHUNK_VOLUME / 8 * bits as usize + 64);

    let header = [FORMAT_VERSION, 0, 0, layered.entries.len() as u64, palette_count as u64];
    out.extend_from_slice(header.map(u64::to_le_bytes).as_flattened());
    for block in content.palette().iter().chain(&layered.new) {
        out.extend_from_slice(&u64::from(block.index()).to_le_bytes());
    }
    write_ids(&content, bits, out);
    layered.write(bits, out);

    set_offset(out, start, COMPONENT_OFFSET_AT);
    write_components(out);
    set_offset(out, start, ENTITY_OFFSET_AT);
}

/// Says in the header that a part begins here.
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
        Content::Mixed(mixed) => {
            let mut writer = BitWriter::new(out);
            mixed.ids.unpack().into_iter().for_each(|id| writer.write(id.into(), bits));
            writer.finish();
        }
    }
}

fn write_entities(entities: &[Uuid], out: &mut Vec<u8>) {
    out.reserve(size_of::<u64>() + entities.len() * UUID_BYTES);
    out.extend_from_slice(&(entities.len() as u64).to_le_bytes());
    for entity in entities {
        out.extend_from_slice(entity.as_bytes());
    }
}

/// The blocks above layer 0 with their local ids.
#[derive(Default)]
struct LayeredBlocks {
    /// Blocks that are not in the palette of layer 0, in the order of first appearance.
    new: Vec<BlockId>,
    /// Cell and local id.
    entries: Vec<(usize, usize)>,
}

impl LayeredBlocks {
    fn new(chunk: &Chunk, palette: &[BlockId]) -> Self {
        let Some(extras) = chunk.extras.as_ref().filter(|extras| !extras.layers.is_empty()) else {
            return Self::default();
        };
        let mut local_ids: FxHashMap<BlockId, usize> = palette.iter().copied().zip(0..).collect();
        let mut layered = Self::default();
        for (cell, _, block) in extras.layers.iter() {
            let next = local_ids.len();
            let id = *local_ids.entry(block).or_insert(next);
            if id == next {
                layered.new.push(block);
            }
            layered.entries.push((cell, id));
        }
        layered
    }

    fn write(&self, bits: u32, out: &mut Vec<u8>) {
        let mut writer = BitWriter::new(out);
        for (cell, id) in &self.entries {
            writer.write(*cell as u64, CELL_BITS);
            writer.write(*id as u64, bits);
        }
        writer.finish();
    }
}

/// Checks that what was set in the chunk is what will be written.
pub(in crate::chunk) fn check_components(chunk: &Chunk, components: &[ElementSlots]) -> Result<(), BlockValueError> {
    let Some(extras) = chunk.extras.as_ref().filter(|extras| !extras.components.is_empty()) else { return Ok(()) };
    let mut found = 0;
    for ElementSlots { layout, slots } in components {
        let arrays = extras.components.arrays(layout.id);
        if let (Some(array), Some(size)) = (arrays.first(), layout.size.map(|size| size as usize))
            && array.size() != Some(size)
        {
            let found = array.size().unwrap_or_default();
            return Err(BlockValueError::Size { component: layout.id, expected: size, found });
        }
        found += slots.iter().filter(|slot| value(arrays, **slot).is_some()).count();
    }
    if found == extras.components.len() {
        return Ok(());
    }
    let is_written = |component, layer, cell: usize| {
        let slots = components.iter().find(|slots| slots.layout.id == component).map(|slots| &slots.slots);
        slots.is_some_and(|slots| slots.binary_search(&Slot { cell: cell as u16, layer }).is_ok())
    };
    let lost = extras.components.places().find(|(component, layer, cell)| !is_written(*component, *layer, *cell));
    lost.map_or(Ok(()), |(component, layer, cell)| {
        let position = cell_position(cell);
        let block = chunk.block_at(position, layer).unwrap_or_default();
        Err(BlockValueError::NotOfBlock { position, layer, block, component })
    })
}

fn write_component(chunk: &Chunk, ElementSlots { layout, slots }: &ElementSlots, out: &mut Vec<u8>) {
    let arrays = chunk.extras.as_ref().map_or(&[][..], |extras| extras.components.arrays(layout.id));
    let unset = layout.unset();
    let values = || slots.iter().map(|slot| value(arrays, *slot).unwrap_or(&unset));
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

/// The value of a component of one block.
fn value(arrays: &[ComponentArray], slot: Slot) -> Option<&[u8]> {
    arrays.iter().find(|array| array.layer() == slot.layer)?.get(slot.cell.into())
}
