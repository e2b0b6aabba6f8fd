//! Block types over several sessions of a changing game.

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

/// Promise, blocks: Blocks of a removed type become placeholders and are saved unchanged.
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
        let expected = format!("{name:?} is not `namespace:path` of a-z, 0-9, `_`, `-`, `.` and `/`");
        assert!(matches!(error, BlockRegistryError::InvalidName { .. }));
        assert_eq!(error.to_string(), format!("block 1: {name:?} is not a valid block name: {expected}"));
        assert_eq!(BlockRegistry::from_names(strings(&[AIR_NAME, name])).unwrap_err(), error);
    }
    assert!(BlockRegistry::new().register(BlockType::new("my-game_2.0:a/b.c-d_e9")).is_ok());
}

#[test]
fn a_stored_list_begins_with_air_and_repeats_nothing() {
    let error = |names: &[&str]| BlockRegistry::from_names(strings(names)).unwrap_err().to_string();
    let not_air =
        |found: Option<&str>| format!("block 0: it must be \"terrane:air\" without components, found {found:?}");
    assert_eq!(error(&[]), not_air(None));
    assert_eq!(error(&["game:a", AIR_NAME]), not_air(Some("game:a")));
    let twice = "block 3: block 1 is named \"game:a\" too, and has the same components";
    assert_eq!(error(&[AIR_NAME, "game:a", "game:b", "game:a"]), twice);
    assert!(BlockRegistry::from_names(strings(&[AIR_NAME, AIR_NAME])).is_err());
}

#[test]
fn a_stored_list_that_was_not_written_so_is_refused() {
    let stored = |what: String| Err(BlockRegistryError::Stored { id: BlockId::new(1), what });
    let component = |name: &str| BlockComponentRecord { name: name.into(), version: 0, size: Some(4) };
    let components = vec![component("game:a"), component("game:b")];
    let of = |name: &str, numbers: &[u64]| {
        let records = [(AIR_NAME, &[][..]), (name, numbers)];
        let record = |(name, numbers): (&str, &[u64])| BlockRecord { name: name.into(), components: numbers.to_vec() };
        BlockRegistry::from_records(records.map(record).to_vec(), components.clone()).map(drop)
    };
    assert_eq!(of("game:c", &[0, 1]), Ok(()));
    for numbers in [[1, 0], [1, 1]] {
        assert_eq!(of("game:c", &numbers), stored("the components of \"game:c\" are not in order".into()));
    }
    for number in [2, BlockComponentId::VARIABLE, u64::MAX] {
        let what = "that the list of components does not have";
        assert_eq!(of("game:c", &[number]), stored(format!("\"game:c\" has a component {number:#x} {what}")));
    }
    let what = "the properties of \"game:c[b=1,a=1]\" are not in order";
    assert_eq!(of("game:c[b=1,a=1]", &[]), stored(what.into()));
    let air = vec![BlockRecord { name: AIR_NAME.into(), components: vec![0] }];
    assert!(BlockRegistry::from_records(air, components.clone()).is_err());
    let twice = [components.clone(), components].concat();
    let air = vec![BlockRecord { name: AIR_NAME.into(), components: vec![] }];
    assert!(BlockRegistry::from_records(air, twice).is_err());
}

#[test]
fn states_are_found_by_name_by_properties_and_by_a_change_of_one() {
    let mut registry = BlockRegistry::new();
    let stairs = BlockStates::new(BlockType::new("game:stairs"))
        .with_property("facing", ["north", "south"])
        .with_property("half", ["bottom", "top"]);
    let ids = registry.register_states(stairs).unwrap();
    assert_eq!(registry.id("game:stairs[half=top,facing=south]"), Some(ids[3]));
    assert_eq!(registry.id("game:stairs"), Some(ids[0]));
    assert_eq!(registry.state("game:stairs", &[("half", "top")]), Some(ids[1]));
    assert_eq!(registry.with_property(ids[1], "facing", "south"), Some(ids[3]));
    assert_eq!(registry.with_property(ids[1], "facing", "up"), None);
    assert_eq!(registry.with_property(ids[1], "facing", "south]"), None);
    assert_eq!(registry.with_property(ids[1], "wet", "true"), None);
    assert_eq!(registry.state("game:stairs", &[("wet", "true")]), None);
    assert_eq!(registry.block(ids[1]).property("half"), Some("top"));
    assert!(registry.block(ids[1]).name().starts_with("game:stairs["));
    assert!(registry.register(BlockType::new("game:stairs")).is_err(), "that is the default state");
    // States that were registered individually have no default and no further combinations.
    let lamp = registry.register(BlockType::new("game:lamp[lit=true,color=red]")).unwrap();
    assert_eq!(registry.state("game:lamp", &[("lit", "true"), ("color", "red")]), Some(lamp));
    assert_eq!(registry.state("game:lamp", &[("lit", "true")]), None);
    assert_eq!(registry.with_property(lamp, "lit", "false"), None);
}

#[test]
fn of_the_states_of_a_type_all_are_registered_or_none() {
    let mut registry = BlockRegistry::new();
    registry.register(BlockType::new("game:log[axis=z]")).unwrap();
    let log = || BlockStates::new(BlockType::new("game:log")).with_property("axis", ["x", "y", "z"]);
    assert!(registry.register_states(log()).is_err());
    assert!(registry.register_states(log().varied_by(|state| state.with_tag("Logs"))).is_err());
    assert_eq!(registry.len(), 2);
}

