//! The keys of an export's objects.

use super::format::{moved_chunk, moved_column};
use crate::space::{BatchPos, ChunkPos, ColumnPos, TilePos};
use std::fmt;

/// The names of the lists of types in [`Name::Registry`].
pub(super) const BLOCKS: &str = "blocks";
pub(super) const COMPONENTS: &str = "components";
pub(super) const ENTITY_TYPES: &str = "entity_types";
pub(super) const DIMENSIONS: &str = "dimensions";

/// The names of a column's parts. A chunk's part is called [`BLOCKS`].
pub(super) const CHUNKS: &str = "chunks";
pub(super) const TICKS: &str = "ticks";
pub(super) const ENTITIES: &str = "entities";
pub(super) const SUMMARY: &str = "summary";

/// The prefix of the keys of [`Name::Columns`].
pub(super) const COLUMNS: &str = "columns/";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name<'a> {
    /// The header of the export.
    Export,
    /// The first batch of each file. Only a complete export has it.
    Files,
    /// The progress of an incomplete export.
    Progress,
    /// A list of types of the world.
    Registry(&'a str),
    /// The exported columns among 32 x 32.
    Columns(TilePos),
    /// The history of the exported columns among 32 x 32.
    History(TilePos),
    /// A part of a chunk's data.
    Chunk(ChunkPos, &'a str),
    /// A part of a column's data.
    Column(ColumnPos, &'a str),
    /// The chunks of a group in one object, by the group's place in steps of 4.
    Cluster([i64; 3]),
    /// The other data of a batch's columns in one object.
    Batch(BatchPos),
    /// Any other key. It names no place.
    Other(&'a str),
}

impl<'a> Name<'a> {
    pub fn parse(key: &'a str) -> Self {
        // A number can be written in several ways, but only one is canonical.
        Self::known(key).filter(|name| name.to_string() == key).unwrap_or(Self::Other(key))
    }

    /// Returns `true` if the object belongs to a game, another program or a later version.
    pub fn is_foreign(self) -> bool {
        match self {
            Self::Registry(list) => ![BLOCKS, COMPONENTS, ENTITY_TYPES, DIMENSIONS].contains(&list),
            Self::Chunk(_, part) => part != BLOCKS,
            Self::Column(_, part) => ![CHUNKS, TICKS, ENTITIES, SUMMARY].contains(&part),
            Self::Other(_) => true,
            _ => false,
        }
    }

    /// Returns `true` if the object with this key may be in this pack.
    pub fn is_pack_of(self, key: &str) -> bool {
        let name = Name::parse(key);
        !name.is_foreign() && name.pack() == Some(self)
    }

    /// The pack that the object may be in.
    pub fn pack(self) -> Option<Name<'static>> {
        match self {
            Self::Chunk(ChunkPos { x, y, z }, _) => Some(Name::Cluster([x >> 2, y >> 2, z >> 2])),
            Self::Column(column, _) => Some(Name::Batch(column.batch())),
            _ => None,
        }
    }

    /// The column that the object belongs to.
    pub fn column(self) -> Option<ColumnPos> {
        match self {
            Self::Chunk(chunk, _) => Some(chunk.column()),
            Self::Column(column, _) => Some(column),
            _ => None,
        }
    }

    /// The name at another place, moved by `by` chunks; `None` outside the grid. A name without a place stays the same.
    pub fn moved(self, by: [i64; 3]) -> Option<Self> {
        Some(match self {
            Self::Chunk(chunk, part) => Self::Chunk(moved_chunk(chunk, by)?, part),
            Self::Column(column, part) => Self::Column(moved_column(column, by)?, part),
            other => other,
        })
    }

    fn known(key: &'a str) -> Option<Self> {
        let Some((kind, rest)) = key.split_once('/') else {
            return match key {
                "export" => Some(Self::Export),
                "files" => Some(Self::Files),
                "progress" => Some(Self::Progress),
                _ => None,
            };
        };
        Some(match (kind, rest.split_once('/')) {
            ("registry", None) => Self::Registry(rest),
            ("columns", None) => numbers(rest).map(|[x, z]| Self::Columns(TilePos::new(x, z)))?,
            ("history", None) => numbers(rest).map(|[x, z]| Self::History(TilePos::new(x, z)))?,
            ("cluster", None) => Self::Cluster(numbers(rest)?),
            ("batch", None) => numbers(rest).map(|[x, z]| Self::Batch(BatchPos::new(x, z)))?,
            ("chunk", Some((at, part))) => numbers(at).map(|[x, y, z]| Self::Chunk(ChunkPos::new(x, y, z), part))?,
            ("column", Some((at, part))) => numbers(at).map(|[x, z]| Self::Column(ColumnPos::new(x, z), part))?,
            _ => return None,
        })
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Export => f.write_str("export"),
            Self::Files => f.write_str("files"),
            Self::Progress => f.write_str("progress"),
            Self::Registry(list) => write!(f, "registry/{list}"),
            Self::Columns(TilePos { x, z }) => write!(f, "{COLUMNS}{x},{z}"),
            Self::History(TilePos { x, z }) => write!(f, "history/{x},{z}"),
            Self::Chunk(ChunkPos { x, y, z }, part) => write!(f, "chunk/{x},{y},{z}/{part}"),
            Self::Column(ColumnPos { x, z }, part) => write!(f, "column/{x},{z}/{part}"),
            Self::Cluster([x, y, z]) => write!(f, "cluster/{x},{y},{z}"),
            Self::Batch(BatchPos { x, z }) => write!(f, "batch/{x},{z}"),
            Self::Other(key) => f.write_str(key),
        }
    }
}

fn numbers<const N: usize>(text: &str) -> Option<[i64; N]> {
    let numbers = text.split(',').map(|number| number.parse().ok()).collect::<Option<Vec<i64>>>()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Promise, exports: The objects of an export have the documented keys, in the documented files.
        #[test]
        fn a_name_is_read_as_it_is_written(x: i64, y: i64, z: i64) {
            let (chunk, column) = (ChunkPos::new(x, y, z), ColumnPos::new(x, z));
            let ours = [Name::Export, Name::Files, Name::Progress, Name::Columns(TilePos::new(x, z)),
                Name::History(TilePos::new(x, z)), Name::Chunk(chunk, BLOCKS), Name::Cluster([x, y, z]), Name::Batch(BatchPos::new(x, z))];
            let lists = [BLOCKS, COMPONENTS, ENTITY_TYPES, DIMENSIONS].map(Name::Registry);
            let parts = [CHUNKS, TICKS, ENTITIES, SUMMARY].map(|part| Name::Column(column, part));
            for name in ours.into_iter().chain(lists).chain(parts) {
                let key = name.to_string();
                prop_assert_eq!(Name::parse(&key), name);
                prop_assert!(!name.is_foreign());
            }
            for name in [Name::Chunk(chunk, "game:claim/1"), Name::Column(column, "game:claim/1"), Name::Registry("game:x")] {
                let key = name.to_string();
                prop_assert_eq!(Name::parse(&key), name);
                prop_assert!(name.is_foreign());
            }
        }

        #[test]
        fn any_text_is_a_key(key in "(chunk|column|columns|history|batch|registry|x)?/?[0-9,+-]{0,9}/?[a-z:/]{0,9}") {
            prop_assert_eq!(Name::parse(&key).to_string(), key);
        }
    }

    /// Promise, exports: An export's key with the number `+5` or `05` is not the same as the key with `5`.
    #[test]
    fn a_key_with_an_unusual_number_is_not_a_key_of_the_format() {
        for key in [
            "chunk/+1,2,3/blocks",
            "chunk/01,2,3/blocks",
            "chunk/1,2/blocks",
            "columns/1,2,3",
            "chunk/-0,2,3/game:claim",
        ] {
            assert_eq!(Name::parse(key), Name::Other(key));
        }
        assert!(Name::parse("chunk/1,2,3/blocks/").is_foreign());
    }
}
