//! Makes faces from summaries: a top for each cell, and a wall down to each lower cell beside it.
//!
//! Between two columns of different detail each wall ends exactly at the cell beside it, so there are no gaps. Where the
//! column beside it is unknown, a short wall hides that the mesh is thin.

use super::super::looks::LookTable;
use super::tiles::FarGround;
use bevy::asset::RenderAssetUsages;
use bevy::mesh::{Indices, PrimitiveTopology};
use bevy::prelude::*;
use bevy_terrane::chunk::{ColumnSummary, SummaryCell};
use bevy_terrane::space::CHUNK_SIZE;

const SIZE: i64 = CHUNK_SIZE as i64;
/// The height of a wall beside an unknown column, in blocks.
const SKIRT: i64 = 8;

/// The four sides of a cell: the direction, the axis along the edge (0 for x, 1 for z), and the face of a block.
const SIDES: [([i64; 2], usize, usize); 4] = [([-1, 0], 1, 0), ([0, -1], 0, 2), ([1, 0], 1, 3), ([0, 1], 0, 5)];
const TOP: usize = 4;

/// Adds the faces of one column of the tile, by its offset from the tile's lowest one. Positions are relative to the tile's
/// lowest block at the height `base`.
pub(super) fn add_column(
    geometry: &mut Geometry,
    ground: &FarGround,
    (x, z): (i64, i64),
    base: i64,
    looks: &LookTable,
) {
    let Some(column) = ground.column(x, z) else { return };
    let mut mesher = ColumnMesher { geometry, ground, column, corner: [x * SIZE, z * SIZE], base, looks };
    mesher.add_tops();
    SIDES.iter().for_each(|side| mesher.add_walls(*side));
}

struct ColumnMesher<'a> {
    geometry: &'a mut Geometry,
    ground: &'a FarGround,
    column: &'a ColumnSummary,
    /// The column's lowest block, relative to the tile's lowest one.
    corner: [i64; 2],
    base: i64,
    looks: &'a LookTable,
}

/// A wall along an edge from one block to another, from the lower to the upper height.
#[derive(Clone, Copy, PartialEq)]
struct Wall {
    from: i64,
    to: i64,
    bottom: i64,
    top: SummaryCell,
}

