//! Damage on a disk, or by a sudden end, is reported and never spreads: everything else stays readable, and nothing is
//! thrown away.

#![cfg(feature = "rocksdb")]

mod files;
mod fixtures;
mod flips;
mod ground;
mod kills;
mod locked;
mod logs;
mod salvaging;
mod tables;

use crate::support::{folder, noise};
use bevy_terrane::block::BlockId;
use bevy_terrane::chunk::{Chunk, Column, ColumnSummary};
use bevy_terrane::space::{BlockPos, ChunkPos, ColumnPos, DimensionId, GeneratorIdentity, TilePos};
use bevy_terrane::storage::{
    Durability, EntityRecord, SaveBatch, StorageConfig, StoredBlockTick, WorldOpenError, WorldStore,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

const OVERWORLD: DimensionId = DimensionId(0);

fn open(path: &Path) -> Result<WorldStore, WorldOpenError> {
    WorldStore::open(&StorageConfig::Path(path.to_path_buf()))
}

fn origin() -> GeneratorIdentity {
    GeneratorIdentity { name: "none".into(), version: 1, seed: 7 }
}

/// Blocks of 16 types that do not compress.
fn chunk(seed: u64) -> Arc<Chunk> {
    let mut next = noise(seed);
    Arc::new(Chunk::from_fn(|_| BlockId::new((next() >> 40) as u32 % 16)))
}

/// One change of everything that a world holds, as a round of saves writes it.
fn round(number: u32) -> SaveBatch {
    let mut batch = SaveBatch::default();
    let column = ColumnPos::new(0, 0);
    let place = BlockPos::new(1, i64::from(number % 64), 1);
    batch.chunks.insert((OVERWORLD, column.chunk(0)), chunk(number.into()));
    batch.chunks.insert((OVERWORLD, ChunkPos::new(i64::from(number % 50), 1, 3)), chunk(number.into()));
    let tick = StoredBlockTick { block: place, kind: "flow".into(), remaining: number.into() };
    // All heights, since the tick may have been at another one.
    let ticks = |y| if place.chunk().y == y { vec![tick.clone()] } else { Vec::new() };
    batch.block_ticks = (0..4).map(|y| ((OVERWORLD, column.chunk(y)), ticks(y))).collect();
    let entity = EntityRecord {
        id: Uuid::from_u128(5),
        dimension: OVERWORLD,
        block: place,
        offset: [0.5; 3],
        viewer: None,
        components: vec![("round".into(), number.to_le_bytes().to_vec())],
        children: Vec::new(),
    };
    batch.entities.insert(entity.id, Some(entity));
    batch.tiles.insert((OVERWORLD, TilePos::new(0, 0)), [number as u16; 64]);
    let mut seen = Column::new(column);
    seen.set_block(place, BlockId::new(1));
    batch.summaries.insert((OVERWORLD, column), Arc::new(ColumnSummary::new(&seen)));
    batch
}

/// Every file below `path` with its contents, except the texts that RocksDB writes for people.
fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = folder::files(path);
    found.retain(|path, _| !path.file_name().unwrap().to_str().unwrap().starts_with("LOG"));
    found
}

/// The files of the world's database of this kind, by size.
fn database_files(path: &Path, kind: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> =
        files(path).into_iter().filter(|(file, _)| file.extension().is_some_and(|e| e == kind)).collect();
    found.sort_by_key(|(_, bytes)| bytes.len());
    found.into_iter().map(|(file, _)| file).collect()
}

/// The last round that was saved, according to its entity.
fn stored_round(world: &WorldStore) -> Option<u32> {
    let entity = world.entity(Uuid::from_u128(5)).unwrap()?;
    Some(u32::from_le_bytes(entity.components[0].1[..].try_into().unwrap()))
}

/// The numbers in lines that begin with this word.
fn numbers(lines: impl Iterator<Item = String>, word: &str) -> impl Iterator<Item = u32> {
    lines.filter_map(move |line| line.strip_prefix(word)?.trim().parse().ok())
}
