//! A small world in which liquids flow: a box of cells in solid rock, and the looks that are still to be made.

use super::*;
use crate::block::{BlockShape, ShapeBox, tags};
use crate::space::Face;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, Range};

/// The cells along x and z, and the height.
pub const WIDTH: i64 = 17;
pub const HEIGHT: i64 = 6;
/// The cells of random ground, which is smaller.
pub const CELLS: usize = (RANDOM_WIDTH * RANDOM_WIDTH * 5) as usize;
pub const RANDOM_WIDTH: i64 = 9;

/// The block types, and the rules.
pub struct Ground {
    pub blocks: BlockRegistry,
    pub liquids: Liquids,
    pub stone: BlockId,
    pub flower: BlockId,
    pub torch: BlockId,
    names: Vec<&'static str>,
    /// Blocks with which a liquid shares a cell: those that are porous, and then those that are not.
    pub partial: Vec<BlockId>,
}

impl Ground {
    pub fn new(rules: &[LiquidRules]) -> Self {
        let mut blocks = BlockRegistry::new();
        let stone = blocks.register(BlockType::new("game:stone")).unwrap();
        let flower = blocks.register(BlockType::new("game:flower").with_tag(tags::WASHED_AWAY)).unwrap();
        let torch = blocks.register(BlockType::new("game:torch")).unwrap();
        let wall = BlockShape::from_boxes([ShapeBox::new([0, 0, 0], [2, 16, 16])]).unwrap();
        let shapes =
            [BlockShape::fence(), BlockShape::slab(), BlockShape::slab().upside_down(), BlockShape::stairs(), wall];
        let kinds = [true, false].into_iter().flat_map(|is_porous| shapes.iter().map(move |shape| (is_porous, shape)));
        let mut partial = Vec::new();
        for (number, (is_porous, shape)) in kinds.enumerate() {
            let block = BlockType::new(format!("game:part_{number}")).with_shape(shape.clone());
            let block = if is_porous { block.with_tag(tags::POROUS) } else { block };
            partial.push(blocks.register(block).unwrap());
        }
        let names = vec!["game:water", "game:lava"];
        for name in &names {
            blocks.register_states(liquid_states(BlockType::new(*name))).unwrap();
        }
        let liquids = Liquids::new(&blocks, rules).unwrap();
        Self { blocks, liquids, stone, flower, torch, names, partial }
    }

    pub fn state(&self, liquid: usize, level: &str) -> BlockId {
        self.blocks.state(self.names[liquid], &[("level", level)]).unwrap()
    }

    pub fn source(&self, liquid: usize) -> BlockId {
        self.state(liquid, "8")
    }
}

pub struct World {
    pub ground: Ground,
    /// The blocks of each cell, from layer 0 up.
    cells: BTreeMap<BlockPos, Vec<BlockId>>,
    size: [i64; 3],
    /// The ground from this x on is not loaded.
    pub hidden_from: i64,
    pub clock: u64,
    due: BTreeSet<(u64, BlockPos)>,
    /// Neighbors that could not be looked at because they were hidden.
    missed: BTreeSet<BlockPos>,
}

impl Deref for World {
    type Target = Ground;

    fn deref(&self) -> &Ground {
        &self.ground
    }
}

impl World {
    pub fn new(rules: &[LiquidRules]) -> Self {
        Self {
            ground: Ground::new(rules),
            cells: BTreeMap::new(),
            size: [WIDTH, HEIGHT, WIDTH],
            hidden_from: WIDTH,
            clock: 0,
            due: BTreeSet::new(),
            missed: BTreeSet::new(),
        }
    }

    /// Random ground: half of it is open.
    pub fn random(rules: LiquidRules, cells: &[u8]) -> Self {
        let mut world = Self::new(&[rules]);
        world.size = [RANDOM_WIDTH, 5, RANDOM_WIDTH];
        for (place, cell) in (0..).zip(cells) {
            let (source, partial) = (world.source(0), |place: u8| world.partial[usize::from(place)]);
            let blocks = match cell {
                0 => vec![source],
                1..=2 => vec![world.flower],
                3..=15 => vec![world.stone],
                16..=25 => vec![partial(cell - 16)],
                26 => vec![partial(place as u8 % 10), source],
                27 => vec![source, partial(place as u8 % 10)],
                _ => continue,
            };
            let [x, y, z] = [place, place / RANDOM_WIDTH / RANDOM_WIDTH, place / RANDOM_WIDTH];
            world.put(at(x % RANDOM_WIDTH, y, z % RANDOM_WIDTH), blocks);
        }
        world
    }

    pub fn positions(&self) -> impl Iterator<Item = BlockPos> + use<> {
        let [width, height, depth] = self.size;
        (0..width).flat_map(move |x| (0..height).flat_map(move |y| (0..depth).map(move |z| at(x, y, z))))
    }

    /// The blocks of a cell, from layer 0 up.
    pub fn blocks(&self, pos: BlockPos) -> Option<Vec<BlockId>> {
        let is_inside = [pos.x, pos.y, pos.z].iter().zip(self.size).all(|(x, size)| (0..size).contains(x));
        match is_inside {
            true => {
                (pos.x < self.hidden_from).then(|| self.cells.get(&pos).cloned().unwrap_or_else(|| vec![BlockId::AIR]))
            }
            false => Some(vec![self.stone]),
        }
    }

