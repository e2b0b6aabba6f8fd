//! Backups, and worlds of them.

use super::display::open;
use super::outcome::{End, Outcome, bytes};
use bevy_terrane::storage::upkeep::restore_world;
use bevy_terrane::storage::{Access, Backup, RocksStore};
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

pub fn back_up(world: &Path, folder: &Path, keep: Option<NonZeroU32>) -> Result<Outcome, String> {
    let store = open(world, Access::Maintain)?;
    let backup = store.back_up(folder, keep).map_err(|error| error.to_string())?;
    let text = format!("backup {} with {} was made", backup.number, bytes(backup.bytes));
    Ok(Outcome::new(End::Well, text, as_json(&backup)))
}

pub fn restore(folder: &Path, world: &Path, number: Option<u32>) -> Result<Outcome, String> {
    let backup = restore_world(folder, number, world).map_err(|error| error.to_string())?;
    let text = format!("{} was made of backup {}", world.display(), backup.number);
    Ok(Outcome::new(End::Well, text, as_json(&backup)))
}

pub fn list(folder: &Path) -> Result<Outcome, String> {
    let backups = RocksStore::backups(folder).map_err(|error| error.to_string())?;
    let line = |backup: &Backup| {
        let age = SystemTime::now().duration_since(backup.made_at).unwrap_or_default();
        let age = indicatif::HumanDuration(age);
        format!("backup {}: {}, made {age} ago\n", backup.number, bytes(backup.bytes))
    };
    let text = backups.iter().map(line).collect();
    let backups: Vec<Value> = backups.iter().map(as_json).collect();
    Ok(Outcome::new(End::Well, text, json!({ "backups": backups })))
}

fn as_json(backup: &Backup) -> Value {
    let made_at = backup.made_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    json!({ "number": backup.number, "bytes": backup.bytes, "made_at_unix_seconds": made_at })
}
