//! The workload B3: searches for paths of 20 to 30 blocks over the hills of a forest, for a sheep.
//! `cargo bench --profile dev --all-features --bench paths`.

#[path = "../../../benches/shared/measure.rs"]
mod measure;
#[path = "../../../benches/worlds/terrain.rs"]
mod terrain;

use measure::timed;
use rustc_hash::FxHashMap;
use std::hint::black_box;
use std::time::Duration;
use terrane_world::block::{BlockId, BlockRegistry, BlockShape, BlockType};
use terrane_world::chunk::Chunk;
use terrane_world::path::{PathSearch, WalkTable, WalkableGround, Walker, Waypoint};
use terrane_world::space::{BlockPos, ChunkPos};

/// The block types of terrain42, with liquids and plants that walkers pass.
fn registry() -> BlockRegistry {
    let mut types = BlockRegistry::new();
    for name in &terrain::NAMES[1..] {
        let is = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        let shape = match is(&["water", "lava"]) {
            true => BlockShape::liquid(8).expect("it is a level"),
            false if is(PLANTS) => BlockShape::Cross,
            false => BlockShape::Cube,
        };
        types.register(BlockType::new(*name).with_shape(shape)).expect("each has a name of its own");
    }
    types
}

const PLANTS: &[&str] = &["short_grass", "dandelion", "poppy", "dead_bush"];

const SEARCHES: usize = 1_000;

fn main() {
    let (types, blocks) = (registry(), terrain::generate());
    let edge = terrain::EDGE;
    let all = (0..edge).flat_map(|x| (0..edge).flat_map(move |y| (0..edge).map(move |z| ChunkPos::new(x, y, z))));
    let chunks: FxHashMap<ChunkPos, Chunk> = all.map(|pos| (pos, terrain::chunk(&blocks, pos))).collect();
    let block =
        |pos: BlockPos| types.block(chunks.get(&pos.chunk()).map_or(BlockId::AIR, |chunk| chunk.block(pos.in_chunk())));
    let is_liquid = |pos: BlockPos| matches!(block(pos).shape(), BlockShape::Liquid { .. });
    let is_ground = |pos: BlockPos| {
        let is_tree = ["leaves", "log"].iter().any(|part| block(pos).name().contains(part));
        block(pos).is_solid() && !is_tree || is_liquid(pos)
    };
    let surface = |x: i64, z: i64| {
        let top = (0..edge * 16).rev().map(|y| BlockPos::new(x, y, z)).find(|pos| is_ground(*pos)).unwrap_or_default();
        if is_liquid(top) { top } else { top.offset(0, 1, 0) }
    };
    let table = WalkTable::new(&types, &Walker::default().with_size(0.9, 1.3));
    let inside = edge * 16 - 80;
    let requests: Vec<(Waypoint, BlockPos)> = (0..SEARCHES as i64)
        .map(|number| {
            let (x, z) = (40 + number * 7919 % inside, 40 + number * 104_729 % inside);
            let (turn, far) = (number as f64, 20.0 + (number % 11) as f64);
            let goal = surface(x + (turn.cos() * far) as i64, z + (turn.sin() * far) as i64);
            (Waypoint::new(surface(x, z), [0.5, 0.0, 0.5]), goal)
        })
        .collect();
    let mut search = PathSearch::default();
    let mut find = |(from, goal): &(Waypoint, BlockPos)| {
        // As in a region: chunks are looked up anew for each request.
        let mut ground = WalkableGround::new(&table, |pos: ChunkPos| {
            let is_inside = [pos.x, pos.y, pos.z].into_iter().all(|along| (0..edge).contains(&along));
            is_inside.then(|| chunks.get(&pos))
        });
        let mut steps = u32::MAX;
        search.start(&table, from, *goal);
        let path = search.advance(&mut ground, &mut steps);
        (path, u32::MAX - steps)
    };
    let (mut steps, mut complete, mut length) = (Vec::new(), 0, 0);
    for request in &requests {
        let (path, taken) = find(request);
        steps.push(taken);
        if let Some(path) = path.filter(|path| path.is_complete) {
            complete += 1;
            length += path.waypoints.len();
        }
    }
    steps.sort_unstable();
    let mut criterion = measure::criterion(Duration::from_secs(3), Duration::from_millis(300));
    let runs = measure::runs(&mut criterion, "B3", "paths of 20 to 30 blocks", SEARCHES, || {
        timed(|| requests.iter().filter(|request| find(black_box(request)).0.is_some()).count()).0
    });
    criterion.final_summary();
    if let Some(median) = measure::median(&runs) {
        let mean = steps.iter().sum::<u32>() as usize / SEARCHES;
        println!(
            "\nB3 a path of 20 to 30 blocks: {:.1} us, {mean} steps (median {}, highest {}), {complete} of {SEARCHES} complete with {} \
            waypoints each; goal: 50 us",
            median / 1e3,
            steps[SEARCHES / 2],
            steps[SEARCHES - 1],
            length / complete.max(1),
        );
    }
}
