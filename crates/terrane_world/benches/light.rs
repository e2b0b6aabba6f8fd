//! The workloads L1 to L4 of light: `cargo bench --profile dev --all-features --bench light`.
//!
//! After Criterion's own report comes one table. The edits of L2 are timed one by one, without Criterion: their 99th
//! percentile counts.

#[path = "../../../benches/shared/measure.rs"]
mod measure;
#[path = "../../../benches/worlds/terrain.rs"]
mod terrain;

use measure::timed;
use rustc_hash::FxHashMap;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use terrane_world::block::{BlockId, BlockRegistry, BlockShape, BlockType};
use terrane_world::chunk::{Chunk, Column};
use terrane_world::generation::{Caves, Features, GenerateRequest, Generator, Heightmap, Layers, Placement, Tree};
use terrane_world::light::{ColumnLight, LightBlocks, LightMap, LightTable};
use terrane_world::space::{BlockPos, ChunkPos, ColumnPos, HeightSet};

const ALL: usize = usize::MAX;

/// The block types of terrain42 with what they do to light, then a torch of level 14 and a lamp of level 15.
fn registry() -> (BlockRegistry, [BlockId; 2]) {
    let mut registry = BlockRegistry::new();
    for name in &terrain::NAMES[1..] {
        let block = BlockType::new(*name);
        let has = |part: &str| name.contains(part);
        let block = match () {
            () if has("lava") => liquid(block).with_light(15),
            () if has("water") => liquid(block).with_attenuation(2),
            () if has("leaves") => block.transparent().with_attenuation(1),
            () if has("short_grass") || has("dandelion") || has("poppy") || has("bush") => {
                block.with_shape(BlockShape::Cross)
            }
            () if has("snow[") || has("cactus") => block.transparent(),
            () => block,
        };
        registry.register(block).expect("each has a name of its own");
    }
    let lights = [("bench:torch", 14), ("bench:lamp", 15)].map(|(name, light)| {
        let block = BlockType::new(name).with_shape(BlockShape::torch()).with_light(light);
        registry.register(block).expect("it has a name of its own")
    });
    (registry, lights)
}

fn liquid(block: BlockType) -> BlockType {
    block.with_shape(BlockShape::liquid(8).expect("it is full")).transparent()
}

/// Columns with their light.
struct World {
    table: LightTable,
    columns: FxHashMap<ColumnPos, Column>,
    light: LightMap,
}

struct Ground<'a>(&'a FxHashMap<ColumnPos, Column>);

impl LightBlocks for Ground<'_> {
    fn chunk(&self, pos: ChunkPos) -> Option<&Chunk> {
        self.0.get(&pos.column())?.chunk(pos.y).map(AsRef::as_ref)
    }
}

impl World {
    fn new(table: &LightTable, columns: Vec<Column>, height: i64, open_from: i64) -> Self {
        let mut light = LightMap::new();
        for column in &columns {
            light.insert(ColumnLight::new(table, column, &HeightSet::from(0..height), open_from));
        }
        let columns = columns.into_iter().map(|column| (column.pos(), column)).collect();
        let mut world = Self { table: table.clone(), columns, light };
        world.light.advance(&world.table, &Ground(&world.columns), ALL);
        world
    }

    fn block(&self, pos: BlockPos) -> BlockId {
        self.columns[&pos.column()].block(pos)
    }

    /// Sets a block and brings the light up to date. Only the light is timed.
    fn set(&mut self, pos: BlockPos, block: BlockId) -> Duration {
        let Some(column) = self.columns.get_mut(&pos.column()) else { return Duration::ZERO };
        let old = column.set_block(pos, block);
        timed(|| {
            self.light.block_changed(&self.table, pos, old, block);
            self.light.advance(&self.table, &Ground(&self.columns), ALL)
        })
        .0
    }

    /// The sum of all levels of sky light and block light around a place: how much light an edit moves.
    fn lit_cells(&self, around: BlockPos, radius: i64, heights: Range<i64>) -> [usize; 2] {
        let mut lit = [0; 2];
        for x in -radius..=radius {
            for (z, y) in (-radius..=radius).flat_map(|z| heights.clone().map(move |y| (z, y))) {
                let levels = self.light.levels(BlockPos::new(around.x + x, y, around.z + z)).unwrap_or_default();
                lit.iter_mut().zip(levels).for_each(|(lit, level)| *lit += usize::from(level > 0));
            }
        }
        lit
    }
}

/// terrain42 as columns.
fn terrain_columns() -> Vec<Column> {
    let blocks = terrain::generate();
    let column = |x: i64, z: i64| {
        let mut column = Column::new(ColumnPos::new(x, z));
        for y in 0..terrain::EDGE {
            let chunk = terrain::chunk(&blocks, ChunkPos::new(x, y, z));
            if chunk.uniform_block() != Some(BlockId::AIR) {
                column.set_chunk(y, Arc::new(chunk));
            }
        }
        column
    };
    (0..terrain::EDGE).flat_map(|x| (0..terrain::EDGE).map(move |z| (x, z))).map(|(x, z)| column(x, z)).collect()
}

