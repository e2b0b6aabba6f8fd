//! Damage at every bit of a file.

use super::*;
use crate::index::{Entry, Index};
use crate::work::FileError;
use crate::{file, payload};

/// A store with an object of several blocks, a batch and a hole, closed.
fn filled() -> (PowerDisk, Model) {
    let disk = PowerDisk::default();
    let (mut store, mut model) = (create(disk.clone(), options()), Model::new());
    let steps = [
        Do::Write(1, 4, 9_000),
        Do::Write(2, 1, 100),
        Do::Write(3, 2, 5_000),
        Do::Batch(vec![(4, Some(4_500)), (5, Some(10)), (3, None)]),
        Do::Write(2, 2, 3_000),
    ];
    for (seed, step) in (1..).zip(&steps) {
        perform(&mut store, step, seed, &mut model).unwrap();
    }
    store.close().unwrap();
    (disk, model)
}

/// Promise, object store: An object store detects wrong checksums.
#[test]
fn every_flipped_bit_is_noticed() {
    let (disk, model) = filled();
    let bytes = disk.bytes();
    let (mut lost, mut kept) = (0, 0);
    for place in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        let Ok(store) = ObjectStore::open_on(PowerDisk::with(flipped), SIGNATURE, options(), true) else {
            assert!(place < 64, "only the first line keeps it from being opened");
            continue;
        };
        for (key, object) in &model {
            match store.read(key) {
                Ok(Some(found)) => assert_eq!(found, *object, "{key} at {place}"),
                Ok(None) => {
                    // The index was lost too, as the report shows.
                    let report = store.recovery().unwrap();
                    assert!(report.damaged_blocks > 0 || !report.dropped.is_empty(), "{key} at {place}");
                    lost += 1;
                }
                Err(error) => {
                    assert!(matches!(error, ObjectStoreError::Damaged { .. }), "{error}");
                    lost += 1;
                }
            }
            kept += 1;
        }
        std::mem::forget(store);
    }
    assert!(lost > 0 && lost < kept / 2, "{lost} of {kept}");
}

/// Promise, object store: An object store without block 0 rebuilds its index by reading all blocks.
#[test]
fn a_lost_index_is_rebuilt_with_a_report() {
    let (disk, model) = filled();
    let mut bytes = disk.bytes();
    bytes[4_090] ^= 1;
    let store = open(PowerDisk::with(bytes.clone()), options());
    assert_eq!(contents(&store), model);
    assert_eq!(store.recovery(), Some(&Recovery { damaged_blocks: 1, ..Recovery::default() }));
    std::mem::forget(store);
    // A read-only store changes nothing.
    let disk = PowerDisk::with(bytes.clone());
    let store = ObjectStore::open_on(disk.clone(), SIGNATURE, options(), false).unwrap();
    assert_eq!(contents(&store), model);
    drop(store);
    assert_eq!(disk.bytes(), bytes);
    // A block of an object is damaged as well.
    let place = (1..bytes.len() / 4_096).find(|block| bytes[block * 4_096 + 4_059] == 2).unwrap();
    bytes[place * 4_096 + 10] ^= 1;
    let store = open(PowerDisk::with(bytes), options());
    assert_eq!((store.len(), store.recovery().unwrap().damaged_blocks), (model.len() - 1, 2));
}

#[test]
fn an_index_that_says_it_is_huge_is_not_believed() {
    let (disk, model) = filled();
    let mut bytes = disk.bytes();
    let start = file::line_bytes(SIGNATURE);
    // The declared decompressed length of the index, with a correct checksum.
    bytes[start + 1..start + 9].copy_from_slice(&u64::MAX.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[start..4_092]);
    bytes[4_092..4_096].copy_from_slice(&checksum.to_le_bytes());
    let store = open(PowerDisk::with(bytes), options());
    assert!(store.recovery().is_some());
    assert_eq!(contents(&store), model);
}

#[test]
fn a_full_disk_is_an_error_and_the_store_stays_usable() {
    let disk = PowerDisk::default();
    let mut store = create(disk.clone(), options());
    store.write("a", 1, &data(1, 9_000)).unwrap();
    store.write("b", 1, &data(2, 9_000)).unwrap();
    disk.set_capacity(Some(disk.length()));
    let full = |error: ObjectStoreError| {
        matches!(error, ObjectStoreError::Io(FileError { kind: std::io::ErrorKind::StorageFull, .. }))
    };
    assert!(full(store.write("c", 1, &data(3, 90_000)).unwrap_err()));
    assert!(full(store.apply(ObjectBatch::default().write("a", 2, data(4, 90_000)).delete("b")).unwrap_err()));
    assert_eq!(store.read("a").unwrap().unwrap().data, data(1, 9_000));
    assert_eq!(store.read("b").unwrap().unwrap().data, data(2, 9_000));
    // Deleting makes room.
    assert!(store.delete("a").unwrap());
    store.write("c", 2, &data(5, 8_000)).unwrap();
    store.close().unwrap();
    let store = open(disk, options());
    assert_eq!(store.recovery(), None);
    assert_eq!(store.with_prefix("").collect::<Vec<_>>(), [("b", 1), ("c", 2)]);
}

