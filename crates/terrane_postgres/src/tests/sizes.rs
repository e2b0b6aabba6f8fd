//! Large batches, values and pages, and long keys.

use super::proxy::{Fault, Proxy};
use super::{SERVER, new_name, new_world};
use crate::{PostgresConfig, PostgresStore};
use std::time::Duration;
use terrane_storage::{Durability, Family, KeyValueStore, StoreError, WriteBatch};

/// Bytes that do not compress.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u64;
    let next = |_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..length).map(next).collect()
}

#[test]
fn a_batch_larger_than_a_message_is_written_whole() {
    let proxy = Proxy::new(SERVER.port());
    let world = new_name();
    let address = format!("{}#{world}", SERVER.address_at(&[proxy.port]));
    let config = PostgresConfig { largest_message: 5_000, ..PostgresConfig::default() };
    let store = PostgresStore::open_with(&address, &config).unwrap();
    let mut old = WriteBatch::default();
    (0..10_u8).for_each(|key| old.put(Family::Chunks, [key], b"old".to_vec()));
    store.write(old, Durability::Sync).unwrap();

    for (round, fault) in
        [None, Some(Fault::CutAnswer), Some(Fault::CutRequest(2_000)), Some(Fault::Delay(Duration::from_millis(300)))]
            .into_iter()
            .enumerate()
    {
        let mut large = WriteBatch::default();
        large.require(Family::Chunks, [1], (round == 0).then(|| b"old".to_vec()));
        (0..200_u8).for_each(|key| large.put(Family::Meta, [key], noise(100 * usize::from(key) + round)));
        (0..10).for_each(|key| large.delete(Family::Chunks, [key]));
        large.put(Family::Entities, *b"marker", vec![round as u8]);
        if let Some(fault) = fault {
            proxy.break_next(b"marker", fault);
        }
        store.write(large, Durability::Sync).unwrap();
        assert!(proxy.has_broken());
        assert_eq!(store.get(Family::Entities, b"marker"), Ok(Some(vec![round as u8])));
        assert_eq!(store.scan(Family::Chunks, &[]..&[0xff], 9), Ok(Vec::new()));
        let written = store.scan(Family::Meta, &[]..&[0xff], usize::MAX).unwrap();
        assert_eq!(written.len(), 200);
        assert!(written.iter().all(|(key, value)| *value == noise(100 * usize::from(key[0]) + round)));
    }
    proxy.wait_for_held();
    // A late slice is removed with the next batch.
    store.write(WriteBatch::default(), Durability::Sync).unwrap();
    assert_eq!(SERVER.execute(&format!("SELECT count(*) FROM \"{world}\".staged")).unwrap(), "0");

    let mut refused = WriteBatch::default();
    refused.require(Family::Meta, *b"missing", Some(Vec::new()));
    (0..200_u8).for_each(|key| refused.put(Family::Chunks, [key], noise(100)));
    let error = store.write(refused, Durability::Sync).unwrap_err();
    assert!(matches!(error, StoreError::PreconditionFailed { .. }), "{error}");
    assert_eq!(store.scan(Family::Chunks, &[]..&[0xff], 9), Ok(Vec::new()));
}

#[test]
fn large_values_come_back() {
    let store = PostgresStore::open(&new_world()).unwrap();
    let value = noise(20 << 20);
    let mut batch = WriteBatch::default();
    batch.put(Family::Chunks, *b"large", value.clone());
    store.write(batch, Durability::Sync).unwrap();
    assert!(store.get(Family::Chunks, b"large").unwrap() == Some(value));
    let mut batch = WriteBatch::default();
    batch.put(Family::Chunks, *b"too large", vec![0; (512 << 20) + 1]);
    let error = store.write(batch, Durability::Sync).unwrap_err().to_string();
    assert!(error.contains("more than 512 MiB"), "{error}");
}

#[test]
fn long_keys_are_stored_or_refused() {
    let store = PostgresStore::open(&new_world()).unwrap();
    let put = |key: &[u8]| {
        let mut batch = WriteBatch::default();
        batch.put(Family::Meta, key, b"value".to_vec());
        store.write(batch, Durability::Sync)
    };
    let long = noise(2_600);
    put(&long).unwrap();
    assert_eq!(store.get(Family::Meta, &long), Ok(Some(b"value".to_vec())));
    let error = put(&noise(2_800)).unwrap_err().to_string();
    assert!(error.contains("a key is too long"), "{error}");
    put(b"short").unwrap();
}

#[test]
fn a_page_ends_with_the_entry_that_reaches_its_bytes() {
    let store = PostgresStore::open(&new_world()).unwrap();
    let mut batch = WriteBatch::default();
    (0..3_000_u16).for_each(|key| batch.put(Family::Meta, key.to_be_bytes(), vec![0; 8]));
    (0..9_u8).for_each(|key| batch.put(Family::Chunks, [key], noise(1 << 20)));
    store.write(batch, Durability::Sync).unwrap();
    let page = |family, entries, bytes| store.scan_page(family, &[]..&[0xff; 3], entries, bytes).unwrap();
    assert_eq!(page(Family::Chunks, usize::MAX, 1).len(), 1);
    assert_eq!(page(Family::Chunks, usize::MAX, (1 << 20) + 1).len(), 1);
    assert_eq!(page(Family::Chunks, usize::MAX, (1 << 20) + 2).len(), 2);
    assert_eq!(page(Family::Chunks, 3, usize::MAX).len(), 3);
    // More entries than one statement measures.
    for (entries, bytes, expected) in [
        (usize::MAX, usize::MAX, 3_000),
        (2_500, usize::MAX, 2_500),
        (1_000, usize::MAX, 1_000),
        (usize::MAX, 15_000, 1_500),
    ] {
        let page = page(Family::Meta, entries, bytes);
        assert!(page.iter().map(|(key, _)| key).eq((0..expected).map(u16::to_be_bytes).collect::<Vec<_>>().iter()));
    }
}

#[test]
fn sizes_of_families_are_estimated() {
    let store = PostgresStore::open(&new_world()).unwrap();
    for number in 0..12_u16 {
        let mut batch = WriteBatch::default();
        (0..1_000_u16).for_each(|key| {
            batch.put(Family::Chunks, [number.to_be_bytes(), key.to_be_bytes()].concat(), noise(1_496))
        });
        batch.put(Family::Meta, number.to_be_bytes(), vec![0; 8]);
        store.write(batch, Durability::Sync).unwrap();
    }
    let size = |family| store.approximate_family(family).unwrap().unwrap();
    let chunks = size(Family::Chunks);
    assert!((7_000..17_000).contains(&chunks.entries), "{chunks:?}");
    assert_eq!(chunks.bytes / chunks.entries, 1_500);
    assert!(size(Family::Meta).entries < 100);
    assert_eq!(size(Family::Opacity).entries, 0);
}
