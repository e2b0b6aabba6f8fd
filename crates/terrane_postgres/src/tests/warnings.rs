//! The store logs a warning while the database refuses connections.

use super::{SERVER, new_name};
use crate::PostgresStore;
use std::io;
use std::sync::{Arc, Mutex};
use terrane_storage::{Durability, Family, KeyValueStore, WriteBatch};

/// The log of a thread. Lines that contain `event` call `then`.
#[derive(Clone)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    event: &'static str,
    then: Arc<dyn Fn() + Send + Sync>,
}

impl io::Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line).into_owned();
        if text.contains(self.event) {
            (self.then)();
        }
        self.lines.lock().unwrap().push(text);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_database_without_a_free_connection_is_warned_of_at_once() {
    let (user, world) = (new_name().replace('-', "_"), new_name());
    let create = format!("CREATE ROLE {user} LOGIN PASSWORD '{0}'; GRANT CREATE ON DATABASE postgres TO {user}", "x");
    SERVER.execute(&create).unwrap();
    let address = format!("postgres://{user}:x@127.0.0.1:{}/postgres?sslmode=disable#{world}", SERVER.port());
    let store = PostgresStore::open(&address).unwrap();
    let write = || {
        let mut batch = WriteBatch::default();
        batch.put(Family::Meta, *b"key", b"value".to_vec());
        store.write(batch, Durability::Sync)
    };
    write().unwrap();
    // PostgreSQL answers the same if other clients have all connections of the server.
    SERVER.execute(&format!("ALTER ROLE {user} CONNECTION LIMIT 0")).unwrap();
    SERVER
        .execute(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{user}'"))
        .unwrap();
    let free = move || {
        SERVER.execute(&format!("ALTER ROLE {user} CONNECTION LIMIT -1")).unwrap();
    };
    let log = Log { lines: Arc::default(), event: "too many connections", then: Arc::new(free) };
    let (lines, writer) = (log.lines.clone(), move || log.clone());
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).finish();
    tracing::subscriber::with_default(subscriber, write).unwrap();
    let lines = lines.lock().unwrap();
    let warning = lines.iter().find(|line| line.contains("too many connections")).unwrap();
    assert!(warning.contains("WARN") && warning.contains(&world) && warning.contains("53300"), "{warning}");
    assert!(lines.last().unwrap().contains("the database answers again"), "{lines:?}");
}