#[test]
fn deleting_an_object_does_not_revive_a_failed_write() {
    for operation in 0..12 {
        let disk = PowerDisk::default();
        let mut store = create(disk.clone(), options());
        store.write("a", 1, &data(1, 5_000)).unwrap();
        disk.fail_at(disk.operations() + operation);
        let failed = store.write("a", 2, &data(2, 5_000)).is_err();
        // The disk works again.
        disk.fail_at(usize::MAX);
        let expected = if failed { 1 } else { 2 };
        assert_eq!(store.read("a").unwrap().unwrap().data, data(expected, 5_000));
        assert!(store.delete("a").unwrap());
        std::mem::forget(store);
        assert!(open(disk.clone(), options()).is_empty(), "{operation}");
    }
}

/// Promise, object store: An object store rejects an index that gives one block to two owners.
#[test]
fn an_index_that_gives_a_block_to_two_is_not_believed() {
    let (disk, model) = filled();
    let index = Index::decode(&index_of(&disk.bytes())).unwrap();
    let mut wrong = Vec::new();
    for (key, entry) in &index.entries {
        let mut is_free = index.clone();
        is_free.free.give(entry.first, 1);
        let mut is_of_two = index.clone();
        is_of_two.entries.insert("other".to_owned(), Entry { first: entry.first, blocks: 1, ..*entry });
        let mut is_longer = index.clone();
        is_longer.entries.insert(key.clone(), Entry { first: entry.first - 1, blocks: entry.blocks + 1, ..*entry });
        wrong.extend([is_free, is_of_two, is_longer]);
    }
    for index in wrong.into_iter().filter(|index| index.entries.values().all(|entry| entry.first > 0)) {
        let mut bytes = disk.bytes();
        put_index(&mut bytes, &index.encode());
        let mut store = open(PowerDisk::with(bytes), options());
        assert!(store.recovery().is_some(), "{index:?}");
        store.write("new", 1, &data(1, 90_000)).unwrap();
        assert!(store.delete("new").unwrap());
        assert_eq!(contents(&store), model);
    }
}

#[test]
fn a_first_block_that_says_it_is_of_an_object_is_not_believed() {
    let (disk, mut model) = filled();
    let mut bytes = disk.bytes();
    for kind in 2..=4 {
        bytes[4_059] = kind;
        mend(&mut bytes, 0);
        let disk = PowerDisk::with(bytes.clone());
        let mut store = open(disk.clone(), options());
        assert_eq!(store.recovery().unwrap().damaged_blocks, 1);
        perform(&mut store, &Do::Write(9, 1, 90_000), 1, &mut model).unwrap();
        store.close().unwrap();
        assert_eq!(contents(&open(disk, options())), model);
        model.remove(&key(9));
    }
}

#[test]
fn a_file_that_ends_within_its_first_block_can_be_written() {
    let line = file::line_bytes(SIGNATURE);
    for length in [line, line + 1, 4_095] {
        let disk = PowerDisk::with(filled().0.bytes()[..length].to_vec());
        let mut store = open(disk.clone(), options());
        assert!(store.is_empty());
        store.write("a", 1, &data(1, 9_000)).unwrap();
        assert_eq!(store.read("a").unwrap().unwrap().data, data(1, 9_000));
        store.close().unwrap();
        assert_eq!(open(disk, options()).read("a").unwrap().unwrap().data, data(1, 9_000));
    }
}

#[test]
fn a_file_whose_counters_are_used_up_can_be_read_and_not_written() {
    let disk = PowerDisk::default();
    let mut store = create(disk.clone(), options());
    store.write("a", 1, b"one").unwrap();
    store.close().unwrap();
    let mut bytes = disk.bytes();
    // The index is lost, and the only remaining block has the highest counter.
    bytes[4_090] ^= 1;
    let at = bytes.len() / 4_096 - 1;
    bytes[at * 4_096 + 4_072..at * 4_096 + 4_080].fill(0xff);
    mend(&mut bytes, at);
    let mut store = open(PowerDisk::with(bytes), options());
    let exhausted = ObjectStoreError::Exhausted { path: store.path().to_path_buf() };
    assert_eq!(store.write("b", 1, b"two"), Err(exhausted.clone()));
    assert_eq!(store.apply(ObjectBatch::default().write("b", 1, b"two")), Err(exhausted));
    assert_eq!(store.read("a").unwrap().unwrap().data, b"one");
    assert!(store.delete("a").unwrap());
}

