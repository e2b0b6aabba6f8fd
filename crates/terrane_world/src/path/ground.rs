//! [`WalkableGround`]: chunks, as a walker sees them.

use super::table::{Cell, WalkTable, WalkerSize};
use super::{LAYERS, PATH_REACH, Place};
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::space::{BlockPos, ChunkPos, Face};

/// Chunks, as a walker sees them.
pub struct WalkableGround<'a, F> {
    table: &'a WalkTable,
    chunk: F,
    /// The last chunks that were asked for, by the lowest bit of each coordinate.
    recent: [(ChunkPos, Option<Option<&'a Chunk>>); 8],
}

impl<'a, F: Fn(ChunkPos) -> Option<Option<&'a Chunk>>> WalkableGround<'a, F> {
    /// The ground of these chunks. `chunk` returns `None` for a chunk that is not loaded, and `Some(None)` for air.
    pub fn new(table: &'a WalkTable, chunk: F) -> Self {
        // There is no such chunk.
        let nowhere = ChunkPos::new(i64::MAX, i64::MAX, i64::MAX);
        Self { table, chunk, recent: [(nowhere, None); 8] }
    }

    /// The table of the walker.
    pub const fn table(&self) -> &'a WalkTable {
        self.table
    }

    #[inline]
    fn cell(&mut self, block: BlockPos) -> Cell {
        let pos = block.chunk();
        let recent = &mut self.recent[(pos.x & 1 | (pos.y & 1) << 1 | (pos.z & 1) << 2) as usize];
        if recent.0 != pos {
            *recent = (pos, (self.chunk)(pos));
        }
        match recent.1 {
            None => Cell::CLOSED,
            Some(None) => self.table.cell(BlockId::AIR),
            Some(Some(chunk)) => {
                let place = block.in_chunk();
                let cell = self.table.cell(chunk.block(place));
                if chunk.has_layers() { layered(self.table, chunk, place, cell) } else { cell }
            }
        }
    }
}

#[cold]
fn layered(table: &WalkTable, chunk: &Chunk, place: [usize; 3], lowest: Cell) -> Cell {
    let others = (1..=u8::MAX).map_while(|layer| chunk.block_at(place, layer));
    others.fold(lowest, |cell, block| cell.with(table.cell(block)))
}

/// The hold of a walker that stands on no ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    None,
    Ladder,
    /// A liquid in which it swims, and its depth from the feet up, in sixteenths.
    Liquid(i32),
}

const RECENT: usize = 16 * 16 * 8;
/// No fall within a search is deeper.
const DEEPEST: i32 = 2 * PATH_REACH as i32 * LAYERS;

/// The ground around an origin.
pub(super) struct Surroundings<'g, 'a, F> {
    ground: &'g mut WalkableGround<'a, F>,
    origin: BlockPos,
    /// The last cells that were asked for, by the lowest bits of each coordinate. Most cells are asked for dozens of times.
    recent: Box<[(u32, Cell)]>,
}

