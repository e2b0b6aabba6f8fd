//! A process that writes to an object store is killed, again and again, on one file: everything acknowledged is there, and
//! a write in flight is there completely or not at all.

use crate::support::process::{here, kill, program, start};
use crate::support::rounds;
use bevy_terrane::object_store::{Object, ObjectBatch, ObjectStore, ObjectStoreOptions};
use bevy_terrane::simulation::SplitMix64;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
/// The round, which determines the steps of the process.
const ROUND: &str = "TERRANE_TEST_ROUND";
const SIGNATURE: &str = "kills 1";

/// The expected content of a store.
type Model = BTreeMap<String, Object>;

/// A step on a store. It does not depend on the content.
enum Step {
    Write(String, Object),
    Delete(String),
    /// The new value of each key; `None` if it is deleted.
    ObjectBatch(BTreeMap<String, Option<Object>>),
    Sync,
    WriteIndex,
    Compact,
}

/// The steps of a round, which are always the same.
struct Steps(SplitMix64);

impl Iterator for Steps {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        Some(match self.0.below(40) {
            0..20 => Step::Write(self.key(), self.object()),
            20..27 => Step::Delete(self.key()),
            27..35 => {
                let change = |_| (self.key(), (self.0.below(3) > 0).then(|| self.object()));
                Step::ObjectBatch((0..5).map(change).collect())
            }
            35..37 => Step::Sync,
            37..39 => Step::WriteIndex,
            _ => Step::Compact,
        })
    }
}

impl Steps {
    fn of_round(round: u64) -> Self {
        Self(SplitMix64::new(round))
    }

    fn key(&mut self) -> String {
        match self.0.below(12) {
            // The maximum length.
            0 => "k".repeat(512),
            number => format!("chunk/{number}/blocks"),
        }
    }

    /// An object of up to six blocks; some can be compressed.
    fn object(&mut self) -> Object {
        let length = [0, 100, 4_000, 20_000][self.0.below(4) as usize];
        let length = length + self.0.below(500);
        let kinds = [3, 256][self.0.below(2) as usize];
        Object { version: self.0.next_u64(), data: (0..length).map(|_| self.0.below(kinds) as u8).collect() }
    }
}

impl Step {
    fn perform(self, store: &mut ObjectStore) {
        match self {
            Self::Write(key, object) => store.write(&key, object.version, &object.data).unwrap(),
            Self::Delete(key) => drop(store.delete(&key).unwrap()),
            Self::ObjectBatch(changes) => {
                let mut batch = ObjectBatch::default();
                for (key, change) in changes {
                    match change {
                        Some(Object { version, data }) => batch.write(key, version, data),
                        None => batch.delete(key),
                    };
                }
                store.apply(&batch).unwrap();
            }
            Self::Sync => store.sync().unwrap(),
            Self::WriteIndex => store.write_index().unwrap(),
            Self::Compact => store.compact().unwrap(),
        }
    }

    fn imagine(self, model: &mut Model) {
        let mut change = |key, change: Option<Object>| match change {
            Some(object) => drop(model.insert(key, object)),
            None => drop(model.remove(&key)),
        };
        match self {
            Self::Write(key, object) => change(key, Some(object)),
            Self::Delete(key) => change(key, None),
            Self::ObjectBatch(changes) => changes.into_iter().for_each(|(key, to)| change(key, to)),
            Self::Sync | Self::WriteIndex | Self::Compact => {}
        }
    }
}

/// Runs only in the process that `writes_that_a_killed_process_had_confirmed_are_there` starts and kills; otherwise it does
/// nothing.
#[test]
fn process_that_writes_objects() {
    let Some(path) = here() else { return };
    let round = std::env::var(ROUND).unwrap().parse().unwrap();
    let options = ObjectStoreOptions {
        level: 1,
        sync: round % 2 == 0,
        zero_freed: round % 3 != 0,
        ..ObjectStoreOptions::default()
    };
    println!("\nbegins");
    let mut store = ObjectStore::open(&path, SIGNATURE, options).unwrap();
    for (number, step) in Steps::of_round(round).enumerate() {
        step.perform(&mut store);
        println!("{number}");
    }
}

/// Lets a process write for a while. Returns how many of its steps were acknowledged when it was killed.
fn kill_one(path: &Path, round: u64, random: &mut SplitMix64) -> usize {
    let mut command = program();
    command.env(ROUND, round.to_string());
    let (mut process, mut lines) = start(command, "object_store_kills::process_that_writes_objects", path);
    assert!(lines.any(|line| line == "begins"));
    // Some processes are killed while they open the file.
    let patience = random.below(60) as usize;
    let heard = lines.by_ref().take(patience).count();
    assert_eq!(heard, patience, "the process ended by itself in round {round}");
    std::thread::sleep(Duration::from_micros(random.below(1_500).into()));
    kill(&mut process);
    heard + lines.count()
}

/// The content of the file, which is not changed.
fn contents(store: &ObjectStore) -> Model {
    let keys = store.with_prefix("").map(|(key, _)| key.to_owned());
    keys.map(|key| (key.clone(), store.read(&key).unwrap().unwrap())).collect()
}

/// `TERRANE_ROUNDS=10` kills 400 times.
///
/// Promise, object store: A stored index of an object store is up to date, since the first change frees its first block.
#[test]
fn writes_that_a_killed_process_had_confirmed_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    ObjectStore::create(&path, SIGNATURE, ObjectStoreOptions::default()).unwrap().close().unwrap();
    let mut random = SplitMix64::new(7);
    let mut model = Model::new();
    let (mut acknowledged, mut without_index, mut dropped) = (0, 0, 0);
    for round in 0..rounds(40) {
        let count = kill_one(&path, round, &mut random);
        let mut steps = Steps::of_round(round);
        steps.by_ref().take(count).for_each(|step| step.imagine(&mut model));
        let mut with_next = model.clone();
        steps.next().unwrap().imagine(&mut with_next);

        // The file stays as the process left it, for the next one to open.
        let store = ObjectStore::open_to_read(&path, SIGNATURE).unwrap();
        let found = contents(&store);
        assert!(found == model || found == with_next, "round {round}, {count} steps: {:?}", store.recovery());
        if let Some(report) = store.recovery() {
            without_index += 1;
            dropped += report.dropped.len();
        }
        acknowledged += count;
        model = found;
    }
    println!("{acknowledged} steps; {without_index} files without an index, {dropped} writes that were not whole");
    assert!(acknowledged as u64 > 10 * rounds(40) && without_index > rounds(40) / 2);
}
