//! Checking the integrity of a world.

use super::display::with_progress;
use super::outcome::{End, Outcome, Result, counted};
use super::storage::Opening;
use serde_json::{Value, json};
use std::path::Path;
use terrane_storage::Access;
use terrane_storage::upkeep::{Damage, Listed};

pub fn run(world: &Path, opening: &Opening<'_>) -> Result<Outcome> {
    let store = opening.open(world, Access::Read)?;
    let report = with_progress("verifying", "values", opening.stop, |tell| store.verify(tell))?;
    let json = json!({
        "entries": report.read.done,
        "bytes": report.read.bytes,
        "damaged": report.damage.count(),
        "damages": damages(&report.damage),
        "marked_lost": report.marked_lost,
        "stale_keys": report.stale,
        "lost_saves": store.lost_writes().map(|lost| lost.batches),
    });
    let notes = counted([
        (report.marked_lost, "chunks are marked as lost, because they were found damaged before"),
        (report.stale, "keys lead to entities that are elsewhere or gone, which does no harm"),
    ]);
    Ok(Outcome::new(End::of(report.finished, report.damage.is_empty()), json).with_notes(notes))
}

pub fn damages(list: &Listed<Damage>) -> Value {
    let kind = |damage: &Damage| match damage {
        Damage::Value { .. } => "value",
        Damage::Unreadable { .. } => "unreadable",
        Damage::TwoTiers { .. } => "two_tiers",
        Damage::Unmarked { .. } => "unmarked",
        Damage::Unindexed { .. } => "unindexed",
        Damage::File { .. } => "file",
        Damage::LostRecord { .. } => "lost_record",
    };
    list.first.iter().map(|damage| json!({ "kind": kind(damage), "what": damage.to_string() })).collect()
}
