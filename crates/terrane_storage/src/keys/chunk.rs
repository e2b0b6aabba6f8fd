//! The keys of chunks, in Morton order.

use super::{CHUNK_KEY_LENGTH, after, from_ordered, ordered};
use crate::space::{ChunkPos, DimensionId};
use std::ops::Range;

/// The key of a chunk.
pub fn chunk_key(dimension: DimensionId, pos: ChunkPos) -> [u8; CHUNK_KEY_LENGTH] {
    let mut key = [0; CHUNK_KEY_LENGTH];
    key[..8].copy_from_slice(&dimension.0.to_be_bytes());
    let [x, y, z] = [pos.x, pos.y, pos.z].map(ordered);
    for (place, ((x, y), z)) in key[8..].chunks_exact_mut(3).zip(x.into_iter().zip(y).zip(z)) {
        let bits = spread(x) << 2 | spread(y) << 1 | spread(z);
        place.copy_from_slice(&bits.to_be_bytes()[1..]);
    }
    key
}

/// The dimension and position in a chunk's key; `None` if the key is not valid.
pub(crate) fn parse_chunk_key(key: &[u8]) -> Option<(DimensionId, ChunkPos)> {
    let key: &[u8; CHUNK_KEY_LENGTH] = key.try_into().ok()?;
    let (dimension, morton) = key.split_first_chunk::<8>()?;
    let (mut x, mut y, mut z) = ([0; 8], [0; 8], [0; 8]);
    for (place, bytes) in morton.chunks_exact(3).enumerate() {
        let bits = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        (x[place], y[place], z[place]) = (gather(bits >> 2), gather(bits >> 1), gather(bits));
    }
    let pos = ChunkPos::new(from_ordered(x), from_ordered(y), from_ordered(z));
    Some((DimensionId(u64::from_be_bytes(*dimension)), pos))
}

/// The range of exactly the keys of the aligned cube of 2^`shift` chunks a side that contains `chunk`. With a `shift`
/// of 64 it is the whole dimension.
pub fn chunk_cube_range(dimension: DimensionId, chunk: ChunkPos, shift: u32) -> Range<Vec<u8>> {
    let size_mask = span(shift) as i64;
    // With the sign bit flipped, the lowest coordinate of a cube has no low bit set, even if the cube spans zero.
    let first = |coordinate: i64| ((coordinate ^ i64::MIN) & !size_mask) ^ i64::MIN;
    let first = ChunkPos::new(first(chunk.x), first(chunk.y), first(chunk.z));
    let last = |first: i64| first.wrapping_add(size_mask);
    let last = ChunkPos::new(last(first.x), last(first.y), last(first.z));
    chunk_key(dimension, first).to_vec()..after(&chunk_key(dimension, last))
}

/// The distance between the first and the last of 2^`shift` coordinates.
pub(crate) fn span(shift: u32) -> u64 {
    u64::MAX.checked_shr(64 - shift.min(64)).unwrap_or(0)
}

/// Moves bit n of a byte to bit 3n.
const fn spread(byte: u8) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut bit = 0;
            while bit < 8 {
                table[byte] |= ((byte as u32 >> bit) & 1) << (3 * bit);
                bit += 1;
            }
            byte += 1;
        }
        table
    };
    TABLE[byte as usize]
}

/// Moves bit 3n to bit n of a byte. This undoes [`spread`] and ignores all other bits.
const fn gather(bits: u32) -> u8 {
    let bits = bits & 0o1111_1111;
    let bits = (bits | bits >> 2) & 0o0303_0303;
    let bits = (bits | bits >> 4) & 0o0017_0017;
    ((bits | bits >> 8) & 0xff) as u8
}
