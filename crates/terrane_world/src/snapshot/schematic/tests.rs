//! Schematics of other programs, damaged ones and hostile ones.

mod building;
mod hostile;
mod other_programs;
mod real_files;
mod round_trip;

use super::nbt::{Compound, Nbt, NbtKind};
use super::*;
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::space::ChunkPos;
pub(in crate::snapshot) use real_files::files_alone;

/// Reads a file without faults.
fn read(bytes: &[u8]) -> Schematic {
    let (schematic, report) = Schematic::read(bytes, &ReadOptions::default()).unwrap();
    assert_eq!(report.damage, None);
    schematic
}

fn error(bytes: &[u8]) -> SchematicError {
    Schematic::read(bytes, &ReadOptions::default()).unwrap_err()
}

fn salvaged(bytes: &[u8]) -> (Schematic, ReadReport) {
    Schematic::read(bytes, &ReadOptions { salvage: true, ..ReadOptions::default() }).unwrap()
}

fn written(schematic: &Schematic, version: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    schematic.write(&mut bytes, &WriteOptions { version, level: 1 }).unwrap();
    bytes
}
