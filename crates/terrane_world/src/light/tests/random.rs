//! Random edits, compared with the flood fill after each.

use super::model::{Blocks, Ground, World};
use crate::block::BlockId;
use crate::space::{BlockPos, ColumnPos, HeightSet};

/// The number of repetitions of a test: `few` times `TERRANE_ROUNDS`. 32 makes a million edits in all.
fn rounds(few: u32) -> u32 {
    few * std::env::var("TERRANE_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1_u32)
}

/// Numbers that look random, the same ones in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 33) as i128 * i128::from(end)) >> 31) as i64
    }

    fn one_of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as i64) as usize].clone()
    }
}

/// The size of a world in chunks, and the chunk height from which its sky is open.
struct Setting {
    columns: [i64; 2],
    height: i64,
    open_from: i64,
    is_sparse: bool,
}

/// Edits a random world this many times, and compares all of its light after each.
fn edit_at_random(seed: u64, setting: &Setting, edits: u32) {
    let mut random = Random(seed);
    let mut world = ground(&mut random, setting);
    let mut done = 0;
    while done < edits {
        match random.below(100) {
            0..3 => come_or_go(&mut world, &mut random, setting),
            3..6 => fill_box(&mut world, &mut random, setting),
            6 => split_and_merge(&mut world, &mut random, setting),
            7 => replace(&mut world, &mut random, setting),
            _ => {
                let pos = place(&mut random, setting);
                let block = block(&world, &mut random);
                world.set(pos, block);
            }
        }
        done += 1;
        // Some edits come before the work of the last one is done.
        if random.below(8) == 0 {
            let steps = random.below(40) as usize;
            world.advance(steps);
        } else {
            world.settle();
        }
    }
    world.settle();
}

/// Hills with caves and lakes, in columns that start around x = 0 and z = 0.
fn ground(random: &mut Random, setting: &Setting) -> World {
    let mut world = World::new(Blocks::new(), 0..setting.height, setting.open_from);
    let (stone, water) = (world.blocks.stone, world.blocks.water);
    for (x, z) in (0..setting.columns[0]).flat_map(|x| (0..setting.columns[1]).map(move |z| (x - 1, z - 1))) {
        let pos = ColumnPos::new(x, z);
        for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (x, z))) {
            let surface = 6 + (pos.x * 16 + x + pos.z * 5 + z).rem_euclid(11) + random.below(3);
            for y in 0..surface.max(9) {
                let block = if y >= surface {
                    water
                } else if random.below(4) == 0 {
                    BlockId::AIR
                } else {
                    stone
                };
                world.column_mut(pos).set_block(pos.min_block(y).offset(x, 0, z), block);
            }
        }
    }
    for _ in 0..setting.columns[0] * setting.columns[1] {
        come_or_go(&mut world, random, setting);
    }
    world
}

fn column(random: &mut Random, setting: &Setting) -> ColumnPos {
    ColumnPos::new(random.below(setting.columns[0]) - 1, random.below(setting.columns[1]) - 1)
}

fn place(random: &mut Random, setting: &Setting) -> BlockPos {
    let pos = column(random, setting).min_block(random.below(setting.height * 16));
    // Half of all edits are at the borders of columns.
    let mut along = || if random.below(2) == 0 { random.one_of(&[0, 15]) } else { random.below(16) };
    pos.offset(along(), 0, along())
}

/// Often air or stone, so that there are caves and walls.
fn block(world: &World, random: &mut Random) -> BlockId {
    match random.below(3) {
        0 => BlockId::AIR,
        1 => world.blocks.stone,
        _ => random.one_of(&world.blocks.all),
    }
}

/// A few edits at once: a floor, a wall or a shaft.
fn fill_box(world: &mut World, random: &mut Random, setting: &Setting) {
    let (corner, block) = (place(random, setting), block(world, random));
    let size = random.one_of(&[[9, 1, 9], [1, 9, 9], [1, 40, 1], [12, 2, 3]]);
    for (x, y, z) in (0..size[0]).flat_map(|x| (0..size[1]).flat_map(move |y| (0..size[2]).map(move |z| (x, y, z)))) {
        let pos = corner.offset(x, y, z);
        let is_inside = (0..setting.height * 16).contains(&pos.y);
        if is_inside && world.columns.contains_key(&pos.column()) {
            world.set(pos, block);
        }
    }
}

