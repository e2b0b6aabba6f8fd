//! [`BlockRegistry`]: the block types of a world and their numbers.

#[cfg(test)]
mod component_tests;
mod error;
#[cfg(test)]
mod tests;

use super::block_name::{check_base, joined};
use super::component_table::ComponentTable;
use super::nearest_name::nearest_name;
use super::{
    BlockComponent, BlockComponentError, BlockComponentId, BlockComponentLayout, BlockComponentRecord, BlockId,
    BlockLayout, BlockName, BlockRecord, BlockSet, BlockShape, BlockStates, BlockType,
};
pub use error::BlockRegistryError;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;

const AIR_NAME: &str = "terrane:air";

/// The block that stands for a state of another program that the registry does not know. See
/// [`register_schematic_blocks`](BlockRegistry::register_schematic_blocks).
pub const PLACEHOLDER: &str = "terrane:placeholder";
/// The block component with the text of the state that a [`PLACEHOLDER`] stands for.
pub const STATE: &str = "terrane:state";
/// The block component with the data that other programs store for a block besides its state:
/// [`BlockEntity::to_bytes`](crate::snapshot::schematic::BlockEntity::to_bytes), or nothing.
pub const BLOCK_ENTITY: &str = "terrane:block_entity";

static UNKNOWN: BlockType = BlockType::placeholder(Cow::Borrowed("terrane:unknown"));

/// All block types of a world, numbered in the order of registration. Id 0 is always `terrane:air`.
///
/// An id always stands for the same name and list of components, whatever the game registers later, so stored chunks
/// stay readable. A renamed type keeps its id. A type whose components changed gets a new id, which is the
/// [successor](Self::successor) of the old one.
///
/// ```
/// # use terrane_world::block::{BlockRegistry, BlockType};
/// let mut blocks = BlockRegistry::from_names(["terrane:air", "game:brick"])?;
/// assert_eq!(blocks.placeholders().count(), 1);
///
/// let brick = blocks.register(BlockType::new("game:brick").with_color([150, 70, 60]))?;
/// assert_eq!(brick.index(), 1);
/// assert_eq!(blocks.placeholders().count(), 0);
/// # Ok::<(), terrane_world::block::BlockRegistryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockRegistry {
    blocks: Vec<Entry>,
    /// All ids of each name and each former name of a registered type, the current id last. The others have other
    /// components, until the game registers the type and their successors are known.
    ids: FxHashMap<Cow<'static, str>, Vec<BlockId>>,
    tags: FxHashMap<String, BlockSet>,
    components: ComponentTable,
    fingerprint: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    block: BlockType,
    components: Vec<BlockComponentLayout>,
    is_placeholder: bool,
    /// The id that this block is converted to; its own, unless its type has another id by now.
    successor: BlockId,
}

impl Default for BlockRegistry {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(clippy::len_without_is_empty, reason = "air is always there")]
impl BlockRegistry {
    /// A registry that only contains air.
    pub fn new() -> Self {
        let air = BlockType::new(AIR_NAME).with_color([0; 3]).with_shape(BlockShape::Empty);
        let mut registry = Self {
            blocks: Vec::new(),
            ids: FxHashMap::default(),
            tags: FxHashMap::default(),
            components: ComponentTable::default(),
            fingerprint: 0,
        };
        registry.push(air, Vec::new(), false);
        // Must be the same in every registry.
        registry.fingerprint = 0;
        registry
    }

