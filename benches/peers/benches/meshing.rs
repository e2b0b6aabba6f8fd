//! Workload M1: the quads of real ground and of schematics, beside three meshers for Bevy.
//! `cargo bench --manifest-path benches/peers/Cargo.toml --bench meshing -- [SCHEMATIC..]`.
//!
//! All meshers get the same blocks, all of them opaque cubes. Times are per cube of 62 blocks that has a visible face, the size of
//! binary-greedy-meshing; the other meshers work on chunks of 16. Our time includes looking up the chunks around, and unpacking them.

use bevy::asset::AssetPlugin;
use bevy::prelude::*;
use bevy_terrane::block::{BlockRegistry, BlockType};
use bevy_terrane::chunk::{Chunk, Column};
use bevy_terrane::generation::{GenerateError, GenerateRequest, Generator, GeneratorIdentity, Heightmap};
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::BlockTypes;
use bevy_terrane::snapshot::schematic::{ReadOptions, Schematic};
use bevy_terrane::testing::{chunk_quads, headless, spawn_dimension, start};
use bevy_terrane::view::PublishedColumns;
use terrane_render::ChunkRenderPlugin;
use binary_greedy_meshing as bgm;
use block_mesh::ndshape::{ConstShape, ConstShape3u32};
use block_mesh::{GreedyQuadsBuffer, MergeVoxel, RIGHT_HANDED_Y_UP_CONFIG, Voxel, VoxelVisibility, greedy_quads};
use block_mesh_bgm::{BinaryGreedyQuadsBuffer, binary_greedy_quads_ao_safe};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
/// The edge of a cube of binary-greedy-meshing.
const CUBE: usize = 62;
/// An edge that is a multiple of both 16 and 62.
const EDGE: i64 = 496;

