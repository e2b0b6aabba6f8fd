//! The rules of light, one at a time; then [random edits](random), compared with a flood fill.

mod columns;
mod model;
mod random;

use super::*;
use crate::block::{BlockId, BlockRegistry, BlockShape, BlockType};
use crate::chunk::Chunk;
use crate::space::{BlockPos, ChunkPos, ColumnPos, Face, HeightSet};
use model::{Blocks, Ground, World};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// A single column of air, four chunks high, open to the sky.
fn tower() -> World {
    let mut world = World::new(Blocks::new(), 0..4, 4);
    world.load(ColumnPos::new(0, 0));
    world.settle();
    world
}

/// A tower whose sky is covered at y = 63.
fn covered() -> World {
    let mut world = tower();
    let stone = world.blocks.stone;
    for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (x, z))) {
        world.set(BlockPos::new(x, 63, z), stone);
    }
    world.settle();
    world
}

fn at(x: i64, y: i64, z: i64) -> BlockPos {
    BlockPos::new(x, y, z)
}

/// Fills a box of the world's blocks.
fn fill(world: &mut World, [x, y, z]: [std::ops::Range<i64>; 3], block: BlockId) {
    for (x, y, z) in x.flat_map(|x| {
        y.clone().flat_map({
            let z = z.clone();
            move |y| z.clone().map(move |z| (x, y, z))
        })
    }) {
        world.set(at(x, y, z), block);
    }
}

/// Promise, light: Full sky light falls without loss, and each step to a side takes 1.
#[test]
fn sky_light_falls_without_loss_and_fades_to_the_sides() {
    let mut world = tower();
    let stone = world.blocks.stone;
    assert_eq!([world.sky(at(5, 63, 5)), world.sky(at(5, 0, 5))], [15, 15]);
    // A roof over half of the column: light comes in from the other half.
    fill(&mut world, [0..8, 40..41, 0..16], stone);
    world.settle();
    for x in 0..8 {
        assert_eq!(world.sky(at(x, 20, 8)), (15 - (8 - x)) as u8);
    }
    assert_eq!((world.sky(at(3, 40, 8)), world.sky(at(3, 41, 8))), (0, 15), "stone is dark inside");
}

/// Promise, light: Light is taken by a block's attenuation as it enters, and by at least 1.
#[test]
fn water_takes_its_attenuation_at_each_step() {
    let mut world = tower();
    let water = world.blocks.water;
    fill(&mut world, [0..16, 0..10, 0..16], water);
    world.settle();
    for y in 0..10 {
        assert_eq!(world.sky(at(8, y, 8)), 15_u8.saturating_sub(2 * (10 - y) as u8));
    }
    let lamp = world.blocks.lamp;
    world.set(at(8, 2, 8), lamp);
    world.settle();
    assert_eq!([9, 10, 11].map(|x| world.block_light(at(x, 2, 8))), [13, 11, 9]);
}

/// Promise, light: A block shines with its own level, also out of an opaque cube and through its own closed faces.
#[test]
fn a_lamp_that_is_an_opaque_cube_shines_through_all_its_faces() {
    let mut world = covered();
    let (lamp, glow_slab) = (world.blocks.lamp, world.blocks.glow_slab);
    world.set(at(8, 20, 8), lamp);
    world.settle();
    assert_eq!(world.block_light(at(8, 20, 8)), 15);
    for face in Face::ALL {
        let [x, y, z] = face.normal();
        assert_eq!(world.block_light(at(8 + x, 20 + y, 8 + z)), 14);
    }
    assert_eq!(world.sky(at(8, 20, 8)), 0);
    world.set(at(8, 20, 8), glow_slab);
    world.settle();
    assert_eq!([19, 20, 21].map(|y| world.block_light(at(8, y, 8))), [9, 10, 9]);
}

