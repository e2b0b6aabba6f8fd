use super::*;
use crate::block::{BlockType, ShapeBox};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Blocks of all shapes: 1 cube, 2 slab, 3 stairs, 4 plant, 5 fence, 6 torch, 7 liquid.
fn types() -> BlockRegistry {
    let mut types = BlockRegistry::new();
    let shapes = [
        BlockShape::Cube,
        BlockShape::slab(),
        BlockShape::stairs(),
        BlockShape::Cross,
        BlockShape::fence(),
        BlockShape::torch(),
        BlockShape::liquid(5).unwrap(),
    ];
    for (number, shape) in shapes.into_iter().enumerate() {
        types.register(BlockType::new(format!("test:{number}")).with_shape(shape)).unwrap();
    }
    types
}

const WANTED: fn(BlockId) -> bool = |block| block != BlockId::AIR;

struct World(BTreeMap<[i64; 3], Chunk>);

impl World {
    fn set(&mut self, pos: BlockPos, layer: u8, block: u32) {
        let ChunkPos { x, y, z } = pos.chunk();
        let chunk = self.0.entry([x, y, z]).or_insert_with(|| Chunk::uniform(BlockId::AIR));
        chunk.set_block_at(pos.in_chunk(), layer, BlockId::new(block)).unwrap();
    }

    fn chunk(&self, ChunkPos { x, y, z }: ChunkPos) -> Option<&Chunk> {
        self.0.get(&[x, y, z])
    }

    fn cast(&self, ray: BlockRay, reach: f64) -> Option<RayHit> {
        cast_ray(ray, reach, &types(), |pos| self.chunk(pos), WANTED)
    }
}

fn at(x: i64, y: i64, z: i64) -> BlockPos {
    BlockPos::new(x, y, z)
}

/// The nearest distance of all boxes of all blocks, straight from the definition, in blocks from `base`.
fn slow(world: &World, base: BlockPos, offset: [f64; 3], along: [f64; 3], reach: f64) -> Option<f64> {
    let types = types();
    let shape = |pos: BlockPos| {
        let block = world.chunk(pos.chunk()).map_or(BlockId::AIR, |chunk| chunk.block(pos.in_chunk()));
        types.block(block).shape().clone()
    };
    let mut nearest: Option<f64> = None;
    for ([x, y, z], chunk) in &world.0 {
        let first = ChunkPos::new(*x, *y, *z).min_block();
        for cell in 0..4096_i64 {
            let pos = first.offset(cell / 256, cell / 16 % 16, cell % 16);
            let place = pos.in_chunk();
            let layers = (0..chunk.layer_count(place) as u8).filter_map(|layer| chunk.block_at(place, layer));
            for block in layers.filter(|block| WANTED(*block)) {
                let own = types.block(block).shape();
                let is_joined = |side: &Face| {
                    let [x, y, z] = side.normal();
                    own.joins(&shape(pos.offset(x, y, z)), *side)
                };
                for part in own.boxes(Face::SIDES.into_iter().filter(is_joined).collect()) {
                    nearest = distance_to(part, pos, base, offset, along).into_iter().chain(nearest).reduce(f64::min);
                }
            }
        }
    }
    nearest.filter(|distance| *distance <= reach)
}

fn distance_to(part: ShapeBox, pos: BlockPos, base: BlockPos, offset: [f64; 3], along: [f64; 3]) -> Option<f64> {
    let from = [pos.x - base.x, pos.y - base.y, pos.z - base.z];
    let (mut enters, mut leaves) = (0.0_f64, f64::INFINITY);
    for axis in 0..3 {
        let side = |at: u8| from[axis] as f64 + f64::from(at) / 16.0 - offset[axis];
        let (low, high) = (side(part.min[axis]), side(part.max[axis]));
        if along[axis] == 0.0 {
            if low > 0.0 || high <= 0.0 {
                return None;
            }
            continue;
        }
        let (one, other) = (low / along[axis], high / along[axis]);
        enters = enters.max(one.min(other));
        leaves = leaves.min(one.max(other));
    }
    // Rays that only touch a box may be decided either way.
    (leaves - enters > 1e-9).then_some(enters)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_hit_is_the_nearest_of_all_boxes(
        blocks in prop::collection::vec((prop::array::uniform3(-20_i64..36), 1_u32..8), 0..300),
        above in prop::collection::vec((prop::array::uniform3(-20_i64..36), 1_u32..8), 0..4),
        offset in prop::array::uniform3(0.0..1.0),
        start in prop::array::uniform3(-20_i64..36),
        direction in prop::array::uniform3(prop_oneof![Just(0.0), -1.0..1.0, Just(1.0), Just(-1.0)]),
        base in prop_oneof![Just(0), Just(1_i64 << 62), Just(-(1_i64 << 62))],
        reach in prop_oneof![Just(8.0), Just(64.0), Just(200.0)],
    ) {
        let length = direction.iter().map(|it| it * it).sum::<f64>().sqrt();
        prop_assume!(length > 1e-3);
        let along = direction.map(|it| it / length);
        let mut world = World(BTreeMap::new());
        for ([x, y, z], block) in &blocks {
            world.set(at(base + x, base + y, base + z), 0, *block);
        }
        for ([x, y, z], block) in &above {
            world.set(at(base + x, base + y, base + z), 1, *block);
        }
        let start = at(base + start[0], base + start[1], base + start[2]);
        let hit = world.cast(BlockRay::new(start, offset, direction), reach);
        let expected = slow(&world, start, offset, along, reach);
        match (hit, expected) {
            (Some(hit), Some(distance)) => {
                prop_assert!((hit.distance - distance).abs() < 1e-9, "{hit:?} instead of {distance}");
                let from = [hit.block.x - start.x, hit.block.y - start.y, hit.block.z - start.z];
                for axis in 0..3 {
                    let point = offset[axis] + along[axis] * distance - from[axis] as f64;
                    prop_assert!((hit.point[axis] - point).abs() < 1e-9, "{hit:?}: {point} on axis {axis}");
                }
                prop_assert_eq!(hit.face.is_none(), hit.distance == 0.0);
            }
            (None, None) => {}
            // At the very edge of a box or of the reach.
            (hit, expected) => prop_assert!(
                hit.map(|hit| hit.distance).or(expected).is_some_and(|distance| (distance - reach).abs() < 1e-6),
                "{hit:?} instead of {expected:?}"
            ),
        }
    }
}

