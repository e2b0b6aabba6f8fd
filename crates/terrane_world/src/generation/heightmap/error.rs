//! [`HeightmapError`].

use std::io;
use thiserror::Error;

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
