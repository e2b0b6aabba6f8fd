//! Servers that crash, restart and hand over to a standby while a store writes.

use crate::server::{PostgresServer, Stop, Syncing};
use crate::{PostgresAccess, PostgresConfig, PostgresStore};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use terrane_storage::{Durability, Family, KeyValueStore, WriteBatch};

/// Writes numbered entries until `is_over`, each only if it is the next one. Returns the number of acknowledged ones.
fn write_in_order(store: &PostgresStore, is_over: &AtomicBool) -> u32 {
    let mut written = 0_u32;
    while !is_over.load(Ordering::Acquire) {
        let mut batch = WriteBatch::default();
        // Fails if the batch before was lost, or if this one was written already.
        let newest = written.checked_sub(1).map(|newest| newest.to_be_bytes().to_vec());
        batch.require(Family::Meta, *b"newest", newest);
        batch.require(Family::Chunks, written.to_be_bytes(), None);
        batch.put(Family::Meta, *b"newest", written.to_be_bytes().to_vec());
        batch.put(Family::Chunks, written.to_be_bytes(), vec![0; 500]);
        store.write(batch, Durability::Process).unwrap();
        // Reads continue, too.
        assert_eq!(store.get(Family::Meta, b"newest"), Ok(Some(written.to_be_bytes().to_vec())));
        written += 1;
    }
    written
}

fn assert_all_there(address: &str, written: u32) {
    let config = PostgresConfig { access: PostgresAccess::Read, ..PostgresConfig::default() };
    let entries = PostgresStore::open_with(address, &config).unwrap().scan(Family::Chunks, &[]..&[0xff; 5], usize::MAX);
    let keys = entries.unwrap().into_iter().map(|(key, _)| key);
    assert!(keys.eq((0..written).map(|number| number.to_be_bytes().to_vec())));
}

/// Runs `disturb` while a store writes. Returns the number of acknowledged batches, of which some are newer than that.
fn write_meanwhile(address: &str, disturb: impl FnOnce()) -> u32 {
    let store = PostgresStore::open(address).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_in_order(&store, &is_over));
        thread::sleep(Duration::from_millis(300));
        disturb();
        thread::sleep(Duration::from_millis(500));
        is_over.store(true, Ordering::Release);
        writer.join().unwrap()
    })
}

#[test]
fn crashes_and_restarts_lose_nothing() {
    let server = PostgresServer::start(Syncing::On).unwrap();
    let address = server.address();
    let written = write_meanwhile(&address, || {
        for stop in [Stop::Immediate, Stop::Fast, Stop::Immediate] {
            server.stop(stop).unwrap();
            thread::sleep(Duration::from_millis(200));
            server.restart().unwrap();
            thread::sleep(Duration::from_millis(700));
        }
    });
    assert!(written > 20, "{written}");
    assert_all_there(&address, written);
}

#[test]
fn a_failover_to_a_synchronous_standby_loses_nothing() {
    let primary = PostgresServer::start(Syncing::On).unwrap();
    let standby = primary.standby().unwrap();
    let address = primary.address_at(&[primary.port(), standby.port()]);
    let mut before = 0;
    let written = write_meanwhile(&address, || {
        let count = primary.execute("SELECT count(*) FROM terrane.entries WHERE family = 0").unwrap();
        before = count.parse().unwrap();
        primary.stop(Stop::Immediate).unwrap();
        thread::sleep(Duration::from_millis(300));
        standby.promote().unwrap();
    });
    assert!(before > 0 && written > before, "{before} batches before the failover, {written} in all");
    assert_all_there(&standby.address(), written);
}

#[test]
fn a_standby_can_be_read() {
    let primary = PostgresServer::start(Syncing::Off).unwrap();
    let store = PostgresStore::open(&primary.address()).unwrap();
    let standby = primary.standby().unwrap();
    let mut batch = WriteBatch::default();
    batch.put(Family::Meta, *b"key", b"value".to_vec());
    store.write(batch, Durability::Sync).unwrap();
    let config = PostgresConfig { access: PostgresAccess::Read, ..PostgresConfig::default() };
    let found = || PostgresStore::open_with(&standby.address(), &config).unwrap().get(Family::Meta, b"key").unwrap();
    // The standby has the commit on disk, and applies it a moment later.
    let mut tries = 0;
    while found().is_none() {
        assert!(tries < 500);
        tries += 1;
        thread::sleep(Duration::from_millis(10));
    }
    let config = PostgresConfig { patience: Duration::from_millis(300), ..PostgresConfig::default() };
    let error = PostgresStore::open_with(&standby.address(), &config).unwrap_err().to_string();
    assert!(error.contains("does not allow writes"), "{error}");
}
