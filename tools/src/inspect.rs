//! One chunk or entity as text.

use super::arguments::Inspected;
use super::display::{dimension, open};
use super::outcome::{End, Outcome, Result};
use bevy_terrane::block::{BlockComponentId, BlockId, BlockRegistry};
use bevy_terrane::chunk::Chunk;
use bevy_terrane::prelude::ChunkPos;
use bevy_terrane::storage::{Access, EntityRecord, WorldStore};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes of a component that are shown as text; JSON has all.
const MAX_BYTES: usize = 64;

pub fn run(world: &Path, what: &Inspected) -> Result<Outcome> {
    let store = open(world, Access::Read)?;
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
    let layers: Vec<_> = found.chunk.layered_blocks().collect();
    let components = components(&found.chunk);
    let mut text =
        format!("chunk {pos} of {name:?}: {} tier, version {}, {} bytes\n", found.tier, found.version, found.bytes);
    palette.iter().for_each(|(block, count)| text += &format!("{count:>6} {block}\n"));
    for (at, layer, block) in &layers {
        text += &format!("layer {layer} at {at:?}: {}\n", block_name(&registry, *block));
    }
    for (at, layer, component, value) in &components {
        text +=
            &format!("component {} at {at:?} layer {layer}: {}\n", component_name(&registry, *component), dump(value));
    }
    let layers = layers
        .iter()
        .map(|(at, layer, block)| json!({ "at": at, "layer": layer, "block": block_name(&registry, *block) }));
    let components = components.iter().map(|(at, layer, component, value)| {
        json!({ "at": at, "layer": layer, "component": component_name(&registry, *component), "hex": hex(value) })
    });
    let json = json!({
        "tier": found.tier.to_string(),
        "version": found.version,
        "bytes": found.bytes,
        "blocks": palette,
        "layers": layers.collect::<Vec<_>>(),
        "components": components.collect::<Vec<_>>(),
    });
    Ok(Outcome::new(End::Well, text, json))
}

/// How many blocks of each type there are in layer 0.
fn palette(registry: &BlockRegistry, chunk: &Chunk) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::<BlockId, usize>::new();
    chunk.blocks().for_each(|block| *counts.entry(block).or_default() += 1);
    let mut names = BTreeMap::new();
    counts.into_iter().for_each(|(block, count)| *names.entry(block_name(registry, block)).or_default() += count);
    names
}

type ComponentOfBlock = ([usize; 3], u8, BlockComponentId, Vec<u8>);

fn components(chunk: &Chunk) -> Vec<ComponentOfBlock> {
    if !chunk.has_components() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let cells = (0..16).flat_map(|x| (0..16).flat_map(move |y| (0..16).map(move |z| [x, y, z])));
    for at in cells {
        for layer in 0..u8::try_from(chunk.layer_count(at)).unwrap_or(u8::MAX) {
            let of_block = chunk.components(at, layer);
            found.extend(of_block.map(|(component, value)| (at, layer, component, value.to_vec())));
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
    let dimension = dimension.map_or_else(|| record.dimension.to_string(), |dimension| format!("{:?}", dimension.name));
    let (block, offset) = (record.block, record.offset);
    let mut text = format!("entity {}: in {dimension} at {block} + {offset:?}\n", record.id);
    if let Some(viewer) = record.viewer {
        text += &format!("holds ground loaded: {} columns around it\n", viewer.radius);
    }
    let list = |components: &[(String, Vec<u8>)], indent: &str| -> String {
        let line = |(name, value): &(String, Vec<u8>)| format!("{indent}{name}: {}\n", dump(value));
        components.iter().map(line).collect()
    };
    text += &list(&record.components, "");
    for (number, child) in record.children.iter().enumerate() {
        let parent = child.parent.map_or_else(|| "the entity".into(), |parent| format!("child {parent}"));
        let id = child.id.map_or_else(String::new, |id| format!(" {id}"));
        text += &format!("child {number}{id} of {parent}\n{}", list(&child.components, "  "));
    }
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
        "block": [block.x, block.y, block.z],
        "offset": offset,
        "holds_ground": record.viewer.is_some(),
        "components": components_as_json(&record.components),
        "children": children.collect::<Vec<_>>(),
    });
    Ok(Outcome::new(End::Well, text, json))
}

fn components_as_json(components: &[(String, Vec<u8>)]) -> Value {
    components.iter().map(|(name, value)| json!({ "name": name, "hex": hex(value) })).collect()
}

/// The length, the bytes, and what is printable of them.
fn dump(value: &[u8]) -> String {
    let shown = &value[..value.len().min(MAX_BYTES)];
    let rest = if shown.len() < value.len() { ".." } else { "" };
    let text: String = shown.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' }).collect();
    format!("{} bytes {}{rest} {text:?}", value.len(), hex(shown))
}

fn hex(value: &[u8]) -> String {
    value.iter().map(|byte| format!("{byte:02x}")).collect()
}
