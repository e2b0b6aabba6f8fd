//! The keys of an export's objects.

use super::format::{moved_chunk, moved_column};
use crate::space::{BatchPos, ChunkPos, ColumnPos, TilePos};
use std::fmt;

/// What an object of an export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// What was exported.
    Export,
    /// With which batch each file begins. Only an export that is whole has it.
    Files,
    /// How far an export has come that is not whole.
    Progress,
    /// A list of types of the world.
    Registry(List),
    /// Which of 32 x 32 columns are there.
    Columns(TilePos),
    /// A chunk.
    Blocks(ChunkPos),
    /// What is known of a column.
    Column(ColumnPos, Part),
    /// The chunks of a group in one object, by the group's place in steps of 4.
    Cluster([i64; 3]),
    /// All of the columns of a batch in one object.
    Batch(BatchPos),
    /// A game's or another program's, or a later version's.
    Other,
}

/// A list of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Blocks,
    Components,
    EntityTypes,
    Dimensions,
}

/// A part of what is known of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The heights of its chunks.
    Chunks,
    Ticks,
    Entities,
    Summary,
}

impl List {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Blocks, "blocks"),
        (Self::Components, "components"),
        (Self::EntityTypes, "entity_types"),
        (Self::Dimensions, "dimensions"),
    ];
}

impl Part {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Chunks, "chunks"), (Self::Ticks, "ticks"), (Self::Entities, "entities"), (Self::Summary, "summary")];
}

/// In front of the keys of [`Name::Columns`].
pub(super) const COLUMNS: &str = "columns/";

impl Name {
    pub fn parse(key: &str) -> Self {
        let name = Self::known(key).unwrap_or(Self::Other);
        // A number can be written in more than one way, but only one is ours.
        if name != Self::Other && name.to_string() != key { Self::Other } else { name }
    }

    /// Whether the object with this key may be in this pack.
    pub fn is_pack_of(self, key: &str) -> bool {
        match (self, Self::parse(key)) {
            (Self::Cluster(at), Self::Blocks(ChunkPos { x, y, z })) => at == [x >> 2, y >> 2, z >> 2],
            (Self::Batch(at), Self::Column(column, _)) => at == column.batch(),
            _ => false,
        }
    }

    fn known(key: &str) -> Option<Self> {
        let parts: Vec<&str> = key.split('/').collect();
        Some(match *parts {
            ["export"] => Self::Export,
            ["files"] => Self::Files,
            ["progress"] => Self::Progress,
            ["registry", list] => Self::Registry(find(&List::ALL, list)?),
            ["columns", place] => numbers(place).map(|[x, z]| Self::Columns(TilePos::new(x, z)))?,
            ["chunk", place, "blocks"] => Self::Blocks(chunk(place)?),
            ["column", place, part] => Self::Column(column(place)?, find(&Part::ALL, part)?),
            ["cluster", place] => Self::Cluster(numbers(place)?),
            ["batch", place] => numbers(place).map(|[x, z]| Self::Batch(BatchPos::new(x, z)))?,
            _ => return None,
        })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Export => f.write_str("export"),
            Self::Files => f.write_str("files"),
            Self::Progress => f.write_str("progress"),
            Self::Registry(list) => write!(f, "registry/{}", text(&List::ALL, *list)),
            Self::Columns(TilePos { x, z }) => write!(f, "{COLUMNS}{x},{z}"),
            Self::Blocks(ChunkPos { x, y, z }) => write!(f, "chunk/{x},{y},{z}/blocks"),
            Self::Column(ColumnPos { x, z }, part) => write!(f, "column/{x},{z}/{}", text(&Part::ALL, *part)),
            Self::Cluster([x, y, z]) => write!(f, "cluster/{x},{y},{z}"),
            Self::Batch(BatchPos { x, z }) => write!(f, "batch/{x},{z}"),
            Self::Other => Ok(()),
        }
    }
}

