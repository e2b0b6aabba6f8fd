//! What is in a world.

use super::display::{folder_bytes, open};
use super::outcome::{End, Outcome, Result, bytes};
use bevy_terrane::space::DimensionId;
use bevy_terrane::storage::Access;
use bevy_terrane::storage::upkeep::{StoredPlayer, WorldInfo};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Names of types that are listed as text; JSON has all.
const MAX_NAMES: usize = 12;

pub fn run(world: &Path) -> Result<Outcome> {
    let store = open(world, Access::Read)?;
    let info = store.info()?;
    let on_disk = folder_bytes(world);
    Ok(Outcome::new(End::Well, text(&info, on_disk), as_json(&info, on_disk)))
}

fn text(info: &WorldInfo, on_disk: u64) -> String {
    let age = SystemTime::now().duration_since(info.created_at).unwrap_or_default();
    let mut text = format!(
        "format {}, made {} ago, opened {} times, played for {}, {} on disk\n",
        info.format,
        indicatif::HumanDuration(age),
        info.sessions,
        indicatif::HumanDuration(info.play_time),
        bytes(on_disk),
    );
    for (family, size) in &info.families {
        let size = size.map_or_else(
            || "of unknown size".into(),
            |size| format!("about {} values, {}", size.entries, bytes(size.bytes)),
        );
        text += &format!("{family} ({}): {size}\n", family.purpose());
    }
    for (dimension, columns) in &info.dimensions {
        let sparse = if dimension.is_sparse { ", each chunk by itself" } else { "" };
        let removed = if dimension.being_removed { ", being removed" } else { "" };
        text += &format!(
            "dimension {:?} (number {}), made by {}: {columns} columns{sparse}{removed}\n",
            dimension.name,
            dimension.id.0,
            dimension.generator.told(dimension.own_seed)
        );
    }
    for StoredPlayer { name, id, place } in &info.players {
        let place = place.map_or("its record is damaged".into(), |(dimension, block)| {
            format!("at {block} in {}", dimension_name(info, dimension))
        });
        text += &format!("player {name:?} ({id}): {place}\n");
    }
    let registry = &info.registry;
    let blocks: Vec<&str> = registry.blocks.iter().map(|block| &*block.name).collect();
    let components: Vec<&str> = registry.components.iter().map(|component| &*component.name).collect();
    let entity_types: Vec<&str> = registry.entity_types.iter().map(|name| &**name).collect();
    for (what, names) in [("blocks", blocks), ("block components", components), ("entity components", entity_types)] {
        let rest = if names.len() > MAX_NAMES { ", .." } else { "" };
        text += &format!("{} {what}: {}{rest}\n", names.len(), names[..names.len().min(MAX_NAMES)].join(", "));
    }
    text
}

fn dimension_name(info: &WorldInfo, id: DimensionId) -> String {
    let known = info.dimensions.iter().find(|(known, _)| known.id == id);
    known.map_or_else(|| format!("dimension number {}", id.0), |(known, _)| format!("{:?}", known.name))
}

fn as_json(info: &WorldInfo, on_disk: u64) -> Value {
    let families = info.families.iter().map(|(family, size)| {
        let (entries, bytes) = (size.map(|size| size.entries), size.map(|size| size.bytes));
        json!({ "name": family.name(), "entries": entries, "bytes": bytes })
    });
    let dimensions = info.dimensions.iter().map(|(dimension, columns)| {
        let generator = &dimension.generator;
        json!({
            "name": dimension.name,
            "number": dimension.id.0,
            "generator": generator.name,
            "generator_version": generator.version,
            "seed": dimension.own_seed.unwrap_or(generator.seed),
            "columns": columns,
            "sparse": dimension.is_sparse,
            "being_removed": dimension.being_removed,
        })
    });
    let players = info.players.iter().map(|StoredPlayer { name, id, place }| {
        let (dimension, block) = (place.map(|(dimension, _)| dimension.0), place.map(|(_, at)| [at.x, at.y, at.z]));
        json!({ "name": name, "id": id.to_string(), "dimension": dimension, "block": block })
    });
    let registry = &info.registry;
    json!({
        "format": info.format,
        "created_at_unix_seconds": info.created_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        "sessions": info.sessions,
        "play_seconds": info.play_time.as_secs(),
        "bytes_on_disk": on_disk,
        "families": families.collect::<Vec<_>>(),
        "dimensions": dimensions.collect::<Vec<_>>(),
        "players": players.collect::<Vec<_>>(),
        "blocks": registry.blocks.iter().map(|block| &block.name).collect::<Vec<_>>(),
        "block_components": registry.components.iter().map(|component| &component.name).collect::<Vec<_>>(),
        "entity_components": registry.entity_types,
    })
}
