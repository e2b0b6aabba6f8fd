use super::*;
use crate::storage::conformance;
use std::fs;

#[test]
fn conforms() {
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    conformance::check(|| {
        count += 1;
        RocksStore::open(&folder.path().join(count.to_string()), true).unwrap()
    })
    .unwrap();
}

#[test]
fn what_was_written_is_there_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    conformance::check_reopening(|| RocksStore::open(folder.path(), true).unwrap()).unwrap();
}

#[test]
fn half_of_a_range_takes_about_half_the_room() {
    let folder = tempfile::tempdir().unwrap();
    let store = RocksStore::open(folder.path(), true).unwrap();
    // It must not compress.
    let byte = |seed: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    let noise = |key: u64| (0..1_000).map(move |place| byte(key * 1_000 + place));
    for half in [0, 1_000] {
        let mut batch = WriteBatch::default();
        (half..half + 1_000_u64).for_each(|key| batch.put(Family::Chunks, key.to_be_bytes(), noise(key).collect()));
        store.write(batch, Durability::Process).unwrap();
    }
    store.with(Operation::Sync, Family::Chunks, |database, handle| database.flush_cf(handle)).unwrap();
    let bytes = |from: u64| {
        let range = (from.to_be_bytes(), u64::MAX.to_be_bytes());
        store.approximate_range_bytes(Family::Chunks, &range.0[..]..&range.1[..]).unwrap().unwrap() as f64
    };
    let part = bytes(1_000) / bytes(0);
    assert!((0.4..0.6).contains(&part), "{part}");
    assert_eq!(bytes(2_000), 0.0);
}

#[test]
fn a_missing_database_is_made_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let error = RocksStore::open(&path, false).err().unwrap();
    assert!(matches!(&error, StoreError::Backend { operation: Operation::Open, path: at, .. } if *at == path));
    assert!(RocksStore::open(&path, true).is_ok());
    assert!(RocksStore::open(&path, false).is_ok());
}

#[test]
fn a_damaged_manifest_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    drop(RocksStore::open(folder.path(), true).unwrap());
    fs::write(folder.path().join("CURRENT"), "MANIFEST-999999\n").unwrap();
    assert!(RocksStore::open(folder.path(), false).is_err());
}
