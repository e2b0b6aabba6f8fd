//! [`EncodedChunk`]: reads single blocks and components without decoding the whole chunk. Also packed numbers of any bit width.

use super::component_array::read_array;
use super::{
    CELL_BITS, COMPONENT_OFFSET_AT, ChunkFormatError, ENTITY_OFFSET_AT, FORMAT_VERSION, HEADER_BYTES,
    LAYERED_BLOCK_COUNT_AT, PALETTE_COUNT_AT, PALETTE_ENTRY_BYTES, UUID_BYTES, part, u64_at,
};
use crate::block::{BlockComponentId, BlockComponentLayout, BlockId, BlockLayout};
use crate::chunk::packed_ids::{LocalIds, MAX_BITS, unpack_into};
use crate::chunk::{bits_for, cell};
use crate::space::CHUNK_VOLUME;
use std::ops::Range;
use uuid::Uuid;

/// Up to this many types share a component, one vectorized pass per type is faster than looking up every cell.
const COUNTED_ONE_BY_ONE: usize = 8;

/// The bytes of a chunk, for reading single blocks and components without decoding the whole chunk.
///
/// ```
/// # use terrane_world::{block::BlockId, chunk::{Chunk, format::{EncodedChunk, encode}}};
/// let mut bytes = Vec::new();
/// encode(&(), &Chunk::uniform(BlockId::new(7)), &[], &mut bytes)?;
/// assert_eq!(EncodedChunk::new(&bytes)?.block([1, 2, 3])?, BlockId::new(7));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct EncodedChunk<'a> {
    bytes: &'a [u8],
    /// Every entry was checked to be a block id.
    pub(super) palette: &'a [[u8; PALETTE_ENTRY_BYTES]],
    /// The bits of a local id.
    pub(super) bits: u32,
    pub(super) blocks: &'a [u8],
    pub(super) blocks_at: usize,
    layers: &'a [u8],
    layers_at: usize,
    layered_count: usize,
    pub(super) components_at: usize,
    components_end: usize,
    entities: &'a [[u8; UUID_BYTES]],
}

impl<'a> EncodedChunk<'a> {
    /// Finds the parts of one chunk in exactly these bytes, and checks that they are complete.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ChunkFormatError> {
        let header = part(bytes, 0, HEADER_BYTES as u128, "header")?;
        let version = u64_at(header, 0);
        if version != FORMAT_VERSION {
            return Err(ChunkFormatError::Version { found: version });
        }
        let palette = read_palette(bytes, u64_at(header, PALETTE_COUNT_AT))?;
        let bits = bits_for(palette.len());
        let blocks_at = HEADER_BYTES + size_of_val(palette);
        let blocks = part(bytes, blocks_at, CHUNK_VOLUME as u128 * u128::from(bits) / 8, "blocks")?;
        let layers_at = blocks_at + blocks.len();
        let layered_count = u64_at(header, LAYERED_BLOCK_COUNT_AT);
        let layers_length = (u128::from(layered_count) * u128::from(CELL_BITS + bits)).div_ceil(8);
        let layers = part(bytes, layers_at, layers_length, "layers")?;

