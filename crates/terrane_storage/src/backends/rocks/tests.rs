//! RocksDB: full disks, damage, locks.

use super::options::BLOCK_BYTES;
use super::*;
use crate::backends::conformance;
use rocksdb::Options;
use std::fs;
use std::path::PathBuf;

#[test]
fn it_passes_the_conformance_tests() {
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    conformance::check(|| {
        count += 1;
        RocksStore::open(&folder.path().join(count.to_string()), true).unwrap()
    })
    .unwrap();
}

#[test]
fn written_data_survives_reopening() {
    let folder = tempfile::tempdir().unwrap();
    conformance::check_reopening(|| RocksStore::open(folder.path(), true).unwrap()).unwrap();
}

#[test]
fn half_of_a_range_takes_about_half_the_room() {
    let folder = tempfile::tempdir().unwrap();
    let store = RocksStore::open(folder.path(), true).unwrap();
    // The values must not compress.
    let byte = |seed: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    let noise = |key: u64| (0..1_000).map(move |place| byte(key * 1_000 + place));
    for half in [0, 1_000] {
        let mut batch = WriteBatch::default();
        (half..half + 1_000_u64).for_each(|key| batch.put(Family::Chunks, key.to_be_bytes(), noise(key).collect()));
        store.write(batch, Durability::Process).unwrap();
    }
    store.with("sync", Family::Chunks, |database, handle| database.flush_cf(handle)).unwrap();
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
    assert!(matches!(&error, StoreError::Backend { operation: "open", path: at, .. } if *at == path));
    assert!(RocksStore::open(&path, true).is_ok());
    assert!(RocksStore::open(&path, false).is_ok());
}

/// Promise, crashes: A world with a missing file, or other damage to its log, is refused, and the damage is named.
#[test]
fn no_database_is_created_over_the_remains_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let store = RocksStore::open(path, true).unwrap();
    let mut batch = WriteBatch::default();
    batch.put(Family::Meta, *b"key", b"value".to_vec());
    store.write(batch, Durability::Sync).unwrap();
    drop(store);
    let current = fs::read(path.join("CURRENT")).unwrap();
    fs::remove_file(path.join("CURRENT")).unwrap();
    let error = RocksStore::open(path, true).err().unwrap();
    assert!(matches!(&error, StoreError::DamagedFile { path, .. } if path.ends_with("CURRENT")), "{error}");
    fs::write(path.join("CURRENT"), current).unwrap();
    assert_eq!(RocksStore::open(path, true).unwrap().get(Family::Meta, b"key"), Ok(Some(b"value".to_vec())));
}

#[test]
fn a_damaged_manifest_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    drop(RocksStore::open(folder.path(), true).unwrap());
    fs::write(folder.path().join("CURRENT"), "MANIFEST-999999\n").unwrap();
    assert!(RocksStore::open(folder.path(), false).is_err());
}

/// Incompressible values, so that each fills a block and damage hits only one of them.
fn noise(seed: u8) -> Vec<u8> {
    let mut state = u64::from(seed) + 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    (0..2 * BLOCK_BYTES).map(|_| next()).collect()
}

#[test]
fn a_damaged_table_keeps_nothing_else_from_being_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = RocksStore::open(folder.path(), true).unwrap();
    let write = |store: &RocksStore, key: u8, seed: u8| {
        let mut batch = WriteBatch::default();
        batch.put(Family::Chunks, [key], noise(seed));
        store.write(batch, Durability::Process)
    };
    let flush = |store: &RocksStore| store.with("sync", Family::Chunks, |db, handle| db.flush_cf(handle));
    (0..10).for_each(|key| write(&store, key, key).unwrap());
    flush(&store).unwrap();
    drop(store);
    let is_table = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "sst");
    let table = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).find(is_table).unwrap();
    let mut bytes = fs::read(&table).unwrap();
    // In the middle of the value of key 4 of 10.
    let at = bytes.len() * 9 / 20;
    bytes[at] ^= 4;
    fs::write(&table, bytes).unwrap();

    let store = RocksStore::open(folder.path(), false).unwrap();
    let read_all = |store: &RocksStore| {
        for key in (0..10).filter(|key| *key != 4) {
            assert_eq!(store.get(Family::Chunks, &[key]), Ok(Some(noise(key))));
        }
        let error = store.get(Family::Chunks, &[4]).unwrap_err();
        let name = table.file_name().unwrap().to_str().unwrap();
        let named =
            matches!(&error, StoreError::Damaged { family: Family::Chunks, reason, .. } if reason.contains(name));
        assert!(named, "{error}");
    };
    read_all(&store);
    let error = store.scan(Family::Chunks, &[0]..&[9], 100).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert_eq!(store.scan(Family::Chunks, &[5]..&[9], 100).unwrap().len(), 4);

    // Enough new tables beside the damaged one that it is compacted, which fails and keeps failing. Every write
    // succeeds on a retry, as in the storage thread, and there are more writes than could ever wait for compaction.
    let mut failed = 0;
    for round in 0..60 {
        for key in [20, 0] {
            while let Err(error) = write(&store, key, if key == 0 { 0 } else { round }) {
                failed += 1;
                assert!(failed < 40, "{error}");
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        }
        // A failed flush is made up for by the next.
        _ = flush(&store);
    }
    assert!(failed > 0, "it was never compacted");
    assert_eq!(store.get(Family::Chunks, &[20]), Ok(Some(noise(59))));
    read_all(&store);
}

