//! The byte form of a graph, version 1.
//!
//! Integers are little-endian. Claims and listeners are not part of it.
//!
//! | part | content |
//! |---|---|
//! | signature | the 4 bytes `dgra` |
//! | version | `u32` |
//! | completed count | `u64`: how many columns are completed |
//! | root count | `u64` |
//! | roots | by z, then x: `i64` x and `i64` z of the root, in units of 2048 columns, then its square |
//! | checksum | `u32`: CRC-32 (IEEE) of everything before |
//!
//! A square is a `u64` of its full children and a `u64` of those that are neither full nor empty, bit x + 8 * z, then
//! the latter in the order of their bits. A child of a tile is a batch: a `u16`, bit x + 4 * z. Any other is a square.
//! A square that is not a root is neither full nor empty itself, and a root is not empty. So two graphs with the same
//! completed columns have the same bytes.

use super::disc::{Area, bits};
use super::tree::{FULL, ROOT, Square, TILE, Tree};
use thiserror::Error;

/// The version that is written.
const VERSION: u32 = 1;
const SIGNATURE: [u8; 4] = *b"dgra";
const HEADER_BYTES: usize = 24;
const CHECKSUM_BYTES: usize = 4;

/// Why bytes are not a [`DistanceGraph`](super::DistanceGraph). Every `offset` is in bytes, from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GraphBytesError {
    /// A part reaches beyond the end of the bytes.
    #[error("byte {offset}: expected {expected} bytes of {part}, found {found}")]
    Truncated {
        /// Where the part begins.
        offset: usize,
        /// Which part it is.
        part: &'static str,
        /// The length of the part.
        expected: usize,
        /// The bytes that are left for it.
        found: usize,
    },
    /// They do not begin as a graph does.
    #[error("byte 0: expected the signature `dgra`, found {found:?}")]
    Signature {
        /// The bytes found.
        found: [u8; 4],
    },
    /// A version that this crate cannot read.
    #[error("byte 4: expected version 1, found {found}")]
    Version {
        /// The version found.
        found: u32,
    },
    /// The bytes are damaged.
    #[error("byte {offset}: expected the checksum {expected:#010x}, found {found:#010x}")]
    Checksum {
        /// Where the checksum is.
        offset: usize,
        /// That of the bytes before.
        expected: u32,
        /// The one found.
        found: u32,
    },
    /// A root beyond the last column.
    #[error("byte {offset}: the root [{x}, {z}] lies beyond the last column")]
    RootOutOfRange {
        /// Where the root begins.
        offset: usize,
        /// Its place along the x axis.
        x: i64,
        /// Its place along the z axis.
        z: i64,
    },
    /// A root that is not behind the one before it.
    #[error("byte {offset}: the root [{x}, {z}] is not behind the one before it, by z, then x")]
    RootOrder {
        /// Where the root begins.
        offset: usize,
        /// Its place along the x axis.
        x: i64,
        /// Its place along the z axis.
        z: i64,
    },
    /// A child that is full and is described as well, or a square that should be a bit of its parent, or nothing.
    #[error("byte {offset}: a square of level {level} cannot have the children {full:#018x} and {kept:#018x}")]
    Square {
        /// Where the square begins.
        offset: usize,
        /// 1 for a tile, 3 for a root.
        level: u32,
        /// Its full children.
        full: u64,
        /// Its children that follow.
        kept: u64,
    },
    /// A batch that should be a bit of its tile, or nothing.
    #[error("byte {offset}: expected a batch that is neither full nor empty, found {found:#06x}")]
    Batch {
        /// Where the batch is.
        offset: usize,
        /// Its mask.
        found: u16,
    },
    /// The columns of all squares are not as many as the header says.
    #[error("byte 8: expected {expected} completed columns, found {found}")]
    Count {
        /// What the header says.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// There is something between the last root and the checksum.
    #[error("byte {offset}: expected the checksum, found {found} bytes before it")]
    Trailing {
        /// Where the last root ends.
        offset: usize,
        /// How many bytes follow it.
        found: usize,
    },
}

