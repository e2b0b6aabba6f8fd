//! Reads the samples of a map from a PNG file, with [`HeightmapError`].

use png::{BitDepth, ColorType, Decoder, DecodingError, Limits, Transformations};
use std::io::{self, BufRead, Read, Seek};
use thiserror::Error;

/// The maximum number of samples of a map: 128 MiB.
const MAX_SAMPLES: u64 = 64 << 20;
/// The decoder's memory besides the samples: one row and the chunks around the image.
const DECODER_BYTES: usize = 8 << 20;
const KIND: &str = "16-bit greyscale: export it again as 16-bit greyscale PNG";
const SIZE: &str = "at most 67,108,864 samples: scale it down or cut it, and set more blocks per sample";
const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Reads the heights of a 16-bit greyscale PNG, in units, row by row from the north, each from west to east. Also
/// returns the number of samples along x and z, which is at least one. `map` is the map's name in errors.
pub(super) fn read(mut reader: impl BufRead + Seek, map: &str) -> Result<([u32; 2], Vec<u16>), HeightmapError> {
    let map = || map.to_owned();
    let unfit = |found, expected| HeightmapError::Unfit { map: map(), found, expected };
    let unreadable = |error| match error {
        DecodingError::IoError(source) if source.kind() != io::ErrorKind::UnexpectedEof => {
            HeightmapError::Read { map: map(), source }
        }
        error => HeightmapError::Damaged { map: map(), reason: error.to_string() },
    };

    let mut start = Vec::with_capacity(SIGNATURE.len());
    Read::take(&mut reader, SIGNATURE.len() as u64)
        .read_to_end(&mut start)
        .and_then(|_| reader.rewind())
        .map_err(|source| HeightmapError::Read { map: map(), source })?;
    if start != SIGNATURE {
        return Err(unfit("no PNG file".to_owned(), KIND));
    }

    let mut decoder = Decoder::new_with_limits(reader, Limits { bytes: DECODER_BYTES });
    decoder.set_transformations(Transformations::IDENTITY);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let info = decoder.read_header_info().map_err(unreadable)?;
    let (width, height) = (info.width, info.height);
    if (info.color_type, info.bit_depth) != (ColorType::Grayscale, BitDepth::Sixteen) {
        return Err(unfit(describe(info.color_type, info.bit_depth), KIND));
    }
    // Checked before such a size is allocated. The second bound keeps a row within the decoder's memory.
    if u64::from(width) * u64::from(height) > MAX_SAMPLES || width as usize > DECODER_BYTES / 8 {
        return Err(unfit(format!("{width} x {height} samples"), SIZE));
    }

    let mut reader = decoder.read_info().map_err(unreadable)?;
    let mut bytes = vec![0; width as usize * height as usize * 2];
    reader.next_frame(&mut bytes).map_err(unreadable)?;
    let values = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    Ok(([width, height], values))
}

fn describe(color: ColorType, depth: BitDepth) -> String {
    let color = match color {
        ColorType::Grayscale => "greyscale",
        ColorType::Rgb => "RGB",
        ColorType::Indexed => "colour palette",
        ColorType::GrayscaleAlpha => "greyscale with transparency",
        ColorType::Rgba => "RGB with transparency",
    };
    format!("{}-bit {color}", depth as u8)
}

/// The error for a height map that could not be read or configured.
#[derive(Debug, Error)]
pub enum HeightmapError {
    /// The file could not be opened or read.
    #[error("cannot read the height map {map}: {source}")]
    Read {
        /// The file.
        map: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The data is not a readable map: no PNG file, or one of another kind or size.
    #[error("the height map {map} is {found}, but must be {expected}")]
    Unfit {
        /// The file, or "(data)".
        map: String,
        /// The actual format, such as "8-bit RGB".
        found: String,
        /// The expected format, and how to get it.
        expected: &'static str,
    },
    /// The PNG file is truncated or damaged.
    #[error("the height map {map} is damaged or incomplete: {reason}; copy or export it again")]
    Damaged {
        /// The file, or "(data)".
        map: String,
        /// The decoder's message.
        reason: String,
    },
    /// A setting is out of range.
    #[error("{setting} of a height map is {found}, but must be {expected}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: String,
        /// The allowed values.
        expected: &'static str,
    },
}
