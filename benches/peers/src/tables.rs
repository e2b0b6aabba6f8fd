//! redb, a database of tables in one file.

use crate::{Packer, Store};
use redb::{Database, ReadOnlyTable, ReadableDatabase, TableDefinition};
use std::path::Path;

const TABLE: TableDefinition<&str, &[u8]> = TableDefinition::new("objects");

/// One table, synced in each transaction, which is redb's default.
pub struct Tables {
    database: Database,
    /// Kept open between reads.
    reader: Option<ReadOnlyTable<&'static str, &'static [u8]>>,
    packer: Packer,
}

impl Store for Tables {
    const NAME: &'static str = "redb";

    fn create(path: &Path, packs: bool) -> Self {
        Self { database: Database::create(path).expect("a new file"), reader: None, packer: Packer::new(packs) }
    }

    fn open(path: &Path, packs: bool) -> Self {
        Self { database: Database::open(path).expect("a database"), reader: None, packer: Packer::new(packs) }
    }

    fn write(&mut self, objects: &[(&str, &[u8])]) {
        self.reader = None;
        let write = self.database.begin_write().expect("nobody else writes");
        {
            let mut table = write.open_table(TABLE).expect("the table");
            for (key, data) in objects {
                table.insert(key, &self.packer.pack(data)[..]).expect("the disk has room");
            }
        }
        write.commit().expect("the disk works");
    }

    fn read(&mut self, key: &str) -> Vec<u8> {
        let open = || self.database.begin_read().map(|read| read.open_table(TABLE).expect("the table"));
        let table = self.reader.get_or_insert_with(|| open().expect("a transaction"));
        self.packer.unpack(table.get(key).expect("it is whole").expect("it is there").value())
    }

    fn close(self) {}
}
