//! The rules of bodies, one at a time; then [random walks](random), in which no body gets into a block.

mod random;

use super::mover::GAP;
use super::*;
use crate::block::tags::CLIMBABLE;
use crate::block::{BlockId, BlockRegistry, BlockShape, BlockType, ShapeBox};
use crate::chunk::Chunk;
use crate::liquid::liquid_states;
use crate::space::{ChunkPos, Face};
use rustc_hash::FxHashMap;

const TICK: f64 = 0.05;
const GRAVITY: f64 = 32.0;

/// Chunks of blocks around a position far from the origin, or near it.
#[derive(Clone)]
struct World {
    types: BlockRegistry,
    table: BodyTable,
    chunks: FxHashMap<ChunkPos, Chunk>,
    origin: BlockPos,
}

impl World {
    const NAMES: [&str; 11] = [
        "stone",
        "slab",
        "top_slab",
        "stairs",
        "fence",
        "sheet",
        "tall_fence",
        "tall_stone",
        "water",
        "ladder",
        "grass",
    ];

    /// A world of air, loaded 32 blocks around the origin.
    fn new(origin: BlockPos) -> Self {
        Self::with_shapes(origin, [])
    }

    /// A world of air with more types of blocks.
    fn with_shapes(origin: BlockPos, more: impl IntoIterator<Item = (String, BlockShape)>) -> Self {
        let mut types = BlockRegistry::new();
        let sheet = BlockShape::from_boxes([ShapeBox::new([0, 0, 7], [16, 16, 8])]).unwrap();
        let shapes = [
            BlockShape::Cube,
            BlockShape::slab(),
            BlockShape::slab().upside_down(),
            BlockShape::stairs(),
            BlockShape::fence(),
            sheet,
            BlockShape::fence(),
            BlockShape::Cube,
            BlockShape::liquid(8).unwrap(),
            BlockShape::from_boxes([ShapeBox::new([0, 0, 0], [16, 16, 1])]).unwrap(),
            BlockShape::Cross,
        ];
        for (name, shape) in Self::NAMES.iter().zip(shapes) {
            let block = BlockType::new(format!("game:{name}")).with_shape(shape);
            let block = match *name {
                "ladder" => block.with_tag(CLIMBABLE),
                "tall_fence" => block.with_collision_height(24),
                "tall_stone" => block.with_collision_height(32),
                _ => block,
            };
            types.register(block).unwrap();
        }
        for (name, shape) in more {
            types.register(BlockType::new(format!("game:{name}")).with_shape(shape)).unwrap();
        }
        let around = || -2..2_i64;
        let chunks = around().flat_map(|x| around().flat_map(move |y| around().map(move |z| [x, y, z])));
        let chunk = origin.chunk();
        let chunks = chunks.map(|[x, y, z]| ChunkPos::new(chunk.x + x, chunk.y + y, chunk.z + z));
        Self {
            table: BodyTable::new(&types),
            types,
            chunks: chunks.map(|pos| (pos, Chunk::default())).collect(),
            origin,
        }
    }

    fn at(&self, [x, y, z]: [i64; 3]) -> BlockPos {
        self.origin.offset(x, y, z)
    }

    fn id(&self, name: &str) -> BlockId {
        self.types.id(&format!("game:{name}")).unwrap()
    }

    fn set(&mut self, place: [i64; 3], name: &str) {
        let (pos, block) = (self.at(place), if name == "air" { BlockId::AIR } else { self.id(name) });
        self.chunks.get_mut(&pos.chunk()).unwrap().set_block(pos.in_chunk(), block);
    }

    /// Adds a block in the next layer of a cell.
    fn add(&mut self, place: [i64; 3], block: BlockId) {
        let pos = self.at(place);
        let chunk = self.chunks.get_mut(&pos.chunk()).unwrap();
        let layer = if chunk.block(pos.in_chunk()) == BlockId::AIR { 0 } else { chunk.layer_count(pos.in_chunk()) };
        chunk.set_block_at(pos.in_chunk(), layer as u8, block).unwrap();
    }

    fn fill(&mut self, [x, y, z]: [std::ops::RangeInclusive<i64>; 3], name: &str) {
        for x in x {
            for y in y.clone() {
                z.clone().for_each(|z| self.set([x, y, z], name));
            }
        }
    }

