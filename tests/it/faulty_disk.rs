//! A disk that fails under the database: the game is told and goes on in memory, nothing is lost, and when the disk works
//! again, so does the store.
//!
//! The disk is made to fail in a process of its own, by a small library in C that is put in front of the system calls.
//! Whoever can build RocksDB has what that takes.

#![cfg(all(target_os = "linux", feature = "rocksdb"))]

use crate::support::process::{output, output_within, program};
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{Durability, Family, KeyValueStore, RocksStore, StoreError, WriteBatch};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// In the process with the disk: where everything is. The world is below `world`, which is on the faulty disk.
const FOLDER: &str = "TERRANE_TEST_FOLDER";
/// What happens to the disk there.
const FAULT: &str = "TERRANE_TEST_FAULT";

/// System calls that fail, with the number and the name of the error.
const FULL: (&str, u32, &str) = ("write", 28, "No space left on device");
const BROKEN: (&str, u32, &str) = ("write", 5, "Input/output error");
const UNSYNCED: (&str, u32, &str) = ("sync", 5, "Input/output error");
const FULL_FOR_TABLES: (&str, u32, &str) = ("table", 28, "No space left on device");

/// Runs one test of this file as a process of its own, on a disk that can be made to fail.
fn on_faulty_disk(test: &str, (call, number, text): (&str, u32, &str)) {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faulty_disk/faulty_disk.c");
    let library = folder.path().join("faulty_disk.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(output(&mut compiler).status.success());
    let mut process = program();
    process
        .args(["--exact", &format!("faulty_disk::{test}"), "--nocapture"])
        .env("LD_PRELOAD", &library)
        .env("FAULTY_DISK_FOLDER", folder.path().join("world"))
        .env("FAULTY_DISK_SWITCH", folder.path().join("switch"))
        .env(FOLDER, folder.path())
        .env(FAULT, format!("{call} {number} {text}"));
    let output = output_within(&mut process, Duration::from_secs(600));
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{call} {number}: {}\n{}", said[0], said[1]);
    assert!(said[0].contains("1 passed"), "{}", said[0]);
}

/// The faulty disk, in the process that is on it.
struct Disk {
    folder: PathBuf,
    fault: String,
}

impl Disk {
    fn here() -> Option<Self> {
        let folder = std::env::var_os(FOLDER).map(PathBuf::from)?;
        Some(Self { folder, fault: std::env::var(FAULT).unwrap() })
    }

    fn path(&self) -> PathBuf {
        self.folder.join("world")
    }

    fn fails(&self, fails: bool) {
        let switch = self.folder.join("switch");
        match fails {
            true => {
                fs::write(self.folder.join("new"), &self.fault).unwrap();
                fs::rename(self.folder.join("new"), switch).unwrap();
            }
            false => fs::remove_file(switch).unwrap(),
        }
    }

    /// What the system says of the fault.
    fn text(&self) -> &str {
        self.fault.splitn(3, ' ').nth(2).unwrap()
    }
}

fn place(round: u64) -> BlockPos {
    BlockPos::new(3, 10 + round as i64, 3)
}

fn open(path: &Path) -> (App, Entity) {
    let mut app = game(TerranePlugin::at(path).with_autosave_period(Duration::from_secs(3_600)));
    listen::<WorldSaved>(&mut app);
    listen::<SaveFailed>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 3);
    start(&mut app);
    update_until(&mut app, "the ground is loaded", |world| {
        block_at(world, dimension, place(0)).is_some() && world.resource::<WorldStatistics>().remaining == 0
    });
    (app, dimension)
}

fn edit_and_ask_to_save(app: &mut App, dimension: Entity, round: u64) {
    let block = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: place(round), block });
    app.update();
    app.world_mut().write_message(SaveWorld { request: round });
}

fn is_saved(world: &World, round: u64) -> bool {
    world.resource::<Heard<WorldSaved>>().0.iter().any(|saved| saved.request == round)
}

/// Runs only in the process that the tests below start; by itself it does nothing.
#[test]
fn process_of_a_game() {
    let Some(disk) = Disk::here() else { return };
    let (mut app, dimension) = open(&disk.path());
    edit_and_ask_to_save(&mut app, dimension, 0);
    update_until(&mut app, "the first save", |world| is_saved(world, 0));
    for failing in [1, 3] {
        disk.fails(true);
        let before = heard::<SaveFailed>(&app).len();
        edit_and_ask_to_save(&mut app, dimension, failing);
        update_until(&mut app, "it was tried and failed several times", |world| {
            world.resource::<Heard<SaveFailed>>().0.len() >= before + 3
        });
        let failed = &heard::<SaveFailed>(&app)[before..];
        let first = failed[0].error.to_string();
        assert!(first.contains(disk.text()) && first.contains(&disk.path().display().to_string()), "{first}");
        assert!(failed.iter().all(|failed| failed.requests.is_empty()), "nobody is told that it will not be saved");
        assert!(!is_saved(app.world(), failing));
        // The world goes on.
        let stone = id_of(app.world(), "terrane:stone");
        assert_eq!(block_at(app.world_mut(), dimension, place(failing)), Some(stone));
        disk.fails(false);
        update_until(&mut app, "what failed is saved", |world| is_saved(world, failing));
        edit_and_ask_to_save(&mut app, dimension, failing + 1);
        update_until(&mut app, "more is saved", |world| is_saved(world, failing + 1));
    }
    drop(app);
    let (mut app, dimension) = open(&disk.path());
    let stone = id_of(app.world(), "terrane:stone");
    for round in 0..5 {
        assert_eq!(block_at(app.world_mut(), dimension, place(round)), Some(stone), "of round {round}");
    }
    assert_eq!(app.world().resource::<WorldStatistics>().generated, 0, "what was saved is loaded");
}

