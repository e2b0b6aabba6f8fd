//! A disk that fails under the database: the game is notified and continues in memory, nothing is lost, and when the disk
//! works again, so does the store.
//!
//! The disk fails in a process of its own, by means of a small library in C that intercepts system calls. Machines that
//! can build RocksDB can build it too.

#![cfg(all(target_os = "linux", feature = "rocksdb"))]

use crate::support::process::{output, output_within, program};
use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{Durability, Family, KeyValueStore, RocksStore, StoreError, WriteBatch};
use bevy_terrane::view::{AskChunks, ChunksAnswer, LogIn, LogInRefused, PlayerLoggedIn};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// In the process with the disk: the test's folder. The world is below `world`, on the faulty disk.
const FOLDER: &str = "TERRANE_TEST_FOLDER";
/// The fault of the disk there.
const FAULT: &str = "TERRANE_TEST_FAULT";

/// The system calls that fail, with the number and the name of the error.
const FULL: (&str, u32, &str) = ("write", 28, "No space left on device");
const BROKEN: (&str, u32, &str) = ("write", 5, IO_ERROR);
const UNSYNCED: (&str, u32, &str) = ("sync", 5, IO_ERROR);
const FULL_FOR_TABLES: (&str, u32, &str) = ("table", 28, "No space left on device");
const GONE: (&str, u32, &str) = ("open,read,write,sync", 5, IO_ERROR);
const IO_ERROR: &str = "Input/output error";

/// Runs one test of this file in a separate process, on a disk that can be made to fail.
fn on_faulty_disk(test: &str, (calls, number, text): (&str, u32, &str)) {
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
        .env(FAULT, format!("{calls} {number} {text}"));
    let output = output_within(&mut process, Duration::from_secs(600));
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{calls} {number}: {}\n{}", said[0], said[1]);
    assert!(said[0].contains("1 passed"), "{}", said[0]);
}

/// The faulty disk, as seen by the process that uses it.
struct Disk {
    folder: PathBuf,
    calls: Vec<String>,
    number: u32,
    text: String,
    /// The failing calls, and the folder below which they fail.
    faults: Mutex<BTreeSet<(String, PathBuf)>>,
}

impl Disk {
    fn here() -> Option<Self> {
        let folder = std::env::var_os(FOLDER).map(PathBuf::from)?;
        let fault = std::env::var(FAULT).unwrap();
        let [calls, number, text] = fault.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{fault}") };
        let calls = calls.split(',').map(str::to_owned).collect();
        Some(Self { folder, calls, number: number.parse().unwrap(), text: text.to_owned(), faults: Mutex::default() })
    }

    fn path(&self) -> PathBuf {
        self.folder.join("world")
    }

    fn fails(&self, fails: bool) {
        self.calls.iter().for_each(|call| self.fails_at(call, &self.path(), fails));
    }

    /// Sets whether this call fails below a folder.
    fn fails_at(&self, call: &str, path: &Path, fails: bool) {
        let mut faults = self.faults.lock().unwrap();
        let fault = (call.to_owned(), path.to_owned());
        match fails {
            true => faults.insert(fault),
            false => faults.remove(&fault),
        };
        let lines = faults.iter().map(|(call, path)| format!("{call} {} {}\n", self.number, path.display()));
        fs::write(self.folder.join("new"), lines.collect::<String>()).unwrap();
        fs::rename(self.folder.join("new"), self.folder.join("switch")).unwrap();
    }

    /// The system's text for the fault.
    fn text(&self) -> &str {
        &self.text
    }
}

fn place(round: u64) -> BlockPos {
    BlockPos::new(3, 10 + round as i64, 3)
}

