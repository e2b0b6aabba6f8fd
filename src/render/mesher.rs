//! Turns blocks into triangles.

use super::looks::BlockLooks;
use super::neighborhood::{Neighborhood, PADDED_VOLUME, PaddedShape, VoxelCell};
use bevy::asset::RenderAssetUsages;
use bevy::mesh::{Indices, PrimitiveTopology};
use bevy::prelude::*;
use block_mesh::ndshape::ConstShape;
use block_mesh::{RIGHT_HANDED_Y_UP_CONFIG, UnorientedQuad};
use block_mesh_bgm::{BinaryGreedyQuadsBuffer, binary_greedy_quads_ao_safe};
use std::cell::RefCell;

/// The faces of a chunk as triangles. Positions are relative to the chunk's lowest corner.
#[derive(Debug, Default)]
pub(super) struct Geometry {
    pub positions: Vec<[f32; 3]>,
    pub normals: Vec<[f32; 3]>,
    pub colors: Vec<[f32; 4]>,
    pub indices: Vec<u32>,
}

/// The axes along the normal, the width and the height of a face, for the faces of
/// [`RIGHT_HANDED_Y_UP_CONFIG`]: three that look to lower coordinates, then three that look to higher ones.
const FACE_AXES: [[usize; 3]; 3] = [[0, 2, 1], [1, 2, 0], [2, 0, 1]];

/// The light of a corner by its openness: 0 between two walls, 3 in the open.
pub(super) const CORNER_LIGHT: [f32; 4] = [0.5, 0.68, 0.84, 1.0];

thread_local! {
    static BUFFER: RefCell<BinaryGreedyQuadsBuffer> = RefCell::default();
}

/// The visible faces of the chunk in the middle; `None` if there are none.
pub(super) fn geometry(neighborhood: &Neighborhood, looks: &BlockLooks) -> Option<Geometry> {
    let cells = neighborhood.cells(looks);
    BUFFER.with_borrow_mut(|buffer| {
        let faces = &RIGHT_HANDED_Y_UP_CONFIG.faces;
        binary_greedy_quads_ao_safe(&cells[..], &PaddedShape {}, [0; 3], [17; 3], faces, buffer);
        let quads = buffer.quads.num_quads();
        if quads == 0 {
            return None;
        }
        let mut geometry = Geometry::with_quads(quads);
        for (face, quads) in buffer.quads.groups.iter().enumerate() {
            quads.iter().for_each(|quad| geometry.push(face, quad, &cells, looks));
        }
        Some(geometry)
    })
}

impl Geometry {
    fn with_quads(quads: usize) -> Self {
        Self {
            positions: Vec::with_capacity(quads * 4),
            normals: Vec::with_capacity(quads * 4),
            colors: Vec::with_capacity(quads * 4),
            indices: Vec::with_capacity(quads * 6),
        }
    }

