//! Where a world is: in a folder, or in a PostgreSQL database.

use super::display::folder_bytes;
use super::outcome::Result;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use terrane_objects::work::Stop;
use terrane_postgres::{PostgresAccess, PostgresConfig, PostgresStore};
use terrane_storage::{Access, OpenWait, StorageConfig, StoreError, WorldOpenError, WorldStore};

/// How a command opens worlds.
#[derive(Clone, Copy)]
pub struct Opening<'a> {
    /// How long it waits for a world that something else has open.
    pub longest: Duration,
    pub stop: &'a Stop,
}

impl Opening<'_> {
    /// Opens an existing world.
    pub fn open(&self, world: &Path, access: Access) -> std::result::Result<WorldStore, WorldOpenError> {
        let in_database = match access {
            Access::Read => PostgresAccess::Read,
            Access::Maintain | Access::Write => PostgresAccess::Write,
        };
        let wait = &mut self.wait();
        let config = match address(world) {
            None => StorageConfig::Path(world.to_path_buf()),
            Some(address) => {
                let store = database(address, in_database, wait)
                    .map_err(|source| WorldOpenError::Database { path: "in PostgreSQL".into(), source })?;
                StorageConfig::Custom(Arc::new(store))
            }
        };
        let store = WorldStore::open_existing_waiting(&config, access, wait)?;
        if let Some(lost) = store.lost_writes() {
            eprintln!("warning: {lost}");
        }
        Ok(store)
    }

    /// The database at an address, for a world that may be new. No game can open it meanwhile.
    pub fn new_database(&self, address: &str) -> std::result::Result<PostgresStore, StoreError> {
        let wait = &mut self.wait();
        drop(database(address, PostgresAccess::Create, wait)?);
        database(address, PostgresAccess::Write, wait)
    }

    fn wait(&self) -> OpenWait<'_> {
        OpenWait::new(self.longest, |_| self.stop.go_on())
    }
}

fn database(
    address: &str,
    access: PostgresAccess,
    wait: &mut OpenWait<'_>,
) -> std::result::Result<PostgresStore, StoreError> {
    PostgresStore::open_waiting(address, &PostgresConfig { access, ..PostgresConfig::default() }, wait)
}

/// The address of a world in a database; `None` if it is in a folder.
pub fn address(world: &Path) -> Option<&str> {
    world.to_str().filter(|text| text.starts_with("postgres://") || text.starts_with("postgresql://"))
}

/// The size of a world's folder in bytes; `None` if the world is in a database.
pub fn bytes(world: &Path) -> Option<u64> {
    address(world).is_none().then(|| folder_bytes(world))
}

/// Refuses the address of a database, for commands that need a folder.
pub fn folder(world: &Path) -> Result<&Path> {
    match address(world) {
        None => Ok(world),
        Some(_) => Err("this needs a folder; `terrane copy` copies a world from a folder into a database".into()),
    }
}
