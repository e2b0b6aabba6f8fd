//! The decisions after a failure, without a game. `tests/it/faulty_disk.rs` and `tests/it/lost_folder.rs` test that a
//! store works again after any failure.

use super::*;
use crate::{Durability, KeyValueStore, RocksStore, WriteBatch};
use std::fs::{self, OpenOptions};

fn write(store: &RocksStore, value: u8) -> Result<(), StoreError> {
    let mut batch = WriteBatch::default();
    batch.put(Family::Meta, *b"key", vec![value; 100]);
    store.write(batch, Durability::Sync)
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

#[test]
fn a_folder_that_comes_back_with_less_than_was_saved_is_refused_and_left_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let (path, away) = (root.path().join("db"), root.path().join("away"));
    let store = RocksStore::open(&path, true).unwrap();
    write(&store, 1).unwrap();
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    let log = || fs::read_dir(&away).unwrap().map(|entry| entry.unwrap().path()).find(is_log).unwrap();
    let log_length = {
        let log = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).find(is_log).unwrap();
        fs::metadata(log).unwrap().len()
    };
    write(&store, 2).unwrap();
    fs::rename(&path, &away).unwrap();
    assert!(write(&store, 3).is_err());
    let whole = fs::read(log()).unwrap();
    OpenOptions::new().write(true).open(log()).unwrap().set_len(log_length).unwrap();
    fs::rename(&away, &path).unwrap();
    let error = wait_for(|| write(&store, 3).err().filter(|error| matches!(error, StoreError::ReadOnly { .. })));
    assert!(error.to_string().contains("it holds only 1 of the 2 saved changes"), "{error}");
    assert_eq!(store.get(Family::Meta, b"key"), Ok(Some(vec![1; 100])));
    // Once complete again, the database is accepted.
    fs::rename(&path, &away).unwrap();
    fs::write(log(), whole).unwrap();
    fs::rename(&away, &path).unwrap();
    wait_for(|| write(&store, 4).ok());
    drop(store);
    assert_eq!(RocksStore::open(&path, false).unwrap().get(Family::Meta, b"key"), Ok(Some(vec![4; 100])));
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
