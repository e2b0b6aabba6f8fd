//! This crate's compound in a schematic: layers above the first, and components.

use super::nbt::{Budget, Compound, Nbt, NbtKind, on_heap};
use super::palette::{Numbers, UNKNOWN, dry};
use super::{ChunkGrid, Result, Schematic, SchematicError, unnamed};
use crate::block::{BlockComponentId, BlockComponentLayout, BlockComponentRecord, BlockId, BlockLayout};
use crate::bytes::{Reader, put_number};
use crate::chunk::Chunk;
use crate::space::{CHUNK_VOLUME, ChunkPos, cell_index, cell_position};

pub(super) const NAME: &str = "bevy_terrane";
const VERSION: i32 = 1;
/// The memory of a value of variable size besides its bytes: its reference counts.
const VALUE_BYTES: usize = 16;

/// The error for an invalid part of the compound.
fn wrong<T>(part: &str, what: &str) -> Result<T> {
    Err(SchematicError::malformed(part, what))
}

/// A number that this crate wrote, which is never negative; `None` if it is missing.
fn number<T: TryFrom<i64>>(compound: &Compound, name: &str) -> Result<Option<T>> {
    let Some(value) = compound.get(name) else { return Ok(None) };
    match value.as_integer().and_then(|number| T::try_from(number).ok()) {
        Some(number) => Ok(Some(number)),
        None => wrong(name, "it is not a valid number"),
    }
}

/// Adds the content of a compound to the schematic. `numbers` are those of the palette in the file. The place of an
/// error is relative to the compound.
pub(super) fn apply(
    mut compound: Compound,
    schematic: &mut Schematic,
    numbers: Option<Numbers>,
    budget: &Budget,
) -> Result<()> {
    if compound.get("Version").and_then(Nbt::as_integer) != Some(VERSION.into()) {
        return wrong("Version", "expected version 1");
    }
    let palette_length: Option<usize> = number(&compound, "Palette")?;
    let layers = match compound.take("Layers") {
        None => Vec::new(),
        Some(Nbt::ByteArray(bytes)) => bytes,
        Some(_) => return wrong("Layers", "expected a byte array"),
    };
    let components: Vec<(BlockComponentRecord, Vec<u8>)> = match compound.take("Components") {
        None => Vec::new(),
        Some(Nbt::List(_, items)) => items.into_iter().map(component).collect::<Result<_>>()?,
        Some(_) => return wrong("Components", "expected a list"),
    };
    budget.take(components.len() * size_of::<(BlockComponentRecord, Vec<u8>)>())?;
    if let Some(numbers) = numbers {
        apply_layers(&layers, schematic, &numbers, budget)?;
    }
    let (records, values): (Vec<_>, Vec<_>) = components.into_iter().unzip();
    // Every block may have every component, because the file determines which blocks have which.
    let layout = |(place, size)| BlockComponentLayout { id: BlockComponentId::at(place, size), size };
    let layouts: Vec<_> = (0..).zip(records.iter().map(|record| record.size)).map(layout).collect();
    for (values, layout) in values.iter().zip(&layouts) {
        apply_component(&mut schematic.blocks, &layouts, *layout, values, budget)?;
    }
    schematic.components = records;
    if let Some(length) = palette_length.filter(|length| *length > 0) {
        let named = highest(&schematic.blocks, length).map_or(0, |block| block.index() as usize + 1);
        schematic.palette.truncate(length.max(named));
    }
    Ok(())
}

fn apply_layers(layers: &[u8], schematic: &mut Schematic, numbers: &Numbers, budget: &Budget) -> Result<()> {
    const FIELD: &str = "Layers";
    let dry: Vec<Option<u16>> = dry_states(&schematic.palette);
    let mut cells = Walk::new(FIELD, layers, budget);
    while let Some((at, position)) = cells.next(&mut schematic.blocks)? {
        let chunk = schematic.blocks.chunk_mut(at);
        let Ok(head) = cells.reader.number() else { return wrong(FIELD, "it ends too early") };
        if head & 1 == 1 {
            let wet = chunk.block(position);
            match dry.get(wet.index() as usize).copied().flatten() {
                Some(dry) => drop(chunk.set_block(position, BlockId::new(dry.into()))),
                None => return wrong(FIELD, "a block that is not waterlogged was wet"),
            }
        }
        for layer in 1..=head >> 1 {
            let number = cells.reader.number().ok().and_then(|number| u32::try_from(number).ok());
            let place = number.map_or(UNKNOWN, |number| numbers.place(number));
            let Ok(layer) = u8::try_from(layer) else { return wrong(FIELD, "a cell has too many layers") };
            if place == UNKNOWN {
                return wrong(FIELD, "a block is not in the palette");
            }
            if chunk.set_block_at(position, layer, BlockId::new(place.into())).is_err() {
                return wrong(FIELD, "the layers of a cell have a gap");
            }
        }
    }
    Ok(())
}

