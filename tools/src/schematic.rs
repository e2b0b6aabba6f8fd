//! What is in a schematic.

use super::outcome::{End, Outcome, Result, bytes};
use bevy_terrane::block::BlockId;
use bevy_terrane::snapshot::schematic::{ReadOptions, ReadReport, Schematic, SchematicError};
use bevy_terrane::work::Stop;
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;

/// Kinds of blocks that are listed as text; JSON has all.
const MAX_KINDS: usize = 12;
/// At most this many characters of a name are shown.
const MAX_NAME: usize = 128;

pub fn info(file: &Path, stop: &Stop) -> Result<Outcome> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let source = File::open(file).map_err(|error| failed(&error))?;
    let on_disk = source.metadata().map_err(|error| failed(&error))?.len();
    let options = ReadOptions { salvage: true, ..ReadOptions::default() };
    let (schematic, report) = match Schematic::read_with(source, &options, &mut |_| stop.go_on()) {
        Ok(read) => read,
        Err(SchematicError::Cancelled) => return Ok(Outcome::stopped("stopped")),
        Err(error) => return refused(file, &error, ""),
    };
    if let Some(error) = report.damage.as_ref().filter(|error| !error.is_damage()) {
        return refused(file, error, "");
    }
    let end = End::of(true, report.damage.is_none());
    let kinds = kinds(&schematic);
    Ok(Outcome::new(end, text(&schematic, &report, &kinds, on_disk), as_json(&schematic, &report, &kinds, on_disk)))
}

/// How a command ends that cannot read a file.
pub fn refused(file: &Path, error: &SchematicError, hint: &str) -> Result<Outcome> {
    let text = format!("{}: {error}{hint}", file.display());
    match error.is_damage() {
        true => Ok(Outcome::new(End::Damaged, format!("damaged: {text}\n"), json!({ "damage": error.to_string() }))),
        false => Err(text.into()),
    }
}

/// A name from a file, made printable and short.
fn shown(name: &str) -> String {
    name.chars().take(MAX_NAME).flat_map(char::escape_debug).collect()
}

/// A note about malformed block entities and entities, if there are any.
pub fn malformed_text(report: &ReadReport) -> String {
    report.first_malformed.as_ref().map_or(String::new(), |first| {
        let count = report.malformed;
        format!("note: {count} malformed block entities or entities were left out; the first: {first}\n")
    })
}

/// How many blocks of each kind there are, the most first. Kinds that do not occur are left out.
fn kinds(schematic: &Schematic) -> Vec<(&str, u64)> {
    let mut counts = vec![0; schematic.palette.len()];
    let mut others = 0;
    for (_, chunk) in schematic.blocks.chunks() {
        let mut count = |block: BlockId, blocks: u64| {
            if block != BlockId::AIR {
                counts[block.index() as usize] += blocks;
                others += blocks;
            }
        };
        match chunk.uniform_block() {
            Some(block) => count(block, 16 * 16 * 16),
            None => chunk.blocks().for_each(|block| count(block, 1)),
        }
    }
    counts[0] = schematic.blocks.volume() - others;
    let names = schematic.palette.iter().map(String::as_str);
    let mut kinds: Vec<_> = names.zip(counts).filter(|(_, count)| *count > 0).collect();
    kinds.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    kinds
}

fn text(schematic: &Schematic, report: &ReadReport, kinds: &[(&str, u64)], on_disk: u64) -> String {
    let [width, height, length] = schematic.size();
    let mut text = format!(
        "version {}, {width} x {height} x {length} blocks, {} on disk, {} uncompressed\n",
        schematic.version,
        bytes(on_disk),
        bytes(report.bytes),
    );
    if let Some(version) = schematic.data_version {
        text += &format!("data version {version}\n");
    }
    for (what, at) in [("offset", schematic.offset), ("origin", schematic.origin)] {
        text += &at.map_or(String::new(), |[x, y, z]| format!("{what} [{x}, {y}, {z}]\n"));
    }
    let rest = if kinds.len() > MAX_KINDS { ", .." } else { "" };
    let listed: Vec<String> =
        kinds.iter().take(MAX_KINDS).map(|(name, count)| format!("{count} {}", shown(name))).collect();
    text += &format!("{} kinds of blocks: {}{rest}\n", kinds.len(), listed.join(", "));
    let biomes = schematic.biomes.as_ref().map_or(0, |biomes| biomes.palette.len());
    let (block_entities, entities) = (schematic.block_entities.len(), schematic.entities.len());
    text += &format!("{block_entities} block entities, {entities} entities, {biomes} biomes\n");
    for (holds, what) in [
        (report.lacks_checksum, "the checksum is missing"),
        (report.has_trailing_bytes, "something follows the data"),
        (report.stray_block_entities > 0, "some block entities are outside of the box"),
    ] {
        text += &if holds { format!("note: {what}\n") } else { String::new() };
    }
    text += &malformed_text(report);
    if let Some(damage) = &report.damage {
        text += &format!("damaged: {damage}\n{} blocks could be read\n", report.blocks);
    }
    text
}

fn as_json(schematic: &Schematic, report: &ReadReport, kinds: &[(&str, u64)], on_disk: u64) -> Value {
    let kinds: serde_json::Map<String, Value> =
        kinds.iter().map(|(name, count)| ((*name).to_owned(), (*count).into())).collect();
    json!({
        "version": schematic.version,
        "data_version": schematic.data_version,
        "size": schematic.size(),
        "offset": schematic.offset,
        "origin": schematic.origin,
        "bytes_on_disk": on_disk,
        "bytes_uncompressed": report.bytes,
        "blocks_read": report.blocks,
        "blocks": kinds,
        "block_entities": schematic.block_entities.len(),
        "entities": schematic.entities.len(),
        "biomes": schematic.biomes.as_ref().map_or(&[][..], |biomes| &biomes.palette),
        "lacks_checksum": report.lacks_checksum,
        "has_trailing_bytes": report.has_trailing_bytes,
        "stray_block_entities": report.stray_block_entities,
        "malformed": report.malformed,
        "first_malformed": report.first_malformed.as_ref().map(ToString::to_string),
        "damage": report.damage.as_ref().map(ToString::to_string),
    })
}
