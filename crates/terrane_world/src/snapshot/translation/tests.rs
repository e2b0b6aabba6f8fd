//! Translation of blocks by name, in both directions.

mod inward;
mod real_files;
mod round_trip;

use super::entities::SCHEMATIC_ENTITY;
use super::*;
use crate::block::{BLOCK_ENTITY, BlockComponent, BlockId, BlockLayout, BlockType, PLACEHOLDER, STATE};
use crate::chunk::{Chunk, Column};
use crate::snapshot::schematic::nbt::{Compound, Nbt};
use crate::snapshot::schematic::{AIR, BlockEntity, ReadOptions, SchematicEntity, WriteOptions};
use crate::snapshot::tests::cells;
use crate::space::ColumnPos;

const HERE: DimensionId = DimensionId(1);

/// A registry of these blocks and of the placeholder.
fn registry(names: &[&'static str]) -> BlockRegistry {
    let mut registry = BlockRegistry::new();
    for name in names {
        registry.register(BlockType::new(*name)).unwrap();
    }
    registry.register_schematic_blocks();
    registry
}

fn compound(entries: &[(&str, Nbt)]) -> Compound {
    Compound(entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

fn read(schematic: Schematic, registry: &BlockRegistry) -> (Snapshot, TranslationReport) {
    Snapshot::from_schematic(schematic, HERE, registry, &TranslationOptions::default()).unwrap()
}

fn written(snapshot: &Snapshot, registry: &BlockRegistry) -> Schematic {
    snapshot.to_schematic(registry, &TranslationOptions::default()).unwrap()
}

/// The schematic after writing and reading.
fn through_file(schematic: &Schematic, version: u8) -> Schematic {
    let mut bytes = Vec::new();
    schematic.write(&mut bytes, &WriteOptions { version, level: 1 }).unwrap();
    let (read, report) = Schematic::read(&bytes[..], &ReadOptions::default()).unwrap();
    assert_eq!(report.damage, None);
    read
}

/// One row of states along x.
fn row(states: &[&str]) -> Schematic {
    let mut schematic = Schematic::new([states.len() as u32, 1, 1]);
    let mut chunk = Chunk::default();
    for (x, state) in states.iter().enumerate() {
        let known = schematic.palette.iter().position(|known| known == state);
        let number = known.unwrap_or_else(|| {
            schematic.palette.push((*state).to_owned());
            schematic.palette.len() - 1
        });
        chunk.set_block([x, 0, 0], BlockId::new(number as u32));
    }
    schematic.blocks.set_chunk(Default::default(), chunk.into());
    schematic
}

fn at(x: i64) -> BlockPos {
    BlockPos::new(x, 0, 0)
}