/// Corrects the checksum of a block, as an attacker would.
fn mend(bytes: &mut [u8], block: usize) {
    let start = if block == 0 { file::line_bytes(SIGNATURE) } else { block * 4_096 };
    let end = block * 4_096 + 4_092;
    let checksum = crc32fast::hash(&bytes[start..end]);
    bytes[end..end + 4].copy_from_slice(&checksum.to_le_bytes());
}

/// The uncompressed index of a file with a small index.
fn index_of(bytes: &[u8]) -> Vec<u8> {
    let start = file::line_bytes(SIGNATURE);
    let length = usize::from(u16::from_le_bytes([bytes[4_062], bytes[4_063]]));
    payload::decode(bytes[start..start + length].to_vec(), 4_096).ok().unwrap()
}

fn put_index(bytes: &mut [u8], index: &[u8]) {
    let start = file::line_bytes(SIGNATURE);
    let payload = payload::encode(&mut None, 0, index);
    bytes[start..start + payload.len()].copy_from_slice(&payload);
    bytes[4_062..4_064].copy_from_slice(&(payload.len() as u16).to_le_bytes());
    mend(bytes, 0);
}

/// The readable content of a store.
fn readable(store: &Store) -> Model {
    let keys: Vec<String> = store.with_prefix("").map(|(key, _)| key.to_owned()).collect();
    keys.into_iter().filter_map(|key| Some((key.clone(), store.read(&key).ok()??))).collect()
}

/// Numbers near limits.
fn edges() -> impl Strategy<Value = Vec<u8>> {
    let numbers = [0, 1, 5, 4_096, 1 << 31, i64::MAX as u64, u64::MAX - 1, u64::MAX];
    let number = prop::sample::select(numbers.to_vec()).prop_map(|number| number.to_le_bytes().to_vec());
    prop_oneof![2 => vec(any::<u8>(), 1), 1 => number]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(600), ..ProptestConfig::default() })]
    /// Opening any file that begins like a store succeeds or fails with an error. After success, the readable objects
    /// stay unchanged while others are written and deleted.
    #[test]
    fn hostile_files_are_opened_or_refused(
        changes in vec((any::<prop::sample::Index>(), edges()), 0..12),
        cut in prop::option::weighted(0.3, any::<prop::sample::Index>()), what in 0..4_u8,
    ) {
        let (disk, _) = filled();
        let mut bytes = disk.bytes();
        if what == 0 {
            let mut index = index_of(&bytes);
            for (place, value) in changes {
                let place = place.index(index.len());
                index.splice(place..(place + value.len()).min(index.len()), value);
            }
            put_index(&mut bytes, &index);
        } else {
            for (place, value) in changes {
                let mut place = place.index(bytes.len() - 64) + 64;
                if what == 1 {
                    place = place / 4_096 * 4_096 + 4_058 + place % 34;
                }
                let end = (place + value.len()).min(bytes.len());
                bytes[place..end].copy_from_slice(&value[..end - place]);
                if what < 3 {
                    mend(&mut bytes, place / 4_096);
                }
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let disk = PowerDisk::with(bytes);
        let Ok(mut store) = ObjectStore::open_on(disk.clone(), SIGNATURE, options(), true) else { return Ok(()) };
        let mut expected = readable(&store);
        let batch = Do::Batch(vec![(8, Some(9_000)), (7, None)]);
        let steps = [Do::Write(1, 9, 6_000), Do::Write(7, 1, 3_000), Do::Delete(2), batch];
        for (seed, step) in (1..).zip(&steps) {
            let mut model = expected.clone();
            // Listed but unreadable objects are deleted too.
            if let Do::Delete(number) = step {
                store.delete(&key(*number)).unwrap();
                expected.remove(&key(*number));
            } else if perform(&mut store, step, seed, &mut model).is_ok() {
                expected = model;
            }
            let found = readable(&store);
            prop_assert!(expected.iter().all(|(key, object)| found.get(key) == Some(object)), "{step:?}");
        }
        if store.close().is_ok() {
            let found = readable(&open(disk, options()));
            prop_assert!(expected.iter().all(|(key, object)| found.get(key) == Some(object)));
        }
    }
}
