//! Translates the numbers of a registry to those of a schematic's palette.

use super::inward::Placeholder;
use super::{TranslationError, TranslationOptions, entities, inward};
use crate::block::{BlockComponentId, BlockId, BlockRegistry};
use crate::chunk::{Chunk, ChunkAssembly, cell};
use crate::entity::EntityRecord;
use crate::snapshot::capture::shared;
use crate::snapshot::schematic::{AIR, BlockEntity, Schematic, normalized};
use crate::space::{BlockPos, CHUNK_SIZE, ChunkPart, ChunkPos};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

type Result<T> = std::result::Result<T, TranslationError>;

/// Builds a schematic, chunk by chunk.
pub(in crate::snapshot) struct Outward<'a> {
    registry: &'a BlockRegistry,
    options: &'a TranslationOptions,
    placeholder: Option<Placeholder>,
    block_entity: Option<BlockComponentId>,
    schematic: Schematic,
    numbers: FxHashMap<BlockId, BlockId>,
    places: FxHashMap<String, BlockId>,
    components: FxHashMap<BlockComponentId, BlockComponentId>,
    /// By the value of a placeholder; `None` if the value cannot be written as a state.
    states: FxHashMap<Box<[u8]>, Option<BlockId>>,
    /// Chunks of a single block, one for each block.
    uniform: FxHashMap<BlockId, Arc<Chunk>>,
}

impl<'a> Outward<'a> {
    /// A schematic of air with this size in blocks along x, y, z.
    pub fn new(registry: &'a BlockRegistry, options: &'a TranslationOptions, size: [u32; 3]) -> Self {
        let mut schematic = Schematic::new(size);
        schematic.water = vec!["minecraft:water".to_owned(), options.water.clone()];
        Self {
            registry,
            options,
            placeholder: Placeholder::of(registry),
            block_entity: inward::block_entity(registry),
            schematic,
            numbers: [(BlockId::AIR, BlockId::AIR)].into_iter().collect(),
            places: [(AIR.to_owned(), BlockId::AIR)].into_iter().collect(),
            components: FxHashMap::default(),
            states: FxHashMap::default(),
            uniform: FxHashMap::default(),
        }
    }

    /// Returns the schematic of a box with this corner.
    pub fn finish(mut self, corner: BlockPos) -> Schematic {
        let [x, y, z] = [corner.x, corner.y, corner.z].map(i32::try_from);
        self.schematic.offset = Some([0; 3]);
        // Schematics cannot represent corners far away.
        self.schematic.origin = x.ok().zip(y.ok()).zip(z.ok()).map(|((x, y), z)| [x, y, z]);
        self.schematic
    }

    /// Adds a part of a chunk, at a position relative to the minimum corner.
    pub fn add_chunk(&mut self, at: ChunkPos, chunk: &Arc<Chunk>, part: &ChunkPart) -> Result<()> {
        let chunk = if part.is_whole() { Chunk::clone(chunk) } else { cut(chunk, part) };
        let chunk = self.translated(at, chunk)?;
        self.schematic.blocks.set_chunk(at, shared(&mut self.uniform, chunk));
        Ok(())
    }

    fn translated(&mut self, at: ChunkPos, mut chunk: Chunk) -> Result<Chunk> {
        // Blocks that no longer occur must not get into the palette.
        chunk.compact();
        let (hides_placeholder, foreign) = self.take_foreign(at, &chunk);
        let mut used: FxHashSet<BlockId> = chunk.palette().iter().copied().collect();
        if let Some(it) = self.placeholder.filter(|_| hides_placeholder) {
            used.remove(&it.block);
        }
        used.extend(chunk.layered_blocks().map(|(_, _, block)| block));
        let mut numbers = FxHashMap::default();
        // In the order of the palette, so that equal snapshots give equal files.
        let layered = chunk.layered_blocks().map(|(_, _, block)| block);
        for block in chunk.palette().iter().copied().chain(layered).filter(|block| used.contains(block)) {
            numbers.insert(block, self.number(block)?);
        }
        let number = |block: BlockId| numbers.get(&block).copied().unwrap_or(BlockId::AIR);
        if chunk.rename_blocks(number) {
            return Ok(chunk);
        }
        let (state, block_entity) = (self.placeholder.map(|it| it.state), self.block_entity);
        let mut unknown = None;
        let mut assembly = ChunkAssembly::default();
        assembly.copy_renamed(&chunk, number, |position, layer, component| {
            // If there is a state, an empty block entity means that there is none.
            let said = foreign.get(&position).filter(|_| layer == 0);
            if said.is_some_and(|said| Some(component) == block_entity || Some(component) == state && said.is_some()) {
                return None;
            }
            let number = self.component(component);
            if number.is_none() {
                unknown = Some(component);
            }
            number
        });
        for (position, said) in foreign {
            if let Some(state) = said {
                assembly.set_block(position, state);
            }
        }
        match unknown {
            Some(component) => {
                Err(TranslationError::Unlisted { what: "component", number: component.number(), list: "registry" })
            }
            None => Ok(assembly.finish()),
        }
    }

