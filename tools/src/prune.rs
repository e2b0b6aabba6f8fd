//! Deleting everything outside a shape, and freeing space.

use super::arguments::PruneArguments;
use super::display::{SALVAGE, dimension, with_progress};
use super::outcome::{End, Failure, Outcome, Result};
use super::storage::{self, Opening};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;
use terrane_objects::work::Stop;
use terrane_storage::upkeep::PruneReport;
use terrane_storage::{Access, WorldStore};
use terrane_world::space::ColumnArea;

pub fn run(arguments: &PruneArguments, opening: &Opening<'_>) -> Result<Outcome> {
    let keep = arguments.area()?;
    let name = &arguments.dimension;
    if !arguments.dry_run && !arguments.yes && !is_confirmed(&keep, name)? {
        return Err("nothing was deleted".into());
    }
    let before = storage::bytes(&arguments.world);
    let access = if arguments.dry_run { Access::Read } else { Access::Write };
    let store = opening.open(&arguments.world, access)?;
    let dimension = dimension(&store, name)?;
    let report = with_progress("pruning", "squares of 32 x 32 columns", opening.stop, |tell| {
        store.prune(dimension.id, &keep, arguments.dry_run, tell)
    });
    let report = report.map_err(|error| Failure::from(error).with_hint_for_damage(SALVAGE))?;
    let mut is_finished = report.finished;
    if is_finished && !arguments.dry_run {
        is_finished = compact_all(&store, opening.stop)?.is_continue();
    }
    drop(store);
    let after = storage::bytes(&arguments.world);
    let mut json = as_json(&report, &keep);
    (json["bytes_before"], json["bytes_after"]) = (before.into(), after.into());
    Ok(Outcome::new(End::of(is_finished, true), json)
        .with_notes(arguments.dry_run.then(|| "nothing was deleted".to_owned())))
}

pub fn compact(world: &Path, opening: &Opening<'_>) -> Result<Outcome> {
    let before = storage::bytes(world);
    let store = opening.open(world, Access::Maintain)?;
    let end = End::of(compact_all(&store, opening.stop)?.is_continue(), true);
    drop(store);
    let after = storage::bytes(world);
    Ok(Outcome::new(end, json!({ "bytes_before": before, "bytes_after": after })))
}

fn compact_all(store: &WorldStore, stop: &Stop) -> Result<ControlFlow<()>> {
    Ok(with_progress("compacting", "families", stop, |tell| store.compact(tell))?)
}

fn is_confirmed(keep: &ColumnArea, dimension: &str) -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(Failure::arguments("this deletes ground for good; say --yes if that is meant"));
    }
    eprint!("All of {dimension:?} outside the {keep} is deleted for good. Type yes to continue: ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

fn as_json(report: &PruneReport, keep: &ColumnArea) -> Value {
    let kept = report.kept.first.iter().map(|kept| {
        let (id, column, damaged) = (kept.id.to_string(), [kept.column.x, kept.column.z], kept.damaged);
        let why = if damaged { "its record is damaged" } else { "it may be a player" };
        json!({ "id": id, "column": column, "damaged": damaged, "why": why })
    });
    json!({
        "outside": keep.to_string(),
        "columns": report.columns,
        "chunks": report.chunks,
        "entities": report.entities,
        "other": report.other,
        "kept_entities": kept.collect::<Vec<_>>(),
        "more_kept_entities": report.kept.more,
    })
}
