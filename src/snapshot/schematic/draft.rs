//! A schematic in the making, while its file is read.

use super::cells::read_cells;
use super::entities::{block_entity, entity};
use super::extension::Extension;
use super::filler::Filler;
use super::nbt::{Budget, Compound, Nbt, NbtKind, Reader};
use super::offsets::Offsets;
use super::palette::{self, Numbers};
use super::spill::{Spill, SpillWriter};
use super::{Biomes, ChunkGrid, ReadReport, Schematic, SchematicError, SchematicLimits};
use crate::work::{Progress, Tell};
use std::io::Read;

type Result<T> = std::result::Result<T, SchematicError>;

/// What has been read of a schematic.
pub(super) struct Draft<'a> {
    limits: &'a SchematicLimits,
    budget: &'a Budget,
    progress: Tell<'a>,
    version: Option<i64>,
    data_version: Option<i32>,
    /// Width, height, length.
    size: [Option<u32>; 3],
    offset: Option<[i32; 3]>,
    metadata: Compound,
    /// Whether there was a compound of blocks, as in version 3.
    is_nested: bool,
    blocks: Part<'a>,
    biomes: Part<'a>,
    block_entities: Vec<Compound>,
    entities: Vec<Compound>,
    extension: Option<Compound>,
    other: Compound,
}

/// A palette and cells, which come in any order.
struct Part<'a> {
    field: &'static str,
    /// Whether it is one layer of cells.
    is_flat: bool,
    palette: Option<(Vec<String>, Numbers)>,
    cells: Cells<'a>,
}

enum Cells<'a> {
    None,
    Spilled(Spill),
    Read(Filler<'a>),
}

impl<'a> Part<'a> {
    fn new(field: &'static str) -> Self {
        Self { field, is_flat: false, palette: None, cells: Cells::None }
    }
}

impl<'a> Draft<'a> {
    pub fn new(limits: &'a SchematicLimits, budget: &'a Budget, progress: Tell<'a>) -> Self {
        Self {
            limits,
            budget,
            progress,
            version: None,
            data_version: None,
            size: [None; 3],
            offset: None,
            metadata: Compound::new(),
            is_nested: false,
            blocks: Part::new("the blocks"),
            biomes: Part::new("the biomes"),
            block_entities: Vec::new(),
            entities: Vec::new(),
            extension: None,
            other: Compound::new(),
        }
    }

    /// Reads the compound of a schematic, or the one around it, after its tag and name.
    pub fn read<R: Read>(&mut self, reader: &mut Reader<'_, R>, depth: usize) -> Result<()> {
        reader.entries(depth, |reader, kind, name| match (name, kind) {
            ("Schematic", NbtKind::Compound) if depth == 1 => self.read(reader, 2),
            _ => self.read_entry(reader, kind, name, depth),
        })
    }

    fn read_entry<R: Read>(
        &mut self,
        reader: &mut Reader<'_, R>,
        kind: NbtKind,
        name: &str,
        depth: usize,
    ) -> Result<()> {
        match name {
            "Version" => self.version = Some(integer(reader, kind)?),
            "DataVersion" => self.data_version = i32::try_from(integer(reader, kind)?).ok(),
            "Width" => self.size[0] = Some(side(reader, kind)?),
            "Height" => self.size[1] = Some(side(reader, kind)?),
            "Length" => self.size[2] = Some(side(reader, kind)?),
            "Offset" => {
                let value = reader.value(kind, depth)?;
                let offset = value.as_position();
                self.offset = Some(offset.ok_or_else(|| reader.wrong_type("three integers", kind))?);
            }
            "Metadata" => {
                reader.expect(NbtKind::Compound, kind)?;
                self.metadata = reader.compound(depth)?;
            }
            "PaletteMax" | "PalettteMax" | "BiomePaletteMax" => drop(reader.value(kind, depth)?),
            "Palette" => self.blocks.palette = Some(palette::blocks(read_palette(reader, kind, depth, self.limits)?)),
            "BlockData" => self.read_cells(reader, kind, |draft| &mut draft.blocks)?,
            "TileEntities" | "BlockEntities" => read_compounds(reader, kind, depth, &mut self.block_entities)?,
            "Entities" => read_compounds(reader, kind, depth, &mut self.entities)?,
            "BiomePalette" => {
                self.biomes.palette = Some(palette::names(read_palette(reader, kind, depth, self.limits)?))
            }
            "BiomeData" => {
                self.biomes.is_flat = true;
                self.read_cells(reader, kind, |draft| &mut draft.biomes)?;
            }
            "Blocks" => {
                reader.expect(NbtKind::Compound, kind)?;
                self.is_nested = true;
                reader.entries(depth + 1, |reader, kind, name| match name {
                    "Data" => self.read_cells(reader, kind, |draft| &mut draft.blocks),
                    "Palette" | "BlockEntities" | "TileEntities" => self.read_entry(reader, kind, name, depth + 1),
                    _ => reader.value(kind, depth + 1).map(drop),
                })?;
            }
            "Biomes" => {
                reader.expect(NbtKind::Compound, kind)?;
                reader.entries(depth + 1, |reader, kind, name| match name {
                    "Data" => self.read_cells(reader, kind, |draft| &mut draft.biomes),
                    "Palette" => self.read_entry(reader, kind, "BiomePalette", depth + 1),
                    _ => reader.value(kind, depth + 1).map(drop),
                })?;
            }
            super::extension::NAME if kind == NbtKind::Compound => self.extension = Some(reader.compound(depth)?),
            _ => {
                reader.take(4 * size_of::<(String, Nbt)>() + name.len())?;
                let value = reader.value(kind, depth)?;
                self.other.0.push((name.to_owned(), value));
            }
        }
        Ok(())
    }