    /// The block in layer 0.
    pub fn block(&self, pos: BlockPos) -> Option<BlockId> {
        Some(self.blocks(pos)?[0])
    }

    fn cell(&self, pos: BlockPos) -> Option<LiquidCell> {
        self.blocks(pos).map(|blocks| self.ground.liquids.cell(blocks))
    }

    pub fn set(&mut self, pos: BlockPos, block: BlockId) {
        self.put(pos, vec![block]);
    }

    /// Replaces all blocks of a cell.
    pub fn put(&mut self, pos: BlockPos, blocks: Vec<BlockId>) {
        self.cells.insert(pos, blocks);
        for found in Face::ALL.map(Face::normal).into_iter().chain([[0; 3]]).map(|[x, y, z]| pos.offset(x, y, z)) {
            match self.cell(found) {
                Some(cell) => drop(self.schedule(found, &cell)),
                None => drop(self.missed.insert(found)),
            }
        }
    }

    /// Sets or removes the block in a layer.
    fn change(&mut self, pos: BlockPos, layer: u8, block: BlockId) {
        let mut blocks = self.blocks(pos).unwrap();
        let layer = usize::from(layer);
        match block {
            BlockId::AIR => drop(blocks.remove(layer)),
            block if layer == blocks.len() => blocks.push(block),
            block => blocks[layer] = block,
        }
        self.put(pos, if blocks.is_empty() { vec![BlockId::AIR] } else { blocks });
    }

    /// Takes a source away, and leaves the other blocks of its cell.
    pub fn take_source(&mut self, pos: BlockPos) {
        let layer = self.blocks(pos).unwrap().iter().position(|block| *block == self.source(0)).unwrap();
        self.change(pos, layer as u8, BlockId::AIR);
    }

    fn schedule(&mut self, pos: BlockPos, cell: &LiquidCell) -> bool {
        let Some(delay) = self.ground.liquids.delay(cell) else { return false };
        !self.due.iter().any(|(_, waiting)| *waiting == pos) && self.due.insert((self.clock + delay, pos))
    }

    pub fn fill(&mut self, [x, y, z]: [Range<i64>; 3], block: BlockId) {
        for x in x {
            for y in y.clone() {
                z.clone().for_each(|z| self.set(at(x, y, z), block));
            }
        }
    }

    /// Loads all ground.
    pub fn reveal(&mut self) {
        let hidden = std::mem::replace(&mut self.hidden_from, i64::MAX);
        let new: Vec<_> = self.positions().filter(|pos| pos.x >= hidden).collect();
        for pos in new.into_iter().chain(std::mem::take(&mut self.missed)) {
            if let Some(cell) = self.cell(pos) {
                self.schedule(pos, &cell);
            }
        }
    }

    /// Looks at one cell.
    fn look(&mut self, pos: BlockPos) {
        let flow = self.ground.liquids.flow(pos, |pos| self.cell(pos));
        for (pos, layer, block) in flow.changes {
            let before = self.blocks(pos).unwrap().get(usize::from(layer)).copied().unwrap_or_default();
            assert_ne!(before, block, "a change changes something");
            self.change(pos, layer, block);
            if self.ground.liquids.is_obstacle(block) && !self.ground.liquids.is_obstacle(before) {
                for looker in Liquids::farther_lookers(pos) {
                    if let Some(cell) = self.cell(looker) {
                        self.schedule(looker, &cell);
                    }
                }
            }
        }
        if flow.is_waiting {
            self.missed.insert(pos);
        }
    }

    /// Looks at each cell when it is due, until nothing is due.
    pub fn settle(&mut self) {
        while let Some((due, pos)) = self.due.pop_first() {
            assert!(due < 10_000, "it never rests");
            self.clock = due;
            self.look(pos);
        }
    }

    /// Looks at the cells in a random order, until nothing is due.
    pub fn settle_in_random_order(&mut self, mut seed: u64) {
        for _ in 0..1_000_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let count = self.due.len() as u64;
            let Some(next) = self.due.iter().nth(((seed >> 33) % count.max(1)) as usize).copied() else { return };
            self.due.remove(&next);
            self.look(next.1);
        }
        panic!("it never rests");
    }

    pub fn is_settled(&self) -> bool {
        self.positions().all(|pos| self.ground.liquids.flow(pos, |pos| self.cell(pos)) == Flow::default())
    }

    /// The level of the liquid in a cell; empty if there is none.
    pub fn level(&self, pos: BlockPos) -> String {
        let blocks = self.blocks(pos).unwrap_or_default();
        let level = blocks.into_iter().find_map(|block| self.blocks.block(block).property("level"));
        level.unwrap_or_default().to_owned()
    }

    pub fn levels(&self) -> BTreeMap<BlockPos, String> {
        let levels = self.positions().map(|pos| (pos, self.level(pos)));
        levels.filter(|(_, level)| !level.is_empty()).collect()
    }

    pub fn count(&self, is_wanted: impl Fn(BlockId) -> bool) -> usize {
        self.positions().filter(|pos| self.block(*pos).is_some_and(&is_wanted)).count()
    }

    /// The cells that have a block in any layer.
    pub fn find(&self, block: BlockId) -> Vec<BlockPos> {
        self.positions().filter(|pos| self.blocks(*pos).is_some_and(|blocks| blocks.contains(&block))).collect()
    }
}