impl ColumnMesher<'_> {
    fn cell_size(&self) -> i64 {
        self.column.detail().cell_size() as i64
    }

    fn cells(&self) -> i64 {
        self.column.detail().cells() as i64
    }

    /// The lowest block of a cell of this column, relative to the tile's lowest one.
    fn block(&self, cell: [i64; 2]) -> [i64; 2] {
        [0, 1].map(|axis| self.corner[axis] + cell[axis] * self.cell_size())
    }

    /// The visible surface of a cell; beyond the column, of the neighbor at that place.
    fn surface(&self, [x, z]: [i64; 2]) -> Option<SummaryCell> {
        let within = 0..self.cells();
        if within.contains(&x) && within.contains(&z) {
            return self.column.surface(x as usize, z as usize);
        }
        let [x, z] = self.block([x, z]).map(|block| block + self.cell_size() / 2);
        self.ground.surface(x, z)
    }

    /// The upper side of the blocks at a height.
    fn top(&self, height: i64) -> f32 {
        height.wrapping_sub(self.base) as f32 + 1.0
    }

    fn color(&self, surface: SummaryCell, light: f32) -> [f32; 4] {
        (self.looks.of(surface.block).color * light).extend(1.0).to_array()
    }

    fn add_tops(&mut self) {
        for z in 0..self.cells() {
            let mut x = 0;
            while x < self.cells() {
                let first = x;
                x += 1;
                let Some(surface) = self.surface([first, z]) else { continue };
                let light = self.corner_light([first, z], surface);
                // A row of equal cells becomes one face.
                let is_alike = |next: i64| {
                    self.surface([next, z]) == Some(surface) && self.corner_light([next, z], surface) == [1.0; 4]
                };
                while light == [1.0; 4] && x < self.cells() && is_alike(x) {
                    x += 1;
                }
                self.add_top([first, z], x, surface, light);
            }
        }
    }

    fn add_top(&mut self, cell: [i64; 2], end: i64, surface: SummaryCell, light: [f32; 4]) {
        let ([x0, z0], [x1, z1]) = (self.block(cell), self.block([end, cell[1] + 1]));
        let y = self.top(surface.height);
        let corners = [[x0, z0], [x0, z1], [x1, z1], [x1, z0]].map(|[x, z]| [x as f32, y, z as f32]);
        let colors = light.map(|light| self.color(surface, light * side_light(TOP)));
        self.geometry.push_quad(corners, [0.0, 1.0, 0.0], colors);
    }

    /// The light in the corners of a cell, in the order of its top's corners. It is darker the higher the cells beside it are, up
    /// to the width of a cell.
    fn corner_light(&self, [x, z]: [i64; 2], surface: SummaryCell) -> [f32; 4] {
        let closed = |dx: i64, dz: i64| {
            let beside = self.surface([x + dx, z + dz]).map_or(surface.height, |beside| beside.height);
            (beside.saturating_sub(surface.height) as f32 / self.cell_size() as f32).clamp(0.0, 1.0)
        };
        [(-1, -1), (-1, 1), (1, 1), (1, -1)].map(|(dx, dz)| {
            let (a, b) = (closed(dx, 0), closed(0, dz));
            let open = (3.0 - a - b - closed(dx, dz).max(a * b)).max(0.0);
            let (low, part) = (open.floor() as usize, open.fract());
            CORNER_LIGHT[low] + (CORNER_LIGHT[(low + 1).min(3)] - CORNER_LIGHT[low]) * part
        })
    }

    /// Adds the walls on one side of all cells.
    fn add_walls(&mut self, side: ([i64; 2], usize, usize)) {
        let (_, along, _) = side;
        for row in 0..self.cells() {
            let mut open: Option<Wall> = None;
            for place in 0..self.cells() {
                let cell = if along == 0 { [place, row] } else { [row, place] };
                for wall in self.walls(cell, side) {
                    match &mut open {
                        Some(last) if (last.to, last.bottom, last.top) == (wall.from, wall.bottom, wall.top) => {
                            last.to = wall.to;
                        }
                        _ => {
                            open.replace(wall).into_iter().for_each(|wall| self.add_wall(row, wall, side));
                        }
                    }
                }
            }
            open.into_iter().for_each(|wall| self.add_wall(row, wall, side));
        }
    }

    /// The walls on one side of one cell, one for each cell beside it.
    fn walls(&self, cell: [i64; 2], (way, along, _): ([i64; 2], usize, usize)) -> Vec<Wall> {
        let Some(top) = self.surface(cell) else { return Vec::new() };
        let size = self.cell_size();
        let begin = self.block(cell);
        // The first block beyond the edge.
        let across = 1 - along;
        let mut beyond = begin;
        beyond[across] += if way[across] > 0 { size } else { -1 };
        let step = self.ground.detail(beyond[0], beyond[1]).map_or(size, |detail| size.min(detail.cell_size() as i64));
        let wall = |from: i64| {
            let mut place = beyond;
            place[along] = from;
            let bottom = match self.ground.surface(place[0], place[1]) {
                Some(beside) => beside.height,
                None => top.height.saturating_sub(SKIRT),
            };
            (bottom < top.height).then_some(Wall { from, to: from + step, bottom, top })
        };
        (begin[along]..begin[along] + size).step_by(step as usize).filter_map(wall).collect()
    }

    fn add_wall(&mut self, row: i64, wall: Wall, (way, along, face): ([i64; 2], usize, usize)) {
        let across = 1 - along;
        let at = self.corner[across] + (row + i64::from(way[across] > 0)) * self.cell_size();
        // From left to right, as seen from outside.
        let ends = if way == [1, 0] || way == [0, -1] { [wall.to, wall.from] } else { [wall.from, wall.to] };
        let (low, high) = (self.top(wall.bottom), self.top(wall.top.height));
        let corner = |end: i64, y: f32| {
            let mut place = [at, at];
            place[along] = end;
            [place[0] as f32, y, place[1] as f32]
        };
        let corners = [corner(ends[0], low), corner(ends[1], low), corner(ends[1], high), corner(ends[0], high)];
        let light = side_light(face);
        // The foot is in the corner between two faces.
        let foot = self.color(wall.top, light * CORNER_LIGHT[2]);
        let head = self.color(wall.top, light);
        self.geometry.push_quad(corners, [way[0] as f32, 0.0, way[1] as f32], [foot, foot, head, head]);
    }
}

