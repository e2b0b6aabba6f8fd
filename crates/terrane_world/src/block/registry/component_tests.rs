//! Block components over several sessions of a changing game.

use super::*;
use crate::block::{BlockComponentError, Schema, SchemaError, block_name};
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use std::collections::{BTreeMap, BTreeSet};

const VARIABLE: u64 = BlockComponentId::VARIABLE;

/// The stored world, opened by another session of the game.
fn reopen(registry: &BlockRegistry) -> BlockRegistry {
    BlockRegistry::from_records(registry.block_records().collect(), registry.component_records().cloned().collect())
        .unwrap()
}

fn id(number: u32) -> BlockId {
    BlockId::new(number)
}

/// A world with a furnace, which has a component of fixed and one of variable size.
fn furnaces() -> BlockRegistry {
    let mut registry = BlockRegistry::new();
    let fuel = registry.register_component(BlockComponent::fixed::<u16>("game:fuel")).unwrap();
    let items = registry.register_component(BlockComponent::variable("game:items")).unwrap();
    assert_eq!([fuel.number(), items.number()], [0, 1 | VARIABLE]);
    let furnace = BlockType::new("game:furnace").with_component("game:items").with_component("game:fuel");
    assert_eq!(registry.register(furnace), Ok(id(1)));
    registry
}

/// The furnace of a later game version, whose fuel has four bytes.
fn grown(registry: &mut BlockRegistry, schema: Schema) -> Result<BlockId, BlockRegistryError> {
    registry.register_component(BlockComponent::fixed::<u32>("game:fuel").with_schema(schema))?;
    registry.register_component(BlockComponent::variable("game:items"))?;
    registry.register(BlockType::new("game:furnace").with_component("game:fuel").with_component("game:items"))
}

fn to_four_bytes(old: &[u8]) -> Result<Vec<u8>, crate::block::MigrationFailure> {
    Ok([old, &[0, 0]].concat())
}

#[test]
fn a_block_has_the_components_that_its_type_names_by_ascending_number() {
    let registry = furnaces();
    let layout = |number, size| BlockComponentLayout { id: BlockComponentId::new(number), size };
    assert_eq!(registry.components(id(1)), [layout(0, Some(2)), layout(1 | VARIABLE, None)]);
    assert_eq!(registry.components(BlockId::AIR), []);
    assert_eq!(registry.components(id(9)), []);
    assert_eq!(registry.component("game:items"), Some(BlockComponentId::new(1 | VARIABLE)));
    let opened = reopen(&registry);
    assert_eq!(opened.components(id(1)), registry.components(id(1)), "a dropped type can be read");
    assert_eq!(opened.component("game:items"), None);
}

#[test]
fn a_component_is_registered_once_and_before_its_blocks() {
    let mut registry = furnaces();
    let again = registry.register_component(BlockComponent::variable("game:fuel")).unwrap_err();
    let taken = BlockComponentError::AlreadyRegistered { id: BlockComponentId::new(0), name: "game:fuel".into() };
    assert_eq!(again, taken.into());
    let former = BlockComponent::variable("game:coal").with_schema(Schema::new(0).formerly("game:fuel"));
    assert!(registry.register_component(former).is_err());
    let named = BlockComponent::variable("game:a").with_schema(Schema::new(0).formerly("game:b"));
    registry.register_component(named).unwrap();
    assert!(registry.register_component(BlockComponent::variable("game:b")).is_err());
    assert!(registry.register_component(BlockComponent::variable("fuel")).is_err());
    let empty = registry.register_component(BlockComponent::fixed::<()>("game:empty")).unwrap_err();
    assert_eq!(empty, BlockComponentError::Size { name: "game:empty".into(), size: 0 }.into());
    let unknown = registry.register(BlockType::new("game:oven").with_component("game:heat")).unwrap_err();
    let (name, component) = ("game:oven".into(), "game:heat".into());
    assert_eq!(unknown, BlockRegistryError::UnknownComponent { name, component });
}

