//! [`Draft`]: a schematic while its file is being read.

use super::cells::read_cells;
use super::entities::{block_entity, entity, nested};
use super::extension;
use super::filler::Filler;
use super::nbt::{Budget, Compound, Nbt, NbtKind, Reader, on_heap};
use super::offsets::{correct, is_inside, nearest};
use super::palette::{self, Numbers};
use super::{
    Biomes, BlockEntity, ChunkGrid, ReadOptions, ReadReport, Result, Schematic, SchematicEntity, SchematicError,
};
use crate::work::{Progress, Tell};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::io::{Read, Write};

/// The memory of a palette entry besides its name while it is read: in a list, a set, a map, and the palette.
const ENTRY_BYTES: usize = 160;

/// The parts of a schematic that have a palette and cells.
const BLOCKS: usize = 0;
const BIOMES: usize = 1;

/// The content of a schematic that has been read so far.
pub(super) struct Draft<'a> {
    options: &'a ReadOptions,
    budget: &'a Budget,
    progress: Tell<'a>,
    pub report: ReadReport,
    /// Without blocks and with the file's metadata, until the draft is finished.
    schematic: Schematic,
    /// The path to the schematic's values, with a dot at its end; empty if they are at the root.
    path: &'static str,
    version: Option<i64>,
    /// Width, height, length.
    size: [Option<u32>; 3],
    /// As stored in the file.
    offset: Option<[i32; 3]>,
    /// `true` if there was a compound of blocks, as in version 3.
    is_nested: bool,
    parts: [Part<'a>; 2],
    /// The indices of block entities whose positions may be relative to the world's origin.
    unplaced: Vec<usize>,
    /// This crate's compound, and its place.
    extension: Option<(String, Compound)>,
}

/// A palette and cells, in any order: of the blocks or of the biomes.
#[derive(Default)]
struct Part<'a> {
    /// `true` if the part is one layer of cells.
    is_flat: bool,
    palette: Option<(Vec<String>, Numbers)>,
    /// Cells that came before the values needed to decode them: their offset in the file, their path, their length,
    /// and the packed bytes, compressed once more.
    spilled: Option<(u64, String, u64, Vec<u8>)>,
    cells: Option<Filler<'a>>,
}

impl<'a> Draft<'a> {
    pub fn new(options: &'a ReadOptions, budget: &'a Budget, progress: Tell<'a>) -> Self {
        Self {
            options,
            budget,
            progress,
            report: ReadReport::default(),
            schematic: Schematic { data_version: None, ..Schematic::new([0; 3]) },
            path: "",
            version: None,
            size: [None; 3],
            offset: None,
            is_nested: false,
            parts: Default::default(),
            unplaced: Vec::new(),
            extension: None,
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
            "DataVersion" => self.schematic.data_version = i32::try_from(integer(reader, kind)?).ok(),
            "Width" => self.size[0] = Some(side(reader, kind)?),
            "Height" => self.size[1] = Some(side(reader, kind)?),
            "Length" => self.size[2] = Some(side(reader, kind)?),
            "Offset" => {
                let error = reader.wrong_type("three integers", kind);
                self.offset = Some(reader.value(kind, depth)?.as_position().ok_or(error)?);
            }
            "Metadata" if kind == NbtKind::Compound => self.schematic.metadata = reader.compound(depth)?,
            "Metadata" if kind != NbtKind::List => return reader.expect(NbtKind::Compound, kind),
            "PaletteMax" | "PalettteMax" | "BiomePaletteMax" => reader.skip(kind, depth)?,
            "Palette" => self.parts[BLOCKS].palette = Some(palette::blocks(read_palette(reader, kind, depth)?)),
            "BlockData" => self.read_cells(reader, kind, BLOCKS)?,
            "TileEntities" | "BlockEntities" => self.read_block_entities(reader, kind, depth)?,
            "Entities" => self.read_entities(reader, kind, depth)?,
            "BiomePalette" => self.parts[BIOMES].palette = Some(palette::names(read_palette(reader, kind, depth)?)),
            "BiomeData" => {
                self.parts[BIOMES].is_flat = true;
                self.read_cells(reader, kind, BIOMES)?;
            }
            "Blocks" => self.read_part(reader, kind, depth, BLOCKS)?,
            "Biomes" => self.read_part(reader, kind, depth, BIOMES)?,
            extension::NAME if kind == NbtKind::Compound => {
                self.extension = Some((reader.place(), reader.compound(depth)?));
            }
            _ => {
                let value = reader.value(kind, depth)?;
                // Some programs write an empty list instead of empty metadata.
                let is_empty = matches!(&value, Nbt::List(_, items) if items.is_empty());
                if name != "Metadata" || !is_empty {
                    let other = &mut self.schematic.other.0;
                    reader.take(on_heap(name.len()))?;
                    reader.make_room(other, 1, u64::MAX)?;
                    other.push((name.to_owned(), value));
                }
            }
        }
        Ok(())
    }