/// The block with the highest number, if any block has at least the number `least`.
fn highest(blocks: &ChunkGrid, least: usize) -> Option<BlockId> {
    let is_high = |block: &BlockId| block.index() as usize >= least;
    let of_chunk = |chunk: &Chunk| {
        let ground = if chunk.palette().iter().any(is_high) { chunk.blocks().max() } else { None };
        ground.into_iter().chain(chunk.layered_blocks().map(|(_, _, block)| block)).max()
    };
    blocks.chunks().filter_map(|(_, chunk)| of_chunk(chunk)).filter(is_high).max()
}

fn component(item: Nbt) -> Result<(BlockComponentRecord, Vec<u8>)> {
    const FIELD: &str = "Components";
    let Nbt::Compound(mut item) = item else { return wrong(FIELD, "expected compounds") };
    let Some(Nbt::String(name)) = item.take("Name") else { return wrong(FIELD, "a name is missing") };
    let Some(Nbt::ByteArray(values)) = item.take("Values") else { return wrong(FIELD, "values are missing") };
    let version = number(&item, "Version")?.unwrap_or_default();
    Ok((BlockComponentRecord { name, version, size: number(&item, "Size")? }, values))
}

fn apply_component(
    blocks: &mut ChunkGrid,
    layouts: &impl BlockLayout,
    layout: BlockComponentLayout,
    values: &[u8],
    budget: &Budget,
) -> Result<()> {
    const FIELD: &str = "Components";
    let mut cells = Walk::new(FIELD, values, budget);
    while let Some((at, position)) = cells.next(blocks)? {
        let layer = cells.reader.number().ok().and_then(|layer| u8::try_from(layer).ok());
        let length = match layout.size {
            Some(size) => Some(size.into()),
            None => cells.reader.number().ok(),
        };
        let length = length.and_then(|length| usize::try_from(length).ok());
        let value = length.and_then(|length| cells.reader.slice(length).ok());
        let (Some(layer), Some(value)) = (layer, value) else { return wrong(FIELD, "it ends too early") };
        if layout.size.is_none() {
            cells.take(on_heap(value.len() + VALUE_BYTES))?;
        }
        if blocks.chunk_mut(at).set_component(layouts, position, layer, layout.id, value).is_err() {
            return wrong(FIELD, "a cell does not have the layer");
        }
    }
    Ok(())
}

/// Walks the cells that a part of the compound lists, in ascending order by their distances.
///
/// It counts the memory of the changed chunks. A chunk is counted when the next one begins, because the size of its
/// cells and layers is bounded. Values of variable size are not bounded, so they are counted before they are stored.
struct Walk<'a> {
    part: &'static str,
    reader: Reader<'a>,
    budget: &'a Budget,
    /// The next cell if its distance is 0.
    cell: u64,
    /// The chunk that is being changed, its size in bytes before the change, and the bytes counted since.
    open: Option<([u32; 3], usize, usize)>,
}

impl<'a> Walk<'a> {
    fn new(part: &'static str, bytes: &'a [u8], budget: &'a Budget) -> Self {
        Self { part, reader: Reader::new(bytes), budget, cell: 0, open: None }
    }

    /// The next chunk and the position in it; `None` at the end.
    fn next(&mut self, blocks: &mut ChunkGrid) -> Result<Option<([u32; 3], [usize; 3])>> {
        if self.reader.left() == 0 {
            self.close(blocks)?;
            return Ok(None);
        }
        let cell = self.reader.number().ok().and_then(|distance| self.cell.checked_add(distance));
        let Some((cell, (at, position))) = cell.and_then(|cell| Some((cell, cell_place(blocks, cell)?))) else {
            return wrong(self.part, "a cell is outside");
        };
        self.cell = cell;
        if self.open.is_none_or(|(open, ..)| open != at) {
            self.close(blocks)?;
            self.open = Some((at, blocks.own_bytes(at), 0));
        }
        Ok(Some((at, position)))
    }

    /// Counts bytes that the chunk is about to take.
    fn take(&mut self, bytes: usize) -> Result<()> {
        if let Some((_, _, counted)) = &mut self.open {
            *counted += bytes;
        }
        self.budget.take(bytes)
    }

    /// Counts the last changed chunk, and removes blocks from its palette that no longer occur: wet ones that became dry.
    fn close(&mut self, blocks: &mut ChunkGrid) -> Result<()> {
        let Some((at, before, counted)) = self.open.take() else { return Ok(()) };
        self.budget.take(blocks.own_bytes(at).saturating_sub(before + counted))?;
        blocks.chunk_mut(at).compact();
        Ok(())
    }
}

