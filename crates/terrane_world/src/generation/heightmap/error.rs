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
    /// Not a map that can be read: no PNG file, one of another kind, or one that is too large.
    #[error("the height map {map} is {found}, but has to be {expected}")]
    Unfit {
        /// The file, or "(data)".
        map: String,
        /// What it is, such as "8-bit RGB".
        found: String,
        /// What it has to be, and how it gets so.
        expected: &'static str,
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
