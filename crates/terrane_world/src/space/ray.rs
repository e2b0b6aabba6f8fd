//! The blocks along a ray: the walk of Amanatides and Woo ("A Fast Voxel Traversal Algorithm for Ray Tracing", 1987).

use super::BlockPos;

/// A block that a ray meets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RayHit {
    /// The block.
    pub block: BlockPos,
    /// The outward normal of the face through which the ray enters the block; zero if the ray begins in the block.
    pub normal: [i64; 3],
    /// The distance from the start of the ray to that face, in blocks.
    pub distance: f64,
}

impl RayHit {
    /// The block before the face, where a game places a new block.
    pub fn before(&self) -> BlockPos {
        let [x, y, z] = self.normal;
        self.block.offset(x, y, z)
    }
}

/// All blocks along a ray, nearest first, beginning with the block that contains its start. Where a ray crosses an edge or a
/// corner exactly, it enters the blocks one axis at a time: x, then y, then z.
///
/// Distances are computed from the start, not added up, so they stay exact along the ray and at any block position. The ray ends
/// at the ends of `i64`. A direction that is zero or not finite has only the first block.
#[derive(Clone, Debug)]
pub struct BlockRay {
    next: Option<RayHit>,
    /// On each axis: the distance to the first border, the distance between borders, and the number of borders passed.
    axes: [(f64, f64, u32); 3],
    step: [i64; 3],
}

impl BlockRay {
    /// A ray from a point in a block: `offset` blocks, 0..1 on each axis, from the block's lowest corner. The direction may have
    /// any length.
    pub fn new(block: BlockPos, offset: [f64; 3], direction: [f64; 3]) -> Self {
        let length = direction.iter().map(|along| along * along).sum::<f64>().sqrt();
        let is_ray = length.is_finite() && length > 0.0;
        let along = |axis: usize| if is_ray { direction[axis] / length } else { 0.0 };
        let axes = [0, 1, 2].map(|axis| {
            let (along, offset) = (along(axis), offset[axis]);
            let border = if along > 0.0 { 1.0 - offset } else { offset };
            if along == 0.0 { (f64::INFINITY, 0.0, 0) } else { (border / along.abs(), along.abs().recip(), 0) }
        });
        let step = [0, 1, 2].map(|axis| if along(axis) < 0.0 { -1 } else { 1 });
        Self { next: Some(RayHit { block, normal: [0; 3], distance: 0.0 }), axes, step }
    }

    fn distance(&self, axis: usize) -> f64 {
        let (first, between, passed) = self.axes[axis];
        first + between * f64::from(passed)
    }

    fn after(&mut self, BlockPos { x, y, z }: BlockPos) -> Option<RayHit> {
        let nearest = |best, axis| if self.distance(axis) < self.distance(best) { axis } else { best };
        let axis = [1, 2].into_iter().fold(0, nearest);
        let distance = self.distance(axis);
        if !distance.is_finite() {
            return None;
        }
        let mut block = [x, y, z];
        block[axis] = block[axis].checked_add(self.step[axis])?;
        self.axes[axis].2 = self.axes[axis].2.checked_add(1)?;
        let mut normal = [0; 3];
        normal[axis] = -self.step[axis];
        let [x, y, z] = block;
        Some(RayHit { block: BlockPos::new(x, y, z), normal, distance })
    }
}

impl Iterator for BlockRay {
    type Item = RayHit;

    #[inline]
    fn next(&mut self) -> Option<RayHit> {
        let hit = self.next?;
        self.next = self.after(hit.block);
        Some(hit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The part of the ray that lies in a block: the distances at which it enters and leaves. The origin is in block 0, 0, 0.
    fn part_in(block: [i64; 3], offset: [f64; 3], along: [f64; 3]) -> (f64, f64) {
        let mut part = (0.0_f64, f64::INFINITY);
        for axis in 0..3 {
            let (low, high) = (block[axis] as f64 - offset[axis], (block[axis] + 1) as f64 - offset[axis]);
            if along[axis] == 0.0 {
                if low > 0.0 || high <= 0.0 {
                    return (f64::INFINITY, 0.0);
                }
                continue;
            }
            let (one, other) = (low / along[axis], high / along[axis]);
            part = (part.0.max(one.min(other)), part.1.min(one.max(other)));
        }
        part
    }

    fn axis_direction() -> impl Strategy<Value = f64> {
        prop_oneof![Just(0.0), -1.0..1.0, Just(1.0), Just(-1.0), -1e-6..1e-6]
    }

    proptest! {
        #[test]
        fn a_ray_meets_every_block_that_it_passes_through(
            offset in prop::array::uniform3(0.0..1.0),
            direction in prop::array::uniform3(axis_direction()),
            base in prop_oneof![Just(0), Just(1_i64 << 62), Just(-(1_i64 << 62))],
        ) {
            let length = direction.iter().map(|it| it * it).sum::<f64>().sqrt();
            prop_assume!(length > 1e-3);
            let along = direction.map(|it| it / length);
            const REACH: i64 = 6;
            let ray = BlockRay::new(BlockPos::new(base, base, base), offset, direction);
            let met: Vec<RayHit> = ray.take_while(|hit| hit.distance < REACH as f64).collect();
            let relative = |block: BlockPos| [block.x - base, block.y - base, block.z - base];
            // Slow: all blocks in reach, one by one.
            let reach = -REACH..=REACH;
            for x in reach.clone() {
                for y in reach.clone() {
                    for z in reach.clone() {
                        let (enters, leaves) = part_in([x, y, z], offset, along);
                        if leaves - enters > 1e-9 && enters < REACH as f64 - 1e-9 {
                            let found = met.iter().find(|hit| relative(hit.block) == [x, y, z]);
                            prop_assert!(found.is_some_and(|hit| (hit.distance - enters).abs() < 1e-9), "{found:?} {enters}");
                        }
                    }
                }
            }
            for hit in &met {
                let (enters, leaves) = part_in(relative(hit.block), offset, along);
                prop_assert!(enters <= leaves + 1e-9 && (hit.distance - enters).abs() < 1e-9, "{hit:?} {enters} {leaves}");
            }
            for pair in met.windows(2) {
                prop_assert_eq!(pair[1].before(), pair[0].block);
                prop_assert!(pair[0].distance <= pair[1].distance);
            }
        }
    }

    #[test]
    fn a_ray_ends_at_the_end_of_the_world_and_where_it_has_no_direction() {
        let end = BlockPos::new(i64::MAX - 1, 0, 0);
        let met: Vec<_> = BlockRay::new(end, [0.5; 3], [2.0, 0.0, 0.0]).collect();
        assert_eq!(met.len(), 2);
        assert_eq!((met[1].block.x, met[1].normal, met[1].distance), (i64::MAX, [-1, 0, 0], 0.5));
        for direction in [[0.0; 3], [f64::NAN, 1.0, 0.0], [f64::INFINITY, 0.0, 0.0]] {
            assert_eq!(BlockRay::new(end, [0.5; 3], direction).count(), 1, "{direction:?}");
        }
    }
}
