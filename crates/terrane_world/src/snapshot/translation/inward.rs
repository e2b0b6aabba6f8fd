//! Translates the names of a schematic's palette to numbers of a registry, with a placeholder for unknown states.

use super::{TranslationOptions, TranslationReport};
use crate::block::{
    BLOCK_ENTITY, BlockComponentError, BlockComponentId, BlockComponentRecord, BlockId, BlockLayout, BlockName,
    BlockRegistry, BlockRegistryError, PLACEHOLDER, STATE,
};
use crate::chunk::{BlockValueError, Chunk, ChunkAssembly};
use crate::snapshot::capture::{is_air, shared};
use crate::snapshot::schematic::{AIR, BlockEntity, Schematic, dry, shortened};
use crate::snapshot::{PlaceError, turned_state};
use crate::space::{CHUNK_SIZE, ChunkPart, ChunkPos};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;
use thiserror::Error;

type Result<T> = std::result::Result<T, TranslationError>;

/// The maximum memory of a placeholder's cell: two pointers to values that all placeholders of that state share, and
/// two bits.
const PLACEHOLDER_BYTES: u64 = 40;
/// The memory of a block above layer 0, in a list or a map of its layer.
const LAYER_BYTES: u64 = 8;
/// The memory of an unset value of variable size.
const VALUE_BYTES: u64 = 48;

/// Translates a schematic to a snapshot, chunk by chunk.
pub(super) struct Inward<'a> {
    registry: &'a BlockRegistry,
    options: &'a TranslationOptions,
    placeholder: Option<Placeholder>,
    block_entity: Option<BlockComponentId>,
    water: Option<BlockId>,
    /// By palette number.
    states: Vec<State>,
    components: Vec<BlockComponentRecord>,
    /// The block entities that have not been placed yet.
    block_entities: FxHashMap<ChunkPos, Vec<BlockEntity>>,
    /// Chunks of a single block, one for each block.
    uniform: FxHashMap<BlockId, Arc<Chunk>>,
    /// An unset value of variable size.
    nothing: Arc<[u8]>,
    memory: u64,
    pub report: TranslationReport,
}

/// The translation of a state of the palette.
enum State {
    Block(BlockId),
    /// A block with water in layer 1; in a cell with layers, a placeholder for this text.
    Wet(BlockId, Arc<[u8]>),
    /// A placeholder for this text.
    Unknown(Arc<[u8]>),
}

type Value<'a> = (BlockComponentId, Cow<'a, [u8]>);

impl<'a> Inward<'a> {
    pub fn new(schematic: &Schematic, registry: &'a BlockRegistry, options: &'a TranslationOptions) -> Self {
        let mut inward = Self {
            registry,
            options,
            placeholder: Placeholder::of(registry),
            block_entity: block_entity(registry),
            water: registry.id(&options.water),
            states: Vec::new(),
            components: schematic.components.clone(),
            block_entities: FxHashMap::default(),
            uniform: FxHashMap::default(),
            nothing: Arc::new([]),
            memory: 0,
            report: TranslationReport::default(),
        };
        inward.states = schematic.palette.iter().map(|state| inward.state(state)).collect();
        inward
    }

    /// Counts the remaining block entities and returns the report.
    pub fn finish(mut self) -> TranslationReport {
        self.report.block_entities += self.block_entities.values().map(|left| left.len() as u64).sum::<u64>();
        self.report
    }

    /// Counts bytes that are about to be allocated.
    pub fn take_memory(&mut self, bytes: u64) -> Result<()> {
        self.memory = self.memory.saturating_add(bytes);
        let limit = self.options.memory;
        match self.memory > limit {
            true => Err(TranslationError::TooLarge { what: "bytes of memory", limit, found: self.memory }),
            false => Ok(()),
        }
    }

    /// Sorts block entities by chunk. Must be called before the chunks are translated.
    pub fn add_block_entities(&mut self, entities: Vec<BlockEntity>) -> Result<()> {
        self.take_memory(2 * size_of_val(entities.as_slice()) as u64)?;
        for entity in entities {
            let [x, y, z] = entity.position.map(|at| i64::from(at) >> 4);
            self.block_entities.entry(ChunkPos::new(x, y, z)).or_default().push(entity);
        }
        Ok(())
    }

