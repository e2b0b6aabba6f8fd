//! A game changes its types and opens its old world: everything in it is the same, or the world is refused with a reason.

use crate::support::*;
use bevy_terrane::block::{BlockLayout, BlockRegistryError, Schema};
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{Family, KeyValueStore, MemoryStore, StorageConfig, WorldStore};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Everything that is stored about types.
fn registry(disk: &MemoryStore) -> Vec<(Vec<u8>, Vec<u8>)> {
    disk.scan(Family::Registry, &[]..&[0xff], usize::MAX).unwrap()
}

/// Starts a game whose types are registered, and waits for the columns around the origin.
fn play(app: &mut App) -> DimensionId {
    let dimension = flat(app);
    viewer(app, dimension, 0.0, 0.0, 1);
    start(app);
    update(app, 20);
    assert!(app.world().get_resource::<WorldFailure>().is_none());
    dimension
}

/// The error of an app that ends at once.
fn refusal(mut app: App) -> String {
    flat(&mut app);
    start(&mut app);
    app.update();
    assert_eq!(app.should_exit(), Some(AppExit::error()), "the world was opened");
    app.world().resource::<WorldFailure>().to_string()
}

fn place(number: usize) -> BlockPos {
    BlockPos::new(number as i64, 10, 0)
}

/// Places one block of each of these names, side by side, and ends the game.
fn build(mut app: App, names: &[&str]) {
    let dimension = play(&mut app);
    for (number, name) in names.iter().enumerate() {
        let (position, block) = (place(number), id_of(app.world(), name));
        app.world_mut().write_message(SetBlock { dimension, position, block });
    }
    update(&mut app, 3);
}

/// The names of the blocks that were built.
fn built(app: &mut App, count: usize) -> Vec<String> {
    let dimension = play(app);
    let name = |number| {
        let block = block_at(app.world_mut(), dimension, place(number)).expect("a loaded block");
        app.world().resource::<BlockTypes>().block(block).name().to_owned()
    };
    (0..count).map(name).collect()
}

/// Promise, blocks: The number of a block type never changes in a world, even if types are reordered, renamed or dropped.
#[test]
fn every_block_keeps_its_type_when_types_are_reordered_added_renamed_and_dropped() {
    let disk = Arc::new(MemoryStore::new());
    let mut app = game(lockstep_on(&disk));
    for name in ["game:brick", "game:lamp", "game:gone"] {
        app.register_block(BlockType::new(name)).unwrap();
    }
    let stairs = || BlockStates::new(BlockType::new("game:stairs")).with_property("facing", ["north", "south"]);
    app.register_block_states(stairs()).unwrap();
    let names = ["game:brick", "game:lamp", "game:gone", "game:stairs[facing=south]", "game:stairs"];
    build(app, &names);

    let mut app = game(lockstep_on(&disk));
    app.register_block(BlockType::new("game:added")).unwrap();
    app.register_block_states(
        BlockStates::new(BlockType::new("game:steps").formerly("game:stairs"))
            .with_property("facing", ["south", "north", "west"]),
    )
    .unwrap();
    app.register_block(BlockType::new("game:lantern").formerly("game:lamp")).unwrap();
    app.register_block(BlockType::new("game:brick")).unwrap();
    let expected = ["game:brick", "game:lantern", "game:gone", "game:steps[facing=south]", "game:steps[facing=north]"];
    assert_eq!(built(&mut app, names.len()), expected);
    let types = app.world().resource::<BlockTypes>();
    assert!(types.placeholders().eq(types.id("game:gone")));
    drop(app);

    // The aliases are no longer needed, and the removed type comes back.
    let mut app = game(lockstep_on(&disk));
    app.register_block(BlockType::new("game:gone").with_color([1; 3])).unwrap();
    assert_eq!(built(&mut app, names.len()), expected);
    let types = app.world().resource::<BlockTypes>();
    assert_eq!(types.block(types.id("game:gone").unwrap()).color(), [1; 3]);
}