    /// Removes values that the format itself can represent: block entities of blocks in layer 0, and the states of
    /// placeholders there. The flag is `true` if this includes all placeholders of layer 0.
    fn take_foreign(&mut self, at: ChunkPos, chunk: &Chunk) -> (bool, BTreeMap<[usize; 3], Option<BlockId>>) {
        let mut foreign = BTreeMap::new();
        let Some(block_entity) = self.block_entity.filter(|_| chunk.has_components()) else { return (false, foreign) };
        let placeholder = self.placeholder.filter(|it| chunk.palette().contains(&it.block));
        let mut hides_placeholder = placeholder.is_some();
        for position in ChunkPart::WHOLE.cells() {
            let stands_for = placeholder.filter(|it| chunk.block(position) == it.block);
            let entity = match chunk.component(position, 0, block_entity) {
                None | Some([]) => None,
                Some(bytes) => match BlockEntity::from_bytes(block_in(at, position), bytes) {
                    // Reading it must give the same bytes again.
                    Ok(entity) if entity.to_bytes().is_ok_and(|again| again == bytes) => Some(entity),
                    _ => {
                        hides_placeholder &= stands_for.is_none();
                        continue;
                    }
                },
            };
            let state = stands_for.and_then(|it| self.state(chunk.component(position, 0, it.state)?));
            if stands_for.is_some() && state.is_none() {
                hides_placeholder = false;
                continue;
            }
            if state.is_some() || entity.is_some() {
                foreign.insert(position, state);
            }
            self.schematic.block_entities.extend(entity);
        }
        (hides_placeholder, foreign)
    }

    /// The number of a placeholder's state.
    fn state(&mut self, value: &[u8]) -> Option<BlockId> {
        if let Some(known) = self.states.get(value) {
            return *known;
        }
        let text = str::from_utf8(value).ok().filter(|text| {
            let is_short = u16::try_from(text.len()).is_ok();
            is_short && !text.is_empty() && *text != AIR && normalized((*text).to_owned()) == **text
        });
        let number = text.map(|text| self.place(text));
        self.states.insert(value.into(), number);
        number
    }

    fn number(&mut self, block: BlockId) -> Result<BlockId> {
        if let Some(number) = self.numbers.get(&block) {
            return Ok(*number);
        }
        if block.index() as usize >= self.registry.len() {
            let number = block.index().into();
            return Err(TranslationError::Unlisted { what: "block", number, list: "registry" });
        }
        let number = self.place(self.registry.block(block).name());
        self.numbers.insert(block, number);
        Ok(number)
    }

    /// The index of a name in the palette.
    fn place(&mut self, name: &str) -> BlockId {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = BlockId::new(self.schematic.palette.len() as u32);
        self.schematic.palette.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }

    fn component(&mut self, component: BlockComponentId) -> Option<BlockComponentId> {
        if let Some(number) = self.components.get(&component) {
            return Some(*number);
        }
        let record = self.registry.component_record(component)?;
        let number = BlockComponentId::at(self.schematic.components.len(), record.size);
        self.schematic.components.push(record.clone());
        self.components.insert(component, number);
        Some(number)
    }

    /// Adds an entity whose position is relative to the minimum corner.
    pub fn add_entity(&mut self, entity: &EntityRecord) {
        self.schematic.entities.push(entities::to_schematic(entity, self.options.keeps_ids));
    }
}

/// The position of a block of a chunk, relative to the minimum corner.
fn block_in(chunk: ChunkPos, position: [usize; 3]) -> [i32; 3] {
    let [x, y, z] = position;
    [(chunk.x, x), (chunk.y, y), (chunk.z, z)].map(|(chunk, at)| (chunk as usize * CHUNK_SIZE + at) as i32)
}

/// The part of a chunk, with air around it.
fn cut(chunk: &Chunk, part: &ChunkPart) -> Chunk {
    let mut assembly = ChunkAssembly::default();
    assembly.copy_part(chunk, part, cell, |block| block);
    assembly.finish()
}
