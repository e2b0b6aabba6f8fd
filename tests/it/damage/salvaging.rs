//! Worlds that RocksDB refuses to open, or whose marker is missing or wrong.

use super::*;
use crate::support::folder::copy_folder;
use bevy_terrane::storage::upkeep::{Damage, VerifyReport, salvage_world};
use bevy_terrane::storage::{Access, Family, KeyValueStore, RocksStore};
use std::ops::ControlFlow;

type Contents = BTreeMap<(Family, Vec<u8>), Vec<u8>>;

fn contents(world: &Path) -> Contents {
    let store = RocksStore::open_to_read(&world.join("db")).unwrap();
    let entries = |family| store.scan(family, &[]..&[0xff; 64], usize::MAX).unwrap().into_iter();
    Family::ALL.into_iter().flat_map(|family| entries(family).map(move |(key, value)| ((family, key), value))).collect()
}

/// Some rounds of saves, as left by a killed process or in tables. Cold chunks are in blob files.
fn make_world(path: &Path, is_killed: bool) {
    let open_path = path.with_extension("open");
    let world = open(&open_path).unwrap();
    world.open_dimension("overworld", &origin()).unwrap();
    let names = ["terrane:air"].into_iter().map(str::to_owned).chain((1..16).map(|number| format!("game:{number}")));
    let blocks = names.map(|name| bevy_terrane::block::BlockRecord { name, components: Vec::new() }).collect();
    world.save_registry_lists(&bevy_terrane::storage::RegistryLists { blocks, ..Default::default() }).unwrap();
    let mut graph = BTreeMap::<TilePos, [u16; 64]>::new();
    let mut save = |number| {
        let mut batch = round(number);
        for (_, chunk) in batch.chunks.keys() {
            let column = chunk.column();
            graph.entry(column.tile()).or_insert([0; 64])[column.batch().in_tile()] |= 1 << column.in_batch();
        }
        batch.tiles = graph.iter().map(|(tile, masks)| ((OVERWORLD, *tile), *masks)).collect();
        world.commit(&batch, Durability::Sync).unwrap();
    };
    (0..60).for_each(&mut save);
    if is_killed {
        copy_folder(&open_path, path);
        return;
    }
    assert!(world.compact(|_| ControlFlow::Continue(())).unwrap().is_continue());
    (60..70).for_each(save);
    assert!(world.compact(|_| ControlFlow::Continue(())).unwrap().is_continue());
    drop(world);
    fs::rename(open_path, path).unwrap();
}

fn salvage(world: &Path, new: &Path) -> VerifyReport {
    salvage_world(world, new, |_| ControlFlow::Continue(())).unwrap()
}

fn expect_clean(world: &Path, what: &str) {
    let store = WorldStore::open_existing(&StorageConfig::Path(world.into()), Access::Read).unwrap();
    let report = store.verify(|_| ControlFlow::Continue(())).unwrap();
    assert!(report.finished && report.damage.is_empty(), "{what}: {:?}", report.damage.first);
}

/// The files of the database that hold stored data or its directory.
fn parts(world: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = files(&world.join("db")).into_keys().collect();
    let is_part = |name: &str| {
        [".sst", ".blob", ".log"].iter().any(|kind| name.ends_with(kind))
            || name == "CURRENT"
            || name.starts_with("MANIFEST")
    };
    files.retain(|path| is_part(path.file_name().unwrap().to_str().unwrap()));
    files
}

fn is_named(report: &VerifyReport, file: &Path) -> bool {
    report.damage.first.iter().any(|damage| matches!(damage, Damage::File { path, .. } if path == file))
}

