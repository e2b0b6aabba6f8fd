//! The round trips and connections that operations need.

use super::proxy::Proxy;
use super::{SERVER, new_name};
use crate::PostgresStore;
use std::time::{Duration, Instant};
use terrane_storage::{Durability, Family, KeyValueStore, Read, WriteBatch};

const LATENCY: Duration = Duration::from_millis(30);

#[test]
fn a_batch_of_reads_and_a_commit_take_one_round_trip_each() {
    let proxy = Proxy::new(SERVER.port());
    let store = PostgresStore::open(&format!("{}#{}", SERVER.address_at(&[proxy.port]), new_name())).unwrap();
    let write = || {
        let mut batch = WriteBatch::default();
        batch.require(Family::Meta, [200], None);
        (0..100_u8).for_each(|key| batch.put(Family::Chunks, [key], vec![key]));
        store.write(batch, Durability::Sync).unwrap();
    };
    let reads: Vec<_> = (0..20_u8)
        .map(|key| match key % 2 {
            0 => Read::Keys(Family::Chunks, vec![vec![key], vec![150], vec![key + 1]]),
            _ => Read::Range(Family::Chunks, vec![key]..vec![key + 9], 3),
        })
        .collect();
    let read = || {
        let found = store.read(&reads).unwrap();
        for (key, found) in (0..20_u8).zip(found) {
            let keys: Vec<_> = found.iter().map(|(key, _)| key[0]).collect();
            let expected = if key % 2 == 0 { vec![key, key + 1] } else { vec![key, key + 1, key + 2] };
            assert_eq!(keys, expected);
        }
    };
    // The first operations also connect and prepare their statements.
    write();
    read();
    proxy.set_latency(LATENCY);
    for operation in [&write as &dyn Fn(), &read] {
        let (before, begin) = (proxy.round_trips(), Instant::now());
        operation();
        assert_eq!(proxy.round_trips() - before, 1);
        assert!(begin.elapsed() >= 2 * LATENCY, "{:?}", begin.elapsed());
    }
}

#[test]
fn connections_are_reused() {
    let proxy = Proxy::new(SERVER.port());
    let store = PostgresStore::open(&format!("{}#{}", SERVER.address_at(&[proxy.port]), new_name())).unwrap();
    for number in 0..50_u8 {
        let mut batch = WriteBatch::default();
        batch.put(Family::Meta, [number], vec![number]);
        store.write(batch, Durability::Sync).unwrap();
        store.get(Family::Meta, &[number]).unwrap();
    }
    // One to write and one to read.
    assert_eq!(proxy.connections(), 2);
}

#[test]
fn a_batch_of_reads_without_keys_asks_nothing() {
    let proxy = Proxy::new(SERVER.port());
    let store = PostgresStore::open(&format!("{}#{}", SERVER.address_at(&[proxy.port]), new_name())).unwrap();
    let nothing = || Read::Keys(Family::Meta, Vec::new());
    assert_eq!(store.read(&[nothing(), nothing()]), Ok(vec![Vec::new(); 2]));
    // Only the one that opened the world.
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn reads_share_a_bounded_number_of_connections() {
    let proxy = Proxy::new(SERVER.port());
    let store = PostgresStore::open(&format!("{}#{}", SERVER.address_at(&[proxy.port]), new_name())).unwrap();
    proxy.set_latency(Duration::from_millis(2));
    std::thread::scope(|scope| {
        for number in 0..12_u8 {
            let store = &store;
            scope.spawn(move || (0..20).for_each(|_| assert_eq!(store.get(Family::Meta, &[number]), Ok(None))));
        }
    });
    assert_eq!(proxy.connections(), 1 + 4);
}
