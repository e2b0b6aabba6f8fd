//! Cells that come before what is needed to understand them, packed while they wait.

use super::SchematicError;
use super::cells::CellSource;
use super::nbt::Budget;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::io::{Read, Write};

/// Bytes that are read back at once.
const BUFFER: usize = 1 << 15;

/// Cells that came before what is needed to understand them, packed as they were and compressed once more.
pub(super) struct Spill {
    /// Where they begin in the file.
    pub offset: u64,
    /// The path to them.
    pub field: String,
    /// How many bytes they are.
    pub length: u64,
    packed: Vec<u8>,
}

/// Takes the bytes of a [`Spill`].
pub(super) struct SpillWriter<'a> {
    encoder: DeflateEncoder<Vec<u8>>,
    counted: usize,
    budget: &'a Budget,
}

impl<'a> SpillWriter<'a> {
    pub fn new(budget: &'a Budget) -> Self {
        Self { encoder: DeflateEncoder::new(Vec::new(), Compression::fast()), counted: 0, budget }
    }

    /// `Err` gives the limit of the memory.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), u64> {
        // A vector takes whatever it is given.
        let _ = self.encoder.write_all(bytes);
        let capacity = self.encoder.get_ref().capacity();
        self.budget.take(capacity.saturating_sub(self.counted))?;
        self.counted = capacity;
        Ok(())
    }

    pub fn finish(self, offset: u64, field: String, length: u64) -> Spill {
        Spill { offset, field, length, packed: self.encoder.finish().unwrap_or_default() }
    }
}

impl Spill {
    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.packed.capacity()
    }

    pub fn read(&self) -> SpillReader<'_> {
        SpillReader {
            decoder: DeflateDecoder::new_with_buf(&self.packed[..], vec![0; BUFFER]),
            buffer: vec![0; BUFFER].into(),
            read: 0,
            spill: self,
        }
    }
}

/// Gives the bytes of a [`Spill`] back.
pub(super) struct SpillReader<'a> {
    decoder: DeflateDecoder<&'a [u8]>,
    buffer: Box<[u8]>,
    read: u64,
    spill: &'a Spill,
}

impl CellSource for SpillReader<'_> {
    fn part(&mut self, most: u64) -> Result<&[u8], SchematicError> {
        let most = self.buffer.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        let count = self.decoder.read(&mut self.buffer[..most]).unwrap_or(0);
        if count == 0 {
            return Err(SchematicError::Truncated { offset: self.offset(), field: self.spill.field.clone() });
        }
        self.read += count as u64;
        Ok(&self.buffer[..count])
    }

    fn offset(&self) -> u64 {
        self.spill.offset + self.read
    }
}
