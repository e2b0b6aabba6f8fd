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
    /// The solid boxes of each type, by its id.
    boxes: Vec<Vec<ShapeBox>>,
    /// Whether the walker keeps out of each type.
    closed: Vec<bool>,
}

const STEPS: [[i64; 2]; 8] = [[0, -1], [1, 0], [0, 1], [-1, 0], [1, -1], [1, 1], [-1, 1], [-1, -1]];

impl<'a> Model<'a> {
    pub fn new(world: &'a World, walker: &'a Walker, base: BlockPos) -> Self {
        let boxes = (0..world.types.len() as u32).map(|id| {
            let block = world.types.block(BlockId::new(id));
            let boxes = block.shape().boxes(crate::space::FaceSet::NONE).filter(|_| block.is_solid());
            boxes.map(|part| part.raised(block.collision_height())).collect()
        });
        let mut model = Self { world, walker, base, boxes: boxes.collect(), closed: Vec::new() };
        let types = (0..world.types.len() as u32).map(|id| world.types.block(BlockId::new(id)));
        model.closed = types.map(|block| model.factor(block).is_infinite()).collect();
        model
    }

    fn id(&self, x: i64, y: i64, z: i64) -> Option<BlockId> {
        let BlockPos { x: base_x, y: base_y, z: base_z } = self.base;
        let pos = at(base_x.checked_add(x)?, base_y.checked_add(y)?, base_z.checked_add(z)?);
        Some(self.world.chunks.get(&pos.chunk())?.block(pos.in_chunk()))
    }

    fn block(&self, x: i64, y: i64, z: i64) -> Option<&BlockType> {
        Some(self.world.types.block(self.id(x, y, z)?))
    }

    fn factor(&self, block: &BlockType) -> f32 {
        let named = |name: &str| block.name() == name || block.tags().any(|tag| tag == name);
        let own =
            self.walker.costs.iter().filter(|(name, _)| named(name)).map(|(_, factor)| *factor).fold(1.0, f32::max);
        if is_liquid(block) { own * self.walker.swim.unwrap_or(f32::INFINITY) } else { own }
    }

    fn is_closed(&self, x: i64, y: i64, z: i64) -> bool {
        self.id(x, y, z).is_none_or(|id| self.closed[id.index() as usize])
    }

    fn is_ladder(&self, block: &BlockType) -> bool {
        self.walker.climb && block.tags().any(|tag| tag == CLIMBABLE)
    }

    /// The solid boxes of a block, of a ladder as well.
    fn boxes(&self, [x, y, z]: [i64; 3]) -> &[ShapeBox] {
        self.id(x, y, z).filter(|_| !self.is_closed(x, y, z)).map_or(&[], |id| &self.boxes[id.index() as usize])
    }

    /// The part of a cell along an axis that a walker with a cell of its own takes in the middle.
    fn middle(&self) -> [f32; 2] {
        let half = 8.0 * self.walker.width;
        [8.0 - half, 8.0 + half]
    }

    fn meets(&self, part: &ShapeBox, axis: usize) -> bool {
        let [from, to] = self.middle();
        f32::from(part.max[axis]) > from && f32::from(part.min[axis]) < to
    }

    /// Whether the block is a ladder in whose cell there is room for the walker.
    fn is_free_ladder(&self, cell: [i64; 3]) -> bool {
        let [x, y, z] = cell;
        let is_ladder = self.block(x, y, z).is_some_and(|block| self.is_ladder(block));
        let fits = |part: &ShapeBox| self.walker.width <= 1.0 && !(self.meets(part, 0) && self.meets(part, 2));
        is_ladder && !self.is_closed(x, y, z) && self.boxes(cell).iter().all(fits)
    }

    /// Whether a block has a box at this height that counts, from its own bottom.
    fn takes(&self, cell: [i64; 3], height: i64, counts: impl Fn(&ShapeBox) -> bool) -> bool {
        let is_there = |part: &ShapeBox| i64::from(part.min[1]) <= height && height < i64::from(part.max[1]);
        !self.is_free_ladder(cell) && self.boxes(cell).iter().any(|part| is_there(part) && counts(part))
    }

