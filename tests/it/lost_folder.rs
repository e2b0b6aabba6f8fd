//! A world's folder that is moved, deleted or replaced while the world is open; and a process without free file
//! handles.

#![cfg(all(unix, feature = "rocksdb"))]

use crate::support::folder::files;
use crate::support::process::{here, program, start as start_process};
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{Durability, Family, KeyValueStore, RocksStore, StoreError, WriteBatch};
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

fn place(round: u64) -> BlockPos {
    BlockPos::new(3, 10 + round as i64, 3)
}

fn open(path: &Path) -> (App, DimensionId) {
    let mut app =
        game(TerranePlugin { saving: SaveSettings::every(Duration::from_millis(800)), ..TerranePlugin::at(path) });
    listen::<WorldSaved>(&mut app);
    listen::<SaveFailed>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update_until(&mut app, "the ground is loaded", |world| {
        block_at(world, dimension, place(0)).is_some() && world.resource::<WorldStatistics>().remaining == 0
    });
    (app, dimension)
}

fn edit(app: &mut App, dimension: DimensionId, round: u64) {
    let block = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: place(round), block });
    app.update();
}

fn ask_to_save(app: &mut App, request: u64) {
    app.world_mut().write_message(SaveWorld { request });
}

fn is_saved(world: &World, round: u64) -> bool {
    world.resource::<Heard<WorldSaved>>().0.iter().any(|saved| saved.request == round)
}

/// Waits for so many failed saves that all report the folder as lost.
fn expect_lost(app: &mut App, path: &Path, times: usize) {
    let before = heard::<SaveFailed>(app).len();
    update_until(app, "saving fails", |world| world.resource::<Heard<SaveFailed>>().0.len() >= before + times);
    for failed in &heard::<SaveFailed>(app)[before..] {
        let error = failed.error.to_string();
        assert!(error.contains(&path.display().to_string()) && error.contains("was deleted or moved"), "{error}");
    }
}

/// Promise, crashes: Saving continues once a world's moved folder is back.
#[test]
fn saves_fail_while_the_folder_is_moved_and_are_complete_after_its_return() {
    let root = tempfile::tempdir().unwrap();
    let (path, away) = (root.path().join("world"), root.path().join("away"));
    let (mut app, dimension) = open(&path);
    edit(&mut app, dimension, 0);
    ask_to_save(&mut app, 0);
    update_until(&mut app, "the first save", |world| is_saved(world, 0));
    fs::rename(&path, &away).unwrap();
    edit(&mut app, dimension, 1);
    ask_to_save(&mut app, 1);
    expect_lost(&mut app, &path, 3);
    assert!(!is_saved(app.world(), 1));
    assert!(!path.exists(), "nothing is made anew");
    fs::rename(&away, &path).unwrap();
    update_until(&mut app, "what failed is saved", |world| is_saved(world, 1));
    edit(&mut app, dimension, 2);
    ask_to_save(&mut app, 2);
    update_until(&mut app, "more is saved", |world| is_saved(world, 2));
    let (mut app, dimension) = reopen(app, || open(&path));
    let stone = id_of(app.world(), "terrane:stone");
    assert!((0..3).all(|round| block_at(app.world_mut(), dimension, place(round)) == Some(stone)));
}

/// Promise, crashes: If a world's folder is deleted, moved or replaced, each `SaveFailed` names it, and nothing is written
/// there.
#[test]
fn every_save_into_a_deleted_folder_fails_and_the_folder_stays_deleted() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("world");
    let (mut app, dimension) = open(&path);
    ask_to_save(&mut app, 0);
    update_until(&mut app, "the first save", |world| is_saved(world, 0));
    fs::remove_dir_all(&path).unwrap();
    // The same if nothing has changed since.
    ask_to_save(&mut app, 1);
    expect_lost(&mut app, &path, 2);
    edit(&mut app, dimension, 1);
    expect_lost(&mut app, &path, 2);
    assert!(!is_saved(app.world(), 1));
    let stone = id_of(app.world(), "terrane:stone");
    assert_eq!(block_at(app.world_mut(), dimension, place(1)), Some(stone), "the world goes on");
    drop(app);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0, "nothing is left of it or made anew");
}

