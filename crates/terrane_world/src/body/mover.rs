//! [`BodyMover`]: moves boxes among the shapes of blocks.
//!
//! A move is cut into pieces of at most one block. For each piece, the solid boxes around its way are gathered once. The body then
//! slides along y, along the longer horizontal axis, and along the other one, and stops at the nearest box each time. If a wall
//! stops a body that stands, it tries the same way one step higher. Between a body and what it touches stays a [gap](GAP), so that
//! no rounding, not even to `f32`, brings the body into a block.

use super::{Body, BodyTable, Contact, finite};
use crate::block::{BlockId, ShapeBox};
use crate::body::{Kind, Liquid};
use crate::chunk::Chunk;
use crate::space::{BlockPos, ChunkPos, Face};

/// The gap between a body and what it touches.
pub(super) const GAP: f64 = 1.0 / 8192.0;
/// A body overlaps a block if it reaches deeper into it than this.
const DEPTH: f64 = 1e-6;
/// How far from its place a body is pushed out of blocks that appear in it, along one axis.
const MAX_PUSH: f64 = 1.5;
/// The steps in which a body at an edge looks for its last foothold.
const FOOTING: f64 = 1.0 / 32.0;

/// Why a body stopped along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Ground,
    /// Ground that is not loaded.
    Unloaded,
}

/// Moves bodies among chunks. Make one for many bodies that are near each other in memory and in space: it keeps its buffers, and the
/// chunk that it read last.
///
/// ```
/// use terrane_world::block::{BlockId, BlockRegistry, BlockType};
/// use terrane_world::body::{Body, BodyMover, BodyTable};
/// use terrane_world::chunk::Chunk;
/// use terrane_world::space::BlockPos;
///
/// let mut blocks = BlockRegistry::new();
/// let stone = blocks.register(BlockType::new("game:stone"))?;
/// let floor = Chunk::from_fn(|[_, y, _]| if y == 0 { stone } else { BlockId::AIR });
///
/// let table = BodyTable::new(&blocks);
/// let chunk = |_| Some(Some(&floor));
/// let mut mover = BodyMover::new(&table, &chunk);
/// let mut sheep = Body::new(BlockPos::new(8, 5, 8), 0.9, 1.3);
/// for _ in 0..40 {
///     sheep.fall(&mut mover, 32.0, 0.05);
/// }
/// assert!(sheep.contact.ground);
/// assert_eq!(sheep.block, BlockPos::new(8, 1, 8));
/// # Ok::<(), terrane_world::block::BlockRegistryError>(())
/// ```
pub struct BodyMover<'a> {
    table: &'a BodyTable,
    chunk: &'a dyn Fn(ChunkPos) -> Option<Option<&'a Chunk>>,
    /// The chunk that was read last.
    last: Option<(ChunkPos, Option<Option<&'a Chunk>>)>,
    /// All is solid below this height.
    floor: i64,
    obstacles: Vec<Obstacle>,
}

/// A box between two corners, in blocks from the lowest corner of the body's block.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    min: [f64; 3],
    max: [f64; 3],
}

/// A box in which no body can be.
#[derive(Clone, Copy, Debug)]
struct Obstacle {
    bounds: Bounds,
    stop: Stop,
    /// The same for all boxes of a block: the place of its first one.
    block: u32,
}

/// The result of a slide.
struct Slide {
    bounds: Bounds,
    stops: [Option<Stop>; 3],
}

impl Bounds {
    fn of(body: &Body) -> Self {
        let size = |size: f64| if size.is_nan() { 1.0 } else { size.clamp(Body::MIN_SIZE, Body::MAX_SIZE) };
        let (half, height) = (size(body.width) / 2.0, size(body.height));
        let [x, y, z] = body.offset;
        Self { min: [x - half, y, z - half], max: [x + half, y + height, z + half] }
    }

    fn shifted(mut self, axis: usize, by: f64) -> Self {
        self.min[axis] += by;
        self.max[axis] += by;
        self
    }

    /// This box together with the way that it moves.
    fn extended(mut self, way: [f64; 3]) -> Self {
        for (axis, along) in way.into_iter().enumerate() {
            self.min[axis] += along.min(0.0);
            self.max[axis] += along.max(0.0);
        }
        self
    }

    fn grown(self, by: f64) -> Self {
        Self { min: self.min.map(|at| at - by), max: self.max.map(|at| at + by) }
    }

    #[inline]
    fn overlaps(&self, other: &Self, depth: f64) -> bool {
        (0..3).all(|axis| self.min[axis] + depth < other.max[axis] && self.max[axis] - depth > other.min[axis])
    }
}

