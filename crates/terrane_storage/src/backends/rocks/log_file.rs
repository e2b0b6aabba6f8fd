//! Checks of the files to which RocksDB appends records: its logs and its MANIFEST.
//!
//! RocksDB itself does not distinguish the torn end of a log, left by a process that is killed while it writes, from a
//! damaged record: it stops at either and drops the rest. So the files are checked here before RocksDB opens them.
//!
//! A file consists of blocks of 32 KiB, and a block of records. A record has a masked CRC-32C of its kind and its
//! content (4 bytes), the length of its content (2 bytes, little-endian), its kind (1 byte), and its content. A record
//! that does not fit into the rest of a block is split into pieces, which are records of the kind first, middle or
//! last. If less room than a header is left in a block, it is filled with zeros.
//!
//! A killed process has written a part of its last record, so the file ends before the record does. After a loss of
//! power the file may also end in zeros. Everything else is damage, or a [gap](super::files) in unsynced writes.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

const BLOCK: usize = 32 << 10;
const HEADER: usize = 7;
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;
/// Kinds of records about the log itself: its compression, the sizes of timestamps, the previous log. This crate's
/// worlds have none of them.
const ABOUT_THE_LOG: [u8; 3] = [9, 10, 130];
/// The size of the header of a batch of writes: the number of its first write (8 bytes) and the number of writes (4 bytes).
const BATCH_HEADER: usize = 12;
/// The number of bytes that a disk writes at once.
const SECTOR: u64 = 512;
/// No record ends in this many zeros from the start of a sector.
const LEAST_ZEROS: u64 = 64;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogFile {
    /// The numbers of the writes in it, if it is a log with writes.
    pub writes: Option<Range<u64>>,
    pub end: LogEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogEnd {
    /// The records end with the file.
    Whole,
    /// The records end at this byte, with an unfinished record.
    Torn { at: u64 },
    /// The records end at this byte, with a damaged record.
    Damaged { at: u64, is_followed: bool },
}

impl LogEnd {
    /// The byte at which the records end, in a file of this length.
    pub fn at(self, length: u64) -> u64 {
        match self {
            Self::Whole => length,
            Self::Torn { at } | Self::Damaged { at, .. } => at,
        }
    }
}

impl fmt::Display for LogEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("it ends with a whole record"),
            Self::Torn { at } => write!(f, "it ends within the record at byte {at}"),
            Self::Damaged { at, is_followed: true } => {
                write!(f, "the record at byte {at} is damaged, and whole records follow it")
            }
            Self::Damaged { at, .. } => write!(f, "the last record, at byte {at}, is damaged"),
        }
    }
}

impl LogFile {
    /// Reads a file up to its end or the first unreadable record.
    pub fn read(mut file: impl Read) -> io::Result<Self> {
        let mut log = Self { writes: None, end: LogEnd::Whole };
        let mut begun = None::<Begun>;
        let (mut block, mut start) = (Vec::new(), 0);
        while read_block(&mut file, &mut block)? {
            let mut at = 0;
            while at < block.len() && at + HEADER <= BLOCK {
                let place = start + at as u64;
                match Piece::of(&block[at..], BLOCK - at) {
                    Piece::Whole(kind, content) if log.take(&mut begun, place, kind, content) => {
                        at += HEADER + content.len();
                    }
                    piece => {
                        let from = begun.map_or(place, |begun| begun.at);
                        let is_cut = matches!(piece, Piece::Cut);
                        log.end = judge(&mut file, &mut block, start, at, from, is_cut)?;
                        return Ok(log);
                    }
                }
            }
            start += block.len() as u64;
        }
        if let Some(begun) = begun {
            log.end = LogEnd::Torn { at: begun.at };
        }
        Ok(log)
    }

    /// Processes a piece of a record. Returns `false` if it does not fit the previous piece.
    fn take(&mut self, begun: &mut Option<Begun>, at: u64, kind: u8, content: &[u8]) -> bool {
        let mut record = match (kind, begun.take()) {
            (FULL | FIRST, None) => Begun { at, head: Vec::new() },
            (MIDDLE | LAST, Some(record)) => record,
            (kind, None) => return ABOUT_THE_LOG.contains(&kind),
            (_, record) => {
                *begun = record;
                return false;
            }
        };
        let missing = BATCH_HEADER - record.head.len();
        record.head.extend_from_slice(&content[..content.len().min(missing)]);
        match kind {
            FULL | LAST => self.count(&record.head),
            _ => *begun = Some(record),
        }
        true
    }

    fn count(&mut self, head: &[u8]) {
        let Some((first, count)) = head.split_first_chunk::<8>() else { return };
        let Some(count) = count.first_chunk::<4>() else { return };
        let first = u64::from_le_bytes(*first);
        let end = first.saturating_add(u32::from_le_bytes(*count).into());
        self.writes = Some(self.writes.as_ref().map_or(first, |writes| writes.start)..end);
    }
}

/// The start of the block behind this byte.
pub(super) fn next_block(at: u64) -> u64 {
    (at + 1).next_multiple_of(BLOCK as u64)
}

