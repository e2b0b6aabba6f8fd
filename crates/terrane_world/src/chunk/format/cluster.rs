//! Clusters: 4 x 4 x 4 encoded chunks under one key.
//!
//! | part | content |
//! |---|---|
//! | header | `u64` format version, `u8` scale: 1 |
//! | offsets | a `u64` for each place in Morton order, from the cluster's first byte; 0 if there is no chunk |
//! | chunks | in the same order, without gaps |
//!
//! Chunks are opaque bytes to a cluster, so each may be compressed separately.

use super::{ChunkFormatError, FORMAT_VERSION, part, u64_at};
use crate::space::ChunkPos;

/// The number of places for chunks in a cluster.
pub const CLUSTER_VOLUME: usize = 64;

const SCALE: u8 = 1;
const SCALE_AT: usize = 8;
const OFFSETS_AT: usize = 9;
const OFFSET_BYTES: usize = 8;
const HEADER_BYTES: usize = OFFSETS_AT + CLUSTER_VOLUME * OFFSET_BYTES;

/// The place of a chunk in its cluster, in Morton order. The bits of z are the least significant, then those of y, then x.
pub const fn cluster_place(chunk: ChunkPos) -> usize {
    let (mut place, mut bit) = (0, 0);
    while bit < 2 {
        let bits = (chunk.x >> bit & 1) << 2 | (chunk.y >> bit & 1) << 1 | (chunk.z >> bit & 1);
        place |= (bits as usize) << (3 * bit);
        bit += 1;
    }
    place
}

/// Appends a cluster. `chunk` returns the encoded chunk of each place; `None` or no bytes leaves the place empty.
pub fn encode_cluster<'a>(mut chunk: impl FnMut(usize) -> Option<&'a [u8]>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.push(SCALE);
    out.resize(start + HEADER_BYTES, 0);
    for place in 0..CLUSTER_VOLUME {
        let Some(bytes) = chunk(place).filter(|bytes| !bytes.is_empty()) else { continue };
        let offset = (out.len() - start) as u64;
        out[start + offset_at(place)..][..OFFSET_BYTES].copy_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(bytes);
    }
}

/// The bytes and places of all chunks of a cluster, in Morton order. `bytes` is exactly the cluster.
pub fn decode_cluster(bytes: &[u8]) -> Result<Vec<(usize, &[u8])>, ChunkFormatError> {
    let header = part(bytes, 0, OFFSETS_AT as u128, "header")?;
    let version = u64_at(header, 0);
    if version != FORMAT_VERSION {
        return Err(ChunkFormatError::Version { found: version });
    }
    if header[SCALE_AT] != SCALE {
        let what = format!("expected the scale {SCALE}, found {}", header[SCALE_AT]);
        return Err(ChunkFormatError::damage(SCALE_AT, what));
    }
    part(bytes, 0, HEADER_BYTES as u128, "header and offsets")?;
    let mut begins = Vec::new();
    for place in 0..CLUSTER_VOLUME {
        let found = u64_at(bytes, offset_at(place));
        // The first chunk follows the offsets, and each later one begins after the chunk before it.
        let least = begins.last().map_or(HEADER_BYTES, |(_, before)| before + 1);
        let end = if begins.is_empty() { least + 1 } else { bytes.len() };
        match usize::try_from(found) {
            Ok(0) => {}
            Ok(begin) if (least..end.min(bytes.len())).contains(&begin) => begins.push((place, begin)),
            _ => {
                let what = format!("expected the offset of a chunk from {least} to below {end}, found {found}");
                return Err(ChunkFormatError::damage(offset_at(place), what));
            }
        }
    }
    let ends = begins.iter().skip(1).map(|(_, begin)| *begin).chain([bytes.len()]);
    Ok(begins.iter().zip(ends).map(|((place, begin), end)| (*place, &bytes[*begin..end])).collect())
}

const fn offset_at(place: usize) -> usize {
    OFFSETS_AT + place * OFFSET_BYTES
}