    /// Reads the compound of a part in version 3.
    fn read_part<R: Read>(
        &mut self,
        reader: &mut Reader<'_, R>,
        kind: NbtKind,
        depth: usize,
        part: usize,
    ) -> Result<()> {
        reader.expect(NbtKind::Compound, kind)?;
        if part == BLOCKS && !std::mem::replace(&mut self.is_nested, true) {
            let early = self.schematic.block_entities.iter_mut();
            early.for_each(|entity| entity.data = nested(std::mem::take(&mut entity.data)));
        }
        reader.entries(depth + 1, |reader, kind, name| match (part, name) {
            (_, "Data") => self.read_cells(reader, kind, part),
            (BIOMES, "Palette") => self.read_entry(reader, kind, "BiomePalette", depth + 1),
            (BLOCKS, "Palette" | "BlockEntities" | "TileEntities") => self.read_entry(reader, kind, name, depth + 1),
            _ => reader.skip(kind, depth + 1),
        })
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
            let known = &mut self.schematic.block_entities;
            if is_old {
                make_room(reader, &mut self.unplaced, left)?;
                self.unplaced.push(known.len());
            }
            make_room(reader, known, left)?;
            known.push(entity);
            Ok(())
        })
    }

    fn read_entities<R: Read>(&mut self, reader: &mut Reader<'_, R>, kind: NbtKind, depth: usize) -> Result<()> {
        reader.compounds(kind, |reader, left| {
            let held = |entity: &SchematicEntity| on_heap(entity.id.len()) + entity.data.heap_bytes();
            let Some(entity) = self.read_one(reader, depth, entity, held)? else { return Ok(()) };
            make_room(reader, &mut self.schematic.entities, left)?;
            self.schematic.entities.push(entity);
            Ok(())
        })
    }

    /// Reads an item of a list; `None` if it is malformed, which is counted. `held` returns the memory of the finished item.
    fn read_one<T, R: Read>(
        &mut self,
        reader: &mut Reader<'_, R>,
        depth: usize,
        make: impl FnOnce(Compound) -> Result<T>,
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
            Err(error) => {
                self.report.malformed += 1;
                self.report.first_malformed.get_or_insert_with(|| error.within(&reader.place_of(offset)));
                (None, 0)
            }
        };
        self.budget.give_back(taken.saturating_sub(kept));
        Ok(made)
    }

    /// Reads cells, or sets them aside if they cannot be decoded yet.
    fn read_cells<R: Read>(&mut self, reader: &mut Reader<'_, R>, kind: NbtKind, part: usize) -> Result<()> {
        reader.expect(NbtKind::ByteArray, kind)?;
        let length = reader.length()?;
        if let (Some(size), Some(_)) = (self.size(), &self.parts[part].palette) {
            self.check_volume(size, reader.offset())?;
            return self.fill(reader, length, part);
        }
        let (offset, path) = (reader.offset(), reader.path().to_owned());
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        let (mut left, mut counted) = (length, 0);
        while left > 0 {
            let part = reader.part(left)?;
            left -= part.len() as u64;
            // Writing to a vector cannot fail.
            let _ = encoder.write_all(part);
            let held = encoder.get_ref().capacity();
            reader.take(held - counted)?;
            counted = held;
            if (self.progress)(&Progress::of(0, length)).is_break() {
                return Err(SchematicError::Cancelled);
            }
        }
        let part = &mut self.parts[part];
        (part.spilled, part.cells) = (Some((offset, path, length, encoder.finish().unwrap_or_default())), None);
        Ok(())
    }

    /// Reads cells with a known palette and size.
    fn fill<R: Read>(&mut self, reader: &mut Reader<'_, R>, length: u64, part: usize) -> Result<()> {
        let Some([width, height, depth]) = self.size() else { return Ok(()) };
        let part = &mut self.parts[part];
        let Some((_, numbers)) = &part.palette else { return Ok(()) };
        let mut filler = Filler::new([width, if part.is_flat { 1 } else { height }, depth], self.budget);
        let result = read_cells(reader, length, numbers, &mut filler, self.progress);
        (part.spilled, part.cells) = (None, Some(filler));
        result
    }

    /// Reads the cells that were set aside.
    pub fn settle(&mut self) -> Result<()> {
        let end = self.report.bytes;
        let missing =
            |what: &str| SchematicError::malformed(format!("byte {end}: {}{what}", self.path), "it is missing");
        let size = self.size().ok_or_else(|| {
            let lacking = ["Width", "Height", "Length"].into_iter().zip(self.size).find(|(_, side)| side.is_none());
            missing(lacking.map_or("Width", |(name, _)| name))
        })?;
        self.check_volume(size, end)?;
        // In version 3 the blocks may be missing, but only completely.
        let blocks = &self.parts[BLOCKS];
        let may_lack_blocks = self.version == Some(3) && !self.is_nested && blocks.palette.is_none();
        if blocks.spilled.is_none() && blocks.cells.is_none() && !may_lack_blocks {
            return Err(missing(if self.is_nested { "Blocks.Data" } else { "BlockData" }));
        }
        self.settle_part(BLOCKS)?;
        self.settle_part(BIOMES)
    }

    fn settle_part(&mut self, part: usize) -> Result<()> {
        let Some((offset, path, length, packed)) = self.parts[part].spilled.take() else { return Ok(()) };
        if self.parts[part].palette.is_none() {
            return Err(SchematicError::malformed(format!("byte {offset}: {path}"), "its palette is missing"));
        }
        let mut reader = Reader::resumed(DeflateDecoder::new(&packed[..]), self.options, self.budget, offset, path);
        let result = self.fill(&mut reader, length, part);
        self.budget.give_back(packed.capacity());
        result
    }

    fn size(&self) -> Option<[u32; 3]> {
        Some([self.size[0]?, self.size[1]?, self.size[2]?])
    }

    /// Returns `true` if the size is known. Without it, nothing can be kept.
    pub fn has_size(&self) -> bool {
        self.size().is_some_and(|size| self.check_volume(size, 0).is_ok())
    }

    fn check_volume(&self, size: [u32; 3], offset: u64) -> Result<()> {
        let (found, limit) = (ChunkGrid::new(size).volume(), self.options.volume);
        if found <= limit {
            return Ok(());
        }
        let [width, height, length] = size;
        let at = format!("byte {offset}: {}Width x Height x Length, {width} x {height} x {length}", self.path);
        Err(SchematicError::too_large(at, "blocks", limit, found))
    }

    /// Returns the schematic, with air where nothing was read, and the first error of the parts that were set aside.
    pub fn finish(self) -> (Schematic, ReadReport, Result<()>) {
        let size = self.size().unwrap_or_default();
        let is_version_3 = self.version == Some(3) || self.version.is_none() && self.is_nested;
        let Self { mut schematic, mut report, parts: [blocks, biomes], .. } = self;
        let may_be_absolute = schematic.take_offsets(self.offset, is_version_3);
        let (corner, has_origin) = (schematic.written_corner(), schematic.origin.is_some());
        let corner = corner.or(schematic.offset).unwrap_or_default();
        schematic.version = self.version.map_or(if self.is_nested { 3 } else { 1 }, |version| version as u8);
        let mut numbers = None;
        if let Some((names, places)) = blocks.palette {
            schematic.palette = names;
            numbers = Some(places);
        }
        schematic.blocks = ChunkGrid::new(size);
        if let Some(filler) = blocks.cells {
            (schematic.blocks, report.blocks) = filler.finish();
        }
        if let (Some((palette, _)), Some(filler)) = (biomes.palette, biomes.cells) {
            let (cells, _) = filler.finish();
            schematic.biomes = Some(Biomes { palette, cells });
        }
        for place in self.unplaced {
            let position = &mut schematic.block_entities[place].position;
            *position = nearest(*position, corner, size);
        }
        let is_stray = |entity: &&BlockEntity| !is_inside(entity.position, size);
        report.stray_block_entities = schematic.block_entities.iter().filter(is_stray).count() as u64;
        for entity in &mut schematic.entities {
            if is_version_3 {
                entity.data = nested(std::mem::take(&mut entity.data));
            }
            if may_be_absolute {
                correct(entity, corner, has_origin, size);
            }
        }
        let result = self.extension.map_or(Ok(()), |(at, compound)| {
            extension::apply(compound, &mut schematic, numbers, self.budget).map_err(|error| error.within(&at))
        });
        (schematic, report, result)
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
    let at = reader.offset();
    match integer(reader, kind)? {
        found @ 1..=3 => Ok(found),
        found => Err(SchematicError::Version { at: reader.place_of(at), expected: "1, 2 or 3", found }),
    }
}

