//! Databases that cannot be opened, and their remains.

use super::*;
use crate::backends::rocks::tests::incompressible;
use crate::walk::all_keys;

/// Writes a value under each of these keys, and flushes the values to tables.
fn put(store: &RocksStore, keys: Range<u8>, round: u64, bytes: u64) {
    let mut batch = WriteBatch::default();
    for family in Family::ALL {
        keys.clone().for_each(|key| batch.put(family, [key], incompressible(bytes, round * 256 + u64::from(key))));
    }
    store.write(batch, Durability::Sync).unwrap();
    for family in Family::ALL {
        store.with("write", family, |database, handle| database.flush_cf(handle)).unwrap();
    }
}

fn contents(store: &dyn KeyValueStore) -> Vec<(Family, Vec<KeyValue>)> {
    let all = all_keys();
    Family::ALL.map(|family| (family, store.scan(family, &all.start..&all.end, usize::MAX).unwrap())).into()
}

/// Makes a database with tables of several levels and rounds, blob files and deleted keys.
fn make(path: &Path) -> Vec<(Family, Vec<KeyValue>)> {
    let store = RocksStore::open(path, true).unwrap();
    put(&store, 0..40, 1, 500);
    put(&store, 10..30, 2, 70_000);
    Family::ALL.iter().for_each(|family| store.compact(*family).unwrap());
    put(&store, 20..25, 3, 300);
    let mut batch = WriteBatch::default();
    Family::ALL.iter().for_each(|family| batch.delete(*family, [5]));
    store.write(batch, Durability::Sync).unwrap();
    put(&store, 100..110, 4, 20_000);
    contents(&store)
}

fn open(path: &Path) -> (Remains, Vec<LostFile>, tempfile::TempDir) {
    let scratch = tempfile::tempdir().unwrap();
    let (remains, lost) = Remains::open(path, &scratch.path().join("remains")).unwrap();
    (remains, lost, scratch)
}

fn files(path: &Path, kind: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == kind));
    files.sort();
    files
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Promise, upkeep: `terrane salvage` reads worlds that cannot be opened.
#[test]
fn without_a_manifest_the_newest_data_is_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let expected = make(folder.path());
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().contains("MANIFEST") || path.ends_with("CURRENT") {
            fs::remove_file(path).unwrap();
        }
    }
    assert!(RocksStore::open_to_read(folder.path()).is_err());
    let (remains, lost, scratch) = open(folder.path());
    let named: Vec<_> = lost.iter().map(|(path, _)| path.file_name().unwrap().to_str().unwrap()).collect();
    assert!(named.len() == 2 && named[0] == "CURRENT" && named[1].starts_with("MANIFEST"), "{named:?}");
    assert!(contents(&remains) == expected);
    for (family, entries) in expected {
        for (key, value) in entries {
            assert!(remains.get(family, &key).unwrap() == Some(value), "{family} {key:?}");
        }
        assert_eq!(remains.get(family, &[5]).unwrap(), None, "it was deleted");
    }
    drop(remains);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left of it");
}

#[test]
fn of_a_table_that_is_missing_or_damaged_nothing_else_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let expected = make(folder.path());
    let tables = files(folder.path(), "sst");
    assert!(tables.len() > 7);
    let known: std::collections::BTreeSet<_> =
        expected.iter().flat_map(|(family, entries)| entries.iter().map(move |entry| (*family, entry))).collect();
    for table in tables {
        let whole = fs::read(&table).unwrap();
        let mut no_end = whole.clone();
        let end = no_end.len() - 30;
        no_end[end..].fill(1);
        let mut no_list = whole.clone();
        no_list[end - 40] ^= 1;
        // The table has the number of a missing family and the name of an existing one.
        let mut other_family = whole.clone();
        let id = b"column.family.id";
        let at = whole.windows(id.len()).position(|window| window == id).unwrap();
        other_family[at + id.len()] ^= 16;
        let half = &whole[..whole.len() / 2];
        for damaged in [None, Some(half), Some(&no_end[..]), Some(&no_list[..]), Some(&other_family[..]), Some(&[])] {
            match damaged {
                None => fs::remove_file(&table).unwrap(),
                Some(bytes) => fs::write(&table, bytes).unwrap(),
            }
            let (remains, lost, _scratch) = open(folder.path());
            let named: Vec<&PathBuf> = lost.iter().map(|(path, _)| path).collect();
            let found = contents(&remains);
            if damaged == Some(&other_family[..]) && named.is_empty() {
                // Its family is known from its name, and from the number in other tables or the usual one.
                assert!(found == expected);
                continue;
            }
            assert_eq!(named, [&table]);
            let of_others = found.iter().zip(&expected).filter(|(found, expected)| found == expected).count();
            assert!(of_others >= Family::ALL.len() - 1, "only one family is touched");
            // Older values and deleted keys may come back; both were stored once.
            let news = found.iter().flat_map(|(family, entries)| entries.iter().map(move |entry| (*family, entry)));
            assert!(news.filter(|entry| !known.contains(entry)).count() <= 41);
        }
        fs::write(&table, whole).unwrap();
    }
}

