//! Preconditions under concurrent writers of several stores.

use super::new_world;
use crate::PostgresStore;
use std::sync::Barrier;
use std::thread;
use terrane_storage::{Durability, Family, KeyValueStore, StoreError, WriteBatch};

/// Lets all stores write their batch at the same time. Returns whether each batch was written.
fn race<const N: usize>(stores: &[PostgresStore; N], batch: impl Fn(usize) -> WriteBatch + Sync) -> [bool; N] {
    let start = Barrier::new(N);
    let write = |number: usize| {
        let batch = batch(number);
        start.wait();
        match stores[number].write(batch, Durability::Sync) {
            Ok(()) => true,
            Err(StoreError::PreconditionFailed { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    };
    thread::scope(|scope| {
        let write = &write;
        let threads: [_; N] = std::array::from_fn(|number| scope.spawn(move || write(number)));
        threads.map(|thread| thread.join().unwrap())
    })
}

fn stores<const N: usize>() -> [PostgresStore; N] {
    let address = new_world();
    std::array::from_fn(|_| PostgresStore::open(&address).unwrap())
}

#[test]
fn an_absent_key_is_created_once() {
    let stores = stores::<6>();
    for round in 0..30_u8 {
        let written = race(&stores, |number| {
            let mut batch = WriteBatch::default();
            batch.require(Family::Meta, [round], None);
            batch.put(Family::Meta, [round], vec![number as u8]);
            batch
        });
        assert_eq!(written.iter().filter(|written| **written).count(), 1, "{written:?}");
        let winner = written.iter().position(|written| *written).unwrap() as u8;
        assert_eq!(stores[0].get(Family::Meta, &[round]), Ok(Some(vec![winner])));
    }
}

#[test]
fn a_required_value_is_replaced_once() {
    let stores = stores::<6>();
    for round in 0..30_u8 {
        let mut batch = WriteBatch::default();
        batch.put(Family::Meta, *b"key", b"old".to_vec());
        stores[0].write(batch, Durability::Sync).unwrap();
        let written = race(&stores, |number| {
            let mut batch = WriteBatch::default();
            batch.require(Family::Meta, *b"key", Some(b"old".to_vec()));
            match number % 2 {
                0 => batch.put(Family::Meta, *b"key", vec![number as u8]),
                _ => batch.delete(Family::Meta, *b"key"),
            }
            batch
        });
        assert_eq!(written.iter().filter(|written| **written).count(), 1, "round {round}: {written:?}");
    }
}

/// Each of two batches makes the precondition of the other one false.
#[test]
fn there_is_no_write_skew() {
    let stores = stores::<2>();
    for round in 0..4_u8 {
        let keys = [[round, 0], [round, 1]];
        let written = race(&stores, |number| {
            let mut batch = WriteBatch::default();
            batch.require(Family::Meta, keys[number], None);
            batch.put(Family::Meta, keys[1 - number], b"taken".to_vec());
            batch
        });
        assert_eq!(written.iter().filter(|written| **written).count(), 1, "{written:?}");
    }
}

/// Stores that lock the same keys in opposite orders wait for each other at most for a moment.
#[test]
fn opposite_changes_are_all_written() {
    let stores = stores::<2>();
    for round in 0..20_u8 {
        let written = race(&stores, |number| {
            let mut batch = WriteBatch::default();
            (0..50).for_each(|key| match (key + number as u8) % 2 {
                0 => batch.put(Family::Chunks, [key], vec![round]),
                _ => batch.delete(Family::Chunks, [key]),
            });
            batch
        });
        assert_eq!(written, [true; 2]);
    }
}

#[test]
fn preconditions_that_contradict_each_other_fail() {
    let [store] = stores::<1>();
    let mut batch = WriteBatch::default();
    batch.require(Family::Meta, *b"key", None);
    batch.require(Family::Meta, *b"key", Some(b"value".to_vec()));
    assert!(matches!(store.write(batch, Durability::Sync), Err(StoreError::PreconditionFailed { .. })));
    let mut batch = WriteBatch::default();
    batch.require(Family::Meta, *b"key", None);
    batch.require(Family::Meta, *b"key", None);
    batch.put(Family::Meta, *b"key", b"value".to_vec());
    store.write(batch, Durability::Sync).unwrap();
}
