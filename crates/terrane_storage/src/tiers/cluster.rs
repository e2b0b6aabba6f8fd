//! The envelope of a cluster: many groups of chunks under one key, each compressed and checksummed by itself.
//!
//! | part | bytes | content |
//! |---|---|---|
//! | table | 16 + 20 per group | see below |
//! | groups | as the table says | one part per group, by ascending place in the cube |
//! | table | | the same bytes again |
//! | end | 8 | `u32` length of the table, `u32` version |
//!
//! | bytes of the table | content |
//! |---|---|
//! | 0..4 | `u32` version, 1 |
//! | 4..12 | `u64` with a bit for each place in the cube that has a group |
//! | then 20 per group | `u64` with a bit for each stored chunk; `u32` stored length; `u32` decompressed length, or 0 if it is stored uncompressed; `u32` CRC-32 of the stored bytes |
//! | the last 4 | `u32` CRC-32 of all preceding bytes of the table |
//!
//! All integers are little-endian. A part is a [cluster](crate::chunk::format::cluster) of scale 1 whose chunks are
//! the values that single chunks are stored as, [envelopes](crate::envelope) included.
//!
//! The table is stored twice because nothing else says where the groups are. So any single flipped bit damages at most
//! one group. Rewriting a cluster copies damaged groups unchanged, so that it neither hides nor worsens the damage.

#[cfg(test)]
mod tests;

use super::chunk_group::GROUP_VOLUME;
use super::compression;
use crate::bytes::{u32_at, u64_at};
use crate::chunk::format::cluster::{decode_cluster, encode_cluster};
use std::borrow::Cow;
use std::collections::BTreeMap;

const VERSION: u32 = 1;
const GROUPS_AT: usize = 4;
const ENTRIES_AT: usize = 12;
const ENTRY: usize = 20;
const CHECKSUM: usize = 4;
const END: usize = 8;

/// The maximum size of a decompressed group: far more than any built by players, and little enough for memory.
pub(crate) const LARGEST_GROUP: usize = 64 << 20;
/// The maximum size of a cluster, since databases limit the size of values.
pub(crate) const LARGEST_CLUSTER: usize = 256 << 20;

/// The groups of a cluster, by their places in the cube.
pub(crate) type Parts<'a> = BTreeMap<u8, Part<'a>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// A bit for each stored chunk, by its place in the group.
    pub chunks: u64,
    raw_length: u32,
    checksum: u32,
    bytes: Cow<'a, [u8]>,
}

impl Part<'static> {
    /// Packs the values of single chunks, given with their places in the group. `None` if their total size is too large.
    pub fn pack<'v>(values: impl IntoIterator<Item = (usize, &'v [u8])>) -> Option<Self> {
        let mut places = [None; GROUP_VOLUME];
        for (place, value) in values {
            places[place] = Some(value).filter(|value| !value.is_empty());
        }
        let mut raw = Vec::new();
        encode_cluster(|place| places[place], &mut raw);
        if raw.len() > LARGEST_GROUP {
            return None;
        }
        let listed = (0..GROUP_VOLUME).filter(|place| places[*place].is_some());
        let chunks = listed.fold(0, |chunks, place| chunks | 1 << place);
        let (raw_length, bytes) = match compression::compress(&raw) {
            Some(compressed) => (raw.len() as u32, compressed),
            None => (0, raw),
        };
        Some(Self { chunks, raw_length, checksum: crc32fast::hash(&bytes), bytes: bytes.into() })
    }
}

impl Part<'_> {
    /// The number of bytes that the group takes in the cluster.
    pub fn stored_length(&self) -> usize {
        ENTRY + self.bytes.len()
    }

    /// The number of bytes of the decompressed group.
    pub fn length(&self) -> usize {
        if self.raw_length == 0 { self.bytes.len() } else { self.raw_length as usize }
    }

    /// The stored bytes, even if they are damaged.
    pub fn stored_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn into_owned(self) -> Part<'static> {
        let Self { chunks, raw_length, checksum, bytes } = self;
        Part { chunks, raw_length, checksum, bytes: bytes.into_owned().into() }
    }

    /// Checks and decompresses the group, for [`values`]. The error describes the damage, which leaves other groups of
    /// the cluster usable.
    pub fn unpack(&self) -> Result<Cow<'_, [u8]>, String> {
        let found = crc32fast::hash(&self.bytes);
        if found != self.checksum {
            let stored = self.checksum;
            return Err(format!("the checksum of its group is {found:08x}, but {stored:08x} was stored with it"));
        }
        let raw = match self.raw_length {
            0 => Cow::Borrowed(&*self.bytes),
            length if length as usize > LARGEST_GROUP => {
                return Err(format!(
                    "its group would take {length} bytes, and {LARGEST_GROUP} are the most that one may take"
                ));
            }
            length => compression::decompress(&self.bytes, length as usize)
                .map_err(|reason| format!("its group cannot be decompressed: {reason}"))?
                .into(),
        };
        let cluster = decode_cluster(&raw).map_err(|error| format!("its group is not a cluster: {error}"))?;
        let found = cluster.iter().map(|(place, _)| 1_u64 << place).sum::<u64>();
        let listed = self.chunks;
        if found != listed {
            return Err(format!("its group has the chunks {found:#018x}, but the table says {listed:#018x}"));
        }
        Ok(raw)
    }
}

