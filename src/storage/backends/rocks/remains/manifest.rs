//! A manifest that names the files that are left, in RocksDB's format: version edits in the records of a log.

use super::{Blobs, DEFAULT_FAMILY, Table};
use crate::bytes::put_number;

/// A log is made of blocks of so many bytes, in which records are cut into pieces.
const BLOCK: usize = 32 * 1024;
/// Before each piece: checksum, length and kind.
const HEAD: usize = 7;
/// The kinds of pieces: a whole record; the first, a middle and the last of one.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// The tags of what an edit says.
const COMPARATOR: u64 = 1;
const LOG_NUMBER: u64 = 2;
const NEXT_FILE: u64 = 3;
const LAST_SEQUENCE: u64 = 4;
const NEW_FILE: u64 = 103;
const FAMILY: u64 = 200;
const FAMILY_ADDED: u64 = 201;
const LARGEST_FAMILY: u64 = 203;
const BLOB_FILE: u64 = 400;
/// Those of what is said of a table besides.
const END: u64 = 1;
const OLDEST_BLOB_FILE: u64 = 4;
const EPOCH: u64 = 13;

const BYTEWISE: &[u8] = b"leveldb.BytewiseComparator";
/// No entry has a higher sequence number, or it would not be seen.
const HIGHEST_SEQUENCE: u64 = (1 << 56) - 1;
/// More than any key of a world: those have a few hundred bytes at the most.
const HIGHEST_KEY: [u8; 1024] = [u8::MAX; 1024];
/// The kind of an entry that has a value.
const VALUE: u64 = 1;
/// Epochs below are reserved.
const FIRST_EPOCH: u64 = 2;

/// The manifest of a database with these families, by number and name, and these files. All tables come into level 0, and from
/// the first to the last key: where they are looked for costs time, and nothing else.
pub(super) fn encode(families: &[(u32, &str)], tables: &[&Table], blobs: &[&Blobs]) -> Vec<u8> {
    let mut log = Log::default();
    let files = tables.iter().map(|table| table.number).chain(blobs.iter().map(|blobs| blobs.number));
    let largest = families.iter().map(|(id, _)| *id).max().unwrap_or_default();
    let mut first = Vec::new();
    put_bytes(&mut first, COMPARATOR, BYTEWISE);
    for (tag, value) in [
        // Each log that is there is read.
        (LOG_NUMBER, 0),
        (NEXT_FILE, files.max().unwrap_or_default().saturating_add(1_000)),
        (LARGEST_FAMILY, largest.into()),
        (LAST_SEQUENCE, HIGHEST_SEQUENCE - 1),
    ] {
        put_number(&mut first, tag);
        put_number(&mut first, value);
    }
    log.push(&first);
    for (id, name) in families {
        if *id != DEFAULT_FAMILY.0 {
            let mut added = Vec::new();
            put_bytes(&mut added, COMPARATOR, BYTEWISE);
            put_number(&mut added, FAMILY);
            put_number(&mut added, (*id).into());
            put_bytes(&mut added, FAMILY_ADDED, name.as_bytes());
            log.push(&added);
        }
        log.push(&files_of(*id, tables, blobs));
    }
    log.bytes
}

/// The edit that has the files of a family.
fn files_of(family: u32, tables: &[&Table], blobs: &[&Blobs]) -> Vec<u8> {
    let mut edit = Vec::new();
    put_number(&mut edit, LOG_NUMBER);
    put_number(&mut edit, 0);
    let oldest_blobs = blobs.iter().filter(|blobs| blobs.family == family).map(|blobs| blobs.number).min();
    let mut of_family: Vec<&Table> = tables.iter().copied().filter(|table| table.family == family).collect();
    of_family.sort_unstable_by_key(|table| (table.last_sequence, table.number));
    for (epoch, table) in (FIRST_EPOCH..).zip(of_family) {
        for number in [NEW_FILE, 0, table.number, table.bytes] {
            put_number(&mut edit, number);
        }
        put_slice(&mut edit, &internal_key(&[], HIGHEST_SEQUENCE));
        put_slice(&mut edit, &internal_key(&HIGHEST_KEY, 0));
        put_number(&mut edit, 0);
        put_number(&mut edit, table.last_sequence);
        put_field(&mut edit, EPOCH, epoch);
        if let Some(oldest) = oldest_blobs {
            put_field(&mut edit, OLDEST_BLOB_FILE, oldest);
        }
        put_number(&mut edit, END);
    }
    for blobs in blobs.iter().filter(|blobs| blobs.family == family) {
        // How many values there are, and their bytes, count only for collecting garbage.
        for number in [BLOB_FILE, blobs.number, 1, blobs.bytes] {
            put_number(&mut edit, number);
        }
        // No checksum of the whole file: its method, and the value.
        put_slice(&mut edit, &[]);
        put_slice(&mut edit, &[]);
        put_number(&mut edit, 0);
    }
    put_number(&mut edit, FAMILY);
    put_number(&mut edit, family.into());
    edit
}

