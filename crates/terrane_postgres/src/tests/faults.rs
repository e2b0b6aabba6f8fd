//! Broken connections: what was acknowledged is there, and nothing is done twice.

use super::proxy::{Fault, Proxy};
use super::{SERVER, new_name, open_with_patience, rounds};
use crate::PostgresStore;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};
use terrane_storage::{Durability, Family, KeyValueStore, StoreError, WriteBatch};

/// Part of each batch that a fault is waiting for.
const MARKER: &[u8] = b"marker";
const KEYS: u64 = 8;
const LONG: Duration = Duration::from_secs(30);

type Contents = BTreeMap<(Family, Vec<u8>), Vec<u8>>;

/// A world, a store that reaches it through a proxy, and one that reaches it directly.
struct Scene {
    proxy: Proxy,
    store: PostgresStore,
    direct: PostgresStore,
}

impl Scene {
    fn new(patience: Duration) -> Self {
        let (proxy, world) = (Proxy::new(SERVER.port()), new_name());
        let direct = open_with_patience(&format!("{}#{world}", SERVER.address()), LONG);
        let store = open_with_patience(&format!("{}#{world}", SERVER.address_at(&[proxy.port])), patience);
        Self { proxy, store, direct }
    }

    fn contents(&self) -> Contents {
        let entries = |family| {
            let entries = self.direct.scan(family, &[]..&[0xff; 9], usize::MAX).unwrap();
            entries.into_iter().map(move |(key, value)| ((family, key), value))
        };
        Family::ALL.into_iter().flat_map(entries).collect()
    }

    fn value(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.direct.get(Family::Meta, key).unwrap()
    }
}

fn put(key: &[u8], value: &[u8]) -> WriteBatch {
    let mut batch = WriteBatch::default();
    batch.put(Family::Meta, key, value.to_vec());
    batch.put(Family::Chunks, MARKER, Vec::new());
    batch
}

#[test]
fn a_batch_is_written_once_however_the_connection_breaks() {
    let scene = Scene::new(LONG);
    let faults =
        [Fault::CutRequest(0), Fault::CutRequest(30), Fault::CutAnswer, Fault::Delay(Duration::from_millis(200))];
    for (number, fault) in faults.into_iter().enumerate() {
        let mut batch = put(&[number as u8], b"once");
        // Fails if an earlier attempt of the same batch was not recognized.
        batch.require(Family::Meta, [number as u8], None);
        scene.proxy.break_next(MARKER, fault);
        scene.store.write(batch, Durability::Sync).unwrap();
        assert!(scene.proxy.has_broken());
        assert_eq!(scene.value(&[number as u8]), Some(b"once".to_vec()), "{fault:?}");
    }
    scene.store.write(put(b"\x03", b"newer"), Durability::Sync).unwrap();
    scene.proxy.wait_for_held();
    assert_eq!(scene.value(b"\x03"), Some(b"newer".to_vec()), "the delayed batch was written a second time");
}

#[test]
fn reads_survive_broken_connections() {
    let scene = Scene::new(LONG);
    scene.store.write(put(b"key", b"value"), Durability::Sync).unwrap();
    for fault in [Fault::CutRequest(3), Fault::CutAnswer] {
        scene.proxy.break_next(b"key", fault);
        assert_eq!(scene.store.get(Family::Meta, b"key"), Ok(Some(b"value".to_vec())));
        assert!(scene.proxy.has_broken());
    }
}

/// Repeats what a busy machine may not do within the patience of a store.
fn repeated<T>(what: impl Fn() -> Result<T, StoreError>) -> T {
    let begin = Instant::now();
    loop {
        match what() {
            Ok(done) => return done,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(60), "{error}"),
        }
    }
}

