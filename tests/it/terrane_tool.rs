//! The program `terrane`, from its command line to its output.

#![cfg(feature = "rocksdb")]

// Its `main` is not called here.
#[allow(dead_code)]
#[path = "../../tools/src/main.rs"]
mod tool;

#[cfg(unix)]
mod databases;
mod endings;
mod schematics;

use crate::support::*;
use bevy_terrane::block::BlockRecord;
use bevy_terrane::chunk::Chunk;
use bevy_terrane::prelude::*;
use bevy_terrane::space::{BatchPos, GeneratorIdentity, TilePos};
use bevy_terrane::storage::upkeep::copy_store;
use bevy_terrane::storage::{
    Access, Durability, EntityRecord, KeyValueStore, MemoryStore, RegistryLists, RocksStore, SaveBatch, StorageConfig,
    WorldStore,
};
use bevy_terrane::view::{LogIn, PlayerLoggedIn};
use bevy_terrane::work::Stop;
use clap::Parser;
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tool::{Arguments, Outcome};
use uuid::Uuid;

fn try_run(arguments: &[&str], is_stopped: bool) -> Result<Outcome, String> {
    let line = ["terrane"].into_iter().chain(arguments.iter().copied());
    let arguments = Arguments::try_parse_from(line).map_err(|error| error.to_string())?;
    let stop = Stop::default();
    if is_stopped {
        stop.stop();
    }
    tool::run(&arguments, &stop).map_err(|error| error.to_string())
}

fn run(arguments: &[&str]) -> Outcome {
    try_run(arguments, false).unwrap()
}

/// The exit code and the output of a command.
fn exit(arguments: &[&str]) -> (u8, String) {
    let line = ["terrane"].into_iter().chain(arguments.iter().copied());
    match Arguments::try_parse_from(line) {
        Err(error) => (error.exit_code() as u8, error.to_string()),
        Ok(arguments) => match tool::run(&arguments, &Stop::default()) {
            Ok(outcome) => (outcome.end.code(), outcome.text()),
            Err(error) => (error.code(), error.to_string()),
        },
    }
}

fn ending(outcome: &Outcome) -> &str {
    outcome.json["outcome"].as_str().unwrap()
}

/// A square of columns around the middle, with a chunk of noise each, and an entity in every tenth.
fn make_world(path: &Path, radius: i64) {
    let world = WorldStore::open(&StorageConfig::Path(path.into())).unwrap();
    let origin = GeneratorIdentity { name: "noise".into(), version: 1, seed: 3 };
    let dimension = world.open_dimension("overworld", &origin).unwrap();
    let mut graph = BTreeMap::<TilePos, [u16; 64]>::new();
    for x in -radius..=radius {
        let mut batch = SaveBatch::default();
        for z in -radius..=radius {
            let column = ColumnPos::new(x, z);
            let mut next = noise((x * 10_007 + z) as u64);
            let chunk = Chunk::from_fn(|_| BlockId::new(next() as u32 % 16));
            batch.chunks.insert((dimension, column.chunk(0)), Arc::new(chunk));
            let masks = graph.entry(column.tile()).or_insert([0; 64]);
            masks[column.batch().in_tile()] |= 1 << column.in_batch();
            batch.tiles.insert((dimension, column.tile()), *masks);
            if (x + z) % 10 == 0 {
                let id = id_at(column);
                let block = BlockPos::new(x * 16, 8, z * 16);
                let components = vec![("game::Name".into(), b"Alice".to_vec())];
                let (offset, viewer, children) = ([0.0; 3], None, Vec::new());
                batch
                    .entities
                    .insert(id, Some(EntityRecord { id, dimension, block, offset, viewer, components, children }));
            }
        }
        world.commit(&batch, Durability::Process).unwrap();
    }
}

fn id_at(column: ColumnPos) -> Uuid {
    Uuid::from_u64_pair(column.x as u64, column.z as u64)
}

/// Every file below `path` except locks.
fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = folder::files(path);
    found.retain(|path, _| path.extension().is_none_or(|extension| extension != "lock") && !path.ends_with("LOCK"));
    found
}