#[test]
fn a_region_finds_states_and_tags() {
    fn turn(mut blocks: RegionBlocks, types: Res<BlockTypes>) -> Result {
        if !blocks.contains(place(0)) {
            return Ok(());
        }
        let block = blocks.block(place(0))?;
        if types.has_tag(block, "game:turns")
            && let Some(turned) = types.with_property(block, "facing", "east")
        {
            blocks.set_block(place(0), turned)?;
        }
        Ok(())
    }
    let mut app = game(lockstep());
    let vane = BlockType::new("game:vane").transparent().with_tag("game:turns");
    app.register_block_states(BlockStates::new(vane).with_property("facing", ["north", "east"])).unwrap();
    app.add_region_plugins(|region| {
        region.add_systems(RegionTick, turn);
    });
    let dimension = play(&mut app);
    let block = id_of(app.world(), "game:vane");
    app.world_mut().write_message(SetBlock { dimension, position: place(0), block });
    update(&mut app, 5);
    let turned = id_of(app.world(), "game:vane[facing=east]");
    assert_eq!(block_at(app.world_mut(), dimension, place(0)), Some(turned));
}

/// A game with a chest whose lock has this size.
fn with_chest(app: &mut App, lock: BlockComponent) -> Result<BlockId, BlockRegistryError> {
    app.register_block_component(BlockComponent::variable("game:items"))?;
    app.register_block_component(lock)?;
    app.register_block(BlockType::new("game:chest").with_component("game:lock").with_component("game:items"))
}

/// Promise, blocks: A component of another schema version is migrated, or the world does not open and names the component.
#[test]
fn a_block_component_of_another_schema_is_migrated_or_the_world_does_not_open() {
    let disk = Arc::new(MemoryStore::new());
    let mut app = game(lockstep_on(&disk));
    let chest = with_chest(&mut app, BlockComponent::fixed::<u16>("game:lock")).unwrap();
    build(app, &["game:chest"]);
    let stored = registry(&disk);

    for (lock, reason) in [
        (BlockComponent::fixed::<u32>("game:lock"), "of 2 bytes"),
        (BlockComponent::variable("game:lock"), "of any size"),
        (BlockComponent::fixed::<u32>("game:lock").with_schema(Schema::new(1)), "no migration"),
    ] {
        let mut app = game(lockstep_on(&disk));
        with_chest(&mut app, lock).unwrap_err();
        let refusal = refusal(app);
        assert!(refusal.contains("\"game:lock\"") && refusal.contains(reason), "{refusal}");
        assert_eq!(registry(&disk), stored, "a refused world stays as it is");
    }

    let mut app = game(lockstep_on(&disk));
    let widen = Schema::new(1).with_migration(0, |old| Ok([old, &[0, 0]].concat()));
    let current = with_chest(&mut app, BlockComponent::fixed::<u32>("game:lock").with_schema(widen)).unwrap();
    assert_eq!(built(&mut app, 1), ["game:chest"]);
    let types = app.world().resource::<BlockTypes>();
    assert_eq!(types.successor(chest), Some(current));
    // The lock has a newer number by now, but that of the variable-size component is higher.
    let upgraded = types.upgrade(chest, &[&[7, 1], b"three apples"]).unwrap();
    assert_eq!(upgraded.1, [&[7, 1, 0, 0][..], b"three apples"]);
    drop(app);

    // A game that does not know the component can still find the end of each value.
    let mut app = game(lockstep_on(&disk));
    play(&mut app);
    let types = app.world().resource::<BlockTypes>();
    let sizes = |block| types.components(block).iter().map(|layout| layout.size).collect::<Vec<_>>();
    assert_eq!([sizes(chest), sizes(current)], [[Some(2), None], [Some(4), None]]);
    drop(app);
    let lists = WorldStore::open(&StorageConfig::Custom(disk.clone())).unwrap().registry_lists().unwrap();
    let numbers: Vec<_> = lists.components.iter().map(|record| (record.name.as_str(), record.version)).collect();
    let own = [("terrane:state", 0), ("terrane:block_entity", 0)];
    assert_eq!(numbers, [&own[..], &[("game:items", 0), ("game:lock", 0), ("game:lock", 1)]].concat());
}

#[test]
fn registrations_before_the_world_opens_apply_to_it() {
    let disk = Arc::new(MemoryStore::new());
    let early = || {
        let mut app = App::new();
        let chest = with_chest(&mut app, BlockComponent::fixed::<u16>("game:lock")).unwrap();
        let states = BlockStates::new(BlockType::new("game:a")).with_property("b", ["0", "1"]);
        app.register_block_states(states).unwrap();
        app.add_plugins((MinimalPlugins, lockstep_on(&disk)));
        (app, chest)
    };
    for _ in 0..2 {
        let (mut app, chest) = early();
        play(&mut app);
        let types = app.world().resource::<BlockTypes>();
        assert_eq!((types.id("game:chest"), types.components(chest).len()), (Some(chest), 2));
        assert_eq!(types.id("game:a"), types.id("game:a[b=0]"));
    }
    let mut app = game(lockstep_on(&disk));
    with_chest(&mut app, BlockComponent::fixed::<u16>("game:lock").with_schema(Schema::new(1))).unwrap_err();
    refusal(app);
}