    fn takes_layer(&self, x: i64, z: i64, layer: i64, counts: impl Fn(&ShapeBox) -> bool) -> bool {
        let (y, height) = (layer.div_euclid(16), layer.rem_euclid(16));
        !self.is_closed(x, y, z)
            && (self.takes([x, y, z], height, &counts) || self.takes([x, y - 1, z], height + 16, &counts))
    }

    /// Whether the ground takes a layer of a column.
    fn is_ground(&self, x: i64, z: i64, layer: i64) -> bool {
        self.takes_layer(x, z, layer, |_| true)
    }

    /// Whether a walker in the middle stands on a layer of a column. All types of these tests whose boxes do not reach over most of their
    /// cell are posts.
    fn is_support(&self, x: i64, z: i64, layer: i64) -> bool {
        let width = 16.0 * self.walker.width;
        let free = (16.0 * self.walker.width.ceil() - width) / 2.0;
        let inner = (free + 3.0).min(7.0);
        self.takes_layer(x, z, layer, |part| {
            let is_post = part.max[0] < 16;
            let is_near = |axis: usize| f32::from(part.max[axis]) > inner && f32::from(part.min[axis]) < 16.0 - inner;
            is_near(0) && is_near(2) && (!is_post || f32::from(part.min[0]) < width - 0.5)
        })
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
        self.cells(spot).any(|[x, z]| self.is_support(x, z, spot[2] - 1))
    }

    /// The cells in which the middle of the feet is.
    fn middles(&self, [x, z, _]: Spot) -> impl Iterator<Item = [i64; 2]> {
        let width = self.walker.width.ceil() as i64;
        let along = (width - 1) / 2..=width / 2;
        along.clone().flat_map(move |dx| along.clone().map(move |dz| [x + dx, z + dz]))
    }

    /// Layers of liquid above the feet, without a gap.
    fn depth(&self, spot: Spot) -> i64 {
        let feet = spot[2];
        let cell_depth = |y: i64| {
            let level = |[x, z]: [i64; 2]| match self.block(x, y, z)?.shape() {
                BlockShape::Liquid { level } if !self.is_closed(x, y, z) => Some(2 * i64::from(*level)),
                _ => None,
            };
            self.middles(spot).map(level).min().flatten()
        };
        let from = feet.div_euclid(16);
        let surfaces = (from..from + 30).map_while(|y| Some(16 * y + cell_depth(y)?));
        surfaces.last().map_or(0, |surface| surface - feet)
    }

    /// Whether the ground takes the highest layer below the cells of the feet.
    fn is_on_ground(&self, spot: Spot) -> bool {
        let y = spot[2].div_euclid(16) - 1;
        self.cells(spot).any(|[x, z]| self.is_closed(x, y, z) || self.is_ground(x, z, 16 * y + 15))
    }

    fn is_in_water(&self, spot: Spot) -> bool {
        let y = spot[2].div_euclid(16) - 1;
        let is_full = |[x, z]: [i64; 2]| {
            let shape = self.block(x, y, z).map(BlockType::shape);
            matches!(shape, Some(BlockShape::Liquid { level: 8 })) && !self.is_closed(x, y, z)
        };
        self.depth(spot) as f32 > self.walker.height * 0.4 * 16.0
            && (self.is_on_ground(spot) || self.middles(spot).all(is_full))
    }

    fn is_on_ladder(&self, spot: Spot) -> bool {
        let y = spot[2].div_euclid(16);
        let is_ladder = |y: i64| self.middles(spot).all(|[x, z]| self.is_free_ladder([x, y, z]));
        !self.is_in_water(spot) && is_ladder(y) && (self.is_on_ground(spot) || is_ladder(y - 1))
    }

