//! Where a world is: in a folder, or in a PostgreSQL database.

use super::display::folder_bytes;
use super::outcome::Result;
use std::path::Path;
use std::sync::Arc;
use terrane_postgres::{PostgresAccess, PostgresConfig, PostgresStore};
use terrane_storage::{Access, StorageConfig, StoreError, WorldOpenError, WorldStore};

/// Opens an existing world.
pub fn open(world: &Path, access: Access) -> std::result::Result<WorldStore, WorldOpenError> {
    let in_database = match access {
        Access::Read => PostgresAccess::Read,
        Access::Maintain | Access::Write => PostgresAccess::Write,
    };
    WorldStore::open_existing(&place(world, in_database)?, access)
}

/// The place of a world. In a database, it is opened with this access.
fn place(world: &Path, access: PostgresAccess) -> std::result::Result<StorageConfig, WorldOpenError> {
    let Some(address) = address(world) else { return Ok(StorageConfig::Path(world.to_path_buf())) };
    let store = database(address, access)
        .map_err(|source| WorldOpenError::Database { path: "in PostgreSQL".into(), source })?;
    Ok(StorageConfig::Custom(Arc::new(store)))
}

/// The database at an address, for a world that may be new. No game can open it meanwhile.
pub fn new_database(address: &str) -> std::result::Result<PostgresStore, StoreError> {
    drop(database(address, PostgresAccess::Create)?);
    database(address, PostgresAccess::Write)
}

fn database(address: &str, access: PostgresAccess) -> std::result::Result<PostgresStore, StoreError> {
    PostgresStore::open_with(address, &PostgresConfig { access, ..PostgresConfig::default() })
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
