//! A slow and obvious model of a flood: it computes the end from the sources, and knows nothing of time.

use super::*;
use crate::space::Face;
use std::collections::{BTreeMap, BTreeSet};

/// The steps of wet cells; a source and a cell that falls have 0.
type Wet = BTreeMap<BlockPos, u8>;

const SIDES: [[i64; 2]; 4] = [[1, 0], [-1, 0], [0, 1], [0, -1]];

struct Model {
    /// Cells with air, a flower or porous blocks alone, or that may be wet.
    open: BTreeSet<BlockPos>,
    sources: BTreeSet<BlockPos>,
    /// Pairs of neighbors between which a block closes the way, in both orders.
    walls: BTreeSet<(BlockPos, BlockPos)>,
}

impl Model {
    fn passes(&self, pos: BlockPos) -> bool {
        self.open.contains(&pos) && !self.sources.contains(&pos)
    }

    /// The neighbors of a cell at its sides to which a way leads.
    fn beside(&self, pos: BlockPos) -> impl Iterator<Item = BlockPos> {
        let beside = SIDES.into_iter().map(move |[x, z]| pos.offset(x, 0, z));
        beside.filter(move |beside| !self.walls.contains(&(pos, *beside)))
    }

    fn falls(&self, pos: BlockPos) -> bool {
        let below = pos.offset(0, -1, 0);
        self.passes(below) && !self.walls.contains(&(pos, below))
    }

    fn is_drop(&self, pos: BlockPos) -> bool {
        self.passes(pos) && self.falls(pos)
    }

    /// The fewest steps from `pos` to a drop without going through `not`, at most `steps`.
    fn to_drop(&self, pos: BlockPos, not: BlockPos, steps: u8) -> Option<u8> {
        if !self.passes(pos) || pos == not {
            return None;
        }
        if self.is_drop(pos) {
            return Some(0);
        }
        let left = steps.checked_sub(1)?;
        let ways = self.beside(pos).filter_map(|beside| self.to_drop(beside, not, left));
        ways.min().map(|steps| steps + 1)
    }

    fn flows_to(&self, from: BlockPos, to: BlockPos) -> bool {
        if self.falls(from) || !self.passes(to) || self.walls.contains(&(from, to)) {
            return false;
        }
        let way = |side: BlockPos| self.to_drop(side, from, SEARCH - 1);
        let nearest = self.beside(from).filter_map(way).min();
        nearest.is_none() || way(to) == nearest
    }

    fn renew(&mut self) {
        loop {
            let sources = |pos: &BlockPos| self.beside(*pos).filter(|beside| self.sources.contains(beside)).count();
            let is_new = |pos: &&BlockPos| !self.sources.contains(pos) && sources(pos) >= 2 && !self.falls(**pos);
            let new = self.open.iter().find(is_new);
            let Some(new) = new.copied() else { return };
            self.sources.insert(new);
        }
    }

    fn next(&self, pos: BlockPos, wet: &Wet, steps: u8) -> Option<u8> {
        let above = pos.offset(0, 1, 0);
        if self.sources.contains(&pos) || wet.contains_key(&above) && !self.walls.contains(&(pos, above)) {
            return Some(0);
        }
        let suppliers = SIDES.into_iter().map(|[x, z]| pos.offset(x, 0, z)).filter(|from| self.flows_to(*from, pos));
        suppliers.filter_map(|from| wet.get(&from)).map(|step| step + 1).filter(|step| *step <= steps).min()
    }
}

/// Returns `true` if the block closes this side of its cell, by its name: fences, slabs below and above, stairs to the north, walls in
/// the west.
fn closes(world: &World, block: BlockId, normal: [i64; 3]) -> bool {
    let Some(number) = world.partial.iter().position(|part| *part == block) else { return block == world.stone };
    let closed: &[[i64; 3]] = match number % 5 {
        0 => &[],
        1 => &[[0, -1, 0]],
        2 => &[[0, 1, 0]],
        3 => &[[0, -1, 0], [0, 0, -1]],
        _ => &[[-1, 0, 0]],
    };
    closed.contains(&normal)
}

