//! Writes schematics, by a [`Plan`] of the palette and of each block.

mod slab;

use super::extension::extension;
use super::nbt::{Compound, Nbt, NbtKind, Writer};
use super::{Biomes, ChunkGrid, Result, Schematic, SchematicError, extension, position};
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::snapshot::schematic::palette::{base, wet};
use crate::snapshot::schematic::unnamed;
use crate::work::Tell;
use flate2::Compression;
use flate2::write::GzEncoder;
use rustc_hash::FxHashMap;
use std::io::Write;
use std::ops::ControlFlow;

/// Names that have a meaning in the format. No other values are written under these names.
const NAMES: [&str; 20] = [
    "Schematic",
    "Version",
    "DataVersion",
    "Width",
    "Height",
    "Length",
    "Offset",
    "PaletteMax",
    "Palette",
    "BlockData",
    "TileEntities",
    "BlockEntities",
    "Entities",
    "BiomePaletteMax",
    "BiomePalette",
    "BiomeData",
    "Blocks",
    "Biomes",
    METADATA,
    extension::NAME,
];
const METADATA: &str = "Metadata";

/// Options for writing a schematic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// The version of the format, 2 or 3. Version 2 has one biome for each column: that of the lowest cell.
    pub version: u8,
    /// The compression level: 0 for none to 9 for the smallest file.
    pub level: u32,
}

impl Default for WriteOptions {
    /// Version 3, level 6.
    fn default() -> Self {
        Self { version: 3, level: 6 }
    }
}