/// The side length of the box: a short, read as unsigned. Some programs write another integer type.
fn side<R: Read>(reader: &mut Reader<'_, R>, kind: NbtKind) -> Result<u32> {
    const LONGEST: u64 = u16::MAX as u64;
    let at = reader.offset();
    let found = match (integer(reader, kind)?, kind) {
        (short, NbtKind::Short) => i64::from(short as u16),
        (other, _) => other,
    };
    match u64::try_from(found) {
        Ok(side @ 0..=LONGEST) => Ok(side as u32),
        Ok(found) => Err(SchematicError::too_large(reader.place_of(at), "blocks along an axis", LONGEST, found)),
        Err(_) => Err(reader.impossible_length(at, found)),
    }
}

/// Makes room for one more item of a list with this many items left.
fn make_room<T, R: Read>(reader: &Reader<'_, R>, items: &mut Vec<T>, left: u64) -> Result<()> {
    reader.make_room(items, 1, (items.len() as u64).saturating_add(left))
}

/// The entries of a palette as pairs of number and name, in the order of the file.
fn read_palette<R: Read>(reader: &mut Reader<'_, R>, kind: NbtKind, depth: usize) -> Result<Vec<(u32, String)>> {
    const LIMIT: usize = palette::UNKNOWN as usize;
    reader.expect(NbtKind::Compound, kind)?;
    let mut entries = Vec::new();
    let mut used = rustc_hash::FxHashSet::default();
    reader.entries(depth + 1, |reader, kind, name| {
        let at = reader.offset();
        let found = integer(reader, kind)?;
        // Leaves room for air.
        if entries.len() + 1 >= LIMIT {
            return Err(reader.too_large("entries of a palette", LIMIT as u64, entries.len() as u64 + 2));
        }
        let number = u32::try_from(found).ok().filter(|number| used.insert(*number));
        let wrong = || SchematicError::malformed(reader.place_of(at), format!("{found} is not a number of its own"));
        let number = number.ok_or_else(wrong)?;
        reader.take(on_heap(name.len()) + ENTRY_BYTES)?;
        entries.push((number, name.to_owned()));
        Ok(())
    })?;
    Ok(entries)
}
