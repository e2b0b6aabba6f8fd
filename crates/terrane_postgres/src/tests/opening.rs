//! Opening: what is created, and what is refused with which reason.

use super::{SERVER, new_name, new_world};
use crate::{PostgresAccess, PostgresConfig, PostgresStore};
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};
use terrane_storage::{Durability, Family, KeyValueStore, OpenWait, StoreError, WriteBatch};

/// The message of a failed opening, which never contains the password.
fn refusal(address: &str, config: &PostgresConfig) -> String {
    let error = PostgresStore::open_with(address, config).unwrap_err();
    assert!(matches!(error, StoreError::Backend { operation: "open", .. }));
    let texts = format!("{error} {error:?}");
    assert!(!texts.contains(SERVER.password()) && !texts.contains("geheim"), "{texts}");
    error.to_string()
}

fn assert_refused_at_once(address: &str, access: PostgresAccess, reason: &str) {
    let config = PostgresConfig { access, patience: Duration::from_secs(3_600), ..PostgresConfig::default() };
    let found = refusal(address, &config);
    assert!(found.contains(reason), "{found}");
}

fn assert_refused_after_a_while(address: &str, reason: &str) {
    let patience = Duration::from_millis(500);
    let begin = Instant::now();
    let found = refusal(address, &PostgresConfig { patience, ..PostgresConfig::default() });
    assert!(found.contains(reason), "{found}");
    assert!(begin.elapsed() >= patience, "{found} took {:?}", begin.elapsed());
}

fn open_as(address: &str, access: PostgresAccess) -> Result<PostgresStore, StoreError> {
    PostgresStore::open_with(address, &PostgresConfig { access, ..PostgresConfig::default() })
}

/// Opens a world for which this waits for up to `longest`.
fn open_waiting(
    address: &str,
    access: PostgresAccess,
    longest: Duration,
    tell: impl FnMut(&str) -> ControlFlow<()>,
) -> Result<PostgresStore, StoreError> {
    let config = PostgresConfig { access, ..PostgresConfig::default() };
    PostgresStore::open_waiting(address, &config, &mut OpenWait::new(longest, tell))
}

fn assert_in_use(address: &str, access: PostgresAccess, by: &str) {
    let opened = open_waiting(address, access, Duration::ZERO, |_| panic!("it waits"));
    let error = opened.unwrap_err();
    assert!(matches!(&error, StoreError::InUse { reason, .. } if reason.contains(by)), "{error:?}");
    assert!(error.to_string().contains(by) && !error.to_string().contains(SERVER.password()), "{error}");
}

fn put(store: &PostgresStore, key: &[u8]) -> Result<(), StoreError> {
    let mut batch = WriteBatch::default();
    batch.put(Family::Meta, key, b"value".to_vec());
    store.write(batch, Durability::Sync)
}

#[test]
fn unusable_addresses_are_refused() {
    let address = SERVER.address();
    let wrong_password = address.replace(SERVER.password(), "geheim");
    assert_refused_at_once(&wrong_password, PostgresAccess::Create, "password authentication failed");
    let other_database = address.replace("/postgres?", "/nowhere?");
    assert_refused_at_once(&other_database, PostgresAccess::Create, "database \"nowhere\" does not exist");
    assert_refused_at_once(&format!("{address}#Ä"), PostgresAccess::Create, "the world's name behind #");
    assert_refused_at_once("postgres://u:geheim@h/d?sslrootcert=/nowhere", PostgresAccess::Create, "/nowhere");
}

#[test]
fn an_unreachable_server_is_waited_for() {
    assert_refused_after_a_while("postgres://u:geheim@no-such-host.invalid/d?sslmode=disable", "no-such-host.invalid");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert_refused_after_a_while(&format!("postgres://u:geheim@127.0.0.1:{free}/d"), "refused");
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("postgres://u:geheim@127.0.0.1:{}/d", deaf.local_addr().unwrap().port());
    assert_refused_after_a_while(&address, "did not answer");
}

