//! Showing the contents of a world.

use super::outcome::{End, Outcome, Result};
use super::storage::{self, Opening};
use serde_json::{Value, json};
use std::path::Path;
use std::time::UNIX_EPOCH;
use terrane_storage::Access;
use terrane_storage::upkeep::{StoredPlayer, WorldInfo};

pub fn run(world: &Path, opening: &Opening<'_>) -> Result<Outcome> {
    let store = opening.open(world, Access::Read)?;
    let mut json = as_json(&store.info()?, storage::bytes(world));
    json["lost_saves"] = store.lost_writes().map(|lost| lost.batches).into();
    Ok(Outcome::new(End::Well, json))
}

fn as_json(info: &WorldInfo, on_disk: Option<u64>) -> Value {
    let families = info.families.iter().map(|(family, size)| {
        let (entries, bytes) = (size.map(|size| size.entries), size.map(|size| size.bytes));
        json!({ "name": family.name(), "entries": entries, "bytes": bytes, "purpose": family.purpose() })
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
            "sparse": dimension.sparse,
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
