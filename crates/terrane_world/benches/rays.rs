//! The workload B1: rays of 64 blocks through a forest, which look for a block that is in the palette of each chunk on their way and not
//! on the ray. `cargo bench --profile dev --all-features --bench rays`.

#[path = "../../../benches/shared/measure.rs"]
mod measure;
#[path = "../../../benches/worlds/terrain.rs"]
mod terrain;

use measure::timed;
use rustc_hash::FxHashMap;
use std::hint::black_box;
use std::time::Duration;
use terrane_world::block::BlockId;
use terrane_world::chunk::{Chunk, cast_ray};
use terrane_world::space::{BlockPos, BlockRay, ChunkPos};

const REACH: f64 = 64.0;
const RAYS: usize = 1_000;

fn main() {
    let (types, blocks) = (terrain::registry(), terrain::generate());
    let wanted = types.id("minecraft:bedrock").expect("it is registered");
    let all = (0..terrain::EDGE)
        .flat_map(|x| (0..terrain::EDGE).flat_map(move |y| (0..terrain::EDGE).map(move |z| [x, y, z])));
    let chunks: FxHashMap<ChunkPos, Chunk> = all
        .map(|[x, y, z]| ChunkPos::new(x, y, z))
        .map(|pos| {
            let mut chunk = terrain::chunk(&blocks, pos);
            // The palette keeps a block that no longer occurs.
            if chunk.uniform_block().is_none() {
                let before = chunk.set_block([0; 3], wanted);
                chunk.set_block([0; 3], before);
            }
            (pos, chunk)
        })
        .collect();
    let is_leaf = |block: BlockId| types.block(block).name().contains("leaves");
    let is_forest = |pos: &ChunkPos| chunks[pos].palette().iter().any(|block| is_leaf(*block));
    let mut forest: Vec<ChunkPos> = chunks.keys().copied().filter(is_forest).collect();
    forest.sort_unstable_by_key(|pos| (pos.x, pos.z, pos.y));
    let rays: Vec<BlockRay> = (0..RAYS)
        .map(|number| {
            let ChunkPos { x, y, z } = forest[number * 7919 % forest.len()];
            let turn = number as f64;
            let direction = [turn.sin(), 0.1 * (3.0 * turn).sin(), turn.cos()];
            BlockRay::new(BlockPos::new(16 * x + 8, 16 * y + 8, 16 * z + 8), [0.3, 0.5, 0.7], direction)
        })
        .collect();
    let cells: usize = rays.iter().map(|ray| ray.clone().take_while(|cell| cell.distance <= REACH).count()).sum();
    let cast = |ray: &BlockRay| cast_ray(ray.clone(), REACH, &types, |pos| chunks.get(&pos), |block| block == wanted);
    let hits = rays.iter().filter_map(cast).count();
    let mut criterion = measure::criterion(Duration::from_secs(2), Duration::from_millis(300));
    let runs = measure::runs(&mut criterion, "B1", "rays of 64 blocks", RAYS, || {
        timed(|| rays.iter().filter_map(|ray| cast(black_box(ray))).count()).0
    });
    criterion.final_summary();
    if let Some(median) = measure::median(&runs) {
        let each = cells as f64 / RAYS as f64;
        println!(
            "\nB1 a ray of 64 blocks through a forest: {median:.0} ns, {each:.0} cells, {hits} of {RAYS} hit; goal: 1,000 ns"
        );
    }
}