/// The faces of a mesh as triangles.
#[derive(Debug, Default)]
pub(super) struct Geometry {
    pub positions: Vec<[f32; 3]>,
    pub normals: Vec<[f32; 3]>,
    pub colors: Vec<[f32; 4]>,
    pub indices: Vec<u32>,
}

/// The light of a corner by its openness, as in `chunk.wgsl`: 0 between two walls, 3 in the open.
pub(super) const CORNER_LIGHT: [f32; 4] = [0.5, 0.68, 0.84, 1.0];

/// The part of the sun's light that is baked, as in `chunk.wgsl`, by the side: west, down, north, east, up, south.
pub(super) fn side_light(side: usize) -> f32 {
    match side {
        4 => 1.0,
        1 => 0.5,
        0 | 3 => 0.8,
        _ => 0.7,
    }
}

impl Geometry {
    /// Adds a face with this normal and its corners counterclockwise as seen from the front.
    pub fn push_quad(&mut self, corners: [[f32; 3]; 4], normal: [f32; 3], colors: [[f32; 4]; 4]) {
        let start = self.positions.len() as u32;
        self.positions.extend(corners);
        self.normals.extend([normal; 4]);
        let light = |corner: usize| colors[corner][0] + colors[corner][1] + colors[corner][2];
        // The face is divided along the brighter diagonal, so that a dark corner stays a corner.
        let triangles =
            if light(0) + light(2) >= light(1) + light(3) { [0, 1, 2, 0, 2, 3] } else { [0, 1, 3, 1, 2, 3] };
        self.colors.extend(colors);
        self.indices.extend(triangles.map(|corner| start + corner));
    }