impl<'a> BodyMover<'a> {
    /// A mover among these chunks. `chunk` returns `None` for a chunk that is not loaded, which stops bodies, and `Some(None)` for a
    /// chunk of air.
    pub fn new(table: &'a BodyTable, chunk: &'a dyn Fn(ChunkPos) -> Option<Option<&'a Chunk>>) -> Self {
        Self { table, chunk, last: None, floor: i64::MIN, obstacles: Vec::new() }
    }

    /// The same mover, for which all is solid below this height, whether it is loaded or not: the floor of a dimension.
    pub fn with_floor(self, floor: i64) -> Self {
        Self { floor, ..self }
    }

    /// Moves a body along a way, and updates its contact. Returns what stopped it, by axis.
    pub(super) fn shift(&mut self, body: &mut Body, way: [f64; 3], holds_edges: bool) -> [Option<Stop>; 3] {
        let stood = body.contact.ground;
        body.contact = Contact::default();
        normalize(body);
        let bounds = Bounds::of(body);
        self.gather(body.block, bounds);
        if self.obstacles.iter().any(|it| it.stop == Stop::Unloaded && it.bounds.overlaps(&bounds, DEPTH)) {
            body.contact = Contact { is_held: true, ground: stood, ..body.contact };
            return [Some(Stop::Unloaded); 3];
        }
        if self.is_taken(&bounds) && !self.push_out(body) {
            body.contact.is_stuck = true;
            return [Some(Stop::Ground); 3];
        }
        let way = way.map(|along| along.clamp(-Body::MAX_WAY, Body::MAX_WAY));
        let longest = way.iter().fold(0.0_f64, |longest, along| longest.max(along.abs()));
        let pieces = longest.ceil().max(1.0);
        let mut piece = way.map(|along| along / pieces);
        let mut stops = [None; 3];
        let mut stands = stood;
        for _ in 0..pieces as u32 {
            let slide = self.slide(body, piece, stands, holds_edges);
            for axis in 0..3 {
                body.offset[axis] += slide.bounds.min[axis] - Bounds::of(body).min[axis];
                if slide.stops[axis].is_some() {
                    // A body that has met ground below goes on being pressed onto it, so that it can step up.
                    stops[axis] = slide.stops[axis];
                    piece[axis] = if axis == 1 && piece[1] < 0.0 { -GAP } else { 0.0 };
                }
            }
            stands = way[1] <= 0.0 && slide.stops[1] == Some(Stop::Ground);
            normalize(body);
            if piece == [0.0; 3] {
                break;
            }
        }
        body.contact = Contact {
            ground: stands,
            ceiling: way[1] > 0.0 && stops[1].is_some(),
            wall: [stops[0], stops[2]].contains(&Some(Stop::Ground)),
            is_held: stops.contains(&Some(Stop::Unloaded)),
            ..self.medium(body)
        };
        stops
    }

    /// Moves along a piece of a way. An edge that holds the body stops it like a wall.
    fn slide(&mut self, body: &Body, way: [f64; 3], stands: bool, holds_edges: bool) -> Slide {
        let bounds = Bounds::of(body);
        let step = if stands && way[1] <= 0.0 { finite(body.step_height).clamp(0.0, Body::MAX_SIZE) } else { 0.0 };
        let mut space = bounds.extended(way).grown(2.0 * GAP);
        space.max[1] += step;
        if !(holds_edges && stands) {
            self.gather(body.block, space);
            return self.slide_or_step(bounds, way, step);
        }
        space.min[1] -= step;
        self.gather(body.block, space);
        let held = self.held_at_edge(bounds, way, step);
        let mut slide = self.slide_or_step(bounds, held, step);
        for axis in [0, 2] {
            if held[axis] != way[axis] {
                slide.stops[axis] = Some(Stop::Ground);
            }
        }
        slide
    }

