//! Showing the contents of a schematic.

use super::outcome::{End, Outcome, Result};
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use terrane_objects::work::Stop;
use terrane_world::block::BlockId;
use terrane_world::snapshot::schematic::{ReadOptions, ReadReport, Schematic, SchematicError};

pub fn info(file: &Path, stop: &Stop) -> Result<Outcome> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let source = File::open(file).map_err(|error| failed(&error))?;
    let on_disk = source.metadata().map_err(|error| failed(&error))?.len();
    let options = ReadOptions { salvage: true, ..ReadOptions::default() };
    let (schematic, report) = match Schematic::read_with(source, &options, &mut |_| stop.go_on()) {
        Ok(read) => read,
        Err(SchematicError::Cancelled) => return Ok(Outcome::stopped("nothing was found out")),
        Err(error) => return refused(file, &error, None),
    };
    if let Some(error) = report.damage.as_ref().filter(|error| !error.is_damage()) {
        return refused(file, error, None);
    }
    let end = End::of(true, report.damage.is_none());
    let notes = [
        (report.lacks_checksum, "the checksum is missing"),
        (report.has_trailing_bytes, "something follows the data"),
        (report.stray_block_entities > 0, "some block entities are outside of the box"),
    ];
    let notes = notes.into_iter().filter(|(holds, _)| *holds).map(|(_, what)| what.to_owned());
    Ok(Outcome::new(end, as_json(&schematic, &report, on_disk)).with_notes(notes))
}

/// The outcome of a command that cannot read a file.
pub fn refused(file: &Path, error: &SchematicError, hint: Option<&str>) -> Result<Outcome> {
    if error.is_damage() {
        let json = json!({ "file": file.display().to_string(), "damage": error.to_string() });
        return Ok(Outcome::new(End::Damaged, json).with_notes(hint.map(str::to_owned)));
    }
    let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
    Err(format!("{}: {error}{hint}", file.display()).into())
}

/// The number of blocks of each kind that occurs, in descending order.
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

fn as_json(schematic: &Schematic, report: &ReadReport, on_disk: u64) -> Value {
    let kinds = kinds(schematic).into_iter().map(|(name, count)| (name.to_owned(), count.into()));
    let kinds: serde_json::Map<String, Value> = kinds.collect();
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
