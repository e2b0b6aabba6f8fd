//! Bodies of all sizes walk, jump, fly and fall through rubble of all shapes.

use super::*;

/// The number of repetitions: `few` times `TERRANE_ROUNDS`. 20 makes a million steps.
fn rounds(few: u32) -> u32 {
    few * std::env::var("TERRANE_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1_u32)
}

/// Numbers that look random, the same ones in each run.
struct Random(u64);

impl Random {
    /// 0 to 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.share()
    }

    fn below(&mut self, end: usize) -> usize {
        (self.share() * end as f64) as usize
    }
}

/// A closed room, 21 blocks wide, with rubble in it.
fn rubble(random: &mut Random, origin: BlockPos) -> World {
    let mut world = World::new(origin);
    world.fill([-11..=11, -11..=11, -11..=11], "stone");
    world.fill([-10..=10, -10..=10, -10..=10], "air");
    let share = random.between(0.02, 0.35);
    for (x, y, z) in (-10..=10).flat_map(|x| (-10..=10).flat_map(move |y| (-10..=10).map(move |z| (x, y, z)))) {
        if random.share() < share {
            world.set([x, y, z], World::NAMES[random.below(World::NAMES.len())]);
        }
    }
    world
}

/// A body of some size at a place where it has room.
fn body_in(random: &mut Random, world: &World) -> Body {
    loop {
        let place = [0; 3].map(|_| random.below(19) as i64 - 9);
        let body = Body::new(world.at(place), random.between(0.1, 1.9), random.between(0.1, 2.9));
        let [x, _, z] = body.offset;
        let body = Body { offset: [x, 0.1, z], step_height: random.between(0.0, 1.2), ..body };
        if world.depth(&body) == 0.0 {
            return body;
        }
    }
}

/// Promise, bodies: In a million random steps, no body passes through a wall or gets into a block.
#[test]
fn no_step_leads_into_a_block_or_out_of_a_room() {
    const STEPS: usize = 500;
    let mut random = Random(24);
    let ends = [0, i64::MAX - 60, i64::MIN + 60, 1 << 40];
    for round in 0..rounds(100) {
        let end = |axis: u32| ends[(round as usize >> (2 * axis)) % ends.len()];
        let world = rubble(&mut random, BlockPos::new(end(0), end(1), end(2)));
        let mut body = body_in(&mut random, &world);
        let mut farthest = 0.0_f64;
        let chunk = |pos: ChunkPos| world.chunks.get(&pos).map(Some);
        let mut mover = BodyMover::new(&world.table, &chunk);
        let start = world.place(&body);
        for step in 0..STEPS {
            if step % 20 == 0 {
                let speed = [2.0, 6.0, 40.0, 3_000.0][random.below(4)];
                body.velocity = [0; 3].map(|_| random.between(-speed, speed));
            }
            let before = body;
            match random.below(4) {
                0 => body.fall(&mut mover, GRAVITY, TICK),
                _ => {
                    let fall = body.velocity[1] - GRAVITY * TICK;
                    let velocity = [body.velocity[0], fall, body.velocity[2]];
                    body.advance(&mut mover, velocity, random.between(0.001, 0.2), random.share() < 0.3);
                }
            }
            let [x, y, z] = world.place(&body);
            assert!(x.abs() < 11.5 && y.abs() < 11.5 && z.abs() < 11.5, "{before:?} to {body:?}");
            // The place of an entity is stored in `f32`.
            body.offset = body.offset.map(|along| f64::from((along as f32).min(1.0 - f32::EPSILON)));
            assert!(world.depth(&body) == 0.0, "{} deep: {before:?} to {body:?}", world.depth(&body));
            assert!(!body.contact.is_stuck && !body.contact.is_held);
            farthest = (0..3).fold(farthest, |far, axis| far.max((world.place(&body)[axis] - start[axis]).abs()));
        }
        assert!(farthest > 0.0, "it never moved: {body:?}");
    }
}

/// Promise, bodies: Over the borders of chunks, a body moves as it does within a chunk.
#[test]
fn a_body_moves_the_same_wherever_the_borders_of_chunks_are() {
    let mut random = Random(7);
    for _ in 0..rounds(10) {
        let seed = random.0;
        let paths: Vec<Vec<[f64; 3]>> = [[0, 0, 0], [5, 8, 3], [8, 1, 15]]
            .map(|[x, y, z]| {
                let mut random = Random(seed);
                let world = rubble(&mut random, BlockPos::new(x, y, z));
                let mut body = body_in(&mut random, &world);
                let mut path = Vec::new();
                for _ in 0..20 {
                    let [x, z] = [0; 2].map(|_| random.between(-6.0, 6.0));
                    world.walk(&mut body, [x, z], 10, random.share() < 0.5);
                    path.push(world.place(&body));
                }
                path
            })
            .into();
        for path in &paths[1..] {
            let far =
                path.iter().zip(&paths[0]).flat_map(|(one, other)| (0..3).map(|axis| (one[axis] - other[axis]).abs()));
            assert!(far.fold(0.0, f64::max) < 1e-9);
        }
        random.share();
    }
}

/// The panes of a room by axis and side: how far from the room's blocks they are, and how thick, in sixteenths.
type Panes = [[(u8, u8); 2]; 3];

