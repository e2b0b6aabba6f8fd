//! What can be wrong with a height map.

use std::io;
use thiserror::Error;

/// Why a height map could not be read or set up.
#[derive(Debug, Error)]
pub enum HeightmapError {
    /// The file could not be opened or read.
    #[error("cannot read the height map {map}: {source}")]
    Read {
        /// The file.
        map: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The data does not begin like a PNG file.
    #[error("the height map {map} is not a PNG file: export the terrain as a 16-bit greyscale PNG")]
    NotPng {
        /// The file, or "(data)".
        map: String,
    },
    /// A PNG file, but of another kind.
    #[error("the height map {map} is {found}, but has to be 16-bit greyscale: export it again as 16-bit greyscale PNG")]
    Format {
        /// The file, or "(data)".
        map: String,
        /// What it is, such as "8-bit RGB".
        found: String,
    },
    /// More samples than are read.
    #[error(
        "the height map {map} has {width} x {height} samples, at most {limit} in all are read: scale it down or cut \
         it, and set more blocks per sample"
    )]
    TooLarge {
        /// The file, or "(data)".
        map: String,
        /// Samples from west to east.
        width: u32,
        /// Samples from north to south.
        height: u32,
        /// Samples a map may have.
        limit: u64,
    },
    /// A PNG file that is cut short or damaged.
    #[error("the height map {map} is damaged or incomplete: {reason}; copy or export it again")]
    Damaged {
        /// The file, or "(data)".
        map: String,
        /// What the decoder stumbled over.
        reason: String,
    },
    /// A setting that makes no sense.
    #[error("{setting} of a height map is {found}, but has to be {expected}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What it has to be.
        expected: &'static str,
    },
}