        let components_at = layers_at + layers.len();
        let wrong_offset = |at, part, found: u64| {
            ChunkFormatError::damage(at, format!("expected the {part} at {components_at}, found the offset {found}"))
        };
        let found = u64_at(header, COMPONENT_OFFSET_AT);
        if found != components_at as u64 {
            return Err(wrong_offset(COMPONENT_OFFSET_AT, "components", found));
        }
        let found = u64_at(header, ENTITY_OFFSET_AT);
        let Some(length) = found.checked_sub(components_at as u64) else {
            return Err(wrong_offset(ENTITY_OFFSET_AT, "entities", found));
        };
        let components_end = components_at + part(bytes, components_at, length.into(), "components")?.len();
        let entities = read_entities(bytes, components_end)?;
        let layered_count = layered_count as usize;
        Ok(Self {
            bytes,
            palette,
            bits,
            blocks,
            blocks_at,
            layers,
            layers_at,
            layered_count,
            components_at,
            components_end,
            entities,
        })
    }

    /// The block at x, y, z.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn block(&self, position: [usize; 3]) -> Result<BlockId, ChunkFormatError> {
        self.block_in(cell(position))
    }

    pub(super) fn block_in(&self, cell: usize) -> Result<BlockId, ChunkFormatError> {
        let bit = cell * self.bits as usize;
        self.block_of(bits_at(self.blocks, bit, self.bits), self.blocks_at + bit / 8)
    }

    /// The block in a layer; `None` if the cell has fewer layers.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn block_at(&self, position: [usize; 3], layer: u8) -> Result<Option<BlockId>, ChunkFormatError> {
        let Some(place) = usize::from(layer).checked_sub(1) else { return self.block(position).map(Some) };
        let wanted = cell(position);
        let entry = self.layered_entries().filter(|(cell, ..)| *cell == wanted).nth(place);
        entry.map(|(_, local_id, offset)| self.block_of(local_id, offset)).transpose()
    }

    /// The bytes of a component of the block in a layer. `None` if there is no such block, or its type does not have
    /// the component.
    ///
    /// # Panics
    /// If a coordinate is not below 16, as with a slice.
    pub fn component(
        &self,
        layout: &impl BlockLayout,
        position: [usize; 3],
        layer: u8,
        component: BlockComponentId,
    ) -> Result<Option<&'a [u8]>, ChunkFormatError> {
        let Some(block) = self.block_at(position, layer)? else { return Ok(None) };
        let Some(wanted) = layout.component_layout(block, component) else { return Ok(None) };
        let ids = self.local_ids();
        let mut offset = self.components_at;
        while let Some((id, array_at)) = self.component_number(offset)? {
            if id == component {
                let (before, count) = self.count_elements(&ids, layout, wanted, cell(position), layer);
                let (value, _) = read_array(self.component_bytes(), array_at, wanted, count)?;
                return value(before).map(Some);
            }
            let Some(other) = self.layout_of(layout, id) else {
                let what = format!("expected a component of a block in the chunk, found {id}");
                return Err(ChunkFormatError::damage(offset, what));
            };
            let (_, count) = self.count_elements(&ids, layout, other, 0, 0);
            offset = read_array(self.component_bytes(), array_at, other, count)?.1;
        }
        let what = format!("expected the component {component}, found the end of the components");
        Err(ChunkFormatError::damage(offset, what))
    }

    /// The entities stored with the chunk.
    pub fn entities(&self) -> impl ExactSizeIterator<Item = Uuid> + 'a {
        self.entities.iter().map(|bytes| Uuid::from_bytes(*bytes))
    }

    /// The number of the component at an offset, and the offset of its array; `None` at the end of the components.
    pub(super) fn component_number(
        &self,
        offset: usize,
    ) -> Result<Option<(BlockComponentId, usize)>, ChunkFormatError> {
        if offset == self.components_end {
            return Ok(None);
        }
        let length = size_of::<u64>();
        let number = part(self.component_bytes(), offset, length as u128, "component number")?;
        Ok(Some((BlockComponentId::new(u64_at(number, 0)), offset + length)))
    }

    /// The bytes up to the end of the components.
    pub(super) fn component_bytes(&self) -> &'a [u8] {
        &self.bytes[..self.components_end]
    }

    /// The cells and local ids of the blocks above layer 0 in stored order, and the byte with the first bit of each.
    pub(super) fn layered_entries(&self) -> impl Iterator<Item = (usize, u64, usize)> {
        let bits = (CELL_BITS + self.bits) as usize;
        (0..self.layered_count).map(move |number| {
            let bit = number * bits;
            let local_id = bits_at(self.layers, bit + CELL_BITS as usize, self.bits);
            (bits_at(self.layers, bit, CELL_BITS) as usize, local_id, self.layers_at + bit / 8)
        })
    }

    pub(super) fn block_of(&self, local_id: u64, offset: usize) -> Result<BlockId, ChunkFormatError> {
        let palette_count = self.palette.len();
        let place = usize::try_from(local_id).ok().filter(|place| *place < palette_count);
        place.map(|place| self.palette_block(place)).ok_or_else(|| {
            let what = format!("expected a local id below the palette count of {palette_count}, found {local_id}");
            ChunkFormatError::damage(offset, what)
        })
    }

    pub(super) fn palette_block(&self, place: usize) -> BlockId {
        BlockId::new(u64::from_le_bytes(self.palette[place]) as u32)
    }

    pub(super) fn palette_blocks(&self) -> impl Iterator<Item = BlockId> {
        (0..self.palette.len()).map(|place| self.palette_block(place))
    }

    /// The layout of a component that a block of the palette has.
    fn layout_of(&self, layout: &impl BlockLayout, component: BlockComponentId) -> Option<BlockComponentLayout> {
        self.palette_blocks().find_map(|block| layout.component_layout(block, component))
    }

    fn local_ids(&self) -> Option<LocalIds> {
        (1..=MAX_BITS).contains(&self.bits).then(|| {
            let mut ids = [0; CHUNK_VOLUME];
            unpack_into(self.blocks, self.bits, &mut ids);
            ids
        })
    }

    /// The number of blocks with a component before this one, and in all.
    fn count_elements(
        &self,
        ids: &Option<LocalIds>,
        layout: &impl BlockLayout,
        component: BlockComponentLayout,
        cell: usize,
        layer: u8,
    ) -> (usize, usize) {
        let has = |block| layout.component_layout(block, component.id).is_some();
        let carries: Vec<bool> = self.palette_blocks().map(has).collect();
        let (mut before, mut count) = self.count_cells(ids, &carries, cell);
        let carries = |local_id| carries.get(local_id as usize) == Some(&true);
        if layer > 0 {
            let id = bits_at(self.blocks, cell * self.bits as usize, self.bits);
            before += usize::from(carries(id));
        }
        let mut layers_passed = 0;
        for (other, local_id, _) in self.layered_entries() {
            let is_below = other == cell && {
                layers_passed += 1;
                layers_passed < usize::from(layer)
            };
            if carries(local_id) {
                before += usize::from(other < cell || is_below);
                count += 1;
            }
        }
        (before, count)
    }

    /// The number of cells whose local id has `carries` set, before `end` and in all.
    fn count_cells(&self, ids: &Option<LocalIds>, carries: &[bool], end: usize) -> (usize, usize) {
        let Some(ids) = ids else {
            let id = |cell: usize| bits_at(self.blocks, cell * self.bits as usize, self.bits) as usize;
            let count = |cells: Range<usize>| cells.filter(|cell| carries.get(id(*cell)) == Some(&true)).count();
            let before = count(0..end);
            return (before, before + count(end..CHUNK_VOLUME));
        };
        let (first, rest) = ids.split_at(end);
        let carrying = carries.iter().zip(0..).filter_map(|(carries, id)| carries.then_some(id));
        let (before, after) = if carrying.clone().count() <= COUNTED_ONE_BY_ONE {
            carrying.fold((0, 0), |(before, after), id| (before + count_of(first, id), after + count_of(rest, id)))
        } else {
            let count = |ids: &[u16]| ids.iter().filter(|id| carries.get(usize::from(**id)) == Some(&true)).count();
            (count(first), count(rest))
        };
        (before, before + after)
    }
}

