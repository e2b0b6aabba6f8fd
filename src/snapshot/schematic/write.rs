//! From a schematic to a file.

use super::extension::{self, extension};
use super::nbt::{Compound, Nbt, NbtKind, Writer};
use super::palette::{base, property, with_property};
use super::placement::Placement;
use super::{Biomes, ChunkGrid, Schematic, SchematicWriteError, position};
use crate::block::BlockId;
use crate::bytes::put_number;
use crate::chunk::Chunk;
use crate::space::{CHUNK_SIZE, CHUNK_VOLUME};
use crate::work::{Progress, Tell};
use flate2::Compression;
use flate2::write::GzEncoder;
use rustc_hash::FxHashMap;
use std::io::Write;
use std::ops::ControlFlow;

/// Packed cells that are collected before they are passed on.
const BATCH: usize = 1 << 16;
/// A palette of so many entries needs one byte a cell.
const SINGLE: usize = 128;
/// A palette of so many entries is the largest that is written.
const LARGEST: usize = 65_534;
/// The version of the game's data where the game is not known.
const UNKNOWN_DATA: i32 = -1;

type Result<T> = std::result::Result<T, SchematicWriteError>;

/// How a schematic is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// The version of the format, 2 or 3. Version 2 has one biome a column: that of the lowest cell.
    pub version: u8,
    /// How much time is spent on making it small: 0 for none at all to 9.
    pub level: u32,
}

impl Default for WriteOptions {
    /// Version 3, level 6.
    fn default() -> Self {
        Self { version: 3, level: 6 }
    }
}