/// Promise, upkeep: `terrane info` shows the sizes, dimensions and history of a world.
/// Promise, upkeep: `terrane inspect` shows a stored chunk or entity.
/// Promise, upkeep: `terrane info`, `inspect`, `verify` and `prune --dry-run` change nothing.
#[test]
fn reading_commands_change_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("world");
    make_world(&world, 5);
    let before = files(&world);
    let path = world.to_str().unwrap();
    let info = run(&["info", path]);
    assert_eq!(info.json["dimensions"][0]["columns"], 121);
    assert_eq!((&info.json["sessions"], &info.json["dimensions"][0]["seed"]), (&1.into(), &3.into()));
    assert!(info.text().contains("\"overworld\"") && info.text().contains("chunkl0"), "{}", info.text());
    assert!(info.text().contains("purpose \"hot chunks\""), "{}", info.text());

    let chunk = run(&["inspect", path, "chunk", "overworld", "-3", "0", "2"]);
    let blocks = chunk.json["blocks"].as_object().unwrap();
    assert_eq!(blocks.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 4_096);
    assert_eq!((&chunk.json["version"], &chunk.json["tier"]), (&0.into(), &"hot".into()));
    let id = id_at(ColumnPos::new(5, 5)).to_string();
    let entity = run(&["inspect", path, "entity", &id]);
    assert!(entity.text().contains("game::Name\", hex \"416c696365\", text \"Alice\", bytes 5 B"), "{}", entity.text());
    assert_eq!(entity.json["block"], serde_json::json!([80, 8, 80]));
    for (wrong, reason) in [
        (["inspect", path, "chunk", "overworld", "900", "0", "0"].as_slice(), "not stored"),
        (&["inspect", path, "chunk", "nether", "0", "0", "0"], "nether"),
        (&["inspect", path, "entity", "00000000-0000-0000-0000-00000000ffff"], "not stored"),
    ] {
        let error = try_run(wrong, false).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }

    let verified = run(&["verify", path]);
    assert_eq!((ending(&verified), &verified.json["damaged"]), ("finished", &0.into()), "{}", verified.text());
    assert_eq!(ending(&try_run(&["verify", path], true).unwrap()), "stopped");
    let trial = run(&["prune", path, "-d", "overworld", "--radius", "2", "--dry-run"]);
    assert_eq!(trial.json["columns"], 121 - 13);
    assert!(trial.text().contains("outside: disc of radius 2 around "), "{}", trial.text());
    assert_eq!(files(&world), before);
}

/// Promise, upkeep: `terrane` refuses a world that a game has open, and names the game's process.
#[test]
fn commands_need_an_existing_world_that_is_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("world");
    let path = world.to_str().unwrap();
    for command in [&["info", path][..], &["verify", path], &["compact", path], &["copy", path, "new"]] {
        let error = try_run(command, false).unwrap_err();
        assert!(error.contains("there is no world") && error.contains(path), "{error}");
    }
    assert!(!world.exists());
    let open = WorldStore::open(&StorageConfig::Path(world.clone())).unwrap();
    let error = try_run(&["info", path], false).unwrap_err();
    assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
    drop(open);
    assert!(try_run(&["info", path], false).is_ok());
}

#[test]
fn wrong_arguments_are_refused() {
    for (arguments, reason) in [
        (&["info"][..], "<WORLD>"),
        (&["fly", "world"], "fly"),
        (&["inspect", "world", "entity", "5"], "5"),
        (&["prune", "world", "-d", "overworld"], "--radius"),
        (&["prune", "world", "-d", "overworld", "--from", "0,0"], "--to"),
        (&["prune", "world", "-d", "overworld", "--radius", "3", "--center", "7"], "10,-3"),
        (&["prune", "world", "-d", "overworld", "--from", "5,5", "--to", "1,1", "--yes"], "nothing between"),
        (&["backup", "world", "folder", "--keep", "0"], "0"),
        (&["restore", "folder"], "<WORLD>"),
        (&["export", "world", "file"], "--dimension"),
        (&["export", "world", "file", "-d", "overworld", "--from", "0,0"], "--to"),
        (&["export", "world", "file", "-d", "overworld", "--from", "0,0", "--to", "1,1,1"], "or none"),
        (&["export", "world", "file", "-d", "overworld", "--from", "0", "--to", "1,1,1"], "10,64,-3"),
        (&["import", "file", "world", "--move", "16,0,8"], "multiples of 16"),
    ] {
        let error = try_run(arguments, false).unwrap_err();
        assert!(error.contains(reason), "{arguments:?}: {error}");
    }
}