/// The number of records that begin in these blocks. In each block, they are read up to the first unreadable one.
pub(super) fn count(mut blocks: impl Read) -> io::Result<u64> {
    let (mut block, mut count) = (Vec::new(), 0);
    while read_block(&mut blocks, &mut block)? {
        let mut at = 0;
        while at < block.len()
            && at + HEADER <= BLOCK
            && let Piece::Whole(kind, content) = Piece::of(&block[at..], BLOCK - at)
        {
            count += u64::from(matches!(kind, FULL | FIRST));
            at += HEADER + content.len();
        }
    }
    Ok(count)
}

pub(super) fn append(file: &mut Vec<u8>, record: &[u8]) {
    let (mut rest, mut is_first) = (record, true);
    while is_first || !rest.is_empty() {
        let room = BLOCK - file.len() % BLOCK;
        if room < HEADER {
            file.resize(file.len() + room, 0);
            continue;
        }
        let (piece, behind) = rest.split_at(rest.len().min(room - HEADER));
        let kind = match (is_first, behind.is_empty()) {
            (true, true) => FULL,
            (true, false) => FIRST,
            (false, false) => MIDDLE,
            (false, true) => LAST,
        };
        let content = [&[kind], piece].concat();
        file.extend(masked(crc32c(&content)).to_le_bytes());
        file.extend((piece.len() as u16).to_le_bytes());
        file.extend(content);
        (rest, is_first) = (behind, false);
    }
}

/// A record whose last piece was not read yet.
struct Begun {
    at: u64,
    head: Vec<u8>,
}

/// The contents of a block at one place.
enum Piece<'a> {
    /// A record or a piece of one, by kind and content.
    Whole(u8, &'a [u8]),
    /// The beginning of a record. The file ends within it.
    Cut,
    Bad,
}

impl<'a> Piece<'a> {
    /// The piece at the start of `rest`, with `room` bytes left in its block.
    fn of(rest: &'a [u8], room: usize) -> Self {
        let Some((header, behind)) = rest.split_first_chunk::<HEADER>() else { return Self::Cut };
        let [a, b, c, d, low, high, kind] = *header;
        if !(FULL..=LAST).contains(&kind) && !ABOUT_THE_LOG.contains(&kind) {
            return Self::Bad;
        }
        let length = usize::from(u16::from_le_bytes([low, high]));
        let stored = u32::from_le_bytes([a, b, c, d]);
        let is_whole = |length: usize| masked(crc32c(&rest[HEADER - 1..HEADER + length])) == stored;
        match behind.get(..length) {
            Some(content) if is_whole(length) => Self::Whole(kind, content),
            Some(_) => Self::Bad,
            // If the checksum matches all of the rest, the file is not truncated: the length is damaged.
            None if HEADER + length <= room && !is_whole(behind.len()) => Self::Cut,
            None => Self::Bad,
        }
    }
}

/// Classifies a truncated or bad piece at `at` of this block. It belongs to the record that begins at the byte `from`
/// of the file.
fn judge(
    file: &mut impl Read,
    block: &mut Vec<u8>,
    mut start: u64,
    at: usize,
    from: u64,
    is_cut: bool,
) -> io::Result<LogEnd> {
    let mut behind = at + 1;
    let mut zeros = start + at as u64;
    loop {
        let is_whole = |at: usize| matches!(Piece::of(&block[at..], BLOCK - at), Piece::Whole(FULL..=LAST, _));
        if (behind..block.len()).any(is_whole) {
            return Ok(LogEnd::Damaged { at: from, is_followed: true });
        }
        if let Some(last) = block[behind.saturating_sub(1)..].iter().rposition(|byte| *byte != 0) {
            zeros = start + (behind.saturating_sub(1) + last) as u64 + 1;
        }
        start += block.len() as u64;
        behind = 0;
        if !read_block(file, block)? {
            break;
        }
    }
    let is_torn = is_cut || start >= zeros.next_multiple_of(SECTOR) + LEAST_ZEROS;
    Ok(if is_torn { LogEnd::Torn { at: from } } else { LogEnd::Damaged { at: from, is_followed: false } })
}

/// Reads the next block, which may be incomplete; `false` at the end of the file.
fn read_block(file: &mut impl Read, block: &mut Vec<u8>) -> io::Result<bool> {
    block.clear();
    file.take(BLOCK as u64).read_to_end(block)?;
    Ok(!block.is_empty())
}

/// The stored form of the checksum. RocksDB masks it, since the content may contain checksums of the same kind.
const fn masked(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The CRC-32C of bytes, eight at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let crc = eights.iter().fold(u32::MAX, |crc, eight| {
        let word = u64::from_le_bytes(*eight) ^ u64::from(crc);
        (0..8).fold(0, |crc, byte| crc ^ TABLES[7 - byte][usize::from((word >> (8 * byte)) as u8)])
    });
    !rest.iter().fold(crc, |crc, byte| crc >> 8 ^ TABLES[0][usize::from(crc as u8 ^ byte)])
}

/// The effect of each byte on the checksum, for each number of bytes that follow it.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ ((crc & 1) * 0x82f6_3b78);
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc: u32 = tables[table - 1][byte];
            tables[table][byte] = crc >> 8 ^ tables[0][(crc & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

#[cfg(test)]
mod tests;