fn open(path: &Path) -> (App, DimensionId) {
    let mut app =
        game(TerranePlugin { saving: SaveSettings::every(Duration::from_secs(3_600)), ..TerranePlugin::at(path) });
    listen::<WorldSaved>(&mut app);
    listen::<SaveFailed>(&mut app);
    listen::<ChunksAnswer>(&mut app);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 3);
    start(&mut app);
    update_until(&mut app, "the ground is loaded", |world| {
        block_at(world, dimension, place(0)).is_some() && world.resource::<WorldStatistics>().remaining == 0
    });
    (app, dimension)
}

fn edit_and_ask_to_save(app: &mut App, dimension: DimensionId, round: u64) {
    let block = id_of(app.world(), "terrane:stone");
    app.world_mut().write_message(SetBlock { dimension, position: place(round), block });
    app.update();
    app.world_mut().write_message(SaveWorld { request: round });
}

fn is_saved(world: &World, round: u64) -> bool {
    world.resource::<Heard<WorldSaved>>().0.iter().any(|saved| saved.request == round)
}

/// The version of the chunk that contains all places.
fn version(app: &mut App, dimension: DimensionId) -> u64 {
    let request = heard::<ChunksAnswer>(app).len() as u64;
    let version = |world: &World| {
        let answers = &world.resource::<Heard<ChunksAnswer>>().0;
        let answer = answers.iter().find(|answer| answer.request == request)?;
        Some(answer.chunks[0].1.as_ref().unwrap().as_ref().expect("a chunk").version)
    };
    app.world_mut().write_message(AskChunks { request, dimension, chunks: vec![place(0).chunk()] });
    update_until(app, "the chunk is told", |world| version(world).is_some());
    version(app.world()).unwrap()
}

/// Runs only in the process that the tests below start; otherwise it does nothing.
#[test]
fn process_of_a_game() {
    let Some(disk) = Disk::here() else { return };
    let (mut app, dimension) = open(&disk.path());
    edit_and_ask_to_save(&mut app, dimension, 0);
    update_until(&mut app, "the first save", |world| is_saved(world, 0));
    let first = version(&mut app, dimension);
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
        // The world continues.
        let stone = id_of(app.world(), "terrane:stone");
        assert_eq!(block_at(app.world_mut(), dimension, place(failing)), Some(stone));
        disk.fails(false);
        update_until(&mut app, "what failed is saved", |world| is_saved(world, failing));
        edit_and_ask_to_save(&mut app, dimension, failing + 1);
        update_until(&mut app, "more is saved", |world| is_saved(world, failing + 1));
    }
    assert_eq!(version(&mut app, dimension), first + 4, "each change is saved once, however often that was tried");
    drop(app);
    let (mut app, dimension) = open(&disk.path());
    let stone = id_of(app.world(), "terrane:stone");
    for round in 0..5 {
        assert_eq!(block_at(app.world_mut(), dimension, place(round)), Some(stone), "of round {round}");
    }
    assert_eq!(app.world().resource::<WorldStatistics>().generated, 0, "what was saved is loaded");
}

/// Promise, crashes: While the disk is full or fails, the world keeps running, and everything is saved when the disk works again.
#[test]
fn a_game_on_a_full_disk_continues_and_saves_once_there_is_space() {
    on_faulty_disk("process_of_a_game", FULL);
}

/// Promise, crashes: While the disk is full or fails, the world keeps running, and everything is saved when the disk works again.
#[test]
fn a_game_on_a_disk_with_errors_continues_and_saves_once_they_end() {
    on_faulty_disk("process_of_a_game", BROKEN);
    on_faulty_disk("process_of_a_game", UNSYNCED);
}

