//! One interface to an object store and its alternatives, so that all do the same work.

pub mod archive;
pub mod database;
pub mod objects;
pub mod tables;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::path::Path;

/// The compression level of all stores.
pub const LEVEL: u32 = 3;

/// A file of keys, each with bytes.
pub trait Store: Sized {
    /// The store's name in tables.
    const NAME: &'static str;

    /// Creates the file. If `packs` is `true`, all objects are compressed, otherwise they are stored as they are.
    fn create(path: &Path, packs: bool) -> Self;

    /// Opens the file.
    fn open(path: &Path, packs: bool) -> Self;

    /// Writes or rewrites objects. They are synced when this returns.
    fn write(&mut self, objects: &[(&str, &[u8])]);

    /// Reads an existing object.
    fn read(&mut self, key: &str) -> Vec<u8>;

    /// Closes the file, so that it can be copied elsewhere.
    fn close(self);
}

/// Compresses for stores that cannot compress: the length, followed by the compressed bytes.
struct Packer {
    /// `None` if the bytes are stored as they are.
    stream: Option<Compress>,
}

impl Packer {
    fn new(packs: bool) -> Self {
        Self { stream: packs.then(|| Compress::new(Compression::new(LEVEL), true)) }
    }

    fn pack(&mut self, data: &[u8]) -> Vec<u8> {
        let Some(stream) = &mut self.stream else { return data.to_vec() };
        let mut packed = Vec::with_capacity(data.len() + 64);
        packed.extend_from_slice(&(data.len() as u32).to_le_bytes());
        stream.reset();
        let status = stream.compress_vec(data, &mut packed, FlushCompress::Finish).expect("memory");
        assert_eq!(status, Status::StreamEnd, "chunk data becomes smaller");
        packed
    }

    fn unpack(&self, packed: &[u8]) -> Vec<u8> {
        if self.stream.is_none() {
            return packed.to_vec();
        }
        let (length, packed) = packed.split_first_chunk().expect("it was packed so");
        // Spare room makes it faster.
        let mut data = Vec::with_capacity(u32::from_le_bytes(*length) as usize + 512);
        Decompress::new(true).decompress_vec(packed, &mut data, FlushDecompress::Finish).expect("it was packed so");
        data
    }
}