fn model(world: &World) -> Model {
    let is_open = |block: BlockId| {
        let is_porous = world.partial[..5].contains(&block);
        let is_water = world.ground.blocks.block(block).property("level").is_some();
        block == BlockId::AIR || block == world.flower || is_porous || is_water
    };
    let mut walls = BTreeSet::new();
    for pos in world.positions() {
        for normal in Face::ALL.map(Face::normal) {
            if world.blocks(pos).unwrap().into_iter().any(|block| closes(world, block, normal)) {
                let beyond = pos.offset(normal[0], normal[1], normal[2]);
                walls.extend([(pos, beyond), (beyond, pos)]);
            }
        }
    }
    Model {
        open: world.positions().filter(|pos| world.blocks(*pos).unwrap().into_iter().all(is_open)).collect(),
        sources: world.find(world.source(0)).into_iter().collect(),
        walls,
    }
}

/// The levels in the end of a flood.
pub fn flooded(world: &World, steps: u8, renews: bool) -> BTreeMap<BlockPos, String> {
    let mut model = model(world);
    if renews {
        model.renew();
    }
    let mut wet = Wet::new();
    loop {
        let cells = model.open.union(&model.sources);
        let next: Wet = cells.filter_map(|pos| Some((*pos, model.next(*pos, &wet, steps)?))).collect();
        if next == wet {
            break;
        }
        wet = next;
    }
    let level = |pos: BlockPos, step: u8| match step {
        0 if model.sources.contains(&pos) => "8".to_owned(),
        0 => "falling".to_owned(),
        step => (8 * (steps + 1 - step)).div_ceil(steps + 1).min(7).to_string(),
    };
    wet.into_iter().map(|(pos, step)| (pos, level(pos, step))).collect()
}

/// A flowing cell, in a world with seven steps, without a cell beside or above it that it may come from.
pub fn cell_without_supplier(world: &World) -> Option<BlockPos> {
    let step = |pos: BlockPos| match world.level(pos).as_str() {
        "" => None,
        "falling" => Some(0),
        level => Some(8 - level.parse::<u8>().unwrap()),
    };
    let walls = model(world).walls;
    world.positions().find(|pos| {
        let from = |from: BlockPos| step(from).filter(|_| !walls.contains(&(*pos, from)));
        let Some(here) = step(*pos).filter(|_| world.level(*pos) != "8") else { return false };
        let above = from(pos.offset(0, 1, 0));
        let mut beside = SIDES.into_iter().filter_map(|[x, z]| from(pos.offset(x, 0, z)));
        match here {
            0 => above.is_none(),
            here => above.is_some() || !beside.any(|step| step == here - 1),
        }
    })
}

/// A wet cell from which no way leads back, up or to cells nearer to the source, to a source or to a cell that is not loaded.
pub fn cell_without_origin(world: &World) -> Option<BlockPos> {
    let step = |pos: BlockPos| match world.level(pos).as_str() {
        "" => None,
        "8" | "falling" => Some(0),
        level => Some(8 - level.parse::<u8>().unwrap()),
    };
    let is_source = |pos: &BlockPos| world.level(*pos) == "8";
    let beside = |pos: BlockPos| SIDES.map(|[x, z]| pos.offset(x, 0, z));
    let mut left: BTreeSet<BlockPos> = world.levels().into_keys().filter(|pos| !is_source(pos)).collect();
    loop {
        let has_origin = |pos: &BlockPos| {
            let is_origin =
                |from: BlockPos| world.block(from).is_none() || step(from).is_some() && !left.contains(&from);
            let is_nearer = |from: &BlockPos| is_source(from) || step(*from) < step(*pos);
            is_origin(pos.offset(0, 1, 0)) || beside(*pos).into_iter().filter(is_nearer).any(is_origin)
        };
        let found: Vec<_> = left.iter().copied().filter(has_origin).collect();
        if found.is_empty() {
            return left.pop_first();
        }
        found.iter().for_each(|pos| _ = left.remove(pos));
    }
}