#[test]
fn a_game_on_a_full_disk_goes_on_and_saves_when_there_is_room_again() {
    on_faulty_disk("process_of_a_game", FULL);
}

#[test]
fn a_game_on_a_disk_with_errors_goes_on_and_saves_when_they_end() {
    on_faulty_disk("process_of_a_game", BROKEN);
    on_faulty_disk("process_of_a_game", UNSYNCED);
}

fn batch(round: u32, bytes: usize) -> WriteBatch {
    let mut batch = WriteBatch::default();
    let mut state = u64::from(round);
    for family in Family::ALL {
        // It must not compress.
        let noise = (0..bytes).map(|_| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 56) as u8
        });
        batch.put(family, round.to_be_bytes(), noise.collect());
    }
    batch
}

/// Every value of a round, in every family, is there and whole.
fn has(store: &RocksStore, round: u32, bytes: usize) -> bool {
    let stored = |change: bevy_terrane::storage::Change| {
        let value = store.get(change.family, &change.key).unwrap();
        assert!(value.is_none() || value == change.value, "round {round} is not whole in {}", change.family);
        value.is_some()
    };
    let stored: Vec<bool> = batch(round, bytes).into_changes().into_iter().map(stored).collect();
    assert!(stored.iter().all(|found| *found == stored[0]), "half of round {round} is there: {stored:?}");
    stored[0]
}

/// Writes until it fails, reads meanwhile, and writes again when the disk works again.
fn fail_and_recover(bytes: usize, tries: u32, times: u32) {
    let Some(disk) = Disk::here() else { return };
    let store = RocksStore::open(&disk.path(), true).unwrap();
    let mut written = Vec::new();
    let mut round = 0;
    for _ in 0..times {
        for _ in 0..5 {
            store.write(batch(round, bytes), Durability::Sync).unwrap();
            written.push(round);
            round += 1;
        }
        disk.fails(true);
        let mut errors = Vec::new();
        for _ in 0..tries {
            match store.write(batch(round, bytes), Durability::Sync) {
                Ok(()) => written.push(round),
                Err(error) => errors.push(error),
            }
            round += 1;
            // Whatever was written before can be read at any time.
            assert!(has(&store, written[written.len() - 1], bytes) && has(&store, 0, bytes));
            if errors.len() >= 20 {
                break;
            }
        }
        assert!(errors.len() >= 20, "{} of {tries} writes failed", errors.len());
        assert!(errors[0].to_string().contains(disk.text()), "{}", errors[0]);
        let is_told = |error: &StoreError| matches!(error, StoreError::ReadOnly { .. } | StoreError::Backend { .. });
        assert!(errors.iter().all(is_told), "{errors:?}");
        let is_read_only = |error: &StoreError| matches!(error, StoreError::ReadOnly { .. });
        assert!(errors.iter().any(is_read_only), "nobody is told that it can only be read: {errors:?}");
        assert!(written.iter().all(|round| has(&store, *round, bytes)), "all can be read meanwhile");
        disk.fails(false);
        let patience = Instant::now() + Duration::from_secs(20);
        while let Err(error) = store.write(batch(round, bytes), Durability::Sync) {
            assert!(Instant::now() < patience, "it does not work again: {error}");
            std::thread::sleep(Duration::from_millis(20));
        }
        written.push(round);
        round += 1;
    }
    drop(store);
    let store = RocksStore::open(&disk.path(), false).unwrap();
    assert!(written.iter().all(|round| has(&store, *round, bytes)));
    // Whether a write that failed is there nobody knows, but it is never there by half.
    (0..round).for_each(|round| _ = has(&store, round, bytes));
}

/// Runs only in the process that the tests below start; by itself it does nothing.
#[test]
fn process_that_writes() {
    fail_and_recover(3_000, 40, 3);
}

/// As the one above, but with enough that tables are written beside it.
#[test]
fn process_that_writes_much() {
    fail_and_recover(400_000, 800, 1);
}

#[test]
fn a_store_whose_log_cannot_be_written_opens_itself_again() {
    [FULL, BROKEN, UNSYNCED].into_iter().for_each(|fault| on_faulty_disk("process_that_writes", fault));
}

#[test]
fn a_store_whose_tables_cannot_be_written_opens_itself_again() {
    on_faulty_disk("process_that_writes_much", FULL_FOR_TABLES);
}
