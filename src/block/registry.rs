use super::{BlockId, BlockType};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use thiserror::Error;

const AIR_NAME: &str = "terrane:air";

static UNKNOWN: BlockType = BlockType::placeholder(Cow::Borrowed("terrane:unknown"));

/// Every type of block of a world, numbered in the order of registration. Id 0 is always `terrane:air`.
///
/// ```
/// # use bevy_terrane::block::{BlockRegistry, BlockType};
/// let mut blocks = BlockRegistry::from_names(vec!["terrane:air".into(), "game:brick".into()])?;
/// assert_eq!(blocks.placeholders().count(), 1);
///
/// let brick = blocks.register(BlockType::new("game:brick").with_color([150, 70, 60]))?;
/// assert_eq!(brick.index(), 1);
/// assert_eq!(blocks.placeholders().count(), 0);
/// # Ok::<(), bevy_terrane::block::BlockRegistryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockRegistry {
    blocks: Vec<Entry>,
    ids: FxHashMap<Cow<'static, str>, BlockId>,
    fingerprint: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    block: BlockType,
    is_placeholder: bool,
}

/// Why a type of block cannot be registered, or a stored list of names cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BlockRegistryError {
    /// The name is not `namespace:path` of lower case ASCII letters, digits, `_`, `-`, `.` and `/`.
    #[error("block {id}: the name {name:?} is not `namespace:path` of a-z, 0-9, `_`, `-`, `.` and `/`")]
    InvalidName {
        /// The id that the block would have.
        id: BlockId,
        /// The name as given.
        name: String,
    },
    /// The game registered two types under one name.
    #[error("{name:?} is already registered, as block {id}")]
    AlreadyRegistered {
        /// The id of the type registered first.
        id: BlockId,
        /// The name of both.
        name: String,
    },
    /// A stored list does not begin with `terrane:air`.
    #[error("block 0 must be \"terrane:air\", found {found:?}")]
    FirstIsNotAir {
        /// The first name of the list, if it has any.
        found: Option<String>,
    },
    /// A stored list has one name twice.
    #[error("blocks {first} and {second} are both named {name:?}")]
    DuplicateName {
        /// The first place of the name.
        first: BlockId,
        /// The second place of the name.
        second: BlockId,
        /// The name of both.
        name: String,
    },
    /// Every id is taken.
    #[error("there is no id left for {name:?}")]
    Full {
        /// The name of the type that found no place.
        name: String,
    },
}

impl Default for BlockRegistry {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(clippy::len_without_is_empty, reason = "air is always there")]
impl BlockRegistry {
    /// A registry that knows air only.
    pub fn new() -> Self {
        let air = BlockType::new(AIR_NAME).with_color([0; 3]).transparent().non_solid();
        Self {
            ids: FxHashMap::from_iter([(Cow::Borrowed(AIR_NAME), BlockId::AIR)]),
            blocks: vec![Entry { block: air, is_placeholder: false }],
            fingerprint: 0,
        }
    }

    /// The registry of a stored world, from its [`names`](Self::names).
    ///
    /// All but air are placeholders until the game [registers](Self::register) the same name.
    pub fn from_names(names: Vec<String>) -> Result<Self, BlockRegistryError> {
        let mut registry = Self::new();
        let mut names = names.into_iter();
        match names.next() {
            Some(name) if name == AIR_NAME => {}
            found => return Err(BlockRegistryError::FirstIsNotAir { found }),
        }
        for name in names {
            let second = registry.next_id(&name)?;
            if let Some(first) = registry.id(&name) {
                return Err(BlockRegistryError::DuplicateName { first, second, name });
            }
            registry.push(second, Entry { block: BlockType::placeholder(name.into()), is_placeholder: true });
        }
        Ok(registry)
    }

    /// Adds a type, or gives a placeholder of that name its properties. Returns the id that it has from now on.
    pub fn register(&mut self, block: BlockType) -> Result<BlockId, BlockRegistryError> {
        let Some(id) = self.id(block.name()) else {
            let id = self.next_id(block.name())?;
            self.push(id, Entry { block, is_placeholder: false });
            return Ok(id);
        };
        let entry = &mut self.blocks[id.index() as usize];
        if !entry.is_placeholder {
            return Err(BlockRegistryError::AlreadyRegistered { id, name: block.name().into() });
        }
        // A sum, so that one type can be exchanged for another.
        self.fingerprint = self.fingerprint.wrapping_sub(fingerprint(id, &entry.block));
        self.fingerprint = self.fingerprint.wrapping_add(fingerprint(id, &block));
        *entry = Entry { block, is_placeholder: false };
        Ok(id)
    }