    /// Reads cells, or puts them aside if what they mean is not known yet.
    fn read_cells<R: Read>(
        &mut self,
        reader: &mut Reader<'_, R>,
        kind: NbtKind,
        part: impl Fn(&mut Self) -> &mut Part<'a>,
    ) -> Result<()> {
        reader.expect(NbtKind::ByteArray, kind)?;
        let length = reader.length()?;
        let field = reader.field();
        if let (Some(size), Some(_)) = (self.size(), &part(self).palette) {
            self.check_volume(size)?;
            return self.fill(reader, length, &field, part);
        }
        let (offset, mut left) = (reader.offset(), length);
        let mut spill = SpillWriter::new(self.budget);
        while left > 0 {
            let bytes = reader.part(left)?;
            left -= bytes.len() as u64;
            spill.push(bytes).map_err(|limit| SchematicError::no_memory(reader.offset(), &field, limit))?;
            if (self.progress)(&Progress::of(0, length)).is_break() {
                return Err(SchematicError::Cancelled);
            }
        }
        part(self).cells = Cells::Spilled(spill.finish(offset, length));
        Ok(())
    }

    /// Fills a part whose palette is known.
    fn fill(
        &mut self,
        source: &mut impl super::cells::CellSource,
        length: u64,
        field: &str,
        part: impl Fn(&mut Self) -> &mut Part<'a>,
    ) -> Result<()> {
        let Some([width, height, depth]) = self.size() else { return Ok(()) };
        let budget = self.budget;
        let this = part(self);
        let Some((names, numbers)) = this.palette.take() else { return Ok(()) };
        let mut filler = Filler::new([width, if this.is_flat { 1 } else { height }, depth], budget);
        let result = read_cells(source, length, field, &numbers, &mut filler, self.progress);
        let this = part(self);
        this.palette = Some((names, numbers));
        this.cells = Cells::Read(filler);
        result
    }

    /// Reads the cells that were put aside.
    pub fn settle(&mut self) -> Result<()> {
        if self.version.is_some_and(|version| !(1..=3).contains(&version)) {
            return Err(SchematicError::Version { found: self.version.unwrap_or_default() });
        }
        let size = self.size().ok_or_else(|| {
            let names = ["Width", "Height", "Length"];
            let missing = names.iter().zip(self.size).find(|(_, side)| side.is_none());
            SchematicError::Missing { field: missing.map_or("Width", |(name, _)| *name) }
        })?;
        self.check_volume(size)?;
        self.settle_part(|draft| &mut draft.blocks)?;
        self.settle_part(|draft| &mut draft.biomes)?;
        // In version 3 all of the blocks may be missing, and only all.
        let may_lack_blocks = self.version == Some(3) && !self.is_nested && self.blocks.palette.is_none();
        if matches!(self.blocks.cells, Cells::None) && !may_lack_blocks {
            return Err(SchematicError::Missing { field: "the data of the blocks" });
        }
        Ok(())
    }

    fn settle_part(&mut self, part: impl Fn(&mut Self) -> &mut Part<'a>) -> Result<()> {
        let this = part(self);
        let field = this.field;
        match std::mem::replace(&mut this.cells, Cells::None) {
            Cells::Spilled(spill) if this.palette.is_some() => {
                let result = self.fill(&mut spill.read(), spill.length, field, part);
                self.budget.give_back(spill.bytes());
                result
            }
            Cells::Spilled(_) if field == "the blocks" => Err(SchematicError::Missing { field: "the palette" }),
            Cells::Spilled(_) => Err(SchematicError::Missing { field: "the palette of the biomes" }),
            other => {
                this.cells = other;
                Ok(())
            }
        }
    }

    fn size(&self) -> Option<[u32; 3]> {
        Some([self.size[0]?, self.size[1]?, self.size[2]?])
    }

    /// Whether the size is known, without which nothing can be kept.
    pub fn has_size(&self) -> bool {
        self.size().is_some_and(|size| self.check_volume(size).is_ok())
    }