/// Promise, upkeep: `terrane copy` copies a world byte for byte.
/// Promise, upkeep: `terrane salvage`, `copy` and `restore` make a complete world or none.
#[test]
fn copies_and_salvaged_worlds_are_whole_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (world, copy, salvaged) = (path("world"), path("copy"), path("salvaged"));
    make_world(Path::new(&world), 5);
    assert_eq!(ending(&try_run(&["copy", &world, &copy], true).unwrap()), "stopped");
    assert!(!Path::new(&copy).exists());
    let copied = run(&["copy", &world, &copy]);
    assert_eq!(ending(&copied), "finished");
    assert_eq!(run(&["verify", &copy]).json["entries"], copied.json["entries"]);
    for command in ["copy", "salvage"] {
        let error = try_run(&[command, &world, &copy], false).unwrap_err();
        assert!(error.contains("is already a world"), "{error}");
    }
    assert_eq!(ending(&run(&["salvage", &world, &salvaged])), "finished");
    assert_eq!(run(&["verify", &salvaged]).json["entries"], copied.json["entries"]);
    // The salvaged world can be played.
    assert_eq!(WorldStore::open(&StorageConfig::Path(salvaged.into())).unwrap().session(), 2);
}

#[test]
fn backends_copy_to_each_other_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("world");
    make_world(&world, 5);
    let go_on = |_: &_| ControlFlow::Continue(());
    let first = RocksStore::open_to_read(&world.join("db")).unwrap();
    let memory = MemoryStore::new();
    copy_store(&first, &memory, go_on).unwrap();
    let second = RocksStore::open(&folder.path().join("second"), true).unwrap();
    copy_store(&memory, &second, go_on).unwrap();
    for family in bevy_terrane::storage::Family::ALL {
        let all = |store: &dyn KeyValueStore| store.scan(family, &[]..&[0xff; 64], usize::MAX).unwrap();
        assert_eq!(all(&first), all(&memory));
        assert_eq!(all(&first), all(&second));
    }
}

/// Promise, upkeep: `terrane verify` reads and checks every value of a world.
#[test]
fn damage_on_disk_is_found_reported_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (world, salvaged) = (path("world"), path("salvaged"));
    make_world(Path::new(&world), 12);
    run(&["compact", &world]);
    let whole = run(&["verify", &world]).json["entries"].as_u64().unwrap();
    // A byte in the blocks of the largest table.
    let tables = fs::read_dir(Path::new(&world).join("db")).unwrap().map(|entry| entry.unwrap().path());
    let tables = tables.filter(|path| path.extension().is_some_and(|extension| extension == "sst"));
    let table = tables.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&table, bytes).unwrap();

    let found = run(&["verify", &world]);
    assert_eq!(ending(&found), "damaged", "{}", found.text());
    assert_eq!(found.json["damages"][0]["kind"], "unreadable", "{}", found.text());
    assert_eq!(found.json["damaged"], 1, "{}", found.text());
    let read = found.json["entries"].as_u64().unwrap();
    // One block of 16 KB holds a few chunks of noise, of 2 KB each.
    assert!((1..=16).contains(&(whole - read)), "{read} of {whole}");
    let saved = run(&["salvage", &world, &salvaged]);
    assert_eq!((ending(&saved), saved.json["entries"].as_u64()), ("damaged", Some(read)), "{}", saved.text());
    let verified = run(&["verify", &salvaged]);
    assert_eq!((ending(&verified), verified.json["entries"].as_u64()), ("finished", Some(read)), "{}", verified.text());
}

