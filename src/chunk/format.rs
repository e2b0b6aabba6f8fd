//! The binary format of a chunk, version 1.
//!
//! All integers are little-endian, bits come least significant first, and offsets count from the chunk's first byte.
//!
//! | part | content |
//! |---|---|
//! | header | `u64` each: format version, component offset, entity offset, layered block count, palette count |
//! | palette | a `u64` [`BlockId`] for each local id |
//! | blocks | 4,096 local ids of `b = ceil(log2(palette count))` bits, x slowest, then y, then z |
//! | layers | not supported yet, so none |
//! | components | not supported yet, so none |
//! | entities | `u64` count, then that many 16-byte UUIDs |

#[cfg(test)]
mod tests;

use super::packed_ids::{MAX_BITS, PackedIds};
use super::{Chunk, Content, Mixed, bits_for};
use crate::block::BlockId;
use crate::space::CHUNK_VOLUME;
use thiserror::Error;
use uuid::Uuid;

/// The version that [`encode`] writes.
pub const FORMAT_VERSION: u64 = 1;

const COMPONENT_OFFSET_AT: usize = 8;
const ENTITY_OFFSET_AT: usize = 16;
const LAYERED_BLOCK_COUNT_AT: usize = 24;
const PALETTE_COUNT_AT: usize = 32;
const HEADER_BYTES: usize = 40;
const PALETTE_ENTRY_BYTES: usize = 8;
const UUID_BYTES: usize = 16;

/// What the bytes of a chunk hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedChunk {
    /// The blocks.
    pub chunk: Chunk,
    /// The entities stored with the chunk.
    pub entities: Vec<Uuid>,
}

/// Why bytes are not a chunk that can be read. Every `offset` is in bytes, from the chunk's first.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChunkFormatError {
    /// A part reaches beyond the end of the bytes.
    #[error("byte {offset}: expected {expected} bytes of {part}, found {found}")]
    Truncated {
        /// Where the part begins.
        offset: usize,
        /// Which part it is.
        part: &'static str,
        /// The length of the part.
        expected: u128,
        /// The bytes that are left.
        found: usize,
    },
    /// The format version is not 1.
    #[error("byte 0: expected format version 1, found {found}")]
    Version {
        /// The version found.
        found: u64,
    },
    /// Something that the format allows and this version of the crate cannot read.
    #[error("byte {offset}: {part} are not supported, expected none")]
    Unsupported {
        /// Where it is said that there are any.
        offset: usize,
        /// Which part it is.
        part: &'static str,
    },
    /// A chunk has at least one block, so its palette has too.
    #[error("byte {offset}: expected a palette count of 1 or more, found 0")]
    EmptyPalette {
        /// Where the palette count is.
        offset: usize,
    },
    /// A global block id that is no [`BlockId`].
    #[error("byte {offset}: expected a block id below 2^32, found {found}")]
    BlockId {
        /// Where the palette entry is.
        offset: usize,
        /// The id found.
        found: u64,
    },
    /// A local id that is no place in the palette.
    #[error("byte {offset}: expected a local id below the palette count of {palette_count}, found {found}")]
    LocalId {
        /// The byte with the id's first bit.
        offset: usize,
        /// The number of entries in the palette.
        palette_count: usize,
        /// The id found.
        found: u64,
    },
    /// The header says that a part begins elsewhere than right after the part before it.
    #[error("byte {offset}: expected the {part} at {expected}, found the offset {found}")]
    PartOffset {
        /// Where the header says it.
        offset: usize,
        /// Which part it is.
        part: &'static str,
        /// Where the part before it ends.
        expected: usize,
        /// The offset found.
        found: u64,
    },
    /// There are bytes after the last part.
    #[error("byte {offset}: expected the end, found {found} more bytes")]
    TrailingBytes {
        /// Where the last part ends.
        offset: usize,
        /// How many bytes follow.
        found: usize,
    },
}

/// Appends a chunk and the entities stored with it.
///
/// Equal chunks give equal bytes: the palette is written in the order in which its blocks first appear.
pub fn encode(chunk: &Chunk, entities: &[Uuid], out: &mut Vec<u8>) {
    let chunk = chunk.canonical();
    let palette = chunk.palette();
    let words = match &chunk.0 {
        Content::Uniform(_) => &[],
        Content::Mixed(mixed) => mixed.ids.words(),
    };
    let blocks_end = HEADER_BYTES + palette.len() * PALETTE_ENTRY_BYTES + size_of_val(words);
    out.reserve(blocks_end + size_of::<u64>() + entities.len() * UUID_BYTES);

    let header = [FORMAT_VERSION, blocks_end as u64, blocks_end as u64, 0, palette.len() as u64];
    out.extend(header.into_iter().flat_map(u64::to_le_bytes));
    out.extend(palette.iter().flat_map(|block| u64::from(block.index()).to_le_bytes()));
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&(entities.len() as u64).to_le_bytes());
    for entity in entities {
        out.extend_from_slice(entity.as_bytes());
    }
}