    fn push(&mut self, face: usize, quad: &UnorientedQuad, cells: &[VoxelCell; PADDED_VOLUME], looks: &BlockLooks) {
        let oriented = &RIGHT_HANDED_Y_UP_CONFIG.faces[face];
        let padding = 1.0;
        let corners = oriented.quad_mesh_positions(quad, 1.0).map(|corner| corner.map(|axis| axis - padding));
        let block = cells[PaddedShape::linearize(quad.minimum) as usize].block();
        let color = looks.of(block).color * face_light(face);
        let colors = corner_openness(face, quad, cells).map(|open| (color * CORNER_LIGHT[open]).extend(1.0).to_array());
        // The order of the corners: lowest, along the width, along the height, both.
        let is_counterclockwise = oriented.quad_mesh_indices(0)[..3] == [0, 1, 2];
        let order = if is_counterclockwise { [0, 1, 3, 2] } else { [0, 2, 3, 1] };
        let [normal, ..] = oriented.quad_mesh_normals();
        self.push_quad(order.map(|corner| corners[corner]), normal, order.map(|corner| colors[corner]));
    }

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

/// A part of the sun's light is baked into the colors, so that shapes are visible in the shade too.
pub(super) fn face_light(face: usize) -> f32 {
    match face {
        4 => 1.0,
        1 => 0.5,
        0 | 3 => 0.8,
        _ => 0.7,
    }
}

/// The openness of each corner of a face, from 0 to 3, by the cells that touch it in the layer in front.
fn corner_openness(face: usize, quad: &UnorientedQuad, cells: &[VoxelCell; PADDED_VOLUME]) -> [usize; 4] {
    let [normal, width, height] = FACE_AXES[face % 3];
    let forward = if face < 3 { -1 } else { 1 };
    // The order of a face's corners: lowest, along the width, along the height, both.
    [(-1, -1), (1, -1), (-1, 1), (1, 1)].map(|(along_width, along_height)| {
        let mut front = quad.minimum.map(|axis| axis as i32);
        front[normal] += forward;
        if along_width > 0 {
            front[width] += quad.width as i32 - 1;
        }
        if along_height > 0 {
            front[height] += quad.height as i32 - 1;
        }
        let is_closed = |by_width: i32, by_height: i32| {
            let mut cell = front;
            cell[width] += by_width;
            cell[height] += by_height;
            cells[PaddedShape::linearize(cell.map(|axis| axis as u32)) as usize].is_opaque()
        };
        let sides = [is_closed(along_width, 0), is_closed(0, along_height)];
        match sides {
            [true, true] => 0,
            [one, other] => {
                3 - usize::from(one) - usize::from(other) - usize::from(is_closed(along_width, along_height))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::neighborhood::Near;
    use super::*;
    use crate::block::{BlockId, BlockRegistry, BlockType};
    use crate::chunk::Chunk;
    use proptest::prelude::*;
    use std::sync::Arc;

    const STONE: BlockId = BlockId::new(1);
    const DIRT: BlockId = BlockId::new(2);

    fn looks() -> BlockLooks {
        let mut blocks = BlockRegistry::new();
        assert_eq!(blocks.register(BlockType::new("test:stone").with_color([200, 0, 0])).unwrap(), STONE);
        assert_eq!(blocks.register(BlockType::new("test:dirt").with_color([0, 200, 0])).unwrap(), DIRT);
        blocks.register(BlockType::new("test:glass").transparent()).unwrap();
        BlockLooks::new(&blocks)
    }

    fn alone(chunk: Chunk) -> Neighborhood {
        let chunk = Arc::new(chunk);
        Neighborhood::from_fn(|offset| if offset == [0; 3] { Near::Chunk(chunk.clone()) } else { Near::Air })
    }

    fn quads(neighborhood: &Neighborhood) -> usize {
        geometry(neighborhood, &looks()).map_or(0, |geometry| geometry.positions.len() / 4)
    }

    fn triangles(geometry: &Geometry) -> impl Iterator<Item = ([Vec3; 3], Vec3)> {
        geometry.indices.chunks(3).map(|corners| {
            let at = |corner: usize| Vec3::from(geometry.positions[corners[corner] as usize]);
            ([at(0), at(1), at(2)], Vec3::from(geometry.normals[corners[0] as usize]))
        })
    }

    #[test]
    fn one_block_has_six_faces_that_look_outwards() {
        for position in [[0, 0, 0], [7, 3, 9], [15, 15, 15]] {
            let chunk = Chunk::from_fn(|cell| if cell == position { STONE } else { BlockId::AIR });
            let geometry = geometry(&alone(chunk), &looks()).unwrap();
            assert_eq!(geometry.positions.len(), 24);
            assert_eq!(geometry.indices.len(), 36);
            let low = Vec3::from(position.map(|axis| axis as f32));
            for (corners, normal) in triangles(&geometry) {
                let cross = (corners[1] - corners[0]).cross(corners[2] - corners[0]);
                assert_eq!(cross, normal, "front faces turn counterclockwise");
                for corner in corners {
                    assert!((corner - low - 0.5).abs().max_element() == 0.5);
                    assert!((corner - low - 0.5).dot(normal) > 0.0);
                }
            }
        }
    }

    #[test]
    fn the_top_is_the_brightest_and_colors_are_linear() {
        let chunk = Chunk::from_fn(|cell| if cell == [8; 3] { STONE } else { BlockId::AIR });
        let geometry = geometry(&alone(chunk), &looks()).unwrap();
        let red = looks().of(STONE).color.x;
        let brightness = |normal: [f32; 3]| {
            let corner = geometry.normals.iter().position(|found| *found == normal).unwrap();
            geometry.colors[corner][0] / red
        };
        let close = |a: f32, b: f32| assert!((a - b).abs() < 1e-6, "{a} {b}");
        close(brightness([0.0, 1.0, 0.0]), 1.0);
        close(brightness([1.0, 0.0, 0.0]), 0.8);
        close(brightness([0.0, 0.0, -1.0]), 0.7);
        close(brightness([0.0, -1.0, 0.0]), 0.5);
    }

    #[test]
    fn faces_on_a_border_are_hidden_by_the_next_chunk() {
        let full = Arc::new(Chunk::uniform(STONE));
        assert_eq!(quads(&alone(Chunk::uniform(STONE))), 6);
        let beside = Neighborhood::from_fn(|[x, y, z]| {
            if (0..=1).contains(&x) && y == 0 && z == 0 { Near::Chunk(full.clone()) } else { Near::Air }
        });
        assert_eq!(quads(&beside), 5);
        let on_the_floor = Neighborhood::from_fn(|[x, y, z]| match [x, y, z] {
            [0, 0, 0] => Near::Chunk(full.clone()),
            [_, -1, _] => Near::Solid,
            _ => Near::Air,
        });
        let lowest = geometry(&on_the_floor, &looks()).unwrap();
        assert!(lowest.normals.iter().all(|normal| normal[1] >= 0.0));
    }

    #[test]
    fn what_is_enclosed_or_not_opaque_gives_nothing() {
        let full = Arc::new(Chunk::uniform(STONE));
        let enclosed = Neighborhood::from_fn(|_| Near::Chunk(full.clone()));
        assert!(enclosed.shows_nothing(&looks()) && geometry(&enclosed, &looks()).is_none());
        for block in [BlockId::AIR, BlockId::new(3)] {
            let empty = alone(Chunk::uniform(block));
            assert!(empty.shows_nothing(&looks()) && geometry(&empty, &looks()).is_none());
        }
        assert!(!alone(Chunk::uniform(STONE)).shows_nothing(&looks()));
    }

    #[test]
    fn blocks_of_two_kinds_do_not_share_a_face() {
        let halves = Chunk::from_fn(|[x, y, _]| match (x, y) {
            (0..8, 0) => STONE,
            (_, 0) => DIRT,
            _ => BlockId::AIR,
        });
        let geometry = geometry(&alone(halves), &looks()).unwrap();
        let tops: Vec<_> =
            (0..geometry.positions.len() / 4).filter(|quad| geometry.normals[quad * 4][1] > 0.0).collect();
        assert_eq!(tops.len(), 2);
        for quad in tops {
            let corners = quad * 4..quad * 4 + 4;
            let is_stone = geometry.positions[corners.clone()].iter().all(|corner| corner[0] <= 8.0);
            for color in &geometry.colors[corners] {
                assert_eq!((color[0] > 0.0, color[1] > 0.0), (is_stone, !is_stone));
            }
        }
    }

    #[test]
    fn a_wall_darkens_the_ground_along_its_foot() {
        let chunk = Arc::new(Chunk::from_fn(|[x, y, _]| if y == 0 || x == 8 { STONE } else { BlockId::AIR }));
        let landscape = Neighborhood::from_fn(|[_, y, _]| if y == 0 { Near::Chunk(chunk.clone()) } else { Near::Air });
        let geometry = geometry(&landscape, &looks()).unwrap();
        let red = looks().of(STONE).color.x;
        let mut corners = [0; 2];
        for (corner, position) in geometry.positions.iter().enumerate() {
            if geometry.normals[corner] == [0.0, 1.0, 0.0] && position[1] == 1.0 {
                let is_foot = position[0] == 8.0 || position[0] == 9.0;
                let light = geometry.colors[corner][0] / red;
                assert_eq!(light < 0.9, is_foot, "{position:?} has {light}");
                corners[usize::from(is_foot)] += 1;
            }
        }
        assert!(corners[0] > 0 && corners[1] > 0, "{corners:?}");
    }

    proptest! {
        /// The area of all faces by direction equals the number of block faces that a walk over all blocks finds.
        #[test]
        fn the_faces_are_those_of_a_walk_over_all_blocks(
            seed in any::<u64>(), fill in 1u64..8, around in prop::collection::vec(any::<bool>(), 27),
        ) {
            let block_at = |x: i64, y: i64, z: i64| {
                let place = ((x >> 4) + 1) * 9 + ((y >> 4) + 1) * 3 + (z >> 4) + 1;
                if !around[place as usize] && place != 13 {
                    return BlockId::AIR;
                }
                let mixed = (x as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    ^ (y as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F)
                    ^ (z as u64).wrapping_mul(0x1656_67B1_9E37_79F9)
                    ^ seed;
                let mixed = mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 32;
                if mixed % 8 < fill { BlockId::new(1 + (mixed >> 8) as u32 % 3) } else { BlockId::AIR }
            };
            let looks = looks();
            let neighborhood = Neighborhood::from_fn(|[dx, dy, dz]| {
                let at = |base: i64, within: usize| base * 16 + within as i64;
                Near::Chunk(Arc::new(Chunk::from_fn(|[x, y, z]| block_at(at(dx, x), at(dy, y), at(dz, z)))))
            });
            // By block kind and direction.
            let mut expected = [[0.0; 6]; 3];
            for x in 0..16 {
                for y in 0..16 {
                    for z in 0..16 {
                        let block = block_at(x, y, z);
                        if !looks.is_opaque(block) {
                            continue;
                        }
                        let sides = [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (1, 0, 0), (0, 1, 0), (0, 0, 1)];
                        for (face, (dx, dy, dz)) in sides.into_iter().enumerate() {
                            if !looks.is_opaque(block_at(x + dx, y + dy, z + dz)) {
                                expected[block.index() as usize][face] += 1.0;
                            }
                        }
                    }
                }
            }
            let geometry = geometry(&neighborhood, &looks).unwrap_or_default();
            let mut found = [[0.0; 6]; 3];
            for ((corners, normal), first) in triangles(&geometry).zip(geometry.indices.iter().step_by(3)) {
                let cross = (corners[1] - corners[0]).cross(corners[2] - corners[0]);
                prop_assert!(cross.dot(normal) > 0.0);
                let axis = normal.abs().to_array().iter().position(|part| *part == 1.0).unwrap();
                let face = if normal.element_sum() > 0.0 { axis + 3 } else { axis };
                let color = geometry.colors[*first as usize];
                found[if color[0] > 0.0 { 1 } else { 2 }][face] += cross.length() / 2.0;
            }
            prop_assert_eq!(found, expected);
        }
    }
}