impl Schematic {
    /// Writes a file, compressed with gzip. Passes over the chunks twice, because a file has the length of the packed
    /// cells before the cells.
    pub fn write(&self, sink: impl Write, options: &WriteOptions) -> Result<()> {
        self.write_with(sink, options, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`write`](Self::write), and reports progress in blocks. While it measures the packed cells, the progress is 0.
    pub fn write_with(&self, sink: impl Write, options: &WriteOptions, progress: Tell<'_>) -> Result<()> {
        if !matches!(options.version, 2 | 3) {
            let (at, found) = ("the schematic".to_owned(), options.version.into());
            return Err(SchematicError::Version { at, expected: "2 or 3", found });
        }
        let is_version_3 = options.version == 3;
        let plan = Plan::new(self)?;
        let extension = extension(self, |chunk, at| plan.wet_block(chunk, at).is_some())?;
        let mut writer = Writer::new(GzEncoder::new(sink, Compression::new(options.level.min(9))));
        writer.name(NbtKind::Compound, if is_version_3 { "" } else { "Schematic" })?;
        if is_version_3 {
            writer.name(NbtKind::Compound, "Schematic")?;
        }
        let has_metadata = self.write_head(&mut writer, options.version)?;
        self.write_blocks(&mut writer, &plan, is_version_3, progress)?;
        self.write_biomes(&mut writer, is_version_3, progress)?;
        if !self.entities.is_empty() {
            self.write_entities(&mut writer, is_version_3)?;
        }
        let names = NAMES.iter().copied().filter(|name| has_metadata || *name != METADATA);
        writer.entries_beside(&names.collect::<Vec<_>>(), &self.other)?;
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

    /// Writes everything before the blocks. Returns `true` if that includes metadata.
    fn write_head<W: Write>(&self, writer: &mut Writer<W>, version: u8) -> Result<bool> {
        writer.named("Version", &Nbt::Int(version.into()))?;
        if let Some(data_version) = self.data_version {
            writer.named("DataVersion", &Nbt::Int(data_version))?;
        }
        let (offset, metadata) = self.written_offset(version == 3);
        let has_metadata = !metadata.is_empty();
        if has_metadata {
            writer.name(NbtKind::Compound, METADATA)?;
            writer.entries(&metadata)?;
            writer.end()?;
        }
        for (name, side) in ["Width", "Height", "Length"].iter().zip(self.size()) {
            let limit = u16::MAX.into();
            let too_large = |_| SchematicError::too_large(*name, "blocks", limit, side.into());
            writer.named(name, &Nbt::Short(u16::try_from(side).map_err(too_large)? as i16))?;
        }
        if let Some(offset) = offset {
            writer.named("Offset", &position(offset))?;
        }
        Ok(has_metadata)
    }

    fn write_blocks<W: Write>(
        &self,
        writer: &mut Writer<W>,
        plan: &Plan,
        is_version_3: bool,
        progress: Tell<'_>,
    ) -> Result<()> {
        match is_version_3 {
            true => writer.name(NbtKind::Compound, "Blocks")?,
            false => writer.named("PaletteMax", &Nbt::Int(plan.palette.len() as i32))?,
        }
        write_palette(writer, "Palette", &plan.palette)?;
        let name = if is_version_3 { "Data" } else { "BlockData" };
        write_cells(writer, name, &self.blocks, plan, self.size(), progress)?;
        self.write_block_entities(writer, is_version_3)?;
        if is_version_3 { writer.end() } else { Ok(()) }
    }

    fn write_biomes<W: Write>(&self, writer: &mut Writer<W>, is_version_3: bool, progress: Tell<'_>) -> Result<()> {
        let Some(Biomes { palette, cells }) = &self.biomes else { return Ok(()) };
        let [width, height, length] = self.size();
        let size = [width, if is_version_3 { height } else { height.min(1) }, length];
        let plan = Plan::of_names(palette, cells)?;
        if is_version_3 {
            writer.name(NbtKind::Compound, "Biomes")?;
            write_palette(writer, "Palette", palette)?;
            write_cells(writer, "Data", cells, &plan, size, progress)?;
            return writer.end();
        }
        writer.named("BiomePaletteMax", &Nbt::Int(palette.len() as i32))?;
        write_palette(writer, "BiomePalette", palette)?;
        write_cells(writer, "BiomeData", cells, &plan, size, progress)
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
        let corner = if is_version_3 { None } else { self.written_corner() };
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

/// Writes the values of an entity after its position.
fn write_entity<W: Write>(writer: &mut Writer<W>, id: &str, data: &Compound, is_nested: bool) -> Result<()> {
    writer.text_entry("Id", id)?;
    if is_nested {
        writer.name(NbtKind::Compound, "Data")?;
        writer.entries(data)?;
        writer.end()?;
    } else {
        writer.entries_beside(&["Pos", "Id"], data)?;
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

fn write_cells<W: Write>(
    writer: &mut Writer<W>,
    name: &str,
    cells: &ChunkGrid,
    plan: &Plan,
    size: [u32; 3],
    progress: Tell<'_>,
) -> Result<()> {
    let (volume, limit) = (ChunkGrid::new(size).volume(), i32::MAX as u64);
    if volume > limit {
        // Each cell takes at least one byte.
        return Err(SchematicError::too_large(name, "bytes", limit, volume));
    }
    let length = slab::packed_length(plan, cells, size, progress)?;
    writer.name(NbtKind::ByteArray, name)?;
    writer.length(name, "bytes", usize::try_from(length).unwrap_or(usize::MAX))?;
    slab::pack(plan, cells, size, |packed, done| {
        writer.raw(packed)?;
        slab::tell(progress, done, volume)
    })
}

/// The maximum number of entries of a written palette.
const LARGEST: usize = 65_534;

/// The written palette, and the written form of each block.
pub(super) struct Plan {
    pub palette: Vec<String>,
    /// By block: the waterlogged state, if the block is dry and can be waterlogged.
    wet: Vec<Option<u16>>,
    /// By block: `true` if it is water.
    is_water: Vec<bool>,
}

impl Plan {
    pub fn new(schematic: &Schematic) -> Result<Self> {
        let blocks = &schematic.blocks;
        let mut palette = schematic.palette.clone();
        let is_water = palette.iter().map(|state| schematic.water.iter().any(|water| base(state) == water)).collect();
        let mut plan = Self { wet: vec![None; palette.len()], is_water, palette: Vec::new() };
        let mut places: FxHashMap<String, u16> = palette.iter().cloned().zip(0..).collect();
        for (_, chunk) in blocks.chunks() {
            for (at, _, block) in chunk.layered_blocks().filter(|(_, layer, _)| *layer == 1) {
                let below = chunk.block(at).index() as usize;
                if !plan.is_water(block) || plan.wet.get(below).is_none_or(Option::is_some) {
                    continue;
                }
                plan.wet[below] = wet(&palette[below]).map(|state| {
                    *places.entry(state).or_insert_with_key(|state| {
                        palette.push(state.clone());
                        (palette.len() - 1) as u16
                    })
                });
            }
        }
        plan.palette = palette;
        plan.check("block", blocks, schematic.palette.len())?;
        Ok(plan)
    }

    /// A plan for names that are not blocks.
    pub fn of_names(palette: &[String], cells: &ChunkGrid) -> Result<Self> {
        let plan = Self { wet: Vec::new(), is_water: Vec::new(), palette: palette.to_vec() };
        plan.check("biome", cells, palette.len())?;
        Ok(plan)
    }

    /// Checks that every number has a name.
    fn check(&self, what: &str, cells: &ChunkGrid, names: usize) -> Result<()> {
        if self.palette.len() > LARGEST {
            let found = self.palette.len() as u64;
            return Err(SchematicError::too_large("the palette", "entries", LARGEST as u64, found));
        }
        let is_unnamed = |block: BlockId| block.index() as usize >= names;
        match cells.chunks().find_map(|(_, chunk)| chunk.find_block(is_unnamed)) {
            Some((_, block)) => Err(unnamed(what, block.index().into())),
            None => Ok(()),
        }
    }

    /// The block that is written instead of this one if it is waterlogged; `None` if it is written unchanged.
    pub fn wet_block(&self, chunk: &Chunk, at: [usize; 3]) -> Option<u16> {
        chunk.block_at(at, 1).filter(|block| self.is_water(*block))?;
        *self.wet.get(chunk.block(at).index() as usize)?
    }

    fn is_water(&self, block: BlockId) -> bool {
        self.is_water.get(block.index() as usize) == Some(&true)
    }
}
