//! [`Source`]: the bytes of a file, decompressed while reading.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, BufReader, Read};

/// The number of compressed bytes that are read at once.
const BUFFER: usize = 1 << 15;
const MAGIC: [u8; 2] = [0x1F, 0x8B];

/// A file, decompressed: gzip with one or more members, or plain data.
pub(super) enum Source<R: Read> {
    Plain(BufReader<R>),
    Gzip(Box<GzDecoder<BufReader<R>>>),
    /// After the last member. The reader is at the bytes that follow it.
    Ended(BufReader<R>),
    /// Temporary state between two members.
    Changing,
}

impl<R: Read> Source<R> {
    /// Opens a file and also returns its first byte; `None` if it is empty.
    pub fn open(source: R) -> io::Result<(Self, Option<u8>)> {
        let mut reader = BufReader::with_capacity(BUFFER, source);
        let first = reader.fill_buf()?.first().copied();
        let source =
            if first == Some(MAGIC[0]) { Self::Gzip(Box::new(GzDecoder::new(reader))) } else { Self::Plain(reader) };
        Ok((source, first))
    }

    /// Returns `true` if bytes follow the last member that belong to no member.
    pub fn has_more(&mut self) -> io::Result<bool> {
        match self {
            Self::Ended(reader) => Ok(!reader.fill_buf()?.is_empty()),
            _ => Ok(false),
        }
    }

    /// After a member: moves on to the next one, or to the end.
    fn change(&mut self) -> io::Result<()> {
        if let Self::Gzip(decoder) = std::mem::replace(self, Self::Changing) {
            let mut reader = decoder.into_inner();
            let is_member = reader.fill_buf().map(|bytes| bytes.starts_with(&MAGIC));
            *self = match is_member {
                Ok(true) => Self::Gzip(Box::new(GzDecoder::new(reader))),
                _ => Self::Ended(reader),
            };
            is_member?;
        }
        Ok(())
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                Self::Plain(reader) => return reader.read(buffer),
                Self::Gzip(decoder) => match decoder.read(buffer)? {
                    0 if !buffer.is_empty() => self.change()?,
                    count => return Ok(count),
                },
                Self::Ended(_) | Self::Changing => return Ok(0),
            }
        }
    }
}
