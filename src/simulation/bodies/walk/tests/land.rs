//! Land of blocks of all shapes, for walks.

use super::*;
use crate::block::tags::CLIMBABLE;
use crate::block::{BlockId, BlockRegistry, BlockShape, BlockType, ShapeBox};
use crate::chunk::Chunk;
use crate::space::{ChunkPos, Turn};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The edge of random land, in blocks.
const EDGE: i64 = 20;
/// Its height.
const HEIGHT: i64 = 14;

/// A kind of random land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Hills,
    Terraces,
    Lake,
    /// Stone, slabs, stairs, carpets, water and ladders, wherever. Water does not hang in the air.
    Garden,
    /// Blocks of all kinds, wherever.
    Rubble,
}

/// A few chunks. No others are loaded.
pub struct Land {
    pub types: BlockRegistry,
    pub table: BodyTable,
    chunks: BTreeMap<ChunkPos, Chunk>,
}

fn types() -> BlockRegistry {
    let mut types = BlockRegistry::new();
    let mut add = |name: &str, shape: BlockShape, change: fn(BlockType) -> BlockType| {
        types.register(change(BlockType::new(format!("land:{name}")).with_shape(shape))).unwrap();
    };
    let boxes = |min, max| BlockShape::from_boxes([ShapeBox::new(min, max)]).unwrap();
    add("stone", BlockShape::Cube, |block| block);
    add("upper_slab", BlockShape::slab().upside_down(), |block| block);
    for quarters in 0..4 {
        let turn = Turn::quarters(quarters);
        add(&format!("stairs{quarters}"), BlockShape::stairs().turned(turn), |block| block);
        let ladder = boxes([0, 0, 14], [16, 16, 16]).turned(turn);
        add(&format!("ladder{quarters}"), ladder, |block| block.with_tag(CLIMBABLE));
        add(&format!("panel{quarters}"), boxes([0, 0, 13], [16, 16, 16]).turned(turn), |block| block);
        add(&format!("half{quarters}"), boxes([0, 0, 8], [16, 16, 16]).turned(turn), |block| block);
    }
    for height in 1..16 {
        add(&format!("floor{height}"), boxes([0; 3], [16, height, 16]), |block| block);
    }
    for level in 1..=8 {
        // A path knows nothing of currents, against which not all walkers get on.
        add(&format!("water{level}"), BlockShape::liquid(level).unwrap(), |block| block.with_current(0));
    }
    add("vine", BlockShape::Cross, |block| block.with_tag(CLIMBABLE));
    add("fence", BlockShape::fence(), |block| block.with_collision_height(24));
    add("rail", BlockShape::fence(), |block| block);
    add("tall", BlockShape::Cube, |block| block.with_collision_height(29));
    add("pane", BlockShape::pane(), |block| block);
    types
}

impl Land {
    pub fn new() -> Self {
        let types = types();
        let chunks = (-1..3).flat_map(|x| (-1..3).flat_map(move |y| (-1..3).map(move |z| ChunkPos::new(x, y, z))));
        let chunks = chunks.map(|pos| (pos, Chunk::default())).collect();
        Self { table: BodyTable::new(&types), types, chunks }
    }

    pub fn chunk(&self, pos: ChunkPos) -> Option<Option<&Chunk>> {
        self.chunks.get(&pos).map(|chunk| (chunk.uniform_block() != Some(BlockId::AIR)).then_some(chunk))
    }

    pub fn set(&mut self, [x, y, z]: [i64; 3], name: &str) {
        let pos = BlockPos::new(x, y, z);
        let id = if name == "air" { BlockId::AIR } else { self.types.id(&format!("land:{name}")).unwrap() };
        self.chunks.get_mut(&pos.chunk()).unwrap().set_block(pos.in_chunk(), id);
    }

    pub fn fill(&mut self, min: [i64; 3], max: [i64; 3], name: &str) {
        for x in min[0]..=max[0] {
            for y in min[1]..=max[1] {
                for z in min[2]..=max[2] {
                    self.set([x, y, z], name);
                }
            }
        }
    }

    fn name(&self, pos: BlockPos) -> &str {
        let block = self.chunks.get(&pos.chunk()).map_or(BlockId::AIR, |chunk| chunk.block(pos.in_chunk()));
        self.types.block(block).name()
    }

    pub fn any_block(&self, random: &mut SplitMix64) -> BlockPos {
        let [x, y, z] = [EDGE, HEIGHT, EDGE].map(|edge| i64::from(random.below(edge as u32)));
        BlockPos::new(x, y, z)
    }

    /// The waypoints of a path, each with the blocks at it, from below it upwards.
    pub fn told(&self, path: &Path) -> String {
        let mut told = String::new();
        for (number, Waypoint { block, offset }) in path.waypoints.iter().enumerate() {
            let around = [-1, 0, 1, 2].map(|up| self.name(block.offset(0, up, 0)));
            writeln!(told, "{number}: {block} {} {around:?}", 16.0 * offset[1]).unwrap();
        }
        told
    }

    pub fn random(kind: Kind, random: &mut SplitMix64) -> Self {
        let mut land = Self::new();
        land.fill([0, 0, 0], [EDGE - 1, 0, EDGE - 1], "stone");
        match kind {
            Kind::Hills => land.add_hills(random),
            Kind::Terraces => land.add_terraces(random),
            Kind::Lake => land.add_lake(random),
            Kind::Garden => land.add_garden(random),
            Kind::Rubble => land.add_rubble(random),
        }
        land
    }