#[test]
fn a_schema_that_changed_is_migrated_or_refused() {
    let stored = furnaces();
    let mut registry = reopen(&stored);
    let changed = grown(&mut registry, Schema::default()).unwrap_err();
    let (name, size) = (String::from("game:fuel"), |size| Some(size));
    let expected =
        BlockComponentError::SizeChanged { name: name.clone(), version: 0, stored: size(2), declared: size(4) };
    assert_eq!(changed, expected.into());
    assert!(changed.is_schema_mismatch());
    let missing = grown(&mut registry, Schema::new(1)).unwrap_err();
    let expected = BlockComponentError::MigrationMissing { name: name.clone(), stored: 0, declared: 1 };
    assert_eq!(missing, expected.into());
    assert!(missing.is_schema_mismatch());
    assert!(registry.component_records().eq(stored.component_records()), "nothing changed");

    let furnace = grown(&mut registry, Schema::new(1).with_migration(0, to_four_bytes)).unwrap();
    assert_eq!((furnace, registry.successor(id(1)), registry.id("game:furnace")), (id(2), Some(id(2)), Some(id(2))));
    let upgraded = registry.upgrade(id(1), &[&[5, 6], b"coal"]).unwrap();
    assert_eq!(upgraded, (furnace, vec![vec![5, 6, 0, 0].into(), b"coal".into()]));
    assert_eq!(registry.successor(furnace), None);

    // The game returns to its old version.
    let mut registry = reopen(&registry);
    let missing = registry.register_component(BlockComponent::fixed::<u16>("game:fuel")).unwrap_err();
    assert_eq!(missing, BlockComponentError::MigrationMissing { name, stored: 1, declared: 0 }.into());
    let back = Schema::new(0).with_migration(1, |new| Ok(new[..2].to_vec()));
    registry.register_component(BlockComponent::fixed::<u16>("game:fuel").with_schema(back)).unwrap();
    assert_eq!(registry.register(BlockType::new("game:furnace").with_component("game:fuel")), Ok(id(1)));
    assert_eq!(registry.successor(id(2)), Some(id(1)));
}

#[test]
fn no_value_is_longer_or_shorter_than_its_component() {
    let mut registry = reopen(&furnaces());
    let schema = Schema::new(1).with_migration(0, |old| match old {
        [0, _] => Err("out of fuel".into()),
        [1, _] => Ok(vec![1]),
        old => to_four_bytes(old),
    });
    grown(&mut registry, schema).unwrap();
    let upgrade = |fuel: &[u8]| registry.upgrade(id(1), &[fuel, b""]).map(drop);
    let name = || String::from("game:fuel");
    let length = |version, expected, found| {
        let source = BlockComponentError::Length { name: name(), version, expected, found };
        Err(BlockRegistryError::Value { block: id(1), source })
    };
    assert_eq!(upgrade(&[2, 0]), Ok(()));
    assert_eq!(upgrade(&[2]), length(0, 2, 1));
    assert_eq!(upgrade(&[2, 0, 0]), length(0, 2, 3));
    assert_eq!(upgrade(&[1, 0]), length(1, 4, 1));
    let source = SchemaError::Failed { from: 0, to: 1, reason: "out of fuel".into() };
    let source = BlockComponentError::Migration { name: name(), source };
    assert_eq!(upgrade(&[0, 0]), Err(BlockRegistryError::Value { block: id(1), source }));
    let count = BlockRegistryError::Count { block: id(1), expected: 2, found: 0 };
    assert_eq!(registry.upgrade(id(1), &[]), Err(count));
}

/// Promise, blocks: Components that a block type no longer names stay on its blocks.
#[test]
fn a_component_that_is_renamed_or_dropped_keeps_its_values() {
    let mut registry = reopen(&furnaces());
    let coal = BlockComponent::fixed::<u16>("game:coal").with_schema(Schema::new(0).formerly("game:fuel"));
    assert_eq!(registry.register_component(coal), Ok(BlockComponentId::new(0)));
    assert_eq!([registry.component("game:coal"), registry.component("game:fuel")], [Some(BlockComponentId::new(0)); 2]);
    // The items are no longer registered or named.
    let furnace = BlockType::new("game:furnace").with_component("game:coal");
    assert_eq!(registry.register(furnace), Ok(id(1)));
    assert_eq!(registry.components(id(1)).len(), 2);
    assert!(registry.component_records().map(|record| &*record.name).eq(["game:coal", "game:items"]));
}

#[test]
fn a_component_that_a_type_has_anew_begins_with_zeroes() {
    let mut registry = BlockRegistry::new();
    registry.register(BlockType::new("game:furnace")).unwrap();
    let mut registry = reopen(&registry);
    let furnace = grown(&mut registry, Schema::default()).unwrap();
    assert_eq!((furnace, registry.successor(id(1))), (id(2), Some(furnace)));
    let upgraded = registry.upgrade(id(1), &[]).unwrap();
    assert_eq!(upgraded.1, [vec![0; 4], vec![]]);
}

