//! Sponge schematics, versions 1 to 3: the files in which other programs keep pieces of a world.
//!
//! A file is a compound of [named binary tags](nbt), mostly within gzip:
//!
//! | what | versions 1 and 2 | version 3 |
//! |---|---|---|
//! | root | a compound `Schematic` | a compound that holds one, `Schematic` |
//! | size, unsigned | `Width`, `Height`, `Length` | the same |
//! | names of blocks | `Palette` | `Blocks.Palette` |
//! | blocks, a LEB128 number each, x fastest, then z, then y | `BlockData` | `Blocks.Data` |
//! | block entities | `TileEntities`, `BlockEntities`, the data beside `Pos` and `Id` | `Blocks.BlockEntities`, in `Data` |
//! | entities | `Entities` | `Entities`, in `Data` |
//! | biomes | version 2: `BiomePalette`, `BiomeData`, one a column | `Biomes`, one a cell |
//! | minimum corner - origin | `Metadata.WEOffsetX`, `Y`, `Z`; `Offset` without these | `Offset` |
//! | origin | `Offset` is the corner: `Offset` - `WEOffset` | `Metadata.WorldEdit.Origin` |
//! | the program | `Metadata.WorldEdit`: `Version`, `EditingPlatform`, `Platforms` | the same |
//!
//! Other forms are read too if their meaning is plain: a side as another integer, positions as lists of numbers, block entities
//! with `x`, `y`, `z` and `id`, an empty compound instead of an empty list, and an empty list instead of empty metadata. A block
//! entity or an entity without a place or a name is left out and [counted](ReadReport::malformed).
//!
//! Names may come in any order. What is needed for what has come already is waited for: the packed cells are put aside,
//! compressed. So neither reading nor writing ever holds all cells unpacked; chunks are made and taken apart one layer of
//! chunks at a time.
//!
//! Programs that know only the format see one block in each cell. Layers above the first and block components are in a
//! compound of their own, `bevy_terrane`, which others ignore:
//!
//! | name | what |
//! |---|---|
//! | `Version` | int, 1 |
//! | `Palette` | int: so many entries of the palette are the schematic's own, the rest are for wet blocks |
//! | `Layers` | byte array: for each cell with layers the distance from the one before, `2 * count + wet`, the palette number of each |
//! | `Components` | list of compounds: `Name`, `Version`, `Size` if it is fixed, `Values` |
//! | `Values` | byte array: for each block that has it the distance, layer, length unless fixed, and the bytes |
//!
//! Numbers are LEB128. A cell is `4096 * chunk + cell in the chunk`, chunks counted x fastest, then z, then y, cells x slowest,
//! then y, then z; distances count from the cell before, of the first from 0. A block whose layer 1 is [water](Schematic::water) is written with
//! `waterlogged=true` if its state has that property; `wet` is 1 if it was `false`.

mod cells;
mod draft;
mod entities;
mod error;
mod extension;
mod filler;
mod grid;
pub mod nbt;
mod offsets;
mod palette;
mod read;
mod source;
#[cfg(test)]
pub(super) mod tests;
mod write;

pub use entities::{BlockEntity, SchematicEntity};
pub use error::SchematicError;
pub(super) use error::shortened;
pub use grid::ChunkGrid;
pub use palette::AIR;
#[doc(hidden)]
pub use palette::dry;
pub(super) use palette::normalized;
pub use read::{ReadOptions, ReadReport};
pub use write::WriteOptions;

use crate::block::BlockComponentRecord;
use nbt::{Compound, Nbt};

type Result<T> = std::result::Result<T, SchematicError>;

/// The version of the game's data if the game is not known.
const UNKNOWN_DATA: i32 = -1;
/// Water of other programs, and of this crate.
const WATER: [&str; 2] = ["minecraft:water", "terrane:water"];

