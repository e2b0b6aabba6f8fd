//! Losses of power: unsynced pages of the logs reach the disk in any order, or not at all, and their names may be missing.

use super::*;
use crate::{Durability, KeyValueStore, RocksStore, WriteBatch, keys};
use std::path::PathBuf;

const PAGE: u64 = 4096;

/// The number of repetitions: `few` times `TERRANE_ROUNDS`.
fn rounds(few: u64) -> u64 {
    few * std::env::var("TERRANE_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

struct Noise(u64);

impl Noise {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }

    fn bytes(&mut self, length: u64) -> Vec<u8> {
        (0..length).map(|_| self.below(256) as u8).collect()
    }
}

/// A store that is written until the power fails.
struct Machine {
    store: RocksStore,
    path: PathBuf,
    noise: Noise,
    /// The synced length of each log.
    synced: BTreeMap<String, u64>,
    rounds: u32,
    /// The number of rounds that survive a loss of power.
    synced_rounds: u32,
}

/// A batch that shows in each family how far the writes came.
fn round(number: u32, noise: &mut Noise) -> WriteBatch {
    let most = [10, 3_000, 9_000][noise.below(3) as usize];
    round_of(number, noise, most)
}

fn round_of(number: u32, noise: &mut Noise, most: u64) -> WriteBatch {
    let mut batch = WriteBatch::default();
    for family in Family::ALL {
        batch.put(family, *b"last", number.to_be_bytes().to_vec());
        let bytes = noise.below(most);
        batch.put(family, number.to_be_bytes(), noise.bytes(bytes));
    }
    batch
}

/// The number of rounds in a store. All of them must be there in all families, and nothing of later ones.
fn stored_rounds(store: &RocksStore) -> u32 {
    let count = |family| {
        let last = store.get(family, b"last").unwrap();
        let count = last.map_or(0, |last| u32::from_be_bytes(last.try_into().unwrap()) + 1);
        let all = store.scan(family, &[]..&keys::after(b"last"), usize::MAX).unwrap();
        assert_eq!(all.len() as u32, count + u32::from(count > 0), "{family}");
        count
    };
    let counts = Family::ALL.map(count);
    assert_eq!(counts, [counts[0]; 7], "a part of a write is there");
    counts[0]
}

impl Machine {
    fn new(path: &Path, seed: u64) -> Self {
        let (store, noise) = (RocksStore::open(path, true).unwrap(), Noise(seed));
        let mut machine =
            Self { store, path: path.to_path_buf(), noise, synced: BTreeMap::new(), rounds: 0, synced_rounds: 0 };
        machine.note_synced();
        machine
    }

    fn logs(&self) -> BTreeMap<String, u64> {
        let files = Files::list(&self.path).unwrap();
        files.logs().map(|(_, name)| (name.clone(), files.found[name])).collect()
    }

    fn note_synced(&mut self) {
        (self.synced, self.synced_rounds) = (self.logs(), self.rounds);
    }

    /// A write, and sometimes the flush of a family, which begins a new log.
    fn write(&mut self, durability: Durability) {
        let batch = round(self.rounds, &mut self.noise);
        self.store.write(batch, durability).unwrap();
        self.rounds += 1;
        if durability == Durability::Sync {
            self.note_synced();
        }
        if self.noise.below(12) == 0 {
            let family = Family::ALL[self.noise.below(7) as usize];
            self.store.with("sync", family, |database, handle| database.flush_cf(handle)).unwrap();
            // RocksDB syncs all logs but the newest.
            let mut logs = self.logs();
            let newest = logs.pop_last().unwrap();
            if !logs.is_empty() {
                let length = self.synced.get(&newest.0).copied();
                self.synced = logs;
                self.synced.extend(length.map(|length| (newest.0, length)));
            }
        }
    }

    fn sync(&mut self) {
        self.store.sync().unwrap();
        self.note_synced();
    }

    fn copy(&self, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(&self.path).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }

    /// The files that a loss of power leaves.
    fn lose_power(&mut self, to: &Path) {
        self.copy(to);
        for (name, length) in self.logs() {
            let path = to.join(&name);
            let Some(synced) = self.synced.get(&name).copied() else {
                if self.noise.below(3) == 0 {
                    fs::remove_file(path).unwrap();
                    continue;
                }
                self.lose_pages(&path, 0, length);
                continue;
            };
            self.lose_pages(&path, synced, length);
        }
    }

    fn lose_pages(&mut self, log: &Path, synced: u64, length: u64) {
        let mut bytes = fs::read(log).unwrap();
        let (share, fills_with_noise) = ([0, 1, 4, 9][self.noise.below(4) as usize], self.noise.below(4) == 0);
        for start in (synced / PAGE * PAGE..length).step_by(PAGE as usize) {
            if self.noise.below(10) < share {
                let lost = start.max(synced) as usize..(start + PAGE).min(length) as usize;
                let filling = if fills_with_noise { self.noise.bytes(PAGE) } else { vec![0; PAGE as usize] };
                bytes[lost.clone()].copy_from_slice(&filling[..lost.len()]);
            }
        }
        let end = synced + self.noise.below(length - synced + 1);
        match self.noise.below(3) {
            0 => bytes.truncate(end as usize),
            1 => bytes.truncate((end.next_multiple_of(PAGE)).min(length) as usize),
            _ => {}
        }
        fs::write(log, bytes).unwrap();
    }
}

fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Writes with one of the three ways to sync, and calls `visit` with each state.
fn write_and_visit(path: &Path, seed: u64, mut visit: impl FnMut(&mut Machine)) {
    let mut machine = Machine::new(path, seed);
    for step in 0..30_u64 {
        // Each save; each second; at the end.
        match seed % 3 {
            0 => machine.write(Durability::Sync),
            _ => machine.write(Durability::Process),
        }
        if seed % 3 == 1 && step % 7 == 6 {
            machine.sync();
        }
        if step % 5 == 4 {
            visit(&mut machine);
        }
    }
}

/// Promise, crashes: After a loss of power a world opens by itself with every synced save, and names what it has lost.
#[test]
fn after_any_loss_of_unsynced_pages_all_synced_writes_are_there() {
    let root = tempfile::tempdir().unwrap();
    let (mut opened, mut lossy, mut shortened, mut number) = (0, 0, 0, 0);
    for seed in 0..rounds(6) {
        write_and_visit(&root.path().join(format!("machine {seed}")), seed, |machine| {
            for _ in 0..3 {
                number += 1;
                let path = root.path().join(number.to_string());
                machine.lose_power(&path);
                let before = contents(&path);
                let what = format!("machine {seed}, copy {number}");

                let read = RocksStore::open_to_read(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
                let found = stored_rounds(&read);
                assert!(found >= machine.synced_rounds, "{what}: {found} of {}", machine.synced_rounds);
                let lost = read.lost_writes().cloned();
                drop(read);
                assert!(contents(&path) == before, "{what}: reading changes nothing");

                let store = RocksStore::open(&path, false).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!((stored_rounds(&store), store.lost_writes()), (found, lost.as_ref()), "{what}");
                store.write(round(found, &mut machine.noise), Durability::Sync).unwrap();
                drop(store);
                let store = RocksStore::open(&path, false).unwrap();
                assert_eq!((stored_rounds(&store), store.lost_writes()), (found + 1, None), "{what}");
                (opened, lossy) = (opened + 1, lossy + u32::from(lost.is_some()));
                shortened += u32::from(found < machine.rounds);
                drop(store);
                fs::remove_dir_all(path).unwrap();
            }
        });
    }
    println!("{opened} losses of power: {shortened} took writes, {lossy} left gaps");
    assert!(shortened * 4 > opened && lossy * 8 > opened, "{shortened} and {lossy} of {opened}");
}

/// Promise, crashes: A world with a missing file, or other damage to its log, is refused, and the damage is named.
#[test]
fn damage_to_synced_writes_is_refused_and_nothing_is_touched() {
    let root = tempfile::tempdir().unwrap();
    let (mut refused, mut opened, mut number) = (0, 0, 0);
    for seed in 0..rounds(6) {
        write_and_visit(&root.path().join(format!("machine {seed}")), seed, |machine| {
            machine.sync();
            machine.write(Durability::Process);
            for kind in 0..4 {
                number += 1;
                let path = root.path().join(number.to_string());
                match machine.noise.below(2) {
                    0 => machine.copy(&path),
                    _ => machine.lose_power(&path),
                }
                let (log, synced) = machine.synced.last_key_value().unwrap();
                if *synced == 0 {
                    continue;
                }
                let (log, at) = (path.join(log), machine.noise.below(*synced) as usize);
                let mut bytes = fs::read(&log).unwrap();
                match kind {
                    0 => bytes[at] ^= 1 << machine.noise.below(8),
                    1 => bytes[at..((at + PAGE as usize).min(*synced as usize))].fill(0),
                    2 => bytes.truncate(at),
                    _ => {}
                }
                fs::write(&log, bytes).unwrap();
                if kind == 3 {
                    fs::remove_file(&log).unwrap();
                }
                let before = contents(&path);
                let what = format!("machine {seed}, copy {number}, damage {kind} at {at}");
                let (read, written) = (RocksStore::open_to_read(&path), RocksStore::open(&path, false));
                match (read, written) {
                    (Err(error), Err(again)) => {
                        assert!(matches!(error, StoreError::DamagedFile { .. }), "{what}: {error}");
                        assert_eq!(again, error, "{what}");
                        let after = contents(&path);
                        // RocksDB's own log of events, and its lock.
                        let is_data = |name: &PathBuf| !["LOG", "LOCK"].iter().any(|other| name.ends_with(other));
                        assert!(before.iter().all(|(name, bytes)| !is_data(name) || after[name] == *bytes), "{what}");
                        refused += 1;
                    }
                    (Ok(read), Ok(store)) => {
                        // The bytes are between two records, or in tables already.
                        assert!(stored_rounds(&read) >= machine.synced_rounds, "{what}");
                        assert!(stored_rounds(&store) >= machine.synced_rounds, "{what}");
                        opened += 1;
                    }
                    (read, written) => panic!("{what}: {:?}, {:?}", read.err(), written.err()),
                }
                fs::remove_dir_all(path).unwrap();
            }
        });
    }
    println!("{refused} of {} damages are refused", refused + opened);
    assert!(refused > 20 * opened, "{refused} of {}", refused + opened);
}

/// A database that lost power, with a gap in front of its last round; and its log.
fn with_gap(path: &Path) -> (PathBuf, Vec<u8>) {
    let machine_path = path.with_extension("machine");
    let mut machine = Machine::new(&machine_path, 1);
    for number in 0..5 {
        let mut batch = round_of(number, &mut machine.noise, 10);
        batch.put(Family::Chunks, *b"more", vec![number as u8; 12_000]);
        machine.store.write(batch, if number == 0 { Durability::Sync } else { Durability::Process }).unwrap();
        if number == 0 {
            machine.note_synced();
        }
    }
    let Some((log, synced)) = machine.synced.pop_last() else { panic!("it has no log") };
    machine.copy(path);
    let log = path.join(log);
    let mut bytes = fs::read(&log).unwrap();
    bytes[synced as usize + 10_000..][..PAGE as usize].fill(0);
    fs::write(&log, &bytes).unwrap();
    (log, bytes)
}

#[test]
fn a_gap_is_told_with_its_place_and_what_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("db");
    let (log, _) = with_gap(&path);
    let store = RocksStore::open(&path, false).unwrap();
    let lost = store.lost_writes().unwrap();
    assert_eq!((&lost.path, lost.last_kept >= lost.last_synced), (&log, true));
    assert!(lost.batches >= 1, "{lost:?}");
    let told = lost.to_string();
    assert!(told.contains("are lost") && told.contains(".log, the record at byte"), "{told}");
}

/// Opens the database that is a fixture. Writes it if `TERRANE_WRITE_FIXTURE` is set.
///
/// Promise, world format: Databases of earlier versions that lost power open up to the first gap in their logs.
#[test]
fn the_killed_database_that_is_a_fixture_opens_up_to_its_gap() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/killed-database-1");
    let root = tempfile::tempdir().unwrap();
    if std::env::var_os("TERRANE_WRITE_FIXTURE").is_some() {
        with_gap(&root.path().join("new"));
        // These files are not part of the content, or are created again.
        let is_needless = |name: &str| ["LOG", "LOCK"].contains(&name) || name.starts_with("OPTIONS-");
        fs::create_dir_all(&fixture).unwrap();
        for (path, bytes) in contents(&root.path().join("new")) {
            let name = path.file_name().unwrap().to_str().unwrap();
            if !is_needless(name) {
                fs::write(fixture.join(name), bytes).unwrap();
            }
        }
    }
    let path = root.path().join("db");
    fs::create_dir(&path).unwrap();
    for (file, bytes) in contents(&fixture) {
        fs::write(path.join(file.file_name().unwrap()), bytes).unwrap();
    }
    let store = RocksStore::open(&path, false).unwrap();
    let lost = store.lost_writes().unwrap();
    assert_eq!((stored_rounds(&store), lost.last_kept, lost.last_synced), (1, 15, 15), "{lost}");
    assert!(lost.batches >= 2, "{lost}");
}