/// Promise, upkeep: `terrane restore` makes a new world of the backup with the given number.
#[test]
fn a_backup_is_restored_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (world, backups, restored) = (path("world"), path("backups"), path("restored"));
    make_world(Path::new(&world), 3);
    assert_eq!(ending(&try_run(&["backup", &world, &backups], true).unwrap()), "stopped");
    assert!(!Path::new(&backups).exists());
    assert_eq!(run(&["backup", &world, &backups]).json["number"], 1);
    assert_eq!(run(&["backup", &world, &backups]).json["number"], 2);
    assert_eq!(run(&["backup", &world, &backups, "--keep", "2"]).json["number"], 3);
    let listed = run(&["restore", &backups, "--list"]);
    assert_eq!(listed.json["backups"].as_array().unwrap().len(), 2);
    assert!(try_run(&["restore", &backups, &restored, "--number", "1"], false).unwrap_err().contains("backup 1"));
    assert_eq!(try_run(&["restore", &backups, &restored], true).unwrap().end.code(), 130);
    assert!(!Path::new(&restored).exists());
    // The leftovers of a restore that was killed.
    fs::create_dir_all(Path::new(&restored).join("db.unfinished")).unwrap();
    fs::write(Path::new(&restored).join("world.lock"), "process = 1").unwrap();
    assert_eq!(run(&["restore", &backups, &restored, "--number", "2"]).json["number"], 2);
    assert_eq!(run(&["verify", &restored]).json["entries"], run(&["verify", &world]).json["entries"]);
    assert!(try_run(&["restore", &backups, &restored], false).unwrap_err().contains("is already a world"));
    // A backup does not count as a session.
    assert_eq!(run(&["info", &world]).json["sessions"], 1);
}

/// K6, and pruned ground is generated again by a game.
///
/// Promise, upkeep: `terrane prune` deletes everything outside of a shape, and frees the disk space.
/// Promise, upkeep: A game can call `verify`, `prune`, `compact` and `back_up` itself.
#[test]
fn pruning_frees_disk_space_and_columns_generate_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (world, copy) = (path("world"), path("copy"));
    // 3,721 columns, of which a fifth stays.
    make_world(Path::new(&world), 30);
    run(&["compact", &world]);
    let pruned = run(&["prune", &world, "-d", "overworld", "--shape", "square", "--radius", "13", "--yes"]);
    assert_eq!(pruned.json["columns"], 61 * 61 - 27 * 27, "{}", pruned.text());
    assert_eq!(pruned.json["chunks"], 61 * 61 - 27 * 27);
    let verified = run(&["verify", &world]);
    assert_eq!((ending(&verified), &verified.json["stale_keys"]), ("finished", &0.into()), "{}", verified.text());
    // The live bytes are the size of a copy of the rest.
    run(&["copy", &world, &copy]);
    run(&["compact", &copy]);
    let size = |path: &str| {
        let tables = files(Path::new(path)).into_iter();
        let data = tables.filter(|(path, _)| path.extension().is_some_and(|kind| kind == "sst" || kind == "blob"));
        data.map(|(_, bytes)| bytes.len()).sum::<usize>()
    };
    let (space, live) = (size(&world), size(&copy));
    println!("after pruning 80 %: {space} bytes, live {live}, {:.3}", space as f64 / live as f64);
    assert!(space as f64 <= 1.2 * live as f64, "{space} bytes for {live}");

    let store = WorldStore::open_existing(&StorageConfig::Path(world.clone().into()), Access::Read).unwrap();
    let there = |x: i64| {
        let column = ColumnPos::new(x, 0);
        let loaded = store.load_batch(DimensionId(0), column.batch(), &[column], -4..4).unwrap().remove(0);
        loaded.column.chunks().count()
    };
    assert_eq!((there(13), there(14), there(-13), there(-14)), (1, 0, 1, 0));
}

