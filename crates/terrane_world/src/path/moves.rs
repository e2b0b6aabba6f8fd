//! The moves of a walker.

use super::ground::{Hold, Surroundings};
use super::table::WalkerSize;
use super::{BANK_HEIGHT, DIAGONAL, FALL, JUMP, LAYERS, Place, STRAIGHT};
use crate::chunk::Chunk;
use crate::space::{ChunkPos, Face};

/// The room above its height that a walker needs to leave a ladder, in sixteenths: a tick of climbing.
const CLIMB_SPARE: i32 = 2;
/// How far above a floor a walker must be able to jump if it fits under that floor, in sixteenths.
const SPARE_BESIDE: i32 = 5;

/// The part of a move that is the same to all sides.
#[derive(Clone, Copy)]
struct Departure {
    from: Place,
    hold: Hold,
    /// The highest rise that there is room for.
    lift: i32,
    /// The highest rise that is no step: a jump, or the way out of a liquid or off a ladder.
    jump: i32,
}

impl<'a, F: Fn(ChunkPos) -> Option<Option<&'a Chunk>>> Surroundings<'_, 'a, F> {
    /// Calls `visit` for each place to which a single move leads, with its cost.
    pub fn moves(&mut self, from: Place, mut visit: impl FnMut(Place, u32)) {
        let WalkerSize { height, step, jump, .. } = self.table().size;
        let hold = self.hold(from);
        let jump = match hold {
            Hold::None => jump,
            Hold::Ladder => LAYERS - from.feet.rem_euclid(LAYERS),
            Hold::Liquid(depth) => LAYERS.min(depth + (BANK_HEIGHT * LAYERS as f32) as i32),
        };
        let highest = if hold == Hold::None { jump.max(2 * step) } else { jump };
        // A walker that is in the way of something does not rise, but may leave.
        let lift = (self.room(from, height + highest) - height).clamp(0, highest);
        let departure = Departure { from, hold, lift, jump };
        let straight = Face::SIDES.map(|side| self.sideways(departure, [side, side], true, &mut visit));
        for first in 0..4 {
            let second = (first + 1) % 4;
            let corners = [Face::SIDES[first], Face::SIDES[second]];
            self.sideways(departure, corners, straight[first] && straight[second], &mut visit);
        }
        if hold != Hold::None {
            self.upwards(from, lift, &mut visit);
        }
        self.downwards(from, &mut visit);
    }

    /// The moves to one side, or, between two different sides, to a corner. Returns `true` if the way is free at the same height.
    fn sideways(
        &mut self,
        departure: Departure,
        sides: [Face; 2],
        may_be_level: bool,
        visit: &mut impl FnMut(Place, u32),
    ) -> bool {
        let Departure { from, lift, .. } = departure;
        let is_diagonal = sides[0] != sides[1];
        let base = if is_diagonal { DIAGONAL } else { STRAIGHT };
        let beside = if is_diagonal { toward(toward(from, sides[0]), sides[1]) } else { toward(from, sides[0]) };
        let WalkerSize { height, fall, .. } = self.table().size;
        let room = self.room(beside, height.max(lift));
        let is_level = may_be_level && room >= height && !self.is_closed(from, beside, sides);
        if is_level && let Some((landing, factor)) = self.landing(beside, fall) {
            let fallen = (from.feet - landing.feet) as u32;
            visit(landing, priced(base, factor) + fallen * FALL / LAYERS as u32);
        }
        // There is no floor in the room.
        let (lowest, top) = (from.feet + room, from.feet + lift);
        let mut y = lowest.div_euclid(LAYERS);
        while y * LAYERS < top {
            let cell = self.cell(beside.x, y, beside.z);
            let layers = |to: i32| (1_u32 << to.clamp(0, LAYERS)) - 1;
            let in_reach = layers(top - y * LAYERS) & !layers(lowest - y * LAYERS);
            let mut floors = u32::from(cell.support & !(cell.body >> 1)) & in_reach;
            while floors != 0 {
                let floor = Place { feet: y * LAYERS + floors.trailing_zeros() as i32 + 1, ..beside };
                floors &= floors - 1;
                if let Some(extra) = self.ascent(departure, floor, sides, room >= height) {
                    let factor = self.cost(floor);
                    visit(floor, priced(base, factor) + extra);
                }
            }
            y += 1;
        }
        is_level
    }

