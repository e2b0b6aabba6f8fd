//! What every [`KeyValueStore`] must do, against an obvious model.

use super::{Durability, Family, KeyValueStore, WriteBatch};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;

type Model = BTreeMap<(Family, Vec<u8>), Vec<u8>>;

/// Runs the whole suite; `new_store` makes an empty store each time.
pub(super) fn check<S: KeyValueStore>(mut new_store: impl FnMut() -> S) {
    families_are_apart(&new_store());
    scans_are_ascending_half_open_and_limited(&new_store());
    the_later_change_of_a_key_counts(&new_store());
    readers_see_whole_batches(&new_store());
    // A few long runs: making a store on disk is the slow part.
    for _ in 0..4 {
        agrees_with_a_map(&new_store());
    }
}

fn put<S: KeyValueStore>(store: &S, entries: &[(Family, &[u8], &[u8])]) {
    let mut batch = WriteBatch::default();
    entries.iter().for_each(|(family, key, value)| batch.put(*family, *key, value.to_vec()));
    assert_eq!(batch.len(), entries.len());
    store.write(batch, Durability::Sync).unwrap();
}

fn families_are_apart<S: KeyValueStore>(store: &S) {
    put(store, &[(Family::Chunks, b"key", b"chunk"), (Family::Meta, b"key", b"")]);
    assert_eq!(store.get(Family::Chunks, b"key").unwrap().as_deref(), Some(&b"chunk"[..]));
    assert_eq!(store.get(Family::Meta, b"key").unwrap().as_deref(), Some(&b""[..]));
    assert_eq!(store.get(Family::Entities, b"key").unwrap(), None);
    let found = store.multi_get(Family::Chunks, &[b"no", b"key", b"", b"key"]).unwrap();
    assert_eq!(found, [None, Some(b"chunk".to_vec()), None, Some(b"chunk".to_vec())]);
    assert!(store.multi_get(Family::Chunks, &[]).unwrap().is_empty());
    store.sync().unwrap();
    assert!(store.approximate_bytes().unwrap() > 0);
}

fn scans_are_ascending_half_open_and_limited<S: KeyValueStore>(store: &S) {
    let keys: [&[u8]; 6] = [&[0xff, 0xff], &[1], &[0, 1], &[0xff], &[0], &[1, 0]];
    keys.iter().for_each(|key| put(store, &[(Family::Entities, key, key)]));
    let scan = |start: &[u8], end: &[u8], limit| -> Vec<Vec<u8>> {
        let entries = store.scan(Family::Entities, start..end, limit).unwrap();
        entries
            .into_iter()
            .map(|(key, value)| if key == value { key } else { panic!("{key:?} has {value:?}") })
            .collect()
    };
    let all: [&[u8]; 6] = [&[0], &[0, 1], &[1], &[1, 0], &[0xff], &[0xff, 0xff]];
    assert_eq!(scan(&[], &[0xff, 0xff, 0], usize::MAX), all);
    assert_eq!(scan(&[0, 1], &[0xff], 10), all[1..4]);
    assert_eq!(scan(&[0, 2], &[1, 0], 10), all[2..3]);
    assert_eq!(scan(&[], &[0xff], 2), all[..2]);
    assert!(scan(&[], &[0xff], 0).is_empty());
    assert!(scan(&[1], &[1], 10).is_empty());
    assert!(scan(&[2], &[1], 10).is_empty());
    assert!(store.scan(Family::Chunks, &[]..&[0xff], 10).unwrap().is_empty());
}

fn the_later_change_of_a_key_counts<S: KeyValueStore>(store: &S) {
    let mut batch = WriteBatch::default();
    batch.put(Family::Meta, *b"kept", b"old".to_vec());
    batch.delete(Family::Meta, *b"kept");
    batch.put(Family::Meta, *b"kept", b"new".to_vec());
    batch.put(Family::Meta, *b"gone", b"old".to_vec());
    batch.delete(Family::Meta, *b"gone");
    batch.delete(Family::Meta, *b"never there");
    assert_eq!((batch.len(), batch.bytes()), (6, 7 + 4 + 7 + 7 + 4 + 11));
    store.write(batch, Durability::Process).unwrap();
    assert_eq!(store.get(Family::Meta, b"kept").unwrap(), Some(b"new".to_vec()));
    assert_eq!(store.get(Family::Meta, b"gone").unwrap(), None);
    store.write(WriteBatch::default(), Durability::Process).unwrap();
}

/// One scan never sees half a batch.
fn readers_see_whole_batches<S: KeyValueStore>(store: &S) {
    let write = |round: u8| {
        let mut batch = WriteBatch::default();
        (0..20_u8).for_each(|key| batch.put(Family::Chunks, [key], vec![round]));
        store.write(batch, Durability::Process).unwrap();
    };
    write(0);
    std::thread::scope(|scope| {
        scope.spawn(|| (1..200).for_each(write));
        for _ in 0..200 {
            let entries = store.scan(Family::Chunks, &[]..&[0xff], 100).unwrap();
            assert_eq!(entries.len(), 20);
            assert!(entries.iter().all(|(_, value)| *value == entries[0].1), "half a batch: {entries:?}");
        }
    });
}

fn agrees_with_a_map<S: KeyValueStore>(store: &S) {
    let key = || vec(0..3_u8, 0..4);
    let family = || prop::sample::select(&Family::ALL[..]);
    let change = (family(), key(), prop::option::of(vec(any::<u8>(), 0..50)));
    let steps = vec((vec(change, 0..20), family(), key(), key(), 0..10_usize, any::<bool>()), 1..30);
    let mut model = Model::new();
    let mut runner = TestRunner::new(Config { cases: 1, ..Config::default() });
    let steps = steps.new_tree(&mut runner).unwrap().current();
    for (changes, family, start, end, limit, sync) in steps {
        let mut batch = WriteBatch::default();
        for (family, key, value) in changes {
            match value {
                Some(value) => {
                    batch.put(family, key.clone(), value.clone());
                    model.insert((family, key), value);
                }
                None => {
                    batch.delete(family, key.clone());
                    model.remove(&(family, key));
                }
            }
        }
        store.write(batch, if sync { Durability::Sync } else { Durability::Process }).unwrap();
        assert_eq!(store.get(family, &start).unwrap(), model.get(&(family, start.clone())).cloned());
        let expected = model.iter().filter(|((of, key), _)| *of == family && *key >= start && *key < end);
        let expected: Vec<_> = expected.map(|((_, key), value)| (key.clone(), value.clone())).take(limit).collect();
        assert_eq!(store.scan(family, &start..&end, limit).unwrap(), expected);
    }
}