#[test]
fn a_game_regenerates_pruned_columns() {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("world");
    let stone_at = |y| BlockPos::new(3, y, 3);
    let far = BlockPos::new(40 * 16, 90, 0);
    for round in 0..2 {
        let mut app = game(TerranePlugin::at(&world));
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 8.0, 8.0, 2);
        viewer(&mut app, dimension, 648.0, 8.0, 2);
        start(&mut app);
        let near = stone_at(90);
        update_until(&mut app, "the ground is there", |world| {
            block_at(world, dimension, near).is_some() && block_at(world, dimension, far).is_some()
        });
        let stone = id_of(app.world(), "terrane:stone");
        let found = [near, far].map(|position| block_at(app.world_mut(), dimension, position).unwrap());
        if round == 1 {
            assert_eq!(found, [stone, BlockId::AIR]);
            let ground = BlockPos::new(far.x, 0, far.z);
            let beneath = (-64..=64).any(|y| {
                block_at(app.world_mut(), dimension, BlockPos { y, ..ground })
                    .is_some_and(|block| block != BlockId::AIR)
            });
            assert!(beneath, "it is generated again");
            continue;
        }
        for position in [near, far] {
            app.world_mut().write_message(SetBlock { dimension, position, block: stone });
        }
        update_until(&mut app, "the blocks are set", |world| {
            [near, far].iter().all(|position| block_at(world, dimension, *position) == Some(stone))
        });
        drop(app);
        let path = world.to_str().unwrap();
        let pruned = run(&["prune", path, "-d", "overworld", "--radius", "5", "--yes"]);
        assert!(pruned.json["columns"].as_u64().unwrap() >= 13, "{}", pruned.text());
    }
}

/// Promise, upkeep: `terrane backup` asks the game that has the world open.
#[test]
fn a_backup_of_an_open_world_is_made_by_its_game() {
    let folder = tempfile::tempdir().unwrap();
    let [world, backups, restored] = ["world", "backups", "restored"].map(|name| folder.path().join(name));
    let paths = [&world, &backups].map(|path| path.to_str().unwrap().to_owned());
    let mut app = game(TerranePlugin::at(&world));
    listen::<PlayerLoggedIn>(&mut app);
    let dimension = flat(&mut app);
    start(&mut app);
    let place = BlockPos::new(3, 90, 3);
    app.world_mut().write_message(LogIn { name: "Alice".into(), first_place: Some((dimension, place)) });
    update_until(&mut app, "the player is there", |world| {
        !world.resource::<Heard<PlayerLoggedIn>>().0.is_empty() && block_at(world, dimension, place).is_some()
    });
    let stone = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: place, block: stone });
    update_until(&mut app, "the block is set", |world| block_at(world, dimension, place) == Some(stone));

    let asks = |keep: &'static str| {
        let [world, backups] = paths.clone();
        std::thread::spawn(move || try_run(&["backup", &world, &backups, "--keep", keep], false))
    };
    for number in 1..=2 {
        let asked = asks("3");
        update_until(&mut app, "the program has its answer", |_| asked.is_finished());
        assert_eq!(asked.join().unwrap().unwrap().json["number"], number);
    }
    // A backup that fails is reported, and the world continues.
    fs::write(folder.path().join("file"), "mine").unwrap();
    let (path, file) = (paths[0].clone(), folder.path().join("file").to_str().unwrap().to_owned());
    let refused = std::thread::spawn(move || try_run(&["backup", &path, &file], false));
    update_until(&mut app, "the program is refused", |_| refused.is_finished());
    assert!(refused.join().unwrap().is_err_and(|error| error.contains("file")));
    assert_eq!(ending(&try_run(&["backup", &paths[0], &paths[1]], true).unwrap()), "stopped");
    drop(app);

    run(&["restore", &paths[1], restored.to_str().unwrap()]);
    let store = WorldStore::open_existing(&StorageConfig::Path(restored.clone()), Access::Read).unwrap();
    let column =
        store.load_batch(DimensionId(0), BatchPos::new(0, 0), &[ColumnPos::new(0, 0)], 0..6).unwrap().remove(0);
    assert_eq!(column.column.block(place), stone);
    drop(store);
    let info = run(&["info", restored.to_str().unwrap()]);
    assert_eq!(info.json["players"][0]["name"], "Alice");
    assert_eq!(info.json["players"][0]["block"], serde_json::json!([3, 90, 3]));
    assert_eq!(info.json["players"][0]["dimension"], 0);
    assert!(info.text().contains("name \"Alice\"") && info.text().contains("block [3, 90, 3]"), "{}", info.text());
}

/// The names of the blocks that [`make_world`] uses.
fn name_blocks(path: &Path) {
    let world = WorldStore::open(&StorageConfig::Path(path.into())).unwrap();
    let record = |number| BlockRecord { name: format!("noise:block_{number}"), components: Vec::new() };
    let air = BlockRecord { name: "terrane:air".into(), components: Vec::new() };
    let blocks = [air].into_iter().chain((1..16).map(record)).collect();
    world.save_registry_lists(&RegistryLists { blocks, ..RegistryLists::default() }).unwrap();
}

