//! One interface to an object store and to what somebody could use instead of it, so that all do the same work.

pub mod archive;
pub mod database;
pub mod objects;
pub mod tables;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::path::Path;

/// The level of compression of all stores.
pub const LEVEL: u32 = 3;

/// A file of keys, each with bytes.
pub trait Store: Sized {
    /// What it is called in tables.
    const NAME: &'static str;

    /// Makes the file. If it `packs`, all objects are compressed, else they are kept as they are.
    fn create(path: &Path, packs: bool) -> Self;

    /// Opens the file.
    fn open(path: &Path, packs: bool) -> Self;

    /// Writes or rewrites objects; when it returns they outlive a loss of power.
    fn write(&mut self, objects: &[(&str, &[u8])]);

    /// Reads an object that is there.
    fn read(&mut self, key: &str) -> Vec<u8>;

    /// Gives the file back, as somebody would send it elsewhere.
    fn close(self);
}

/// What compresses for a store that does not do it by itself: how many bytes they are, and they.
struct Packer {
    /// `None` if they are kept as they are.
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
        // With room to spare it is quicker.
        let mut data = Vec::with_capacity(u32::from_le_bytes(*length) as usize + 512);
        Decompress::new(true).decompress_vec(packed, &mut data, FlushDecompress::Finish).expect("it was packed so");
        data
    }
}
