//! Exporting a dimension, or a box of one, and importing it.

use super::arguments::{ExportWorldArguments, ImportWorldArguments};
use super::display::with_progress;
use super::outcome::{End, Failure, Outcome, Result, counted};
use super::storage::{self, Opening};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use terrane_objects::ObjectStoreError;
use terrane_storage::upkeep::{
    ExportOptions, ImportOptions, Listed, LostObject, UpkeepError, export_file, import_world,
};
use terrane_storage::{Access, WorldOpenError, WorldStore};

/// The hint for a damaged export or world.
const LEAVE_DAMAGED: &str = "; --leave-damaged takes everything that is whole";

pub fn export(arguments: &ExportWorldArguments, opening: &Opening<'_>) -> Result<Outcome> {
    let ExportWorldArguments { world, file, dimension, objects_per_file, leave_damaged, .. } = arguments;
    let options = ExportOptions {
        area: arguments.area()?,
        objects_per_file: objects_per_file.get(),
        leaves_damaged: *leave_damaged,
        ..ExportOptions::default()
    };
    let store = match opening.open(world, Access::Read) {
        Err(error @ WorldOpenError::Locked { .. }) => {
            let hint = ", or back it up, restore the backup elsewhere and export that";
            return Err(Failure::from(error).with_hint(hint));
        }
        store => store?,
    };
    let report = with_progress("exporting", "chunks", opening.stop, |tell| {
        store.export_dimension(dimension, file, &options, tell)
    });
    let report = report.map_err(|error| Failure::from(error).with_hint_for_damage(LEAVE_DAMAGED))?;
    let files = (1..=report.files).map(|number| export_file(file, number));
    let on_disk: u64 = files.filter_map(|file| fs::metadata(file).ok()).map(|file| file.len()).sum();
    let mut json = with_lost(json!(report), &report.lost);
    json["bytes"] = on_disk.into();
    Ok(Outcome::new(End::of(report.finished, report.lost.is_empty()), json).with_notes(unfinished(report.finished)))
}

pub fn import(arguments: &ImportWorldArguments, opening: &Opening<'_>) -> Result<Outcome> {
    let ImportWorldArguments { file, world, dimension, create, existing, only_generated, leave_damaged, anew, .. } =
        arguments;
    let options = ImportOptions {
        dimension: dimension.clone(),
        moved_by: arguments.moved_by()?,
        existing: *existing,
        leaves_ungenerated: *only_generated,
        leaves_damaged: *leave_damaged,
        begins_anew: *anew,
    };
    let imported = with_progress("importing", "chunks", opening.stop, |tell| match create {
        true => match storage::address(world) {
            Some(address) => {
                let store = opening.new_database(address)?;
                WorldStore::from_store(Arc::new(store))?.import_dimension(file, &options, tell)
            }
            None => import_world(file, world, &options, tell),
        },
        false => opening.open(world, Access::Write)?.import_dimension(file, &options, tell),
    });
    let report = imported.map_err(|error| {
        let hint = match &error {
            UpkeepError::Occupied { .. } => "; --existing says what becomes of them",
            UpkeepError::Ungenerated { .. } => "; --only-generated leaves them out",
            UpkeepError::OtherOptions => ", with --anew",
            UpkeepError::Open(WorldOpenError::NoWorld { .. }) => "; --create makes a world",
            UpkeepError::Open(_) | UpkeepError::Store(_) => "",
            // Skipping damage does not help with a file of another kind.
            UpkeepError::Objects(ObjectStoreError::NotAStore { .. }) => "",
            error if error.is_damage() && !leave_damaged => LEAVE_DAMAGED,
            _ => "",
        };
        Failure::from(error).with_hint(hint)
    })?;
    let json = with_lost(json!(report), &report.lost);
    let notes = counted([
        (report.known_entities, "entities are in the world already"),
        (report.displaced_entities, "entities are not in the dimension where they were, which the world does not have"),
        (report.known_objects, "other objects are in the world already"),
        (report.left_objects, "other objects were left out with their ground"),
        (report.left, "columns or chunks were there already, and stay"),
        (report.ungenerated, "columns were never generated, and were left out"),
        (report.new_types, "types of blocks are new in the world"),
    ]);
    let outcome = Outcome::new(End::of(report.finished, report.lost.is_empty()), json);
    Ok(outcome.with_notes(unfinished(report.finished).into_iter().chain(notes)))
}

/// The note for a command that was stopped.
pub fn unfinished(is_finished: bool) -> Option<String> {
    (!is_finished).then(|| "the same command does the rest".to_owned())
}

/// The figures of a report, including the data that was left out.
fn with_lost(mut figures: Value, lost: &Listed<LostObject>) -> Value {
    let json =
        |lost: &LostObject| json!({ "column": lost.column.map(|column| [column.x, column.z]), "reason": lost.reason });
    figures["lost"] = lost.first.iter().map(json).collect();
    figures["more_lost"] = lost.more.into();
    figures
}