    fn check_volume(&self, size: [u32; 3]) -> Result<()> {
        let (found, limit) = (ChunkGrid::new(size).volume(), self.limits.volume);
        if found <= limit {
            return Ok(());
        }
        let field = format!("{} x {} x {} blocks", size[0], size[1], size[2]);
        Err(SchematicError::TooLarge { offset: 0, field, what: "blocks", limit, found })
    }

    /// What there is, and the first thing that is wrong with the parts that had to wait. Air where nothing was read.
    pub fn finish(mut self, report: &mut ReadReport) -> (Schematic, Result<()>) {
        let size = self.size().unwrap_or_default();
        let is_version_3 = self.version == Some(3) || self.version.is_none() && self.is_nested;
        let placement = Offsets::take(self.offset, is_version_3, &mut self.metadata);
        let mut schematic = Schematic::new(size);
        schematic.version = self.version.map_or(if self.is_nested { 3 } else { 1 }, |version| version as u8);
        schematic.data_version = self.data_version;
        (schematic.offset, schematic.origin) = (placement.offset, placement.origin);
        (schematic.metadata, schematic.other) = (self.metadata, self.other);
        let mut numbers = None;
        if let Some((names, places)) = self.blocks.palette {
            schematic.palette = names;
            numbers = Some(places);
        }
        if let Cells::Read(filler) = self.blocks.cells {
            report.blocks = filler.filled();
            schematic.blocks = filler.finish();
        }
        if let (Some((palette, _)), Cells::Read(filler)) = (self.biomes.palette, self.biomes.cells) {
            schematic.biomes = Some(Biomes { palette, cells: filler.finish() });
        }
        let mut result = Ok(());
        for compound in self.block_entities {
            result = result.and(block_entity(compound, self.is_nested).map(|entity| {
                let is_inside = |(at, side): (&i32, u32)| u32::try_from(*at).is_ok_and(|at| at < side);
                report.stray_block_entities += u64::from(!entity.position.iter().zip(size).all(is_inside));
                schematic.block_entities.push(entity);
            }));
        }
        for compound in self.entities {
            result = result.and(entity(compound, is_version_3).map(|mut entity| {
                placement.correct(&mut entity, size);
                schematic.entities.push(entity);
            }));
        }
        if let Some(extension) = self.extension {
            let extension = Extension::read(extension, self.budget);
            result = result.and(extension.and_then(|it| it.apply(&mut schematic, numbers, self.budget)));
        }
        (schematic, result)
    }
}

fn integer<R: Read>(reader: &mut Reader<'_, R>, kind: NbtKind) -> Result<i64> {
    match kind {
        NbtKind::Byte | NbtKind::Short | NbtKind::Int | NbtKind::Long => {}
        _ => return Err(reader.wrong_type("an integer", kind)),
    }
    Ok(reader.value(kind, 0)?.as_integer().unwrap_or_default())
}

/// A side of the box: a short, read unsigned.
fn side<R: Read>(reader: &mut Reader<'_, R>, kind: NbtKind) -> Result<u32> {
    match reader.expect(NbtKind::Short, kind).and_then(|()| reader.value(kind, 0))? {
        Nbt::Short(side) => Ok((side as u16).into()),
        _ => Err(reader.wrong_type("a short", kind)),
    }
}

fn read_compounds<R: Read>(
    reader: &mut Reader<'_, R>,
    kind: NbtKind,
    depth: usize,
    list: &mut Vec<Compound>,
) -> Result<()> {
    reader.compounds(kind, |reader| {
        list.push(reader.compound(depth + 1)?);
        reader.take(size_of::<Compound>() * 4)
    })
}

/// The entries of a palette: number and name, in the order of the file.
fn read_palette<R: Read>(
    reader: &mut Reader<'_, R>,
    kind: NbtKind,
    depth: usize,
    limits: &SchematicLimits,
) -> Result<Vec<(u32, String)>> {
    reader.expect(NbtKind::Compound, kind)?;
    let limit = limits.palette_length.min(palette::UNKNOWN.into());
    let mut entries = Vec::new();
    let mut used = rustc_hash::FxHashSet::default();
    reader.entries(depth + 1, |reader, kind, name| {
        let offset = reader.offset();
        let found = integer(reader, kind)?;
        // Air may have to be added.
        if entries.len() + 1 >= limit {
            return Err(reader.too_large("entries of a palette", limit as u64, entries.len() as u64 + 2));
        }
        let number = u32::try_from(found).ok().filter(|number| used.insert(*number));
        let number = number.ok_or_else(|| SchematicError::PaletteId { offset, field: reader.field(), found })?;
        reader.take(4 * (name.len() + size_of::<(u32, String)>()))?;
        entries.push((number, name.to_owned()));
        Ok(())
    })?;
    Ok(entries)
}