#[test]
fn what_was_placed_before_a_type_had_properties_is_its_default_state() {
    let mut registry = BlockRegistry::from_names(strings(&[AIR_NAME, "game:trunk"])).unwrap();
    let log = BlockStates::new(BlockType::new("game:log").formerly("game:trunk")).with_property("axis", ["y", "x"]);
    let ids = registry.register_states(log).unwrap();
    assert_eq!(ids, [BlockId::new(1), BlockId::new(2)]);
    assert_eq!(registry.block(ids[0]).name(), "game:log[axis=y]");
    assert_eq!(registry.id("game:trunk[axis=x]"), Some(ids[1]));
}

#[test]
fn a_block_is_in_as_many_tags_as_it_names() {
    let mut registry = BlockRegistry::new();
    let log = BlockType::new("game:log").with_tag("game:logs").with_tag("game:burns");
    let ids = registry.register_states(BlockStates::new(log).with_property("axis", ["x", "y"])).unwrap();
    let wool = registry.register(BlockType::new("game:wool").with_tag("game:burns")).unwrap();
    assert!(registry.tag("game:burns").unwrap().iter().eq([ids[0], ids[1], wool]));
    assert!(registry.has_tag(ids[1], "game:logs") && !registry.has_tag(wool, "game:logs"));
    assert!(!registry.has_tag(BlockId::new(u32::MAX), "game:logs") && !registry.has_tag(wool, "game:none"));
    let tag = String::from("logs");
    let error = registry.register(BlockType::new("game:twig").with_tag("logs")).unwrap_err();
    assert_eq!(error, BlockRegistryError::InvalidTag { name: "game:twig".into(), tag });
}

/// Promise, light: A block type whose light or attenuation is above 15 is refused with an error that names it.
#[test]
fn light_above_15_is_refused_and_the_block_is_named() {
    let mut registry = BlockRegistry::new();
    let error = registry.register(BlockType::new("game:sun").with_light(16)).unwrap_err();
    assert_eq!(error, BlockRegistryError::InvalidLight { name: "game:sun".into(), level: 16 });
    assert_eq!(error.to_string(), "\"game:sun\": its light is 16, and must be 0 to 15");
    let error = registry.register(BlockType::new("game:tar").with_attenuation(200)).unwrap_err();
    assert_eq!(error, BlockRegistryError::InvalidAttenuation { name: "game:tar".into(), attenuation: 200 });
    let lamps = BlockStates::new(BlockType::new("game:lamp")).with_property("lit", ["false", "true"]);
    let lamps = lamps.varied_by(|lamp| match lamp.property("lit") {
        Some("true") => lamp.with_light(99),
        _ => lamp,
    });
    assert!(matches!(registry.register_states(lamps), Err(BlockRegistryError::InvalidLight { level: 99, .. })));
    assert_eq!(registry.len(), 1, "none of them was registered");
    assert!(registry.register(BlockType::new("game:torch").with_light(15).with_attenuation(15)).is_ok());
}

/// Promise, blocks: A collision height above two blocks is refused with an error that names the block.
#[test]
fn a_collision_height_above_two_blocks_is_refused() {
    let mut registry = BlockRegistry::new();
    let error = registry.register(BlockType::new("game:tower").with_collision_height(33)).unwrap_err();
    assert_eq!(error, BlockRegistryError::InvalidCollisionHeight { name: "game:tower".into(), height: 33 });
    assert_eq!(error.to_string(), "\"game:tower\": its collision height is 33 sixteenths, and must be 0 to 32");
    assert!(registry.register(BlockType::new("game:tower").with_collision_height(32)).is_ok());
}

#[test]
fn a_renamed_type_keeps_its_id_and_is_found_by_both_names() {
    let mut registry = BlockRegistry::from_names(strings(&[AIR_NAME, "game:old", "game:other"])).unwrap();
    let renamed = registry.register(BlockType::new("game:new").formerly("game:old")).unwrap();
    assert_eq!(renamed, BlockId::new(1));
    assert_eq!([registry.id("game:old"), registry.id("game:new")], [Some(renamed); 2]);
    assert!(registry.names().eq([AIR_NAME, "game:new", "game:other"]));
    let taken = registry.register(BlockType::new("game:old")).unwrap_err();
    assert_eq!(taken, BlockRegistryError::AlreadyRegistered { id: renamed, name: "game:old".into() });
}

#[test]
fn two_types_that_become_one_are_that_one() {
    let stored = strings(&[AIR_NAME, "game:old", "game:new", "game:older"]);
    let mut registry = BlockRegistry::from_names(stored.clone()).unwrap();
    let block = BlockType::new("game:new").with_color([7; 3]).formerly("game:old").formerly("game:older");
    let new = registry.register(block.with_tag("game:tag")).unwrap();
    assert_eq!(new, BlockId::new(2));
    for old in [1, 3].map(BlockId::new) {
        assert_eq!((registry.successor(old), registry.block(old).color()), (Some(new), [7; 3]));
        assert_eq!(registry.upgrade(old, &[]), Ok((new, vec![])));
        assert!(registry.has_tag(old, "game:tag"));
    }
    assert_eq!(registry.successor(new), None);
    assert!(registry.names().eq(stored), "the world still has both, under their names");
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
        let mut registered = BTreeSet::new();
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