#[test]
fn a_host_that_cannot_be_reached_is_skipped() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("{}#{}", SERVER.address_at(&[free, SERVER.port()]), new_name());
    put(&PostgresStore::open(&address).unwrap(), b"key").unwrap();
}

#[test]
fn a_world_on_a_unix_socket_opens() {
    let store = PostgresStore::open(&format!("{}#{}", SERVER.socket_address(), new_name())).unwrap();
    put(&store, b"key").unwrap();
    assert_eq!(store.get(Family::Meta, b"key"), Ok(Some(b"value".to_vec())));
}

#[test]
fn foreign_and_newer_schemas_are_refused() {
    for table in ["players (name text)", "about (name text)", "about (product text, format text)"] {
        let name = new_name();
        SERVER.execute(&format!("CREATE SCHEMA \"{name}\"; CREATE TABLE \"{name}\".{table}")).unwrap();
        let address = format!("{}#{name}", SERVER.address());
        assert_refused_at_once(&address, PostgresAccess::Create, "holds something else");
        assert_refused_at_once(&address, PostgresAccess::Read, "holds something else");
    }
    let address = new_world();
    drop(PostgresStore::open(&address).unwrap());
    let (_, name) = address.split_once('#').unwrap();
    SERVER.execute(&format!("UPDATE \"{name}\".about SET format = 77")).unwrap();
    assert_refused_at_once(&address, PostgresAccess::Create, "format 77, and only formats up to 1 are known");
}

#[test]
fn an_empty_schema_becomes_a_world() {
    let name = new_name();
    SERVER.execute(&format!("CREATE SCHEMA \"{name}\"")).unwrap();
    put(&PostgresStore::open(&format!("{}#{name}", SERVER.address())).unwrap(), b"key").unwrap();
}

