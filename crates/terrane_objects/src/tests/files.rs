//! Files as programs find them: locks, signatures, versions, and a file of the first format version.

use super::*;
use crate::work::FileError;
use crate::{FileDisk, ObjectStore};
use std::fs;
use std::path::Path;

type FileStore = ObjectStore<FileDisk>;

fn made(path: &Path) -> FileStore {
    FileStore::create(path, SIGNATURE, options()).unwrap()
}

/// Promise, object store: An object store with another version or signature is refused.
#[test]
fn a_file_has_a_signature_and_is_created_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    made(&path).close().unwrap();
    assert_eq!(FileStore::signature_of(&path).unwrap(), SIGNATURE);
    assert!(fs::read(&path).unwrap().starts_with(b"bevy_terrane objects 1 test 1\n"));
    let twice = FileStore::create(&path, SIGNATURE, options()).unwrap_err();
    assert!(
        matches!(&twice, ObjectStoreError::Io(error) if error.kind == std::io::ErrorKind::AlreadyExists && error.path == path)
    );
    let other = FileStore::open(&path, "test 2", options()).unwrap_err();
    assert!(matches!(&other, ObjectStoreError::Signature { found, .. } if found == SIGNATURE), "{other}");
    for signature in ["", "two\nlines", &"s".repeat(257)] {
        let error = FileStore::create(&folder.path().join("other"), signature, options()).unwrap_err();
        assert!(matches!(error, ObjectStoreError::InvalidSignature { .. }));
    }
    for (bytes, reason) in [
        (&b""[..], "line of text"),
        (b"bevy_terrane objects 1 test 1", "line of text"),
        (b"bevy_terrane objects 2 test 1\n", "format"),
        (b"PK\x03\x04\n", "not that of one"),
        (&[0; 9_000], "line of text"),
    ] {
        fs::write(&path, bytes).unwrap();
        for error in
            [FileStore::signature_of(&path).unwrap_err(), FileStore::open(&path, SIGNATURE, options()).unwrap_err()]
        {
            assert!(error.to_string().contains(reason), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    let missing = FileStore::open(&folder.path().join("nothing"), SIGNATURE, options()).unwrap_err();
    assert!(matches!(missing, ObjectStoreError::Io(FileError { kind: std::io::ErrorKind::NotFound, .. })));
}

#[test]
fn one_writes_or_several_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = made(&path);
    store.write("a", 1, b"one").unwrap();
    let locked = Err(ObjectStoreError::Locked { path: path.clone() });
    assert_eq!(FileStore::open(&path, SIGNATURE, options()).map(drop), locked);
    assert_eq!(FileStore::open_to_read(&path, SIGNATURE).map(drop), locked);
    store.close().unwrap();
    let readers: Vec<FileStore> = (0..2).map(|_| FileStore::open_to_read(&path, SIGNATURE).unwrap()).collect();
    assert_eq!(FileStore::open(&path, SIGNATURE, options()).map(drop), locked);
    for reader in &readers {
        assert_eq!(reader.read("a").unwrap().unwrap().data, b"one");
    }
    let mut reader = readers.into_iter().next().unwrap();
    assert_eq!(reader.write("a", 2, b"two"), Err(ObjectStoreError::ReadOnly { path: path.clone() }));
    assert_eq!(reader.delete("a"), Err(ObjectStoreError::ReadOnly { path }));
}

#[test]
fn compaction_keeps_everything_and_gives_room_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = made(&path);
    for number in 0..40_u64 {
        store.write(&format!("o/{number}"), number, &data(number, 6_000)).unwrap();
    }
    for number in (0..40).filter(|number| number % 4 != 0) {
        store.delete(&format!("o/{number}")).unwrap();
    }
    let before = store.size();
    store.compact().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(store.size(), fs::metadata(&path).unwrap().len());
    assert!(store.size() < before / 3);
    assert_eq!(
        FileStore::open(&path, SIGNATURE, options()).map(drop),
        Err(ObjectStoreError::Locked { path: path.clone() })
    );
    store.write("o/1", 9, b"new").unwrap();
    store.close().unwrap();
    let store = FileStore::open(&path, SIGNATURE, options()).unwrap();
    assert_eq!(store.len(), 11);
    assert_eq!(store.read("o/36").unwrap().unwrap().data, data(36, 6_000));
    assert!(store.with_prefix("").all(|(key, _)| store.read(key).is_ok()));
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    let block = (1..bytes.len() / 4_096).find(|block| bytes[block * 4_096 + 4_059] == 2).unwrap();
    bytes[block * 4_096 + 100] ^= 1;
    fs::write(&path, bytes).unwrap();
    let mut store = FileStore::open(&path, SIGNATURE, options()).unwrap();
    assert_eq!(store.with_prefix("").filter(|(key, _)| store.read(key).is_err()).count(), 1);
    assert!(matches!(store.compact(), Err(ObjectStoreError::Damaged { .. })));
    assert_eq!(store.len(), 11);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A file of the first format version. It never changes: all later versions read it.
const FIXTURE: &[u8] = include_bytes!("../../../../tests/fixtures/object_store_1.objects");

/// Promise, object store: Object stores of the first format, with their blocks and trailers, stay readable.
#[test]
fn files_of_the_first_format_stay_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    // Intact, and with a lost index.
    for index in [true, false] {
        let mut bytes = FIXTURE.to_vec();
        if !index {
            bytes[4_059] = 0;
        }
        fs::write(&path, bytes).unwrap();
        let store = FileStore::open_to_read(&path, "fixture 1").unwrap();
        assert_eq!(store.recovery().is_none(), index);
        let entries: Vec<_> = store.with_prefix("").collect();
        assert_eq!(entries, [("batch/a", 7), ("batch/b", 8), ("long", 1), ("note", 3)]);
        assert_eq!(store.read("note").unwrap().unwrap().data, b"version 1 stays readable");
        let long: Vec<u8> = (0..9_000_u32).map(|number| (number * number % 251) as u8).collect();
        assert_eq!(store.read("long").unwrap().unwrap().data, long);
        assert_eq!(store.read("batch/b").unwrap().unwrap().data, b"");
    }
}