#[test]
fn a_silent_server_is_an_error_after_the_patience() {
    let scene = Scene::new(Duration::from_secs(1));
    scene.store.write(put(b"key", b"old"), Durability::Sync).unwrap();
    scene.proxy.break_next(b"key", Fault::Swallow);
    let error = scene.store.get(Family::Meta, b"key").unwrap_err();
    assert!(error.to_string().contains("did not answer"), "{error}");
    scene.proxy.break_next(MARKER, Fault::Swallow);
    let error = scene.store.write(put(b"key", b"lost"), Durability::Sync).unwrap_err();
    assert!(error.to_string().contains("unknown until the next write"), "{error}");
    // The store works again, and the swallowed batch is known to be lost.
    repeated(|| scene.store.sync());
    assert_eq!(scene.value(b"key"), Some(b"old".to_vec()));
    repeated(|| scene.store.write(put(b"key", b"new"), Durability::Sync));
    assert_eq!(repeated(|| scene.store.get(Family::Meta, b"key")), Some(b"new".to_vec()));
}

#[test]
fn a_batch_with_an_unknown_outcome_is_not_written_after_the_next_one() {
    let hold = Duration::from_millis(2_500);
    for is_synced in [false, true] {
        let scene = Scene::new(Duration::from_secs(1));
        scene.store.write(put(b"key", b"old"), Durability::Sync).unwrap();
        scene.proxy.break_next(MARKER, Fault::Hold(hold));
        scene.store.write(put(b"key", b"held"), Durability::Sync).unwrap_err();
        match is_synced {
            true => repeated(|| scene.store.sync()),
            false => repeated(|| scene.store.write(put(b"other", b"new"), Durability::Sync)),
        }
        assert_eq!(scene.value(b"key"), Some(b"old".to_vec()));
        scene.proxy.wait_for_held();
        assert_eq!(scene.value(b"key"), Some(b"old".to_vec()), "the held batch was written behind a later one");
    }
}

#[test]
fn a_batch_whose_answer_was_lost_comes_before_the_next_one() {
    let scene = Scene::new(Duration::from_secs(1));
    scene.store.write(put(b"key", b"old"), Durability::Sync).unwrap();
    scene.proxy.break_next(MARKER, Fault::Hold(Duration::from_millis(1_200)));
    scene.store.write(put(b"key", b"held"), Durability::Sync).unwrap_err();
    scene.proxy.wait_for_held();
    assert_eq!(scene.value(b"key"), Some(b"held".to_vec()));
    scene.store.write(put(b"other", b"new"), Durability::Sync).unwrap();
    assert_eq!((scene.value(b"key"), scene.value(b"other")), (Some(b"held".to_vec()), Some(b"new".to_vec())));
}

/// The server still works on the batch when the next one arrives: it waits for a row that another session has locked.
#[test]
fn the_next_batch_waits_for_one_that_the_server_still_works_on() {
    let scene = Scene::new(Duration::from_secs(1));
    let write = |key: &[u8], value: &[u8]| {
        let mut batch = WriteBatch::default();
        batch.put(Family::Meta, key, value.to_vec());
        scene.store.write(batch, Durability::Sync)
    };
    write(b"key", b"old").unwrap();
    thread::scope(|scope| {
        let world = scene.direct.path().to_str().unwrap().split_once('#').unwrap().1;
        let lock = format!("BEGIN; SELECT key FROM \"{world}\".entries FOR UPDATE; SELECT pg_sleep(3); COMMIT");
        let locker = scope.spawn(move || SERVER.execute(&lock).unwrap());
        thread::sleep(Duration::from_millis(500));
        write(b"key", b"new").unwrap_err();
        while write(b"other", b"new").is_err() {}
        let found = scene.value(b"key");
        locker.join().unwrap();
        thread::sleep(Duration::from_millis(500));
        assert_eq!(scene.value(b"key"), found, "the batch was written behind a later one");
    });
}

#[test]
fn a_refused_batch_is_not_written_by_an_earlier_attempt() {
    let scene = Scene::new(LONG);
    let mut batch = put(b"key", b"mine");
    batch.require(Family::Meta, *b"lock", None);
    // The first attempt is on its way when the precondition ceases to hold for the second one.
    scene.direct.write(put(b"lock", b"theirs"), Durability::Sync).unwrap();
    scene.proxy.break_next(MARKER, Fault::Delay(Duration::from_millis(300)));
    let error = scene.store.write(batch, Durability::Sync).unwrap_err();
    assert!(matches!(error, StoreError::PreconditionFailed { .. }), "{error}");
    let mut unlock = WriteBatch::default();
    unlock.delete(Family::Meta, *b"lock");
    scene.direct.write(unlock, Durability::Sync).unwrap();
    scene.proxy.wait_for_held();
    assert_eq!(scene.value(b"key"), None, "the first attempt was written after the second one had failed");
}