/// Promise, upkeep: `terrane salvage` reads worlds that cannot be opened.
#[test]
fn without_manifest_current_or_marker_everything_is_salvaged() {
    for is_killed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let world = folder.path().join("world");
        make_world(&world, is_killed);
        let expected = contents(&world);
        for (number, lost) in
            [&["CURRENT"][..], &["MANIFEST"], &["CURRENT", "MANIFEST", "OPTIONS", "IDENTITY"], &["world"]]
                .into_iter()
                .enumerate()
        {
            for is_wrong in [false, true] {
                let what = format!("{lost:?}, wrong: {is_wrong}, killed: {is_killed}");
                let damaged = folder.path().join(format!("damaged {number} {is_wrong}"));
                copy_folder(&world, &damaged);
                let is_lost = |path: &PathBuf| {
                    let name = path.file_name().unwrap().to_str().unwrap();
                    lost.iter().any(|lost| name.starts_with(lost)) && name != "world.lock"
                };
                for path in files(&damaged).into_keys().filter(is_lost) {
                    match is_wrong {
                        true => fs::write(path, "nonsense\n").unwrap(),
                        false => fs::remove_file(path).unwrap(),
                    }
                }
                let before = files(&damaged);
                let new = folder.path().join(format!("new {number} {is_wrong}"));
                let report = salvage(&damaged, &new);
                assert!(!report.damage.is_empty(), "{what}");
                assert!(files(&damaged) == before, "{what}: nothing in the damaged world changes");
                expect_clean(&new, &what);
                assert!(contents(&new) == expected, "{what}");
                let names: Vec<_> = fs::read_dir(&new).unwrap().map(|entry| entry.unwrap().file_name()).collect();
                assert_eq!(names.len(), 3, "{what}: {names:?}");
            }
        }
    }
}

/// Promise, upkeep: `terrane salvage` reads worlds that cannot be opened.
#[test]
fn each_lost_or_damaged_file_leaves_the_others_salvageable() {
    for is_killed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let world = folder.path().join("world");
        make_world(&world, is_killed);
        let expected = contents(&world);
        for part in parts(&world) {
            let name = part.file_name().unwrap().to_str().unwrap().to_owned();
            let whole = fs::read(&part).unwrap();
            for (number, length) in
                [None, Some(0), Some(whole.len() / 2), Some(whole.len() - whole.len() / 20)].iter().enumerate()
            {
                let what = format!("{name} cut to {length:?}, killed: {is_killed}");
                match length {
                    None => fs::remove_file(&part).unwrap(),
                    Some(length) => fs::write(&part, &whole[..*length]).unwrap(),
                }
                let new = folder.path().join(format!("new {name} {number}"));
                let Ok(report) = salvage_world(&world, &new, |_| ControlFlow::Continue(())) else {
                    // The whole world was in one log.
                    assert!(is_killed && name.ends_with(".log"), "{what}");
                    assert!(!new.exists(), "{what}");
                    fs::write(&part, &whole).unwrap();
                    continue;
                };
                if name.ends_with(".sst") && length.is_some() {
                    assert!(is_named(&report, &part), "{what}: {:?}", report.damage);
                }
                let found = contents(&new);
                // The torn end of a log does not count as damage.
                assert!(!report.damage.is_empty() || name.ends_with(".log") || found == expected, "{what}");
                let has_types = found.get(&(Family::Registry, b"blocks".to_vec())).is_some_and(|list| !list.is_empty());
                if has_types {
                    expect_clean(&new, &what);
                }
                let lost_families =
                    expected.keys().map(|(family, _)| *family).collect::<std::collections::BTreeSet<_>>();
                let whole_families = lost_families.iter().filter(|family| {
                    let of = |contents: &Contents| {
                        let of_family = contents.iter().filter(|((of, _), _)| of == *family);
                        of_family.map(|(key, value)| (key.clone(), value.clone())).collect::<Vec<_>>()
                    };
                    of(&found) == of(&expected)
                });
                assert!(name.ends_with(".log") || whole_families.count() + 2 >= lost_families.len(), "{what}");
                fs::write(&part, &whole).unwrap();
                fs::remove_dir_all(new).unwrap();
            }
        }
    }
}

#[test]
fn a_folder_without_a_world_is_not_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let go_on = |_: &_| ControlFlow::Continue(());
    let new = folder.path().join("new");
    let other = folder.path().join("other");
    for files in [&[][..], &["letter.txt"], &["db/letter.txt"]] {
        fs::create_dir_all(other.join("db")).unwrap();
        files.iter().for_each(|file| fs::write(other.join(file), "mine").unwrap());
        assert!(
            matches!(salvage_world(&other, &new, go_on).unwrap_err().to_string(), error if error.contains("no world"))
        );
        assert!(!new.exists());
    }
    // A world of a later version belongs to another program.
    fs::write(other.join("world.terrane"), "bevy_terrane world\nformat = 9\n").unwrap();
    assert!(salvage_world(&other, &new, go_on).unwrap_err().to_string().contains("format 9"));
    assert!(!new.exists());
    // The database knows its own format, so in this case the marker is wrong.
    let world = folder.path().join("world");
    make_world(&world, false);
    fs::write(world.join("world.terrane"), "bevy_terrane world\nformat = 9\n").unwrap();
    salvage_world(&world, &new, go_on).unwrap();
}
