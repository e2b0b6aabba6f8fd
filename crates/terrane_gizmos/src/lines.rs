//! Lines along the edges of chunks. Their ends are exact: each is the lowest corner of a chunk.

use bevy::math::Vec3;
use bevy_terrane::space::{BlockPos, CHUNK_SIZE, ChunkPos, ColumnPos, SectionPos};
use std::ops::RangeInclusive;

pub type Line = [ChunkPos; 2];

/// The lines along all edges of chunks between two corners: the edges of a box, of a wall if the corners are at the same x or z.
pub fn lattice(low: ChunkPos, high: ChunkPos) -> impl Iterator<Item = Line> {
    let (xs, ys, zs) = (low.x..=high.x, low.y..=high.y, low.z..=high.z);
    let along_x = pairs(&ys, &zs).map(move |(y, z)| [ChunkPos::new(low.x, y, z), ChunkPos::new(high.x, y, z)]);
    let along_y = pairs(&xs, &zs).map(move |(x, z)| [ChunkPos::new(x, low.y, z), ChunkPos::new(x, high.y, z)]);
    let along_z = pairs(&xs, &ys).map(move |(x, y)| [ChunkPos::new(x, y, low.z), ChunkPos::new(x, y, high.z)]);
    along_x.chain(along_y).chain(along_z).filter(|[from, to]| from != to)
}

fn pairs(first: &RangeInclusive<i64>, second: &RangeInclusive<i64>) -> impl Iterator<Item = (i64, i64)> + use<> {
    let second = second.clone();
    first.clone().flat_map(move |one| second.clone().map(move |other| (one, other)))
}

/// The edges of a chunk.
pub fn edges(chunk: ChunkPos) -> impl Iterator<Item = Line> {
    lattice(chunk, ChunkPos::new(chunk.x + 1, chunk.y + 1, chunk.z + 1))
}

/// A straight piece of the border of a region, between two corners of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall {
    pub low: ColumnPos,
    pub high: ColumnPos,
    /// The direction along x and z out of the region.
    pub outward: (i64, i64),
}

/// The border around these sections, which are sorted, up to `radius` columns away from a column.
pub fn walls(sections: &[SectionPos], shift: u32, around: ColumnPos, radius: i64) -> Vec<Wall> {
    let near = [around.offset(-radius, -radius), around.offset(radius, radius)];
    let [first, last] = near.map(|column| column.section(shift));
    let side = 1 << shift;
    let mut walls = Vec::new();
    let begin = sections.partition_point(|section| section.x < first.x);
    for section in sections[begin..].iter().take_while(|section| section.x <= last.x) {
        if !(first.z..=last.z).contains(&section.z) {
            continue;
        }
        let (x, z) = (section.x << shift, section.z << shift);
        let sides = [
            ((-1, 0), (x, z), (x, z + side)),
            ((1, 0), (x + side, z), (x + side, z + side)),
            ((0, -1), (x, z), (x + side, z)),
            ((0, 1), (x, z + side), (x + side, z + side)),
        ];
        for (outward, low, high) in sides {
            let beside = SectionPos::new(section.x + outward.0, section.z + outward.1);
            if sections.binary_search(&beside).is_ok() {
                continue;
            }
            // The last column ends at its next corner.
            let low = ColumnPos::new(low.0.max(near[0].x), low.1.max(near[0].z));
            let high = ColumnPos::new(high.0.min(near[1].x + 1), high.1.min(near[1].z + 1));
            // Without the part beyond the radius, nothing may be left.
            if low.x <= high.x && low.z <= high.z && low != high {
                walls.push(Wall { low, high, outward });
            }
        }
    }
    walls
}

