//! Importing and exporting schematics.

use super::arguments::{ExportArguments, ImportArguments};
use super::display::with_progress;
use super::export::unfinished;
use super::outcome::{End, Outcome, Result, counted};
use super::schematic::refused;
use super::storage::Opening;
use serde_json::json;
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{BufWriter, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use terrane_objects::work::Stop;
use terrane_storage::upkeep::schematics::{ClosedWorld, ClosedWorldError, SchematicImport, SchematicImportReport};
use terrane_storage::{Access, WorldStore};
use terrane_world::snapshot::Turn;
use terrane_world::snapshot::schematic::{ReadOptions, ReadReport, Schematic, SchematicError, WriteOptions};
use terrane_world::snapshot::translation::TranslationOptions;
use terrane_world::space::{BlockBox, BlockPos};

pub fn export(arguments: &ExportArguments, opening: &Opening<'_>) -> Result<Outcome> {
    let ExportArguments { world, file, dimension, from, to, version, level } = arguments;
    expect_nothing(file)?;
    let store = opening.open(world, Access::Read)?;
    let closed = closed_world(&store, dimension)?;
    let area = BlockBox::new(*from, *to);
    let read = with_progress("reading", "squares of 4 x 4 columns", opening.stop, |tell| {
        closed.export(&area, &TranslationOptions::default(), tell)
    });
    let (schematic, missing_chunks) = match read {
        Err(ClosedWorldError::Cancelled) => return Ok(stopped()),
        read => read?,
    };
    let options = WriteOptions { version: *version, level: *level };
    if write(&schematic, file, &options, opening.stop)?.is_break() {
        return Ok(stopped());
    }
    let on_disk = fs::metadata(file).map_err(|error| failed(file, &error))?.len();
    let json = json!({
        "size": schematic.size(),
        "kinds": schematic.palette.len(),
        "block_entities": schematic.block_entities.len(),
        "entities": schematic.entities.len(),
        "missing_chunks": missing_chunks,
        "bytes": on_disk,
    });
    let notes = counted([(missing_chunks, "chunks were never generated; they are air in the file")]);
    Ok(Outcome::new(End::Well, json).with_notes(notes))
}

/// Refuses a path that exists, even as a dangling link.
fn expect_nothing(file: &Path) -> std::result::Result<(), String> {
    match fs::symlink_metadata(file) {
        Ok(_) => Err(format!("{} exists already", file.display())),
        Err(_) => Ok(()),
    }
}

/// Writes the file under a temporary name until it is complete.
fn write(schematic: &Schematic, file: &Path, options: &WriteOptions, stop: &Stop) -> Result<ControlFlow<()>> {
    let name = file.file_name().ok_or_else(|| format!("{} names no file", file.display()))?;
    let unfinished: PathBuf = file.with_file_name(format!(".{}.unfinished", name.to_string_lossy()));
    let written = with_progress("writing", "blocks", stop, |tell| {
        // A crash may have left one. If it is a link, removing it does not touch the target.
        let _ = fs::remove_file(&unfinished);
        let mut sink = BufWriter::new(File::create_new(&unfinished)?);
        schematic.write_with(&mut sink, options, tell)?;
        sink.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        Ok::<(), SchematicError>(())
    });
    let finished = match written {
        Ok(()) => expect_nothing(file).and_then(|()| {
            fs::rename(&unfinished, file).map(|()| ControlFlow::Continue(())).map_err(|error| failed(file, &error))
        }),
        Err(SchematicError::Cancelled) => Ok(ControlFlow::Break(())),
        Err(error) => Err(failed(file, &error)),
    };
    if !matches!(finished, Ok(ControlFlow::Continue(()))) {
        // The file may not even exist.
        let _ = fs::remove_file(&unfinished);
    }
    Ok(finished?)
}

pub fn import(arguments: &ImportArguments, opening: &Opening<'_>) -> Result<Outcome> {
    let file = &arguments.file;
    let mut source =
        Sum { file: File::open(file).map_err(|error| failed(file, &error))?, hash: crc32fast::Hasher::new() };
    let options = ReadOptions { salvage: arguments.salvage, ..ReadOptions::default() };
    let read =
        with_progress("reading", "blocks", opening.stop, |tell| Schematic::read_with(&mut source, &options, tell));
    let (schematic, read) = match read {
        Ok(read) => read,
        Err(SchematicError::Cancelled) => return Ok(stopped()),
        Err(error) => {
            let hint = match error.is_damage() && !arguments.salvage {
                true => "nothing was changed; --salvage takes the layers of blocks that can be read",
                false => "nothing was changed",
            };
            return refused(file, &error, Some(hint));
        }
    };
    let at = arguments.at.or(schematic.corner().map(|[x, y, z]| BlockPos::new(x, y, z)));
    let at = at.ok_or_else(|| format!("{} does not say where it was: say --at X,Y,Z", file.display()))?;
    let turn = arguments.flip.unwrap_or(Turn::NONE).then(Turn::quarters(arguments.turn));
    let layers = read.damage.is_some().then(|| whole_layers(&schematic, &read));
    let options = SchematicImport {
        at,
        turn,
        leaves_ungenerated: arguments.only_generated,
        replaces_entities: arguments.replace_entities,
        layers,
    };
    // Importing the same file at the same place again creates the same entities, also when the command is repeated.
    let seed = seed(source.hash.finalize(), at, turn);
    let translation = TranslationOptions { seed, ..TranslationOptions::default() };
    let store = opening.open(&arguments.world, Access::Write)?;
    let closed = closed_world(&store, &arguments.dimension)?;
    let imported = with_progress("writing", "squares of 4 x 4 columns", opening.stop, |tell| {
        closed.import(schematic, &options, &translation, tell)
    });
    let report = match imported {
        Err(ClosedWorldError::Cancelled) => return Ok(stopped()),
        Err(error @ ClosedWorldError::Ungenerated { .. }) => {
            return Err(format!("{error}; --only-generated leaves them out").into());
        }
        imported => imported?,
    };
    let end = End::of(report.finished, read.damage.is_none());
    let replaced = arguments.replace_entities;
    let outcome = Outcome::new(end, import_json(&report, &read, layers, replaced));
    Ok(outcome.with_notes(unfinished(report.finished).into_iter().chain(import_notes(&report, replaced))))
}

/// The number of layers that were read completely.
fn whole_layers(schematic: &Schematic, report: &ReadReport) -> u32 {
    let [width, height, length] = schematic.size();
    let layers = report.blocks / (u64::from(width) * u64::from(length)).max(1);
    u32::try_from(layers).unwrap_or(height).min(height)
}

fn import_notes(report: &SchematicImportReport, replaced: bool) -> impl Iterator<Item = String> {
    let of_others = match replaced {
        true => "entities that were in the box were removed",
        false => "entities were in the box already and stay: --replace-entities removes them",
    };
    let left_out = &report.translation;
    let biomes = left_out.has_biomes.then(|| "biomes have no place in a world".to_owned());
    let notes = counted([
        (report.ungenerated, "columns or chunks were never generated, and left out"),
        (report.known_entities, "entities are in the world already"),
        (report.others, of_others),
        (report.new_types, "types of blocks are new in the world"),
        (left_out.placeholders, "blocks have no name that a world could know, and became placeholders"),
        (left_out.block_entities, "block entities have no block that takes them, and were left out"),
        (left_out.entities, "entities are outside of the box, and were left out"),
        (left_out.components, "values of block components are not of this world, and were left out"),
    ]);
    notes.chain(biomes)
}

fn import_json(
    report: &SchematicImportReport,
    read: &ReadReport,
    layers: Option<u32>,
    replaced: bool,
) -> serde_json::Value {
    let left_out = &report.translation;
    let (kept, removed) = if replaced { (0, report.others) } else { (report.others, 0) };
    json!({
        "columns": report.columns,
        "chunks": report.chunks,
        "entities": report.entities,
        "known_entities": report.known_entities,
        "kept_entities": kept,
        "removed_entities": removed,
        "ungenerated": report.ungenerated,
        "new_types": report.new_types,
        "placeholders": left_out.placeholders,
        "left_out": {
            "block_entities": left_out.block_entities,
            "entities": left_out.entities,
            "components": left_out.components,
            "biomes": left_out.has_biomes,
            "malformed": read.malformed,
        },
        "first_malformed": read.first_malformed.as_ref().map(ToString::to_string),
        "damage": read.damage.as_ref().map(ToString::to_string),
        "layers": layers,
    })
}

fn closed_world<'a>(store: &'a WorldStore, name: &str) -> Result<ClosedWorld<'a>> {
    Ok(ClosedWorld::new(store, store.dimension_named(name)?.id)?)
}

fn stopped() -> Outcome {
    Outcome::stopped("nothing was written")
}

fn failed(file: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", file.display())
}

/// A file, and the checksum of the bytes read so far.
struct Sum {
    file: File,
    hash: crc32fast::Hasher,
}

impl Read for Sum {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

fn seed(file: u32, at: BlockPos, turn: Turn) -> u64 {
    let mut place = crc32fast::Hasher::new();
    [at.x, at.y, at.z].iter().for_each(|at| Hasher::write_i64(&mut place, *at));
    Hasher::write_u8(&mut place, turn.quarter_turns() + 4 * u8::from(turn.is_flipped()));
    u64::from(file) << 32 | u64::from(place.finalize())
}