    fn any_name(random: &mut SplitMix64) -> String {
        let number = random.below(4);
        let (height, level) = (1 + random.below(15), 1 + random.below(8));
        match random.below(24) {
            0..4 => "stone".into(),
            4 => "upper_slab".into(),
            5..7 => format!("stairs{number}"),
            7..9 => format!("ladder{number}"),
            9 => format!("panel{number}"),
            10 => format!("half{number}"),
            11..14 => format!("floor{height}"),
            14 => "floor8".into(),
            15 => "vine".into(),
            16 => "fence".into(),
            17 => "rail".into(),
            18 => "tall".into(),
            19 => "pane".into(),
            20 => format!("water{level}"),
            _ => "water8".into(),
        }
    }

    fn add_rubble(&mut self, random: &mut SplitMix64) {
        self.scatter(random, |_, _, random| Self::any_name(random));
    }

    fn add_garden(&mut self, random: &mut SplitMix64) {
        self.scatter(random, |land, place, random| {
            let names = std::iter::repeat_with(|| Self::any_name(random));
            let others = ["panel", "half", "fence", "rail", "tall", "pane"];
            let mut names = names.filter(|name| !others.iter().any(|other| name.starts_with(other)));
            let hangs = land.name(place.offset(0, -1, 0)) == "terrane:air";
            names.find(|name| !(hangs && name.starts_with("water"))).unwrap()
        });
    }

    fn scatter(&mut self, random: &mut SplitMix64, name: impl Fn(&Self, BlockPos, &mut SplitMix64) -> String) {
        let thin = 2 + random.below(5);
        for (x, z) in columns() {
            for y in 1..HEIGHT {
                if random.below(thin) == 0 {
                    let name = name(self, BlockPos::new(x, y, z), random);
                    self.set([x, y, z], &name);
                }
            }
        }
    }

    /// Columns up to heights in sixteenths that change little from one to the next, with some blocks on top of them.
    fn add_hills(&mut self, random: &mut SplitMix64) {
        let steep = 1 + random.below(24);
        let mut heights = BTreeMap::new();
        for (x, z) in columns() {
            let [west, north] = [(x - 1, z), (x, z - 1)].map(|beside| heights.get(&beside).copied());
            let before = (west.or(north).unwrap_or(64) + north.or(west).unwrap_or(64)) / 2;
            let change = i64::from(random.below(2 * steep + 1)) - i64::from(steep);
            let height = i64::clamp(before + change, 16, 16 * 9);
            heights.insert((x, z), height);
            self.fill([x, 0, z], [x, height / 16 - 1, z], "stone");
            if height % 16 > 0 {
                self.set([x, height / 16, z], &format!("floor{}", height % 16));
            } else if random.below(8) == 0 {
                self.set([x, height / 16, z], &Self::any_name(random));
            }
        }
    }

    /// Terraces, with stairs, ladders and vines on their sides.
    fn add_terraces(&mut self, random: &mut SplitMix64) {
        let heights: Vec<i64> = (0..16).map(|_| i64::from(1 + random.below(7))).collect();
        let height = |x: i64, z: i64| heights[((x / 5).clamp(0, 3) * 4 + (z / 5).clamp(0, 3)) as usize];
        for (x, z) in columns() {
            let low = height(x, z);
            self.fill([x, 0, z], [x, low, z], "stone");
            // Ladders hang on a higher block to the south, west, north or east.
            let sides = [(0, 1), (-1, 0), (0, -1), (1, 0)];
            for (quarters, (dx, dz)) in sides.into_iter().enumerate() {
                let high = height(x + dx, z + dz);
                match random.below(4) {
                    0 if high > low => self.fill([x, low + 1, z], [x, high, z], &format!("ladder{quarters}")),
                    1 if high > low => self.fill([x, low + 1, z], [x, high, z], "vine"),
                    2 if high == low + 1 => self.set([x, low + 1, z], &format!("stairs{}", (quarters + 2) % 4)),
                    _ => {}
                }
            }
        }
    }

    /// A lake with islands, banks, tunnels and ceilings.
    fn add_lake(&mut self, random: &mut SplitMix64) {
        let surface = i64::from(3 + random.below(4));
        let top = format!("water{}", [8, 8, 7, 5, 3][random.below(5) as usize]);
        for (x, z) in columns() {
            let ground = i64::from(random.below(surface as u32 + 2));
            self.fill([x, 0, z], [x, ground, z], "stone");
            if ground < surface {
                self.fill([x, ground + 1, z], [x, surface, z], "water8");
                self.set([x, surface, z], &top);
            }
            match random.below(10) {
                0 if ground >= surface => self.set([x, ground + 1, z], &format!("floor{}", 1 + random.below(15))),
                1 => self.set([x, surface, z], "stone"),
                2 => self.set([x, surface + 1, z], "stone"),
                3 => self.set([x, surface + 2, z], "upper_slab"),
                4 => self.set([x, surface, z], &Self::any_name(random)),
                _ => {}
            }
        }
    }
}

fn columns() -> impl Iterator<Item = (i64, i64)> {
    (0..EDGE).flat_map(|x| (0..EDGE).map(move |z| (x, z)))
}