    /// The registry of a stored world, from its [`names`](Self::names), for blocks without components.
    ///
    /// All blocks but air are placeholders until the game [registers](Self::register) the same name.
    pub fn from_names(names: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, BlockRegistryError> {
        let record = |name: String| BlockRecord { name, components: Vec::new() };
        Self::from_records(names.into_iter().map(|name| record(name.into())).collect(), Vec::new())
    }

    /// The registry of a stored world, from its [block records](Self::block_records) and
    /// [component records](Self::component_records).
    ///
    /// All blocks but air are placeholders until the game registers the same name, or a type with that former name.
    pub fn from_records(
        blocks: Vec<BlockRecord>,
        components: Vec<BlockComponentRecord>,
    ) -> Result<Self, BlockRegistryError> {
        let mut registry = Self { components: ComponentTable::from_records(components)?, ..Self::new() };
        let air = BlockRecord { name: AIR_NAME.into(), components: Vec::new() };
        let mut blocks = blocks.into_iter();
        match blocks.next() {
            Some(first) if first == air => {}
            found => {
                let found = found.map(|record| record.name);
                let what = format!("it must be {AIR_NAME:?} without components, found {found:?}");
                return Err(BlockRegistryError::Stored { id: BlockId::AIR, what });
            }
        }
        blocks.try_for_each(|record| registry.restore(record)).map(|()| registry)
    }

    fn restore(&mut self, BlockRecord { name, components }: BlockRecord) -> Result<(), BlockRegistryError> {
        let id = self.next_id(&name)?;
        let stored = |what| BlockRegistryError::Stored { id, what };
        if self.canonical(Cow::Owned(name.clone()))? != name {
            return Err(stored(format!("the properties of {name:?} are not in order")));
        }
        let layouts = components.into_iter().map(|number| {
            let layout = self.components.layout(BlockComponentId::new(number));
            let expected = "that the list of components does not have";
            layout.ok_or_else(|| stored(format!("{name:?} has a component {number:#x} {expected}")))
        });
        let layouts: Vec<BlockComponentLayout> = layouts.collect::<Result<_, _>>()?;
        if !layouts.is_sorted_by(|a, b| a.id < b.id) {
            return Err(stored(format!("the components of {name:?} are not in order")));
        }
        if let Some(first) = self.ids_of(&name).iter().find(|first| self.components(**first) == layouts) {
            return Err(stored(format!("block {first} is named {name:?} too, and has the same components")));
        }
        self.push(BlockType::placeholder(name.into()), layouts, true);
        Ok(())
    }

    /// Adds a block component. Its id does not change in a world until its schema does. Register components before the
    /// blocks that have them.
    ///
    /// # Errors
    /// Fails if the name is invalid or taken, or if the world has values of a version that the game cannot read.
    pub fn register_component(&mut self, component: BlockComponent) -> Result<BlockComponentId, BlockRegistryError> {
        Ok(self.components.register(component)?)
    }

    /// Adds a type, or fills in the placeholder with its name. Returns the type's current id.
    ///
    /// Blocks that the world has under a [former name](BlockType::formerly) become the same type. Components that the
    /// world has on blocks of this type stay, even if the type no longer names them: no stored data is lost.
    pub fn register(&mut self, block: BlockType) -> Result<BlockId, BlockRegistryError> {
        let block = self.checked(block)?;
        let known = self.known(&block)?;
        let layouts = self.layouts(&block, &known)?;
        let id = self.current(&block, &known, layouts)?;
        let names: Vec<_> = [&block.name].into_iter().chain(&block.former_names).cloned().collect();
        for tag in &block.tags {
            let tag = self.tags.entry(tag.to_string()).or_default();
            known.iter().chain([&id]).for_each(|id| tag.insert(*id));
        }
        self.fill(id, block.clone(), id);
        for other in known.iter().copied().filter(|other| *other != id) {
            let name = self.name_beside(other, &block, &known, id);
            let successor = if self.can_become(other, id) { id } else { other };
            self.fill(other, BlockType { name, ..block.clone() }, successor);
        }
        for name in names {
            self.ids.insert(name, vec![id]);
        }
        Ok(id)
    }

    /// Adds all states of a type and returns their ids, the default's first. The name without properties also finds
    /// the default.
    pub fn register_states(&mut self, states: BlockStates) -> Result<Vec<BlockId>, BlockRegistryError> {
        let states = states.types()?;
        for state in &states {
            // Register all of them or none.
            let state = self.checked(state.clone())?;
            self.layouts(&state, &self.known(&state)?)?;
        }
        states.into_iter().map(|state| self.register(state)).collect()
    }

    /// Adds the blocks of a landscape: `terrane:stone`, `dirt`, `grass`, `sand`, `gravel`, `water`, `snow`, `wood` and
    /// `leaves`. Types that the game has already registered under these names stay as they are.
    pub fn register_basic_blocks(&mut self) {
        let basic_blocks = [
            BlockType::new("terrane:stone").with_color([125, 122, 117]),
            BlockType::new("terrane:dirt").with_color([119, 90, 66]),
            BlockType::new("terrane:grass").with_color([104, 139, 76]),
            BlockType::new("terrane:sand").with_color([211, 196, 152]),
            BlockType::new("terrane:gravel").with_color([142, 136, 128]),
            BlockType::new("terrane:water")
                .with_color([66, 110, 142])
                .with_shape(BlockShape::Liquid { level: 8 })
                .transparent()
                .with_attenuation(2),
            BlockType::new("terrane:snow").with_color([236, 240, 242]),
            BlockType::new("terrane:wood").with_color([101, 78, 54]),
            BlockType::new("terrane:leaves").with_color([76, 111, 62]).transparent(),
        ];
        for block in basic_blocks {
            // These names are valid, so this only fails for a type that already exists.
            let _ = self.register(block);
        }
    }

    /// Adds the types for schematics of other programs: the components [`STATE`] and [`BLOCK_ENTITY`], and the block
    /// [`PLACEHOLDER`], which has both. Types that the game has already registered under these names stay as they are.
    ///
    /// After this call a game's own types may name [`BLOCK_ENTITY`] as a component too.
    pub fn register_schematic_blocks(&mut self) {
        let placeholder = BlockType { name: PLACEHOLDER.into(), ..UNKNOWN.clone() };
        // These names are valid, so this only fails for types that already exist.
        for component in [STATE, BLOCK_ENTITY] {
            let _ = self.register_component(BlockComponent::variable(component));
        }
        let _ = self.register(placeholder.with_component(STATE).with_component(BLOCK_ENTITY));
    }

    /// The id of the type with this name or former name. Properties may be in any order; a name without properties is
    /// the default state.
    pub fn id(&self, name: &str) -> Option<BlockId> {
        let written = self.ids.get(name);
        let found = written.or_else(|| self.ids.get(BlockName::parse(name.to_owned()).ok()?.as_str()));
        found?.last().copied()
    }

    /// The most similar name of a type, for a name that no type has; `None` if no name is similar.
    pub fn nearest_name(&self, name: &str) -> Option<&str> {
        nearest_name(name, self.names())
    }

    /// The state of the type `base` with these properties; the other properties have the values of the default.
    pub fn state(&self, base: &str, properties: &[(&str, &str)]) -> Option<BlockId> {
        let change = |block, (name, value): &(&str, &str)| self.with_property(block, name, value);
        match self.id(base) {
            Some(default) => properties.iter().try_fold(default, change),
            // States that were not registered together have no default, so all properties must be given.
            None => self.id(&joined(base, properties)),
        }
    }

    /// The state with another value of one property; `None` if there is none.
    pub fn with_property(&self, block: BlockId, property: &str, value: &str) -> Option<BlockId> {
        let name = BlockName::parse(self.block(block).name.clone()).ok()?;
        self.id(name.with_property(property, value)?.as_str())
    }

    /// Returns `true` if this registry has issued the id.
    pub fn contains(&self, id: BlockId) -> bool {
        self.entry(id).is_some()
    }

    /// The type with this id; a placeholder if no registry has issued the id.
    pub fn block(&self, id: BlockId) -> &BlockType {
        self.entry(id).map_or(&UNKNOWN, |entry| &entry.block)
    }

    /// The blocks that have the tag; `None` if no registered type has it.
    pub fn tag(&self, tag: &str) -> Option<&BlockSet> {
        self.tags.get(tag)
    }

    /// Returns `true` if the block has the tag. To ask for many blocks, get the [set](Self::tag) once.
    pub fn has_tag(&self, block: BlockId, tag: &str) -> bool {
        self.tag(tag).is_some_and(|blocks| blocks.contains(block))
    }

    /// The component that the game has registered under this name.
    pub fn component(&self, name: &str) -> Option<BlockComponentId> {
        self.components.registered(name)
    }

    /// The stored record of a component: its name, version and size.
    pub fn component_record(&self, id: BlockComponentId) -> Option<&BlockComponentRecord> {
        self.components.record(id)
    }

    /// The component with this record, registered or not.
    pub(crate) fn component_of(&self, record: &BlockComponentRecord) -> Option<BlockComponentId> {
        self.components.find(record)
    }

    /// Converts a value of any component to one that blocks of this registry can have, and returns that component's
    /// id; `None` if the registry has no such component.
    ///
    /// # Errors
    /// If the game's migration refuses the value.
    pub(crate) fn component_value<'a>(
        &self,
        record: &BlockComponentRecord,
        value: &'a [u8],
    ) -> Result<Option<(BlockComponentId, Cow<'a, [u8]>)>, BlockComponentError> {
        self.components.import(record, value)
    }