/// The values of the single chunks of an [unpacked](Part::unpack) group, with their places and in the order of these.
pub(crate) fn values(unpacked: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    // Unpacking checked the bytes.
    decode_cluster(unpacked).into_iter().flatten()
}

pub(crate) fn encode(parts: &Parts) -> Vec<u8> {
    let table = encode_table(parts);
    let length = parts.values().map(|part| part.bytes.len()).sum::<usize>() + 2 * table.len() + END;
    let mut value = Vec::with_capacity(length);
    value.extend_from_slice(&table);
    parts.values().for_each(|part| value.extend_from_slice(&part.bytes));
    value.extend_from_slice(&table);
    value.extend_from_slice(&(table.len() as u32).to_le_bytes());
    value.extend_from_slice(&VERSION.to_le_bytes());
    value
}

fn encode_table(parts: &Parts) -> Vec<u8> {
    let mut table = VERSION.to_le_bytes().to_vec();
    let places = parts.keys().fold(0_u64, |places, place| places | 1 << place);
    table.extend_from_slice(&places.to_le_bytes());
    for part in parts.values() {
        table.extend_from_slice(&part.chunks.to_le_bytes());
        for number in [part.bytes.len() as u32, part.raw_length, part.checksum] {
            table.extend_from_slice(&number.to_le_bytes());
        }
    }
    table.extend_from_slice(&crc32fast::hash(&table).to_le_bytes());
    table
}

/// Splits a cluster into its groups without decoding them. An error means that no group can be used.
pub(crate) fn open(value: &[u8]) -> Result<Parts<'_>, String> {
    let front = table(value);
    let back = value.len().checked_sub(END).and_then(|end| {
        let start = end.checked_sub(u32_at(value, end)? as usize)?;
        table(&value[start..end]).filter(|table| table.len() == end - start)
    });
    let Some(table) = front.or(back) else {
        let version = u32_at(value, 0).filter(|_| value.len() >= END);
        // A single flipped bit would change only one of the two versions.
        let is_newer = |version: &u32| *version != VERSION && u32_at(value, value.len() - 4) == Some(*version);
        return Err(match version.filter(is_newer) {
            Some(found) => {
                format!(
                    "it has version {found}, and only version {VERSION} is known; open the world with a newer version"
                )
            }
            None => format!("both tables of the cluster are damaged, in {} bytes", value.len()),
        });
    };
    let (mut start, mut parts) = (table.len(), Parts::new());
    let end = value.len().saturating_sub(END + table.len());
    let not_there = |stop: usize| format!("its groups end at byte {stop}, but the second table begins at byte {end}");
    for (place, entry) in places(table).zip(table[ENTRIES_AT..].chunks_exact(ENTRY)) {
        let number = |at: usize| u32_at(entry, at).unwrap_or_default();
        let stop = start.saturating_add(number(8) as usize);
        let Some(bytes) = value[..end].get(start..stop) else {
            return Err(not_there(stop));
        };
        let chunks = u64_at(entry, 0).unwrap_or_default();
        parts.insert(place, Part { chunks, raw_length: number(12), checksum: number(16), bytes: bytes.into() });
        start = stop;
    }
    if start != end {
        return Err(not_there(start));
    }
    Ok(parts)
}

/// The table at the start of these bytes, if it is whole.
fn table(bytes: &[u8]) -> Option<&[u8]> {
    if u32_at(bytes, 0)? != VERSION {
        return None;
    }
    let groups = u64_at(bytes, GROUPS_AT)?.count_ones() as usize;
    let length = ENTRIES_AT + groups * ENTRY;
    let table = bytes.get(..length + CHECKSUM)?;
    (u32_at(table, length)? == crc32fast::hash(&table[..length])).then_some(table)
}

fn places(table: &[u8]) -> impl Iterator<Item = u8> {
    let places = u64_at(table, GROUPS_AT).unwrap_or_default();
    (0..64).filter(move |place| places >> place & 1 == 1)
}