impl Schematic {
    /// Writes a file, in gzip. It goes through the chunks twice: a file says how long the packed cells are before they come.
    pub fn write(&self, sink: impl Write, options: &WriteOptions) -> Result<()> {
        self.write_with(sink, options, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`write`](Self::write), and tells how far it is, in blocks.
    pub fn write_with(&self, sink: impl Write, options: &WriteOptions, progress: Tell<'_>) -> Result<()> {
        if !matches!(options.version, 2 | 3) {
            return Err(SchematicWriteError::Version { found: options.version });
        }
        let is_version_3 = options.version == 3;
        let plan = Plan::new(self)?;
        let extension = extension(self, |chunk, at| plan.wet_block(chunk, at).is_some())?;
        let mut writer = Writer::new(GzEncoder::new(sink, Compression::new(options.level.min(9))));
        writer.name(NbtKind::Compound, if is_version_3 { "" } else { "Schematic" })?;
        if is_version_3 {
            writer.name(NbtKind::Compound, "Schematic")?;
        }
        self.write_head(&mut writer, options.version)?;
        match is_version_3 {
            true => self.write_version_3(&mut writer, &plan, progress)?,
            false => self.write_version_2(&mut writer, &plan, progress)?,
        }
        if !self.entities.is_empty() {
            self.write_entities(&mut writer, is_version_3)?;
        }
        writer.entries(&self.other)?;
        if let Some(extension) = extension {
            writer.named(extension::NAME, &Nbt::Compound(extension))?;
        }
        if is_version_3 {
            writer.end()?;
        }
        writer.end()?;
        writer.finish()?.finish()?.flush()?;
        Ok(())
    }

    fn placement(&self) -> Placement {
        Placement { offset: self.offset, origin: self.origin, may_be_absolute: false }
    }

    fn write_head<W: Write>(&self, writer: &mut Writer<W>, version: u8) -> Result<()> {
        writer.named("Version", &Nbt::Int(version.into()))?;
        writer.named("DataVersion", &Nbt::Int(self.data_version.unwrap_or(UNKNOWN_DATA)))?;
        let (offset, metadata) = self.placement().put(version == 3, &self.metadata);
        writer.named("Metadata", &Nbt::Compound(metadata))?;
        for (name, side) in ["Width", "Height", "Length"].iter().zip(self.size()) {
            let limit = u16::MAX.into();
            let too_large = |_| too_large(name, "blocks", limit, side.into());
            writer.named(name, &Nbt::Short(u16::try_from(side).map_err(too_large)? as i16))?;
        }
        match offset {
            Some(offset) => writer.named("Offset", &position(offset)),
            None => Ok(()),
        }
    }

    fn write_version_2<W: Write>(&self, writer: &mut Writer<W>, plan: &Plan, progress: Tell<'_>) -> Result<()> {
        writer.named("PaletteMax", &Nbt::Int(plan.palette.len() as i32))?;
        write_palette(writer, "Palette", &plan.palette)?;
        write_cells(writer, "BlockData", &self.blocks, plan, self.size(), progress)?;
        self.write_block_entities(writer, false)?;
        if let Some(Biomes { palette, cells }) = &self.biomes {
            let plan = Plan::of_names(palette, cells)?;
            writer.named("BiomePaletteMax", &Nbt::Int(palette.len() as i32))?;
            write_palette(writer, "BiomePalette", palette)?;
            let [width, _, length] = self.size();
            write_cells(writer, "BiomeData", cells, &plan, [width, self.size()[1].min(1), length], progress)?;
        }
        Ok(())
    }

    fn write_version_3<W: Write>(&self, writer: &mut Writer<W>, plan: &Plan, progress: Tell<'_>) -> Result<()> {
        writer.name(NbtKind::Compound, "Blocks")?;
        write_palette(writer, "Palette", &plan.palette)?;
        write_cells(writer, "Data", &self.blocks, plan, self.size(), progress)?;
        self.write_block_entities(writer, true)?;
        writer.end()?;
        if let Some(Biomes { palette, cells }) = &self.biomes {
            let plan = Plan::of_names(palette, cells)?;
            writer.name(NbtKind::Compound, "Biomes")?;
            write_palette(writer, "Palette", palette)?;
            write_cells(writer, "Data", cells, &plan, self.size(), progress)?;
            writer.end()?;
        }
        Ok(())
    }

    fn write_block_entities<W: Write>(&self, writer: &mut Writer<W>, is_nested: bool) -> Result<()> {
        writer.compounds("BlockEntities", self.block_entities.len())?;
        for entity in &self.block_entities {
            writer.named("Pos", &position(entity.position))?;
            write_entity(writer, &entity.id, &entity.data, is_nested)?;
        }
        Ok(())
    }

    fn write_entities<W: Write>(&self, writer: &mut Writer<W>, is_version_3: bool) -> Result<()> {
        let corner = if is_version_3 { None } else { self.placement().corner() };
        let corner = corner.unwrap_or_default().map(f64::from);
        writer.compounds("Entities", self.entities.len())?;
        for entity in &self.entities {
            let position = (0..3).map(|axis| Nbt::Double(entity.position[axis] + corner[axis])).collect();
            writer.named("Pos", &Nbt::List(NbtKind::Double, position))?;
            write_entity(writer, &entity.id, &entity.data, is_version_3)?;
        }
        Ok(())
    }
}

/// What follows the position.
fn write_entity<W: Write>(writer: &mut Writer<W>, id: &str, data: &Compound, is_nested: bool) -> Result<()> {
    writer.text_entry("Id", id)?;
    if is_nested {
        writer.name(NbtKind::Compound, "Data")?;
    }
    writer.entries(data)?;
    if is_nested {
        writer.end()?;
    }
    writer.end()
}

fn write_palette<W: Write>(writer: &mut Writer<W>, name: &str, palette: &[String]) -> Result<()> {
    writer.name(NbtKind::Compound, name)?;
    for (number, name) in palette.iter().enumerate() {
        writer.named(name, &Nbt::Int(number as i32))?;
    }
    writer.end()
}

/// The palette that is written, and what each block is written as.
struct Plan {
    palette: Vec<String>,
    /// By block: the same state with water in it, if it is a dry one that can hold water.
    wet: Vec<Option<u16>>,
    /// By block: whether it is water.
    is_water: Vec<bool>,
    /// Bytes of all packed cells.
    length: u64,
}

impl Plan {
    fn new(schematic: &Schematic) -> Result<Self> {
        let blocks = &schematic.blocks;
        let mut palette = schematic.palette.clone();
        let is_water = palette.iter().map(|state| schematic.water.iter().any(|water| base(state) == water)).collect();
        let mut plan = Self { wet: vec![None; palette.len()], is_water, palette: Vec::new(), length: 0 };
        let mut places: FxHashMap<String, u16> = palette.iter().cloned().zip(0..).collect();
        for (_, chunk) in blocks.chunks() {
            for (at, _, block) in chunk.layered_blocks().filter(|(_, layer, _)| *layer == 1) {
                let below = chunk.block(at).index() as usize;
                if !plan.is_water.get(block.index() as usize).is_some_and(|is| *is)
                    || plan.wet.get(below).is_none_or(Option::is_some)
                {
                    continue;
                }
                let dry = property(&palette[below], "waterlogged").filter(|value| *value == "false");
                let wet = dry.and_then(|_| with_property(&palette[below], "waterlogged", "true"));
                plan.wet[below] = wet.map(|state| {
                    *places.entry(state).or_insert_with_key(|state| {
                        palette.push(state.clone());
                        (palette.len() - 1) as u16
                    })
                });
            }
        }
        plan.palette = palette;
        plan.check("block", blocks, schematic.palette.len())?;
        plan.length = plan.length(blocks, blocks.size())?;
        Ok(plan)
    }