/// Promise, light: Light passes over a slab and not through it.
#[test]
fn a_slab_lets_light_pass_over_it_and_not_through_it() {
    let mut world = covered();
    let (slab, stone, lamp) = (world.blocks.slab, world.blocks.stone, world.blocks.lamp);
    // A shaft of one block with a slab in it, whose closed face is at the bottom.
    fill(&mut world, [0..16, 0..40, 0..16], stone);
    fill(&mut world, [8..9, 10..20, 8..9], BlockId::AIR);
    world.set(at(8, 15, 8), slab);
    world.set(at(8, 19, 8), lamp);
    world.settle();
    assert_eq!([18, 16, 15, 14].map(|y| world.block_light(at(8, y, 8))), [14, 12, 11, 0]);
    // From below, it does not pass through either.
    world.set(at(8, 19, 8), BlockId::AIR);
    world.set(at(8, 10, 8), lamp);
    world.settle();
    assert_eq!([14, 15, 16].map(|y| world.block_light(at(8, y, 8))), [11, 0, 0]);
    // Past its sides it does.
    world.set(at(9, 14, 8), BlockId::AIR);
    world.set(at(9, 15, 8), BlockId::AIR);
    world.settle();
    assert_eq!(world.block_light(at(9, 15, 8)), 9);
    assert_eq!(world.block_light(at(8, 15, 8)), 8);
}

/// Promise, light: Stairs stop light at their back and their bottom only.
#[test]
fn stairs_stop_light_at_their_closed_faces_only() {
    let mut world = covered();
    let (stairs, stone, lamp) = (world.blocks.stairs, world.blocks.stone, world.blocks.lamp);
    // A tunnel along z, with stairs that close it to the north.
    fill(&mut world, [0..16, 0..40, 0..16], stone);
    fill(&mut world, [8..9, 20..21, 1..15], BlockId::AIR);
    world.set(at(8, 20, 8), stairs);
    world.set(at(8, 20, 12), lamp);
    world.settle();
    assert_eq!([9, 8, 7].map(|z| world.block_light(at(8, 20, z))), [12, 11, 0]);
}

#[test]
fn sky_light_does_not_fall_through_a_slab() {
    let mut world = tower();
    let slab = world.blocks.slab;
    fill(&mut world, [0..16, 30..31, 0..16], slab);
    world.settle();
    assert_eq!([31, 30, 29, 0].map(|y| world.sky(at(8, y, 8))), [15, 15, 0, 0]);
    world.set(at(8, 30, 8), BlockId::AIR);
    world.settle();
    assert_eq!([29, 0].map(|y| world.sky(at(8, y, 8))), [15, 15]);
    assert_eq!(world.sky(at(4, 12, 8)), 11);
}

/// Promise, light: Uniform chunks, dark or under the full sky, take no memory, also after changes that were undone.
#[test]
fn uniform_chunks_take_no_memory() {
    let mut world = tower();
    let (stone, lamp) = (world.blocks.stone, world.blocks.lamp);
    fill(&mut world, [0..16, 0..16, 0..16], stone);
    world.settle();
    let bytes =
        |world: &World| (0..4).map(|y| world.light.chunk(ChunkPos::new(0, y, 0)).unwrap().heap_bytes()).sum::<usize>();
    assert_eq!(bytes(&world), 0);
    world.set(at(8, 20, 8), lamp);
    world.settle();
    assert!(bytes(&world) > 0);
    world.set(at(8, 20, 8), BlockId::AIR);
    world.settle();
    assert_eq!(bytes(&world), 0);
}

/// Promise, light: Changed chunks are listed once, and their light is shared by pointer.
#[test]
fn changed_chunks_are_listed_once() {
    let mut world = tower();
    assert_eq!(world.light.drain_changed().count(), 0, "inserted light is not a change");
    let lamp = world.blocks.lamp;
    world.set(at(8, 24, 8), lamp);
    world.settle();
    let mut changed: Vec<_> = world.light.drain_changed().collect();
    changed.sort_by_key(|(pos, _)| *pos);
    assert!(changed.iter().map(|(pos, _)| pos.y).eq([0, 1, 2]));
    assert_eq!(changed[1].1.block.level([8, 8, 8]), 15);
    assert_eq!(world.light.drain_changed().count(), 0);
    world.set(at(8, 24, 8), BlockId::AIR);
    world.settle();
    assert_eq!(changed[1].1.block.level([8, 8, 8]), 15, "a published chunk keeps its light");
    assert_eq!(world.light.drain_changed().count(), 3);
}

