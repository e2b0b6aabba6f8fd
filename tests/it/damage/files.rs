//! Database files that are missing or have changed since the world was closed.

use super::*;
use crate::support::folder::copy_folder;
use bevy_terrane::storage::StoreError;

/// The list of a database's files, stored beside them.
const LIST: &str = "db/files.terrane";

fn damaged_file(path: &Path) -> PathBuf {
    match open(path) {
        Err(WorldOpenError::Database { source: StoreError::DamagedFile { path, .. }, .. }) => path,
        other => panic!("{other:?}"),
    }
}

/// Saves a round, and a chunk for a blob file.
fn save(world: &WorldStore, number: u32) {
    world.commit(&round(number), Durability::Sync).unwrap();
    let groups = [ColumnPos::new(0, 0), ColumnPos::new(i64::from(number % 50), 3)].map(|column| column.chunk(0));
    let groups = groups
        .map(|chunk| (bevy_terrane::storage::ChunkGroup::of(OVERWORLD, chunk), bevy_terrane::storage::Tier::Cold));
    world.move_groups(&groups).unwrap();
}

/// Promise, crashes: A closed world has an empty log and a list of its files, and the next opening checks the list.
#[test]
fn a_closed_world_has_nothing_in_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    for number in 0..3 {
        let world = open(&path).unwrap();
        assert_eq!(stored_round(&world), u32::checked_sub(number, 1));
        world.commit(&round(number), Durability::Sync).unwrap();
        let is_empty = |log: &PathBuf| fs::metadata(log).unwrap().len() == 0;
        assert!(!database_files(&path, "log").iter().all(is_empty));
        drop(world);
        assert!(database_files(&path, "log").iter().all(is_empty));
        assert!(path.join(LIST).is_file());
    }
}

/// Promise, crashes: A closed world has an empty log and a list of its files, and the next opening checks the list.
#[test]
fn a_missing_or_shortened_file_of_a_closed_world_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    (0..2).for_each(|number| save(&open(&path).unwrap(), number));
    let mut named = 0;
    for (file, bytes) in files(&path.join("db")) {
        let name = file.file_name().unwrap().to_str().unwrap();
        let is_needed = ["CURRENT", "MANIFEST", ".sst", ".blob"].iter().any(|part| name.contains(part));
        if !is_needed {
            continue;
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(damaged_file(&path), file);
        fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(damaged_file(&path), file);
        fs::write(&file, &bytes).unwrap();
        named += 1;
    }
    assert!(named >= 6, "{named}");
    assert_eq!(stored_round(&open(&path).unwrap()), Some(1));
}

/// Promise, crashes: A world with a missing file, or other damage to its log, is refused, and the damage is named.
#[test]
fn a_missing_file_of_a_killed_world_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    (0..2).for_each(|number| save(&open(&path).unwrap(), number));
    let world = open(&path).unwrap();
    save(&world, 2);
    let mut told = 0;
    for file in files(&path.join("db")).into_keys() {
        let name = file.file_name().unwrap().to_str().unwrap();
        let is_needed = ["CURRENT", "MANIFEST", ".sst", ".blob", ".log"].iter().any(|part| name.contains(part));
        if !is_needed || name.starts_with("LOG") {
            continue;
        }
        let copy = folder.path().join(name);
        copy_folder(&path, &copy);
        fs::remove_file(copy.join("db").join(name)).unwrap();
        let named = damaged_file(&copy);
        assert!(named == copy.join("db") || named == copy.join("db").join(name), "{name}: {}", named.display());
        told += 1;
    }
    assert!(told >= 6, "{told}");
}

/// Promise, crashes: A closed world has an empty log and a list of its files, and the next opening checks the list.
#[test]
fn worlds_without_a_valid_list_open_like_killed_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world");
    save(&open(&path).unwrap(), 0);
    let list = fs::read(path.join(LIST)).unwrap();

    // Closed by a program that does not know lists.
    fs::remove_file(path.join(LIST)).unwrap();
    save(&open(&path).unwrap(), 1);
    // A flipped bit in the list itself.
    let mut flipped = fs::read(path.join(LIST)).unwrap();
    for at in 0..flipped.len() {
        flipped[at] ^= 1 << (at % 8);
        fs::write(path.join(LIST), &flipped).unwrap();
        flipped[at] ^= 1 << (at % 8);
        if at % 10 == 0 {
            assert_eq!(stored_round(&open(&path).unwrap()), Some(1), "byte {at}");
        }
    }
    // Opened, changed, and closed or killed by a program that does not update the list.
    let world = open(&path).unwrap();
    save(&world, 2);
    let killed = folder.path().join("killed");
    copy_folder(&path, &killed);
    drop(world);
    for path in [path, killed] {
        fs::write(path.join(LIST), &list).unwrap();
        assert_eq!(stored_round(&open(&path).unwrap()), Some(2));
    }
}