fn count_of(ids: &[u16], id: u16) -> usize {
    ids.iter().fold(0_u16, |count, other| count + u16::from(*other == id)).into()
}

fn read_palette(bytes: &[u8], count: u64) -> Result<&[[u8; PALETTE_ENTRY_BYTES]], ChunkFormatError> {
    if count == 0 {
        return Err(ChunkFormatError::damage(PALETTE_COUNT_AT, "expected a palette count of 1 or more, found 0"));
    }
    let palette = part(bytes, HEADER_BYTES, u128::from(count) * PALETTE_ENTRY_BYTES as u128, "palette")?.as_chunks().0;
    for (place, entry) in palette.iter().enumerate() {
        let found = u64::from_le_bytes(*entry);
        if found > u64::from(u32::MAX) {
            let what = format!("expected a block id below 2^32, found {found}");
            return Err(ChunkFormatError::damage(HEADER_BYTES + place * PALETTE_ENTRY_BYTES, what));
        }
    }
    Ok(palette)
}

fn read_entities(bytes: &[u8], offset: usize) -> Result<&[[u8; UUID_BYTES]], ChunkFormatError> {
    let count = u64_at(part(bytes, offset, size_of::<u64>() as u128, "entity count")?, 0);
    let offset = offset + size_of::<u64>();
    let entities = part(bytes, offset, u128::from(count) * UUID_BYTES as u128, "entities")?;
    let end = offset + entities.len();
    match bytes.len() - end {
        0 => Ok(entities.as_chunks().0),
        found => Err(ChunkFormatError::damage(end, format!("expected the end, found {found} more bytes"))),
    }
}

/// Appends numbers, each with its own number of bits (at most 32), least significant bit first. Each number must fit
/// into its bits. The last byte is padded with zeros.
pub(super) fn put_bits(out: &mut Vec<u8>, numbers: impl Iterator<Item = (u64, u32)>) {
    let (mut pending, mut length) = (0_u64, 0);
    for (number, bits) in numbers {
        debug_assert!(bits <= 32 && number < 1 << bits);
        pending |= number << length;
        length += bits;
        while length >= 8 {
            out.push(pending as u8);
            pending >>= 8;
            length -= 8;
        }
    }
    if length > 0 {
        out.push(pending as u8);
    }
}

/// The number of up to 63 bits that begins at `bit`. The caller has checked the length.
pub(super) fn bits_at(bytes: &[u8], bit: usize, bits: u32) -> u64 {
    let bytes = &bytes[bit / 8..(bit + bits as usize).div_ceil(8)];
    let value = bytes.iter().rev().fold(0, |value: u128, byte| value << 8 | u128::from(*byte));
    (value >> (bit % 8)) as u64 & ((1 << bits) - 1)
}