#[test]
fn only_create_creates() {
    let address = new_world();
    for access in [PostgresAccess::Write, PostgresAccess::Read] {
        assert_refused_at_once(&address, access, "the database has no world");
    }
    let (_, name) = address.split_once('#').unwrap();
    let schemas = SERVER.execute(&format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{name}'")).unwrap();
    assert_eq!(schemas, "0");
    drop(PostgresStore::open(&address).unwrap());
    put(&open_as(&address, PostgresAccess::Write).unwrap(), b"key").unwrap();
}

#[test]
fn a_reader_refuses_writes() {
    let address = new_world();
    put(&PostgresStore::open(&address).unwrap(), b"key").unwrap();
    let reader = open_as(&address, PostgresAccess::Read).unwrap();
    assert_eq!(reader.get(Family::Meta, b"key"), Ok(Some(b"value".to_vec())));
    assert!(matches!(put(&reader, b"other"), Err(StoreError::NotWritable { .. })));
    assert!(matches!(reader.sync(), Err(StoreError::NotWritable { .. })));
}

#[test]
fn a_reader_sees_the_state_at_its_opening() {
    let address = new_world();
    let game = PostgresStore::open(&address).unwrap();
    put(&game, b"old").unwrap();
    let reader = open_as(&address.replace('#', "&application_name=lost_reader#"), PostgresAccess::Read).unwrap();
    put(&game, b"new").unwrap();
    assert_eq!(reader.get(Family::Meta, b"old"), Ok(Some(b"value".to_vec())));
    assert_eq!(reader.get(Family::Meta, b"new"), Ok(None));
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lost_reader'";
    SERVER.execute(end).unwrap();
    assert!(reader.get(Family::Meta, b"old").is_err());
    let error = reader.get(Family::Meta, b"old").unwrap_err().to_string();
    assert!(error.contains("the connection was lost"), "{error}");
}

#[test]
fn a_tool_writes_alone() {
    let address = new_world();
    let game = PostgresStore::open(&address).unwrap();
    let other_game = PostgresStore::open(&address).unwrap();
    assert_in_use(&address, PostgresAccess::Write, "the world is open in a game");
    drop(game);
    assert_in_use(&address, PostgresAccess::Write, "the world is open in a game");
    drop(other_game);
    let tool = open_as(&address, PostgresAccess::Write).unwrap();
    put(&tool, b"key").unwrap();
    assert_in_use(&address, PostgresAccess::Write, "the world is open in a game");
    assert_in_use(&address, PostgresAccess::Create, "a tool is changing the world");
    assert!(open_as(&address, PostgresAccess::Read).is_ok());
    drop(tool);
    put(&PostgresStore::open(&address).unwrap(), b"key").unwrap();
}

/// A session ends a moment after its client.
#[test]
fn an_opening_waits_for_sessions_that_end() {
    let (game, tool) = (PostgresAccess::Create, PostgresAccess::Write);
    for (first, second, by) in [(game, tool, "open in a game"), (tool, game, "a tool"), (tool, tool, "another tool")] {
        let address = new_world();
        drop(PostgresStore::open(&address).unwrap());
        let mut held = Some(open_as(&address, first).unwrap());
        let broken = open_waiting(&address, second, Duration::MAX, |_| ControlFlow::Break(()));
        assert!(matches!(broken, Err(StoreError::InUse { .. })), "{broken:?}");
        let mut told = Vec::new();
        let opened = open_waiting(&address, second, Duration::MAX, |reason| {
            told.push(reason.to_owned());
            drop(held.take());
            ControlFlow::Continue(())
        });
        put(&opened.unwrap(), b"key").unwrap();
        assert!(told[0].contains(by), "{told:?}");
    }
}

#[test]
fn a_new_world_is_created_once() {
    for _ in 0..5 {
        let address = new_world();
        let open = || put(&PostgresStore::open(&address).unwrap(), format!("{:?}", thread::current().id()).as_bytes());
        thread::scope(|scope| {
            let threads = [(); 8].map(|()| scope.spawn(open));
            threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
        });
        let store = PostgresStore::open(&address).unwrap();
        assert_eq!(store.scan(Family::Meta, &[]..&[0xff], usize::MAX).unwrap().len(), 8);
    }
}

#[test]
fn a_closed_store_leaves_no_writer() {
    let address = new_world();
    let store = PostgresStore::open(&address).unwrap();
    let (_, name) = address.split_once('#').unwrap();
    let writers = || SERVER.execute(&format!("SELECT count(*) FROM \"{name}\".writers")).unwrap();
    assert_eq!(writers(), "0");
    put(&store, b"key").unwrap();
    assert_eq!(writers(), "1");
    drop(store);
    assert_eq!(writers(), "0");
    // The row of a store that was killed a month ago.
    SERVER.execute(&format!("INSERT INTO \"{name}\".writers (touched) VALUES (now() - interval '31 days')")).unwrap();
    put(&PostgresStore::open(&address).unwrap(), b"key").unwrap();
    assert_eq!(writers(), "0");
}

#[test]
fn a_removed_world_is_an_error() {
    let address = new_world();
    let store = PostgresStore::open(&address).unwrap();
    put(&store, b"key").unwrap();
    let (_, name) = address.split_once('#').unwrap();
    SERVER.execute(&format!("DELETE FROM \"{name}\".writers")).unwrap();
    let error = put(&store, b"key").unwrap_err().to_string();
    assert!(error.contains("open the world again"), "{error}");
    SERVER.execute(&format!("DROP SCHEMA \"{name}\" CASCADE")).unwrap();
    let error = store.get(Family::Meta, b"key").unwrap_err().to_string();
    assert!(error.contains("does not exist"), "{error}");
    assert!(put(&store, b"key").is_err());
}

#[test]
fn the_password_is_never_shown() {
    let store = PostgresStore::open(&new_world()).unwrap();
    let texts = format!("{store:?} {}", store.path().display());
    assert!(texts.contains("127.0.0.1") && !texts.contains(SERVER.password()), "{texts}");
}