/// The game's mobs in an earlier version.
mod before {
    use super::*;

    #[derive(Component, Serialize, Deserialize, TypePath)]
    pub struct Mob(pub u8);
}

#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
struct Mob {
    health: u32,
    name: String,
}

const OLD_PATH: &str = "it::registry::before::Mob";

fn name_them(old: &[u8]) -> Result<Vec<u8>, bevy_terrane::block::MigrationFailure> {
    let [health] = old else { return Err("one byte was expected".into()) };
    // As postcard encodes it: a number below 128, the length of a text, the text.
    Ok([&[*health, 3], &b"bob"[..]].concat())
}

/// The mobs in the region at the origin.
fn mobs(app: &mut App, dimension: DimensionId) -> Vec<Mob> {
    ask_region(app, dimension, place(0), |mobs: Query<&Mob>| mobs.iter().cloned().collect::<Vec<_>>())
}

/// A game whose mobs have this schema.
fn with_mobs(disk: &Arc<MemoryStore>, schema: Schema) -> App {
    let mut app = game(lockstep_on(disk));
    app.register_saved_component_with::<Mob>(schema);
    app
}

/// A disk with one mob of the earlier version.
fn with_an_old_mob() -> Arc<MemoryStore> {
    let disk = Arc::new(MemoryStore::new());
    let mut app = game(lockstep_on(&disk));
    app.register_saved_component::<before::Mob>();
    let dimension = play(&mut app);
    spawn_in_region(&mut app, dimension, place(0), before::Mob(9));
    update(&mut app, 5);
    disk
}

/// Promise, blocks: A component of another schema version is migrated, or the world does not open and names the component.
#[test]
fn a_saved_component_of_another_version_is_migrated_or_the_world_does_not_open() {
    let disk = with_an_old_mob();
    let stored = registry(&disk);
    assert_eq!(std::any::type_name::<before::Mob>(), OLD_PATH);

    let refusal = refusal(with_mobs(&disk, Schema::new(1).formerly(OLD_PATH)));
    assert!(refusal.contains(OLD_PATH) && refusal.contains("no migration"), "{refusal}");
    assert_eq!(registry(&disk), stored);

    let schema = || Schema::new(1).formerly(OLD_PATH).with_migration(0, name_them);
    let bob = Mob { health: 9, name: "bob".into() };
    let mut app = with_mobs(&disk, schema());
    let dimension = play(&mut app);
    assert_eq!(mobs(&mut app, dimension), std::slice::from_ref(&bob));
    drop(app);

    // Without the game's mobs the stored values do not change.
    let mut app = game(lockstep_on(&disk));
    let dimension = play(&mut app);
    spawn_in_region(&mut app, dimension, place(0), walker("alice", 0.0));
    update(&mut app, 5);
    drop(app);
    let mut app = with_mobs(&disk, schema());
    let dimension = play(&mut app);
    assert_eq!(mobs(&mut app, dimension), [bob]);
    drop(app);
    let lists = WorldStore::open(&StorageConfig::Custom(disk.clone())).unwrap().registry_lists().unwrap();
    let player = "bevy_terrane::Player";
    assert_eq!(lists.entity_types, [player, "it::support::Walker", OLD_PATH, "it::registry::Mob@1"]);
}

#[test]
fn a_value_that_a_migration_refuses_is_kept() {
    let disk = with_an_old_mob();
    let refuse = Schema::new(1).formerly(OLD_PATH).with_migration(0, |_| Err("not today".into()));
    let mut app = with_mobs(&disk, refuse);
    let dimension = play(&mut app);
    assert_eq!(mobs(&mut app, dimension), []);
    drop(app);
    let mut app = with_mobs(&disk, Schema::new(1).formerly(OLD_PATH).with_migration(0, name_them));
    let dimension = play(&mut app);
    assert_eq!(mobs(&mut app, dimension).len(), 1);
}
