//! Decodes chunks.

use super::component_array::{element_slots, read_array};
use super::{ChunkFormatError, EncodedChunk};
use crate::block::{BlockComponentLayout, BlockId, BlockLayout};
use crate::chunk::extras::{ComponentArray, Slot, Value};
use crate::chunk::packed_ids::{MAX_BITS, PackedIds, all_below};
use crate::chunk::palette::Palette;
use crate::chunk::{Chunk, Content, Mixed};
use crate::space::CHUNK_VOLUME;
use uuid::Uuid;

/// Up to this many entries, a linear search finds repetitions faster than sorting.
const LARGEST_SEARCHED: usize = 64;

/// Decodes exactly these bytes to a chunk and its stored entities, with the layout that the chunk was written with.
///
/// Palettes may repeat a block or have unused entries, and layers (by cell) and components may be in any order. Memory
/// is only allocated after checking that the bytes are long enough.
pub fn decode(layout: &impl BlockLayout, bytes: &[u8]) -> Result<(Chunk, Vec<Uuid>), ChunkFormatError> {
    let encoded = EncodedChunk::new(bytes)?;
    let mut chunk = Chunk { content: decode_blocks(&encoded)?, extras: None };
    let layers = decode_layers(&encoded)?;
    if !layers.is_empty() {
        chunk.extras.get_or_insert_default().layers = layers;
    }
    let components = decode_components(&encoded, element_slots(&chunk, layout))?;
    Ok((chunk.with_arrays(components), encoded.entities().collect()))
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
        // This finds the invalid entry.
        return decode_each_block(encoded);
    }
    let palette: Palette = encoded.palette_blocks().collect();
    if has_repetitions(&palette) {
        return decode_each_block(encoded);
    }
    Ok(Content::Mixed(Mixed { palette, ids: PackedIds::from_bytes(blocks), is_canonical: false }))
}

/// The slow path, for palettes that never occur in memory.
fn decode_each_block(encoded: &EncodedChunk) -> Result<Content, ChunkFormatError> {
    let blocks: Vec<BlockId> = (0..CHUNK_VOLUME).map(|cell| encoded.block_in(cell)).collect::<Result<_, _>>()?;
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

fn decode_layers(encoded: &EncodedChunk) -> Result<Vec<(Slot, BlockId)>, ChunkFormatError> {
    let mut entries = Vec::new();
    for (cell, local_id, offset) in encoded.layered_entries() {
        entries.push((cell, encoded.block_of(local_id, offset)?, offset));
    }
    // A stable sort: the entries of a cell are in the order of layers.
    entries.sort_by_key(|(cell, ..)| *cell);
    let too_deep = entries.chunk_by(|a, b| a.0 == b.0).filter_map(|cell| cell.get(usize::from(u8::MAX)));
    if let Some(offset) = too_deep.map(|(.., offset)| *offset).min() {
        let what = format!("expected at most {} blocks above layer 0 in a cell, found one more", u8::MAX);
        return Err(ChunkFormatError::damage(offset, what));
    }
    let cells = entries.chunk_by(|a, b| a.0 == b.0);
    Ok(cells
        .flat_map(|cell| (1..=u8::MAX).zip(cell).map(|(layer, (cell, block, _))| (Slot::new(*cell, layer), *block)))
        .collect())
}

fn decode_components(
    encoded: &EncodedChunk,
    mut expected: Vec<(BlockComponentLayout, Vec<Slot>)>,
) -> Result<Vec<ComponentArray>, ChunkFormatError> {
    let mut arrays: Vec<ComponentArray> = Vec::new();
    let mut offset = encoded.components_at;
    while let Some((component, array_at)) = encoded.component_number(offset)? {
        let Some(place) = expected.iter().position(|(layout, _)| layout.id == component) else {
            let what = match arrays.iter().any(|array| array.layout.id == component) {
                true => format!("found the component {component} again"),
                false => format!("expected a component of a block in the chunk, found {component}"),
            };
            return Err(ChunkFormatError::damage(offset, what));
        };
        let (layout, slots) = expected.remove(place);
        let (value, end) = read_array(encoded.component_bytes(), array_at, layout, slots.len())?;
        let values = (0..slots.len()).map(value).collect::<Result<Vec<_>, _>>()?;
        arrays.push(ComponentArray::new(layout, slots, values.into_iter().map(Value::Bytes)));
        offset = end;
    }
    if let Some((layout, _)) = expected.first() {
        let what = format!("expected the component {}, found the end of the components", layout.id);
        return Err(ChunkFormatError::damage(offset, what));
    }
    arrays.sort_unstable_by_key(|array| array.layout);
    Ok(arrays)
}