    /// A world with a floor of stone, whose top is at y = 0.
    fn with_floor() -> Self {
        let mut world = Self::new(BlockPos::new(0, 0, 0));
        world.fill([-30..=30, -1..=-1, -30..=30], "stone");
        world
    }

    /// A player on the floor of a block.
    fn player(&self, place: [i64; 3]) -> Body {
        Body::new(self.at(place), 0.6, 1.8)
    }

    fn run(&self, body: &mut Body, ticks: usize, mut each: impl FnMut(&mut Body, &mut BodyMover<'_>)) {
        let chunk = |pos: ChunkPos| self.chunks.get(&pos).map(Some);
        let mut mover = BodyMover::new(&self.table, &chunk);
        for _ in 0..ticks {
            each(body, &mut mover);
        }
    }

    fn fall(&self, body: &mut Body, ticks: usize) {
        self.run(body, ticks, |body, mover| body.fall(mover, GRAVITY, TICK));
    }

    /// Walks at a velocity along x and z, and falls.
    fn walk(&self, body: &mut Body, [x, z]: [f64; 2], ticks: usize, holds_edges: bool) {
        self.run(body, ticks, |body, mover| {
            let fall = body.velocity[1] - GRAVITY * TICK;
            (body.velocity[0], body.velocity[2]) = (x, z);
            body.advance(mover, [x, fall, z], TICK, holds_edges);
        });
    }

    /// The place of a body from the origin.
    fn place(&self, body: &Body) -> [f64; 3] {
        let (at, from) = (body.block, self.origin);
        let along = [at.x - from.x, at.y - from.y, at.z - from.z];
        [0, 1, 2].map(|axis| along[axis] as f64 + body.offset[axis])
    }

    /// The deepest that a body reaches into a box of a solid block: slow, by all blocks around it.
    fn depth(&self, body: &Body) -> f64 {
        let [w, h] = [body.width / 2.0, body.height];
        let at = body.offset;
        let (min, max) = ([at[0] - w, at[1], at[2] - w], [at[0] + w, at[1] + h, at[2] + w]);
        let mut deepest = 0.0_f64;
        let reach = |axis: usize| min[axis].floor() as i64 - 1..=max[axis].floor() as i64 + 1;
        for (x, y, z) in reach(0).flat_map(|x| reach(1).flat_map(move |y| reach(2).map(move |z| (x, y, z)))) {
            let pos = body.block.offset(x, y, z);
            let block_at = |pos: BlockPos| {
                let chunk = self.chunks.get(&pos.chunk());
                self.types.block(chunk.map_or(BlockId::AIR, |chunk| chunk.block(pos.in_chunk())))
            };
            let chunk = self.chunks.get(&pos.chunk());
            let layers = (0..=u8::MAX).map_while(|layer| chunk?.block_at(pos.in_chunk(), layer));
            for block in layers.map(|block| self.types.block(block)).filter(|block| block.is_solid()) {
                let joins = Face::SIDES.into_iter().filter(|side| {
                    let [x, y, z] = side.normal();
                    block.shape().joins(block_at(pos.offset(x, y, z)).shape(), *side)
                });
                for part in block.shape().boxes(joins.collect()).map(|part| part.raised(block.collision_height())) {
                    let cell = [x, y, z];
                    let inside = (0..3).map(|axis| {
                        let low = cell[axis] as f64 + f64::from(part.min[axis]) / 16.0;
                        let high = cell[axis] as f64 + f64::from(part.max[axis]) / 16.0;
                        max[axis].min(high) - min[axis].max(low)
                    });
                    deepest = deepest.max(inside.fold(f64::INFINITY, f64::min));
                }
            }
        }
        deepest
    }
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 4.0 * GAP
}

/// Promise, bodies: A body falls onto the shape of a block, and stands there.
#[test]
fn a_body_falls_and_stands_on_the_shape_of_a_block() {
    let mut world = World::with_floor();
    world.set([0, 0, 0], "slab");
    world.fill([5..=6, 0..=0, 0..=0], "fence");
    for (x, top) in [(0, 0.5), (3, 0.0), (5, 1.0)] {
        let mut body = world.player([x, 9, 0]);
        world.fall(&mut body, 5);
        assert!(!body.contact.ground && body.velocity[1] < -5.0);
        world.fall(&mut body, 40);
        assert!(body.contact.ground && is_near(world.place(&body)[1], top), "{body:?}");
        assert_eq!(body.velocity[1], 0.0);
    }
}

/// Promise, bodies: A fall and a jump take the same way with long ticks and with short ones.
#[test]
fn a_jump_is_as_high_with_long_ticks_as_with_short_ones() {
    let world = World::with_floor();
    for ticks in [20.0, 60.0, 240.0] {
        let mut body = world.player([0, 0, 0]);
        body.velocity[1] = (2.0 * GRAVITY * 1.25_f64).sqrt();
        let mut highest = 0.0_f64;
        world.run(&mut body, ticks as usize, |body, mover| {
            body.fall(mover, GRAVITY, 1.0 / ticks);
            highest = highest.max(world.place(body)[1]);
        });
        assert!((1.15..=1.25).contains(&highest), "{ticks} ticks a second: {highest}");
    }
}

/// Promise, bodies: A body steps up slabs and stairs, and not a whole block.
#[test]
fn a_body_steps_up_slabs_and_stairs_but_not_a_block() {
    let mut world = World::with_floor();
    world.set([2, 0, 0], "slab");
    world.set([3, 0, 0], "stone");
    world.set([4, 1, 0], "stone");
    let mut body = world.player([0, 0, 0]);
    world.walk(&mut body, [4.0, 0.0], 8, false);
    assert!(is_near(world.place(&body)[1], 0.5) && body.contact.ground, "{body:?}");
    world.walk(&mut body, [4.0, 0.0], 12, false);
    let [x, y, _] = world.place(&body);
    assert!(is_near(y, 1.0) && is_near(x, 3.7) && body.contact.wall, "{body:?}");
    // Stairs lead up to the north.
    world.set([0, 0, -2], "stairs");
    let mut body = world.player([0, 0, 0]);
    world.walk(&mut body, [0.0, -4.0], 9, false);
    assert!(is_near(world.place(&body)[1], 1.0), "{body:?}");
}

/// A body that was placed on the ground, and one that fell there.
#[test]
fn a_body_steps_up_the_whole_of_its_step() {
    let mut world = World::with_floor();
    world.fill([2..=9, 0..=0, -9..=9], "stone");
    for falls in [0, 20] {
        for (step_height, top) in [(1.0, 1.0), (0.99, 0.0)] {
            let mut body = Body { step_height, ..world.player([0, 0, 0]) };
            world.fall(&mut body, falls);
            world.walk(&mut body, [4.0, 0.0], 20, false);
            assert!(is_near(world.place(&body)[1], top), "{falls} {step_height} {body:?}");
        }
    }
}

/// The body is lifted only as far as needed: with its whole step, it would hit its head.
#[test]
fn a_body_steps_up_into_a_room_that_is_hardly_higher_than_itself() {
    let mut world = World::with_floor();
    for x in 2..5 {
        world.set([x, 0, 0], "slab");
        world.set([x, 2, 0], "stone");
    }
    let mut body = Body { height: 1.45, ..world.player([0, 0, 0]) };
    world.walk(&mut body, [4.0, 0.0], 12, false);
    let [x, y, _] = world.place(&body);
    assert!(x > 2.5 && is_near(y, 0.5) && body.contact.ground, "{body:?}");
}

#[test]
fn a_body_does_not_step_up_where_its_head_has_no_room_or_in_the_air() {
    let mut world = World::with_floor();
    world.set([2, 0, 0], "slab");
    world.set([2, 2, 0], "stone");
    let mut body = world.player([0, 0, 0]);
    world.walk(&mut body, [4.0, 0.0], 20, false);
    assert!(is_near(world.place(&body)[0], 1.7) && body.contact.wall);
    world.set([2, 2, 0], "air");
    let falling = Body { offset: [0.6, 0.3, 0.5], velocity: [4.0, -2.0, 0.0], ..world.player([1, 0, 0]) };
    for (stood, height) in [(false, 0.2), (true, 0.5)] {
        let mut body = Body { contact: Contact { ground: stood, ..Contact::default() }, ..falling };
        world.walk(&mut body, [4.0, 0.0], 1, false);
        assert!(world.place(&body)[1] < 0.3 || stood && is_near(world.place(&body)[1], height), "{body:?}");
        assert_eq!(body.contact.wall, !stood, "{body:?}");
    }
}

/// Promise, bodies: A body does not get over a fence with a collision height of one and a half blocks, also at the border of a chunk.
#[test]
fn a_body_does_not_jump_over_a_fence_that_is_taller_than_its_block() {
    for (name, is_over) in [("fence", true), ("tall_fence", false), ("tall_stone", false)] {
        for y in [0, 15] {
            let mut world = World::new(BlockPos::new(0, 0, 0));
            world.fill([-9..=9, y - 1..=y - 1, -9..=9], "stone");
            world.fill([2..=2, y..=y, -9..=9], name);
            let mut body = world.player([0, y, 0]);
            for _ in 0..10 {
                body.velocity[1] =
                    if body.contact.ground { (2.0 * GRAVITY * 1.25_f64).sqrt() } else { body.velocity[1] };
                let ticks = if world.place(&body)[0] > 2.5 { 0 } else { 10 };
                world.walk(&mut body, [4.0, 0.0], ticks, false);
            }
            let [x, height, _] = world.place(&body);
            assert_eq!(x > 2.5, is_over, "{name}: {body:?}");
            assert!(is_over || body.contact.wall && is_near(x, if name == "tall_fence" { 2.075 } else { 1.7 }));
            assert!(height >= y as f64, "{body:?}");
            // It stands on the whole height.
            let mut body = world.player([2, y + 4, 0]);
            world.fall(&mut body, 100);
            let stands = match name {
                "fence" => 1.0,
                "tall_fence" => 1.5,
                _ => 2.0,
            };
            assert!(body.contact.ground && is_near(world.place(&body)[1] - y as f64, stands), "{name}: {body:?}");
        }
    }
}

/// Promise, bodies: A sneaking body does not fall from an edge.
#[test]
fn a_body_that_holds_edges_stops_at_a_drop_but_goes_down_a_step() {
    let mut world = World::with_floor();
    world.fill([-3..=3, 0..=2, -3..=3], "stone");
    world.set([4, 2, 0], "slab");
    for (direction, from) in [([-4.0, 0.0], [0, 3, 2]), ([3.0, 4.0], [0, 3, 1]), ([4.0, 0.0], [0, 3, 0])] {
        let mut body = world.player(from);
        world.walk(&mut body, direction, 60, true);
        let [x, y, z] = world.place(&body);
        assert!(y > 2.4 && body.contact.ground, "{body:?}");
        let is_at_edge = x < -3.0 || z > 3.9 || x > 4.9;
        assert!(is_at_edge, "it goes as far as its box holds: {x} {z}");
        let [along, _, across] = body.velocity;
        assert!(body.contact.wall && (along == 0.0 || across == 0.0), "no velocity carries it on: {body:?}");
        world.walk(&mut body, direction, 40, false);
        assert!(is_near(world.place(&body)[1], 0.0), "walking, it falls");
    }
}

/// Promise, bodies: A body is held where the ground is not loaded, and goes on with its velocity once it is.
#[test]
fn a_body_is_held_where_the_ground_is_not_loaded() {
    let mut world = World::new(BlockPos::new(0, 0, 0));
    let below = ChunkPos::new(0, -1, 0);
    let chunk = world.chunks.remove(&below).unwrap();
    let mut body = world.player([5, 4, 5]);
    world.fall(&mut body, 100);
    let speed = body.velocity[1];
    assert!(body.contact.is_held && !body.contact.ground && is_near(world.place(&body)[1], 0.0), "{body:?}");
    assert!((-18.0..-10.0).contains(&speed), "as fast as it came: {speed}");
    world.chunks.insert(below, chunk);
    world.fall(&mut body, 1);
    assert!(!body.contact.is_held && body.velocity[1] < speed && world.place(&body)[1] < -0.4);
    // Where its own place is not loaded, it does not move at all.
    let mut lost = Body { velocity: [1.0, 2.0, 3.0], ..world.player([100, 0, 0]) };
    let before = lost;
    world.fall(&mut lost, 10);
    assert_eq!((lost.block, lost.offset, lost.velocity), (before.block, before.offset, before.velocity));
    assert!(lost.contact.is_held);
}

/// Promise, bodies: A body is pushed out of blocks that appear in it, to the nearest free place.
#[test]
fn a_body_is_pushed_out_of_ground_that_appears() {
    let mut world = World::with_floor();
    for (name, offset, expected) in [
        ("slab", [0.5, 0.0, 0.5], [0.5, 0.5, 0.5]),
        ("stone", [0.9, 0.0, 0.5], [1.3, 0.0, 0.5]),
        ("stone", [0.5, 0.0, 0.1], [0.5, 0.0, -0.3]),
    ] {
        world.set([0, 0, 0], name);
        let mut body = Body { offset, ..world.player([0, 0, 0]) };
        world.fall(&mut body, 3);
        let place = world.place(&body);
        assert!((0..3).all(|axis| is_near(place[axis], expected[axis])), "{name}: {place:?}");
        assert!(world.depth(&body) == 0.0 && !body.contact.is_stuck);
    }
}

/// Promise, bodies: A block that a prisoner places in himself pushes him through no wall.
#[test]
fn a_block_that_appears_pushes_nobody_through_a_wall() {
    // Doors around one block, and a low roof.
    let door = |sheet: ShapeBox| BlockShape::from_boxes([sheet]).unwrap();
    let doors = [
        ("south", [0, 0, 1], ShapeBox::new([0, 0, 0], [16, 16, 2])),
        ("north", [0, 0, -1], ShapeBox::new([0, 0, 14], [16, 16, 16])),
        ("east", [1, 0, 0], ShapeBox::new([0, 0, 0], [2, 16, 16])),
        ("west", [-1, 0, 0], ShapeBox::new([14, 0, 0], [16, 16, 16])),
    ];
    let shapes = doors.map(|(name, _, sheet)| (name.to_owned(), door(sheet)));
    let mut world = World::with_shapes(BlockPos::new(0, 0, 0), shapes);
    world.fill([-5..=5, -1..=-1, -5..=5], "stone");
    world.fill([-1..=1, 2..=2, -1..=1], "slab");
    for (name, [x, _, z], _) in doors {
        world.fill([x..=x, 0..=1, z..=z], name);
    }
    world.set([0, 0, 0], "stone");
    let mut prisoner = world.player([0, 0, 0]);
    world.fall(&mut prisoner, 5);
    assert!(prisoner.contact.is_stuck && world.place(&prisoner) == [0.5, 0.0, 0.5], "{prisoner:?}");
    world.fill([1..=1, 0..=1, 0..=0], "air");
    world.fall(&mut prisoner, 5);
    assert!(!prisoner.contact.is_stuck && is_near(world.place(&prisoner)[0], 1.3), "{prisoner:?}");
}

#[test]
fn a_body_in_solid_ground_stays_where_it_is() {
    let mut world = World::with_floor();
    world.fill([-4..=4, 0..=8, -4..=4], "stone");
    let mut body = Body { velocity: [9.0, 9.0, 9.0], ..world.player([0, 3, 0]) };
    let before = body;
    world.fall(&mut body, 10);
    assert!(body.contact.is_stuck && body.velocity == [0.0; 3]);
    assert_eq!((body.block, body.offset), (before.block, before.offset));
    world.fill([-1..=1, 3..=5, -1..=1], "air");
    world.fall(&mut body, 1);
    assert!(!body.contact.is_stuck);
}

/// Promise, bodies: A body floats in a liquid, which slows it down.
#[test]
fn a_body_floats_in_water() {
    let mut world = World::with_floor();
    world.fill([-3..=3, 0..=5, -3..=3], "water");
    let mut body = Body { velocity: [0.0, -30.0, 5.0], ..world.player([0, 8, 0]) };
    world.fall(&mut body, 6);
    assert!(body.contact.submerged == 1.0 && body.velocity[1] > -25.0, "{body:?}");
    world.fall(&mut body, 400);
    let place = world.place(&body);
    assert!((0.85..1.0).contains(&body.contact.submerged) && !body.contact.ground, "{body:?}");
    assert!((4.0..4.6).contains(&place[1]) && body.velocity[2].abs() < 0.01, "it floats at the surface: {place:?}");
}

/// A stream from a spring at x = 0 to the east, between walls, which falls down at x = 5 and flows on below.
fn stream(current: u8) -> World {
    let mut world = World::new(BlockPos::new(0, 0, 0));
    let water = BlockType::new("game:stream").with_current(current);
    world.types.register_states(liquid_states(water)).unwrap();
    world.table = BodyTable::new(&world.types);
    world.fill([-3..=12, -6..=4, -3..=3], "stone");
    world.fill([0..=4, 0..=3, 0..=0], "air");
    world.fill([5..=5, -4..=3, 0..=0], "air");
    world.fill([6..=9, -4..=-3, 0..=0], "air");
    for x in 0..=5_i64 {
        world.set([x, 0, 0], &format!("stream[level={}]", 8 - x));
    }
    world.fill([5..=5, -4..=-1, 0..=0], "stream[level=falling]");
    for x in 6..=9_i64 {
        world.set([x, -4, 0], &format!("stream[level={}]", 13 - x));
    }
    world
}

/// Promise, bodies: Flowing water carries bodies along and down, as fast as its type says; still water does not.
#[test]
fn flowing_water_carries_bodies_along_and_still_water_does_not() {
    for current in [24, 48, 0] {
        let world = stream(current);
        let mut item = Body::new(world.at([1, 1, 0]), 0.25, 0.25);
        let mut fastest = 0.0_f64;
        world.run(&mut item, 240, |body, mover| {
            body.fall(mover, GRAVITY, TICK);
            fastest = fastest.max(body.velocity[0]);
        });
        let [x, y, _] = world.place(&item);
        let speed = f64::from(current) / 16.0;
        assert!(fastest <= speed && fastest >= 0.8 * speed, "{current}: {fastest}");
        assert_eq!(x > 6.0 && y < -3.0, current > 0, "down to the end: {item:?}");
        // A sheep that stands in it, and one in a deep place, whose surface does not fall.
        let mut sheep = Body::new(world.at([1, 0, 0]), 0.9, 1.3);
        world.fall(&mut sheep, 20);
        assert_eq!(world.place(&sheep)[0] > 1.8, current > 0, "{sheep:?}");
        let mut pool = World::with_floor();
        pool.fill([-9..=9, 0..=2, -9..=9], "water");
        let mut still = pool.player([0, 0, 0]);
        pool.fall(&mut still, 100);
        let [x, _, z] = pool.place(&still);
        assert_eq!((x, z, still.contact.drift), (0.5, 0.5, [0.0; 3]));
    }
}

#[test]
fn the_drift_is_the_current_times_the_share_of_the_body_in_it() {
    let world = stream(32);
    let drift = |place: [i64; 3], height: f64| {
        let mut body = Body::new(world.at(place), 0.25, height);
        world.run(&mut body, 1, |body, mover| body.advance(mover, [0.0; 3], TICK, false));
        (body.contact.drift, body.contact.submerged)
    };
    assert_eq!(drift([2, 0, 0], 0.5), ([2.0, 0.0, 0.0], 1.0));
    assert_eq!(drift([2, 0, 0], 1.5), ([1.0, 0.0, 0.0], 0.5));
    assert_eq!(drift([5, -2, 0], 0.5), ([0.0, -2.0, 0.0], 1.0));
    // It flows to the side at its foot, and down above it.
    assert_eq!(drift([5, -4, 0], 0.5).0, [2.0, 0.0, 0.0]);
    assert_eq!(drift([5, -4, 0], 2.0).0, [1.0, -1.0, 0.0]);
    // Where it begins to fall, it flows down eight parts, and one to the side.
    let [x, y, z] = drift([5, 0, 0], 0.25).0;
    assert!((0.2..0.3).contains(&x) && (-2.0..-1.9).contains(&y) && z == 0.0, "{x} {y}");
    assert_eq!(drift([5, 2, 0], 1.0), ([0.0; 3], 0.0));
}

/// Promise, bodies: On the floor of a dimension a body stands, wherever the ground is not loaded.
#[test]
fn a_body_stands_on_the_floor_of_its_dimension() {
    let world = World::new(BlockPos::new(0, 0, 0));
    let chunk = |pos: ChunkPos| world.chunks.get(&pos).filter(|_| pos.y >= -1).map(Some);
    for floor in [-7, -16] {
        let mut mover = BodyMover::new(&world.table, &chunk).with_floor(floor);
        let mut body = Body { velocity: [0.0, -70.0, 0.0], ..world.player([3, 9, 3]) };
        (0..40).for_each(|_| body.fall(&mut mover, GRAVITY, TICK));
        assert!(
            body.contact.ground && !body.contact.is_held && is_near(world.place(&body)[1], floor as f64),
            "{body:?}"
        );
        let mut below = world.player([3, floor - 40, 3]);
        below.fall(&mut mover, GRAVITY, TICK);
        assert!(below.contact.is_stuck || below.contact.is_held);
    }
}

#[test]
fn a_body_knows_that_it_is_at_a_ladder_and_not_in_the_block_above() {
    let mut world = World::with_floor();
    world.set([0, 0, 0], "ladder");
    let mut body = world.player([0, 0, 0]);
    world.fall(&mut body, 1);
    assert!(body.contact.climbable && body.contact.submerged == 0.0);
    let mut above = Body { offset: [0.5; 3], ..world.player([0, 1, 0]) };
    world.fall(&mut above, 1);
    assert!(!above.contact.climbable);
}

#[test]
fn the_layers_of_a_cell_stop_bodies_too() {
    let mut world = World::with_floor();
    let (pos, slab, water) = (world.at([0, 0, 0]), world.id("slab"), world.id("water"));
    let chunk = world.chunks.get_mut(&pos.chunk()).unwrap();
    chunk.set_block(pos.in_chunk(), water);
    chunk.set_block_at(pos.in_chunk(), 1, slab).unwrap();
    let mut body = world.player([0, 3, 0]);
    world.fall(&mut body, 100);
    assert!(is_near(world.place(&body)[1], 0.5) && body.contact.ground && body.contact.submerged > 0.2, "{body:?}");
}

/// Promise, bodies: At any speed, and at the ends of the world, a body does not leave a closed room.
#[test]
fn nothing_leaves_a_closed_room_at_any_speed() {
    let ends = [i64::MIN + 40, -(1 << 62), 0, i64::MAX - 40];
    for origin in ends.map(|end| BlockPos::new(end, end, -end.saturating_add(1))) {
        let mut world = World::new(origin);
        world.fill([-3..=3, 0..=4, -3..=3], "stone");
        world.fill([-2..=2, 1..=3, -2..=2], "air");
        let mut speed = 1.0;
        let mut body = world.player([0, 1, 0]);
        for turn in 0..60 {
            let (turn, up) = (f64::from(turn) * 0.7, f64::from(turn % 3 - 1));
            body.velocity = [speed * turn.sin(), speed * up, speed * turn.cos()];
            let velocity = body.velocity;
            world.run(&mut body, 1, |body, mover| body.advance(mover, velocity, TICK, false));
            let [x, y, z] = world.place(&body);
            assert!(x.abs() < 3.0 && (1.0..4.0).contains(&y) && z.abs() < 3.0, "{speed}: {body:?}");
            speed *= 1.4;
        }
    }
}

#[test]
fn velocities_sizes_and_places_that_are_no_numbers_do_no_harm() {
    let world = World::with_floor();
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -1.0, 0.0] {
        let mut body = world.player([0, 2, 0]);
        (body.velocity, body.width, body.height, body.step_height) = ([odd, 0.0, odd], odd, odd, odd);
        world.fall(&mut body, 10);
        assert!(body.velocity.iter().chain(&body.offset).all(|along| along.is_finite()), "{odd}: {body:?}");
        let mut body = Body { offset: [odd; 3], ..world.player([0, 2, 0]) };
        world.run(&mut body, 3, |body, mover| body.advance(mover, [odd; 3], odd, true));
        assert!(body.offset.iter().all(|along| (0.0..1.0).contains(along)), "{odd}: {body:?}");
    }
}

#[test]
fn a_step_height_that_is_no_number_opens_no_wall() {
    let mut world = World::with_floor();
    world.fill([2..=2, 0..=1, -2..=2], "stone");
    for step_height in [f64::NAN, f64::INFINITY, -3.0] {
        let mut body = Body { step_height, ..world.player([0, 0, 0]) };
        world.walk(&mut body, [4.0, 0.0], 30, false);
        let is_over = step_height == f64::INFINITY && world.place(&body)[1] > 1.9;
        assert!(world.place(&body)[0] <= 1.7 || is_over, "{step_height}: {body:?}");
        assert_eq!(world.depth(&body), 0.0);
    }
}

#[test]
fn what_fades_never_overshoots() {
    assert_eq!(approached(3.0, 3.0, 8.0, TICK), 3.0);
    assert!((0.0..4.0).contains(&approached(4.0, 0.0, 1e9, 1e9)));
    assert!(approached(4.0, 0.0, 2.0, TICK) < approached(4.0, 0.0, 1.0, TICK));
}
