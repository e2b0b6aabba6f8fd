//! A world with light, and a slow flood fill that says what the light should be.

use crate::block::{BlockId, BlockRegistry, BlockShape, BlockType};
use crate::chunk::{Chunk, Column};
use crate::light::{ColumnLight, LightBlocks, LightMap, LightTable};
use crate::space::{BlockPos, ChunkPos, ColumnPos, Face, HeightSet, Turn};
use std::collections::BTreeMap;
use std::ops::Range;

/// The block types of the tests.
pub struct Blocks {
    pub registry: BlockRegistry,
    pub stone: BlockId,
    pub water: BlockId,
    /// An opaque cube that shines with 15.
    pub lamp: BlockId,
    pub slab: BlockId,
    pub stairs: BlockId,
    /// Shines with 10 and has a closed bottom.
    pub glow_slab: BlockId,
    /// All types, air included, with some shapes turned.
    pub all: Vec<BlockId>,
}

impl Blocks {
    pub fn new() -> Self {
        let mut registry = BlockRegistry::new();
        registry.register_basic_blocks();
        let mut add = |block: BlockType| registry.register(block).unwrap();
        let glass = add(BlockType::new("test:glass").transparent());
        let leaves = add(BlockType::new("test:leaves").transparent().with_attenuation(1));
        let lamp = add(BlockType::new("test:lamp").with_light(15));
        let torch = add(BlockType::new("test:torch").with_shape(BlockShape::torch()).with_light(14));
        let jelly = add(BlockType::new("test:jelly").transparent().with_attenuation(4).with_light(7));
        let slab = add(BlockType::new("test:slab").with_shape(BlockShape::slab()));
        let stairs = add(BlockType::new("test:stairs").with_shape(BlockShape::stairs()));
        let glow_slab = add(BlockType::new("test:glow_slab").with_shape(BlockShape::slab()).with_light(10));
        let top_slab = add(BlockType::new("test:top_slab").with_shape(BlockShape::slab().upside_down()));
        let east_stairs = BlockShape::stairs().turned(Turn::quarters(1)).upside_down();
        let wet_stairs = add(BlockType::new("test:wet_stairs").with_shape(east_stairs).with_attenuation(2));
        let (stone, water) = (registry.id("terrane:stone").unwrap(), registry.id("terrane:water").unwrap());
        let special = [glass, water, leaves, lamp, torch, jelly, slab, stairs, glow_slab, top_slab, wet_stairs];
        let all = [BlockId::AIR, stone].into_iter().chain(special).collect();
        Self { registry, stone, water, lamp, slab, stairs, glow_slab, all }
    }
}

/// Columns of blocks that are loaded or not, with their light.
pub struct World {
    pub blocks: Blocks,
    pub table: LightTable,
    heights: Range<i64>,
    open_from: i64,
    pub columns: BTreeMap<ColumnPos, Column>,
    /// The heights that the light map has.
    pub loaded: BTreeMap<ColumnPos, HeightSet>,
    pub light: LightMap,
    expected: Expected,
}

pub struct Ground<'a>(pub &'a BTreeMap<ColumnPos, Column>);

impl LightBlocks for Ground<'_> {
    fn chunk(&self, pos: ChunkPos) -> Option<&Chunk> {
        self.0.get(&pos.column())?.chunk(pos.y).map(AsRef::as_ref)
    }
}

impl World {
    pub fn new(blocks: Blocks, heights: Range<i64>, open_from: i64) -> Self {
        let table = LightTable::new(&blocks.registry);
        let expected = Expected { properties: properties(&blocks.registry), ..Expected::default() };
        let (columns, loaded, light) = (BTreeMap::new(), BTreeMap::new(), LightMap::new());
        Self { blocks, table, heights, open_from, columns, loaded, light, expected }
    }

    pub fn column_mut(&mut self, pos: ColumnPos) -> &mut Column {
        self.columns.entry(pos).or_insert_with(|| Column::new(pos))
    }

    /// Loads a whole column, with its light from scratch.
    pub fn load(&mut self, pos: ColumnPos) {
        self.load_heights(pos, HeightSet::from(self.heights.clone()));
    }

