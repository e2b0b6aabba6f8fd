//! New worlds made from others.

use super::display::{SALVAGE, with_progress};
use super::outcome::{End, Failure, Outcome, Result};
use super::storage::{self, Opening};
use super::verify::damages;
use serde_json::json;
use std::path::Path;
use terrane_objects::work::Stop;
use terrane_storage::Access;
use terrane_storage::upkeep::{UpkeepError, copy_world, copy_world_into, salvage_world};

pub fn copy(world: &Path, new: &Path, opening: &Opening<'_>) -> Result<Outcome> {
    let store = opening.open(world, Access::Read)?;
    let database = storage::address(new).map(|address| opening.new_database(address)).transpose()?;
    let copied = with_progress("copying", "values", opening.stop, |tell| match &database {
        Some(database) => copy_world_into(&store, database, tell),
        None => copy_world(&store, new, tell),
    });
    let copied = match copied {
        Err(UpkeepError::Cancelled) => return Ok(Outcome::stopped("no copy was made")),
        Err(error @ UpkeepError::NotEmpty { .. }) if database.is_some() => {
            return Err(
                Failure::from(error).with_hint("; choose another name behind #, or drop the schema of that name")
            );
        }
        copied => copied.map_err(|error| Failure::from(error).with_hint_for_damage(SALVAGE))?,
    };
    let has_snapshots = store.snapshot_folder().is_some_and(|folder| folder.exists());
    let notes = (database.is_some() && has_snapshots).then(|| "snapshots are files and were not copied".to_owned());
    Ok(Outcome::new(End::Well, json!({ "entries": copied.done, "bytes": copied.bytes })).with_notes(notes))
}

pub fn salvage(world: &Path, new: &Path, stop: &Stop) -> Result<Outcome> {
    let (world, new) = (storage::folder(world)?, storage::folder(new)?);
    let report = match with_progress("salvaging", "values", stop, |tell| salvage_world(world, new, tell)) {
        Err(UpkeepError::Cancelled) => return Ok(Outcome::stopped("no world was made")),
        report => report?,
    };
    let json = json!({
        "entries": report.read.done,
        "bytes": report.read.bytes,
        "damaged": report.damage.count(),
        "damages": damages(&report.damage),
        "set_aside": report.set_aside,
    });
    Ok(Outcome::new(End::of(true, report.damage.is_empty()), json))
}