    fn state(&self, state: &str) -> State {
        if state == AIR {
            return State::Block(BlockId::AIR);
        }
        if let Some(block) = self.registry.id(state) {
            return State::Block(block);
        }
        let text = || match BlockName::parse(state.to_owned()) {
            Ok(name) if !self.options.turn.is_none() => {
                turned_state(&name, self.options.turn).as_str().as_bytes().into()
            }
            _ => state.as_bytes().into(),
        };
        let known_dry = dry(state).and_then(|dry| self.registry.id(&dry));
        match known_dry.filter(|_| self.water.is_some()) {
            Some(dry) => State::Wet(dry, text()),
            None => State::Unknown(text()),
        }
    }

    /// Translates a chunk; `None` if it is air.
    pub fn chunk(&mut self, at: ChunkPos, chunk: Arc<Chunk>) -> Result<Option<Arc<Chunk>>> {
        let mut source = Arc::unwrap_or_clone(chunk);
        source.compact();
        let entities = self.block_entities.remove(&at).unwrap_or_default();
        let layered = source.layered_blocks().map(|(_, _, block)| block);
        let mut is_simple = entities.is_empty() && !source.has_components();
        let mut has_parts = !is_simple;
        for number in source.palette().iter().copied().chain(layered) {
            match self.states.get(number.index() as usize) {
                Some(State::Block(block)) => {
                    has_parts |= !self.registry.components(*block).is_empty();
                    has_parts |= self.registry.successor(*block).is_some();
                }
                Some(_) => is_simple = false,
                None => {
                    let number = number.index().into();
                    return Err(TranslationError::Unlisted { what: "block", number, list: "palette of the schematic" });
                }
            }
        }
        let chunk = match is_simple && source.rename_blocks(|number| self.block(number)) {
            true => source,
            false => self.assembled(&source, entities)?,
        };
        let chunk = if has_parts || !is_simple { self.completed(chunk)? } else { chunk };
        Ok((!is_air(&chunk)).then(|| shared(&mut self.uniform, chunk)))
    }

    /// The block for a number, regardless of its cell.
    fn block(&self, number: BlockId) -> BlockId {
        match self.states.get(number.index() as usize) {
            Some(State::Block(block) | State::Wet(block, _)) => *block,
            Some(State::Unknown(_)) | None => self.placeholder.map_or(BlockId::AIR, |it| it.block),
        }
    }

    /// The chunk with its layers, components and block entities.
    fn assembled(&mut self, source: &Chunk, entities: Vec<BlockEntity>) -> Result<Chunk> {
        let mut assembly = ChunkAssembly::default();
        assembly.copy_renamed(source, |number| self.block(number), |_, _, _| None);
        let (mut placeholders, mut wet) = (0, 0);
        for position in ChunkPart::WHOLE.cells() {
            let number = source.block(position);
            let text = match self.states.get(number.index() as usize) {
                Some(State::Unknown(text)) => text,
                Some(State::Wet(_, text)) => match self.water {
                    Some(water) if source.layer_count(position) == 1 => {
                        assembly.push_layer(position, 1, water);
                        wet += 1;
                        continue;
                    }
                    _ => text,
                },
                _ => continue,
            };
            let Some(Placeholder { block, state, block_entity }) = self.placeholder else { return Err(missing(text)) };
            placeholders += 1;
            assembly.set_block(position, block);
            assembly.push_value(position, state, text);
            assembly.push_value(position, block_entity, &self.nothing);
        }
        let layers: Vec<_> = source.layered_blocks().collect();
        let mut chunk = assembly.finish();
        self.report.placeholders += placeholders;
        self.take_memory(placeholders * PLACEHOLDER_BYTES + wet * LAYER_BYTES)?;
        for (position, layer, number) in layers {
            self.place_layer(&mut chunk, position, layer, number)?;
        }
        if source.has_components() {
            self.place_components(source, &mut chunk)?;
        }
        for entity in entities {
            let is_taken = self.place_block_entity(&mut chunk, entity)?;
            self.report.block_entities += u64::from(!is_taken);
        }
        Ok(chunk)
    }