/// Promise, crashes: If a world's folder is deleted, moved or replaced, each `SaveFailed` names it, and nothing is written
/// there.
#[test]
fn a_folder_that_took_the_place_of_the_world_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let [path, other, away] = ["world", "other", "away"].map(|name| root.path().join(name));
    drop(open(&other));
    let before = files(&other);
    let (mut app, dimension) = open(&path);
    ask_to_save(&mut app, 0);
    update_until(&mut app, "the first save", |world| is_saved(world, 0));
    fs::rename(&path, &away).unwrap();
    fs::rename(&other, &path).unwrap();
    edit(&mut app, dimension, 1);
    ask_to_save(&mut app, 1);
    expect_lost(&mut app, &path, 3);
    drop(app);
    fs::rename(&path, &other).unwrap();
    assert!(files(&other) == before, "the other world is as it was");
    // The first world is intact.
    drop(open(&away));
}

fn batch(round: u32) -> WriteBatch {
    let mut batch = WriteBatch::default();
    Family::ALL.into_iter().for_each(|family| batch.put(family, round.to_be_bytes(), vec![round as u8; 2_000]));
    batch
}

/// Runs only in the process that the test below starts; otherwise it does nothing.
#[test]
fn process_without_file_handles() {
    let Some(path) = here() else { return };
    let store = RocksStore::open(&path.join("db"), true).unwrap();
    let (mut written, mut round) = (Vec::new(), 0);
    let mut write = |written: &mut Vec<u32>| {
        let result = store.write(batch(round), Durability::Sync);
        if result.is_ok() {
            written.push(round);
        }
        round += 1;
        result
    };
    write(&mut written).unwrap();
    let mut held = Vec::new();
    let take_all = |held: &mut Vec<File>| {
        while let Ok(file) = File::open("/dev/null") {
            held.push(file);
        }
    };
    take_all(&mut held);
    // Its files are open; a compaction and everything after it needs new ones.
    assert!(store.compact(Family::Chunks).is_err());
    let end = Instant::now() + Duration::from_secs(4);
    let mut errors = Vec::new();
    while Instant::now() < end {
        errors.extend(write(&mut written).err());
        let pause = Instant::now() + Duration::from_millis(50);
        while Instant::now() < pause {
            // Including handles that the store frees when it closes failed files.
            take_all(&mut held);
        }
    }
    let is_of_handles = |error: &StoreError| error.to_string().contains("Too many open files");
    assert!(errors.iter().any(is_of_handles), "{errors:?}");
    drop(held);
    let patience = Instant::now() + Duration::from_secs(20);
    // Reading needs no writer.
    while let Err(error) = store.get(Family::Chunks, &0_u32.to_be_bytes()) {
        assert!(Instant::now() < patience, "it cannot be read again: {error}");
        std::thread::sleep(Duration::from_millis(50));
    }
    while let Err(error) = write(&mut written) {
        assert!(Instant::now() < patience, "it does not work again: {error}");
        std::thread::sleep(Duration::from_millis(50));
    }
    for round in written {
        let stored = batch(round)
            .into_changes()
            .into_iter()
            .all(|change| store.get(change.family, &change.key) == Ok(change.value));
        assert!(stored, "round {round}");
    }
}

/// Promise, crashes: After any disk fault the store recovers by itself within seconds, and missing columns load.
#[test]
fn a_store_without_file_handles_works_again_when_there_are_some() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -n 200 && exec \"$0\" \"$@\""]).arg(program().get_program());
    let (mut process, lines) = start_process(shell, "lost_folder::process_without_file_handles", folder.path());
    let said: Vec<String> = lines.collect();
    assert!(process.wait().unwrap().success(), "{}", said.join("\n"));
    assert!(said.iter().any(|line| line.contains("1 passed")), "{}", said.join("\n"));
}