/// The bytes of a tree with so many completed columns.
pub(super) fn write(tree: &Tree, completed_count: u64) -> Vec<u8> {
    let mut roots: Vec<_> = tree.roots().map(|(root, number)| (root, Square::Node(number))).collect();
    roots.retain(|(root, square)| tree.has_completed(root.level, *square));
    roots.sort_unstable_by_key(|(root, _)| (root.z, root.x));
    let mut bytes = Vec::with_capacity(HEADER_BYTES + CHECKSUM_BYTES);
    bytes.extend(SIGNATURE);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(completed_count.to_le_bytes());
    bytes.extend((roots.len() as u64).to_le_bytes());
    for (root, square) in roots {
        bytes.extend(root.x.to_le_bytes());
        bytes.extend(root.z.to_le_bytes());
        write_square(tree, ROOT, square, &mut bytes);
    }
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

fn write_square(tree: &Tree, level: u32, square: Square, bytes: &mut Vec<u8>) {
    // Only nodes are written.
    let Square::Node(number) = square else { return };
    if level == TILE {
        let tile = tree.tile(number);
        bytes.extend(tile.full.to_le_bytes());
        bytes.extend(tile.partial.to_le_bytes());
        bytes.extend(tree.masks_in(number).flat_map(u16::to_le_bytes));
        return;
    }
    let branch = tree.branch(number);
    // Some nodes only hold claims.
    let has_completed = |index: &u32| tree.has_completed(level - 1, branch.child(*index));
    let kept = bits(branch.kept).filter(has_completed).fold(0, |kept, index| kept | 1 << index);
    bytes.extend(branch.full.to_le_bytes());
    bytes.extend(u64::to_le_bytes(kept));
    for index in bits(kept) {
        write_square(tree, level - 1, branch.child(index), bytes);
    }
}

/// The tree of such bytes, and how many completed columns it has.
///
/// Never takes more memory than a small multiple of the bytes: each square of them makes at most one node.
pub(super) fn read(bytes: &[u8]) -> Result<(Tree, u64), GraphBytesError> {
    let mut reader = Reader { bytes, offset: 0 };
    let signature = reader.array("signature")?;
    if signature != SIGNATURE {
        return Err(GraphBytesError::Signature { found: signature });
    }
    let version = u32::from_le_bytes(reader.array("version")?);
    if version != VERSION {
        return Err(GraphBytesError::Version { found: version });
    }
    let expected = reader.u64("completed count")?;
    let root_count = reader.u64("root count")?;
    let end = bytes.len().saturating_sub(CHECKSUM_BYTES).max(reader.offset);
    let (body, checksum) = bytes.split_at(end);
    let found = u32::from_le_bytes(Reader { bytes: checksum, offset: 0 }.array("checksum").map_err(|_| {
        GraphBytesError::Truncated { offset: end, part: "checksum", expected: CHECKSUM_BYTES, found: checksum.len() }
    })?);
    let sum = crc32fast::hash(body);
    if found != sum {
        return Err(GraphBytesError::Checksum { offset: end, expected: sum, found });
    }

    let mut reader = Reader { bytes: body, offset: reader.offset };
    let mut tree = Tree::default();
    let mut count = 0;
    let mut last = None;
    for _ in 0..root_count {
        let offset = reader.offset;
        let (x, z) = (reader.i64("root")?, reader.i64("root")?);
        let exists = |root: i64| (i64::MIN >> Area::shift(ROOT)..=i64::MAX >> Area::shift(ROOT)).contains(&root);
        if !exists(x) || !exists(z) {
            return Err(GraphBytesError::RootOutOfRange { offset, x, z });
        }
        if last >= Some((z, x)) {
            return Err(GraphBytesError::RootOrder { offset, x, z });
        }
        last = Some((z, x));
        count += read_square(&mut reader, &mut tree, Area { level: ROOT, x, z })?;
    }
    if reader.offset < end {
        return Err(GraphBytesError::Trailing { offset: reader.offset, found: end - reader.offset });
    }
    if count != expected {
        return Err(GraphBytesError::Count { expected, found: count });
    }
    Ok((tree, count))
}

/// Answers how many columns were completed by it.
fn read_square(reader: &mut Reader, tree: &mut Tree, area: Area) -> Result<u64, GraphBytesError> {
    let (offset, level) = (reader.offset, area.level);
    let (full, kept) = (reader.u64("square")?, reader.u64("square")?);
    if full & kept != 0 || full | kept == 0 || level != ROOT && full == u64::MAX {
        return Err(GraphBytesError::Square { offset, level, full, kept });
    }
    let mut count = 0;
    for index in bits(full) {
        let child = area.child(index);
        count += match level {
            TILE => u64::from((!tree.add(child.min_batch(), FULL)).count_ones()),
            _ => tree.fill(child),
        };
    }
    for index in bits(kept) {
        let child = area.child(index);
        if level > TILE {
            count += read_square(reader, tree, child)?;
            continue;
        }
        let offset = reader.offset;
        let mask = u16::from_le_bytes(reader.array("batch")?);
        if mask == 0 || mask == FULL {
            return Err(GraphBytesError::Batch { offset, found: mask });
        }
        tree.add(child.min_batch(), mask);
        count += u64::from(mask.count_ones());
    }
    Ok(count)
}

struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self, part: &'static str) -> Result<[u8; N], GraphBytesError> {
        let offset = self.offset;
        let left = self.bytes.get(offset..).unwrap_or_default();
        let truncated = GraphBytesError::Truncated { offset, part, expected: N, found: left.len() };
        let array = *left.first_chunk().ok_or(truncated)?;
        self.offset += N;
        Ok(array)
    }

    fn u64(&mut self, part: &'static str) -> Result<u64, GraphBytesError> {
        Ok(u64::from_le_bytes(self.array(part)?))
    }

    fn i64(&mut self, part: &'static str) -> Result<i64, GraphBytesError> {
        Ok(i64::from_le_bytes(self.array(part)?))
    }
}