    /// Places an unknown or waterlogged block above layer 0. Its number has become that of a placeholder or of the dry state.
    fn place_layer(&mut self, chunk: &mut Chunk, position: [usize; 3], layer: u8, number: BlockId) -> Result<()> {
        let Some(State::Unknown(text) | State::Wet(_, text)) = self.states.get(number.index() as usize) else {
            return Ok(());
        };
        let text = text.clone();
        let Some(it) = self.placeholder else { return Err(missing(&text)) };
        self.report.placeholders += 1;
        self.take_memory(PLACEHOLDER_BYTES + text.len() as u64)?;
        // This cannot fail: the layer exists.
        let _ = chunk.set_block_at(position, layer, it.block);
        Ok(chunk.set_component(self.registry, position, layer, it.state, &text)?)
    }

    fn place_components(&mut self, source: &Chunk, chunk: &mut Chunk) -> Result<()> {
        for position in ChunkPart::WHOLE.cells() {
            for layer in (0..=u8::MAX).take(source.layer_count(position)) {
                let mut values = Vec::new();
                for (number, value) in source.components(position, layer) {
                    let record = self.record(number)?;
                    match self.registry.component_value(record, value)? {
                        Some(value) => values.push(value),
                        None => self.report.components += 1,
                    }
                }
                self.place_values(chunk, position, layer, values)?;
            }
        }
        Ok(())
    }

    fn record(&self, component: BlockComponentId) -> Result<&BlockComponentRecord> {
        let number = component.place();
        let record = usize::try_from(number).ok().and_then(|number| self.components.get(number));
        record.ok_or(TranslationError::Unlisted { what: "component", number, list: "list of the schematic" })
    }

    /// Sets a block's components. If its name has several ids, the block gets the id with exactly these components.
    fn place_values(
        &mut self,
        chunk: &mut Chunk,
        position: [usize; 3],
        layer: u8,
        values: Vec<Value<'_>>,
    ) -> Result<()> {
        let Some(block) = chunk.block_at(position, layer).filter(|_| !values.is_empty()) else { return Ok(()) };
        let registry = self.registry;
        let has = |block: BlockId, id: BlockComponentId| registry.component_layout(block, id).is_some();
        let is_all = |block: BlockId| {
            registry.components(block).len() == values.len() && values.iter().all(|(id, _)| has(block, *id))
        };
        let block = match is_all(block) {
            true => block,
            false => {
                registry.ids_of(registry.block(block).name()).iter().copied().find(|id| is_all(*id)).unwrap_or(block)
            }
        };
        // This cannot fail: the layer exists.
        let _ = chunk.set_block_at(position, layer, block);
        for (id, value) in values {
            match has(block, id) {
                true => chunk.set_component(registry, position, layer, id, &value)?,
                false => self.report.components += 1,
            }
        }
        Ok(())
    }

    /// Sets a block entity. Returns `false` if its block has no component for it.
    fn place_block_entity(&mut self, chunk: &mut Chunk, entity: BlockEntity) -> Result<bool> {
        let position = entity.position.map(|at| at as usize % CHUNK_SIZE);
        let block = chunk.block(position);
        let has_room = |chunk: &mut Chunk, id: BlockComponentId| {
            let has = |block: BlockId| self.registry.component_layout(block, id).is_some();
            if has(block) {
                return true;
            }
            // Another id of the same name may have the component; no component is set yet.
            let name = self.registry.block(block).name();
            let other = self.registry.ids_of(name).iter().copied().rev().find(|other| has(*other));
            let is_bare = chunk.components(position, 0).next().is_none();
            other.filter(|_| is_bare && block != BlockId::AIR).is_some_and(|other| {
                chunk.set_block(position, other);
                true
            })
        };
        let Some(id) = self.block_entity.filter(|id| has_room(chunk, *id)) else { return Ok(false) };
        let is_free = chunk.component(position, 0, id).is_none_or(<[u8]>::is_empty);
        let bytes = if is_free { entity.to_bytes().ok() } else { None };
        let Some(bytes) = bytes else { return Ok(false) };
        self.take_memory(bytes.len() as u64 + PLACEHOLDER_BYTES)?;
        chunk.set_component(self.registry, position, 0, id, &bytes)?;
        Ok(true)
    }

