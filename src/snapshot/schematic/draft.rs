//! A schematic in the making, while its file is read.

use super::cells::read_cells;
use super::entities::{Flaw, block_entity, entity, nested};
use super::extension::Extension;
use super::filler::Filler;
use super::nbt::{Budget, Compound, Nbt, NbtKind, Reader, on_heap};
use super::offsets::{Offsets, is_inside};
use super::palette::{self, Numbers};
use super::spill::{Spill, SpillWriter};
use super::{Biomes, BlockEntity, ChunkGrid, ReadReport, Schematic, SchematicEntity, SchematicError, SchematicLimits};
use crate::work::{Progress, Tell};
use std::io::Read;

/// Bytes that an entry of a palette takes besides its name while it is read: in a list, a set, a map, and the palette.
const ENTRY_BYTES: usize = 160;

type Result<T> = std::result::Result<T, SchematicError>;

/// What has been read of a schematic.
pub(super) struct Draft<'a> {
    limits: &'a SchematicLimits,
    budget: &'a Budget,
    progress: Tell<'a>,
    /// The path to the schematic's values, with a dot at its end; empty if they are at the root.
    path: &'static str,
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
    block_entities: Vec<BlockEntity>,
    /// Indices of those block entities whose places may count from the world's origin.
    unplaced: Vec<usize>,
    entities: Vec<SchematicEntity>,
    malformed: u64,
    first_malformed: Option<SchematicError>,
    extension: Option<PlacedExtension>,
    other: Compound,
}

/// The compound of this crate, the offset where it begins, and the path to it.
struct PlacedExtension {
    offset: u64,
    path: String,
    compound: Compound,
}

/// A palette and cells, which come in any order.
struct Part<'a> {
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

impl Part<'_> {
    const NONE: Self = Self { is_flat: false, palette: None, cells: Cells::None };
}

impl<'a> Draft<'a> {
    pub fn new(limits: &'a SchematicLimits, budget: &'a Budget, progress: Tell<'a>) -> Self {
        Self {
            limits,
            budget,
            progress,
            path: "",
            version: None,
            data_version: None,
            size: [None; 3],
            offset: None,
            metadata: Compound::new(),
            is_nested: false,
            blocks: Part::NONE,
            biomes: Part::NONE,
            block_entities: Vec::new(),
            unplaced: Vec::new(),
            entities: Vec::new(),
            malformed: 0,
            first_malformed: None,
            extension: None,
            other: Compound::new(),
        }
    }