/// A room of thin panes, with one or two blocks on each axis. In one of four, a pane has a hole.
fn paned_room(random: &mut Random) -> (World, [i64; 3], Panes, bool) {
    let size = [0; 3].map(|_| 1 + random.below(2) as i64);
    let panes = [[(); 2]; 3].map(|sides| sides.map(|()| (random.below(6) as u8, 1 + random.below(3) as u8)));
    let name = |at: [i64; 3]| format!("pane_{}{}{}", at[0] + 1, at[1] + 1, at[2] + 1);
    // The sides of the room at which a cell is: -1 or 1 outside of it, by axis.
    let sides = || (-1..=1).flat_map(|x| (-1..=1).flat_map(move |y| (-1..=1).map(move |z| [x, y, z])));
    let shapes = sides().filter(|at| *at != [0; 3]).map(|at| {
        let sheets = (0..3).filter(|axis| at[*axis] != 0).map(|axis| {
            let (mut min, mut max) = ([0; 3], [16; 3]);
            let (away, thick) = panes[axis][usize::from(at[axis] > 0)];
            let low = if at[axis] > 0 { away } else { 16 - away - thick };
            (min[axis], max[axis]) = (low, low + thick);
            ShapeBox::new(min, max)
        });
        (name(at), BlockShape::from_boxes(sheets).unwrap())
    });
    let mut world = World::with_shapes(BlockPos::new(0, 0, 0), shapes);
    let range = |axis: usize| -1..=size[axis];
    for place in range(0).flat_map(|x| range(1).flat_map(move |y| range(2).map(move |z| [x, y, z]))) {
        let at = [0, 1, 2].map(|axis| if place[axis] < 0 { -1 } else { i64::from(place[axis] == size[axis]) });
        if at != [0; 3] {
            world.set(place, &name(at));
        }
    }
    let has_hole = random.below(4) == 0;
    if has_hole {
        let (axis, side) = (random.below(3), random.below(2));
        let mut hole = size.map(|size| random.below(size as usize) as i64);
        hole[axis] = [-1, size[axis]][side];
        world.set(hole, "air");
    }
    (world, size, panes, has_hole)
}

/// Promise, bodies: A block that appears in a body pushes it only along free places: never through a wall, however thin.
#[test]
fn blocks_that_appear_push_bodies_along_free_places_only() {
    const STEP: f64 = 1.0 / 64.0;
    let mut random = Random(11);
    let (mut pushed, mut stuck) = (0, 0);
    for _ in 0..rounds(8_000) {
        let (mut world, size, panes, has_hole) = paned_room(&mut random);
        let low = |axis: usize| -f64::from(panes[axis][0].0) / 16.0;
        let high = |axis: usize| size[axis] as f64 + f64::from(panes[axis][1].0) / 16.0;
        let (width, height) = (random.between(0.2, 1.2), random.between(0.2, 1.9));
        let place = [0, 1, 2].map(|axis| random.between(low(axis), high(axis)));
        let [x, y, z] = place.map(|along| along.floor() as i64);
        let offset = place.map(|along| along - along.floor());
        let mut body = Body { offset, ..Body::new(world.at([x, y, z]), width, height) };
        let is_inside = |world: &World, body: &Body| {
            let at = world.place(body);
            let [min, max] = [[-width / 2.0, 0.0, -width / 2.0], [width / 2.0, height, width / 2.0]];
            (0..3).all(|axis| at[axis] + min[axis] >= low(axis) && at[axis] + max[axis] <= high(axis))
        };
        if world.depth(&body) > 0.0 || !is_inside(&world, &body) {
            continue;
        }
        let before = world.clone();
        let cell = [
            random_cell(&mut random, place[0] - width / 2.0, place[0] + width / 2.0),
            random_cell(&mut random, place[1], place[1] + height),
            random_cell(&mut random, place[2] - width / 2.0, place[2] + width / 2.0),
        ];
        let block = world.id(World::NAMES[random.below(16).saturating_sub(8)]);
        world.add(cell, block);
        if world.depth(&body) < 1e-3 {
            continue;
        }
        let start = body;
        world.run(&mut body, 1, |body, mover| body.advance(mover, [0.0; 3], TICK, false));
        let moved = |body: &Body, axis: usize, by: f64| {
            let mut moved = *body;
            moved.offset[axis] += by;
            moved
        };
        let [from, to] = [&start, &body].map(|body| world.place(body));
        let way = [0, 1, 2].map(|axis| to[axis] - from[axis]);
        if body.contact.is_stuck {
            stuck += 1;
            assert_eq!(way, [0.0; 3]);
            // A little larger, so that it has room for its gap.
            let mut larger = Body { width: width + 4.0 * GAP, height: height + 4.0 * GAP, ..start };
            larger.offset[1] -= 2.0 * GAP;
            for (axis, sign) in (0..3).flat_map(|axis| [(axis, -1.0), (axis, 1.0)]) {
                let steps = (0..=90).map(|step| moved(&larger, axis, sign * STEP * f64::from(step)));
                let free = steps.take_while(|body| before.depth(body) <= 0.0).find(|body| world.depth(body) <= 0.0);
                assert!(free.is_none(), "{start:?} can leave {cell:?} along {axis}: {free:?}");
            }
            continue;
        }
        pushed += 1;
        assert!(world.depth(&body) <= 0.0, "{start:?} to {body:?}");
        let axis = (0..3).find(|axis| way[*axis] != 0.0).unwrap();
        assert!((0..3).all(|other| other == axis || way[other] == 0.0), "{way:?}");
        for step in 0..=(way[axis].abs() / STEP) as u32 {
            let body = moved(&start, axis, STEP.copysign(way[axis]) * f64::from(step));
            assert!(before.depth(&body) <= 0.0, "{start:?} is pushed through a pane: {way:?}");
        }
        assert!(has_hole || is_inside(&world, &body), "{start:?} is pushed out of a closed room: {way:?}");
    }
    assert!(pushed > 500 && stuck > 30, "{pushed} {stuck}");
}

/// One of the cells that a range reaches into.
fn random_cell(random: &mut Random, from: f64, to: f64) -> i64 {
    random.between(from, to).floor() as i64
}
