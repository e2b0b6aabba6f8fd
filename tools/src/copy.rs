//! New worlds made from others.

use super::display::{SALVAGE, open, with_progress};
use super::outcome::{End, Failure, Outcome, Result};
use super::verify::damages;
use serde_json::json;
use std::path::Path;
use terrane_objects::work::Stop;
use terrane_storage::Access;
use terrane_storage::upkeep::{UpkeepError, copy_world, salvage_world};

pub fn copy(world: &Path, new: &Path, stop: &Stop) -> Result<Outcome> {
    let store = open(world, Access::Read)?;
    let copied = match with_progress("copying", "values", stop, |tell| copy_world(&store, new, tell)) {
        Err(UpkeepError::Cancelled) => return Ok(Outcome::stopped("no copy was made")),
        copied => copied.map_err(|error| Failure::from(error).with_hint_for_damage(SALVAGE))?,
    };
    Ok(Outcome::new(End::Well, json!({ "entries": copied.done, "bytes": copied.bytes })))
}

pub fn salvage(world: &Path, new: &Path, stop: &Stop) -> Result<Outcome> {
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
