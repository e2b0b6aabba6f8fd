//! A manifest for the remaining files in RocksDB's format: version edits in the records of a log.

use super::super::log_file::append;
use super::table::{DEFAULT_FAMILY, Table};
use crate::bytes::put_number;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The tags of an edit's fields.
const COMPARATOR: u64 = 1;
const LOG_NUMBER: u64 = 2;
const NEXT_FILE: u64 = 3;
const LAST_SEQUENCE: u64 = 4;
const NEW_FILE: u64 = 103;
const FAMILY: u64 = 200;
const FAMILY_ADDED: u64 = 201;
const LARGEST_FAMILY: u64 = 203;
const BLOB_FILE: u64 = 400;
/// The tags of a table's additional fields.
const END: u64 = 1;
const OLDEST_BLOB_FILE: u64 = 4;
const EPOCH: u64 = 13;

const BYTEWISE: &[u8] = b"leveldb.BytewiseComparator";
/// The maximum sequence number of visible entries.
const HIGHEST_SEQUENCE: u64 = (1 << 56) - 1;
/// Greater than any key of a world, which has a few hundred bytes at most.
const HIGHEST_KEY: [u8; 1024] = [u8::MAX; 1024];
/// The kind of an entry that has a value.
const VALUE: u64 = 1;
/// Epochs below are reserved.
const FIRST_EPOCH: u64 = 2;

/// The magic number at the start of a blob file.
const BLOB_MAGIC: u32 = 2_395_959;

/// A blob file.
#[derive(Clone, Debug)]
pub(super) struct Blobs {
    pub number: u64,
    pub bytes: u64,
    pub family: u32,
}

impl Blobs {
    pub fn read(path: &Path, number: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        // Magic number, version, family.
        let mut head = [0; 12];
        file.read_exact(&mut head).map_err(|_| io::Error::other("it is too short"))?;
        let [magic, _, family] =
            [0, 4, 8].map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        if magic != BLOB_MAGIC {
            return Err(io::Error::other("its beginning is damaged"));
        }
        Ok(Self { number, bytes: file.metadata()?.len(), family })
    }
}

/// The manifest of a database with these families, by number and name, and these files. All tables are put into level 0
/// with the full range of keys, which only makes lookups slower.
pub(super) fn encode(families: &[(u32, &str)], tables: &[Table], blobs: &[Blobs]) -> Vec<u8> {
    let mut log = Vec::new();
    let files = tables.iter().map(|table| table.number).chain(blobs.iter().map(|blobs| blobs.number));
    let largest = families.iter().map(|(id, _)| *id).max().unwrap_or_default();
    let mut first = Vec::new();
    put_bytes(&mut first, COMPARATOR, BYTEWISE);
    for (tag, value) in [
        // All existing logs are read.
        (LOG_NUMBER, 0),
        (NEXT_FILE, files.max().unwrap_or_default().saturating_add(1_000)),
        (LARGEST_FAMILY, largest.into()),
        (LAST_SEQUENCE, HIGHEST_SEQUENCE - 1),
    ] {
        put_number(&mut first, tag);
        put_number(&mut first, value);
    }
    append(&mut log, &first);
    for (id, name) in families {
        if *id != DEFAULT_FAMILY.0 {
            let mut added = Vec::new();
            put_bytes(&mut added, COMPARATOR, BYTEWISE);
            put_number(&mut added, FAMILY);
            put_number(&mut added, (*id).into());
            put_bytes(&mut added, FAMILY_ADDED, name.as_bytes());
            append(&mut log, &added);
        }
        append(&mut log, &files_of(*id, name, tables, blobs));
    }
    log
}

fn files_of(family: u32, name: &str, tables: &[Table], blobs: &[Blobs]) -> Vec<u8> {
    let mut edit = Vec::new();
    put_number(&mut edit, LOG_NUMBER);
    put_number(&mut edit, 0);
    let oldest_blobs = blobs.iter().filter(|blobs| blobs.family == family).map(|blobs| blobs.number).min();
    let mut of_family: Vec<&Table> = tables.iter().filter(|table| table.family_name == name).collect();
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
        // The number of values and their bytes matter only for garbage collection.
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
