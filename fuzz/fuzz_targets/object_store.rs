//! Whatever a file holds, opening it ends with a store or an error; what can be read in it stays as it is while others write,
//! delete and compact, and what is written is there.
//!
//! `cargo fuzz run object_store fuzz/corpus/object_store tests/fixtures -- -max_len=45056` begins with a store of each format.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use terrane_objects::{FILE_BLOCK_BYTES, Object, ObjectBatch, ObjectStore, ObjectStoreOptions};

/// So that an input takes milliseconds.
const OPTIONS: ObjectStoreOptions = ObjectStoreOptions { level: 1, sync: false, zero_freed: true, most_bytes: 1 << 20 };

fuzz_target!(|file: &[u8]| {
    let folder = tempfile::tempdir().expect("a place for temporary files");
    let path = folder.path().join("store");
    // As it is, and as somebody would make it who knows the format.
    for is_mended in [false, true] {
        let mut file = file.to_vec();
        if is_mended {
            mend(&mut file);
        }
        fs::write(&path, file).expect("room for it");
        let Ok(signature) = ObjectStore::signature_of(&path) else { return };
        if let Ok(store) = ObjectStore::open_to_read(&path, &signature) {
            for (key, _) in store.with_prefix("") {
                let _ = store.read(key);
            }
        }
        change(&path, &signature);
    }
});

/// Makes the checksum of every block right.
fn mend(file: &mut [u8]) {
    let line = file.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1).min(FILE_BLOCK_BYTES - 4);
    for (number, block) in file.chunks_exact_mut(FILE_BLOCK_BYTES).enumerate() {
        let start = if number == 0 { line } else { 0 };
        let (rest, checksum) = block.split_at_mut(FILE_BLOCK_BYTES - 4);
        checksum.copy_from_slice(&crc32fast::hash(&rest[start..]).to_le_bytes());
    }
}

/// Changes some objects of a file; all others stay as they are.
fn change(path: &Path, signature: &str) {
    let Ok(mut store) = ObjectStore::open(path, signature, OPTIONS) else { return };
    let keys: Vec<String> = store.with_prefix("").map(|(key, _)| key.to_owned()).collect();
    let read = |key: &String| Some((key.clone(), store.read(key).ok()??));
    let mut expected: BTreeMap<String, Object> = keys.iter().filter_map(read).collect();
    check(&store, &expected);

    let data: Vec<u8> = (0..9_000_u32).map(|number| (number * number % 251) as u8).collect();
    let targets = keys.iter().take(1).map(String::as_str).chain(["written"]);
    for (version, key) in (7..).zip(targets) {
        let before = expected.insert(key.to_owned(), Object { version, data: data.clone() });
        if store.write(key, version, &data).is_err() {
            // It is as it was before.
            expected.remove(key);
            expected.extend(before.map(|before| (key.to_owned(), before)));
        }
        check(&store, &expected);
    }
    if let Some(key) = keys.last() {
        expected.remove(key);
        store.delete(key).expect("a disk that works");
        assert_eq!(store.read(key), Ok(None));
        check(&store, &expected);
    }
    let mut batch = ObjectBatch::default();
    batch.write("of a batch", 1, &data[..5_000]).delete("written");
    if store.apply(&batch).is_ok() {
        expected.insert("of a batch".to_owned(), Object { version: 1, data: data[..5_000].to_vec() });
        expected.remove("written");
    }
    check(&store, &expected);
    if store.close().is_err() {
        return;
    }
    let mut store = ObjectStore::open(path, signature, OPTIONS).expect("what was closed can be opened");
    check(&store, &expected);
    // Damage prevents compaction, and nothing else.
    let _ = store.compact();
    check(&store, &expected);
}

fn check(store: &ObjectStore, expected: &BTreeMap<String, Object>) {
    for (key, object) in expected {
        assert_eq!(store.read(key).as_ref(), Ok(&Some(object.clone())), "{key}");
    }
}