    /// The id that a block is converted to because its type's components changed or two types became one; `None` if it
    /// stays the same.
    pub fn successor(&self, block: BlockId) -> Option<BlockId> {
        self.entry(block).map(|entry| entry.successor).filter(|successor| *successor != block)
    }

    /// Converts a block to the current id of its type. Also returns the values of the type's current components in the order
    /// of the [layout](BlockLayout::components): migrated if their schema changed, zeros or empty if they are new.
    pub fn upgrade<'a>(
        &self,
        block: BlockId,
        values: &[&'a [u8]],
    ) -> Result<(BlockId, Vec<Cow<'a, [u8]>>), BlockRegistryError> {
        let old = self.components(block);
        if old.len() != values.len() {
            return Err(BlockRegistryError::Count { block, expected: old.len(), found: values.len() });
        }
        let Some(successor) = self.successor(block) else {
            return Ok((block, values.iter().map(|value| Cow::Borrowed(*value)).collect()));
        };
        let mut upgraded = Vec::new();
        for new in self.components(successor) {
            let from = old.iter().zip(values).find(|(old, _)| self.components.newest(old.id) == new.id);
            upgraded.push(match from {
                Some((old, value)) => self
                    .components
                    .upgrade(old.id, value)
                    .map_err(|source| BlockRegistryError::Value { block, source })?,
                None => Cow::Owned(new.unset()),
            });
        }
        Ok((successor, upgraded))
    }