/// Promise, light: Light advances by a number of steps at a time, with the same result.
#[test]
fn work_pauses_anywhere_and_goes_on() {
    let mut world = covered();
    let lamp = world.blocks.lamp;
    world.set(at(8, 20, 8), lamp);
    world.set(at(3, 63, 3), BlockId::AIR);
    let mut calls = 0;
    while !world.advance(1) {
        calls += 1;
        assert!(!world.light.is_settled());
    }
    assert!(calls > 20, "{calls}");
    world.check();
}

/// Notes which chunks are read.
struct Noting<'a>(Ground<'a>, RefCell<BTreeSet<ChunkPos>>);

impl LightBlocks for Noting<'_> {
    fn chunk(&self, pos: ChunkPos) -> Option<&Chunk> {
        self.1.borrow_mut().insert(pos);
        self.0.chunk(pos)
    }
}

/// Promise, light: The share of a tick is kept, however many chunks have changed.
#[test]
fn steps_bound_the_chunks_that_are_visited() {
    let mut world = World::new(Blocks::new(), 0..4, 4);
    let stone = world.blocks.stone;
    let columns = || (0..8).flat_map(|x| (0..8).map(move |z| ColumnPos::new(x, z)));
    for pos in columns() {
        world.load(pos);
    }
    world.settle();
    for (pos, y) in columns().flat_map(|pos| [8, 24, 40, 56].map(|y| (pos, y))) {
        world.set(pos.min_block(y), stone);
    }
    let noting = Noting(Ground(&world.columns), RefCell::default());
    assert!(!world.light.advance(&world.table, &noting, 90));
    let visited = noting.1.into_inner().len();
    assert!((2..=20).contains(&visited), "{visited} of 256 chunks");
    world.settle();
}

#[test]
fn unregistered_blocks_are_opaque_and_dark() {
    let table = LightTable::new(&BlockRegistry::new());
    let mut column = Column::new(ColumnPos::new(0, 0));
    column.set_chunk(1, std::sync::Arc::new(Chunk::uniform(BlockId::new(7))));
    let light = ColumnLight::new(&table, &column, &HeightSet::from(0..3), 3);
    let levels = (0..3).map(|y| light.chunk(y).unwrap().sky.uniform_level());
    assert!(levels.eq([Some(0), Some(0), Some(15)]));
}

/// More kinds of blocks in one chunk than it has bits for.
#[test]
fn many_kinds_of_special_blocks_fit_into_a_chunk() {
    let mut registry = BlockRegistry::new();
    let kinds: Vec<BlockId> = (0..14)
        .map(|kind| {
            let block = BlockType::new(format!("test:tinted_{kind}")).transparent().with_light(kind + 1);
            registry.register(block.with_attenuation(kind)).unwrap()
        })
        .collect();
    let mut column = Column::new(ColumnPos::new(0, 0));
    let stone = registry.register(BlockType::new("test:stone")).unwrap();
    column.set_chunk(0, std::sync::Arc::new(Chunk::uniform(stone)));
    for (x, kind) in (1..).zip(&kinds) {
        column.set_block(at(x, 8, 8), *kind);
    }
    let light = ColumnLight::new(&LightTable::new(&registry), &column, &HeightSet::from(0..1), i64::MAX);
    let levels = light.chunk(0).unwrap();
    for kind in 0..14_u8 {
        // Each is brighter than the light from its neighbors.
        assert_eq!(levels.block.level([usize::from(kind) + 1, 8, 8]), (kind + 1).max(if kind == 0 { 1 } else { 0 }));
    }
    assert_eq!(BlockShape::slab().closed_faces().iter().count(), 1);
}
