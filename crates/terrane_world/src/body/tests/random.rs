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
