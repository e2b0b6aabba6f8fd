//! Generates what is to be seen, straight into the store, before the app begins.

use crate::land;
use bevy_terrane::block::BlockRegistry;
use bevy_terrane::chunk::ColumnSummary;
use bevy_terrane::generation::{DistanceGraph, TilePos};
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{DimensionOrigin, Durability, SaveBatch, WorldStore};
use std::collections::BTreeSet;
use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Columns that are generated between two commits.
const COLUMNS_A_COMMIT: usize = 2048;

/// Makes the columns around `center` that the world at this path does not have.
pub fn prefill(world: &Path, center: ColumnPos, radius: u32) -> Result<(), Box<dyn Error>> {
    let (ground, heights) = land::land()?;
    let store = WorldStore::open(&StorageConfig::Path(world.to_owned()))?;
    let names = store.block_names()?;
    let mut blocks = if names.is_empty() { BlockRegistry::new() } else { BlockRegistry::from_names(names)? };
    blocks.register_basic_blocks();
    store.save_block_names(&blocks.names().map(str::to_owned).collect::<Vec<_>>())?;
    let GeneratorIdentity { name: generator, version, seed } = ground.identity();
    let dimension = store.open_dimension(land::NAME, &DimensionOrigin { generator, version, seed })?;

    let mut stored = DistanceGraph::new();
    for (x, z, masks) in store.stored_tiles(dimension)? {
        stored.restore_tile(TilePos::new(x, z), &masks)?;
    }
    let (all, began) = (stored.count_missing_in_disc(center, radius), Instant::now());
    let mut missing = Vec::new();
    // Whole batches, so nearest first and a little beyond the radius.
    while let Some(work) = stored.find_work(center, radius) {
        missing.extend(work.columns);
    }
    let mut done = 0;
    for columns in missing.chunks(COLUMNS_A_COMMIT) {
        let mut batch = SaveBatch::default();
        let mut tiles = BTreeSet::new();
        for column in generate(&ground, &heights, &blocks, columns)? {
            for (y, chunk) in column.chunks() {
                batch.chunks.insert((dimension, column.pos().chunk(y)), chunk.clone());
            }
            batch.summaries.insert((dimension, column.pos()), Arc::new(ColumnSummary::new(&column)));
            stored.mark_completed(column.pos());
            tiles.insert(TilePos::from(column.pos()));
        }
        batch.tiles = tiles.into_iter().map(|tile| ((dimension, (tile.x, tile.z)), stored.tile(tile))).collect();
        store.commit(&batch, Durability::Process)?;
        done += columns.len();
        let rate = done as f64 / began.elapsed().as_secs_f64();
        eprintln!("generated {done} of {} columns ({all} of them in sight), {rate:.0} a second", missing.len());
    }
    store.sync()?;
    Ok(())
}

/// Generates columns on all cores, in their order.
fn generate(
    ground: &Heightmap,
    heights: &Range<i64>,
    blocks: &BlockRegistry,
    columns: &[ColumnPos],
) -> Result<Vec<Column>, GenerateError> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let run = || {
        let mut made = Vec::new();
        while let Some(column) = columns.get(next.fetch_add(1, Ordering::Relaxed)) {
            let request = GenerateRequest { column: *column, heights: heights.clone(), blocks };
            made.push(ground.generate(&request)?);
        }
        Ok(made)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let mut made = Vec::with_capacity(columns.len());
        for thread in threads {
            // A panic of the generator ends the example.
            made.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(made)
    })
}