/// Runs only in the process that the test below starts; otherwise it does nothing.
#[test]
fn process_of_a_game_that_loses_its_disk() {
    let Some(disk) = Disk::here() else { return };
    let (far, spawn) = (BlockPos::new(1_003, 12, 3), BlockPos::new(8, 5, 8));
    let (mut app, dimension) = open(&disk.path());
    let camera = viewer(&mut app, dimension, far.x as f32, 0.0, 1);
    update_until(&mut app, "the ground far away is there", |world| block_at(world, dimension, far).is_some());
    app.world_mut().despawn(camera);
    // Everything is in tables now, and has to be read from the disk.
    let (mut app, dimension) = reopen(app, || open(&disk.path()));
    listen::<PlayerLoggedIn>(&mut app);
    listen::<LogInRefused>(&mut app);
    disk.fails(true);
    edit_and_ask_to_save(&mut app, dimension, 1);
    viewer(&mut app, dimension, far.x as f32, 0.0, 1);
    // A save is tried every second.
    update_until(&mut app, "it was tried and failed for seconds", |world| {
        world.resource::<Heard<SaveFailed>>().0.len() >= 5
    });
    assert!(!is_saved(app.world(), 1));
    disk.fails(false);
    update_until(&mut app, "what failed is saved", |world| is_saved(world, 1));
    update_until(&mut app, "what could not be read is there", |world| block_at(world, dimension, far).is_some());
    assert_eq!(app.world().resource::<WorldStatistics>().generated, 0, "it is loaded and not generated");
    app.world_mut().write_message(LogIn { name: "Zoë".into(), first_place: Some((dimension, spawn)) });
    update_until(&mut app, "a player is there", |world| !world.resource::<Heard<PlayerLoggedIn>>().0.is_empty());
    assert!(heard::<LogInRefused>(&app).is_empty());
    edit_and_ask_to_save(&mut app, dimension, 2);
    update_until(&mut app, "more is saved", |world| is_saved(world, 2));
    let (mut app, dimension) = reopen(app, || open(&disk.path()));
    let stone = id_of(app.world(), "terrane:stone");
    assert!([1, 2].into_iter().all(|round| block_at(app.world_mut(), dimension, place(round)) == Some(stone)));
}

/// Promise, crashes: After any disk fault the store recovers by itself within seconds, and missing columns load.
#[test]
fn a_game_recovers_when_its_disk_returns_after_seconds() {
    on_faulty_disk("process_of_a_game_that_loses_its_disk", GONE);
}

fn batch(round: u32, bytes: usize) -> WriteBatch {
    let mut batch = WriteBatch::default();
    // The data must not be compressible.
    let mut next = noise(u64::from(round) + 1);
    for family in Family::ALL {
        let mut value = Vec::with_capacity(bytes + 8);
        while value.len() < bytes {
            value.extend_from_slice(&next().to_le_bytes());
        }
        value.truncate(bytes);
        batch.put(family, round.to_be_bytes(), value);
    }
    batch
}

/// Returns `true` if every value of a round is there and intact, in every family.
fn has(store: &RocksStore, round: u32, bytes: usize) -> bool {
    let stored = |change: bevy_terrane::storage::Entry| {
        let value = store.get(change.family, &change.key).unwrap();
        assert!(value.is_none() || value == change.value, "round {round} is not whole in {}", change.family);
        value.is_some()
    };
    let stored: Vec<bool> = batch(round, bytes).into_changes().into_iter().map(stored).collect();
    assert!(stored.iter().all(|found| *found == stored[0]), "half of round {round} is there: {stored:?}");
    stored[0]
}

/// Writes until it fails, reads meanwhile, and writes again when the disk works.
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
            // Earlier writes can be read at any time.
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
        let patience = Instant::now() + Duration::from_secs(120);
        while let Err(error) = store.write(batch(round, bytes), Durability::Sync) {
            assert!(Instant::now() < patience, "it does not work again: {error}");
            thread::sleep(Duration::from_millis(20));
        }
        written.push(round);
        round += 1;
    }
    drop(store);
    let store = RocksStore::open(&disk.path(), false).unwrap();
    assert!(written.iter().all(|round| has(&store, *round, bytes)));
    // A failed write may or may not be there, but it is never there in part.
    (0..round).for_each(|round| _ = has(&store, round, bytes));
}

/// Runs only in the process that the tests below start; otherwise it does nothing.
#[test]
fn process_that_writes() {
    fail_and_recover(3_000, 40, 3);
}