    /// All names, in the order of their ids.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.blocks.iter().map(|entry| entry.block.name())
    }

    /// The records that a world stores of its blocks, in the order of their ids.
    pub fn block_records(&self) -> impl ExactSizeIterator<Item = BlockRecord> {
        self.blocks.iter().map(|entry| BlockRecord {
            name: entry.block.name().to_owned(),
            components: entry.components.iter().map(|layout| layout.id.number()).collect(),
        })
    }

    /// The records that a world stores of its block components, in the order of their numbers.
    pub fn component_records(&self) -> impl ExactSizeIterator<Item = &BlockComponentRecord> {
        self.components.records()
    }

    /// The number of types, including placeholders and air.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The ids that the stored world uses and the game has not registered, ascending.
    pub fn placeholders(&self) -> impl Iterator<Item = BlockId> {
        (0..).zip(&self.blocks).filter(|(_, entry)| entry.is_placeholder).map(|(index, _)| BlockId::new(index))
    }

    /// Registries with different ids or different solid blocks have different fingerprints. Only valid within this process.
    #[doc(hidden)]
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Validates a type and returns it with its names in canonical form.
    fn checked(&self, mut block: BlockType) -> Result<BlockType, BlockRegistryError> {
        block.name = self.canonical(block.name)?;
        for name in mem::take(&mut block.former_names) {
            let name = self.canonical(name)?;
            if name != block.name && !block.former_names.contains(&name) {
                block.former_names.push(name);
            }
        }
        if block.light > BlockType::MAX_LIGHT {
            return Err(BlockRegistryError::InvalidLight { name: block.name.into(), level: block.light });
        }
        let attenuation = block.attenuation();
        if attenuation > BlockType::MAX_LIGHT {
            return Err(BlockRegistryError::InvalidAttenuation { name: block.name.into(), attenuation });
        }
        let height = block.collision_height;
        if height > BlockType::MAX_COLLISION_HEIGHT {
            return Err(BlockRegistryError::InvalidCollisionHeight { name: block.name.into(), height });
        }
        let invalid = |tag: &&Cow<'static, str>| check_base(tag).is_err();
        match block.tags.iter().find(invalid) {
            Some(tag) => Err(BlockRegistryError::InvalidTag { name: block.name.into(), tag: tag.to_string() }),
            None => Ok(block),
        }
    }

    fn canonical(&self, name: Cow<'static, str>) -> Result<Cow<'static, str>, BlockRegistryError> {
        match BlockName::parse(name.clone()) {
            Ok(canonical) => Ok(canonical.into_text()),
            Err(source) => Err(BlockRegistryError::InvalidName { id: self.next_id(&name)?, name: name.into(), source }),
        }
    }

    /// The ids that the world has for the type under all of its names.
    fn known(&self, block: &BlockType) -> Result<Vec<BlockId>, BlockRegistryError> {
        let mut known = BTreeSet::new();
        for name in [&block.name].into_iter().chain(&block.former_names) {
            for id in self.ids_of(name).iter().copied() {
                if !self.blocks[id.index() as usize].is_placeholder {
                    return Err(BlockRegistryError::AlreadyRegistered { id, name: name.to_string() });
                }
                known.insert(id);
            }
        }
        Ok(known.into_iter().collect())
    }

    /// The components of the type: those that it names, and those that the world has on such blocks.
    fn layouts(&self, block: &BlockType, known: &[BlockId]) -> Result<Vec<BlockComponentLayout>, BlockRegistryError> {
        let mut ids = BTreeSet::new();
        for component in &block.components {
            let unknown =
                || BlockRegistryError::UnknownComponent { name: block.name().into(), component: component.to_string() };
            ids.insert(self.components.registered(component).ok_or_else(unknown)?);
        }
        for stored in known.iter().flat_map(|id| self.components(*id)) {
            ids.insert(self.components.newest(stored.id));
        }
        Ok(ids.into_iter().filter_map(|id| self.components.layout(id)).collect())
    }

    /// The id of a type with these components: a known id of one of its names, or a new id.
    fn current(
        &mut self,
        block: &BlockType,
        known: &[BlockId],
        layouts: Vec<BlockComponentLayout>,
    ) -> Result<BlockId, BlockRegistryError> {
        let mut same = known.iter().copied().filter(|id| self.components(*id) == layouts);
        let first = same.clone().next();
        match same.find(|id| self.block(*id).name == block.name).or(first) {
            Some(id) => Ok(id),
            None => {
                self.next_id(block.name())?;
                Ok(self.push(BlockType::placeholder(block.name.clone()), layouts, true))
            }
        }
    }

    /// The name of a non-current id of the type: the type's name, unless another id has that name with the same components.
    fn name_beside(&self, other: BlockId, block: &BlockType, known: &[BlockId], current: BlockId) -> Cow<'static, str> {
        let mut beside = known.iter().copied().chain([current]).filter(|id| *id != other);
        let is_taken =
            beside.any(|id| self.block(id).name == block.name && self.components(id) == self.components(other));
        if is_taken { self.block(other).name.clone() } else { block.name.clone() }
    }

    /// Returns `true` if a block loses no data when it is converted to the id `to`.
    fn can_become(&self, from: BlockId, to: BlockId) -> bool {
        let to = self.components(to);
        self.components(from).iter().all(|layout| {
            let newest = self.components.newest(layout.id);
            self.components.can_upgrade(layout.id) && to.iter().any(|layout| layout.id == newest)
        })
    }

    /// Assigns a registered type to an id.
    fn fill(&mut self, id: BlockId, block: BlockType, successor: BlockId) {
        let entry = &mut self.blocks[id.index() as usize];
        // The fingerprint is a sum, so one type can be exchanged for another.
        self.fingerprint = self.fingerprint.wrapping_sub(fingerprint(id, &entry.block));
        self.fingerprint = self.fingerprint.wrapping_add(fingerprint(id, &block));
        (entry.block, entry.is_placeholder, entry.successor) = (block, false, successor);
    }

    fn push(&mut self, block: BlockType, components: Vec<BlockComponentLayout>, is_placeholder: bool) -> BlockId {
        let id = BlockId::new(self.blocks.len() as u32);
        // The newest id is the current one until the game registers the type.
        self.ids.entry(block.name.clone()).or_default().push(id);
        self.fingerprint = self.fingerprint.wrapping_add(fingerprint(id, &block));
        self.blocks.push(Entry { block, components, is_placeholder, successor: id });
        id
    }

    fn next_id(&self, name: &str) -> Result<BlockId, BlockRegistryError> {
        let index = u32::try_from(self.blocks.len());
        index.map(BlockId::new).map_err(|_| BlockRegistryError::Full { name: name.into() })
    }

    /// All ids of a canonical name, the current id last.
    pub(crate) fn ids_of(&self, name: &str) -> &[BlockId] {
        self.ids.get(name).map_or(&[], Vec::as_slice)
    }

    fn entry(&self, id: BlockId) -> Option<&Entry> {
        self.blocks.get(id.index() as usize)
    }
}

impl BlockLayout for BlockRegistry {
    fn components(&self, block: BlockId) -> &[BlockComponentLayout] {
        self.entry(block).map_or(&[], |entry| &entry.components)
    }
}

fn fingerprint(id: BlockId, block: &BlockType) -> u64 {
    // Unlike the hasher of `ids`, this one does not add hashes up. A sum would not depend on which id has which name.
    let mut hasher = DefaultHasher::new();
    (id, block.name(), block.is_solid()).hash(&mut hasher);
    hasher.finish()
}