/// Promise, bodies and rays: A ray passes over a slab and beside a torch, and between the rails of a fence.
#[test]
fn a_ray_hits_shapes_and_not_whole_blocks() {
    let mut world = World(BTreeMap::new());
    world.set(at(3, 0, 0), 0, 2);
    world.set(at(6, 0, 0), 0, 1);
    let east = |y: f64| BlockRay::new(at(0, 0, 0), [0.5, y, 0.5], [1.0, 0.0, 0.0]);
    let low = world.cast(east(0.25), 10.0).unwrap();
    assert_eq!((low.block, low.face, low.point, low.distance), (at(3, 0, 0), Some(Face::West), [0.0, 0.25, 0.5], 2.5));
    assert_eq!(low.before(), at(2, 0, 0));
    let over = world.cast(east(0.75), 10.0).unwrap();
    assert_eq!((over.block, over.distance), (at(6, 0, 0), 5.5));
    assert_eq!(world.cast(east(0.75), 5.0), None);
    // Down onto the slab.
    let down = world.cast(BlockRay::new(at(3, 4, 0), [0.5; 3], [0.0, -1.0, 0.0]), 10.0).unwrap();
    assert_eq!(
        (down.block, down.face, down.point, down.distance),
        (at(3, 0, 0), Some(Face::Top), [0.5, 0.5, 0.5], 4.0)
    );
    // A fence has arms to the fences beside it.
    world.set(at(3, 0, 0), 0, 5);
    let between_posts = BlockRay::new(at(3, 0, 4), [0.5, 0.5, 0.5], [0.0, 0.0, -1.0]);
    assert_eq!(world.cast(between_posts.clone(), 4.0).unwrap().distance, 3.875);
    world.set(at(3, 0, 1), 0, 5);
    assert_eq!(world.cast(between_posts, 4.0).unwrap().block, at(3, 0, 1));
}

#[test]
fn a_ray_that_begins_in_a_block_hits_it_at_once_and_layers_count() {
    let mut world = World(BTreeMap::new());
    world.set(at(0, 0, 0), 0, 1);
    let inside = world.cast(BlockRay::new(at(0, 0, 0), [0.5; 3], [0.0, 1.0, 0.0]), 4.0).unwrap();
    assert_eq!((inside.face, inside.distance, inside.before()), (None, 0.0, at(0, 0, 0)));
    // Water in the cell of a torch.
    world.set(at(0, 5, 0), 0, 6);
    world.set(at(0, 5, 0), 1, 7);
    let down = |x: f64| BlockRay::new(at(0, 9, 0), [x, 0.5, 0.5], [0.0, -1.0, 0.0]);
    let [torch, water] = [0.5, 0.1].map(|x| world.cast(down(x), 10.0).unwrap());
    assert_eq!((torch.layer, torch.distance, water.layer, water.distance), (0, 3.875, 1, 3.875));
}

#[test]
fn a_ray_ends_at_the_end_of_the_world() {
    let world = World(BTreeMap::new());
    for direction in [[1.0, 0.0, 0.0], [0.0; 3], [f64::NAN, 0.0, 1.0]] {
        assert_eq!(world.cast(BlockRay::new(at(i64::MAX - 40, 0, 0), [0.5; 3], direction), f64::INFINITY), None);
    }
}