    /// Adds what a landscape needs: `terrane:stone`, `dirt`, `grass`, `sand`, `gravel`, `water`, `snow`, `wood` and
    /// `leaves`. Types that the game has already registered under these names stay as they are.
    pub fn register_basic_blocks(&mut self) {
        let basic_blocks = [
            BlockType::new("terrane:stone").with_color([125, 122, 117]),
            BlockType::new("terrane:dirt").with_color([119, 90, 66]),
            BlockType::new("terrane:grass").with_color([104, 139, 76]),
            BlockType::new("terrane:sand").with_color([211, 196, 152]),
            BlockType::new("terrane:gravel").with_color([142, 136, 128]),
            // Opaque: colors have no alpha, and the ground below need not be drawn.
            BlockType::new("terrane:water").with_color([66, 110, 142]).non_solid(),
            BlockType::new("terrane:snow").with_color([236, 240, 242]),
            BlockType::new("terrane:wood").with_color([101, 78, 54]),
            BlockType::new("terrane:leaves").with_color([76, 111, 62]),
        ];
        for block in basic_blocks {
            // These names are valid, so this only fails for a type that is already there.
            let _ = self.register(block);
        }
    }

    /// The id of the type with this name.
    pub fn id(&self, name: &str) -> Option<BlockId> {
        self.ids.get(name).copied()
    }

    /// The type with this id; one that no registry has given out shows as a placeholder.
    pub fn block(&self, id: BlockId) -> &BlockType {
        self.blocks.get(id.index() as usize).map_or(&UNKNOWN, |entry| &entry.block)
    }

    /// All names, in the order of their ids: what a world stores.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.blocks.iter().map(|entry| entry.block.name())
    }

    /// The number of types, placeholders and air included.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The ids that the stored world uses and the game has not registered, ascending.
    pub fn placeholders(&self) -> impl Iterator<Item = BlockId> {
        (0..).zip(&self.blocks).filter(|(_, entry)| entry.is_placeholder).map(|(index, _)| BlockId::new(index))
    }

    /// Two registries that give other ids, or hold other blocks to be solid, have other fingerprints. Good for this
    /// process only.
    pub(crate) const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn next_id(&self, name: &str) -> Result<BlockId, BlockRegistryError> {
        let index = u32::try_from(self.blocks.len()).map_err(|_| BlockRegistryError::Full { name: name.into() })?;
        let id = BlockId::new(index);
        if is_valid_name(name) { Ok(id) } else { Err(BlockRegistryError::InvalidName { id, name: name.into() }) }
    }

    fn push(&mut self, id: BlockId, entry: Entry) {
        self.ids.insert(entry.block.name().to_owned().into(), id);
        self.fingerprint = self.fingerprint.wrapping_add(fingerprint(id, &entry.block));
        self.blocks.push(entry);
    }
}

fn fingerprint(id: BlockId, block: &BlockType) -> u64 {
    // Not the hasher of `ids`: its hashes add up, and a sum of them would not see which id has which name.
    let mut hasher = DefaultHasher::new();
    (id, block.name(), block.is_solid()).hash(&mut hasher);
    hasher.finish()
}

