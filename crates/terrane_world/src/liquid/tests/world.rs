//! A small world in which liquids flow: a box of cells in solid rock, and the looks that are still to be made.

use super::*;
use crate::block::tags;
use crate::space::Face;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, Range};

/// The cells along x and z, and the height.
pub const WIDTH: i64 = 17;
pub const HEIGHT: i64 = 6;
/// The cells of random ground, which is smaller.
pub const CELLS: usize = (RANDOM_WIDTH * RANDOM_WIDTH * 5) as usize;
const RANDOM_WIDTH: i64 = 9;

/// The block types, and the rules.
pub struct Ground {
    pub blocks: BlockRegistry,
    pub liquids: Liquids,
    pub stone: BlockId,
    pub flower: BlockId,
    pub torch: BlockId,
    names: Vec<&'static str>,
}

impl Ground {
    pub fn new(rules: &[LiquidRules]) -> Self {
        let mut blocks = BlockRegistry::new();
        let stone = blocks.register(BlockType::new("game:stone")).unwrap();
        let flower = blocks.register(BlockType::new("game:flower").with_tag(tags::WASHED_AWAY)).unwrap();
        let torch = blocks.register(BlockType::new("game:torch")).unwrap();
        let names = vec!["game:water", "game:lava"];
        for name in &names {
            blocks.register_states(liquid_states(BlockType::new(*name))).unwrap();
        }
        let liquids = Liquids::new(&blocks, rules).unwrap();
        Self { blocks, liquids, stone, flower, torch, names }
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
    cells: BTreeMap<BlockPos, BlockId>,
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
            let block = match cell {
                0 => world.source(0),
                1..=2 => world.flower,
                3..=15 => world.stone,
                _ => continue,
            };
            world.set(
                at(place % RANDOM_WIDTH, place / RANDOM_WIDTH / RANDOM_WIDTH, place / RANDOM_WIDTH % RANDOM_WIDTH),
                block,
            );
        }
        world
    }

    pub fn positions(&self) -> impl Iterator<Item = BlockPos> + use<> {
        let [width, height, depth] = self.size;
        (0..width).flat_map(move |x| (0..height).flat_map(move |y| (0..depth).map(move |z| at(x, y, z))))
    }

    pub fn block(&self, pos: BlockPos) -> Option<BlockId> {
        let is_inside = [pos.x, pos.y, pos.z].iter().zip(self.size).all(|(x, size)| (0..size).contains(x));
        match is_inside {
            true => (pos.x < self.hidden_from).then(|| self.cells.get(&pos).copied().unwrap_or_default()),
            false => Some(self.stone),
        }
    }

    pub fn set(&mut self, pos: BlockPos, block: BlockId) {
        self.cells.insert(pos, block);
        for found in Face::ALL.map(Face::normal).into_iter().chain([[0; 3]]).map(|[x, y, z]| pos.offset(x, y, z)) {
            match self.block(found) {
                Some(block) => drop(self.schedule(found, block)),
                None => drop(self.missed.insert(found)),
            }
        }
    }

    fn schedule(&mut self, pos: BlockPos, block: BlockId) -> bool {
        let Some(delay) = self.ground.liquids.delay(block) else { return false };
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
            if let Some(block) = self.block(pos) {
                self.schedule(pos, block);
            }
        }
    }

    /// Looks at one cell.
    fn look(&mut self, pos: BlockPos) {
        let flow = self.ground.liquids.flow(pos, |pos| self.block(pos));
        for (pos, block) in flow.changes {
            let before = self.block(pos).unwrap();
            assert_ne!(before, block, "a change changes something");
            self.set(pos, block);
            if self.ground.liquids.is_obstacle(block) && !self.ground.liquids.is_obstacle(before) {
                for looker in Liquids::farther_lookers(pos) {
                    if let Some(block) = self.block(looker) {
                        self.schedule(looker, block);
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
        self.positions().all(|pos| self.ground.liquids.flow(pos, |pos| self.block(pos)) == Flow::default())
    }

    /// The level of the liquid in a cell; empty if there is none.
    pub fn level(&self, pos: BlockPos) -> String {
        let block = self.block(pos).unwrap_or_default();
        self.blocks.block(block).property("level").unwrap_or_default().to_owned()
    }

    pub fn levels(&self) -> BTreeMap<BlockPos, String> {
        let levels = self.positions().map(|pos| (pos, self.level(pos)));
        levels.filter(|(_, level)| !level.is_empty()).collect()
    }

    pub fn count(&self, is_wanted: impl Fn(BlockId) -> bool) -> usize {
        self.positions().filter(|pos| self.block(*pos).is_some_and(&is_wanted)).count()
    }

    pub fn find(&self, block: BlockId) -> Vec<BlockPos> {
        self.positions().filter(|pos| self.block(*pos) == Some(block)).collect()
    }
}
