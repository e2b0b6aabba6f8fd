//! The example `upgrade`: its result for a file, and for a file over which it was killed.

// Its `main` is not called here, and it shares files with another example.
#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../examples/upgrade/main.rs"]
mod tool;

use bevy_terrane::object_store::{Object, ObjectStore, ObjectStoreOptions};
use clap::Parser;
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

const SIGNATURE: &str = "game 3";

fn owner(number: usize) -> Vec<u8> {
    format!("player {number}").into_bytes()
}

/// The value in the next version.
fn claim(owner: &[u8]) -> Vec<u8> {
    [&[0; 4], owner].concat()
}

fn key(number: usize, ending: &str) -> String {
    format!("chunk/{},0,{}/game:{ending}", number % 40, number / 40)
}

/// A file with `count` old objects and some others.
fn make(path: &Path, count: usize) {
    let mut store =
        ObjectStore::create(path, SIGNATURE, ObjectStoreOptions { sync: false, ..Default::default() }).unwrap();
    for number in 0..count {
        store.write(&key(number, "owner"), number as u64, &owner(number)).unwrap();
    }
    store.write("chunk/0,0,0/blocks", 4, b"of another kind").unwrap();
    store.close().unwrap();
}

fn contents(path: &Path) -> BTreeMap<String, Object> {
    let store = ObjectStore::open_to_read(path, SIGNATURE).unwrap();
    store.with_prefix("").map(|(key, _)| (key.to_owned(), store.read(key).unwrap().unwrap())).collect()
}

/// The content of such a file after the upgrade.
fn upgraded(count: usize) -> BTreeMap<String, Object> {
    let new = |number: usize| (key(number, "claim"), Object { version: number as u64, data: claim(&owner(number)) });
    let other = ("chunk/0,0,0/blocks".to_owned(), Object { version: 4, data: b"of another kind".to_vec() });
    (0..count).map(new).chain([other]).collect()
}

/// Runs the example on a file.
pub fn run(path: &Path, arguments: &[&str]) -> Result<tool::Outcome, String> {
    let line = ["upgrade", path.to_str().unwrap()].into_iter().chain(arguments.iter().copied());
    tool::run(&tool::Arguments::try_parse_from(line).map_err(|error| error.to_string())?)
}

/// Promise, upkeep: The example `upgrade` gives all keys of one ending another, and can be killed at any time.
#[test]
fn all_keys_of_one_ending_get_another_one_with_their_values_and_versions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    make(&path, 1_000);
    assert_eq!(run(&path, &[]), Ok(tool::Outcome { upgraded: 1_000, ..Default::default() }));
    assert_eq!(contents(&path), upgraded(1_000));
    // Nothing is left to do.
    assert_eq!(run(&path, &[]), Ok(tool::Outcome::default()));
    assert_eq!(contents(&path), upgraded(1_000));
    assert!(run(&folder.path().join("nothing"), &[]).unwrap_err().contains("cannot open"));
}

#[test]
fn files_that_belong_to_another_export_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second, third] = ["store", "store.2", "store.3"].map(|name| folder.path().join(name));
    for (path, export) in [(&first, "mine"), (&second, "mine"), (&third, "of another")] {
        make(path, 10);
        let mut store = ObjectStore::open(path, SIGNATURE, ObjectStoreOptions::default()).unwrap();
        store.write("export", 0, export.as_bytes()).unwrap();
        store.close().unwrap();
    }
    let before = contents(&third);
    assert_eq!(run(&first, &[]), Ok(tool::Outcome { upgraded: 20, ..Default::default() }));
    assert!(contents(&second).contains_key(&key(3, "claim")));
    assert_eq!(contents(&third), before);
}

#[test]
fn without_a_file_it_upgrades_a_sample() {
    let arguments = tool::Arguments::try_parse_from(["upgrade"]).unwrap();
    assert_eq!(tool::run(&arguments), Ok(tool::Outcome { upgraded: 1_000, ..Default::default() }));
}

/// Promise, upkeep: The example `upgrade` gives all keys of one ending another, and can be killed at any time.
#[test]
fn after_a_kill_at_any_point_each_object_exists_once_and_the_next_run_continues() {
    let folder = tempfile::tempdir().unwrap();
    let [path, killed] = ["store", "killed"].map(|name| folder.path().join(name));
    make(&path, 1_000);
    let expected = upgraded(1_000);
    let mut store = ObjectStore::open(&path, SIGNATURE, ObjectStoreOptions::default()).unwrap();
    let mut left = Vec::new();
    let outcome = tool::upgrade(
        &mut store,
        tool::Endings::new("/game:owner", "/game:claim").unwrap(),
        |old| Ok(claim(old)),
        |done, all| {
            // The state after a kill at this moment: the index is not written.
            fs::copy(&path, &killed).unwrap();
            let found = contents(&killed);
            assert_eq!(found.len(), expected.len());
            let new = found.iter().filter(|(key, object)| expected.get(*key) == Some(object)).count() - 1;
            let old = found.keys().filter(|key| key.ends_with("/game:owner")).count();
            assert_eq!((new, old), (done, all - done));
            assert_eq!(run(&killed, &[]).map(|outcome| outcome.upgraded), Ok(old));
            assert_eq!(contents(&killed), expected);
            left.push(old);
            ControlFlow::Continue(())
        },
    );
    assert_eq!(outcome.unwrap().upgraded, 1_000);
    assert!(left.len() > 2 && left.last() == Some(&0), "{left:?}");
}

#[test]
fn an_interrupted_upgrade_says_so_and_the_next_run_continues() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    make(&path, 1_000);
    let mut store = ObjectStore::open(&path, SIGNATURE, ObjectStoreOptions::default()).unwrap();
    let endings = tool::Endings::new("/game:owner", "/game:claim").unwrap();
    let outcome = tool::upgrade(&mut store, endings, |old| Ok(claim(old)), |_, _| ControlFlow::Break(())).unwrap();
    store.close().unwrap();
    assert!(outcome.stopped && outcome.upgraded < 1_000, "{outcome:?}");
    let rest = tool::Outcome { upgraded: 1_000 - outcome.upgraded, ..Default::default() };
    assert_eq!(run(&path, &[]), Ok(rest));
    assert_eq!(contents(&path), upgraded(1_000));
}

#[test]
fn objects_that_cannot_be_upgraded_stay_and_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    make(&path, 5);
    let mut store = ObjectStore::open(&path, SIGNATURE, ObjectStoreOptions::default()).unwrap();
    store.write(&key(1, "owner"), 1, &[0xff; 9]).unwrap();
    store.write(&key(3, "claim.v2"), 9, b"something else").unwrap();
    let long = format!("{}/game:owner", "c".repeat(501));
    store.write(&long, 1, &owner(0)).unwrap();
    store.close().unwrap();
    let before = contents(&path);
    let outcome = run(&path, &["--to", "/game:claim.v2"]).unwrap();
    assert_eq!(outcome.upgraded, 3);
    let named: Vec<&str> = outcome.left.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(named, [&long, &key(1, "owner"), &key(3, "owner")]);
    let after = contents(&path);
    for key in [&long, &key(1, "owner"), &key(3, "owner"), &key(3, "claim.v2")] {
        assert_eq!(after.get(key), before.get(key));
    }
    assert!(run(&path, &["--from", "s", "--to", "owners"]).unwrap_err().contains("upgraded again"));
    assert!(run(&path, &["--from", "", "--to", "x"]).is_err());
    assert_eq!(contents(&path), after);
}