fn internal_key(key: &[u8], sequence: u64) -> Vec<u8> {
    [key, &(sequence << 8 | VALUE).to_le_bytes()].concat()
}

fn put_field(edit: &mut Vec<u8>, tag: u64, value: u64) {
    let mut bytes = Vec::new();
    put_number(&mut bytes, value);
    put_bytes(edit, tag, &bytes);
}

fn put_bytes(edit: &mut Vec<u8>, tag: u64, bytes: &[u8]) {
    put_number(edit, tag);
    put_slice(edit, bytes);
}

fn put_slice(edit: &mut Vec<u8>, bytes: &[u8]) {
    put_number(edit, bytes.len() as u64);
    edit.extend_from_slice(bytes);
}

/// Records as they stand in a file.
#[derive(Default)]
struct Log {
    bytes: Vec<u8>,
}

impl Log {
    fn push(&mut self, record: &[u8]) {
        let (mut rest, mut is_first) = (record, true);
        while is_first || !rest.is_empty() {
            let room = BLOCK - self.bytes.len() % BLOCK;
            if room < HEAD {
                self.bytes.resize(self.bytes.len() + room, 0);
                continue;
            }
            let (piece, behind) = rest.split_at(rest.len().min(room - HEAD));
            let kind = match (is_first, behind.is_empty()) {
                (true, true) => FULL,
                (true, false) => FIRST,
                (false, false) => MIDDLE,
                (false, true) => LAST,
            };
            let checksum = masked_checksum([&[kind], piece]);
            self.bytes.extend(checksum.to_le_bytes());
            self.bytes.extend((piece.len() as u16).to_le_bytes());
            self.bytes.push(kind);
            self.bytes.extend_from_slice(piece);
            (rest, is_first) = (behind, false);
        }
    }
}

/// The checksum of these bytes in a row as RocksDB stores it: CRC-32C, changed so that one of bytes with checksums differs.
fn masked_checksum<const N: usize>(parts: [&[u8]; N]) -> u32 {
    let mut crc = !0_u32;
    for byte in parts.into_iter().flatten() {
        crc = CRC_TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8;
    }
    (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standard() {
        // The check value of CRC-32C, unmasked.
        let unmasked = masked_checksum([b"12345", b"6789"]).wrapping_sub(0xa282_ead8).rotate_left(15);
        assert_eq!(unmasked, 0xe306_9283);
    }

    #[test]
    fn a_record_is_cut_where_a_block_ends() {
        let mut log = Log::default();
        for length in [BLOCK - HEAD - 3, 5, 2 * BLOCK, 0] {
            log.push(&vec![7; length]);
        }
        let kinds: Vec<u8> = {
            let (mut at, mut kinds) = (0, Vec::new());
            while at + HEAD <= log.bytes.len() {
                if BLOCK - at % BLOCK < HEAD {
                    at = at.next_multiple_of(BLOCK);
                    continue;
                }
                let length = u16::from_le_bytes([log.bytes[at + 4], log.bytes[at + 5]]);
                kinds.push(log.bytes[at + 6]);
                at += HEAD + usize::from(length);
            }
            kinds
        };
        assert_eq!(kinds, [FULL, FULL, FIRST, MIDDLE, LAST, FULL]);
    }
}
