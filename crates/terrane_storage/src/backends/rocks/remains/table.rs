//! The properties at the end of a table, read without RocksDB: its family and its highest sequence number.

use crate::Family;
use crate::bytes::{ReadError, Reader};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The family that every database has. It is always empty.
pub(super) const DEFAULT_FAMILY: (u32, &str) = (0, "default");
const FOOTER: u64 = 53;
const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
/// The first format version whose footer has the length of the preceding block instead of the places of two blocks.
const ONE_LENGTH_SINCE: u32 = 6;
/// The bytes behind each block: its kind of compression and its checksum.
const BLOCK_TRAILER: u64 = 5;
/// The maximum size of a block of properties.
const MAX_BLOCK: u64 = 16 << 20;
/// The bits for the number of restart points in a block's last number.
const RESTARTS: u32 = (1 << 28) - 1;

#[derive(Clone, Debug)]
pub(super) struct Table {
    pub number: u64,
    pub bytes: u64,
    /// The number of its family.
    pub family: u32,
    pub family_name: String,
    /// The highest sequence number in it; 0 if unknown.
    pub last_sequence: u64,
}

impl Table {
    /// Reads the end of a table without verifying checksums: RocksDB does that when it opens the table.
    pub fn read(path: &Path, number: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let mut table = Self { number, bytes, family: u32::MAX, family_name: String::new(), last_sequence: 0 };
        for (name, value) in properties(&mut file, bytes)? {
            match &name[..] {
                b"rocksdb.column.family.id" => table.family = self::number(&value)?.try_into().unwrap_or(u32::MAX),
                b"rocksdb.column.family.name" => table.family_name = String::from_utf8_lossy(&value).into_owned(),
                b"rocksdb.key.largest.seqno" => table.last_sequence = self::number(&value)?,
                _ => {}
            }
        }
        let is_known = |name: &str| Family::ALL.iter().any(|family| family.name() == name) || name == DEFAULT_FAMILY.1;
        if !is_known(&table.family_name) {
            return Err(io::Error::other(format!("it belongs to {:?}, which no world has", table.family_name)));
        }
        Ok(table)
    }
}

/// The properties of a table of this length.
fn properties(file: &mut File, length: u64) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let end = length.checked_sub(FOOTER).ok_or_else(|| wrong("it is too short"))?;
    let footer = read(file, end, FOOTER)?;
    let (head, tail) = footer.split_at(FOOTER as usize - 12);
    let (version, magic) = tail.split_at(4);
    if magic != MAGIC.to_le_bytes() {
        return Err(wrong("its end is missing or damaged"));
    }
    let version = u32::from_le_bytes(version.try_into().map_err(io::Error::other)?);
    let (at, size) = match version {
        ONE_LENGTH_SINCE.. => {
            // Kind of checksum, magic number, checksum, another one; then the size.
            let size = head[13..17].try_into().map(u32::from_le_bytes).map_err(io::Error::other)?;
            let size = u64::from(size);
            (end.checked_sub(size + BLOCK_TRAILER).ok_or_else(|| wrong("its end is damaged"))?, size)
        }
        _ => handle(&head[1..])?,
    };
    let index = entries(&block(file, at, size)?)?;
    let found = index.into_iter().find(|(name, _)| name == b"rocksdb.properties");
    let (_, place) = found.ok_or_else(|| wrong("it says nothing of itself"))?;
    let (at, size) = handle(&place)?;
    entries(&block(file, at, size)?)
}

fn block(file: &mut File, at: u64, size: u64) -> io::Result<Vec<u8>> {
    match size <= MAX_BLOCK && at.checked_add(size).is_some() {
        true => read(file, at, size),
        false => Err(wrong("its end is damaged")),
    }
}

fn read(file: &mut File, at: u64, size: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = vec![0; size as usize];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn handle(bytes: &[u8]) -> io::Result<(u64, u64)> {
    let mut reader = Reader::new(bytes);
    Ok((reader.number().map_err(damaged)?, reader.number().map_err(damaged)?))
}

fn number(bytes: &[u8]) -> io::Result<u64> {
    Reader::new(bytes).number().map_err(damaged)
}

/// The entries of a block. Each key is stored without the prefix that it shares with the previous one.
fn entries(block: &[u8]) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let restarts = block.last_chunk().map(|last| u32::from_le_bytes(*last) & RESTARTS);
    let behind = restarts.map(|restarts| (restarts as usize + 1) * 4).unwrap_or(usize::MAX);
    let end = block.len().checked_sub(behind).ok_or_else(|| wrong("its end is damaged"))?;
    let (mut reader, mut found, mut key) = (Reader::new(&block[..end]), Vec::new(), Vec::new());
    while reader.left() > 0 {
        let mut length = || usize::try_from(reader.number().map_err(damaged)?).map_err(io::Error::other);
        let (shared, own, value) = (length()?, length()?, length()?);
        key.truncate(shared);
        key.extend_from_slice(reader.slice(own).map_err(damaged)?);
        found.push((key.clone(), reader.slice(value).map_err(damaged)?.to_vec()));
    }
    Ok(found)
}

fn damaged(_: ReadError) -> io::Error {
    wrong("its end is damaged")
}

fn wrong(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