fn main() {
    let map = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/jacksboro_fault_dem.png");
    let land = Heightmap::open(&map).expect("the project's height map");
    let surface = land.surface_heights();
    compare("Jacksboro", land, *surface.start()..*surface.end() + 1, [EDGE; 2]);
    for file in std::env::args().skip(1).filter(|argument| !argument.starts_with('-')) {
        let source = std::fs::File::open(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let (schematic, _) =
            Schematic::read(source, &ReadOptions::default()).unwrap_or_else(|error| panic!("{file}: {error}"));
        let [width, height, length] = schematic.size().map(i64::from);
        let name = Path::new(&file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        compare(&name, Built(Arc::new(schematic)), 0..height, [width, length]);
    }
}

/// A schematic at the origin, whose states are blocks of their own.
#[derive(Clone)]
struct Built(Arc<Schematic>);

impl Generator for Built {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("bench:built", 1, 0)
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let size = self.0.size().map(i64::from);
        let mut column = Column::new(request.column);
        for y in request.heights.start.div_euclid(16)..=(request.heights.end - 1).div_euclid(16) {
            let corner = request.column.chunk(y).min_block();
            let chunk = Chunk::from_fn(|[x, y, z]| {
                let place = [corner.x + x as i64, corner.y + y as i64, corner.z + z as i64];
                let is_inside = (0..3).all(|axis| (0..size[axis]).contains(&place[axis]));
                let state = if is_inside { self.0.state(place.map(|axis| axis as u32)) } else { None };
                state.and_then(|state| request.blocks.id(&name(state))).unwrap_or(BlockId::AIR)
            });
            column.set_chunk(y, Arc::new(chunk));
        }
        Ok(column)
    }
}

/// The block of a state; none of air.
fn name(state: &str) -> String {
    let is_air = matches!(state, "minecraft:air" | "minecraft:cave_air" | "minecraft:void_air");
    if is_air { String::new() } else { format!("bench:{}", hash(state)) }
}

fn hash(state: &str) -> u64 {
    state.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

trait Ground: Generator + Clone {
    /// Registers the blocks that a game does not have.
    fn register(&self, _app: &mut App) {}
}

impl Ground for Heightmap {}

impl Ground for Built {
    fn register(&self, app: &mut App) {
        let size = self.0.size();
        let cells = (0..size[0]).flat_map(|x| (0..size[1]).flat_map(move |y| (0..size[2]).map(move |z| [x, y, z])));
        let states: BTreeSet<&str> = cells.filter_map(|place| self.0.state(place)).collect();
        let names: BTreeSet<String> = states.into_iter().map(name).filter(|name| !name.is_empty()).collect();
        for (number, name) in names.into_iter().enumerate() {
            let color = (number as u32).wrapping_mul(0x9E37_79B9).to_le_bytes();
            app.register_block(BlockType::new(name).with_color([color[0], color[1], color[2]]));
        }
    }
}

/// A world in which all of the ground is published.
fn world(
    ground: &impl Ground,
    heights: &Range<i64>,
    [width, length]: [i64; 2],
    [ambient_occlusion, has_light]: [bool; 2],
) -> (App, DimensionId) {
    let light = if has_light { 0.1 } else { 0.0 };
    let mut app = headless(TerranePlugin { light, ..TerranePlugin::in_memory() });
    app.add_plugins((AssetPlugin::default(), ChunkRenderPlugin { ambient_occlusion, ..default() }));
    app.init_asset::<Mesh>().init_asset::<StandardMaterial>();
    ground.register(&mut app);
    let dimension = spawn_dimension(&mut app, Dimension::new("ground", ground.clone()).with_height(heights.clone()));
    let middle = Transform::from_xyz(width as f32 / 2.0, 0.0, length as f32 / 2.0);
    let radius = (width.max(length) as f32 / 32.0 * 1.5).ceil() as u32 + 2;
    app.world_mut().spawn((Viewer::in_dimension(dimension).with_radius(radius), middle));
    start(&mut app);
    let began = Instant::now();
    let wanted = columns([width, length]);
    loop {
        app.update();
        let published = app.world().resource::<PublishedColumns>();
        if wanted.iter().all(|column| published.column(dimension, *column).is_some()) && chunk_mesh_is_done(&app) {
            return (app, dimension);
        }
        assert!(began.elapsed() < Duration::from_secs(600), "the ground did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn chunk_mesh_is_done(app: &App) -> bool {
    app.world().resource::<terrane_render::ChunkMeshProgress>().is_done()
}

/// The columns of the ground.
fn columns([width, length]: [i64; 2]) -> Vec<ColumnPos> {
    let edge = |blocks: i64| 0..(blocks + 15).div_euclid(16);
    edge(width).flat_map(|x| edge(length).map(move |z| ColumnPos::new(x, z))).collect()
}

/// The blocks of the ground with one layer of what is around it, by x, y and z.
struct Blocks {
    of: Vec<u16>,
    size: [usize; 3],
}

impl Blocks {
    fn new(app: &App, dimension: DimensionId, heights: &Range<i64>, [width, length]: [i64; 2]) -> Self {
        let published = app.world().resource::<PublishedColumns>();
        let size = [width as usize + 2, (heights.end - heights.start) as usize + 2, length as usize + 2];
        let mut of = vec![0; size.iter().product()];
        for (x, z) in (0..size[0]).flat_map(|x| (0..size[2]).map(move |z| (x, z))) {
            let place = |y: usize| BlockPos::new(x as i64 - 1, heights.start + y as i64 - 1, z as i64 - 1);
            let Some(column) = published.column(dimension, place(0).column()) else { continue };
            for y in 0..size[1] {
                // As ours, others see solid ground below the world.
                let block = if y == 0 { 1 } else { column.block(place(y)).index() };
                of[(x * size[1] + y) * size[2] + z] = block as u16;
            }
        }
        Self { of, size }
    }

    /// The block at a place counted from the corner of the ground, -1 for the layer around it.
    fn at(&self, place: [usize; 3]) -> u16 {
        let [x, y, z] = place;
        if (0..3).any(|axis| place[axis] >= self.size[axis]) {
            0
        } else {
            self.of[(x * self.size[1] + y) * self.size[2] + z]
        }
    }

    /// The corners of cubes with this edge that cover the ground, each with its padded blocks.
    fn cubes<T: Copy + Default>(
        &self,
        edge: usize,
        index: impl Fn([usize; 3]) -> usize,
        as_cell: impl Fn(u16) -> T,
    ) -> Vec<Vec<T>> {
        let counts = self.size.map(|size| (size - 2).div_ceil(edge));
        let corners =
            (0..counts[0]).flat_map(|x| (0..counts[1]).flat_map(move |y| (0..counts[2]).map(move |z| [x, y, z])));
        let padded = edge + 2;
        let cells = |corner: [usize; 3]| {
            let mut cells = vec![T::default(); padded.pow(3)];
            for [x, y, z] in
                (0..padded).flat_map(|x| (0..padded).flat_map(move |y| (0..padded).map(move |z| [x, y, z])))
            {
                let place = [corner[0] * edge + x, corner[1] * edge + y, corner[2] * edge + z];
                cells[index([x, y, z])] = as_cell(self.at(place));
            }
            cells
        };
        corners.map(cells).collect()
    }
}

/// A block for the meshers of the family of block-mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cell(u32);

impl Voxel for Cell {
    fn get_visibility(&self) -> VoxelVisibility {
        if self.0 == 0 { VoxelVisibility::Empty } else { VoxelVisibility::Opaque }
    }
}

impl MergeVoxel for Cell {
    type MergeValue = u32;

    fn merge_value(&self) -> u32 {
        self.0
    }
}

/// A mesher's times and quads.
struct Mesher<'a> {
    name: &'static str,
    mesh: Box<dyn FnMut() -> usize + 'a>,
    times: Vec<f64>,
    quads: usize,
}

fn compare(name: &str, ground: impl Ground, heights: Range<i64>, size: [i64; 2]) {
    let (plain, dimension) = world(&ground, &heights, size, [false; 2]);
    let (shaded, _) = world(&ground, &heights, size, [true, false]);
    let (lit, _) = world(&ground, &heights, size, [true; 2]);
    let blocks = Blocks::new(&plain, dimension, &heights, size);
    assert!(plain.world().resource::<BlockTypes>().0.len() < usize::from(u16::MAX));

    let cubes = cubes::<CUBE>(&blocks);
    let count = cubes.len();

    type Small = ConstShape3u32<18, 18, 18>;
    type Large = ConstShape3u32<64, 64, 64>;
    let linear = |edge: u32| move |[x, y, z]: [usize; 3]| x + (y + z * edge as usize) * edge as usize;
    let cell = |block: u16| Cell(block.into());
    let small: Vec<Vec<Cell>> =
        blocks.cubes(16, linear(18), cell).into_iter().filter(|cells| is_mixed(cells)).collect();
    let large: Vec<Vec<Cell>> =
        blocks.cubes(CUBE, linear(64), cell).into_iter().filter(|cells| is_mixed(cells)).collect();
    assert_eq!((Small::USIZE, Large::USIZE), (18usize.pow(3), 64usize.pow(3)));
    let faces = &RIGHT_HANDED_Y_UP_CONFIG.faces;
    let chunks: Vec<ChunkPos> = {
        let ys = heights.start.div_euclid(16)..(heights.end + 15).div_euclid(16);
        columns(size).into_iter().flat_map(|column| ys.clone().map(move |y| column.chunk(y))).collect()
    };
    let ours = |app: App| {
        let chunks = chunks.clone();
        move || chunk_quads(app.world(), dimension, chunks.iter().copied()).into_iter().flatten().sum()
    };

    let (cubes_of_32, cubes_of_16) = (self::cubes::<32>(&blocks), self::cubes::<16>(&blocks));
    let (mut whole, no_mask) = (bgm::Mesher::<CUBE>::new(), vec![0; bgm::Mesher::<CUBE>::CS_P2]);
    let mut greedy = GreedyQuadsBuffer::new(Large::USIZE);
    let mut binary = BinaryGreedyQuadsBuffer::default();
    let mut meshers = [
        Mesher::new("bevy_terrane, plain", ours(plain)),
        Mesher::new("bevy_terrane, with AO", ours(shaded)),
        Mesher::new("bevy_terrane, with AO and light", ours(lit)),
        Mesher::new("binary-greedy-meshing, masks given", with_masks::<CUBE>(&cubes)),
        Mesher::new("binary-greedy-meshing, masks made", || {
            let mesh = |(cube, _): &Cube| {
                let mask = bgm::compute_opaque_mask::<CUBE>(black_box(cube), &BTreeSet::new());
                whole.clear();
                whole.fast_mesh(cube, &mask, &no_mask);
                total(&whole.quads)
            };
            cubes.iter().map(mesh).sum()
        }),
        Mesher::new("the same by 32, masks given", with_masks::<32>(&cubes_of_32)),
        Mesher::new("the same by 16, masks given", with_masks::<16>(&cubes_of_16)),
        Mesher::new("block-mesh-bgm, AO-safe, by 16", || {
            let mesh = |cells: &Vec<Cell>| {
                binary_greedy_quads_ao_safe(black_box(cells), &Small {}, [0; 3], [17; 3], faces, &mut binary);
                binary.quads.num_quads()
            };
            small.iter().map(mesh).sum()
        }),
        Mesher::new("block-mesh, by 62", || {
            let mesh = |cells: &Vec<Cell>| {
                greedy_quads(black_box(cells), &Large {}, [0; 3], [63; 3], faces, &mut greedy);
                greedy.quads.num_quads()
            };
            large.iter().map(mesh).sum()
        }),
    ];
    for _ in 0..ROUNDS {
        meshers.iter_mut().for_each(Mesher::measure);
    }
    println!(
        "M1 {name}: {} x {} x {} blocks, {count} cubes of 62 with visible faces",
        size[0],
        heights.end - heights.start,
        size[1]
    );
    let peer = meshers[2].median();
    for mesher in &meshers {
        let (time, quads) = (mesher.median() / count as f64, mesher.quads as f64 / count as f64);
        println!("   {:<36} {time:>9.1} us {quads:>9.0} quads  {:>6.2} x", mesher.name, mesher.median() / peer);
    }
}

/// A padded cube for binary-greedy-meshing, and its mask of opaque blocks.
type Cube = (Vec<u16>, Box<[u64]>);

fn total(quads: &[Vec<bgm::Quad>; 6]) -> usize {
    quads.iter().map(Vec::len).sum()
}

/// The cubes with visible faces.
fn cubes<const EDGE: usize>(blocks: &Blocks) -> Vec<Cube> {
    let index = |[x, y, z]: [usize; 3]| (z * (EDGE + 2) + x) * (EDGE + 2) + y;
    let cubes = blocks.cubes(EDGE, index, |block| block).into_iter().map(|cube| {
        let mask = bgm::compute_opaque_mask::<EDGE>(&cube, &BTreeSet::new());
        vec![(cube, mask)]
    });
    cubes.filter(|cube| with_masks::<EDGE>(cube)() > 0).flatten().collect()
}

/// Meshes cubes whose masks are known.
fn with_masks<const EDGE: usize>(cubes: &[Cube]) -> impl FnMut() -> usize + '_ {
    let (mut mesher, no_mask) = (bgm::Mesher::<EDGE>::new(), vec![0; bgm::Mesher::<EDGE>::CS_P2]);
    move || {
        let mesh = |(cube, mask): &Cube| {
            mesher.clear();
            mesher.fast_mesh(black_box(cube), black_box(mask), &no_mask);
            total(&mesher.quads)
        };
        cubes.iter().map(mesh).sum()
    }
}

fn is_mixed(cells: &[Cell]) -> bool {
    cells.iter().any(|cell| cell.0 == 0) && cells.iter().any(|cell| cell.0 != 0)
}

impl<'a> Mesher<'a> {
    fn new(name: &'static str, mesh: impl FnMut() -> usize + 'a) -> Self {
        Self { name, mesh: Box::new(mesh), times: Vec::new(), quads: 0 }
    }

    fn measure(&mut self) {
        let began = Instant::now();
        self.quads = (self.mesh)();
        self.times.push(began.elapsed().as_secs_f64() * 1e6);
    }

    fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    }
}
