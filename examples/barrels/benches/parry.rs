//! The workloads B1 and B2 beside parry's `Voxels`: rays to the first solid block, and the way of a box in one tick, in the same ground.
//! `cargo bench --profile dev --all-features --package barrels`.

#[path = "../../../benches/shared/measure.rs"]
mod measure;
#[path = "../../../benches/worlds/terrain.rs"]
mod terrain;

use avian3d::parry::math::Pose;
use avian3d::parry::query::{Ray, RayCast, ShapeCastOptions, cast_shapes};
use avian3d::parry::shape::{Cuboid, Voxels};
use bevy::math::{DVec3, IVec3, Vec3};
use measure::timed;
use std::collections::HashMap;
use std::hint::black_box;
use std::time::Duration;
use terrane_world::block::BlockId;
use terrane_world::body::{Body, BodyMover, BodyTable};
use terrane_world::chunk::{Chunk, cast_ray};
use terrane_world::space::{BlockPos, BlockRay, ChunkPos};

const REACH: f64 = 64.0;
const RAYS: usize = 1_000;
const BODIES: usize = 10_000;
const TICK: f64 = 0.05;
const SIZE: [f64; 2] = [0.6, 1.8];

fn main() {
    let (types, blocks) = (terrain::registry(), terrain::generate());
    let edges = || 0..terrain::EDGE;
    let all = edges().flat_map(|x| edges().flat_map(move |y| edges().map(move |z| ChunkPos::new(x, y, z))));
    let chunks: HashMap<ChunkPos, Chunk> = all.map(|pos| (pos, terrain::chunk(&blocks, pos))).collect();
    let is_solid = |block: BlockId| types.block(block).is_solid();
    // Chunks of one block are air, or deep below the ground, where neither rays nor bodies come.
    let mixed: Vec<ChunkPos> = chunks.keys().copied().filter(|pos| chunks[pos].uniform_block().is_none()).collect();
    let cells = || (0..16).flat_map(|x| (0..16).flat_map(move |y| (0..16).map(move |z| [x, y, z])));
    let solid: Vec<IVec3> = mixed
        .iter()
        .flat_map(|pos| {
            let corner = IVec3::new(pos.x as i32, pos.y as i32, pos.z as i32) * 16;
            let solid = cells().filter(|cell| is_solid(chunks[pos].block(*cell)));
            solid.map(move |cell| corner + IVec3::from(cell.map(|along| along as i32)))
        })
        .collect();
    let voxels = Voxels::new(Vec3::ONE, &solid);
    println!("{} solid cells in {} chunks", solid.len(), mixed.len());
    let mut criterion = measure::criterion(Duration::from_secs(2), Duration::from_millis(300));

    let is_leaf = |block: &BlockId| types.block(*block).name().contains("leaves");
    let mut forest: Vec<ChunkPos> = mixed.into_iter().filter(|pos| chunks[pos].palette().iter().any(is_leaf)).collect();
    forest.sort_unstable_by_key(|pos| (pos.x, pos.z, pos.y));
    let rays: Vec<(BlockRay, Ray)> = (0..RAYS)
        .map(|number| {
            let corner = forest[number * 7919 % forest.len()].min_block();
            let turn = number as f64;
            let direction = DVec3::new(turn.sin(), 0.1 * (3.0 * turn).sin(), turn.cos()).normalize();
            let (middle, offset) = (corner.offset(8, 12, 8), Vec3::new(0.3, 0.5, 0.7));
            let from = Vec3::new(middle.x as f32, middle.y as f32, middle.z as f32) + offset;
            (
                BlockRay::new(middle, offset.as_dvec3().to_array(), direction.to_array()),
                Ray::new(from, direction.as_vec3()),
            )
        })
        .collect();
    let ours = |ray: &BlockRay| cast_ray(ray.clone(), REACH, &types, |pos| chunks.get(&pos), is_solid);
    let parry = |ray: &Ray| voxels.cast_local_ray_and_get_normal(ray, REACH as f32, true);
    let hits =
        [rays.iter().filter_map(|(ray, _)| ours(ray)).count(), rays.iter().filter_map(|(_, ray)| parry(ray)).count()];
    let mut tell = |name: &str, operations, run: &mut dyn FnMut() -> Duration| {
        let runs = measure::runs(&mut criterion, "B", name, operations, run);
        measure::median(&runs).map_or(0.0, f64::round)
    };
    let rays_ours =
        tell("rays", RAYS, &mut || timed(|| rays.iter().filter_map(|(ray, _)| ours(black_box(ray))).count()).0);
    let rays_parry =
        tell("rays, parry", RAYS, &mut || timed(|| rays.iter().filter_map(|(_, ray)| parry(black_box(ray))).count()).0);
    println!("\nB1 to the first solid block: {rays_ours} ns, parry {rays_parry} ns; {hits:?} of {RAYS} hit");

    let table = BodyTable::new(&types);
    let chunk = |pos: ChunkPos| chunks.get(&pos).map(Some);
    let edge = terrain::EDGE * 16;
    let mut bodies: Vec<Body> = (0..BODIES as i64)
        .map(|number| {
            let (x, z) = (8 + number * 7919 % (edge - 16), 8 + number * 104_729 / 31 % (edge - 16));
            let at = |y: i64| BlockPos::new(x, y, z);
            let top = (0..edge).rev().find(|y| is_solid(chunks[&at(*y).chunk()].block(at(*y).in_chunk())));
            Body::new(at(top.map_or(edge, |y| y + 1)), SIZE[0], SIZE[1])
        })
        .collect();
    bodies.sort_unstable_by_key(|body| (body.block.column(), body.block));
    let velocity = |number: usize, tick: usize, body: &Body| {
        let angle = ((number * 31 + (tick + number) / 40) * 17) as f64;
        [4.0 * angle.sin(), body.velocity[1] - 32.0 * TICK, 4.0 * angle.cos()]
    };
    let [mut moved_ours, mut moved_parry] = [Vec::new(), Vec::new()];
    for tick in 0..60_usize {
        let shape = Cuboid::new(Vec3::new(SIZE[0] as f32, SIZE[1] as f32, SIZE[0] as f32) / 2.0);
        // A little above the ground: a box that touches it hits it at once, and tells nothing of its way.
        let parry = || {
            let way = |(number, body): (usize, &Body)| {
                let middle = DVec3::new(body.block.x as f64, body.block.y as f64, body.block.z as f64)
                    + DVec3::from(body.offset)
                    + DVec3::Y * (SIZE[1] / 2.0 + 0.01);
                let way = DVec3::from(velocity(number, tick, body)) * TICK;
                let (place, none) =
                    (Pose::from_translation(middle.as_vec3()), ShapeCastOptions::with_max_time_of_impact(1.0));
                cast_shapes(&place, way.as_vec3(), &shape, &Pose::IDENTITY, Vec3::ZERO, &voxels, none)
                    .ok()
                    .flatten()
                    .is_some()
            };
            bodies.iter().enumerate().filter(|body| way(*body)).count()
        };
        let (of_parry, _) = timed(|| black_box(parry()));
        let (of_ours, ()) = timed(|| {
            let mut mover = BodyMover::new(&table, &chunk);
            for (number, body) in bodies.iter_mut().enumerate() {
                let way = velocity(number, tick, body);
                body.advance(&mut mover, way, TICK, false);
            }
        });
        if tick >= 40 {
            moved_ours.push(of_ours.as_nanos() as f64 / BODIES as f64);
            moved_parry.push(of_parry.as_nanos() as f64 / BODIES as f64);
        }
    }
    let [ours, parry] = [moved_ours, moved_parry].map(|mut runs| {
        runs.sort_unstable_by(f64::total_cmp);
        measure::median(&runs).map_or(0.0, f64::round)
    });
    println!("B2 a body and tick: {ours} ns, with steps and contacts; one sweep of its box by parry: {parry} ns");
}
