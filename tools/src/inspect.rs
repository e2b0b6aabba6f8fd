//! Showing one chunk or entity as text.

use super::arguments::Inspected;
use super::display::dimension;
use super::outcome::{End, Outcome, Result};
use super::storage::Opening;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use terrane_storage::{Access, EntityRecord, WorldStore};
use terrane_world::block::{BlockComponentId, BlockId, BlockRegistry};
use terrane_world::chunk::Chunk;
use terrane_world::space::ChunkPos;

pub fn run(world: &Path, what: &Inspected, opening: &Opening<'_>) -> Result<Outcome> {
    let store = opening.open(world, Access::Read)?;
    match what {
        Inspected::Chunk { dimension, x, y, z } => chunk(&store, dimension, ChunkPos::new(*x, *y, *z)),
        Inspected::Entity { id } => {
            let record = store.entity(*id)?;
            entity(&store, &record.ok_or_else(|| format!("entity {id} is not stored"))?)
        }
    }
}

fn chunk(store: &WorldStore, name: &str, pos: ChunkPos) -> Result<Outcome> {
    let dimension = dimension(store, name)?;
    let found = store.inspect_chunk(dimension.id, pos)?;
    let found =
        found.ok_or_else(|| format!("chunk {pos} of {name:?} is not stored; ground that was stored is air there"))?;
    let registry = store.blocks()?;
    let palette = palette(&registry, &found.chunk);
    let layers = found.chunk.layered_blocks();
    let layers =
        layers.map(|(at, layer, block)| json!({ "at": at, "layer": layer, "block": block_name(&registry, block) }));
    let json = json!({
        "tier": found.tier.to_string(),
        "version": found.version,
        "bytes": found.bytes,
        "blocks": palette,
        "layers": layers.collect::<Vec<_>>(),
        "components": components(&registry, &found.chunk),
    });
    Ok(Outcome::new(End::Well, json))
}

/// The number of blocks of each type in layer 0.
fn palette(registry: &BlockRegistry, chunk: &Chunk) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::<BlockId, usize>::new();
    chunk.blocks().for_each(|block| *counts.entry(block).or_default() += 1);
    let mut names = BTreeMap::new();
    counts.into_iter().for_each(|(block, count)| *names.entry(block_name(registry, block)).or_default() += count);
    names
}

fn components(registry: &BlockRegistry, chunk: &Chunk) -> Vec<Value> {
    let mut found = Vec::new();
    let cells = (0..16).flat_map(|x| (0..16).flat_map(move |y| (0..16).map(move |z| [x, y, z])));
    for at in cells.filter(|_| chunk.has_components()) {
        for layer in 0..u8::try_from(chunk.layer_count(at)).unwrap_or(u8::MAX) {
            found.extend(chunk.components(at, layer).map(|(component, value)| {
                let component = component_name(registry, component);
                let (bytes, hex, text) = (value.len(), hex(value), text(value));
                json!({ "at": at, "layer": layer, "component": component, "hex": hex, "text": text, "bytes": bytes })
            }));
        }
    }
    found
}

fn block_name(registry: &BlockRegistry, block: BlockId) -> String {
    match (block.index() as usize) < registry.len() {
        true => registry.block(block).name().to_owned(),
        false => format!("unknown block {}", block.index()),
    }
}

fn component_name(registry: &BlockRegistry, component: BlockComponentId) -> String {
    registry.component_record(component).map_or_else(|| format!("{component:?}"), |record| record.name.clone())
}

fn entity(store: &WorldStore, record: &EntityRecord) -> Result<Outcome> {
    let dimensions = store.dimensions()?;
    let dimension = dimensions.iter().find(|dimension| dimension.id == record.dimension);
    let block = record.block;
    let children = record.children.iter().map(|child| {
        json!({
            "parent": child.parent,
            "id": child.id.map(|id| id.to_string()),
            "holds_ground": child.viewer.is_some(),
            "components": components_as_json(&child.components),
        })
    });
    let json = json!({
        "id": record.id.to_string(),
        "dimension": record.dimension.0,
        "dimension_name": dimension.map(|dimension| &dimension.name),
        "block": [block.x, block.y, block.z],
        "offset": record.offset,
        "holds_ground": record.viewer.is_some(),
        "components": components_as_json(&record.components),
        "children": children.collect::<Vec<_>>(),
    });
    Ok(Outcome::new(End::Well, json))
}

fn components_as_json(components: &[(String, Vec<u8>)]) -> Value {
    let component = |(name, value): &(String, Vec<u8>)| {
        let (bytes, hex, text) = (value.len(), hex(value), text(value));
        json!({ "name": name, "hex": hex, "text": text, "bytes": bytes })
    };
    components.iter().map(component).collect()
}

/// The bytes as text, with dots for unprintable ones.
fn text(value: &[u8]) -> String {
    value.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' }).collect()
}

fn hex(value: &[u8]) -> String {
    value.iter().map(|byte| format!("{byte:02x}")).collect()
}