    /// The mesh, kept by the renderer only.
    pub fn into_mesh(self) -> Mesh {
        Mesh::new(PrimitiveTopology::TriangleList, RenderAssetUsages::RENDER_WORLD)
            .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, self.positions)
            .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, self.normals)
            .with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, self.colors)
            .with_inserted_indices(Indices::U32(self.indices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::far::tiles::TILE;
    use bevy_terrane::block::{BlockId, BlockRegistry, BlockType};
    use bevy_terrane::chunk::{Column, Detail};
    use bevy_terrane::space::{BlockPos, ColumnPos};
    use proptest::prelude::*;
    use std::sync::Arc;

    const STONE: BlockId = BlockId::new(1);

    fn looks() -> LookTable {
        let mut blocks = BlockRegistry::new();
        assert_eq!(blocks.register(BlockType::new("test:stone").with_color([200, 200, 200])).unwrap(), STONE);
        LookTable::new(&blocks, [])
    }

    /// Summaries with these details and heights, by the offset from the tile's lowest block.
    fn ground(detail: impl Fn(i64, i64) -> Option<Detail>, height: impl Fn(i64, i64) -> i64) -> FarGround {
        FarGround::from_fn(|x, z| {
            let mut column = Column::new(ColumnPos::new(x, z));
            for block in 0..SIZE * SIZE {
                let (x, z) = (x * SIZE + block % SIZE, z * SIZE + block / SIZE);
                column.set_block(BlockPos::new(x, height(x, z), z), STONE);
            }
            detail(x, z).map(|detail| Arc::new(ColumnSummary::new(&column).at(detail)))
        })
    }

    fn mesh(ground: &FarGround) -> Geometry {
        mesh_from(ground, 0)
    }

    fn mesh_from(ground: &FarGround, base: i64) -> Geometry {
        let mut geometry = Geometry::default();
        for column in (0..TILE).flat_map(|x| (0..TILE).map(move |z| (x, z))) {
            add_column(&mut geometry, ground, column, base, &looks());
        }
        geometry
    }

    fn triangles(geometry: &Geometry) -> impl Iterator<Item = ([Vec3; 3], Vec3)> {
        geometry.indices.chunks(3).map(|corners| {
            let at = |corner: usize| Vec3::from(geometry.positions[corners[corner] as usize]);
            ([at(0), at(1), at(2)], Vec3::from(geometry.normals[corners[0] as usize]))
        })
    }

    #[test]
    fn level_ground_is_one_face_a_row_and_ends_in_a_skirt() {
        let flat = ground(|x, z| ((x, z) == (3, 3)).then_some(Detail::FINEST), |_, _| 7);
        let geometry = mesh(&flat);
        assert_eq!(geometry.positions.len(), 4 * (16 + 4));
        assert!(geometry.positions.iter().all(|place| [8.0, 8.0 - SKIRT as f32].contains(&place[1])));
        let inner = mesh(&ground(|_, _| Some(Detail::FINEST), |_, _| 7));
        assert_eq!(inner.positions.len(), 4 * 16 * 64, "no wall between level columns");
    }

    #[test]
    fn a_base_far_up_is_exact() {
        let high = i64::MAX / 2;
        let far = ground(|_, _| Some(Detail::COARSEST), |x, _| high + (x >> 4));
        let geometry = mesh_from(&far, high);
        let highest = geometry.positions.iter().map(|place| place[1]).fold(0.0, f32::max);
        assert_eq!(highest, 8.0);
    }

    fn details() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0..=4u8, 100)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Over every block of the tile there is one face at the height of the summary, and between any two adjacent blocks the
        /// wall is as high as their difference, for any details. So there are no gaps and no double faces.
        #[test]
        fn nothing_is_open(details in details(), rough in 0..9i64, seed in any::<u32>()) {
            let height = |x: i64, z: i64| {
                let mixed = (x as u64).wrapping_mul(0x9E37_79B9) ^ (z as u64).wrapping_mul(0x85EB_CA6B) ^ u64::from(seed);
                (mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 40) as i64 % (rough + 1) + x / 7
            };
            let ground = ground(|x, z| Some(Detail::new(details[((x + 1) * 10 + z + 1) as usize])), height);
            let geometry = mesh(&ground);
            let mut tops = vec![0.0; 128 * 128];
            // Indexed by the block on the lower side: x walls, z walls.
            let mut walls = [vec![0.0; 130 * 130], vec![0.0; 130 * 130]];
            for quad in geometry.positions.chunks(4) {
                let low = quad.iter().fold(Vec3::MAX, |low, place| low.min(Vec3::from(*place)));
                let high = quad.iter().fold(Vec3::MIN, |high, place| high.max(Vec3::from(*place)));
                let (x0, x1, z0, z1) = (low.x as usize, high.x as usize, low.z as usize, high.z as usize);
                if low.y == high.y {
                    (x0..x1).flat_map(|x| (z0..z1).map(move |z| (x, z))).for_each(|(x, z)| tops[x * 128 + z] += low.y);
                } else if x0 == x1 {
                    (z0..z1).for_each(|z| walls[0][x0 * 130 + z] += high.y - low.y);
                } else {
                    (x0..x1).for_each(|x| walls[1][x * 130 + z0] += high.y - low.y);
                }
            }
            let at = |x: i64, z: i64| ground.surface(x, z).unwrap().height as f32;
            for (x, z) in (0..128i64).flat_map(|x| (0..128i64).map(move |z| (x, z))) {
                prop_assert_eq!(tops[(x * 128 + z) as usize], at(x, z) + 1.0);
                // Inward walls at the tile's rim belong to the next tile.
                if x > 0 {
                    prop_assert_eq!(walls[0][(x * 130 + z) as usize], (at(x, z) - at(x - 1, z)).abs(), "x {} {}", x, z);
                }
                if z > 0 {
                    prop_assert_eq!(walls[1][(x * 130 + z) as usize], (at(x, z) - at(x, z - 1)).abs(), "z {} {}", x, z);
                }
            }
            for (corners, normal) in triangles(&geometry) {
                let cross = (corners[1] - corners[0]).cross(corners[2] - corners[0]);
                prop_assert!(cross.normalize().distance(normal) < 1e-4, "{cross} {normal}");
            }
        }
    }
}