    /// Moves along the axes. If a wall is in the way, moves one step higher if that leads farther: onto the lowest of the tops with which it
    /// gets farthest, since the room above may be as low as the body.
    fn slide_or_step(&self, bounds: Bounds, way: [f64; 3], step: f64) -> Slide {
        let plain = self.slide_at(bounds, way, way[1]);
        let is_walled = |slide: &Slide| slide.stops[0].is_some() || slide.stops[2].is_some();
        if step <= 0.0 || !is_walled(&plain) {
            return plain;
        }
        let gone = |slide: &Slide| {
            let along = |axis: usize| slide.bounds.min[axis] - bounds.min[axis];
            along(0) * along(0) + along(2) * along(2)
        };
        let (mut best, mut up) = (plain, 0.0);
        while let Some(next) = self.next_top(&bounds, up).filter(|next| *next <= step + GAP + DEPTH) {
            up = next;
            if self.clip(&bounds, 1, up).1.is_some() {
                break;
            }
            let higher = self.slide_at(bounds.shifted(1, up), way, 0.0);
            if gone(&higher) > gone(&best) + DEPTH * DEPTH {
                let (down, stop) = self.clip(&higher.bounds, 1, way[1] - up);
                let [x, _, z] = higher.stops;
                best = Slide { bounds: higher.bounds.shifted(1, down), stops: [x, stop, z] };
            }
        }
        best
    }

    /// How far up a box must move to be on the next top of an obstacle above a height.
    fn next_top(&self, bounds: &Bounds, above: f64) -> Option<f64> {
        let tops = self.obstacles.iter().map(|it| it.bounds.max[1] + GAP - bounds.min[1]);
        tops.filter(|up| *up > above + DEPTH).min_by(f64::total_cmp)
    }

    /// Moves along the axes, one after the other.
    fn slide_at(&self, mut bounds: Bounds, way: [f64; 3], vertical: f64) -> Slide {
        let mut stops = [None; 3];
        let order = if way[0].abs() >= way[2].abs() { [1, 0, 2] } else { [1, 2, 0] };
        for axis in order {
            let along = if axis == 1 { vertical } else { way[axis] };
            let (clipped, stop) = self.clip(&bounds, axis, along);
            bounds = bounds.shifted(axis, clipped);
            stops[axis] = stop;
        }
        Slide { bounds, stops }
    }

    /// How far a box can move along an axis, and what stops it.
    #[inline]
    fn clip(&self, bounds: &Bounds, axis: usize, along: f64) -> (f64, Option<Stop>) {
        if along == 0.0 {
            return (0.0, None);
        }
        let (one, other) = ((axis + 1) % 3, (axis + 2) % 3);
        let (mut clipped, mut stop) = (along, None);
        for Obstacle { bounds: at, stop: by, .. } in &self.obstacles {
            let is_beside = |axis: usize| bounds.min[axis] >= at.max[axis] || bounds.max[axis] <= at.min[axis];
            if is_beside(one) || is_beside(other) {
                continue;
            }
            let gap = if along > 0.0 { at.min[axis] - bounds.max[axis] } else { bounds.min[axis] - at.max[axis] };
            let free = (gap - GAP).max(0.0);
            // Of an obstacle that the box is in, it can move out.
            if gap > -DEPTH && free < clipped.abs() {
                (clipped, stop) = (free.copysign(along), Some(*by));
            }
        }
        (clipped, stop)
    }

    /// The part of a way after which a body still stands.
    fn held_at_edge(&self, bounds: Bounds, way: [f64; 3], step: f64) -> [f64; 3] {
        let is_supported = |x: f64, z: f64| {
            let mut below = bounds.shifted(0, x).shifted(2, z);
            (below.min[1], below.max[1]) = (bounds.min[1] - step - 2.0 * GAP, bounds.min[1]);
            self.obstacles.iter().any(|it| it.bounds.overlaps(&below, 0.0))
        };
        let shortened = |along: f64| (along.abs() - FOOTING).max(0.0).copysign(along);
        let [mut x, y, mut z] = way;
        while x != 0.0 && !is_supported(x, 0.0) {
            x = shortened(x);
        }
        while z != 0.0 && !is_supported(0.0, z) {
            z = shortened(z);
        }
        while x != 0.0 && z != 0.0 && !is_supported(x, z) {
            (x, z) = (shortened(x), shortened(z));
        }
        [x, y, z]
    }

    fn is_taken(&self, bounds: &Bounds) -> bool {
        self.obstacles.iter().any(|it| it.bounds.overlaps(bounds, DEPTH))
    }

    /// Moves a body that is in blocks out of these, to the nearest free place along an axis. Other blocks stop it: a block that appears in
    /// a body pushes it through no wall. Returns `false` if there is no such place near it.
    fn push_out(&mut self, body: &mut Body) -> bool {
        let bounds = Bounds::of(body);
        self.gather(body.block, bounds.grown(MAX_PUSH + GAP));
        let exits = [(1, 1.0), (0, -1.0), (0, 1.0), (2, -1.0), (2, 1.0), (1, -1.0)];
        let exits = exits.into_iter().filter_map(|(axis, to)| Some((axis, to, self.exit(bounds, axis, to)?)));
        let nearest = exits.min_by(|(.., one), (.., other)| one.total_cmp(other));
        if let Some((axis, to, distance)) = nearest {
            body.offset[axis] += to * distance;
            normalize(body);
        }
        nearest.is_some()
    }

