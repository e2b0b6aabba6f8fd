//! The blocks along a ray: the walk of Amanatides and Woo ("A Fast Voxel Traversal Algorithm for Ray Tracing", 1987).

use super::{BlockPos, CHUNK_SIZE, Face, cell_index};

/// A cell through which a ray passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RayCell {
    /// The position of the cell.
    pub block: BlockPos,
    /// The face through which the ray enters the cell; `None` if the ray begins in it.
    pub face: Option<Face>,
    /// The distance from the start of the ray to that face, in blocks.
    pub distance: f64,
}

/// All blocks along a ray, nearest first, beginning with the block that contains its start. Where a ray crosses an edge or a
/// corner exactly, it enters the blocks one axis at a time: x, then y, then z.
///
/// Distances are computed from the start, not added up, so they stay exact along the ray and at any block position. The ray ends
/// at the ends of `i64`. A direction that is zero or not finite has only the first block.
#[derive(Clone, Debug)]
pub struct BlockRay {
    start: BlockPos,
    /// The start in its block, and the direction of length 1; zero if there is none.
    offset: [f64; 3],
    along: [f64; 3],
    next: Option<RayCell>,
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
            // Along an axis on which the ray hardly moves, it never reaches a border: infinity times 0 would be no number.
            let between = along.abs().recip();
            if between.is_finite() { (border / along.abs(), between, 0) } else { (f64::INFINITY, 0.0, 0) }
        });
        let step = [0, 1, 2].map(|axis| if along(axis) < 0.0 { -1 } else { 1 });
        let next = Some(RayCell { block, face: None, distance: 0.0 });
        Self { start: block, offset, along: [0, 1, 2].map(along), next, axes, step }
    }

    /// The cell that comes next.
    #[inline]
    pub(crate) fn peek(&self) -> Option<RayCell> {
        self.next
    }

    /// The face and the distance at which the ray enters a box, whose corners are given in blocks from the lowest corner of `block`;
    /// no face and 0 if it begins in the box. `None` if the ray misses it.
    pub(crate) fn enters(&self, block: BlockPos, [min, max]: [[f64; 3]; 2]) -> Option<(Option<Face>, f64)> {
        let (mut enters, mut leaves, mut face) = (f64::NEG_INFINITY, f64::INFINITY, None);
        let starts = self.relative_to(block);
        for axis in 0..3 {
            let (start, along) = (starts[axis], self.along[axis]);
            if along == 0.0 {
                if start < min[axis] || start >= max[axis] {
                    return None;
                }
                continue;
            }
            let (near, far) = if along > 0.0 { (min[axis], max[axis]) } else { (max[axis], min[axis]) };
            let (near, far) = ((near - start) / along, (far - start) / along);
            if near > enters {
                enters = near;
                face = Some(Face::ALL[if along > 0.0 { axis } else { axis + 3 }]);
            }
            leaves = leaves.min(far);
        }
        if enters >= leaves || leaves <= 0.0 {
            return None;
        }
        Some(if enters < 0.0 { (None, 0.0) } else { (face, enters) })
    }

    /// The point at a distance, in blocks from the lowest corner of `block`.
    pub(crate) fn point(&self, block: BlockPos, distance: f64) -> [f64; 3] {
        let start = self.relative_to(block);
        [0, 1, 2].map(|axis| start[axis] + self.along[axis] * distance)
    }

    /// The start of the ray, in blocks from the lowest corner of `block`.
    fn relative_to(&self, block: BlockPos) -> [f64; 3] {
        let (from, to) = ([block.x, block.y, block.z], [self.start.x, self.start.y, self.start.z]);
        [0, 1, 2].map(|axis| (i128::from(to[axis]) - i128::from(from[axis])) as f64 + self.offset[axis])
    }

    /// Goes on to the first cell that `is_wanted` accepts by its [index](super::cell_index) in its chunk. Returns `false` if there is none
    /// in the chunk of the next cell; the next cell is then the first one outside of the chunk.
    #[inline]
    pub(crate) fn find_in_chunk(&mut self, is_wanted: impl Fn(usize) -> bool) -> bool {
        const STRIDES: [usize; 3] = [CHUNK_SIZE * CHUNK_SIZE, CHUNK_SIZE, 1];
        let Some(mut cell) = self.next else { return false };
        let first = cell.block.in_chunk();
        let (mut place, mut index) = (first, cell_index(first));
        let mut borders = [0, 1, 2].map(|axis| self.distance(axis));
        loop {
            if is_wanted(index) {
                break;
            }
            let nearest = |best: usize, axis| if borders[axis] < borders[best] { axis } else { best };
            let axis = nearest(nearest(0, 1), 2);
            cell.distance = borders[axis];
            cell.face = Some(self.entered(axis));
            self.axes[axis].2 = self.axes[axis].2.saturating_add(1);
            borders[axis] = self.distance(axis);
            if self.step[axis] > 0 {
                (place[axis], index) = (place[axis] + 1, index + STRIDES[axis]);
            } else {
                (place[axis], index) = (place[axis].wrapping_sub(1), index.wrapping_sub(STRIDES[axis]));
            }
            if place[axis] >= CHUNK_SIZE || !cell.distance.is_finite() {
                index = usize::MAX;
                break;
            }
        }
        // A place below 0 has wrapped around, and is -1 as an `i64`.
        let moved = |axis: usize, from: i64| from.checked_add(place[axis] as i64 - first[axis] as i64);
        let BlockPos { x, y, z } = cell.block;
        let block = match [moved(0, x), moved(1, y), moved(2, z)] {
            [Some(x), Some(y), Some(z)] if cell.distance.is_finite() => Some(BlockPos::new(x, y, z)),
            _ => None,
        };
        self.next = block.map(|block| RayCell { block, ..cell });
        index != usize::MAX
    }

    /// Goes on to the first cell outside of the chunk of the next cell, without visiting those in between.
    pub(crate) fn leave_chunk(&mut self) {
        self.next = self.next.and_then(|cell| self.beyond_chunk(cell.block));
    }

    fn beyond_chunk(&mut self, from: BlockPos) -> Option<RayCell> {
        let cell = from.in_chunk();
        // On each axis: the number of borders up to that of the chunk, and the distance to it.
        let exits = [0, 1, 2].map(|axis| {
            let borders = if self.step[axis] > 0 { CHUNK_SIZE - cell[axis] } else { cell[axis] + 1 } as u32;
            (borders, self.border(axis, self.axes[axis].2.saturating_add(borders - 1)))
        });
        let exit = [1, 2].into_iter().fold(0, |best, axis| if exits[axis].1 < exits[best].1 { axis } else { best });
        let (_, distance) = exits[exit];
        if !distance.is_finite() {
            return None;
        }
        let borders = [0, 1, 2].map(|axis| {
            let (first, between, passed) = self.axes[axis];
            if axis == exit || !first.is_finite() {
                return if axis == exit { exits[exit].0 } else { 0 };
            }
            // Of borders at the same distance, those of the lower axis come first.
            let is_passed = |border: u32| match self.border(axis, border) {
                at if at == distance => axis < exit,
                at => at < distance,
            };
            let mut end = passed.max(((distance - first) / between) as u32);
            while end > passed && !is_passed(end - 1) {
                end -= 1;
            }
            while is_passed(end) {
                end += 1;
            }
            end - passed
        });
        for (axis, borders) in self.axes.iter_mut().zip(borders) {
            axis.2 = axis.2.checked_add(borders)?;
        }
        let moved = |axis: usize, from: i64| from.checked_add(self.step[axis] * i64::from(borders[axis]));
        let block = BlockPos::new(moved(0, from.x)?, moved(1, from.y)?, moved(2, from.z)?);
        Some(RayCell { block, face: Some(self.entered(exit)), distance })
    }

    /// The face through which the ray enters a cell along an axis.
    fn entered(&self, axis: usize) -> Face {
        Face::ALL[if self.step[axis] > 0 { axis } else { axis + 3 }]
    }

    /// The distance to a border, by its number on the axis.
    fn border(&self, axis: usize, number: u32) -> f64 {
        let (first, between, _) = self.axes[axis];
        first + between * f64::from(number)
    }

    fn distance(&self, axis: usize) -> f64 {
        self.border(axis, self.axes[axis].2)
    }

    fn after(&mut self, BlockPos { x, y, z }: BlockPos) -> Option<RayCell> {
        let nearest = |best, axis| if self.distance(axis) < self.distance(best) { axis } else { best };
        let axis = [1, 2].into_iter().fold(0, nearest);
        let distance = self.distance(axis);
        if !distance.is_finite() {
            return None;
        }
        let mut block = [x, y, z];
        block[axis] = block[axis].checked_add(self.step[axis])?;
        self.axes[axis].2 = self.axes[axis].2.checked_add(1)?;
        let [x, y, z] = block;
        Some(RayCell { block: BlockPos::new(x, y, z), face: Some(self.entered(axis)), distance })
    }
}

