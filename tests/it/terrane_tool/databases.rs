//! Commands on worlds in PostgreSQL.

use super::*;
use crate::databases::new_world;
use bevy_terrane::storage::Family;
use terrane_postgres::PostgresStore;

/// Everything in a world's store.
fn contents(store: &dyn KeyValueStore) -> Vec<(Family, Vec<u8>, Vec<u8>)> {
    let all = |family| store.scan(family, &[]..&[0xff; 64], usize::MAX).unwrap();
    Family::ALL
        .into_iter()
        .flat_map(|family| all(family).into_iter().map(move |(key, value)| (family, key, value)))
        .collect()
}

/// Promise, upkeep: `terrane` reads, copies, exports, imports and backs up worlds in PostgreSQL.
#[test]
fn a_world_moves_into_a_database_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (world, back, database) = (path("world"), path("back"), new_world());
    make_world(Path::new(&world), 5);
    name_blocks(Path::new(&world));
    let original = contents(&RocksStore::open_to_read(&Path::new(&world).join("db")).unwrap());

    assert_eq!(ending(&try_run(&["copy", &world, &database], true).unwrap()), "stopped");
    // Each command follows at once, and the session of the one before ends a moment after it.
    assert_eq!(contents(&PostgresStore::open(&database).unwrap()), [], "a stopped copy leaves nothing");
    assert_eq!(run(&["copy", &world, &database]).json["entries"], original.len());
    let error = try_run(&["copy", &world, &database], false).unwrap_err();
    assert!(error.contains("is not empty"), "{error}");
    assert_eq!(run(&["info", &database]).json["dimensions"][0]["columns"], 121);
    let verified = run(&["verify", &database]);
    assert_eq!((ending(&verified), &verified.json["entries"]), ("finished", &original.len().into()));
    run(&["copy", &database, &back]);
    assert!(contents(&RocksStore::open_to_read(&Path::new(&back).join("db")).unwrap()) == original);

    let (backups, restored) = (path("backups"), path("restored"));
    assert_eq!(run(&["backup", &database, &backups]).json["number"], 1);
    assert!(!Path::new(&path("backups.unfinished")).exists());
    run(&["restore", &backups, &restored]);
    assert!(contents(&RocksStore::open_to_read(&Path::new(&restored).join("db")).unwrap()) == original);

    let (export, imported) = (path("world.objects"), new_world());
    run(&["export", &database, &export, "-d", "overworld"]);
    let error = try_run(&["import", &export, &imported], false).unwrap_err();
    assert!(error.contains("has no world"), "{error}");
    run(&["import", &export, &imported, "--create"]);
    assert_eq!(run(&["info", &imported]).json["dimensions"][0]["columns"], 121);
    assert_eq!(ending(&run(&["verify", &imported])), "finished");
}

/// Promise, upkeep: `terrane` reads a world in PostgreSQL that a game has open, and refuses to change it.
#[test]
fn a_database_that_a_game_has_open_is_only_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (world, database) = (path("world"), new_world());
    make_world(Path::new(&world), 5);
    run(&["copy", &world, &database]);
    let game = WorldStore::from_store(Arc::new(PostgresStore::open(&database).unwrap())).unwrap();
    assert_eq!(ending(&run(&["verify", &database])), "finished");
    for command in [
        &["prune", &database, "-d", "overworld", "--radius", "2", "--yes"][..],
        &["import", "missing", &database],
        &["import", "missing", &database, "--create"],
        &["copy", &world, &database],
        &["compact", &database],
    ] {
        let error = try_run(&[command, &["--wait", "0"]].concat(), false).unwrap_err();
        assert!(error.contains("the world is open in a game"), "{error}");
    }
    for command in [&["restore", &world, &database][..], &["salvage", &world, &database]] {
        assert!(try_run(command, false).unwrap_err().contains("needs a folder"));
    }
    drop(game);
    let pruned = run(&["prune", &database, "-d", "overworld", "--radius", "2", "--yes"]);
    assert_eq!(pruned.json["columns"], 121 - 13);
    assert_eq!(run(&["info", &database]).json["dimensions"][0]["columns"], 13);
}
