//! Many encoded chunks under one key: 4 x 4 x 4 or 16 x 16 x 16 of them.
//!
//! | part | content |
//! |---|---|
//! | header | `u64` format version, `u8` scale: 1 or 2 |
//! | offsets | a `u64` for each place in Morton order, from the cluster's first byte; 0 if there is no chunk |
//! | chunks | in the same order, each up to the next one |
//!
//! A cluster does not look into its chunks, so each may be compressed by itself.

use super::{FORMAT_VERSION, u64_at};
use crate::space::ChunkPos;
use thiserror::Error;

const SCALE_AT: usize = 8;
const OFFSETS_AT: usize = 9;
const OFFSET_BYTES: usize = 8;

/// How many chunks a cluster has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterScale {
    /// 4 x 4 x 4 chunks.
    Small,
    /// 16 x 16 x 16 chunks.
    Large,
}

/// Why bytes are not a cluster that can be read. Every `offset` is in bytes, from the cluster's first.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClusterFormatError {
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
    /// The scale is neither 1 nor 2.
    #[error("byte 8: expected the scale 1 or 2, found {found}")]
    Scale {
        /// The scale found.
        found: u8,
    },
    /// A chunk begins elsewhere than after those before it and before the end.
    #[error("byte {offset}: expected the offset of a chunk from {least} to below {end}, found {found}")]
    ChunkOffset {
        /// Where the offset is.
        offset: usize,
        /// The least that it can be.
        least: usize,
        /// What it must be below.
        end: usize,
        /// The offset found.
        found: u64,
    },
}

impl ClusterScale {
    /// Chunks along an edge.
    pub const fn edge(self) -> usize {
        match self {
            Self::Small => 4,
            Self::Large => 16,
        }
    }

    /// Places for chunks.
    pub const fn volume(self) -> usize {
        self.edge().pow(3)
    }

    /// The place of a chunk in its cluster, in Morton order: of the coordinates' lowest bits, z has the lowest, then y,
    /// then x.
    pub const fn place(self, chunk: ChunkPos) -> usize {
        let (mut place, mut bit) = (0, 0);
        while 1 << bit < self.edge() {
            let bits = (chunk.x >> bit & 1) << 2 | (chunk.y >> bit & 1) << 1 | (chunk.z >> bit & 1);
            place |= (bits as usize) << (3 * bit);
            bit += 1;
        }
        place
    }

    const fn number(self) -> u8 {
        match self {
            Self::Small => 1,
            Self::Large => 2,
        }
    }

    const fn header_bytes(self) -> usize {
        OFFSETS_AT + self.volume() * OFFSET_BYTES
    }
}

/// Appends a cluster of encoded chunks, which are asked for place by place. One without bytes is not there.
pub fn encode_cluster<'a>(scale: ClusterScale, mut chunk: impl FnMut(usize) -> Option<&'a [u8]>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.push(scale.number());
    out.resize(start + scale.header_bytes(), 0);
    for place in 0..scale.volume() {
        let Some(bytes) = chunk(place).filter(|bytes| !bytes.is_empty()) else { continue };
        let offset = (out.len() - start) as u64;
        out[start + offset_at(place)..][..OFFSET_BYTES].copy_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(bytes);
    }
}

/// The bytes of a cluster, of which single chunks can be taken.
#[derive(Clone, Copy, Debug)]
pub struct EncodedCluster<'a> {
    bytes: &'a [u8],
    scale: ClusterScale,
}

impl<'a> EncodedCluster<'a> {
    /// Takes a cluster that has exactly these bytes, and checks its header.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ClusterFormatError> {
        let header = cluster_part(bytes, OFFSETS_AT, "header")?;
        let version = u64_at(header, 0);
        if version != FORMAT_VERSION {
            return Err(ClusterFormatError::Version { found: version });
        }
        let scale = match header[SCALE_AT] {
            1 => ClusterScale::Small,
            2 => ClusterScale::Large,
            found => return Err(ClusterFormatError::Scale { found }),
        };
        cluster_part(bytes, scale.header_bytes(), "header and offsets")?;
        Ok(Self { bytes, scale })
    }

    /// How many chunks it has room for.
    pub fn scale(&self) -> ClusterScale {
        self.scale
    }

    /// The bytes of the chunk at a [place](ClusterScale::place); `None` if there is none.
    ///
    /// # Panics
    /// If there is no such place, as with a slice.
    pub fn chunk(&self, place: usize) -> Result<Option<&'a [u8]>, ClusterFormatError> {
        assert!(place < self.scale.volume(), "place {place} is outside of a cluster of {}", self.scale.volume());
        let start = self.offset(place);
        if start == 0 {
            return Ok(None);
        }
        let next = (place + 1..self.scale.volume()).find(|place| self.offset(*place) != 0);
        let (least, end) = (self.scale.header_bytes(), self.bytes.len());
        let first = self.checked(place, least, end)?;
        match next {
            Some(next) => Ok(Some(&self.bytes[first..self.checked(next, first + 1, end)?])),
            None => Ok(Some(&self.bytes[first..])),
        }
    }

    /// The bytes of all chunks with their places, in Morton order; the first error ends it. Besides what
    /// [`chunk`](Self::chunk) checks, there must be nothing between the chunks.
    pub fn chunks(&self) -> impl Iterator<Item = Result<(usize, &'a [u8]), ClusterFormatError>> {
        let mut end = self.scale.header_bytes();
        let mut places = 0..self.scale.volume();
        std::iter::from_fn(move || {
            let place = places.find(|place| self.offset(*place) != 0)?;
            let chunk = self.checked(place, end, end + 1).and_then(|_| self.chunk(place));
            match chunk {
                Ok(bytes) => {
                    let bytes = bytes.unwrap_or_default();
                    end += bytes.len();
                    Some(Ok((place, bytes)))
                }
                Err(error) => {
                    places = 0..0;
                    Some(Err(error))
                }
            }
        })
    }

    fn offset(&self, place: usize) -> u64 {
        u64_at(self.bytes, offset_at(place))
    }

    /// The offset of a chunk, if it is in bounds.
    fn checked(&self, place: usize, least: usize, end: usize) -> Result<usize, ClusterFormatError> {
        let found = self.offset(place);
        let offset = usize::try_from(found).ok().filter(|offset| (least..end.min(self.bytes.len())).contains(offset));
        offset.ok_or(ClusterFormatError::ChunkOffset { offset: offset_at(place), least, end, found })
    }
}

const fn offset_at(place: usize) -> usize {
    OFFSETS_AT + place * OFFSET_BYTES
}

fn cluster_part<'a>(bytes: &'a [u8], length: usize, name: &'static str) -> Result<&'a [u8], ClusterFormatError> {
    bytes.get(..length).ok_or(ClusterFormatError::Truncated {
        offset: 0,
        part: name,
        expected: length as u128,
        found: bytes.len(),
    })
}