/// The place of a chunk's lowest corner, in blocks from the lowest corner of `origin`.
pub fn corner(chunk: ChunkPos, origin: BlockPos) -> Vec3 {
    let (from, within) = (origin.chunk(), origin.in_chunk());
    let along = [chunk.x - from.x, chunk.y - from.y, chunk.z - from.z];
    Vec3::from_array(along.map(|chunks| chunks as f32)) * CHUNK_SIZE as f32
        - Vec3::from_array(within.map(|blocks| blocks as f32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const FAR: i64 = 1 << 50;

    fn at(x: i64, y: i64, z: i64) -> ChunkPos {
        ChunkPos::new(x, y, z)
    }

    fn sections(places: &[(i64, i64)]) -> Vec<SectionPos> {
        let mut sections: Vec<_> = places.iter().map(|(x, z)| SectionPos::new(*x, *z)).collect();
        sections.sort_unstable();
        sections
    }

    /// The sides of columns in these walls: the column inside, and the direction out of the region.
    fn sides(walls: &[Wall]) -> BTreeSet<((i64, i64), (i64, i64))> {
        let mut sides = BTreeSet::new();
        for Wall { low, high, outward } in walls {
            // Beside its last corner, a wall has no column.
            let xs = if low.x == high.x { low.x..low.x + 1 } else { low.x..high.x };
            let zs = if low.z == high.z { low.z..low.z + 1 } else { low.z..high.z };
            for (x, z) in xs.flat_map(|x| zs.clone().map(move |z| (x, z))) {
                let inside = (x - outward.0.max(0), z - outward.1.max(0));
                assert!(sides.insert((inside, *outward)), "{inside:?} has two walls at {outward:?}");
            }
        }
        sides
    }

    /// All sides of columns with a column of the same sections on one side only.
    fn model(
        sections: &[SectionPos],
        shift: u32,
        around: ColumnPos,
        radius: i64,
    ) -> BTreeSet<((i64, i64), (i64, i64))> {
        let is_inside = |x, z| sections.contains(&ColumnPos::new(x, z).section(shift));
        let near = (-radius..=radius).flat_map(|x| (-radius..=radius).map(move |z| (around.x + x, around.z + z)));
        let ways = [(-1, 0), (1, 0), (0, -1), (0, 1)];
        let sides = near.filter(|(x, z)| is_inside(*x, *z)).flat_map(|(x, z)| ways.map(|way| ((x, z), way)));
        sides.filter(|((x, z), way)| !is_inside(x + way.0, z + way.1)).collect()
    }

    #[test]
    fn a_box_has_twelve_edges_and_a_wall_no_depth() {
        let lines: Vec<Line> = edges(at(FAR, -3, 7)).collect();
        assert_eq!(lines.len(), 12);
        let corners: BTreeSet<ChunkPos> = lines.iter().flatten().copied().collect();
        assert_eq!(corners.len(), 8);
        assert_eq!(corners.first(), Some(&at(FAR, -3, 7)));
        assert_eq!(corners.last(), Some(&at(FAR + 1, -2, 8)));
        for [from, to] in lines {
            assert_eq!((to.x - from.x) + (to.y - from.y) + (to.z - from.z), 1);
        }
        let wall: Vec<Line> = lattice(at(5, 0, 0), at(5, 2, 3)).collect();
        assert_eq!(wall.len(), 3 + 4, "three lines along z, and four along y");
        assert!(wall.contains(&[at(5, 1, 0), at(5, 1, 3)]) && wall.contains(&[at(5, 0, 2), at(5, 2, 2)]));
    }

    #[test]
    fn the_border_of_regions_is_around_their_sections_and_nowhere_else() {
        let shapes: [&[(i64, i64)]; 5] =
            [&[(0, 0)], &[(0, 0), (0, 1), (1, 1)], &[(-2, -1), (-1, -1), (-1, 0)], &[(0, 0), (1, 1)], &[(-9, 3)]];
        for (shape, shift) in shapes.into_iter().flat_map(|shape| (0..4).map(move |shift| (shape, shift))) {
            let sections = sections(shape);
            for around in [(0, 0), (-3, -5), (7, 9), (-80, 30)].map(|(x, z)| ColumnPos::new(x, z)) {
                let found = walls(&sections, shift, around, 8);
                let found: BTreeSet<_> = sides(&found);
                // Of walls at the edge of what is near, also the outer sides of columns beyond it are near.
                let near =
                    |((x, z), _): &((i64, i64), (i64, i64))| (x - around.x).abs() <= 8 && (z - around.z).abs() <= 8;
                let found: BTreeSet<_> = found.into_iter().filter(near).collect();
                assert_eq!(found, model(&sections, shift, around, 8), "{shape:?}, {shift}, {around}");
            }
        }
    }

    #[test]
    fn the_outline_of_a_large_region_is_cut_at_the_radius() {
        let sections = sections(&[(0, 0)]);
        let found = walls(&sections, 6, ColumnPos::new(0, 30), 8);
        let low = ColumnPos::new(0, 22);
        assert_eq!(found, [Wall { low, high: ColumnPos::new(0, 39), outward: (-1, 0) }]);
        assert_eq!(walls(&sections, 6, ColumnPos::new(30, 30), 8), []);
    }

    #[test]
    fn corners_are_exact_far_from_the_origin() {
        let origin = BlockPos::new((FAR << 4) + 3, -20, -(FAR << 4));
        assert_eq!(corner(at(FAR + 2, 0, -FAR - 1), origin), Vec3::new(29.0, 20.0, -16.0));
        // The last chunk of the world has an upper corner too.
        let end = BlockPos::new(i64::MAX, 0, i64::MIN).chunk();
        let upper = at(end.x + 1, 0, end.z);
        assert_eq!(corner(upper, BlockPos::new(i64::MAX, 0, i64::MIN)), Vec3::new(1.0, 0.0, 0.0));
    }
}