#[test]
fn of_a_blob_file_that_is_missing_its_values_cannot_be_read_and_all_others_can() {
    let folder = tempfile::tempdir().unwrap();
    let expected = make(folder.path());
    fs::remove_file(folder.path().join("CURRENT")).unwrap();
    let blobs = files(folder.path(), "blob");
    assert!(!blobs.is_empty());
    blobs.iter().for_each(|blobs| fs::remove_file(blobs).unwrap());
    let (remains, _, _scratch) = open(folder.path());
    let mut lost = 0;
    for (family, entries) in expected {
        for (key, value) in entries {
            match remains.get(family, &key) {
                Ok(found) => assert!(found == Some(value), "{family} {key:?}"),
                Err(StoreError::Damaged { .. }) => lost += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
    // All cold values, and the large ones of other families.
    assert!((60..150).contains(&lost), "{lost}");
}

#[test]
fn log_entries_behind_damage_count() {
    let folder = tempfile::tempdir().unwrap();
    let (world, killed) = (folder.path().join("world"), folder.path().join("killed"));
    let store = RocksStore::open(&world, true).unwrap();
    for key in 0..200_u8 {
        let mut batch = WriteBatch::default();
        batch.put(Family::Meta, [key], incompressible(3_000, key.into()));
        store.write(batch, Durability::Sync).unwrap();
    }
    copy(&world, &killed);
    fs::remove_file(killed.join("CURRENT")).unwrap();
    let (remains, _, _scratch) = open(&killed);
    assert!(contents(&remains) == contents(&store));
    drop(remains);
    let log = files(&killed, "log").into_iter().max_by_key(|log| fs::metadata(log).unwrap().len()).unwrap();
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, bytes).unwrap();
    let (remains, _, _scratch) = open(&killed);
    let found: Vec<u8> = contents(&remains).into_iter().flat_map(|(_, of)| of).map(|(key, _)| key[0]).collect();
    assert!((170..200).contains(&found.len()), "{} of 200", found.len());
    assert_eq!((found.first(), found.last()), (Some(&0), Some(&199)));
}

#[test]
fn a_family_whose_only_table_has_another_number_keeps_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let (world, killed) = (folder.path().join("world"), folder.path().join("killed"));
    let store = RocksStore::open(&world, true).unwrap();
    put(&store, 0..40, 1, 500);
    let mut batch = WriteBatch::default();
    Family::ALL.iter().for_each(|family| batch.put(*family, [200], vec![7]));
    store.write(batch, Durability::Sync).unwrap();
    let expected = contents(&store);
    copy(&world, &killed);
    fs::remove_file(killed.join("CURRENT")).unwrap();
    let tables = files(&killed, "sst");
    assert_eq!(tables.len(), Family::ALL.len());
    for table in tables {
        let whole = fs::read(&table).unwrap();
        let id = b"column.family.id";
        let at = whole.windows(id.len()).position(|window| window == id).unwrap() + id.len();
        for flip in [1, 2, 4, 16] {
            let mut damaged = whole.clone();
            damaged[at] ^= flip;
            fs::write(&table, damaged).unwrap();
            let (remains, lost, _scratch) = open(&killed);
            let found = contents(&remains);
            assert!(found.iter().all(|(_, entries)| entries.iter().any(|(key, _)| *key == [200])), "{table:?} {flip}");
            assert!(found == expected || lost.iter().any(|(path, _)| *path == table), "{table:?} {flip}");
        }
        fs::write(&table, whole).unwrap();
    }
}

#[test]
fn nothing_is_made_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("000007.sst"), b"no table").unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let error = Remains::open(folder.path(), scratch.path()).err().unwrap().to_string();
    assert!(error.contains("no table"), "{error}");
}
