//! SQLite.

use crate::{Packer, Store};
use rusqlite::Connection;
use std::path::Path;

/// One table, with a log that is synced in each transaction.
pub struct Rows {
    connection: Connection,
    packer: Packer,
}

fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("a database");
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;").expect("settings");
    connection
}

impl Store for Rows {
    const NAME: &'static str = "SQLite";

    fn create(path: &Path, packs: bool) -> Self {
        let connection = connect(path);
        connection.execute("CREATE TABLE objects (key TEXT PRIMARY KEY, data BLOB NOT NULL)", ()).expect("a new file");
        Self { connection, packer: Packer::new(packs) }
    }

    fn open(path: &Path, packs: bool) -> Self {
        Self { connection: connect(path), packer: Packer::new(packs) }
    }

    fn write(&mut self, objects: &[(&str, &[u8])]) {
        let write = self.connection.transaction().expect("nobody else writes");
        {
            let mut insert = write.prepare_cached("INSERT OR REPLACE INTO objects VALUES (?1, ?2)").expect("SQL");
            for (key, data) in objects {
                insert.execute((key, self.packer.pack(data))).expect("the disk has room");
            }
        }
        write.commit().expect("the disk works");
    }

    fn read(&mut self, key: &str) -> Vec<u8> {
        let mut select = self.connection.prepare_cached("SELECT data FROM objects WHERE key = ?1").expect("SQL");
        select.query_row([key], |row| Ok(self.packer.unpack(row.get_ref(0)?.as_blob()?))).expect("it is there")
    }

    fn close(self) {
        self.connection.close().expect("the disk works");
    }
}