impl<'g, 'a, F: Fn(ChunkPos) -> Option<Option<&'a Chunk>>> Surroundings<'g, 'a, F> {
    pub fn new(ground: &'g mut WalkableGround<'a, F>, origin: BlockPos) -> Self {
        Self { ground, origin, recent: vec![(0, Cell::CLOSED); RECENT].into() }
    }

    pub const fn table(&self) -> &'a WalkTable {
        self.ground.table
    }

    /// A single cell.
    pub fn single(&mut self, x: i32, y: i32, z: i32) -> Cell {
        let cell = self.own(x, y, z);
        if self.table().has_tall { cell.above(self.own(x, y - 1, z)) } else { cell }
    }

    /// A single cell, without what reaches into it from below.
    fn own(&mut self, x: i32, y: i32, z: i32) -> Cell {
        let BlockPos { x: base_x, y: base_y, z: base_z } = self.origin;
        let along = [base_x.checked_add(x.into()), base_y.checked_add(y.into()), base_z.checked_add(z.into())];
        match along {
            [Some(x), Some(y), Some(z)] => self.ground.cell(BlockPos::new(x, y, z)),
            _ => Cell::CLOSED,
        }
    }

    /// All cells that a walker at x and z takes at the height y.
    #[inline]
    pub fn cell(&mut self, x: i32, y: i32, z: i32) -> Cell {
        let slot = (x & 15 | (z & 15) << 4 | (y & 7) << 8) as usize % RECENT;
        // No cell is as far from the origin as that two of them have the same key.
        let key = (1 << 31 | (x & 0x3ff) | (z & 0x3ff) << 10 | (y & 0x7ff) << 20) as u32;
        let (recent, cell) = self.recent[slot];
        if recent == key { cell } else { self.learn(x, y, z, slot, key) }
    }

    #[inline(never)]
    fn learn(&mut self, x: i32, y: i32, z: i32, slot: usize, key: u32) -> Cell {
        let first = self.single(x, y, z);
        let cell = if self.ground.table.size.width == 1 { first } else { self.wide(x, y, z, first) };
        self.recent[slot] = (key, cell);
        cell
    }

    fn wide(&mut self, x: i32, y: i32, z: i32, first: Cell) -> Cell {
        let width = self.ground.table.size.width;
        let others = (1..width * width).map(|number| (x + number / width, z + number % width));
        let all = others.fold(first, |all, (x, z)| all.with(self.single(x, y, z)));
        // What holds a body is at the middle of its feet: in one cell, or wherever four of them meet.
        let middle = [(width - 1) / 2, width / 2];
        let [mut liquid, mut has_ladder] = [u8::MAX, u8::MAX];
        for (x, z) in middle.into_iter().flat_map(|along| middle.map(|across| (x + along, z + across))) {
            let cell = self.single(x, y, z);
            liquid = liquid.min(cell.liquid);
            has_ladder = has_ladder.min(cell.has_ladder.into());
        }
        Cell { liquid, has_ladder: has_ladder > 0, ..all }
    }

    /// The free layers from the feet of a place upwards, at least up to `wanted` if there are as many.
    #[inline]
    pub fn room(&mut self, Place { x, z, feet }: Place, wanted: i32) -> i32 {
        let (mut y, mut from) = (feet.div_euclid(LAYERS), feet.rem_euclid(LAYERS));
        let mut room = 0;
        while room < wanted {
            let body = u32::from(self.cell(x, y, z).body) >> from;
            if body != 0 {
                return room + body.trailing_zeros() as i32;
            }
            room += LAYERS - from;
            (y, from) = (y + 1, 0);
        }
        room
    }

    /// Returns `true` if there is room for the walker.
    #[inline]
    pub fn is_free(&mut self, place: Place) -> bool {
        self.has_room(place, self.ground.table.size.height)
    }

    /// Returns `true` if so many layers are free from the feet upwards.
    #[inline]
    pub fn has_room(&mut self, place: Place, height: i32) -> bool {
        self.room(place, height) >= height
    }

    /// What holds a walker at a place, if there is no ground.
    #[inline]
    pub fn hold(&mut self, place: Place) -> Hold {
        let y = place.feet.div_euclid(LAYERS);
        let cell = self.cell(place.x, y, place.z);
        if cell.liquid == 0 && !cell.has_ladder {
            return Hold::None;
        }
        // A walker falls through a liquid that hangs in the air, and past the lowest block of a ladder that does.
        let below = self.cell(place.x, y - 1, place.z);
        let is_on_ground = below.body >> (LAYERS - 1) != 0;
        if cell.liquid > 0 && (is_on_ground || i32::from(below.liquid) == LAYERS) {
            let depth = self.depth(place);
            if depth >= self.table().size.afloat {
                return Hold::Liquid(depth);
            }
        }
        if cell.has_ladder && (is_on_ground || below.has_ladder) { Hold::Ladder } else { Hold::None }
    }

    fn is_held(&mut self, place: Place, is_deep: bool) -> bool {
        match self.hold(place) {
            Hold::None => false,
            Hold::Ladder => !is_deep,
            Hold::Liquid(_) => true,
        }
    }

    /// The depth of the liquid from the feet up. It is not told how much deeper it is than a block and than what the walker needs to swim.
    fn depth(&mut self, Place { x, z, feet }: Place) -> i32 {
        let enough = feet + self.table().size.afloat.max(LAYERS);
        let (mut y, mut surface) = (feet.div_euclid(LAYERS), feet);
        while surface < enough {
            let liquid = self.cell(x, y, z).liquid;
            if liquid == 0 {
                break;
            }
            surface = y * LAYERS + i32::from(liquid);
            y += 1;
        }
        surface - feet
    }

    /// Returns `true` if a ladder closes the way between two places at the same height, one or two `sides` from each other.
    pub fn is_closed(&mut self, from: Place, to: Place, sides: [Face; 2]) -> bool {
        let WalkerSize { height, .. } = self.table().size;
        self.table().has_closed
            && (from.feet.div_euclid(LAYERS)..=(from.feet + height - 1).div_euclid(LAYERS)).any(|y| {
                let corners = [(from.x, from.z), (to.x, to.z), (from.x, to.z), (to.x, from.z)];
                let [here, there, one, other] = corners.map(|(x, z)| self.cell(x, y, z).closed);
                if sides[0] != sides[1] {
                    return here | there | one | other != 0;
                }
                let number = Face::SIDES.iter().position(|side| *side == sides[0]).unwrap_or(0);
                here >> number & 1 == 1 || there >> ((number + 2) % 4) & 1 == 1
            })
    }

    /// The place where a walker that falls is held, and the factor of its cost: on the ground or a ladder up to `depth` lower, or, if the
    /// walker swims, in a liquid. The place itself must be free.
    #[inline]
    pub fn landing(&mut self, place: Place, depth: i32) -> Option<(Place, u16)> {
        let Place { x, z, feet } = place;
        let (mut y, mut from) = (feet.div_euclid(LAYERS), feet.rem_euclid(LAYERS));
        let mut cell = self.cell(x, y, z);
        let mut cost_above = 0;
        loop {
            let below = u32::from(cell.body) & ((1 << from) - 1);
            if below != 0 {
                let floor = below.ilog2();
                let landing = y * LAYERS + floor as i32 + 1;
                let is_floor = cell.support >> floor & 1 == 1;
                // A walker on the highest layer has its feet in the cell above.
                let cost = if floor == 15 { cell.cost.max(cost_above) } else { cell.cost };
                return (is_floor && feet - landing <= depth).then_some((Place { feet: landing, ..place }, cost));
            }
            let bottom = Place { feet: y * LAYERS, ..place };
            let is_deep = feet - bottom.feet > depth;
            let may_hold = cell.liquid > 0 || cell.has_ladder && !is_deep;
            if may_hold && self.is_held(bottom, is_deep) {
                return Some((bottom, self.cost(bottom)));
            }
            if is_deep && (!self.ground.table.size.swims || feet - bottom.feet > DEEPEST) {
                return None;
            }
            cost_above = cell.cost;
            (y, from) = (y - 1, LAYERS);
            cell = self.cell(x, y, z);
        }
    }

    /// The factor of the cost of a place, in sixteenths: that of the block at the feet or of the floor, whichever is higher.
    pub fn cost(&mut self, Place { x, z, feet }: Place) -> u16 {
        let at_feet = self.cell(x, feet.div_euclid(LAYERS), z).cost;
        let floor = self.cell(x, (feet - 1).div_euclid(LAYERS), z);
        let is_floor = floor.support >> (feet - 1).rem_euclid(LAYERS) & 1 == 1;
        if is_floor { at_feet.max(floor.cost) } else { at_feet }
    }
}