#[test]
fn written_bytes_include_the_log_and_compactions() {
    let folder = tempfile::tempdir().unwrap();
    let store = RocksStore::open(folder.path(), true).unwrap();
    let written = || store.written_bytes().unwrap();
    let before = written();
    let noise = |key: u64| {
        (0..1_000).map(move |place| (key * 1_000 + place).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0])
    };
    let mut batch = WriteBatch::default();
    (0..1_000_u64).for_each(|key| batch.put(Family::Chunks, key.to_be_bytes(), noise(key).collect()));
    let bytes = batch.bytes();
    store.write(batch, Durability::Process).unwrap();
    let logged = written() - before;
    assert!((bytes..bytes + bytes / 20).contains(&logged), "{logged} bytes in the log for {bytes}");
    store.with("sync", Family::Chunks, |database, handle| database.flush_cf(handle)).unwrap();
    let flushed = written() - before - logged;
    assert!((bytes / 10..bytes * 11 / 10).contains(&flushed), "{flushed} bytes flushed for {bytes}");
}

pub(super) fn incompressible(length: u64, mut state: u64) -> Vec<u8> {
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn put(store: &RocksStore, family: Family, key: &[u8], value: Vec<u8>) {
    let mut batch = WriteBatch::default();
    batch.put(family, key, value);
    store.write(batch, Durability::Process).unwrap();
    store.with("write", family, |database, handle| database.flush_cf(handle)).unwrap();
}

#[test]
fn a_database_from_before_the_tiers_opens_and_an_older_program_leaves_a_newer_one_alone() {
    let folder = tempfile::tempdir().unwrap();
    let older = Family::ALL.into_iter().filter(|family| !is_packed(*family)).map(Family::name);
    let older: Vec<&str> = older.collect();
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    let database = DB::open_cf(&options, folder.path(), &older).unwrap();
    database.put_cf(database.cf_handle("chunkl0").unwrap(), b"key", b"old").unwrap();
    drop(database);
    let store = RocksStore::open(folder.path(), false).unwrap();
    assert_eq!(store.get(Family::Chunks, b"key"), Ok(Some(b"old".to_vec())));
    put(&store, Family::ColdChunks, b"key", b"new".to_vec());
    drop(store);
    let error = DB::open_cf(&options, folder.path(), &older).err().unwrap().into_string();
    assert!(error.contains("Column families not opened"), "{error}");
    let store = RocksStore::open(folder.path(), false).unwrap();
    assert_eq!(store.get(Family::Chunks, b"key"), Ok(Some(b"old".to_vec())));
    assert_eq!(store.get(Family::ColdChunks, b"key"), Ok(Some(b"new".to_vec())));
}

/// Promise, tiers: If RocksDB's checksum of a large value fails, the value is read without it.
#[test]
fn a_flipped_bit_in_a_large_cluster_leaves_the_other_bytes_readable() {
    let folder = tempfile::tempdir().unwrap();
    let values = [incompressible(100_000, 0), incompressible(100_000, 7)];
    for family in [Family::WarmChunks, Family::ColdChunks, Family::Chunks] {
        let path = folder.path().join(family.name());
        let store = RocksStore::open(&path, true).unwrap();
        values.iter().zip([b"a", b"b"]).for_each(|(value, key)| put(&store, family, key, value.clone()));
        drop(store);
        let is_blob = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "blob");
        let mut blobs: Vec<_> =
            fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).filter(is_blob).collect();
        blobs.sort();
        assert_eq!(blobs.len(), 2, "large values are in files of their own");
        let mut bytes = fs::read(&blobs[0]).unwrap();
        bytes[50_000] ^= 1;
        fs::write(&blobs[0], bytes).unwrap();
        let store = RocksStore::open(&path, false).unwrap();
        assert_eq!(store.get(family, b"b").unwrap().as_ref(), Some(&values[1]));
        match store.get(family, b"a") {
            Ok(found) => {
                let found = found.unwrap();
                let differ = found.iter().zip(&values[0]).filter(|(found, value)| found != value).count();
                assert!(is_packed(family) && found.len() == 100_000 && differ == 1, "{family}");
            }
            // Values without checksums of their own are refused.
            Err(error) => assert!(!is_packed(family) && error.to_string().contains("Corruption"), "{error}"),
        }
    }
}

/// Promise, upkeep: A game can call `verify`, `prune`, `compact` and `back_up` itself.
#[test]
fn a_chunk_of_megabytes_has_a_file_of_its_own_and_frees_its_space() {
    const LARGE: u64 = 4 << 20;
    let folder = tempfile::tempdir().unwrap();
    let store = RocksStore::open(folder.path(), true).unwrap();
    let blobs = || {
        let size = |database: &DB, handle: &ColumnFamily| database.property_int_value_cf(handle, LIVE_BLOB_FILE_SIZE);
        store.with("measure", Family::Chunks, size).unwrap().unwrap()
    };
    put(&store, Family::Chunks, b"ordinary", incompressible(40_000, 1));
    assert_eq!(blobs(), 0);
    let began = std::time::Instant::now();
    (0..8).for_each(|round| put(&store, Family::Chunks, b"library", incompressible(LARGE, round)));
    let saved = began.elapsed() / 8;
    let before = blobs();
    store.compact(Family::Chunks).unwrap();
    let began = std::time::Instant::now();
    assert!(store.get(Family::Chunks, b"library").unwrap() == Some(incompressible(LARGE, 7)));
    println!(
        "4 MiB chunk: saved and flushed in {saved:?}, read in {:?}; 8 versions took {before} bytes, then {}",
        began.elapsed(),
        blobs()
    );
    assert!((LARGE..LARGE + LARGE / 4).contains(&blobs()), "{} bytes", blobs());
}