/// Promise, crashes: Worlds that do not say what was synced are refused if their log is damaged in front of its end.
#[test]
fn without_a_valid_note_of_what_was_synced_a_gap_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("db");
    let (log, bytes) = with_gap(&path);
    let note = fs::read(path.join("synced.terrane")).unwrap();
    let refuses = |what: &str| {
        let before = contents(&path);
        let error = RocksStore::open(&path, false).err().expect(what);
        assert!(matches!(&error, StoreError::DamagedFile { path, .. } if *path == log), "{what}: {error}");
        assert_eq!(RocksStore::open_to_read(&path).err(), Some(error), "{what}");
        assert!(contents(&path) == before, "{what}");
    };
    for at in 0..note.len() {
        let mut flipped = note.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(path.join("synced.terrane"), flipped).unwrap();
        refuses("a flipped bit");
        fs::write(path.join("synced.terrane"), &note[..at]).unwrap();
        refuses("a shorter note");
    }
    // Of an earlier opening.
    fs::write(path.join("synced.terrane"), envelope::sealed(1, &1_u64.to_le_bytes())).unwrap();
    refuses("another opening");
    fs::remove_file(path.join("synced.terrane")).unwrap();
    refuses("no note");
    // The torn end of the last log is no gap.
    fs::write(&log, &bytes[..20_000]).unwrap();
    let store = RocksStore::open(&path, false).unwrap();
    assert_eq!(store.lost_writes(), None);
}

