//! The workload B2: 10,000 bodies walk over the rough ground of terrain42, and turn now and then.
//! `cargo bench --profile dev --all-features --bench bodies`.

#[path = "../../../benches/shared/measure.rs"]
mod measure;
#[path = "../../../benches/worlds/terrain.rs"]
mod terrain;

use measure::timed;
use rustc_hash::FxHashMap;
use std::time::Duration;
use terrane_world::body::{Body, BodyMover, BodyTable};
use terrane_world::chunk::Chunk;
use terrane_world::space::{BlockPos, ChunkPos};

const BODIES: usize = 10_000;
const TICK: f64 = 0.05;

fn main() {
    let (types, blocks) = (terrain::registry(), terrain::generate());
    let all = (0..terrain::EDGE)
        .flat_map(|x| (0..terrain::EDGE).flat_map(move |y| (0..terrain::EDGE).map(move |z| ChunkPos::new(x, y, z))));
    let chunks: FxHashMap<ChunkPos, Chunk> = all.map(|pos| (pos, terrain::chunk(&blocks, pos))).collect();
    let table = BodyTable::new(&types);
    let chunk = |pos: ChunkPos| chunks.get(&pos).map(Some);

    // Along a line through the terrain's columns, as a region has them; each on the ground.
    let edge = terrain::EDGE * 16;
    let mut bodies: Vec<Body> = (0..BODIES as i64)
        .map(|number| {
            let (x, z) = (8 + number * 7919 % (edge - 16), 8 + number * 104_729 / 31 % (edge - 16));
            let is_solid = |y: &i64| {
                let block = BlockPos::new(x, *y, z);
                types.block(chunks[&block.chunk()].block(block.in_chunk())).is_solid()
            };
            let y = (0..edge).rev().find(is_solid).map_or(edge, |y| y + 1);
            Body::new(BlockPos::new(x, y, z), 0.6, 1.8)
        })
        .collect();
    bodies.sort_unstable_by_key(|body| (body.block.column(), body.block));
    let mut tick = 0_usize;
    let mut step = || {
        let mut mover = BodyMover::new(&table, &chunk);
        for (number, body) in bodies.iter_mut().enumerate() {
            // Everyone turns every two seconds, and jumps at a wall.
            let angle = ((number * 31 + (tick + number) / 40) * 17) as f64;
            let [x, y, z] = [4.0 * angle.sin(), body.velocity[1] - 32.0 * TICK, 4.0 * angle.cos()];
            if body.contact.wall && body.contact.ground {
                body.velocity[1] = 9.0;
            }
            (body.velocity[0], body.velocity[2]) = (x, z);
            let y = if body.velocity[1] > 0.0 && body.contact.ground { body.velocity[1] - 32.0 * TICK } else { y };
            body.advance(&mut mover, [x, y, z], TICK, false);
        }
        tick += 1;
    };
    // Until all have spread over the slopes.
    (0..40).for_each(|_| step());
    let mut criterion = measure::criterion(Duration::from_secs(2), Duration::from_millis(300));
    let runs = measure::runs(&mut criterion, "B2", "10,000 bodies walk", BODIES, || timed(&mut step).0);
    criterion.final_summary();
    let share = |is: fn(&Body) -> bool| 100 * bodies.iter().filter(|body| is(body)).count() / BODIES;
    let (stand, wall) = (share(|body| body.contact.ground), share(|body| body.contact.wall));
    if let Some(median) = measure::median(&runs) {
        println!("\nB2 a body and tick: {median:.0} ns; {stand} % stand, {wall} % touch a wall; goal: 1,000 ns");
    }
}