    /// Of names that are no blocks.
    fn of_names(palette: &[String], cells: &ChunkGrid) -> Result<Self> {
        let plan = Self { wet: Vec::new(), is_water: Vec::new(), palette: palette.to_vec(), length: 0 };
        plan.check("biome", cells, palette.len())?;
        Ok(plan)
    }

    /// Whether every number has a name.
    fn check(&self, what: &'static str, cells: &ChunkGrid, names: usize) -> Result<()> {
        if self.palette.len() > LARGEST {
            return Err(too_large("the palette", "entries", LARGEST as u64, self.palette.len() as u64));
        }
        let has_name = |block: BlockId| (block.index() as usize) < names;
        for (_, chunk) in cells.chunks() {
            let layered = chunk.layered_blocks().map(|(_, _, block)| block).find(|block| !has_name(*block));
            // A palette may have blocks that no longer occur.
            let ground = match chunk.palette().iter().all(|block| has_name(*block)) {
                true => None,
                false => chunk.blocks().find(|block| !has_name(*block)),
            };
            if let Some(block) = ground.or(layered) {
                return Err(SchematicWriteError::Unnamed { what, number: block.index().into() });
            }
        }
        Ok(())
    }

    /// What a block is written as if it is not written as it is.
    fn wet_block(&self, chunk: &Chunk, at: [usize; 3]) -> Option<u16> {
        let is_in_water = |block: BlockId| self.is_water.get(block.index() as usize) == Some(&true);
        chunk.block_at(at, 1).filter(|block| is_in_water(*block))?;
        *self.wet.get(chunk.block(at).index() as usize)?
    }

    /// Bytes of all packed cells of a box of this size.
    fn length(&self, cells: &ChunkGrid, size: [u32; 3]) -> Result<u64> {
        let volume = ChunkGrid::new(size).volume();
        let mut length = volume;
        if self.palette.len() > SINGLE {
            let mut rows = Slab::default();
            for y in 0..size[1].div_ceil(CHUNK_SIZE as u32) {
                rows.open(self, cells, y, size);
                rows.chunks.iter().enumerate().for_each(|(place, chunk)| {
                    length += rows.reach_of(place).map_or(0, |reach| more_bytes(chunk, reach));
                });
            }
        }
        let limit = i32::MAX as u64;
        if length <= limit { Ok(length) } else { Err(too_large("the blocks", "bytes", limit, length)) }
    }
}

/// A chunk's cells in the order of the file, or of one kind.
enum Cells {
    Uniform(u16),
    Mixed(Box<[u16; CHUNK_VOLUME]>),
}

/// One layer of chunks.
#[derive(Default)]
struct Slab {
    chunks: Vec<Cells>,
    unused: Vec<Box<[u16; CHUNK_VOLUME]>>,
    /// Of the box, and which layer of chunks.
    size: [u32; 3],
    y: u32,
}

impl Slab {
    fn open(&mut self, plan: &Plan, cells: &ChunkGrid, y: u32, size: [u32; 3]) {
        let [along_x, along_z] = [size[0], size[2]].map(|side| side.div_ceil(CHUNK_SIZE as u32) as usize);
        (self.size, self.y) = (size, y);
        for chunk in self.chunks.drain(..) {
            if let Cells::Mixed(cells) = chunk {
                self.unused.push(cells);
            }
        }
        self.chunks.resize_with(along_x * along_z, || Cells::Uniform(0));
        for ([x, z], chunk) in cells.layer(y) {
            let place = x as usize + z as usize * along_x;
            if (x as usize) < along_x && place < self.chunks.len() {
                self.chunks[place] = match chunk.uniform_block() {
                    Some(block) => Cells::Uniform(block.index() as u16),
                    None => Cells::Mixed(self.mixed(plan, chunk)),
                };
            }
        }
    }

    fn mixed(&mut self, plan: &Plan, chunk: &Chunk) -> Box<[u16; CHUNK_VOLUME]> {
        let mut blocks = [BlockId::AIR; CHUNK_VOLUME];
        chunk.copy_into(&mut blocks);
        let mut cells = self.unused.pop().unwrap_or_else(|| Box::new([0; CHUNK_VOLUME]));
        for (index, cells) in cells.as_chunks_mut::<CHUNK_SIZE>().0.iter_mut().enumerate() {
            for (x, cell) in cells.iter_mut().enumerate() {
                *cell = blocks[x << 8 | index].index() as u16;
            }
        }
        for (at, _, _) in chunk.layered_blocks().filter(|(_, layer, _)| *layer == 1) {
            if let Some(wet) = plan.wet_block(chunk, at) {
                let [x, y, z] = at;
                cells[y << 8 | z << 4 | x] = wet;
            }
        }
        cells
    }

