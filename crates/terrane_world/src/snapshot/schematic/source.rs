//! The bytes of a file, uncompressed as they are read.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, BufReader, Read};

/// Compressed bytes that are read at once.
const BUFFER: usize = 1 << 15;
const MAGIC: [u8; 2] = [0x1F, 0x8B];

/// A file, uncompressed: gzip of one or more members, or plain data.
pub(super) enum Source<R: Read> {
    Plain(BufReader<R>),
    Gzip(Box<GzDecoder<BufReader<R>>>),
    /// After the last member. The reader is at what follows it.
    Ended(BufReader<R>),
    /// A member is being changed for the next.
    Changing,
}

impl<R: Read> Source<R> {
    /// Looks at the first byte, and gives it as well; `None` if there is none.
    pub fn open(source: R) -> io::Result<(Self, Option<u8>)> {
        let mut reader = BufReader::with_capacity(BUFFER, source);
        let first = reader.fill_buf()?.first().copied();
        let source =
            if first == Some(MAGIC[0]) { Self::Gzip(Box::new(GzDecoder::new(reader))) } else { Self::Plain(reader) };
        Ok((source, first))
    }

    /// Whether bytes follow the last member that belong to none.
    pub fn has_more(&mut self) -> io::Result<bool> {
        match self {
            Self::Ended(reader) => Ok(!reader.fill_buf()?.is_empty()),
            _ => Ok(false),
        }
    }

    /// After a member: the next one, or the end.
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
