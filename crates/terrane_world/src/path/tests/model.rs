//! The moves of a walker straight from their definition, layer by layer, and a search that tries all of them.

use super::*;
use crate::block::BlockShape;
use std::collections::BTreeMap;

/// x, z, and the height of the feet in sixteenths, all relative to the model's base.
pub type Spot = [i64; 3];

pub struct Model<'a> {
    pub world: &'a World,
    pub walker: &'a Walker,
    pub base: BlockPos,
}

const STEPS: [[i64; 2]; 8] = [[0, -1], [1, 0], [0, 1], [-1, 0], [1, -1], [1, 1], [-1, 1], [-1, -1]];

impl Model<'_> {
    fn block(&self, x: i64, y: i64, z: i64) -> Option<&BlockType> {
        let BlockPos { x: base_x, y: base_y, z: base_z } = self.base;
        let pos = at(base_x.checked_add(x)?, base_y.checked_add(y)?, base_z.checked_add(z)?);
        let chunk = self.world.chunks.get(&pos.chunk())?;
        Some(self.world.types.block(chunk.block(pos.in_chunk())))
    }

    fn factor(&self, block: &BlockType) -> f32 {
        let named = |name: &str| block.name() == name || block.tags().any(|tag| tag == name);
        let own =
            self.walker.costs.iter().filter(|(name, _)| named(name)).map(|(_, factor)| *factor).fold(1.0, f32::max);
        if is_liquid(block) { own * self.walker.swim.unwrap_or(f32::INFINITY) } else { own }
    }

    fn is_closed(&self, x: i64, y: i64, z: i64) -> bool {
        self.block(x, y, z).is_none_or(|block| self.factor(block).is_infinite())
    }

    fn is_ladder(&self, block: &BlockType) -> bool {
        self.walker.climb && block.tags().any(|tag| tag == CLIMBABLE)
    }

    /// Whether the ground takes a layer of a column.
    fn is_ground(&self, x: i64, z: i64, layer: i64) -> bool {
        let (y, height) = (layer.div_euclid(16), layer.rem_euclid(16));
        let Some(block) = self.block(x, y, z).filter(|block| block.is_solid() && !self.is_ladder(block)) else {
            return false;
        };
        !self.is_closed(x, y, z)
            && block
                .shape()
                .boxes(crate::space::FaceSet::NONE)
                .any(|part| i64::from(part.min[1]) <= height && height < i64::from(part.max[1]))
    }

    fn cells(&self, [x, z, _]: Spot) -> impl Iterator<Item = [i64; 2]> {
        let width = self.walker.width.ceil() as i64;
        (x..x + width).flat_map(move |x| (z..z + width).map(move |z| [x, z]))
    }

    /// Whether nothing takes the layers from the feet up to a height above those of `spot`.
    fn is_free_to(&self, spot: Spot, top: i64) -> bool {
        let height = (f64::from(self.walker.height) * 16.0 - 0.01).ceil() as i64;
        self.cells(spot).all(|[x, z]| {
            (spot[2]..top.max(spot[2]) + height)
                .all(|layer| !self.is_ground(x, z, layer) && !self.is_closed(x, layer.div_euclid(16), z))
        })
    }

    fn is_free(&self, spot: Spot) -> bool {
        self.is_free_to(spot, spot[2])
    }

    fn is_floor(&self, spot: Spot) -> bool {
        self.cells(spot).any(|[x, z]| self.is_ground(x, z, spot[2] - 1))
    }

    fn has(&self, spot: Spot, is: impl Fn(&BlockType) -> bool) -> bool {
        self.cells(spot).any(|[x, z]| self.block(x, spot[2].div_euclid(16), z).is_some_and(&is))
    }

    fn is_in_water(&self, spot: Spot) -> bool {
        self.has(spot, is_liquid)
    }

    /// A ladder in a cell with water is of no use.
    fn is_on_ladder(&self, spot: Spot) -> bool {
        !self.is_in_water(spot) && self.has(spot, |block| self.is_ladder(block))
    }

    fn is_held(&self, spot: Spot) -> bool {
        self.is_in_water(spot) || self.is_on_ladder(spot)
    }

    pub fn is_standing(&self, spot: Spot) -> bool {
        self.is_free(spot) && self.is_floor(spot)
    }

    /// Falls layer by layer.
    fn fall(&self, from: Spot, deepest: i64) -> Option<Spot> {
        let mut spot = from;
        while from[2] - spot[2] < 400 {
            let fallen = from[2] - spot[2];
            let is_bottom = spot[2].rem_euclid(16) == 0;
            if is_bottom && (self.is_in_water(spot) || self.is_on_ladder(spot) && fallen <= deepest) {
                return Some(spot);
            }
            if self.is_floor(spot) {
                return (fallen <= deepest).then_some(spot);
            }
            spot[2] -= 1;
            let is_blocked = |[x, z]: [i64; 2]| self.is_closed(x, spot[2].div_euclid(16), z);
            if self.cells(spot).any(is_blocked) {
                return None;
            }
        }
        None
    }

    fn price(&self, spot: Spot, base: i64) -> i64 {
        let mut factor = 1.0_f32;
        // A cell's factor counts for all cells at its height.
        for [x, z] in self.cells(spot) {
            for layer in [spot[2], spot[2] - 1] {
                if let Some(block) = self.block(x, layer.div_euclid(16), z)
                    && (layer == spot[2] || self.is_floor(spot))
                {
                    let own = self.factor(block);
                    if own.is_finite() {
                        factor = factor.max(own);
                    }
                }
            }
        }
        base * (factor * 16.0).round() as i64 / 16
    }

    /// The height of the half of a block that a walker enters first.
    fn first_half(&self, [x, y, z]: [i64; 3], step: [i64; 2]) -> i64 {
        let Some(block) = self.block(x, y, z).filter(|block| block.is_solid() && !self.is_ladder(block)) else {
            return 0;
        };
        if self.is_closed(x, y, z) {
            return 0;
        }
        let boxes = block.shape().boxes(crate::space::FaceSet::ALL);
        let near = boxes.filter(|part| match step {
            [1, 0] => part.min[0] < 8,
            [-1, 0] => part.max[0] > 8,
            [0, 1] => part.min[2] < 8,
            _ => part.max[2] > 8,
        });
        near.map(|part| i64::from(part.max[1])).max().unwrap_or(0)
    }

    fn is_step(&self, from: Spot, to: Spot, step: [i64; 2]) -> bool {
        let highest = (self.walker.step * 16.0) as i64;
        let rise = to[2] - from[2];
        let y = (to[2] - 1).div_euclid(16);
        let is_first = |[x, z]: &[i64; 2]| !self.cells(from).any(|cell| cell == [*x, *z]);
        let half = self.cells(to).filter(is_first).map(|[x, z]| self.first_half([x, y, z], step)).max().unwrap_or(0);
        let half = 16 * y + half;
        rise <= highest || !(step[0] != 0 && step[1] != 0) && half - from[2] <= highest && to[2] - half <= highest
    }

    /// All moves, with their costs.
    pub fn moves(&self, from: Spot) -> Vec<(Spot, i64)> {
        let [x, z, feet] = from;
        let (jump, deepest) = ((self.walker.jump * 16.0) as i64, (self.walker.fall * 16.0) as i64);
        let jump = if self.is_held(from) { jump.max(16) } else { jump };
        let mut moves = Vec::new();
        for step in STEPS {
            let beside = |height| [x + step[0], z + step[1], height];
            let is_diagonal = step[0] != 0 && step[1] != 0;
            let base = if is_diagonal { 141 } else { 100 };
            let may_pass = |height| {
                !is_diagonal || self.is_free([x + step[0], z, height]) && self.is_free([x, z + step[1], height])
            };
            if self.is_free(beside(feet)) && may_pass(feet) {
                let landing = self.fall(beside(feet), deepest);
                moves.extend(landing.map(|spot| (spot, self.price(spot, base) + (feet - spot[2]) * 20 / 16)));
            }
            for height in feet + 1..feet + 40 {
                let floor = beside(height);
                let is_step = self.is_step(from, floor, step);
                if self.is_standing(floor)
                    && self.is_free_to(from, height)
                    && may_pass(height)
                    && (is_step || height - feet <= jump)
                {
                    moves.push((floor, self.price(floor, base) + if is_step { 0 } else { 50 }));
                }
            }
        }
        let above = [x, z, (feet.div_euclid(16) + 1) * 16];
        if self.is_held(from) && self.is_held(above) && self.is_free_to(from, above[2]) {
            moves.push((above, self.price(above, 100 * (above[2] - feet) / 16)));
        }
        let below = [x, z, feet - 1];
        if self.is_free(below) {
            let landing = self.fall(below, deepest.max(16) - 1);
            moves.extend(landing.map(|spot| (spot, self.price(spot, 100 * (feet - spot[2]) / 16))));
        }
        moves
    }

    /// The lowest cost of each spot that can be reached.
    pub fn costs(&self, start: Spot) -> BTreeMap<Spot, i64> {
        let mut costs = BTreeMap::from([(start, 0)]);
        let mut changed = vec![start];
        while let Some(spot) = changed.pop() {
            let cost = costs[&spot];
            for (next, price) in self.moves(spot) {
                let known = costs.entry(next).or_insert(i64::MAX);
                if cost + price < *known {
                    *known = cost + price;
                    changed.insert(0, next);
                }
            }
        }
        costs
    }

    /// The spot that a walker to this cell goes to.
    pub fn goal(&self, [x, y, z]: [i64; 3]) -> Spot {
        let top = [x, z, 16 * y + 15];
        let is_closed = |[x, z]: [i64; 2]| self.is_ground(x, z, top[2]) || self.is_closed(x, y, z);
        let is_blocked = self.cells(top).any(is_closed);
        let floor = if is_blocked { None } else { self.fall(top, 64 * 16) };
        floor.unwrap_or([x, z, 16 * y])
    }
}

fn is_liquid(block: &BlockType) -> bool {
    matches!(block.shape(), BlockShape::Liquid { .. })
}