/// Promise, upkeep: `terrane export` and `terrane import` copy a dimension into another world.
#[test]
fn a_dimension_is_exported_and_imported_into_another_world() {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("world");
    make_world(&world, 5);
    name_blocks(&world);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (from, file, new) = (path("world"), path("world.objects"), path("new"));
    let export = ["export", &from, &file, "-d", "overworld"];
    let open = WorldStore::open(&StorageConfig::Path(world.clone())).unwrap();
    assert!(try_run(&export, false).unwrap_err().contains("restore the backup"));
    drop(open);
    assert_eq!(ending(&try_run(&export, true).unwrap()), "stopped");
    let unfinished = try_run(&["import", &file, &new, "--create"], false).unwrap_err();
    assert!(unfinished.contains("is incomplete"), "{unfinished}");
    assert!(!Path::new(&new).exists());
    let exported = run(&export);
    assert_eq!(ending(&exported), "finished", "{}", exported.text());
    assert_eq!((&exported.json["columns"], &exported.json["chunks"]), (&121.into(), &121.into()));
    assert!(exported.json["bytes"].as_u64().unwrap() > 100_000);
    assert!(try_run(&export, false).unwrap_err().contains("already exists"));

    assert!(try_run(&["import", &file, &path("nowhere")], false).unwrap_err().contains("--create"));
    assert_eq!(ending(&try_run(&["import", &file, &new, "--create"], true).unwrap()), "stopped");
    let other = try_run(&["import", &file, &new, "--existing", "replace"], false).unwrap_err();
    assert!(other.contains("--anew"), "{other}");
    let imported = run(&["import", &file, &new]);
    assert_eq!((ending(&imported), &imported.json["columns"]), ("finished", &121.into()), "{}", imported.text());
    assert_eq!(&imported.json["entities"], &exported.json["entities"]);
    assert_eq!(run(&["verify", &new]).json["damaged"], 0);
    let chunk = |world: &str, x: &str| run(&["inspect", world, "chunk", "overworld", x, "0", "2"]).json;
    assert_eq!(chunk(&new, "-3")["blocks"], chunk(&from, "-3")["blocks"]);

    // A box of it is exported and imported again, beside it.
    let part = path("part.objects");
    let area = ["--from", "-16,-16", "--to", "15,15", "--objects-per-file", "1"];
    let exported = run(&[&["export", &from, &part, "-d", "overworld"][..], &area].concat());
    assert_eq!((&exported.json["columns"], &exported.json["files"]), (&4.into(), &4.into()), "{}", exported.text());
    assert!(try_run(&["import", &part, &new], false).unwrap_err().contains("already exist"));
    let beside = run(&["import", &part, &new, "--move", "160,0,32"]);
    assert_eq!((&beside.json["columns"], &beside.json["new_types"]), (&4.into(), &0.into()), "{}", beside.text());
    assert_eq!(
        chunk(&new, "9")["blocks"],
        run(&["inspect", &from, "chunk", "overworld", "-1", "0", "0"]).json["blocks"]
    );
    let again = run(&["import", &part, &new, "--existing", "keep", "--dimension", "overworld"]);
    assert_eq!((&again.json["columns"], &again.json["left"]), (&0.into(), &4.into()), "{}", again.text());

    // Damage is reported, and the rest is imported if requested.
    let mut bytes = fs::read(&file).unwrap();
    let place = bytes.len() / 2;
    bytes[place..place + 4_096].fill(7);
    fs::write(&file, bytes).unwrap();
    let other = path("other");
    let error = try_run(&["import", &file, &other, "--create"], false).unwrap_err();
    assert!(error.contains("world.objects") && error.contains("cannot be used"), "{error}");
    let rest = run(&["import", &file, &other, "--leave-damaged", "--create"]);
    let lost = rest.json["lost"].as_array().unwrap().len() as u64;
    assert_eq!(ending(&rest), "damaged");
    assert!((1..5).contains(&lost) && rest.json["columns"] == 121 - lost, "{}", rest.text());
}