fn is_valid_name(name: &str) -> bool {
    let is_valid_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'/'))
    };
    name.split_once(':').is_some_and(|(namespace, path)| is_valid_part(namespace) && is_valid_part(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn air_is_always_block_zero() {
        for registry in [BlockRegistry::new(), BlockRegistry::from_names(strings(&[AIR_NAME])).unwrap()] {
            assert_eq!(registry.id(AIR_NAME), Some(BlockId::AIR));
            assert_eq!(registry.len(), 1);
            assert_eq!(registry.placeholders().count(), 0);
            let air = registry.block(BlockId::default());
            assert!(!air.is_opaque() && !air.is_solid());
        }
    }

    #[test]
    fn a_type_keeps_what_it_was_built_with() {
        let mut registry = BlockRegistry::new();
        let glass = registry.register(BlockType::new("game:glass").with_color([1, 2, 3]).transparent()).unwrap();
        let vine = registry.register(BlockType::new("game:plants/vine".to_string()).non_solid()).unwrap();
        assert_eq!((glass, vine), (BlockId::new(1), BlockId::new(2)));
        let (glass, vine) = (registry.block(glass), registry.block(vine));
        assert_eq!((glass.color(), glass.is_opaque(), glass.is_solid()), ([1, 2, 3], false, true));
        assert_eq!((vine.name(), vine.is_opaque(), vine.is_solid()), ("game:plants/vine", true, false));
    }

    #[test]
    fn a_placeholder_keeps_its_id_when_the_game_registers_it() {
        let stored = strings(&[AIR_NAME, "game:old", "game:stone"]);
        let mut registry = BlockRegistry::from_names(stored).unwrap();
        assert_eq!(registry.placeholders().collect::<Vec<_>>(), [BlockId::new(1), BlockId::new(2)]);
        assert!(registry.block(BlockId::new(2)).is_opaque() && registry.block(BlockId::new(2)).is_solid());

        assert_eq!(registry.register(BlockType::new("game:new")), Ok(BlockId::new(3)));
        assert_eq!(registry.register(BlockType::new("game:stone").with_color([9; 3])), Ok(BlockId::new(2)));
        assert_eq!(registry.block(BlockId::new(2)).color(), [9; 3]);
        assert_eq!(registry.placeholders().collect::<Vec<_>>(), [BlockId::new(1)]);
        assert_eq!(registry.names().collect::<Vec<_>>(), [AIR_NAME, "game:old", "game:stone", "game:new"]);

        let again = registry.register(BlockType::new("game:stone")).unwrap_err();
        assert_eq!(again, BlockRegistryError::AlreadyRegistered { id: BlockId::new(2), name: "game:stone".into() });
        assert_eq!(registry.block(BlockId::new(2)).color(), [9; 3]);
    }

    #[test]
    fn names_are_checked() {
        let invalid = ["", ":", "stone", "game:", ":stone", "game:Stone", "game:a:b", "game:a b", "gäme:a", "game:a\n"];
        for name in invalid {
            let error = BlockRegistry::new().register(BlockType::new(name)).unwrap_err();
            assert_eq!(error, BlockRegistryError::InvalidName { id: BlockId::new(1), name: name.into() });
            assert_eq!(BlockRegistry::from_names(strings(&[AIR_NAME, name])).unwrap_err(), error);
        }
        assert!(BlockRegistry::new().register(BlockType::new("my-game_2.0:a/b.c-d_e9")).is_ok());
    }

    #[test]
    fn a_stored_list_begins_with_air_and_repeats_nothing() {
        let not_air = |found| Some(BlockRegistryError::FirstIsNotAir { found });
        assert_eq!(BlockRegistry::from_names(vec![]).err(), not_air(None));
        assert_eq!(BlockRegistry::from_names(strings(&["game:a", AIR_NAME])).err(), not_air(Some("game:a".into())));
        let (first, second) = (BlockId::new(1), BlockId::new(3));
        assert_eq!(
            BlockRegistry::from_names(strings(&[AIR_NAME, "game:a", "game:b", "game:a"])).err(),
            Some(BlockRegistryError::DuplicateName { first, second, name: "game:a".into() })
        );
        assert!(BlockRegistry::from_names(strings(&[AIR_NAME, AIR_NAME])).is_err());
    }

    #[test]
    fn what_ids_mean_shows_in_the_fingerprint() {
        let of = |types: [BlockType; 2]| {
            let mut registry = BlockRegistry::new();
            for block in types {
                registry.register(block).unwrap();
            }
            registry.fingerprint()
        };
        let (a, b) = (BlockType::new("game:a"), BlockType::new("game:b"));
        let ab = of([a.clone(), b.clone()]);
        assert_eq!(ab, of([a.clone().with_color([3; 3]), b.clone()]));
        assert_ne!(ab, of([b.clone(), a.clone()]));
        assert_ne!(ab, of([a.clone(), b.clone().non_solid()]));
        let mut stored = BlockRegistry::from_names(strings(&[AIR_NAME, "game:a", "game:b"])).unwrap();
        stored.register(b.non_solid()).unwrap();
        assert_ne!(stored.fingerprint(), ab);
    }

    #[test]
    fn an_unknown_id_shows_as_a_placeholder() {
        let registry = BlockRegistry::new();
        for id in [1, u32::MAX] {
            assert_eq!(registry.block(BlockId::new(id)).name(), "terrane:unknown");
        }
    }

    #[test]
    fn basic_blocks_leave_registered_types_alone_and_fill_placeholders() {
        let mut registry = BlockRegistry::from_names(strings(&[AIR_NAME, "terrane:snow"])).unwrap();
        let sand = registry.register(BlockType::new("terrane:sand").with_color([1; 3])).unwrap();
        registry.register_basic_blocks();
        assert_eq!(registry.len(), 10);
        assert_eq!(registry.block(sand).color(), [1; 3]);
        assert_eq!(registry.id("terrane:snow"), Some(BlockId::new(1)));
        assert_eq!(registry.placeholders().count(), 0);
        assert!(!registry.block(registry.id("terrane:water").unwrap()).is_solid());

        let names = strings(&registry.names().collect::<Vec<_>>());
        registry.register_basic_blocks();
        assert_eq!(strings(&registry.names().collect::<Vec<_>>()), names);
    }

    proptest! {
        #[test]
        fn a_world_reopened_under_another_order_keeps_its_ids(
            names in prop::collection::hash_set("[a-z0-9_./-]{1,4}:[a-z0-9_./-]{1,8}", 1..20),
            again in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let names: Vec<_> = names.into_iter().filter(|name| name != AIR_NAME).collect();
            let mut first = BlockRegistry::new();
            for name in &names {
                first.register(BlockType::new(name.clone())).unwrap();
            }
            let stored: Vec<_> = first.names().map(str::to_string).collect();
            let mut second = BlockRegistry::from_names(stored.clone()).unwrap();
            let mut registered = std::collections::BTreeSet::new();
            for index in again {
                let name = index.get(&stored);
                let id = BlockId::new(stored.iter().position(|other| other == name).unwrap() as u32);
                let is_new = name != AIR_NAME && registered.insert(id);
                prop_assert_eq!(second.register(BlockType::new(name.clone())).ok(), is_new.then_some(id));
                prop_assert_eq!(second.id(name), Some(id));
            }
            prop_assert_eq!(second.placeholders().count(), names.len() - registered.len());
            prop_assert!(second.names().eq(first.names()));
        }
    }
}