#[test]
fn values_of_a_dropped_component_stay_in_the_version_in_which_they_are() {
    let mut registry = reopen(&furnaces());
    grown(&mut registry, Schema::new(1).with_migration(0, to_four_bytes)).unwrap();
    let mut registry = reopen(&registry);
    registry.register(BlockType::new("game:furnace").with_color([3; 3])).unwrap();
    // It cannot be migrated, so it is unchanged, but it has the appearance of its type.
    assert_eq!((registry.successor(id(1)), registry.block(id(1)).color()), (None, [3; 3]));
    let values: [&[u8]; 2] = [&[5, 6], b"coal"];
    assert_eq!(registry.upgrade(id(1), &values).unwrap().1, values);
}

/// One start of a game.
#[derive(Clone, Debug)]
struct Session {
    /// The version of each component that it has.
    components: BTreeMap<usize, u32>,
    /// Its blocks in the order of registration, with their components, and whether they have their second name.
    blocks: Vec<(usize, Vec<usize>, bool)>,
    placed: Vec<Index>,
}

const COMPONENTS: usize = 3;
const BLOCKS: usize = 4;

fn session() -> impl Strategy<Value = Session> {
    let versions = prop::collection::vec(prop::option::of(0_u32..3), COMPONENTS);
    let blocks = subsequence((0..BLOCKS).collect::<Vec<_>>(), 0..=BLOCKS).prop_shuffle();
    let parts = subsequence((0..COMPONENTS).collect::<Vec<_>>(), 0..=COMPONENTS);
    let details = prop::collection::vec((parts, any::<bool>()), BLOCKS);
    (versions, blocks, details, prop::collection::vec(any::<Index>(), 0..4)).prop_map(
        |(versions, blocks, details, placed)| {
            let versions = versions.into_iter().enumerate();
            let components: BTreeMap<_, _> = versions.filter_map(|(index, version)| Some((index, version?))).collect();
            let block = |number: usize| {
                let (parts, renamed) = details[number].clone();
                (number, parts.into_iter().filter(|part| components.contains_key(part)).collect(), renamed)
            };
            Session { blocks: blocks.into_iter().map(block).collect(), placed, components: components.clone() }
        },
    )
}

impl Session {
    /// Registers everything. A value of version v has v + 1 bytes; migrations keep the first.
    fn register(&self, registry: &mut BlockRegistry) -> BTreeMap<usize, BlockId> {
        for (index, version) in &self.components {
            let version = *version;
            let migrate = move |old: &[u8]| {
                // An unset value may be empty.
                Ok([&[old.first().copied().unwrap_or(0)][..], &vec![0; version as usize]].concat())
            };
            let schema = (0..3).fold(Schema::new(version), |schema, from| schema.with_migration(from, migrate));
            let name = format!("game:c{index}");
            let component = match version {
                0 => BlockComponent::fixed::<[u8; 1]>(name),
                1 => BlockComponent::fixed::<[u8; 2]>(name),
                _ => BlockComponent::variable(name),
            };
            registry.register_component(component.with_schema(schema)).unwrap();
        }
        let register = |(number, parts, renamed): &(usize, Vec<usize>, bool)| {
            let (name, former) = (format!("game:b{number}"), format!("game:old{number}"));
            let (name, former) = if *renamed { (name, former) } else { (former, name) };
            let block = BlockType::new(name).formerly(former);
            let block = parts.iter().fold(block, |block, part| block.with_component(format!("game:c{part}")));
            (*number, registry.register(block).unwrap())
        };
        self.blocks.iter().map(register).collect()
    }
}

/// A block as a player knows it: its type, and the values of its components.
type Placed = (usize, BTreeMap<String, u8>);

fn version_of(registry: &BlockRegistry, layout: &BlockComponentLayout) -> u32 {
    registry.component_record(layout.id).unwrap().version
}