/// A column, or some of its heights, appears or goes. Light that was removed may come back as it was.
fn come_or_go(world: &mut World, random: &mut Random, setting: &Setting) {
    let pos = column(random, setting);
    let mut heights = HeightSet::from(0..setting.height);
    if setting.is_sparse {
        heights.remove(0..random.below(setting.height + 1));
        heights.remove(random.below(setting.height) + 1..setting.height);
    }
    if world.loaded.get(&pos).is_none_or(|loaded| loaded.is_empty()) || setting.is_sparse && random.below(2) == 0 {
        return world.load_heights(pos, heights);
    }
    let light = if world.light.is_settled() { world.light.column(pos) } else { None };
    world.unload(pos, &heights);
    if let (Some(light), 0) = (light, random.below(2)) {
        world.advance(random.below(30) as usize);
        let back = light.chunks().map(|(y, _)| y).collect();
        world.light.insert(light);
        world.loaded.entry(pos).or_default().insert_all(&back);
    }
}

/// Many blocks of a column change at once, and its light is computed from scratch.
fn replace(world: &mut World, random: &mut Random, setting: &Setting) {
    let pos = column(random, setting);
    let Some(heights) = world.loaded.get(&pos).filter(|heights| !heights.is_empty()).cloned() else { return };
    if let (true, 0, Some(light)) = (world.light.is_settled(), random.below(4), world.light.column(pos)) {
        // The light that it has is as good.
        return world.light.replace(light);
    }
    for _ in 0..random.below(2_000) {
        let (place, block) = (place(random, setting), block(world, random));
        world
            .column_mut(pos)
            .set_block(BlockPos { y: place.y, ..pos.min_block(0).offset(place.x & 15, 0, place.z & 15) }, block);
    }
    let light = world.light_alone(pos, &heights);
    world.light.replace(light);
}

/// Some of the columns go on alone for a while.
fn split_and_merge(world: &mut World, random: &mut Random, setting: &Setting) {
    let east_of = random.below(setting.columns[0]) - 1;
    let mut part = world.light.split_off(|pos| pos.x > east_of);
    world.advance(random.below(30) as usize);
    part.advance(&world.table, &Ground(&world.columns), random.below(30) as usize);
    world.light.append(part);
}

/// Promise, light: After any edits, and whatever the order in which columns come and go, the light is that of a flood fill.
#[test]
fn light_equals_a_flood_fill_after_each_edit() {
    let setting = Setting { columns: [2, 2], height: 2, open_from: 2, is_sparse: false };
    edit_at_random(1, &setting, rounds(10_000));
}

#[test]
fn light_equals_a_flood_fill_in_a_sparse_dimension() {
    let setting = Setting { columns: [2, 1], height: 4, open_from: i64::MIN, is_sparse: true };
    edit_at_random(2, &setting, rounds(10_000));
}

#[test]
fn light_equals_a_flood_fill_below_ground() {
    let setting = Setting { columns: [3, 2], height: 1, open_from: i64::MAX, is_sparse: false };
    edit_at_random(3, &setting, rounds(10_000));
}

#[test]
fn light_equals_a_flood_fill_in_a_wide_world() {
    let setting = Setting { columns: [4, 4], height: 3, open_from: 3, is_sparse: false };
    edit_at_random(4, &setting, rounds(2_000));
}

/// Promise, light: Heights may be inserted again with others, in any order, before the light of the first is worked off.
#[test]
fn light_equals_a_flood_fill_after_inserts_that_overlap() {
    for seed in 0..u64::from(rounds(500)) {
        let mut random = Random(seed);
        let mut world = World::new(Blocks::new(), 0..4, random.one_of(&[i64::MIN, 0, 2, 4, i64::MAX]));
        let places = [ColumnPos::new(0, 0), ColumnPos::new(1, 0)];
        // Closed roofs, some with a hole or a lamp.
        for place in places {
            for _ in 0..random.below(4) {
                let (y, roof) = (random.below(64), block(&world, &mut random));
                for cell in 0..256 {
                    world.column_mut(place).set_block(place.min_block(y).offset(cell / 16, 0, cell % 16), roof);
                }
                let (x, z, block) = (random.below(16), random.below(16), block(&world, &mut random));
                world.column_mut(place).set_block(place.min_block(y).offset(x, 0, z), block);
            }
        }
        let mut earlier = Vec::new();
        for _ in 0..12 {
            let place = random.one_of(&places);
            let heights: HeightSet = (0..4).filter(|_| random.below(2) == 0).collect();
            match random.below(8) {
                0..5 => world.load_heights(place, heights),
                5 => world.unload(place, &heights),
                6 => earlier.extend(world.light.column(place).filter(|_| world.light.is_settled())),
                _ if !earlier.is_empty() => {
                    let light = random.one_of(&earlier);
                    let back = light.chunks().map(|(y, _)| y).collect();
                    world.loaded.entry(light.pos()).or_default().insert_all(&back);
                    world.light.insert(light);
                }
                _ => {}
            }
            match random.below(3) {
                0 => drop(world.advance(random.below(30) as usize)),
                _ => world.settle(),
            }
        }
        world.settle();
    }
}
