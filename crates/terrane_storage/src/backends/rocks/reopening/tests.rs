//! The decisions after a failure, without a game. `tests/it/faulty_disk.rs` and `tests/it/lost_folder.rs` test that a
//! store works again after any failure.

use super::*;
use crate::{Durability, KeyValueStore, RocksStore, WriteBatch};
use std::fs;

fn write(store: &RocksStore, value: u8) -> Result<(), StoreError> {
    write_with(store, value, Durability::Sync)
}

fn write_with(store: &RocksStore, value: u8, durability: Durability) -> Result<(), StoreError> {
    let mut batch = WriteBatch::default();
    batch.put(Family::Meta, *b"key", vec![value; 100]);
    store.write(batch, durability)
}

/// Retries until the attempt has a result.
fn wait_for<T>(attempt: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn writes_without_the_folder_fail_and_older_data_returns_with_it() {
    let root = tempfile::tempdir().unwrap();
    let (path, away) = (root.path().join("db"), root.path().join("away"));
    let store = RocksStore::open(&path, true).unwrap();
    write(&store, 1).unwrap();
    fs::rename(&path, &away).unwrap();
    for _ in 0..3 {
        assert_eq!(write(&store, 2), Err(StoreError::FolderLost { path: path.clone() }));
        assert_eq!(store.sync(), Err(StoreError::FolderLost { path: path.clone() }));
        assert!(store.compact(Family::Meta).is_err());
        assert_eq!(store.get(Family::Meta, b"key"), Ok(Some(vec![1; 100])), "it can be read meanwhile");
    }
    assert!(!path.exists());
    fs::rename(&away, &path).unwrap();
    wait_for(|| write(&store, 3).ok());
    drop(store);
    assert_eq!(RocksStore::open(&path, false).unwrap().get(Family::Meta, b"key"), Ok(Some(vec![3; 100])));
}

/// Promise, crashes: If a failed disk comes back without a confirmed save, the running world refuses it, since it builds on that save.
#[test]
fn a_folder_that_comes_back_with_less_than_was_saved_is_refused_and_left_as_it_is() {
    type Damage = fn(&mut Vec<u8>, [usize; 3]);
    let cut: Damage = |log, [_, second, _]| log.truncate(second);
    let hole: Damage = |log, [_, second, third]| log[second..third].fill(0);
    for (durability, damage) in [(Durability::Sync, cut), (Durability::Process, cut), (Durability::Process, hole)] {
        let root = tempfile::tempdir().unwrap();
        let (path, away) = (root.path().join("db"), root.path().join("away"));
        let store = RocksStore::open(&path, true).unwrap();
        let log = |folder: &Path| {
            let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            files.find(|file| file.extension().is_some_and(|extension| extension == "log")).unwrap()
        };
        write(&store, 1).unwrap();
        let ends = [2, 3, 4].map(|value| {
            let end = fs::metadata(log(&path)).unwrap().len() as usize;
            write_with(&store, value, durability).unwrap();
            end
        });
        fs::rename(&path, &away).unwrap();
        assert!(write(&store, 5).is_err());
        let whole = fs::read(log(&away)).unwrap();
        let mut damaged = whole.clone();
        damage(&mut damaged, ends);
        fs::write(log(&away), &damaged).unwrap();
        fs::rename(&away, &path).unwrap();
        let error = wait_for(|| write(&store, 5).err().filter(|error| matches!(error, StoreError::ReadOnly { .. })));
        let error = error.to_string();
        assert!(error.contains("2 of the 4 saved changes") || error.contains("ends with write 2"), "{error}");
        wait_for(|| (store.keeper.health().failure.as_ref()?.attempts > 2).then_some(()));
        // The database that was open before may have added zeros as it closed.
        assert!(fs::read(log(&path)).unwrap().starts_with(&damaged), "it is left as it is");
        // Once complete again, the database is accepted.
        fs::rename(&path, &away).unwrap();
        fs::write(log(&away), whole).unwrap();
        fs::rename(&away, &path).unwrap();
        wait_for(|| write(&store, 6).ok());
        drop(store);
        assert_eq!(RocksStore::open(&path, false).unwrap().get(Family::Meta, b"key"), Ok(Some(vec![6; 100])));
    }
}

#[test]
fn reads_that_fail_for_a_while_have_the_database_opened_again_less_and_less_often() {
    let folder = tempfile::tempdir().unwrap();
    let store = RocksStore::open(folder.path(), true).unwrap();
    let keeper = &store.keeper;
    let error = StoreError::backend("read", None, folder.path(), "Input/output error");
    let is_sound = || keeper.health().failure.is_none();
    keeper.note_failed_read(&error);
    keeper.note_failed_read(&error);
    assert!(is_sound(), "it may have been a moment");
    for times in 1..=8 {
        let patience = keeper.health().patience;
        assert_eq!(patience, Duration::from_secs(1 << (times - 1).min(6)));
        keeper.health().reads_fail_since = Instant::now().checked_sub(patience);
        keeper.note_failed_read(&error);
        wait_for(|| is_sound().then_some(()));
    }
    write(&store, 1).unwrap();
    assert_eq!(keeper.health().patience, PAUSE, "the disk is there");
}

#[test]
fn a_store_that_is_only_read_is_never_opened_to_be_written() {
    let folder = tempfile::tempdir().unwrap();
    drop(RocksStore::open(folder.path(), true).unwrap());
    let store = RocksStore::open_to_read(folder.path()).unwrap();
    let error = StoreError::backend("read", None, folder.path(), "Input/output error");
    store.keeper.health().reads_fail_since = Instant::now().checked_sub(PAUSE);
    store.keeper.note_failed_read(&error);
    assert!(store.keeper.health().failure.is_none());
}

/// Promise, crashes: A path from which a world was lost can be opened again in the same process.
#[test]
fn a_path_from_which_a_folder_was_lost_opens_again_with_whatever_is_there() {
    let root = tempfile::tempdir().unwrap();
    let [path, other, away] = ["db", "other", "away"].map(|name| root.path().join(name));
    let stored = |store: &RocksStore| store.get(Family::Meta, b"key").unwrap().unwrap()[0];
    for (folder, value) in [(&other, 2), (&path, 1)] {
        write(&RocksStore::open(folder, true).unwrap(), value).unwrap();
    }
    // Twice in a row, a database is left open since another one has taken its place.
    for (value, next) in [(1, 2), (2, 1)] {
        let store = RocksStore::open(&path, false).unwrap();
        assert_eq!(stored(&store), value);
        write(&store, value).unwrap();
        fs::rename(&path, &away).unwrap();
        fs::rename(&other, &path).unwrap();
        let error = RocksStore::open(&path, false).err().unwrap().to_string();
        assert!(error.contains("this process has it open, or another one that was in this folder"), "{error}");
        assert!(write(&store, 9).is_err());
        drop(store);
        let store = RocksStore::open(&path, false).unwrap();
        assert_eq!(stored(&store), next);
        write(&store, next).unwrap();
        let again = RocksStore::open(&path, false).err().unwrap().to_string();
        assert!(again.contains("this process has it open, or another one that was in this folder"), "{again}");
        drop(store);
        fs::rename(&away, &other).unwrap();
    }
    // Deleted, and made anew.
    let store = RocksStore::open(&path, false).unwrap();
    fs::remove_dir_all(&path).unwrap();
    assert!(write(&store, 9).is_err());
    let early = RocksStore::open(&path, true).err().unwrap().to_string();
    assert!(early.contains("this process has it open, or another one that was in this folder"), "{early}");
    drop(store);
    let store = RocksStore::open(&path, true).unwrap();
    assert_eq!(store.get(Family::Meta, b"key"), Ok(None));
    write(&store, 7).unwrap();
    drop(store);
    assert_eq!(stored(&RocksStore::open(&path, false).unwrap()), 7);
}
