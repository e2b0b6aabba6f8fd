//! Storage backends: their ordered maps, their interface, and the ones of this crate.

pub mod conformance;
pub(super) mod memory;
#[cfg(feature = "rocksdb")]
pub(super) mod rocks;
pub(super) mod store;
#[cfg(test)]
mod tests;

use std::fmt;

#[cfg(test)]
pub(super) use tests::test_store;

/// One of the ordered maps of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Chunks that are stored one by one.
    Chunks,
    /// Entities, by UUID.
    Entities,
    /// Lists that map names to numbers, one list per key.
    Registry,
    /// The world's header, dimensions, graphs, and the places of entities.
    Meta,
    /// Opacity maps.
    Opacity,
    /// Chunks that were not needed for a while, 4 x 4 x 4 per value.
    WarmChunks,
    /// Chunks that may never be needed again, up to 16 x 16 x 16 per value.
    ColdChunks,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 7] =
        [Self::Chunks, Self::Entities, Self::Registry, Self::Meta, Self::Opacity, Self::WarmChunks, Self::ColdChunks];

    /// A short description of the family's contents.
    pub const fn purpose(self) -> &'static str {
        match self {
            Self::Chunks => "hot chunks",
            Self::Entities => "entities",
            Self::Registry => "lists of types",
            Self::Meta => "what is known of everything else",
            Self::Opacity => "opacity map",
            Self::WarmChunks => "warm chunks, 4x4x4 a value",
            Self::ColdChunks => "cold chunks, up to 16x16x16 a value",
        }
    }

    /// The family's name on disk.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chunks => "chunkl0",
            Self::Entities => "entities",
            Self::Registry => "registry",
            Self::Meta => "meta",
            Self::Opacity => "opacity",
            Self::WarmChunks => "chunkl1",
            Self::ColdChunks => "chunkl2",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