    /// The distance to the first free place in a direction, if the way there leads through no block but those that the body is in.
    fn exit(&self, bounds: Bounds, axis: usize, to: f64) -> Option<f64> {
        let mut distance = 0.0;
        loop {
            let moved = bounds.shifted(axis, to * distance);
            let Some(taken) = self.obstacles.iter().find(|it| it.bounds.overlaps(&moved, DEPTH)) else { break };
            let at = &taken.bounds;
            let further = if to > 0.0 { at.max[axis] - moved.min[axis] } else { moved.max[axis] - at.min[axis] };
            distance += further + GAP;
            if distance > MAX_PUSH {
                return None;
            }
        }
        let mut way = [0.0; 3];
        way[axis] = to * distance;
        let swept = bounds.extended(way);
        let is_entered =
            |block: u32| self.obstacles.iter().any(|it| it.block == block && it.bounds.overlaps(&bounds, DEPTH));
        let mut on_way = self.obstacles.iter().filter(|it| it.bounds.overlaps(&swept, DEPTH));
        on_way.all(|it| is_entered(it.block)).then_some(distance)
    }

    /// The liquids and ladders at a body.
    fn medium(&mut self, body: &Body) -> Contact {
        let [_, low, _] = body.offset;
        let height = Bounds::of(body).max[1] - low;
        let mut contact = Contact::default();
        let mut surface = 0.0;
        let cells = (low + height).ceil().max(1.0) as i64;
        for up in 0..cells {
            let Some(cell) = body.block.checked_offset([0, up, 0]) else { break };
            if up == 0 {
                self.each_layer(cell, |mover, block| contact.climbable |= mover.table.is_climbable(block));
            }
            let Some(liquid) = self.liquid(cell) else { break };
            let below = f64::max(surface, low);
            surface = up as f64 + f64::from(liquid.level) / 8.0;
            let share = ((surface.min(low + height) - below) / height).max(0.0);
            if share > 0.0 {
                let current = self.current(cell, liquid);
                contact.drift = [0, 1, 2].map(|axis| contact.drift[axis] + share * current[axis]);
            }
        }
        contact.submerged = ((surface - low) / height).clamp(0.0, 1.0);
        contact
    }

    /// The highest liquid in a cell.
    fn liquid(&mut self, cell: BlockPos) -> Option<Liquid> {
        let mut highest = None;
        self.each_layer(cell, |mover, block| {
            if let Kind::Liquid(found) = mover.table.kind(block)
                && highest.is_none_or(|known: Liquid| known.level < found.level)
            {
                highest = Some(found);
            }
        });
        highest
    }

    /// The velocity of the liquid in a cell. It flows to the sides where it is lower, and down into liquid that falls.
    fn current(&mut self, cell: BlockPos, Liquid { level, current, .. }: Liquid) -> [f64; 3] {
        let mut beyond = |face: Face| cell.checked_offset(face.normal()).and_then(|cell| self.liquid(cell));
        let falls = beyond(Face::Bottom).is_some_and(|below| below.falls);
        // How much lower it is a block further along each axis, in eighths of a block.
        let mut slope = [0, if falls { -8 } else { 0 }, 0];
        for side in Face::SIDES {
            let fall = beyond(side).map_or(0, |beside| i32::from(level) - i32::from(beside.level));
            slope[side.axis()] += if side.is_positive() { fall } else { -fall };
        }
        let steep = f64::from(slope.iter().map(|along| along * along).sum::<i32>()).sqrt();
        let speed = f64::from(current) / 16.0;
        slope.map(|along| if along == 0 { 0.0 } else { speed * f64::from(along) / steep })
    }

    /// Gathers the obstacles in a space.
    fn gather(&mut self, origin: BlockPos, space: Bounds) {
        self.obstacles.clear();
        let cells = |axis: usize| space.min[axis].floor() as i64..=space.max[axis].floor() as i64;
        for x in cells(0) {
            for z in cells(2) {
                if self.table.has_tall {
                    self.gather_tall(origin, [x, cells(1).start() - 1, z], &space);
                }
                for y in cells(1) {
                    self.gather_cell(origin, [x, y, z], &space);
                }
            }
        }
    }