    /// Reads the compound of a schematic, or the one around it, after its tag and name.
    pub fn read<R: Read>(&mut self, reader: &mut Reader<'_, R>, depth: usize) -> Result<()> {
        reader.entries(depth, |reader, kind, name| match (name, kind) {
            ("Schematic", NbtKind::Compound) if depth == 1 => {
                self.path = "Schematic.";
                self.read(reader, 2)
            }
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
            "Version" => self.version = Some(version(reader, kind)?),
            "DataVersion" => self.data_version = i32::try_from(integer(reader, kind)?).ok(),
            "Width" => self.size[0] = Some(side(reader, kind)?),
            "Height" => self.size[1] = Some(side(reader, kind)?),
            "Length" => self.size[2] = Some(side(reader, kind)?),
            "Offset" => {
                let error = reader.wrong_type("three integers", kind);
                self.offset = Some(reader.value(kind, depth)?.as_position().ok_or(error)?);
            }
            "Metadata" if kind == NbtKind::Compound => self.metadata = reader.compound(depth)?,
            "Metadata" if kind != NbtKind::List => return reader.expect(NbtKind::Compound, kind),
            "PaletteMax" | "PalettteMax" | "BiomePaletteMax" => self.skip(reader, kind, depth)?,
            "Palette" => self.blocks.palette = Some(palette::blocks(read_palette(reader, kind, depth, self.limits)?)),
            "BlockData" => self.read_cells(reader, kind, |draft| &mut draft.blocks)?,
            "TileEntities" | "BlockEntities" => self.read_block_entities(reader, kind, depth)?,
            "Entities" => self.read_entities(reader, kind, depth)?,
            "BiomePalette" => {
                self.biomes.palette = Some(palette::names(read_palette(reader, kind, depth, self.limits)?))
            }
            "BiomeData" => {
                self.biomes.is_flat = true;
                self.read_cells(reader, kind, |draft| &mut draft.biomes)?;
            }
            "Blocks" => self.read_blocks(reader, kind, depth)?,
            "Biomes" => {
                reader.expect(NbtKind::Compound, kind)?;
                reader.entries(depth + 1, |reader, kind, name| match name {
                    "Data" => self.read_cells(reader, kind, |draft| &mut draft.biomes),
                    "Palette" => self.read_entry(reader, kind, "BiomePalette", depth + 1),
                    _ => self.skip(reader, kind, depth + 1),
                })?;
            }
            super::extension::NAME if kind == NbtKind::Compound => {
                let (offset, path) = (reader.offset(), reader.field());
                self.extension = Some(PlacedExtension { offset, path, compound: reader.compound(depth)? });
            }
            _ => {
                let value = reader.value(kind, depth)?;
                // Some programs write an empty list if they have no metadata.
                let is_empty = matches!(&value, Nbt::List(_, items) if items.is_empty());
                if name != "Metadata" || !is_empty {
                    reader.take(on_heap(name.len()))?;
                    reader.make_room(&mut self.other.0, 1, u64::MAX)?;
                    self.other.0.push((name.to_owned(), value));
                }
            }
        }
        Ok(())
    }

    /// Reads the compound that version 3 has for blocks.
    fn read_blocks<R: Read>(&mut self, reader: &mut Reader<'_, R>, kind: NbtKind, depth: usize) -> Result<()> {
        reader.expect(NbtKind::Compound, kind)?;
        if !std::mem::replace(&mut self.is_nested, true) {
            let early = self.block_entities.iter_mut();
            early.for_each(|entity| entity.data = nested(std::mem::take(&mut entity.data)));
        }
        reader.entries(depth + 1, |reader, kind, name| match name {
            "Data" => self.read_cells(reader, kind, |draft| &mut draft.blocks),
            "Palette" | "BlockEntities" | "TileEntities" => self.read_entry(reader, kind, name, depth + 1),
            _ => self.skip(reader, kind, depth + 1),
        })
    }

    /// Reads a value that is not kept.
    fn skip<R: Read>(&self, reader: &mut Reader<'_, R>, kind: NbtKind, depth: usize) -> Result<()> {
        self.budget.give_back(reader.value(kind, depth)?.heap_bytes());
        Ok(())
    }

    fn read_block_entities<R: Read>(&mut self, reader: &mut Reader<'_, R>, kind: NbtKind, depth: usize) -> Result<()> {
        reader.compounds(kind, |reader, left| {
            let is_nested = self.is_nested;
            let whole = |(mut entity, is_old): (BlockEntity, bool)| {
                entity.data = if is_nested { nested(entity.data) } else { entity.data };
                (entity, is_old)
            };
            let held = |(entity, _): &(BlockEntity, bool)| on_heap(entity.id.len()) + entity.data.heap_bytes();
            let read = |compound| block_entity(compound).map(whole);
            let Some((entity, is_old)) = self.read_one(reader, depth, read, held)? else { return Ok(()) };
            if is_old {
                make_room(reader, &mut self.unplaced, left)?;
                self.unplaced.push(self.block_entities.len());
            }
            make_room(reader, &mut self.block_entities, left)?;
            self.block_entities.push(entity);
            Ok(())
        })
    }

    fn read_entities<R: Read>(&mut self, reader: &mut Reader<'_, R>, kind: NbtKind, depth: usize) -> Result<()> {
        reader.compounds(kind, |reader, left| {
            let held = |entity: &SchematicEntity| on_heap(entity.id.len()) + entity.data.heap_bytes();
            let Some(entity) = self.read_one(reader, depth, entity, held)? else { return Ok(()) };
            make_room(reader, &mut self.entities, left)?;
            self.entities.push(entity);
            Ok(())
        })
    }

    /// Reads an item of a list; `None` if it is malformed, which is counted. `held` gives the memory that the finished item
    /// holds.
    fn read_one<T, R: Read>(
        &mut self,
        reader: &mut Reader<'_, R>,
        depth: usize,
        make: impl FnOnce(Compound) -> std::result::Result<T, Flaw>,
        held: impl FnOnce(&T) -> usize,
    ) -> Result<Option<T>> {
        let offset = reader.offset();
        let compound = reader.compound(depth + 1)?;
        let taken = compound.heap_bytes();
        let (made, kept) = match make(compound) {
            Ok(made) => {
                let kept = held(&made);
                (Some(made), kept)
            }
            Err(flaw) => {
                self.malformed += 1;
                self.first_malformed.get_or_insert_with(|| flaw.at(offset, &reader.field()));
                (None, 0)
            }
        };
        self.budget.give_back(taken.saturating_sub(kept));
        Ok(made)
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
            self.check_volume(size, reader.offset())?;
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
        part(self).cells = Cells::Spilled(spill.finish(offset, field, length));
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

    /// Reads the cells that were put aside. `end` is the offset where the schematic ends.
    pub fn settle(&mut self, end: u64) -> Result<()> {
        let missing = |what: &str| SchematicError::Missing { offset: end, field: format!("{}{what}", self.path) };
        let size = self.size().ok_or_else(|| {
            let lacking = ["Width", "Height", "Length"].into_iter().zip(self.size).find(|(_, side)| side.is_none());
            missing(lacking.map_or("Width", |(name, _)| name))
        })?;
        self.check_volume(size, end)?;
        // In version 3 all of the blocks may be missing, and only all.
        let may_lack_blocks = self.version == Some(3) && !self.is_nested && self.blocks.palette.is_none();
        if matches!(self.blocks.cells, Cells::None) && !may_lack_blocks {
            return Err(missing(if self.is_nested { "Blocks.Data" } else { "BlockData" }));
        }
        self.settle_part(|draft| &mut draft.blocks)?;
        self.settle_part(|draft| &mut draft.biomes)
    }

    fn settle_part(&mut self, part: impl Fn(&mut Self) -> &mut Part<'a>) -> Result<()> {
        let this = part(self);
        match std::mem::replace(&mut this.cells, Cells::None) {
            Cells::Spilled(spill) if this.palette.is_some() => {
                let result = self.fill(&mut spill.read(), spill.length, &spill.field, part);
                self.budget.give_back(spill.bytes());
                result
            }
            Cells::Spilled(Spill { offset, field, .. }) => {
                Err(SchematicError::Missing { offset, field: format!("the palette of {field}") })
            }
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
        self.size().is_some_and(|size| self.check_volume(size, 0).is_ok())
    }

    fn check_volume(&self, size: [u32; 3], offset: u64) -> Result<()> {
        let (found, limit) = (ChunkGrid::new(size).volume(), self.limits.volume);
        if found <= limit {
            return Ok(());
        }
        let field = format!("{}Width x Height x Length, {} x {} x {}", self.path, size[0], size[1], size[2]);
        Err(SchematicError::TooLarge { offset, field, what: "blocks", limit, found })
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
        for place in self.unplaced {
            let position = &mut self.block_entities[place].position;
            *position = placement.nearest(*position, size);
        }
        let is_stray = |entity: &&BlockEntity| !is_inside(entity.position, size);
        report.stray_block_entities = self.block_entities.iter().filter(is_stray).count() as u64;
        for entity in &mut self.entities {
            if is_version_3 {
                entity.data = nested(std::mem::take(&mut entity.data));
            }
            placement.correct(entity, size);
        }
        (schematic.block_entities, schematic.entities) = (self.block_entities, self.entities);
        (report.malformed, report.first_malformed) = (self.malformed, self.first_malformed);
        let result = match self.extension {
            None => Ok(()),
            Some(PlacedExtension { offset, path, compound }) => Extension::read(compound, self.budget)
                .and_then(|extension| extension.apply(&mut schematic, numbers, self.budget))
                .map_err(|fault| fault.at(offset, &path)),
        };
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

fn version<R: Read>(reader: &mut Reader<'_, R>, kind: NbtKind) -> Result<i64> {
    let offset = reader.offset();
    match integer(reader, kind)? {
        found @ 1..=3 => Ok(found),
        found => Err(SchematicError::Version { offset, field: reader.field(), found }),
    }
}

/// A side of the box: a short, read unsigned. Some programs write another integer.
fn side<R: Read>(reader: &mut Reader<'_, R>, kind: NbtKind) -> Result<u32> {
    const LONGEST: u64 = u16::MAX as u64;
    let offset = reader.offset();
    let found = match (integer(reader, kind)?, kind) {
        (short, NbtKind::Short) => i64::from(short as u16),
        (other, _) => other,
    };
    match u64::try_from(found) {
        Ok(side @ 0..=LONGEST) => Ok(side as u32),
        Ok(found) => {
            let (field, what, limit) = (reader.field(), "blocks along an axis", LONGEST);
            Err(SchematicError::TooLarge { offset, field, what, limit, found })
        }
        Err(_) => Err(SchematicError::Length { offset, field: reader.field(), found }),
    }
}

/// Makes room for one more item of a list that has this many left.
fn make_room<T, R: Read>(reader: &Reader<'_, R>, items: &mut Vec<T>, left: u64) -> Result<()> {
    reader.make_room(items, 1, (items.len() as u64).saturating_add(left))
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
        reader.take(on_heap(name.len()) + ENTRY_BYTES)?;
        entries.push((number, name.to_owned()));
        Ok(())
    })?;
    Ok(entries)
}
