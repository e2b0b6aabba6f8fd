//! Is a world what was written?

use super::display::{open, with_progress};
use super::outcome::{End, Outcome, Result, bytes};
use bevy_terrane::storage::Access;
use bevy_terrane::storage::upkeep::{Damage, Listed};
use bevy_terrane::work::Stop;
use serde_json::{Value, json};
use std::path::Path;

pub fn run(world: &Path, stop: &Stop) -> Result<Outcome> {
    let store = open(world, Access::Read)?;
    let report = with_progress("verifying", "values", stop, |tell| store.verify(tell))?;
    let mut text = damages(&report.damage);
    text += &format!(
        "{} values, {} were read; {} are damaged\n",
        report.read.done,
        bytes(report.read.bytes),
        report.damage.count()
    );
    if report.marked_lost > 0 {
        text += &format!("{} chunks are marked as lost, because they were found damaged before\n", report.marked_lost);
    }
    if report.stale > 0 {
        text += &format!("{} keys lead to entities that are elsewhere or gone, which does no harm\n", report.stale);
    }
    let json = json!({
        "entries": report.read.done,
        "bytes": report.read.bytes,
        "damaged": report.damage.count(),
        "damages": damages_as_json(&report.damage),
        "marked_lost": report.marked_lost,
        "stale_keys": report.stale,
    });
    Ok(Outcome::new(End::of(report.finished, report.damage.is_empty()), text, json))
}

/// A line for each damage.
pub fn damages(list: &Listed<Damage>) -> String {
    let mut text: String = list.first.iter().map(|damage| format!("damaged: {damage}\n")).collect();
    if list.more > 0 {
        text += &format!("damaged: {} more\n", list.more);
    }
    text
}

pub fn damages_as_json(list: &Listed<Damage>) -> Value {
    let kind = |damage: &Damage| match damage {
        Damage::Value { .. } => "value",
        Damage::Unreadable(_) => "unreadable",
        Damage::TwoTiers { .. } => "two_tiers",
        Damage::Unmarked { .. } => "unmarked",
        Damage::Unindexed { .. } => "unindexed",
        Damage::File { .. } => "file",
        Damage::LostRecord { .. } => "lost_record",
    };
    list.first.iter().map(|damage| json!({ "kind": kind(damage), "what": damage.to_string() })).collect()
}