/// Columns of air, five by five, around the block x = 8, z = 8.
fn air() -> Vec<Column> {
    (-2..=2).flat_map(|x| (-2..=2).map(move |z| Column::new(ColumnPos::new(x, z)))).collect()
}

struct Line(String, String, &'static str);

/// The median and the 99th percentile of some durations, in microseconds.
fn percentiles(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    (at(0.5), at(0.99))
}

/// L1: all columns, each alone, from scratch.
fn from_scratch(lines: &mut Vec<Line>, name: &str, table: &LightTable, columns: &[Column], heights: Range<i64>) {
    let mut criterion = measure::criterion(Duration::from_secs(2), Duration::from_millis(300));
    let (loaded, open_from) = (HeightSet::from(heights.clone()), heights.end);
    let runs = measure::runs(&mut criterion, "L1", name, columns.len(), || {
        let light = |column| drop(black_box(ColumnLight::new(table, black_box(column), &loaded, open_from)));
        timed(|| columns.iter().for_each(light)).0
    });
    criterion.final_summary();
    if let Some(median) = measure::median(&runs) {
        let found = format!("{:.0} a second ({:.0} us each)", 1e9 / median, median / 1e3);
        lines.push(Line(format!("L1 {name}"), found, "3,000 a second"));
    }
}

/// L1: the land around Jacksboro, 384 blocks high, with caves and a forest.
fn jacksboro(lines: &mut Vec<Line>) {
    let mut registry = BlockRegistry::new();
    registry.register_basic_blocks();
    let ground = Heightmap::open("assets/jacksboro_fault_dem.png")
        .and_then(|map| map.with_blocks_per_sample([4.0, 5.0]))
        .and_then(|map| map.with_blocks_per_unit(1.0 / 6.0))
        .expect("the map that comes with the project");
    let trees = Placement::seeded(2).with_spacing(4).with_soil(["terrane:grass"]);
    let forest = Features::new(trees).with(Tree::round(), 1).expect("trees fit");
    let land = Layers::new(ground).with(Caves::seeded(6)).with(forest);
    let columns: Vec<Column> = (0..24_i64)
        .flat_map(|x| (0..24).map(move |z| ColumnPos::new(x, z)))
        .map(|column| land.generate(&GenerateRequest { column, heights: -64..320, blocks: &registry }).expect("ground"))
        .collect();
    from_scratch(lines, "Jacksboro, caves, trees", &LightTable::new(&registry), &columns, -4..20);
}

/// Times one block placed and taken at each place.
fn place_and_take(
    lines: &mut Vec<Line>,
    world: &mut World,
    name: &str,
    goal: &'static str,
    places: &[BlockPos],
    block: BlockId,
) {
    let (mut placed, mut taken) = (Vec::new(), Vec::new());
    for place in places.iter().chain(places) {
        let before = world.block(*place);
        placed.push(world.set(*place, block));
        taken.push(world.set(*place, before));
    }
    // The first half warms up.
    for (part, times) in [("placed", &mut placed), ("taken", &mut taken)] {
        let (median, high) = percentiles(&mut times[places.len()..]);
        lines.push(Line(format!("L2 {name}, {part}"), format!("p50 {median:.1} us, p99 {high:.1} us"), goal));
    }
}

/// L2: edits of a few blocks in terrain42.
fn edits_of_terrain(lines: &mut Vec<Line>, world: &mut World, torch: BlockId) {
    let spread = |index: i64, salt: i64| 32 + (index * 7919 + salt * 104_729).rem_euclid(320);
    let surface = (0..500).filter_map(|index| {
        let pos = BlockPos::new(spread(index, 1), 0, spread(index, 2));
        let [x, _, z] = pos.in_chunk();
        Some(BlockPos { y: world.columns[&pos.column()].surface(x, z)? + 1, ..pos })
    });
    let surface: Vec<_> = surface.collect();
    let caves = (0..100_000).map(|index| BlockPos::new(spread(index, 3), 20 + index.rem_euclid(50), spread(index, 4)));
    let is_cave = |pos: &BlockPos| world.block(*pos) == BlockId::AIR && world.light.levels(*pos) == Some([0, 0]);
    let caves: Vec<_> = caves.filter(is_cave).take(500).collect();
    place_and_take(lines, world, "torch on the surface", "p99 30 us", &surface, torch);
    place_and_take(lines, world, "torch in a cave", "p99 30 us", &caves, torch);
}

/// L2: a lamp in open dark air, which lights 4,089 cells.
fn open_air(lines: &mut Vec<Line>, table: &LightTable, lamp: BlockId) {
    let mut world = World::new(table, air(), 5, i64::MAX);
    let places: Vec<_> =
        (0..500).map(|index| BlockPos::new(index % 16, 32 + index / 16 % 16, index * 7 % 16)).collect();
    world.set(places[0], lamp);
    assert_eq!(world.lit_cells(places[0], 20, 0..80), [0, 4089]);
    world.set(places[0], BlockId::AIR);
    place_and_take(lines, &mut world, "lamp in open dark air", "p99 60 us", &places, lamp);
}

/// L2: a hole in a platform at y = 254 over bedrock.
fn platform(lines: &mut Vec<Line>, table: &LightTable, stone: BlockId, bedrock: BlockId) {
    let mut columns = air();
    for column in &mut columns {
        let pos = column.pos();
        for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (x, z))) {
            column.set_block(pos.min_block(0).offset(x, 0, z), bedrock);
            column.set_block(pos.min_block(254).offset(x, 0, z), stone);
        }
    }
    let mut world = World::new(table, columns, 16, 16);
    let place = BlockPos::new(8, 254, 8);
    let [before, _] = world.lit_cells(place, 20, 0..254);
    world.set(place, BlockId::AIR);
    let cells = world.lit_cells(place, 20, 0..254)[0] - before;
    world.set(place, stone);
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..100 {
        times[0].push(world.set(place, BlockId::AIR));
        times[1].push(world.set(place, stone));
    }
    for (part, times) in ["opened", "closed"].iter().zip(&mut times) {
        let (median, high) = percentiles(times);
        let found = format!(
            "p50 {median:.0} us, p99 {high:.0} us, {:.2} ns for each of {cells} cells",
            median * 1e3 / cells as f64
        );
        lines.push(Line(format!("L2 hole in a platform, {part}"), found, "1 ms"));
    }
}