    /// The extra cost of the way up to a floor at the side; `None` if the walker does not get there. `is_free` tells whether there is room for
    /// it under the floor, at the height of its feet.
    fn ascent(&mut self, departure: Departure, floor: Place, sides: [Face; 2], is_free: bool) -> Option<u32> {
        let Departure { from, hold, lift, jump } = departure;
        let WalkerSize { height, step, .. } = self.table().size;
        let (is_step, is_held) = (self.is_step(from.feet, floor, sides), hold != Hold::None);
        let rise = floor.feet - from.feet;
        let is_straight = sides[0] == sides[1];
        // On a diagonal way, a swimmer may get into shallower water, from which it does not leap as high.
        let swims_diagonally = matches!(hold, Hold::Liquid(_)) && !is_straight;
        if rise > jump && (!is_step || is_held) || swims_diagonally {
            return None;
        }
        // The top of a jump is a little higher than a search counts on, unless there is a ceiling.
        let top = if lift < jump { lift } else { jump + 1 };
        let spare = match hold {
            Hold::Ladder => CLIMB_SPARE.min(lift - rise),
            Hold::None if is_step => 0,
            _ => top - rise,
        };
        // A walker that fits under the floor finds no wall there: it cannot step up, and first jumps up beside it.
        let fits_under = is_free && rise > height && !(is_held && is_straight);
        if fits_under && (rise <= step || spare < SPARE_BESIDE) {
            return None;
        }
        let needed = height + last_fall(spare);
        let corner = |side| Place { feet: floor.feet, ..toward(from, side) };
        let is_way = self.has_room(floor, needed)
            && (is_straight || sides.into_iter().all(|side| self.has_room(corner(side), needed)))
            && !self.is_closed(Place { feet: floor.feet, ..from }, floor, sides)
            && (!is_held || sides.into_iter().all(|side| self.is_bank(floor, side)));
        is_way.then_some(if is_step { 0 } else { JUMP })
    }

    /// Returns `true` if a floor can be reached without a jump: in one step, or in two over the low half of stairs.
    fn is_step(&mut self, from: i32, floor: Place, sides: [Face; 2]) -> bool {
        let WalkerSize { step, .. } = self.table().size;
        let rise = floor.feet - from;
        if rise <= step || rise > 2 * step || sides[0] != sides[1] {
            return rise <= step;
        }
        let y = (floor.feet - 1).div_euclid(LAYERS);
        let half = match self.first_half(floor, y, sides[0]) {
            // It enters over the block below, if that is whole there.
            0 if self.first_half(floor, y - 1, sides[0]) == LAYERS => y * LAYERS,
            0 => return false,
            half => y * LAYERS + half,
        };
        half - from <= step && floor.feet - half <= step
    }

    /// Returns `true` if a wall as wide as the cells leads up to a floor. Swimmers and climbers rise along such a wall; at a post, they would
    /// slip into its cell, and lose their hold.
    fn is_bank(&mut self, floor: Place, to: Face) -> bool {
        let y = (floor.feet - 1).div_euclid(LAYERS);
        let half = self.first_half(floor, y, to);
        half > 0 && (0..=self.table().size.step).contains(&(floor.feet - y * LAYERS - half))
    }

    /// The height, within the cells at `y`, of the half of a floor that is entered first on the way to a side.
    fn first_half(&mut self, floor: Place, y: i32, to: Face) -> i32 {
        let WalkerSize { width, .. } = self.table().size;
        let number = Face::SIDES.iter().position(|side| *side == to).unwrap_or(0);
        let far = if to.is_positive() { width - 1 } else { 0 };
        let half = (0..width).map(|along| {
            let (x, z) = if to.axis() == 0 { (far, along) } else { (along, far) };
            self.single(floor.x + x, y, floor.z + z).near[number]
        });
        half.max().map_or(0, i32::from)
    }

    fn upwards(&mut self, from: Place, lift: i32, visit: &mut impl FnMut(Place, u32)) {
        let above = Place { feet: (from.feet.div_euclid(LAYERS) + 1) * LAYERS, ..from };
        let rise = above.feet - from.feet;
        if rise <= lift && self.hold(above) != Hold::None {
            let factor = self.cost(above);
            visit(above, priced(STRAIGHT * rise as u32 / LAYERS as u32, factor));
        }
    }

    fn downwards(&mut self, from: Place, visit: &mut impl FnMut(Place, u32)) {
        let below = Place { feet: from.feet - 1, ..from };
        let y = below.feet.div_euclid(LAYERS);
        let cell = self.cell(below.x, y, below.z);
        // Climbing down is no fall, also along the lowest block of a ladder that hangs in the air.
        let hangs = cell.has_ladder && self.hold(Place { feet: y * LAYERS, ..below }) == Hold::None;
        let depth = self.table().size.fall.max(LAYERS) - 1 + if hangs { LAYERS } else { 0 };
        if cell.body >> below.feet.rem_euclid(LAYERS) & 1 == 0
            && let Some((landing, factor)) = self.landing(below, depth)
        {
            let fallen = (from.feet - landing.feet) as u32;
            visit(landing, priced(STRAIGHT * fallen / LAYERS as u32, factor));
        }
    }
}

/// How far a walker falls in the last tick on its way down to a floor, in sixteenths: with a gravity of 32 blocks per second squared, at
/// 20 ticks a second. If it has so much room above the floor, a tick ends in that room, and it gets in there.
fn last_fall(height: i32) -> i32 {
    height.min((1.6 * (height as f32).sqrt() - 0.64).ceil() as i32)
}

/// A cost, multiplied by a factor in sixteenths.
#[inline]
fn priced(base: u32, factor: u16) -> u32 {
    base * u32::from(factor) / 16
}

#[inline]
const fn toward(place: Place, side: Face) -> Place {
    let [x, _, z] = side.normal();
    Place { x: place.x + x as i32, z: place.z + z as i32, feet: place.feet }
}