    pub fn load_heights(&mut self, pos: ColumnPos, heights: HeightSet) {
        let light = self.light_alone(pos, &heights);
        self.light.insert(light);
        self.loaded.entry(pos).or_default().insert_all(&heights);
    }

    pub fn light_alone(&mut self, pos: ColumnPos, heights: &HeightSet) -> ColumnLight {
        self.column_mut(pos);
        ColumnLight::new(&self.table, &self.columns[&pos], heights, self.open_from)
    }

    pub fn unload(&mut self, pos: ColumnPos, heights: &HeightSet) {
        if let Some(loaded) = self.loaded.get_mut(&pos) {
            loaded.remove_all(heights);
        }
        self.light.remove_heights(pos, heights);
    }

    /// Sets a block, and announces it.
    pub fn set(&mut self, pos: BlockPos, block: BlockId) {
        let old = self.column_mut(pos.column()).set_block(pos, block);
        self.light.block_changed(&self.table, pos, old, block);
    }

    pub fn advance(&mut self, steps: usize) -> bool {
        self.light.advance(&self.table, &Ground(&self.columns), steps)
    }

    /// Brings the light up to date and compares all of it with the flood fill.
    pub fn settle(&mut self) {
        assert!(self.advance(usize::MAX) && self.light.is_settled());
        self.check();
    }

    pub fn sky(&self, pos: BlockPos) -> u8 {
        self.light.levels(pos).unwrap()[0]
    }

    pub fn block_light(&self, pos: BlockPos) -> u8 {
        self.light.levels(pos).unwrap()[1]
    }

    /// Compares the light of all loaded chunks with the flood fill.
    pub fn check(&mut self) {
        self.expected.fill(&self.columns, &self.loaded, self.open_from);
        for pos in chunks(&self.loaded) {
            let light = self.light.chunk(pos).expect("it is loaded");
            let levels = [(&light.sky, &self.expected.sky), (&light.block, &self.expected.block)];
            for ((found, expected), kind) in levels.into_iter().zip(["sky", "block"]) {
                for (x, y) in (0..16).flat_map(|x| (0..16).map(move |y| (x, y))) {
                    let row = self.expected.index(pos, [x, y, 0]);
                    let nibbles = (0..16).map(|z| u64::from(expected[row + z]) << (4 * z)).sum::<u64>();
                    let found = found.row(x, y);
                    assert_eq!(found, nibbles, "{kind} light from {} on: {found:x} {nibbles:x}", pos.block([x, y, 0]));
                }
            }
        }
    }
}

fn chunks(loaded: &BTreeMap<ColumnPos, HeightSet>) -> impl Iterator<Item = ChunkPos> {
    loaded.iter().flat_map(|(pos, heights)| heights.iter().map(move |y| pos.chunk(y)))
}

/// The effect of a block on light: attenuation, own light, closed faces by the number of the face.
#[derive(Clone, Copy)]
struct Properties {
    attenuation: u8,
    light: u8,
    closed: [bool; 6],
}

/// The number of a block that is not there.
const MISSING: u8 = u8::MAX;

/// The properties of all blocks by their number.
fn properties(registry: &BlockRegistry) -> Vec<Properties> {
    let of = |block: &BlockType| Properties {
        attenuation: block.attenuation(),
        light: block.light(),
        closed: Face::ALL.map(|face| block.closed_faces().contains(face)),
    };
    let mut all = vec![Properties { attenuation: 15, light: 0, closed: [true; 6] }; 256];
    (0..registry.len()).for_each(|id| all[id] = of(registry.block(BlockId::new(id as u32))));
    all
}

/// The flood fill: slow, and as the rules say. All cells are in one box, with a margin of missing blocks.
#[derive(Default)]
struct Expected {
    properties: Vec<Properties>,
    /// The chunk in the lowest corner.
    min: ChunkPos,
    /// The distance of neighboring cells on each axis.
    strides: [usize; 3],
    blocks: Vec<u8>,
    sky: Vec<u8>,
    block: Vec<u8>,
    /// Cells to spread from, by their level.
    queues: [Vec<usize>; 16],
}

