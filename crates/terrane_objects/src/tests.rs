//! Compares object stores with maps, on disks that lose power, and with damaged files.

mod crashes;
mod faults;
mod files;
mod power;

use super::store::ObjectStore;
use super::{Object, ObjectBatch, ObjectStoreError, ObjectStoreOptions, Recovery};
use power::PowerDisk;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SIGNATURE: &str = "test 1";

type Store = ObjectStore<PowerDisk>;

/// The number of repetitions of a test: `few` times `TERRANE_ROUNDS`.
fn rounds(few: u32) -> u32 {
    few * std::env::var("TERRANE_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1_u32)
}

type Model = BTreeMap<String, Object>;

fn options() -> ObjectStoreOptions {
    ObjectStoreOptions { level: 1, ..ObjectStoreOptions::default() }
}

fn create(disk: PowerDisk, options: ObjectStoreOptions) -> Store {
    ObjectStore::create_on(disk, SIGNATURE, options).unwrap()
}

fn open(disk: PowerDisk, options: ObjectStoreOptions) -> Store {
    ObjectStore::open_on(disk, SIGNATURE, options, true).unwrap()
}

fn contents(store: &Store) -> Model {
    let keys: Vec<String> = store.with_prefix("").map(|(key, _)| key.to_owned()).collect();
    keys.into_iter().map(|key| (key.clone(), store.read(&key).unwrap().unwrap())).collect()
}

#[derive(Clone, Debug)]
enum Do {
    Write(u8, u64, usize),
    Delete(u8),
    Batch(Vec<(u8, Option<usize>)>),
    Sync,
    WriteIndex,
    Reopen,
}

fn key(number: u8) -> String {
    // One key has the maximum length.
    if number == 0 { "k".repeat(512) } else { format!("chunk/{number}") }
}

/// Incompressible bytes of this length.
fn data(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(next).collect()
}

fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), 1..200_usize, 3_000..5_000_usize, 12_000..20_000_usize]
}

fn doing() -> impl Strategy<Value = Do> {
    prop_oneof![
        5 => (0..6_u8, 0..9_u64, lengths()).prop_map(|(key, version, length)| Do::Write(key, version, length)),
        2 => (0..6_u8).prop_map(Do::Delete),
        2 => vec((0..6_u8, prop::option::weighted(0.7, lengths())), 0..4).prop_map(Do::Batch),
        1 => Just(Do::Sync),
        1 => Just(Do::WriteIndex),
        1 => Just(Do::Reopen),
    ]
}

/// Performs the operation on the store, and updates `model`. Fails with the store's error.
fn perform(store: &mut Store, step: &Do, seed: u64, model: &mut Model) -> Result<(), ObjectStoreError> {
    let mut after = model.clone();
    match step {
        Do::Write(number, version, length) => {
            let object = Object { version: *version, data: data(seed, *length) };
            after.insert(key(*number), object.clone());
            store.write(&key(*number), object.version, &object.data)?;
        }
        Do::Delete(number) => {
            let was_there = after.remove(&key(*number)).is_some();
            assert_eq!(store.delete(&key(*number))?, was_there);
        }
        Do::Batch(changes) => {
            let mut batch = ObjectBatch::default();
            for (place, (number, length)) in changes.iter().enumerate() {
                match length {
                    Some(length) => {
                        let object = Object { version: seed, data: data(seed + place as u64, *length) };
                        batch.write(key(*number), object.version, object.data.clone());
                        after.insert(key(*number), object);
                    }
                    None => {
                        batch.delete(key(*number));
                        after.remove(&key(*number));
                    }
                }
            }
            store.apply(&batch)?;
        }
        Do::Sync => store.sync()?,
        Do::WriteIndex => store.write_index()?,
        Do::Reopen => {}
    }
    *model = after;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Promise, crate: An `ObjectStore` is one portable file of versioned objects.
    #[test]
    fn a_store_behaves_like_a_map(
        steps in vec(doing(), 1..40), sync in any::<bool>(), zero_freed in any::<bool>(), level in 0..3_u32,
    ) {
        let options = ObjectStoreOptions { level, sync, zero_freed, ..ObjectStoreOptions::default() };
        let disk = PowerDisk::default();
        let (mut store, mut model) = (create(disk.clone(), options), Model::new());
        for (seed, step) in (1..).zip(&steps) {
            perform(&mut store, step, seed, &mut model).unwrap();
            if matches!(step, Do::Reopen) {
                store.close().unwrap();
                store = open(disk.clone(), options);
                prop_assert_eq!(store.recovery(), None);
            }
            prop_assert_eq!(store.len(), model.len());
            prop_assert_eq!(contents(&store), model.clone());
            let versions: Vec<_> = model.iter().map(|(key, object)| (key.as_str(), object.version)).collect();
            prop_assert_eq!(store.with_prefix("").collect::<Vec<_>>(), versions.clone());
            let chunks: Vec<_> = versions.iter().filter(|(key, _)| key.starts_with("chunk/")).copied().collect();
            prop_assert_eq!(store.with_prefix("chunk/").collect::<Vec<_>>(), chunks);
        }
        prop_assert_eq!(store.size(), disk.length());
        // Space is reused: after deleting everything, the same objects take no more space than before.
        let keys: Vec<String> = model.keys().cloned().collect();
        for key in keys {
            store.delete(&key).unwrap();
        }
        store.write_index().unwrap();
        prop_assert!(store.free_space() + (1 + 3) * 4_096 >= store.size());
    }
}

/// Promise, object store: An object's key has 1 to 512 bytes, and the size of an object is limited.
#[test]
fn keys_and_objects_have_limits() {
    let mut store = create(PowerDisk::default(), ObjectStoreOptions { most_bytes: 10, ..options() });
    for length in [0, 513] {
        assert_eq!(store.write(&"k".repeat(length), 0, b""), Err(ObjectStoreError::Key { length }));
        assert_eq!(
            store.apply(ObjectBatch::default().delete("k".repeat(length))),
            Err(ObjectStoreError::Key { length })
        );
    }
    let too_large = |found| ObjectStoreError::TooLarge { key: "large".into(), limit: 10, found };
    assert_eq!(store.write("large", 0, &[0; 11]), Err(too_large(11)));
    assert_eq!(
        store.apply(ObjectBatch::default().write("small", 0, [1]).write("large", 0, [0; 12])),
        Err(too_large(12))
    );
    assert!(store.is_empty());
    store.write("large", 3, &[7; 10]).unwrap();
    assert!(store.with_prefix("").eq([("large", 3)]) && store.contains("large") && !store.contains("small"));
    assert!(!store.delete("small").unwrap());
    assert_eq!(store.signature(), SIGNATURE);
}