/// The chunk of a cell and the position in it; `None` if it is outside of the box. The inverse of [`cell_numbers`].
fn cell_place(blocks: &ChunkGrid, cell: u64) -> Option<([u32; 3], [usize; 3])> {
    let (chunk, position) = (cell / CHUNK_VOLUME as u64, cell_position((cell % CHUNK_VOLUME as u64) as usize));
    let [along_x, along_y, along_z] = blocks.chunks_along().map(u64::from);
    if along_x == 0 || along_z == 0 || chunk / along_x / along_z >= along_y {
        return None;
    }
    let at = [chunk % along_x, chunk / along_x / along_z, chunk / along_x % along_z].map(|at| at as u32);
    let reach = blocks.reach(at);
    let is_inside = position.iter().zip(reach).all(|(at, reach)| *at < reach.into());
    is_inside.then_some((at, position))
}

/// For each state with `waterlogged=true`, the state with `false`, if the palette has it.
fn dry_states(palette: &[String]) -> Vec<Option<u16>> {
    let places: rustc_hash::FxHashMap<&str, u16> = palette.iter().map(String::as_str).zip(0..).collect();
    palette.iter().map(|state| places.get(dry(state)?.as_str()).copied()).collect()
}

/// The compound of a schematic, if it needs one. `is_wet` is `true` for blocks that are written as waterlogged.
pub(super) fn extension(
    schematic: &Schematic,
    is_wet: impl Fn(&Chunk, [usize; 3]) -> bool,
) -> Result<Option<Compound>> {
    let layers = layers(&schematic.blocks, is_wet);
    let values = component_values(schematic)?;
    if layers.is_empty() && schematic.components.is_empty() {
        return Ok(None);
    }
    let mut compound = Compound::new();
    compound.set("Version", Nbt::Int(VERSION));
    compound.set("Palette", Nbt::Int(schematic.palette.len() as i32));
    compound.set("Layers", Nbt::ByteArray(layers));
    let components = schematic.components.iter().zip(values).map(|(record, (values, _))| {
        let mut item = Compound::new();
        item.set("Name", Nbt::String(record.name.clone()));
        item.set("Version", Nbt::Long(record.version.into()));
        if let Some(size) = record.size {
            item.set("Size", Nbt::Long(size.into()));
        }
        item.set("Values", Nbt::ByteArray(values));
        Nbt::Compound(item)
    });
    compound.set("Components", Nbt::List(NbtKind::Compound, components.collect()));
    Ok(Some(compound))
}

/// The blocks above layer 0, in ascending order of cells.
fn layers(blocks: &ChunkGrid, is_wet: impl Fn(&Chunk, [usize; 3]) -> bool) -> Vec<u8> {
    let (mut layers, mut last) = (Vec::new(), 0);
    for (pos, chunk) in blocks.chunks() {
        let number = cell_numbers(blocks, pos);
        for (position, layer, block) in chunk.layered_blocks() {
            let Some(cell) = number(position) else { continue };
            if layer == 1 {
                put_number(&mut layers, cell - std::mem::replace(&mut last, cell));
                let count = chunk.layer_count(position) as u64 - 1;
                put_number(&mut layers, count << 1 | u64::from(is_wet(chunk, position)));
            }
            put_number(&mut layers, block.index().into());
        }
    }
    layers
}

/// The values of each component in ascending order of cells, and the last of these cells.
fn component_values(schematic: &Schematic) -> Result<Vec<(Vec<u8>, u64)>> {
    let mut values = vec![(Vec::new(), 0); schematic.components.len()];
    for (pos, chunk) in schematic.blocks.chunks().filter(|(_, chunk)| chunk.has_components()) {
        let number = cell_numbers(&schematic.blocks, pos);
        for position in (0..CHUNK_VOLUME).map(cell_position) {
            let Some(cell) = number(position) else { continue };
            for layer in 0..chunk.layer_count(position).min(256) {
                for (id, value) in chunk.components(position, layer as u8) {
                    let place = id.place() as usize;
                    let record = schematic.components.get(place);
                    let Some(record) = record.filter(|record| record.size.is_none() == id.is_variable()) else {
                        return Err(unnamed("component", id.number()));
                    };
                    let (values, last) = &mut values[place];
                    put_number(values, cell - std::mem::replace(last, cell));
                    put_number(values, layer as u64);
                    if record.size.is_none() {
                        put_number(values, value.len() as u64);
                    }
                    values.extend_from_slice(value);
                }
            }
        }
    }
    Ok(values)
}

/// Returns the number of a chunk's cell, or `None` outside of the box. The inverse of [`cell_place`].
fn cell_numbers(blocks: &ChunkGrid, chunk: ChunkPos) -> impl Fn([usize; 3]) -> Option<u64> + use<> {
    let [x, y, z] = [chunk.x as u64, chunk.y as u64, chunk.z as u64];
    let [along_x, _, along_z] = blocks.chunks_along().map(u64::from);
    let first = (x + (z + y * along_z) * along_x) * CHUNK_VOLUME as u64;
    let reach = blocks.reach([x as u32, y as u32, z as u32]);
    move |position| {
        let is_within = position.iter().zip(reach).all(|(at, reach)| *at < reach.into());
        is_within.then(|| first + cell_index(position) as u64)
    }
}