impl Iterator for BlockRay {
    type Item = RayCell;

    #[inline]
    fn next(&mut self) -> Option<RayCell> {
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
            let met: Vec<RayCell> = ray.take_while(|hit| hit.distance < REACH as f64).collect();
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
                let [x, y, z] = pair[1].face.expect("it is not the first").normal();
                prop_assert_eq!(pair[1].block.offset(x, y, z), pair[0].block);
                prop_assert!(pair[0].distance <= pair[1].distance);
            }
        }
    }

    proptest! {
        #[test]
        fn leaving_a_chunk_is_the_same_as_walking_out_of_it(
            start in prop::array::uniform3(-20_i64..20),
            offset in prop::array::uniform3(prop_oneof![Just(0.0), Just(0.5), 0.0..1.0]),
            direction in prop::array::uniform3(prop_oneof![axis_direction(), Just(0.5), Just(-0.5)]),
        ) {
            let mut leaving = BlockRay::new(BlockPos::new(start[0], start[1], start[2]), offset, direction);
            let mut walking = leaving.clone();
            for _ in 0..6 {
                let Some(from) = walking.peek().map(|cell| cell.block.chunk()) else { break };
                let has_direction = direction.iter().any(|along| *along != 0.0);
                while has_direction && walking.peek().is_some_and(|cell| cell.block.chunk() == from) {
                    walking.next();
                }
                leaving.leave_chunk();
                if has_direction {
                    prop_assert_eq!(leaving.peek(), walking.peek());
                } else {
                    prop_assert_eq!(leaving.peek(), None);
                    break;
                }
            }
        }
    }

    #[test]
    fn a_ray_that_hardly_moves_along_an_axis_goes_on() {
        let met: Vec<_> = BlockRay::new(BlockPos::new(0, 0, 0), [0.0; 3], [1e-320, 0.0, 1.0]).take(4).collect();
        assert_eq!((met[3].block, met[3].distance), (BlockPos::new(0, 0, 3), 3.0));
    }

    #[test]
    fn a_ray_ends_at_the_end_of_the_world_and_where_it_has_no_direction() {
        let end = BlockPos::new(i64::MAX - 1, 0, 0);
        let met: Vec<_> = BlockRay::new(end, [0.5; 3], [2.0, 0.0, 0.0]).collect();
        assert_eq!(met.len(), 2);
        assert_eq!((met[1].block.x, met[1].face, met[1].distance), (i64::MAX, Some(Face::West), 0.5));
        for direction in [[0.0; 3], [f64::NAN, 1.0, 0.0], [f64::INFINITY, 0.0, 0.0]] {
            assert_eq!(BlockRay::new(end, [0.5; 3], direction).count(), 1, "{direction:?}");
        }
    }
}
