//! A slow and obvious model of a flood: it computes the end from the sources, and knows nothing of time.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// The steps of wet cells; a source and a cell that falls have 0.
type Wet = BTreeMap<BlockPos, u8>;

const SIDES: [[i64; 2]; 4] = [[1, 0], [-1, 0], [0, 1], [0, -1]];

struct Model {
    /// Cells with air or a flower, or that may be wet.
    open: BTreeSet<BlockPos>,
    sources: BTreeSet<BlockPos>,
}

impl Model {
    fn passes(&self, pos: BlockPos) -> bool {
        self.open.contains(&pos) && !self.sources.contains(&pos)
    }

    fn is_drop(&self, pos: BlockPos) -> bool {
        self.passes(pos) && self.passes(pos.offset(0, -1, 0))
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
        let ways = SIDES.into_iter().filter_map(|[x, z]| self.to_drop(pos.offset(x, 0, z), not, left));
        ways.min().map(|steps| steps + 1)
    }

    fn flows_to(&self, from: BlockPos, to: BlockPos) -> bool {
        if self.passes(from.offset(0, -1, 0)) || !self.passes(to) {
            return false;
        }
        let way = |side: BlockPos| self.to_drop(side, from, SEARCH - 1);
        let nearest = SIDES.into_iter().filter_map(|[x, z]| way(from.offset(x, 0, z))).min();
        nearest.is_none() || way(to) == nearest
    }

    fn renew(&mut self) {
        loop {
            let sources = |pos: &BlockPos| {
                SIDES.into_iter().filter(|[x, z]| self.sources.contains(&pos.offset(*x, 0, *z))).count()
            };
            let new = self
                .open
                .iter()
                .find(|pos| !self.sources.contains(pos) && sources(pos) >= 2 && !self.passes(pos.offset(0, -1, 0)));
            let Some(new) = new.copied() else { return };
            self.sources.insert(new);
        }
    }

    fn next(&self, pos: BlockPos, wet: &Wet, steps: u8) -> Option<u8> {
        if self.sources.contains(&pos) || wet.contains_key(&pos.offset(0, 1, 0)) {
            return Some(0);
        }
        let suppliers = SIDES.into_iter().map(|[x, z]| pos.offset(x, 0, z)).filter(|from| self.flows_to(*from, pos));
        suppliers.filter_map(|from| wet.get(&from)).map(|step| step + 1).filter(|step| *step <= steps).min()
    }
}

fn model(world: &World) -> Model {
    let liquids = &world.ground.liquids;
    let is_passable = |block| liquids.is_open(block) || liquids.delay(block).is_some();
    Model {
        open: world.positions().filter(|pos| world.block(*pos).is_some_and(is_passable)).collect(),
        sources: world.find(world.source(0)).into_iter().collect(),
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
        let next: Wet = model.open.iter().filter_map(|pos| Some((*pos, model.next(*pos, &wet, steps)?))).collect();
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
    world.positions().find(|pos| {
        let Some(here) = step(*pos).filter(|_| world.block(*pos) != Some(world.source(0))) else { return false };
        let above = step(pos.offset(0, 1, 0));
        let mut beside = SIDES.into_iter().filter_map(|[x, z]| step(pos.offset(x, 0, z)));
        match here {
            0 => above.is_none(),
            here => above.is_some() || !beside.any(|step| step == here - 1),
        }
    })
}