/// The place that a key of any kind names: its chunk, or its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Chunk(ChunkPos),
    Column(ColumnPos),
}

impl Place {
    /// The place and what follows it; `None` if the key names none.
    pub fn of(key: &str) -> Option<(Self, &str)> {
        let (kind, rest) = key.split_once('/')?;
        let (place, rest) = rest.split_once('/')?;
        let found = match kind {
            "chunk" => Self::Chunk(chunk(place)?),
            "column" => Self::Column(column(place)?),
            _ => return None,
        };
        (found.key(rest) == key).then_some((found, rest))
    }

    /// The key of what is called `rest` at this place.
    pub fn key(self, rest: &str) -> String {
        match self {
            Self::Chunk(ChunkPos { x, y, z }) => format!("chunk/{x},{y},{z}/{rest}"),
            Self::Column(ColumnPos { x, z }) => format!("column/{x},{z}/{rest}"),
        }
    }

    /// Somewhere else, in chunks; `None` where there are no blocks.
    pub fn moved(self, by: [i64; 3]) -> Option<Self> {
        Some(match self {
            Self::Chunk(chunk) => Self::Chunk(moved_chunk(chunk, by)?),
            Self::Column(column) => Self::Column(moved_column(column, by)?),
        })
    }

    pub fn column(self) -> ColumnPos {
        match self {
            Self::Chunk(chunk) => chunk.column(),
            Self::Column(column) => column,
        }
    }
}

fn find<T: Copy>(all: &[(T, &str)], text: &str) -> Option<T> {
    all.iter().find(|(_, name)| *name == text).map(|(found, _)| *found)
}

fn text<T: PartialEq>(all: &[(T, &'static str)], wanted: T) -> &'static str {
    all.iter().find(|(found, _)| *found == wanted).map_or("", |(_, name)| name)
}

fn chunk(text: &str) -> Option<ChunkPos> {
    numbers(text).map(|[x, y, z]| ChunkPos::new(x, y, z))
}

fn column(text: &str) -> Option<ColumnPos> {
    numbers(text).map(|[x, z]| ColumnPos::new(x, z))
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
        #[test]
        fn a_name_is_read_as_it_is_written(x: i64, y: i64, z: i64, list in 0..4_usize, part in 0..4_usize) {
            for name in [
                Name::Export,
                Name::Files,
                Name::Progress,
                Name::Registry(List::ALL[list].0),
                Name::Columns(TilePos::new(x, z)),
                Name::Blocks(ChunkPos::new(x, y, z)),
                Name::Column(ColumnPos::new(x, z), Part::ALL[part].0),
                Name::Cluster([x, y, z]),
                Name::Batch(BatchPos::new(x, z)),
            ] {
                prop_assert_eq!(Name::parse(&name.to_string()), name);
            }
            for place in [Place::Chunk(ChunkPos::new(x, y, z)), Place::Column(ColumnPos::new(x, z))] {
                let key = place.key("game:claim/1");
                prop_assert_eq!(Place::of(&key), Some((place, "game:claim/1")));
            }
        }

        #[test]
        fn any_text_is_a_key(key in "(chunk|column|columns|batch|registry|x)?/?[0-9,+-]{0,9}/?[a-z:/]{0,9}") {
            let name = Name::parse(&key);
            prop_assert!(name == Name::Other || name.to_string() == key);
            if let Some((place, rest)) = Place::of(&key) {
                prop_assert_eq!(place.key(rest), key);
            }
        }
    }

    #[test]
    fn a_number_that_is_written_otherwise_is_not_ours() {
        for key in
            ["chunk/+1,2,3/blocks", "chunk/01,2,3/blocks", "chunk/1,2/blocks", "chunk/1,2,3/blocks/", "columns/1,2,3"]
        {
            assert_eq!(Name::parse(key), Name::Other, "{key}");
        }
        assert_eq!(Place::of("chunk/-0,2,3/game:claim"), None);
    }
}
