//! Names in a world are given by the game, or are type paths that it chooses, so modules can be renamed.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{
    Durability, EntityRecord, Family, KeyValueStore, MemoryStore, RegistryLists, SaveBatch, StorageConfig, WorldStore,
};
use bevy_terrane::view::{LogIn, PlayerLoggedIn, Pregeneration};
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

/// The stored name of a player before names were chosen.
const OLD_PLAYER: &str = "bevy_terrane::simulation::player::Player";

/// Its name in the store differs from its Rust path.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "my_game"]
struct Sheep(u8);

fn sheep_game(disk: &Arc<MemoryStore>) -> App {
    let mut app = game(lockstep_on(disk));
    app.register_saved_component::<Sheep>().mirror_region_component::<Sheep>();
    app
}

fn play(app: &mut App) -> DimensionId {
    listen::<PlayerLoggedIn>(app);
    let dimension = flat(app);
    viewer(app, dimension, 0.0, 0.0, 1);
    start(app);
    update(app, 20);
    dimension
}

fn sheep(app: &mut App) -> Vec<Sheep> {
    let mut sheep = app.world_mut().query_filtered::<&Sheep, With<Mirror>>();
    sheep.iter(app.world()).cloned().collect()
}

fn log_in(app: &mut App, dimension: DimensionId) -> PlayerLoggedIn {
    let first_place = Some((dimension, HERE));
    app.world_mut().write_message(LogIn { name: "Zoë".into(), first_place });
    update_until(app, "Zoë is in", |world| !world.resource::<Heard<PlayerLoggedIn>>().0.is_empty());
    heard::<PlayerLoggedIn>(app)[0].clone()
}

/// A stored entity with one component.
fn record(id: u128, name: &str, value: Vec<u8>) -> EntityRecord {
    EntityRecord {
        id: Uuid::from_u128(id),
        dimension: DimensionId(0),
        block: HERE,
        offset: [0.5, 0.0, 0.5],
        viewer: None,
        components: vec![(name.to_owned(), value)],
        children: Vec::new(),
    }
}

/// A world from the time when types were stored under their Rust paths.
fn old_world() -> Arc<MemoryStore> {
    let disk = Arc::new(MemoryStore::new());
    let mut app = sheep_game(&disk);
    play(&mut app);
    drop(app);
    let world = WorldStore::open(&StorageConfig::Custom(disk.clone())).unwrap();
    let lists = world.registry_lists().unwrap();
    let entity_types = [OLD_PLAYER, type_name::<Sheep>()].map(str::to_owned).to_vec();
    world.save_registry_lists(&RegistryLists { entity_types, ..lists }).unwrap();
    let mut batch = SaveBatch::default();
    // In postcard: a length and a text, one byte.
    let records =
        [record(1, OLD_PLAYER, [&[4][..], "Zoë".as_bytes()].concat()), record(2, type_name::<Sheep>(), vec![7])];
    batch.entities.extend(records.map(|record| (record.id, Some(record))));
    world.commit(&batch, Durability::Sync).unwrap();
    disk
}

/// Promise, blocks: A saved component is stored under its `TypePath`, and worlds with older names still open.
#[test]
fn a_world_with_compiler_type_names_opens_and_is_saved_with_type_paths() {
    assert_ne!(Sheep::type_path(), type_name::<Sheep>());
    let disk = old_world();
    for session in 0..2 {
        let mut app = sheep_game(&disk);
        let dimension = play(&mut app);
        assert_eq!(sheep(&mut app), [Sheep(7)], "session {session}");
        let zoe = log_in(&mut app, dimension);
        assert_eq!((zoe.id, zoe.new), (Uuid::from_u128(1), false), "session {session}");
        // Changed entities are saved.
        ask_region(&mut app, dimension, HERE, |mut sheep: Query<&mut Sheep>| {
            sheep.iter_mut().for_each(|mut sheep| sheep.set_changed());
        });
        save(&mut app);
    }
    for (id, name) in [(1, "bevy_terrane::Player"), (2, "my_game::Sheep")] {
        let value = disk.get(Family::Entities, Uuid::from_u128(id).as_bytes()).unwrap().unwrap();
        assert!(String::from_utf8_lossy(&value).contains(name), "{value:?}");
    }
}

/// Promise, blocks: No stored name has a module of the crate in it.
#[test]
fn no_stored_name_contains_a_module_path() {
    let disk = Arc::new(MemoryStore::new());
    let mut app = sheep_game(&disk);
    let dimension = play(&mut app);
    log_in(&mut app, dimension);
    spawn_in_region(&mut app, dimension, HERE, Sheep(1));
    let area = ColumnArea::Disc { center: ColumnPos::new(500, 0), radius: 40 };
    app.world_mut().spawn(Pregeneration { dimension, area });
    let kind: &'static str = "game:grow";
    app.world_mut().commands().schedule_block_tick(dimension, HERE, kind, 1_000_000);
    app.world_mut().flush();
    update(&mut app, 10);
    save(&mut app);
    drop(app);
    let mut found = 0;
    for family in Family::ALL {
        for (key, value) in disk.scan(family, &[]..&[0xff; 100], usize::MAX).unwrap() {
            for bytes in [key, value] {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                found += usize::from(text.contains("bevy_terrane::Player"));
                assert_eq!(module_of_ours(&text), None, "in {family}");
            }
        }
    }
    assert!(found >= 2, "the player is in a list and in a record");
}

/// The first path in the text that contains a module of this crate.
fn module_of_ours(text: &str) -> Option<&str> {
    let ours = ["bevy_terrane::", "terrane_objects::", "terrane_storage::", "terrane_world::"];
    let mut paths = ours.iter().flat_map(|root| text.match_indices(root)).map(|(at, root)| &text[at + root.len()..]);
    paths.find_map(|rest| {
        let (module, _) = rest.split_once("::")?;
        (!module.is_empty() && module.chars().all(|letter| letter.is_lowercase() || letter == '_')).then_some(module)
    })
}

#[test]
fn a_module_in_a_path_is_found() {
    assert_eq!(module_of_ours("\u{1}bevy_terrane::view::far_view::FarView"), Some("view"));
    assert_eq!(module_of_ours("bevy_terrane::Player, my_game::mobs::Mob"), None);
}

/// Scenes have components under their type paths.
///
/// Promise, blocks: No stored name has a module of the crate in it.
#[test]
fn every_reflected_type_has_a_path_without_modules() {
    let mut pending = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut derives = 0;
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let traits = line.strip_prefix("#[derive(").and_then(|rest| rest.strip_suffix(")]")).unwrap_or_default();
            if traits.split(", ").any(|it| it == "Reflect" || it == "TypePath") {
                derives += 1;
                let next = lines.peek().copied();
                assert_eq!(next, Some("#[type_path = \"bevy_terrane\"]"), "{}, after {line}", path.display());
            }
        }
    }
    assert!(derives >= 13, "{derives}");
}

/// Promise, blocks: A saved component is stored under its `TypePath`, and worlds with older names still open.
#[test]
fn two_saved_components_with_one_path_are_refused() {
    mod other {
        use super::*;

        #[derive(Component, Clone, Serialize, Deserialize, TypePath)]
        #[type_path = "my_game"]
        pub struct Sheep;
    }
    let mut app = sheep_game(&Arc::new(MemoryStore::new()));
    app.register_saved_component::<other::Sheep>();
    flat(&mut app);
    start(&mut app);
    app.update();
    assert_eq!(app.should_exit(), Some(AppExit::error()));
    let refusal = app.world().resource::<WorldFailure>().to_string();
    assert!(refusal.contains("my_game::Sheep"), "{refusal}");
}