/// A piece of a world, as a file holds it. Positions count from its minimum corner, that of the lowest coordinates.
///
/// ```
/// # use terrane_world::{block::BlockId, chunk::Chunk, space::ChunkPos};
/// # use terrane_world::snapshot::schematic::{ReadOptions, Schematic, WriteOptions};
/// let mut schematic = Schematic::new([20, 8, 8]);
/// schematic.palette.push("minecraft:stone".into());
/// let floor = Chunk::from_fn(|[_, y, z]| BlockId::new((y == 0 && z < 8).into()));
/// schematic.blocks.set_chunk(ChunkPos::new(0, 0, 0), floor.into());
///
/// let mut file = Vec::new();
/// schematic.write(&mut file, &WriteOptions::default())?;
/// let (read, _) = Schematic::read(&file[..], &ReadOptions::default())?;
/// assert_eq!(read.blocks, schematic.blocks);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schematic {
    /// The version of the format it was read in: 1, 2 or 3. Writing does not look at it.
    pub version: u8,
    /// The version of the game's data; -1 if the game is not known. `None` if the file does not have it, although versions 2 and
    /// 3 require it. It is not written either then, and some programs refuse such a file.
    pub data_version: Option<i32>,
    /// The minimum corner, seen from the origin: where it goes when it is pasted.
    pub offset: Option<[i32; 3]>,
    /// Where the origin was in the world that it was copied from. The corner was at the sum of both.
    pub origin: Option<[i32; 3]>,
    /// Whatever programs say about it, without the offset and origin that some put there.
    pub metadata: Compound,
    /// The states of blocks by number, their properties in alphabetical order. The first is [`AIR`].
    pub palette: Vec<String>,
    /// The size and the blocks: [`BlockId`](crate::block::BlockId) `k` stands for entry `k` of the palette, and
    /// [`BlockComponentId`](crate::block::BlockComponentId) `k` for entry `k` of the components.
    pub blocks: ChunkGrid,
    /// What the chunks' components are, by number.
    pub components: Vec<BlockComponentRecord>,
    /// What blocks hold for other programs.
    pub block_entities: Vec<BlockEntity>,
    /// What stands around.
    pub entities: Vec<SchematicEntity>,
    /// Biomes, if there are any.
    pub biomes: Option<Biomes>,
    /// Values that have no meaning in the format.
    pub other: Compound,
    /// Which blocks, named without properties, are water: a dry block with one of them in layer 1 is written as waterlogged.
    /// It is no part of a file.
    pub water: Vec<String>,
}

/// The biomes of a schematic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Biomes {
    /// Names by number.
    pub palette: Vec<String>,
    /// The number of each cell's biome as if it were a block: [`BlockId`](crate::block::BlockId) `k` is entry `k`. The height
    /// is 1 if all cells of a column have the same, as in version 2.
    pub cells: ChunkGrid,
}

impl Schematic {
    /// Air of this size, in blocks along x, y, z, of a game that is not known.
    pub fn new(size: [u32; 3]) -> Self {
        Self {
            version: 3,
            data_version: Some(UNKNOWN_DATA),
            offset: None,
            origin: None,
            metadata: Compound::new(),
            palette: vec![AIR.to_owned()],
            blocks: ChunkGrid::new(size),
            components: Vec::new(),
            block_entities: Vec::new(),
            entities: Vec::new(),
            biomes: None,
            other: Compound::new(),
            water: WATER.map(str::to_owned).to_vec(),
        }
    }

    /// Where its minimum corner was in the world that it was copied from, if the file says it.
    pub fn corner(&self) -> Option<[i64; 3]> {
        let (origin, offset) = (self.origin?, self.offset.unwrap_or_default());
        Some(std::array::from_fn(|axis| i64::from(origin[axis]) + i64::from(offset[axis])))
    }

    /// Blocks along x, y, z.
    pub fn size(&self) -> [u32; 3] {
        self.blocks.size()
    }

    /// The state of the block at x, y, z; air outside.
    pub fn state(&self, at: [u32; 3]) -> Option<&str> {
        self.palette.get(self.blocks.block(at).index() as usize).map(String::as_str)
    }
}

/// The error for what occurs in a schematic and has no name there.
fn unnamed(what: &str, number: u64) -> SchematicError {
    SchematicError::malformed(format!("{what} {number}"), "it occurs, but has no name")
}

/// Three numbers as files hold them.
fn position(numbers: [i32; 3]) -> Nbt {
    Nbt::IntArray(numbers.to_vec())
}