/// L2: a roof of 64 x 64 blocks over terrain42, built and removed at once.
fn roof(lines: &mut Vec<Line>, world: &mut World, stone: BlockId) {
    let blocks: Vec<_> = (160..224).flat_map(|x| (160..224).map(move |z| BlockPos::new(x, 260, z))).collect();
    for (part, block) in [("built", stone), ("removed", BlockId::AIR)] {
        let edit = |pos: &BlockPos| {
            let old = world.columns.get_mut(&pos.column()).map_or(block, |column| column.set_block(*pos, block));
            (*pos, old)
        };
        let edits: Vec<_> = blocks.iter().map(edit).collect();
        let (time, ()) = timed(|| {
            edits.iter().for_each(|(pos, old)| world.light.block_changed(&world.table, *pos, *old, block));
            world.light.advance(&world.table, &Ground(&world.columns), ALL);
        });
        let found = format!("{:.2} ms", time.as_secs_f64() * 1e3);
        lines.push(Line(format!("L2 roof of 64 x 64, {part}"), found, ""));
    }
}

/// L3: the memory of light beside that of the chunks.
fn memory(lines: &mut Vec<Line>, world: &World) {
    let chunks: usize = world.columns.values().map(Column::heap_bytes).sum();
    let light = world.light.heap_bytes();
    let found = format!(
        "{:.1} MB beside {:.1} MB, {:.0} %",
        light as f64 / 1e6,
        chunks as f64 / 1e6,
        light as f64 / chunks as f64 * 100.0
    );
    lines.push(Line("L3 memory on terrain42".into(), found, "25 %"));
}

/// L4: how much of the light of terrain42 a store would hold if it held what each column alone does not give.
fn beyond_columns(lines: &mut Vec<Line>, world: &World, alone: &[ColumnLight]) {
    let (mut chunks, mut bytes) = (0, 0);
    for alone in alone {
        let joined = world.light.column(alone.pos()).expect("it was inserted");
        for ((_, joined), _) in joined.chunks().zip(alone.chunks()).filter(|(joined, alone)| joined != alone) {
            chunks += 1;
            bytes += joined.heap_bytes();
        }
    }
    let (share, each) = (chunks as f64 / alone.len() as f64, bytes as f64 / alone.len() as f64);
    let found = format!("{share:.1} chunks, {:.1} KiB a column before compression", each / 1024.0);
    lines.push(Line("L4 light that a column alone does not give".into(), found, "0 bytes stored"));
}

fn main() {
    let (registry, [torch, lamp]) = registry();
    let table = LightTable::new(&registry);
    let [stone, bedrock] =
        ["minecraft:stone", "minecraft:bedrock"].map(|name| registry.id(name).expect("it is registered"));
    let columns = terrain_columns();
    let mut lines = Vec::new();
    from_scratch(&mut lines, "terrain42", &table, &columns, 0..terrain::EDGE);
    jacksboro(&mut lines);
    let count = columns.len();
    let heights = HeightSet::from(0..terrain::EDGE);
    let alone: Vec<_> =
        columns.iter().map(|column| ColumnLight::new(&table, column, &heights, terrain::EDGE)).collect();
    let (time, mut world) = timed(|| World::new(&table, columns, terrain::EDGE, terrain::EDGE));
    let each = time.as_secs_f64() * 1e6 / count as f64;
    lines.push(Line("columns from scratch, inserted and joined".into(), format!("{each:.0} us each"), ""));
    memory(&mut lines, &world);
    beyond_columns(&mut lines, &world, &alone);
    edits_of_terrain(&mut lines, &mut world, torch);
    open_air(&mut lines, &table, lamp);
    platform(&mut lines, &table, stone, bedrock);
    roof(&mut lines, &mut world, stone);
    println!("\n{:<44} {:<52} goal", "workload", "found");
    for Line(name, found, goal) in &lines {
        println!("{name:<44} {found:<52} {goal}");
    }
}