/// The same with enough data that tables are written too.
#[test]
fn process_that_writes_much() {
    fail_and_recover(400_000, 800, 1);
}

/// Promise, crashes: While the disk is full or fails, the store is read-only and says so.
#[test]
fn a_store_reopens_after_failed_log_writes() {
    [FULL, BROKEN, UNSYNCED].into_iter().for_each(|fault| on_faulty_disk("process_that_writes", fault));
}

#[test]
fn a_store_reopens_after_failed_table_writes() {
    on_faulty_disk("process_that_writes_much", FULL_FOR_TABLES);
}

/// One of the 24 orders of four calls.
fn order_of(calls: &[String], number: usize) -> Vec<String> {
    let mut left = calls.to_vec();
    let mut number = number;
    (1..=calls.len())
        .rev()
        .map(|choices| {
            let choice = number % choices;
            number /= choices;
            left.remove(choice)
        })
        .collect()
}

/// Calls begin to fail one after the other, and stop failing one after the other; then everything works again, and all
/// acknowledged data is there.
fn fail_in_order(disk: &Disk, number: usize) {
    const BYTES: usize = 3_000;
    let (path, order) = (disk.path().join(format!("{number:02}")), order_of(&disk.calls, number));
    fs::create_dir_all(&path).unwrap();
    let write = |store: &RocksStore, round| store.write(batch(round, BYTES), Durability::Sync);
    let store = RocksStore::open(&path, true).unwrap();
    (0..3).for_each(|round| write(&store, round).unwrap());
    drop(store);
    // The data is in tables now, and has to be read from the disk.
    let store = RocksStore::open(&path, false).unwrap();
    let (mut written, mut round) = (vec![0, 1, 2], 3);
    let mut use_it = |steps| {
        for _ in 0..steps {
            if write(&store, round).is_ok() {
                written.push(round);
            }
            round += 1;
            // It may fail, but its results are correct.
            _ = store.get(Family::Chunks, &(round % 3).to_be_bytes());
            thread::sleep(Duration::from_millis(50));
        }
    };
    for call in &order {
        disk.fails_at(call, &path, true);
        use_it(15);
    }
    let ends: Vec<_> = if number.is_multiple_of(2) { order.iter().collect() } else { order.iter().rev().collect() };
    for call in ends {
        use_it(10);
        disk.fails_at(call, &path, false);
    }
    let patience = Instant::now() + Duration::from_secs(20);
    // Reading needs no writer.
    while let Err(error) = store.get(Family::Chunks, &0_u32.to_be_bytes()) {
        assert!(Instant::now() < patience, "after {order:?} it cannot be read again: {error}");
        thread::sleep(Duration::from_millis(50));
    }
    while let Err(error) = write(&store, round) {
        assert!(Instant::now() < patience, "after {order:?} it does not work again: {error}");
        thread::sleep(Duration::from_millis(50));
    }
    written.push(round);
    assert!(written.iter().all(|round| has(&store, *round, BYTES)), "after {order:?}");
    drop(store);
    let store = RocksStore::open(&path, false).unwrap();
    assert!(written.iter().all(|round| has(&store, *round, BYTES)), "after {order:?}");
    (0..round).for_each(|round| _ = has(&store, round, BYTES));
}

/// Runs only in the process that the test below starts; otherwise it does nothing.
#[test]
fn process_that_fails_in_every_order() {
    let Some(disk) = Disk::here() else { return };
    thread::scope(|scope| {
        (0..24).for_each(|number| {
            drop(scope.spawn({
                let disk = &disk;
                move || fail_in_order(disk, number)
            }))
        });
    });
}

/// Promise, crashes: After any disk fault the store recovers by itself within seconds, and missing columns load.
#[test]
fn a_store_recovers_from_failed_opens_reads_writes_and_syncs_in_any_order() {
    on_faulty_disk("process_that_fails_in_every_order", GONE);
}
