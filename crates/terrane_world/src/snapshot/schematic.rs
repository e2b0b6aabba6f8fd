//! Sponge schematics, versions 1 to 3: files of other programs with parts of a world.
//!
//! A file is a compound of [named binary tags](nbt), usually compressed with gzip:
//!
//! | content | versions 1 and 2 | version 3 |
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
//! Other forms are read too if their meaning is clear: a side length as another integer type, positions as lists of
//! numbers, block entities with `x`, `y`, `z` and `id`, an empty compound instead of an empty list, and an empty list
//! instead of empty metadata. Block entities and entities without a position or a name are left out and
//! [counted](ReadReport::malformed).
//!
//! Names may come in any order. Packed cells that come before the values needed to decode them are set aside,
//! compressed. Neither reading nor writing ever holds all cells unpacked: one layer of chunks is processed at a time.
//!
//! Programs that only know the format see one block in each cell. Layers above the first and block components are in a
//! separate compound, `bevy_terrane`, which other programs ignore:
//!
//! | name | content |
//! |---|---|
//! | `Version` | int, 1 |
//! | `Palette` | int: the number of palette entries that belong to the schematic; the rest are for wet blocks |
//! | `Layers` | byte array: for each cell with layers its distance from the previous one, `2 * count + wet`, the palette number of each |
//! | `Components` | list of compounds: `Name`, `Version`, `Size` if it is fixed, `Values` |
//! | `Values` | byte array: for each block with the component the distance, layer, length unless fixed, and the bytes |
//!
//! Numbers are LEB128. A cell is `4096 * chunk + cell in the chunk`. Chunks are counted x fastest, then z, then y, and
//! cells x slowest, then y, then z. Distances count from the previous cell, the first from 0. A block with
//! [water](Schematic::water) in layer 1 is written with `waterlogged=true` if its state has that property; `wet` is 1
//! if it was `false`.

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
pub use write::WriteOptions;

use crate::block::BlockComponentRecord;
use nbt::{Compound, Nbt};

type Result<T> = std::result::Result<T, SchematicError>;

/// The data version of an unknown game.
const UNKNOWN_DATA: i32 = -1;
/// The water of other programs and of this crate.
const WATER: [&str; 2] = ["minecraft:water", "terrane:water"];

/// A part of a world as stored in a file. Positions are relative to its minimum corner, the one with the lowest coordinates.
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
    /// The version of the format it was read from: 1, 2 or 3. Ignored when writing.
    pub version: u8,
    /// The version of the game's data; -1 for an unknown game. `None` if the file does not have it, although versions
    /// 2 and 3 require it. In that case it is not written either, and some programs reject such a file.
    pub data_version: Option<i32>,
    /// The minimum corner relative to the origin: its place when the schematic is pasted.
    pub offset: Option<[i32; 3]>,
    /// The origin in the source world. The minimum corner was at `origin + offset`.
    pub origin: Option<[i32; 3]>,
    /// Metadata of programs, without the offset and origin that some programs store there.
    pub metadata: Compound,
    /// The block states by number, with their properties in alphabetical order. The first is [`AIR`].
    pub palette: Vec<String>,
    /// The size and the blocks: [`BlockId`](crate::block::BlockId) `k` stands for entry `k` of the palette, and
    /// [`BlockComponentId`](crate::block::BlockComponentId) `k` for entry `k` of the components.
    pub blocks: ChunkGrid,
    /// The components of the chunks, by number.
    pub components: Vec<BlockComponentRecord>,
    /// The data of blocks for other programs.
    pub block_entities: Vec<BlockEntity>,
    /// The entities.
    pub entities: Vec<SchematicEntity>,
    /// The biomes, if the file has any.
    pub biomes: Option<Biomes>,
    /// Values without a meaning in the format.
    pub other: Compound,
    /// The names, without properties, of blocks that are water: a dry block with one of them in layer 1 is written as
    /// waterlogged. Not part of a file.
    pub water: Vec<String>,
}

/// Options and limits for reading a schematic. A number that the file declares is checked against them before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The maximum number of bytes after decompression.
    pub inflated_bytes: u64,
    /// The maximum memory of the schematic in bytes, with the allocator's overhead for each value.
    pub memory: u64,
    /// The maximum number of blocks of the declared size. The format itself is limited to 2^31 - 1.
    pub volume: u64,
    /// `true` to keep the readable part of a damaged file, as far as the memory suffices. The rest is air, and
    /// [`ReadReport::damage`] has the error.
    pub salvage: bool,
}

impl Default for ReadOptions {
    /// The largest possible volume, 4 GiB of data and 1 GiB of memory; damaged files are rejected.
    fn default() -> Self {
        Self { inflated_bytes: 4 << 30, memory: 1 << 30, volume: (1 << 31) - 1, salvage: false }
    }
}

/// Additional information about a file that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// The damage of a salvaged file. Everything after it is missing.
    pub damage: Option<SchematicError>,
    /// The number of blocks that were read, up to the first one that did not fit into memory. The rest is air.
    pub blocks: u64,
    /// The number of uncompressed bytes that were read.
    pub bytes: u64,
    /// `true` if the data is complete, but the checksum after it is missing.
    pub lacks_checksum: bool,
    /// `true` if other bytes follow the data. They were not read.
    pub has_trailing_bytes: bool,
    /// The number of block entities outside of the box. They are kept.
    pub stray_block_entities: u64,
    /// The number of block entities and entities without a valid position or name. They were left out.
    pub malformed: u64,
    /// The first malformed entry's error, with its index in the path.
    pub first_malformed: Option<SchematicError>,
}

/// The biomes of a schematic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Biomes {
    /// The names by number.
    pub palette: Vec<String>,
    /// The biome number of each cell, as if it were a block: [`BlockId`](crate::block::BlockId) `k` is entry `k`. The
    /// height is 1 if all cells of a column have the same biome, as in version 2.
    pub cells: ChunkGrid,
}

impl Schematic {
    /// A schematic of only air, of an unknown game, with this size in blocks along x, y, z.
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

    /// The minimum corner in the source world, if the file has it.
    pub fn corner(&self) -> Option<[i64; 3]> {
        let (origin, offset) = (self.origin?, self.offset.unwrap_or_default());
        Some(std::array::from_fn(|axis| i64::from(origin[axis]) + i64::from(offset[axis])))
    }

    /// The size in blocks along x, y, z.
    pub fn size(&self) -> [u32; 3] {
        self.blocks.size()
    }

    /// The state of the block at x, y, z; air outside of the box.
    pub fn state(&self, at: [u32; 3]) -> Option<&str> {
        self.palette.get(self.blocks.block(at).index() as usize).map(String::as_str)
    }
}

/// The error for a number in a schematic that has no name.
fn unnamed(what: &str, number: u64) -> SchematicError {
    SchematicError::malformed(format!("{what} {number}"), "it occurs, but has no name")
}

/// A position as a value of a file.
fn position(numbers: [i32; 3]) -> Nbt {
    Nbt::IntArray(numbers.to_vec())
}
