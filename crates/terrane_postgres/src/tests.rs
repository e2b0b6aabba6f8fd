//! Tests against servers that they start themselves.

mod conformance;
mod encryption;
mod faults;
mod opening;
mod preconditions;
mod proxy;
mod restarts;
mod round_trips;
mod servers;
mod sizes;
mod warnings;

use crate::server::{PostgresServer, Syncing};
use crate::{PostgresConfig, PostgresStore};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The server that most tests share, each with worlds of its own.
static SERVER: LazyLock<PostgresServer> = LazyLock::new(|| PostgresServer::start(Syncing::Off).unwrap());

/// The address of a world that no other test uses.
fn new_world() -> String {
    format!("{}#{}", SERVER.address(), new_name())
}

fn new_name() -> String {
    static WORLDS: AtomicU32 = AtomicU32::new(0);
    format!("world-{}", WORLDS.fetch_add(1, Ordering::Relaxed))
}

fn open_with_patience(address: &str, patience: Duration) -> PostgresStore {
    let config = PostgresConfig { patience, ..PostgresConfig::default() };
    // With little patience, opening may fail on a busy machine.
    let mut attempts = (0..50).map(|_| PostgresStore::open_with(address, &config));
    attempts.find_map(Result::ok).unwrap()
}

/// The time to the database in a test, in milliseconds: `own`, or `TERRANE_DELAY`.
fn delay(own: u64) -> Duration {
    let chosen = std::env::var("TERRANE_DELAY").ok().and_then(|delay| delay.parse().ok());
    Duration::from_millis(chosen.unwrap_or(own))
}

/// The number of repetitions of a test: `few` times `TERRANE_ROUNDS`.
fn rounds(few: u32) -> u32 {
    few * std::env::var("TERRANE_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1_u32)
}
