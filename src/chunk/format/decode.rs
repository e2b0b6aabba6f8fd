//! From bytes to a chunk.

use super::bits::bits_at;
use super::component_array::ArrayBytes;
use super::element_slots::{ElementSlots, element_slots};
use super::{ChunkFormatError, EncodedChunk, NoComponents};
use crate::block::BlockLayout;
use crate::chunk::component_arrays::{ComponentArray, Components};
use crate::chunk::extras::Extras;
use crate::chunk::layer_lists::Layers;
use crate::chunk::packed_ids::{MAX_BITS, PackedIds, all_below};
use crate::chunk::palette::Palette;
use crate::chunk::{Chunk, Content, Mixed};
use crate::space::CHUNK_VOLUME;
use uuid::Uuid;

/// Up to so many entries, looking each of them up finds repetitions faster than sorting does.
const LARGEST_SEARCHED: usize = 64;

/// What the bytes of a chunk hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedChunk {
    /// The blocks with their layers and components.
    pub chunk: Chunk,
    /// The entities stored with the chunk.
    pub entities: Vec<Uuid>,
}

/// Reads one chunk, whose blocks have no components, from exactly these bytes.
///
/// Palettes that repeat a block or have unused entries are fine. Memory is only asked for after its length was checked
/// against the bytes that are there.
pub fn decode(bytes: &[u8]) -> Result<DecodedChunk, ChunkFormatError> {
    decode_with(&NoComponents, bytes)
}

/// Reads one chunk from exactly these bytes, with the layout that it was written with.
///
/// Palettes that repeat a block or have unused entries, layers in any order of cells and components in any order are fine.
/// Memory is only asked for after its length was checked against the bytes that are there.
pub fn decode_with(layout: &impl BlockLayout, bytes: &[u8]) -> Result<DecodedChunk, ChunkFormatError> {
    let encoded = EncodedChunk::new(bytes)?;
    let mut chunk = Chunk { content: decode_blocks(&encoded)?, extras: None };
    let layers = decode_layers(&encoded)?;
    if !layers.is_empty() {
        chunk.extras = Some(Box::new(Extras { layers, components: Components::default() }));
    }
    let components = decode_components(&encoded, element_slots(&chunk, layout))?;
    if !components.is_empty() {
        chunk.extras.get_or_insert_default().components = components;
    }
    Ok(DecodedChunk { chunk, entities: encoded.entities().collect() })
}

fn decode_blocks(encoded: &EncodedChunk) -> Result<Content, ChunkFormatError> {
    let EncodedChunk { blocks, bits, .. } = *encoded;
    let palette_count = encoded.palette.len();
    if palette_count == 1 {
        return Ok(Content::Uniform(encoded.palette_block(0)));
    }
    if bits > MAX_BITS {
        return decode_each_block(encoded);
    }
    let limit = palette_count as u32;
    if !all_below(blocks, bits, limit) {
        // It finds the one to blame.
        return decode_each_block(encoded);
    }
    let palette: Palette = encoded.palette_blocks().collect();
    if has_repetitions(&palette) {
        return decode_each_block(encoded);
    }
    Ok(Content::Mixed(Mixed { palette, ids: PackedIds::from_bytes(blocks), is_canonical: false }))
}

/// The slow way, for palettes that no chunk in memory has.
fn decode_each_block(encoded: &EncodedChunk) -> Result<Content, ChunkFormatError> {
    let mut blocks = Vec::with_capacity(CHUNK_VOLUME);
    for cell in 0..CHUNK_VOLUME {
        let bit = cell * encoded.bits as usize;
        let local_id = bits_at(encoded.blocks, bit, encoded.bits);
        blocks.push(encoded.block_of(local_id, encoded.blocks_at + bit / 8)?);
    }
    let mut blocks = blocks.into_iter();
    Ok(Chunk::from_fn(|_| blocks.next().unwrap_or_default()).content)
}

fn has_repetitions(palette: &Palette) -> bool {
    if palette.len() <= LARGEST_SEARCHED {
        return palette.as_slice().iter().zip(0..).any(|(block, place)| palette.find(*block) != Some(place));
    }
    let mut sorted = palette.as_slice().to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

fn decode_layers(encoded: &EncodedChunk) -> Result<Layers, ChunkFormatError> {
    let mut entries = Vec::new();
    for entry in encoded.layered_entries() {
        entries.push((entry.cell as u16, encoded.block_of(entry.local_id, entry.offset)?, entry.offset));
    }
    // Stable, since the entries of a cell come by layer.
    entries.sort_by_key(|(cell, ..)| *cell);
    let too_deep = entries.chunk_by(|a, b| a.0 == b.0).filter_map(|cell| cell.get(usize::from(u8::MAX)));
    match too_deep.map(|(.., offset)| *offset).min() {
        Some(offset) => Err(ChunkFormatError::TooManyLayers { offset }),
        None => Ok(Layers::from_ascending(entries.iter().map(|(cell, block, _)| (*cell, *block)))),
    }
}

fn decode_components(encoded: &EncodedChunk, expected: Vec<ElementSlots>) -> Result<Components, ChunkFormatError> {
    let mut arrays = Vec::new();
    let mut is_read = vec![false; expected.len()];
    let mut offset = encoded.components_at;
    while let Some((component, array_at)) = encoded.component_number(offset)? {
        let place = expected.binary_search_by_key(&component, |expected| expected.layout.id);
        let place = place.map_err(|_| ChunkFormatError::UnknownComponent { offset, component })?;
        if std::mem::replace(&mut is_read[place], true) {
            return Err(ChunkFormatError::RepeatedComponent { offset, component });
        }
        let ElementSlots { layout, slots } = &expected[place];
        let bytes = &encoded.bytes[..encoded.components_end];
        let (array, end) = ArrayBytes::read(bytes, array_at, *layout, slots.len())?;
        decode_array(&array, &expected[place], &mut arrays)?;
        offset = end;
    }
    let missing = is_read.iter().position(|is_read| !is_read).map(|place| expected[place].layout.id);
    match missing {
        Some(component) => Err(ChunkFormatError::MissingComponent { offset, component }),
        None => Ok(Components::from_arrays(arrays)),
    }
}

/// Divides an array by layer.
fn decode_array(
    array: &ArrayBytes,
    ElementSlots { layout, slots }: &ElementSlots,
    arrays: &mut Vec<ComponentArray>,
) -> Result<(), ChunkFormatError> {
    let mut elements = Vec::with_capacity(slots.len());
    for (rank, slot) in slots.iter().enumerate() {
        elements.push((*slot, array.value(rank)?));
    }
    // Stable, so that the cells of each layer ascend.
    elements.sort_by_key(|(slot, _)| slot.layer);
    for elements in elements.chunk_by(|(a, _), (b, _)| a.layer == b.layer) {
        let cells: Vec<u16> = elements.iter().map(|(slot, _)| slot.cell).collect();
        let values = elements.iter().map(|(_, value)| *value);
        arrays.push(ComponentArray::from_ascending(*layout, elements[0].0.layer, &cells, values));
    }
    Ok(())
}