    /// Whether a ladder is in the way from the middle of a cell to its side.
    fn is_barred(&self, cell: [i64; 3], [x, z]: [i64; 2]) -> bool {
        let (axis, across, to) = if x != 0 { (0, 2, x) } else { (2, 0, z) };
        let [from, until] = self.middle();
        let is_there = |part: &ShapeBox| {
            if to > 0 { f32::from(part.min[axis]) >= until } else { f32::from(part.max[axis]) <= from }
        };
        self.is_free_ladder(cell) && self.boxes(cell).iter().any(|part| is_there(part) && self.meets(part, across))
    }

    /// Whether ladders let the walker pass at a height.
    fn passes(&self, from: Spot, step: [i64; 2], feet: i64) -> bool {
        let [x, z, _] = from;
        let height = (f64::from(self.walker.height) * 16.0 - 0.01).ceil() as i64;
        let sides = [[1, 0], [-1, 0], [0, 1], [0, -1]];
        (feet.div_euclid(16)..=(feet + height - 1).div_euclid(16)).all(|y| {
            let at = |dx: i64, dz: i64| [x + dx, y, z + dz];
            let [dx, dz] = step;
            if dx != 0 && dz != 0 {
                let mut cells = [at(0, 0), at(dx, 0), at(0, dz), at(dx, dz)].into_iter();
                return !cells.any(|cell| sides.iter().any(|side| self.is_barred(cell, *side)));
            }
            !self.is_barred(at(0, 0), step) && !self.is_barred(at(dx, dz), [-dx, -dz])
        })
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
            if self.cells(spot).any(|[x, z]| self.is_ground(x, z, spot[2] - 1)) {
                return (fallen <= deepest && self.is_floor(spot)).then_some(spot);
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
        let from_below = (0..16).rfind(|height| self.takes([x, y - 1, z], height + 16, |_| true));
        let from_below = match from_below {
            Some(height) if self.is_support(x, z, 16 * y + height) => height + 1,
            Some(_) => 32,
            None => 0,
        };
        let from_below = if self.is_closed(x, y, z) { 0 } else { from_below };
        self.own_first_half([x, y, z], step).max(from_below)
    }

    fn own_first_half(&self, [x, y, z]: [i64; 3], step: [i64; 2]) -> i64 {
        if self.is_free_ladder([x, y, z]) {
            return 0;
        }
        // Whether the box covers the sixteenth number `along` on the way in.
        let covers = |part: &ShapeBox, along: u8| {
            let (axis, at) = (if step[0] != 0 { 0 } else { 2 }, if step[0] + step[1] > 0 { along } else { 15 - along });
            part.min[axis] <= at && at < part.max[axis]
        };
        let boxes = self.boxes([x, y, z]);
        let first = boxes.iter().filter(|part| (0..8).any(|along| covers(part, along)));
        let Some(highest) = first.map(|part| part.max[1]).max() else { return 0 };
        let is_whole = |part: &ShapeBox| {
            let across = if step[0] != 0 { 2 } else { 0 };
            part.max[1] == highest
                && (0..8).all(|along| covers(part, along))
                && part.max[across] - part.min[across] == 16
        };
        if boxes.iter().any(is_whole) { highest.into() } else { 32 }
    }

    fn is_step(&self, from: Spot, to: Spot, step: [i64; 2]) -> bool {
        let highest = (self.walker.step * 16.0) as i64;
        let rise = to[2] - from[2];
        let y = (to[2] - 1).div_euclid(16);
        let is_first = |[x, z]: &[i64; 2]| !self.cells(from).any(|cell| cell == [*x, *z]);
        if rise <= highest || step[0] != 0 && step[1] != 0 {
            return rise <= highest;
        }
        let half =
            |y: i64| self.cells(to).filter(is_first).map(|[x, z]| self.first_half([x, y, z], step)).max().unwrap_or(0);
        let half = match (half(y), half(y - 1)) {
            (0, 16) => 16 * y,
            (0, _) => return false,
            (half, _) => 16 * y + half,
        };
        half - from[2] <= highest && to[2] - half <= highest
    }

    /// Whether a floor has a wall on the side from which a walker comes with this step, up to a step below it.
    fn is_bank(&self, floor: Spot, step: [i64; 2]) -> bool {
        let y = (floor[2] - 1).div_euclid(16);
        let is_first =
            |cell: &[i64; 2]| !self.cells(floor).any(|other| other == [cell[0] + step[0], cell[1] + step[1]]);
        let half = self.cells(floor).filter(is_first).map(|[x, z]| self.first_half([x, y, z], step)).max().unwrap_or(0);
        half > 0 && (0..=(self.walker.step * 16.0) as i64).contains(&(floor[2] - 16 * y - half))
    }

    /// All moves, with their costs.
    pub fn moves(&self, from: Spot) -> Vec<(Spot, i64)> {
        let [x, z, feet] = from;
        let (jump, deepest) = ((self.walker.jump * 16.0) as i64, (self.walker.fall * 16.0) as i64);
        let jump = if self.is_in_water(from) {
            16_i64.min(self.depth(from) + 9)
        } else if self.is_on_ladder(from) {
            16 - feet.rem_euclid(16)
        } else {
            jump
        };
        let highest_step = (self.walker.step * 16.0) as i64;
        let height_of_walker = (f64::from(self.walker.height) * 16.0 - 0.01).ceil() as i64;
        let is_held = self.is_held(from);
        let highest = if is_held { jump } else { jump.max(2 * highest_step) };
        let lift = (1..=highest).take_while(|lift| self.is_free_to(from, feet + lift)).count() as i64;
        let mut moves = Vec::new();
        for step in STEPS {
            let beside = |height| [x + step[0], z + step[1], height];
            let is_diagonal = step[0] != 0 && step[1] != 0;
            let base = if is_diagonal { 141 } else { 100 };
            let may_pass = |height, top| {
                !is_diagonal
                    || self.is_free_to([x + step[0], z, height], top) && self.is_free_to([x, z + step[1], height], top)
            };
            let is_level = self.is_free(beside(feet));
            if is_level && may_pass(feet, feet) && self.passes(from, step, feet) {
                let landing = self.fall(beside(feet), deepest);
                moves.extend(landing.map(|spot| (spot, self.price(spot, base) + (feet - spot[2]) * 20 / 16)));
            }
            for height in feet + 1..=feet + lift {
                let floor = beside(height);
                let rise = height - feet;
                let is_step = self.is_step(from, floor, step);
                let spare = if self.is_on_ladder(from) {
                    2.min(lift - rise)
                } else if is_step && !is_held {
                    0
                } else if lift < jump {
                    lift - rise
                } else {
                    jump + 1 - rise
                };
                let fits_under = is_level && rise > height_of_walker && (!is_held || is_diagonal);
                // The way of the last tick of a fall from the top of the jump, or all of it.
                let last = (0..=spare).find(|last| (*last as f32 + 0.64).powi(2) >= 2.56 * spare as f32);
                let top = height + last.unwrap_or(spare);
                let sides = [[step[0], 0], [0, step[1]]].into_iter().filter(|side| *side != [0, 0]);
                if self.is_standing(floor)
                    && self.is_free_to(floor, top)
                    && may_pass(height, top)
                    && self.passes(from, step, height)
                    && (is_step && !is_held || rise <= jump)
                    && !(is_diagonal && self.is_in_water(from))
                    && (!fits_under || rise > highest_step && spare >= 5)
                    && (!is_held || sides.into_iter().all(|side| self.is_bank(floor, side)))
                {
                    moves.push((floor, self.price(floor, base) + if is_step { 0 } else { 50 }));
                }
            }
        }
        let above = [x, z, (feet.div_euclid(16) + 1) * 16];
        if is_held && self.is_held(above) && self.is_free_to(from, above[2]) {
            moves.push((above, self.price(above, 100 * (above[2] - feet) / 16)));
        }
        let below = [x, z, feet - 1];
        if self.is_free(below) {
            let lowest = [x, z, below[2].div_euclid(16) * 16];
            let mut middles = self.middles(lowest);
            let hangs = middles.all(|[x, z]| self.is_free_ladder([x, lowest[2] / 16, z])) && !self.is_held(lowest);
            let landing = self.fall(below, deepest.max(16) - 1 + if hangs { 16 } else { 0 });
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
