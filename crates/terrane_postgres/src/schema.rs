//! The schema of a world: its creation, and the check that it is one.

use crate::connection::{Connection, Database};
use crate::failure::{Failure, Kind};
use std::time::Instant;

/// The format of the schema that this version creates, and the newest that it knows.
const FORMAT: i32 = 1;
/// The marker of a schema that belongs to a world.
const PRODUCT: &str = "bevy_terrane";
const CREATE: &str = include_str!("schema/create.sql");

/// Checks that the world exists and has a known format. If `creates` is `true`, creates it in a schema that is
/// missing or empty. The connection stays in `slot`.
pub(crate) fn prepare(database: &Database, creates: bool, slot: &mut Option<Connection>) -> Result<(), Failure> {
    let deadline = Instant::now() + database.patience;
    let world = &database.address.world;
    let found = database.persist(slot, deadline, |connection, wait| {
        let mut found = Found::Nothing;
        let statement = "SELECT to_regclass(quote_ident($1) || '.about') IS NOT NULL,
            EXISTS(SELECT FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident($1)))";
        connection.query(statement, &[world], wait, |row| {
            found = match (row.try_get(0)?, row.try_get(1)?) {
                (true, _) => Found::About,
                (false, true) => Found::Other,
                (false, false) => Found::Nothing,
            };
            Ok(())
        })?;
        Ok(found)
    })?;
    match (found, creates) {
        (Found::Other, _) => return Err(not_ours(world)),
        (Found::Nothing, false) => {
            return Err(refused(format!("the database has no world {world:?}")));
        }
        (Found::Nothing, true) => {
            let create = CREATE.replace("{world}", world).replace("{format}", &FORMAT.to_string());
            database.persist(slot, deadline, |connection, wait| connection.execute(&create, wait))?;
        }
        (Found::About, _) => {}
    }
    let format = database.persist(slot, deadline, |connection, wait| {
        let mut format = None;
        // Works for tables of this name that have other columns, too.
        let statement = "SELECT to_jsonb(about) ->> 'product', to_jsonb(about) ->> 'format' FROM about";
        connection.query(statement, &[], wait, |row| {
            let (product, found): (Option<String>, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
            format = found.filter(|_| product.as_deref() == Some(PRODUCT));
            Ok(())
        })?;
        Ok(format.and_then(|format| format.parse().ok()))
    })?;
    match format {
        Some(FORMAT) => Ok(()),
        Some(format) => Err(refused(format!(
            "the world {world:?} has format {format}, and only formats up to {FORMAT} are known; open it with a newer \
             version"
        ))),
        None => Err(not_ours(world)),
    }
}

/// The contents of the world's schema.
#[derive(Clone, Copy)]
enum Found {
    Nothing,
    About,
    Other,
}

fn not_ours(world: &str) -> Failure {
    refused(format!(
        "the schema {world:?} of the database holds something else than a world; choose another name behind #"
    ))
}

fn refused(reason: String) -> Failure {
    Failure::new(Kind::Refused, reason)
}