/// Every batch is acknowledged, since the faults pass before the patience ends.
#[test]
fn random_faults_lose_nothing_and_repeat_nothing() {
    let scene = Scene::new(LONG);
    run(&scene, 0x5eed, rounds(150));
}

/// Many batches end with an unknown outcome.
#[test]
fn random_faults_with_little_patience_lose_nothing_and_repeat_nothing() {
    let scene = Scene::new(Duration::from_millis(60));
    let unknown = run(&scene, 0xfa17, rounds(80));
    assert!(unknown > 2, "only {unknown} batches had an unknown outcome");
}

/// Writes random batches, compares the world with what it may hold, and returns the number of unknown outcomes.
fn run(scene: &Scene, seed: u64, rounds: u32) -> u32 {
    let mut random = Random(seed);
    // All contents that are possible after what was answered; several only after an unknown outcome.
    let mut possible = vec![Contents::new()];
    let mut unknown = 0;
    for round in 0..rounds {
        let batch = random.batch(round, &possible[0]);
        if let Some(fault) = random.fault() {
            scene.proxy.break_next(MARKER, fault);
        }
        let after = |before: &Contents| {
            let holds = batch
                .preconditions()
                .iter()
                .all(|required| before.get(&(required.family, required.key.clone())) == required.value.as_ref());
            holds.then(|| apply(before, &batch))
        };
        match scene.store.write(batch.clone(), Durability::Process) {
            Ok(()) => possible = possible.iter().filter_map(after).collect(),
            Err(StoreError::PreconditionFailed { .. }) => possible.retain(|before| after(before).is_none()),
            Err(error) => {
                assert!(error.is_outage(), "round {round}: {error}");
                unknown += 1;
                let written: Vec<_> = possible.iter().filter_map(after).collect();
                possible.extend(written);
                if possible.len() < 16 {
                    continue;
                }
                while scene.store.sync().is_err() {}
            }
        }
        if random.below(4) == 0 {
            // Zombies have arrived then, and must not have changed anything.
            scene.proxy.wait_for_held();
        }
        let found = scene.contents();
        possible.retain(|contents| *contents == found);
        possible.dedup();
        assert!(!possible.is_empty(), "round {round}: the world has unexpected contents: {found:02x?}");
    }
    unknown
}

fn apply(before: &Contents, batch: &WriteBatch) -> Contents {
    let mut after = before.clone();
    for change in batch.changes() {
        let place = (change.family, change.key.clone());
        match &change.value {
            Some(value) => after.insert(place, value.clone()),
            None => after.remove(&place),
        };
    }
    after
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A batch that moves values between few keys, so that writing it twice or too late is visible.
    fn batch(&mut self, round: u32, contents: &Contents) -> WriteBatch {
        let mut batch = WriteBatch::default();
        batch.put(Family::Meta, MARKER, round.to_be_bytes().to_vec());
        for _ in 0..self.below(4) {
            let family = Family::ALL[self.below(3) as usize];
            let key = vec![self.below(KEYS) as u8];
            let value = contents.get(&(family, key.clone())).cloned();
            match self.below(3) {
                0 => batch.delete(family, key.clone()),
                _ => batch.put(family, key.clone(), round.to_be_bytes().to_vec()),
            }
            match self.below(5) {
                // Almost never holds.
                0 => batch.require(family, key, Some(b"other".to_vec())),
                1 | 2 => batch.require(family, key, value),
                _ => {}
            }
        }
        batch
    }

    fn fault(&mut self) -> Option<Fault> {
        let delay = Duration::from_millis(self.below(120));
        match self.below(8) {
            0 => Some(Fault::CutRequest(self.below(400) as usize)),
            1 => Some(Fault::CutAnswer),
            2 => Some(Fault::Delay(delay)),
            3 => Some(Fault::Hold(delay)),
            _ => None,
        }
    }
}