    #[inline]
    fn gather_cell(&mut self, origin: BlockPos, cell: [i64; 3], space: &Bounds) {
        let at = cell.map(|at| at as f64);
        // Beyond the ends of `i64` no ground can be loaded.
        let block = origin.checked_offset(cell);
        if block.is_some_and(|block| block.y < self.floor) {
            self.push_whole(at, Stop::Ground);
            return;
        }
        let Some(chunk) = block.and_then(|block| self.chunk_at(block.chunk())) else {
            self.push_whole(at, Stop::Unloaded);
            return;
        };
        let (Some(block), Some(chunk)) = (block, chunk) else { return };
        let place = block.in_chunk();
        self.gather_block(block, chunk.block(place), at, space);
        if chunk.has_layers() {
            for other in (1..=u8::MAX).map_while(|layer| chunk.block_at(place, layer)) {
                self.gather_block(block, other, at, space);
            }
        }
    }

    /// Gathers the obstacles that reach into a space from a cell below it. No obstacle reaches farther.
    fn gather_tall(&mut self, origin: BlockPos, cell: [i64; 3], space: &Bounds) {
        let Some(pos) = origin.checked_offset(cell) else { return };
        let Some(Some(chunk)) = self.chunk_at(pos.chunk()) else { return };
        let (place, at) = (pos.in_chunk(), cell.map(|at| at as f64));
        let mut gather = |block| {
            if self.table.is_tall(block) {
                self.gather_block(pos, block, at, space);
            }
        };
        gather(chunk.block(place));
        if chunk.has_layers() {
            (1..=u8::MAX).map_while(|layer| chunk.block_at(place, layer)).for_each(gather);
        }
    }

    #[inline]
    fn gather_block(&mut self, pos: BlockPos, block: BlockId, at: [f64; 3], space: &Bounds) {
        let table = self.table;
        match table.kind(block) {
            Kind::Free | Kind::Liquid(_) => {}
            Kind::Cube => self.push_whole(at, Stop::Ground),
            Kind::Shape => {
                let shape = table.shape(block);
                let joins = shape.joined_sides(|side| {
                    let beside = pos.checked_offset(side.normal())?;
                    let chunk = (self.chunk)(beside.chunk())?;
                    Some(table.shape(chunk.map_or(BlockId::AIR, |chunk| chunk.block(beside.in_chunk()))))
                });
                let bounds = |ShapeBox { min, max }| Bounds {
                    min: [0, 1, 2].map(|axis| at[axis] + f64::from(min[axis]) / 16.0),
                    max: [0, 1, 2].map(|axis| at[axis] + f64::from(max[axis]) / 16.0),
                };
                let height = table.height(block);
                let boxes = shape.boxes(joins).map(|part| bounds(part.raised(height)));
                let boxes = boxes.filter(|part| part.overlaps(space, 0.0));
                let block = self.obstacles.len() as u32;
                self.obstacles.extend(boxes.map(|bounds| Obstacle { bounds, stop: Stop::Ground, block }));
            }
        }
    }

    #[inline]
    fn push_whole(&mut self, at: [f64; 3], stop: Stop) {
        let (bounds, block) = (Bounds { min: at, max: at.map(|at| at + 1.0) }, self.obstacles.len() as u32);
        self.obstacles.push(Obstacle { bounds, stop, block });
    }

    fn each_layer(&mut self, pos: BlockPos, mut visit: impl FnMut(&Self, BlockId)) {
        let Some(Some(chunk)) = self.chunk_at(pos.chunk()) else { return };
        let place = pos.in_chunk();
        visit(self, chunk.block(place));
        if chunk.has_layers() {
            (1..=u8::MAX).map_while(|layer| chunk.block_at(place, layer)).for_each(|block| visit(self, block));
        }
    }

    #[inline]
    fn chunk_at(&mut self, pos: ChunkPos) -> Option<Option<&'a Chunk>> {
        match self.last {
            Some((last, chunk)) if last == pos => chunk,
            _ => {
                let chunk = (self.chunk)(pos);
                self.last = Some((pos, chunk));
                chunk
            }
        }
    }
}

/// Moves whole blocks from the offset to the block.
fn normalize(body: &mut Body) {
    let whole = body.offset.map(|along| if along.is_finite() { along.floor() } else { 0.0 });
    let [x, y, z] = whole.map(|along| along as i64);
    body.block = body.block.offset(x, y, z);
    for (offset, whole) in body.offset.iter_mut().zip(whole) {
        *offset = if offset.is_finite() { (*offset - whole).min(1.0 - f64::EPSILON) } else { 0.5 };
    }
}