/// Promise, world format: The note of what is synced has the documented bytes.
#[test]
fn the_note_of_what_is_synced_is_as_documented() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("db");
    let store = RocksStore::open(&path, true).unwrap();
    let note = || fs::read(path.join("synced.terrane")).unwrap();
    let files = Files::list(&path).unwrap();
    let (log, _) = files.logs().last().unwrap();
    let expected = |write: u64| {
        let (write, log) = (write.to_le_bytes(), log.to_le_bytes());
        let checksum = crc32fast::hash(&[write, log].concat()).to_le_bytes();
        [&write[..], &checksum, &log].concat()
    };
    assert_eq!(note(), expected(0));
    for (durability, synced) in [(Durability::Sync, 14), (Durability::Process, 14), (Durability::Sync, 42)] {
        store.write(round(0, &mut Noise(1)), durability).unwrap();
        assert_eq!(note(), expected(synced));
    }
    store.write(round(1, &mut Noise(1)), Durability::Process).unwrap();
    store.sync().unwrap();
    assert_eq!(note(), expected(56));
}

/// Promise, crashes: The recovery after a loss of power may be interrupted at any step.
#[test]
fn a_recovery_that_is_cut_short_begins_again_and_ends_with_the_same() {
    let root = tempfile::tempdir().unwrap();
    let (mut interrupted, mut number) = (0, 0);
    for seed in [1, 2, 4, 5, 7, 8] {
        write_and_visit(&root.path().join(format!("machine {seed}")), seed, |machine| {
            number += 1;
            let at = |step: u32| root.path().join(format!("{number} {step}"));
            let copy = |from: &Path, to: &Path| {
                fs::create_dir(to).unwrap();
                for (path, bytes) in contents(from) {
                    fs::write(to.join(path.file_name().unwrap()), bytes).unwrap();
                }
            };
            machine.lose_power(&at(0));
            let read = RocksStore::open_to_read(&at(0)).unwrap();
            let (expected, is_lossy) = (stored_rounds(&read), read.lost_writes().is_some());
            drop(read);
            if !is_lossy {
                return;
            }
            interrupted += 1;
            // Only the newest log is removed.
            copy(&at(0), &at(1));
            let lossy = at(0);
            let files = Files::list(&lossy).unwrap();
            let logs: Vec<String> = files.logs().map(|(_, name)| name.clone()).collect();
            let gap = files.check().unwrap().logs.gap.unwrap();
            if logs.last() != Some(&format!("{:06}.log", gap.log)) {
                fs::remove_file(at(1).join(logs.last().unwrap())).unwrap();
            }
            // The logs are cut, and nothing else happened.
            copy(&at(0), &at(2));
            Files::list(&at(2)).unwrap().cut(&gap).unwrap();
            // RocksDB has opened it, and the old notes and logs are still there.
            copy(&at(0), &at(3));
            drop(RocksStore::open(&at(3), false).unwrap());
            for name in logs.iter().map(String::as_str).chain(["files.terrane", "synced.terrane"]) {
                fs::write(at(3).join(name), fs::read(at(0).join(name)).unwrap()).unwrap();
            }
            for step in 0..4 {
                let store = RocksStore::open(&at(step), false).unwrap_or_else(|error| panic!("step {step}: {error}"));
                assert_eq!(stored_rounds(&store), expected, "step {step} of {number}");
                drop(store);
                fs::remove_dir_all(at(step)).unwrap();
            }
        });
    }
    assert!(interrupted > 8, "{interrupted}");
}
