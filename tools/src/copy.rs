//! New worlds of others.

use super::display::{Display, SALVAGE, open};
use super::outcome::{End, Failure, Outcome, Result, bytes};
use super::verify::{damages, damages_as_json};
use bevy_terrane::storage::Access;
use bevy_terrane::storage::upkeep::{copy_world, salvage_world};
use bevy_terrane::work::Stop;
use serde_json::json;
use std::path::Path;

pub fn copy(world: &Path, new: &Path, stop: &Stop) -> Result<Outcome> {
    let store = open(world, Access::Read)?;
    let mut display = Display::new("copying", "values", stop);
    let report = copy_world(&store, new, |progress| display.show(progress));
    drop(display);
    let report = report.map_err(|error| Failure::from(error).with_hint_for_damage(SALVAGE))?;
    let (entries, copied) = (report.copied.done, report.copied.bytes);
    let json = json!({ "entries": entries, "bytes": copied });
    Ok(match report.finished {
        true => Outcome::new(End::Well, format!("{entries} values, {} were copied", bytes(copied)), json),
        false => Outcome::new(End::Stopped, "stopped; no copy was made".into(), json),
    })
}

pub fn salvage(world: &Path, new: &Path, stop: &Stop) -> Result<Outcome> {
    let mut display = Display::new("salvaging", "values", stop);
    let report = salvage_world(world, new, |progress| display.show(progress));
    drop(display);
    let report = report?;
    let (entries, read) = (report.read.done, report.read.bytes);
    let json = json!({
        "entries": entries,
        "bytes": read,
        "damaged": report.damage.count(),
        "damages": damages_as_json(&report.damage),
        "set_aside": report.set_aside,
    });
    if !report.finished {
        return Ok(Outcome::new(End::Stopped, "stopped; no world was made".into(), json));
    }
    let mut text = damages(&report.damage);
    text += &format!(
        "{entries} values, {} were saved; {} are damaged, of which {} are only kept aside\n",
        bytes(read),
        report.damage.count(),
        report.set_aside,
    );
    Ok(Outcome::new(End::of(true, report.damage.is_empty()), text, json))
}