impl Expected {
    fn index(&self, pos: ChunkPos, [x, y, z]: [usize; 3]) -> usize {
        let chunk = [pos.x - self.min.x, pos.y - self.min.y, pos.z - self.min.z].map(|along| along as usize * 16 + 1);
        (chunk[0] + x) * self.strides[0] + (chunk[1] + y) * self.strides[1] + chunk[2] + z
    }

    fn fill(&mut self, columns: &BTreeMap<ColumnPos, Column>, loaded: &BTreeMap<ColumnPos, HeightSet>, open_from: i64) {
        let ends = |axis: fn(ChunkPos) -> i64| {
            let (min, max) = (chunks(loaded).map(axis).min(), chunks(loaded).map(axis).max());
            (min.unwrap_or(0), max.unwrap_or(0))
        };
        let [x, y, z] = [ends(|pos| pos.x), ends(|pos| pos.y), ends(|pos| pos.z)];
        let size = [x, y, z].map(|(min, max)| (max - min + 1) as usize * 16 + 2);
        self.min = ChunkPos::new(x.0, y.0, z.0);
        self.strides = [size[1] * size[2], size[2], 1];
        self.blocks.clear();
        self.blocks.resize(size.iter().product(), MISSING);
        let mut blocks = [BlockId::AIR; 4096];
        for pos in chunks(loaded) {
            match columns[&pos.column()].chunk(pos.y) {
                Some(chunk) => chunk.copy_into(&mut blocks),
                None => blocks.fill(BlockId::AIR),
            }
            for (row, blocks) in blocks.chunks_exact(16).enumerate() {
                let first = self.index(pos, [row / 16, row % 16, 0]);
                self.blocks[first..first + 16].iter_mut().zip(blocks).for_each(|(to, from)| *to = from.index() as u8);
            }
        }
        self.fill_sky(loaded, open_from);
        self.fill_block();
    }

    fn fill_sky(&mut self, loaded: &BTreeMap<ColumnPos, HeightSet>, open_from: i64) {
        let mut sky = vec![0; self.blocks.len()];
        let is_top = |pos: &ChunkPos| !loaded[&pos.column()].contains(pos.y + 1) && pos.y + 1 >= open_from;
        for pos in chunks(loaded).filter(is_top) {
            for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (x, z))) {
                let cell = self.index(pos, [x, 15, z]);
                let block = self.properties[usize::from(self.blocks[cell])];
                if !block.closed[Face::Top as usize] {
                    sky[cell] = 15 - block.attenuation;
                }
                self.queues[usize::from(sky[cell])].push(cell);
            }
        }
        self.spread(&mut sky, true);
        self.sky = sky;
    }

    fn fill_block(&mut self) {
        let mut block: Vec<u8> = self.blocks.iter().map(|block| self.properties[usize::from(*block)].light).collect();
        for (cell, level) in block.iter().enumerate().filter(|(_, level)| **level > 0) {
            self.queues[usize::from(*level)].push(cell);
        }
        self.spread(&mut block, false);
        self.block = block;
    }

    fn spread(&mut self, levels: &mut [u8], is_sky: bool) {
        for level in (1..16_u8).rev() {
            while let Some(cell) = self.queues[usize::from(level)].pop() {
                if levels[cell] != level {
                    continue;
                }
                let own = &self.properties[usize::from(self.blocks[cell])];
                for face in Face::ALL {
                    let stride = self.strides[face.axis()];
                    let next = if face.is_positive() { cell + stride } else { cell - stride };
                    let other = &self.properties[usize::from(self.blocks[next])];
                    let leaves = !own.closed[face as usize] || (!is_sky && own.light > 0);
                    if !leaves || other.closed[face.opposite() as usize] {
                        continue;
                    }
                    let falls = is_sky && face == Face::Bottom && level == 15 && other.attenuation == 0;
                    let loss = if falls { 0 } else { other.attenuation.max(1) };
                    let reached = level.saturating_sub(loss);
                    if reached > levels[next] {
                        levels[next] = reached;
                        self.queues[usize::from(reached)].push(next);
                    }
                }
            }
        }
        self.queues[0].clear();
    }
}