    /// The chunk with current block types and with all components of its blocks.
    fn completed(&mut self, chunk: Chunk) -> Result<Chunk> {
        let chunk = chunk.upgraded(self.registry)?.unwrap_or(chunk);
        // A file of a few bytes can be full of blocks that each have components.
        self.take_memory(self.component_bytes(&chunk))?;
        Ok(chunk.with_all_components(self.registry)?.unwrap_or(chunk))
    }

    /// The minimum memory of the components of the chunk's blocks.
    fn component_bytes(&self, chunk: &Chunk) -> u64 {
        let of_block = |block: BlockId| {
            let sizes = self.registry.components(block).iter().map(|layout| layout.size);
            sizes.map(|size| size.map_or(VALUE_BYTES, u64::from)).sum::<u64>()
        };
        let costs: FxHashMap<BlockId, u64> = chunk.palette().iter().map(|block| (*block, of_block(*block))).collect();
        let layered = chunk.layered_blocks().map(|(_, _, block)| of_block(block)).sum::<u64>();
        if costs.values().all(|bytes| *bytes == 0) {
            return layered;
        }
        layered + chunk.blocks().map(|block| costs.get(&block).copied().unwrap_or(0)).sum::<u64>()
    }
}

fn missing(state: &[u8]) -> TranslationError {
    TranslationError::NoPlaceholder { state: shortened(&String::from_utf8_lossy(state)) }
}

/// The error for a snapshot or a schematic that cannot be translated to the other form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TranslationError {
    /// A limit is exceeded.
    #[error("expected {limit} {what} or less, found {found}")]
    TooLarge {
        /// The unit that is counted.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The number that was found, as far as it is known.
        found: u64,
    },
    /// A block or a block component has a number that the registry or the schematic does not have.
    #[error("{what} {number} occurs, but is not in the {list}")]
    Unlisted {
        /// The kind of number: a block or a component.
        what: &'static str,
        /// Its number.
        number: u64,
        /// The list that lacks it: the registry, or the schematic's list.
        list: &'static str,
    },
    /// A state is unknown, and the registry has no placeholder block.
    #[error(
        "\"{state}\" is not in the registry, and neither is the block that stands for such states: call \
         register_schematic_blocks"
    )]
    NoPlaceholder {
        /// The state.
        state: String,
    },
    /// A block would be outside of the grid.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A value of a component cannot be converted to the registry's version.
    #[error(transparent)]
    Value(#[from] BlockComponentError),
    /// A block cannot be converted to its current type.
    #[error(transparent)]
    Upgrade(#[from] BlockRegistryError),
    /// A component does not fit its block.
    #[error(transparent)]
    Component(#[from] BlockValueError),
}

/// The placeholder block for unknown states, and its components.
#[derive(Clone, Copy)]
pub(super) struct Placeholder {
    pub block: BlockId,
    pub state: BlockComponentId,
    pub block_entity: BlockComponentId,
}

impl Placeholder {
    /// `None` if the registry does not have it in the form that this crate registers.
    pub fn of(registry: &BlockRegistry) -> Option<Self> {
        let block_entity = block_entity(registry)?;
        let state = registry.component_of(&variable(STATE))?;
        let has = |block: &BlockId| {
            [state, block_entity].into_iter().all(|id| registry.component_layout(*block, id).is_some())
        };
        let block = registry.ids_of(PLACEHOLDER).iter().copied().rev().find(has)?;
        Some(Self { block, state, block_entity })
    }
}

/// The component for block entities of other programs.
pub(super) fn block_entity(registry: &BlockRegistry) -> Option<BlockComponentId> {
    registry.component_of(&variable(BLOCK_ENTITY))
}

fn variable(name: &str) -> BlockComponentRecord {
    BlockComponentRecord { name: name.to_owned(), version: 0, size: None }
}