/// Reads one chunk from exactly these bytes.
///
/// Palettes that repeat a block or have unused entries are fine. Memory is only asked for after its length was checked
/// against the bytes that are there.
pub fn decode(bytes: &[u8]) -> Result<DecodedChunk, ChunkFormatError> {
    let header = part(bytes, 0, HEADER_BYTES as u128, "header")?;
    let version = u64_at(header, 0);
    if version != FORMAT_VERSION {
        return Err(ChunkFormatError::Version { found: version });
    }
    if u64_at(header, LAYERED_BLOCK_COUNT_AT) != 0 {
        return Err(ChunkFormatError::Unsupported { offset: LAYERED_BLOCK_COUNT_AT, part: "layered blocks" });
    }

    let palette_count = u64_at(header, PALETTE_COUNT_AT);
    if palette_count == 0 {
        return Err(ChunkFormatError::EmptyPalette { offset: PALETTE_COUNT_AT });
    }
    let palette = part(bytes, HEADER_BYTES, u128::from(palette_count) * PALETTE_ENTRY_BYTES as u128, "palette")?;
    let palette = Palette::new(palette)?;
    let blocks_offset = HEADER_BYTES + palette.0.len() * PALETTE_ENTRY_BYTES;
    let bits = bits_for(palette.0.len());
    let blocks = part(bytes, blocks_offset, CHUNK_VOLUME as u128 * u128::from(bits) / 8, "blocks")?;
    let blocks_end = blocks_offset + blocks.len();

    check_part_offset(header, COMPONENT_OFFSET_AT, "components", blocks_end)?;
    if u64_at(header, ENTITY_OFFSET_AT) > blocks_end as u64 {
        return Err(ChunkFormatError::Unsupported { offset: blocks_end, part: "block components" });
    }
    check_part_offset(header, ENTITY_OFFSET_AT, "entities", blocks_end)?;

    let entity_count = u64_at(part(bytes, blocks_end, size_of::<u64>() as u128, "entity count")?, 0);
    let entities_offset = blocks_end + size_of::<u64>();
    let entities = part(bytes, entities_offset, u128::from(entity_count) * UUID_BYTES as u128, "entities")?;
    let end = entities_offset + entities.len();
    if end != bytes.len() {
        return Err(ChunkFormatError::TrailingBytes { offset: end, found: bytes.len() - end });
    }

    let chunk = palette.decode_blocks(blocks, bits, blocks_offset)?;
    let entities = entities.as_chunks::<UUID_BYTES>().0.iter().map(|bytes| Uuid::from_bytes(*bytes)).collect();
    Ok(DecodedChunk { chunk, entities })
}

/// A palette in the bytes, all of its entries known to be block ids.
struct Palette<'a>(&'a [[u8; PALETTE_ENTRY_BYTES]]);

impl<'a> Palette<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, ChunkFormatError> {
        let entries = bytes.as_chunks().0;
        for (place, entry) in entries.iter().enumerate() {
            let found = u64::from_le_bytes(*entry);
            if found > u64::from(u32::MAX) {
                let offset = HEADER_BYTES + place * PALETTE_ENTRY_BYTES;
                return Err(ChunkFormatError::BlockId { offset, found });
            }
        }
        Ok(Self(entries))
    }

    fn block(&self, place: usize) -> BlockId {
        BlockId::new(u64::from_le_bytes(self.0[place]) as u32)
    }

    fn blocks(&self) -> impl Iterator<Item = BlockId> {
        (0..self.0.len()).map(|place| self.block(place))
    }

    fn decode_blocks(&self, bytes: &[u8], bits: u32, offset: usize) -> Result<Chunk, ChunkFormatError> {
        let palette_count = self.0.len();
        if palette_count == 1 {
            return Ok(Chunk::uniform(self.block(0)));
        }
        let invalid_id =
            |cell, found| ChunkFormatError::LocalId { offset: offset + cell * bits as usize / 8, palette_count, found };

        if bits > MAX_BITS || self.has_duplicates() {
            let ids = || (0..CHUNK_VOLUME).map(|cell| (cell, bits_at(bytes, cell, bits)));
            if let Some((cell, id)) = ids().find(|(_, id)| *id >= palette_count as u64) {
                return Err(invalid_id(cell, id));
            }
            let mut blocks = ids().map(|(_, id)| self.block(id as usize));
            return Ok(Chunk::from_fn(|_| blocks.next().unwrap_or_default()));
        }

        let words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let ids = PackedIds::from_words(words, bits);
        if palette_count < 1 << bits {
            let local_ids = ids.unpack();
            let largest = local_ids.iter().fold(0, |largest, id| largest.max(*id));
            if usize::from(largest) >= palette_count {
                let cell = local_ids.iter().position(|id| usize::from(*id) >= palette_count).unwrap_or_default();
                return Err(invalid_id(cell, local_ids[cell].into()));
            }
        }
        Ok(Chunk(Content::Mixed(Mixed { palette: self.blocks().collect(), ids, is_canonical: false })))
    }

    fn has_duplicates(&self) -> bool {
        let mut sorted: Vec<_> = self.blocks().collect();
        sorted.sort_unstable();
        sorted.windows(2).any(|pair| pair[0] == pair[1])
    }
}

/// The bytes of a part, if they are all there.
fn part<'a>(bytes: &'a [u8], offset: usize, length: u128, part: &'static str) -> Result<&'a [u8], ChunkFormatError> {
    let rest = bytes.get(offset..).unwrap_or_default();
    let in_rest = usize::try_from(length).ok().and_then(|length| rest.get(..length));
    in_rest.ok_or(ChunkFormatError::Truncated { offset, part, expected: length, found: rest.len() })
}

fn check_part_offset(
    header: &[u8],
    offset: usize,
    part: &'static str,
    expected: usize,
) -> Result<(), ChunkFormatError> {
    let found = u64_at(header, offset);
    if found == expected as u64 { Ok(()) } else { Err(ChunkFormatError::PartOffset { offset, part, expected, found }) }
}

/// The caller has checked that there are 8 bytes.
fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    bytes[offset..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A local id of any width.
fn bits_at(bytes: &[u8], cell: usize, bits: u32) -> u64 {
    let bit = cell * bits as usize;
    let bytes = &bytes[bit / 8..(bit + bits as usize).div_ceil(8)];
    let value = bytes.iter().rev().fold(0, |value: u128, byte| value << 8 | u128::from(*byte));
    (value >> (bit % 8)) as u64 & ((1 << bits) - 1)
}