    /// How far a chunk reaches; `None` if it is outside.
    fn reach_of(&self, place: usize) -> Option<[usize; 3]> {
        let along_x = self.size[0].div_ceil(CHUNK_SIZE as u32) as usize;
        let at = [place % along_x, self.y as usize, place / along_x];
        let reach = |axis: usize| (self.size[axis] as usize).checked_sub(at[axis] * CHUNK_SIZE);
        Some([reach(0)?, reach(1)?, reach(2)?].map(|reach| reach.min(CHUNK_SIZE)))
    }

    /// Packs one row.
    fn pack_row(&self, y: usize, z: usize, is_single: bool, into: &mut Vec<u8>) {
        let along_x = self.size[0].div_ceil(CHUNK_SIZE as u32) as usize;
        let first = z / CHUNK_SIZE * along_x;
        let row = (y % CHUNK_SIZE * CHUNK_SIZE + z % CHUNK_SIZE) * CHUNK_SIZE;
        let mut left = self.size[0] as usize;
        for chunk in &self.chunks[first..first + along_x] {
            let count = left.min(CHUNK_SIZE);
            left -= count;
            match chunk {
                Cells::Uniform(number) if is_single => into.resize(into.len() + count, *number as u8),
                Cells::Uniform(number) => (0..count).for_each(|_| put_number(into, (*number).into())),
                Cells::Mixed(cells) if is_single => {
                    into.extend(cells[row..row + count].iter().map(|number| *number as u8))
                }
                Cells::Mixed(cells) => {
                    cells[row..row + count].iter().for_each(|number| put_number(into, (*number).into()))
                }
            }
        }
    }
}

/// Bytes of a chunk's packed cells beyond one each.
fn more_bytes(chunk: &Cells, [reach_x, reach_y, reach_z]: [usize; 3]) -> u64 {
    let more = |number: u16| u64::from(number >= 1 << 7) + u64::from(number >= 1 << 14);
    match chunk {
        Cells::Uniform(number) => more(*number) * (reach_x * reach_y * reach_z) as u64,
        Cells::Mixed(cells) => {
            let rows = cells.as_chunks::<CHUNK_SIZE>().0.iter().enumerate();
            let rows = rows.filter(|(index, _)| index / CHUNK_SIZE < reach_y && index % CHUNK_SIZE < reach_z);
            rows.flat_map(|(_, row)| &row[..reach_x]).map(|number| more(*number)).sum()
        }
    }
}

/// Writes the cells of a box of this size. A height of one layer is repeated as often as the size asks for.
fn write_cells<W: Write>(
    writer: &mut Writer<W>,
    name: &'static str,
    cells: &ChunkGrid,
    plan: &Plan,
    size: [u32; 3],
    progress: Tell<'_>,
) -> Result<()> {
    let is_repeated = cells.size()[1] == 1 && size[1] > 1;
    let is_single = plan.palette.len() <= SINGLE;
    let length = match (plan.length, is_repeated) {
        (0, true) => plan.length(cells, [size[0], 1, size[2]])?.saturating_mul(size[1].into()),
        (0, false) => plan.length(cells, size)?,
        (length, _) => length,
    };
    writer.name(NbtKind::ByteArray, name)?;
    writer.length(name, "bytes", usize::try_from(length).unwrap_or(usize::MAX))?;
    let volume = ChunkGrid::new(size).volume();
    let (mut slab, mut packed, mut done) = (Slab::default(), Vec::with_capacity(BATCH + 4 * size[0] as usize), 0);
    for y in 0..size[1] as usize {
        if y.is_multiple_of(CHUNK_SIZE) && (y == 0 || !is_repeated) {
            slab.open(plan, cells, (y / CHUNK_SIZE) as u32, size);
        }
        for z in 0..size[2] as usize {
            slab.pack_row(if is_repeated { 0 } else { y }, z, is_single, &mut packed);
            done += u64::from(size[0]);
            if packed.len() >= BATCH {
                writer.raw(&packed)?;
                packed.clear();
                if progress(&Progress::of(done, volume)).is_break() {
                    return Err(SchematicWriteError::Cancelled);
                }
            }
        }
    }
    writer.raw(&packed)?;
    match progress(&Progress::of(done, volume)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(SchematicWriteError::Cancelled),
    }
}

fn too_large(field: &str, what: &'static str, limit: u64, found: u64) -> SchematicWriteError {
    SchematicWriteError::TooLarge { field: field.to_owned(), what, limit, found }
}