/// Lists as found on a damaged disk.
fn any_records() -> impl Strategy<Value = (Vec<BlockRecord>, Vec<BlockComponentRecord>)> {
    let number = prop_oneof![0_u64..4, (0_u64..4).prop_map(|number| number | VARIABLE), any::<u64>()];
    let name = prop_oneof!["game:[ab](\\[c=[de]\\])?", "\\PC{0,6}"];
    let block = (name.clone(), prop::collection::vec(number, 0..3));
    let block = block.prop_map(|(name, components)| BlockRecord { name, components });
    let component = (name, 0_u32..2, prop::option::of(0_u32..3));
    let component = component.prop_map(|(name, version, size)| BlockComponentRecord { name, version, size });
    let air = BlockRecord { name: AIR_NAME.into(), components: vec![] };
    let blocks = prop::collection::vec(block, 0..6).prop_map(move |blocks| [vec![air.clone()], blocks].concat());
    (blocks, prop::collection::vec(component, 0..4))
}

proptest! {
    #[test]
    fn a_stored_list_is_refused_or_means_what_it_says((blocks, components) in any_records()) {
        if let Ok(registry) = BlockRegistry::from_records(blocks.clone(), components.clone()) {
            prop_assert!(registry.block_records().eq(blocks.iter().cloned()));
            prop_assert!(registry.component_records().eq(&components));
            for (number, block) in (0..).zip(&blocks) {
                let newest = registry.id(&block.name).unwrap();
                prop_assert_eq!(registry.block(newest).name(), &block.name);
                let numbers = registry.components(id(number)).iter().map(|layout| layout.id.number());
                prop_assert!(numbers.eq(block.components.iter().copied()));
            }
        }
    }

    /// Promise, blocks: The number of a block type never changes in a world, even if types are reordered, renamed or dropped.
    #[test]
    fn every_block_and_every_value_survives_whatever_the_game_registers(sessions in prop::collection::vec(session(), 1..7)) {
        let mut registry = BlockRegistry::new();
        // The stored blocks: an id and its values.
        let mut world: Vec<(BlockId, Vec<Vec<u8>>)> = Vec::new();
        let mut model: Vec<Placed> = Vec::new();
        for session in sessions {
            let before: Vec<_> = registry.block_records().collect();
            let components: Vec<_> = registry.component_records().cloned().collect();
            registry = reopen(&registry);
            let ids = session.register(&mut registry);
            for (old, new) in before.iter().zip(registry.block_records()) {
                prop_assert_eq!(&old.components, &new.components, "an id means the same components for ever");
            }
            prop_assert!(registry.component_records().take(components.len()).eq(&components));
            for ((block, values), (kind, said)) in world.iter_mut().zip(&mut model) {
                let slices: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
                let (successor, upgraded) = registry.upgrade(*block, &slices).unwrap();
                *block = successor;
                *values = upgraded.into_iter().map(Cow::into_owned).collect();
                let name = block_name::base(registry.block(*block).name()).to_owned();
                let names = [format!("game:b{kind}"), format!("game:old{kind}")];
                prop_assert!(names.contains(&name));
                let layouts = registry.components(*block);
                prop_assert_eq!(layouts.len(), values.len());
                for (layout, value) in layouts.iter().zip(values.iter()) {
                    let name = registry.component_record(layout.id).unwrap().name.clone();
                    prop_assert!(layout.size.is_none_or(|size| size as usize == value.len()));
                    prop_assert_eq!(said.remove(&name).unwrap_or(0), value.first().copied().unwrap_or(0));
                }
                prop_assert!(said.is_empty(), "a value was lost");
                let says = |(layout, value): (&BlockComponentLayout, &Vec<u8>)| {
                    (registry.component_record(layout.id).unwrap().name.clone(), value.first().copied().unwrap_or(0))
                };
                *said = layouts.iter().zip(values.iter()).map(says).collect();
                if let Some(current) = ids.get(kind) && layouts.iter().all(|it| registry.components.can_upgrade(it.id)) {
                    prop_assert_eq!(*block, *current);
                }
            }
            for index in session.placed.iter().filter(|_| !ids.is_empty()) {
                let (kind, block) = ids.iter().nth(index.index(ids.len())).unwrap();
                let layouts = registry.components(*block);
                let value = |layout| vec![index.index(200) as u8 + 1; version_of(&registry, layout) as usize + 1];
                let values: Vec<_> = layouts.iter().map(value).collect();
                let name = |layout: &BlockComponentLayout| registry.component_record(layout.id).unwrap().name.clone();
                model.push((*kind, layouts.iter().map(name).zip(values.iter().map(|value| value[0])).collect()));
                world.push((*block, values));
            }
        }
        let names: BTreeSet<_> = registry.block_records().map(|record| (record.name, record.components)).collect();
        prop_assert_eq!(names.len(), registry.len());
    }
}
