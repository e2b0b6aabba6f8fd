//! Blended faces are drawn from far to near.

use crate::studio::{NOTHING, Paint, Scene, Studio};
use bevy::camera::Projection;
use bevy::prelude::*;
use bevy_terrane::block::BlockShape;
use bevy_terrane::prelude::*;
use std::collections::BTreeMap;
use std::f32::consts::FRAC_PI_2;
use std::sync::Arc;
use terrane_render::{ChunkRenderPlugin, RenderMode};

const SIZE: UVec2 = UVec2::new(320, 180);
/// Eight chunks meet here.
const MIDDLE: Vec3 = Vec3::new(16.0, 16.0, 16.0);

const WATER: usize = 4;
const SLAB: usize = 5;
/// Red, green and blue glass, water, and yellow slabs. Their colors, half transparent.
const COLORS: [[u8; 3]; 5] = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [0, 160, 255], [255, 255, 0]];
const ALPHA: f32 = 128.0 / 255.0;

/// Two long walls, one behind the other, a lake with a block in the corner of its ground, and scattered blocks; in eight chunks.
fn block([x, y, z]: [i64; 3]) -> usize {
    let scattered = ((x * 7 + y * 11 + z * 13) ^ (x * y + z * 5)).rem_euclid(23);
    match [x, y, z] {
        [8, 10..24, 6..27] => 1,
        [5, 12..20, 9..23] => 3,
        [10..24, 24, 6..27] => 2,
        [14, 12, 14] => 2,
        [14..22, 12..15, 14..24] => WATER,
        [10..28, 9..22, 5..28] if scattered < 3 => 1 + scattered as usize,
        [10..28, 9..22, 5..28] if scattered == 7 => SLAB,
        _ => 0,
    }
}

/// A face: its plane along an axis, its range along the two others, and whether it looks to higher coordinates.
struct Face {
    axis: usize,
    at: f32,
    low: [f32; 2],
    high: [f32; 2],
    looks_up: bool,
    block: usize,
}

/// The two axes beside one.
fn others(axis: usize) -> [usize; 2] {
    [(axis + 1) % 3, (axis + 2) % 3]
}

/// Faces by their planes: the axis, and the coordinate in sixteenths.
type Faces = BTreeMap<(usize, i32), Vec<Face>>;

/// All visible faces.
fn faces() -> Faces {
    let mut faces = Faces::new();
    let cells = (0..32).flat_map(|x| (0..32).flat_map(move |y| (0..32).map(move |z| [x, y, z])));
    for place in cells.filter(|place| block(*place) > 0) {
        let own = block(place);
        let height = match own {
            WATER if block([place[0], place[1] + 1, place[2]]) != WATER => 14.0 / 16.0,
            SLAB => 0.5,
            _ => 1.0,
        };
        for (axis, looks_up) in (0..3).flat_map(|axis| [(axis, false), (axis, true)]) {
            let mut beside = place;
            beside[axis] += if looks_up { 1 } else { -1 };
            // There is a gap between two slabs.
            if block(beside) == own && !(own == SLAB && axis == 1) {
                continue;
            }
            let top = |axis: usize| if axis == 1 { height } else { 1.0 };
            let start = place.map(|axis| axis as f32);
            let at = start[axis] + if looks_up { top(axis) } else { 0.0 };
            faces.entry((axis, (at * 16.0) as i32)).or_default().push(Face {
                axis,
                at,
                low: others(axis).map(|axis| start[axis]),
                high: others(axis).map(|axis| start[axis] + top(axis)),
                looks_up,
                block: own,
            });
        }
    }
    faces
}

fn linear(color: [u8; 3]) -> [f32; 3] {
    let LinearRgba { red, green, blue, .. } = Color::srgb_u8(color[0], color[1], color[2]).to_linear();
    [red, green, blue]
}

/// What a line of sight meets, laid over each other from far to near, or `None` if it passes an edge so closely that it is not clear.
fn seen(faces: &Faces, eye: Vec3, way: Vec3) -> Option<[f32; 3]> {
    /// In blocks.
    const CLOSE: f32 = 0.01;
    /// Nothing nearer is drawn.
    const NEAR: f32 = 0.1;
    let (eye, way) = (eye.to_array(), way.to_array());
    let mut met = Vec::new();
    for ((axis, _), faces) in faces {
        let distance = (faces[0].at - eye[*axis]) / way[*axis];
        if !(distance.is_finite() && distance > NEAR) {
            continue;
        }
        let [a, b] = others(*axis).map(|axis| eye[axis] + way[axis] * distance);
        for face in faces {
            let is_within = |grow: f32| {
                let is_within = |at: f32, axis: usize| face.low[axis] - grow < at && at < face.high[axis] + grow;
                is_within(a, 0) && is_within(b, 1)
            };
            if is_within(-CLOSE) {
                met.push((distance, (way[*axis] > 0.0) == face.looks_up, face));
            } else if is_within(CLOSE) {
                return None;
            }
        }
    }
    // Of two faces in one place, the one that looks at the camera belongs to the block behind.
    met.sort_by(|a, b| b.0.total_cmp(&a.0));
    for nearer in 1..met.len() {
        let [(far, is_back, _), (near, _, _)] = [&met[nearer - 1], &met[nearer]];
        if far - near < 1e-4 && *is_back {
            met.swap(nearer - 1, nearer);
        }
    }
    Some(met.iter().fold(linear(NOTHING), |behind, (_, _, face)| {
        let shade = match (face.axis, face.looks_up) {
            (1, true) => 1.0,
            (1, false) => 0.65,
            (0, _) => 0.9,
            _ => 0.82,
        };
        let own = linear(COLORS[face.block - 1]);
        std::array::from_fn(|channel| own[channel] * shade * ALPHA + behind[channel] * (1.0 - ALPHA))
    }))
}

fn directions() -> impl Iterator<Item = Vec3> {
    let sides = || [-1.0, 0.0, 1.0];
    let all = sides()
        .into_iter()
        .flat_map(move |x| sides().into_iter().flat_map(move |y| sides().map(|z| Vec3::new(x, y, z))));
    all.filter(|way| *way != Vec3::ZERO)
}

fn paints() -> Vec<Paint> {
    let shapes =
        [BlockShape::Cube, BlockShape::Cube, BlockShape::Cube, BlockShape::liquid(8).unwrap(), BlockShape::slab()];
    let blocks = shapes.into_iter().zip(["red", "green", "blue", "water", "slab"]);
    let paint = |((shape, name), [red, green, blue]): ((BlockShape, &str), [u8; 3])| {
        let block = BlockType::new(format!("test:{name}")).with_shape(shape).transparent();
        Paint::new(block, [red, green, blue, 128], RenderMode::Blended)
    };
    blocks.zip(COLORS).map(paint).collect()
}

/// The picture from each direction is compared with lines of sight through all faces.
fn check(name: &'static str, distance: f32, origin: impl Fn(Vec3) -> BlockPos) {
    let perspective = PerspectiveProjection { fov: FRAC_PI_2, ..default() };
    let camera = (Projection::Perspective(perspective), Msaa::Off);
    let plugin = ChunkRenderPlugin { ambient_occlusion: false, ..default() };
    let mut studio = Studio::new(name, SIZE, (paints(), Arc::new(block) as Scene), plugin, camera);
    let faces = faces();
    for direction in directions() {
        let eye = MIDDLE + direction.normalize() * distance + Vec3::new(0.03, 0.04, 0.05);
        let origin = origin(eye);
        let from = eye - Vec3::new(origin.x as f32, origin.y as f32, origin.z as f32);
        let up = if direction.x == 0.0 && direction.z == 0.0 { Vec3::Z } else { Vec3::Y };
        let view = Transform::from_translation(from).looking_to(-direction, up);
        studio.set_origin(origin);
        let picture = studio.shoot(view);
        let (mut compared, mut wrong) = (0, 0);
        for (x, y) in (0..SIZE.x).step_by(13).flat_map(|x| (0..SIZE.y).step_by(13).map(move |y| (x, y))) {
            let aspect = SIZE.x as f32 / SIZE.y as f32;
            let [right, up] =
                [(x as f32 + 0.5) / SIZE.x as f32, (y as f32 + 0.5) / SIZE.y as f32].map(|part| part * 2.0 - 1.0);
            let way = *view.forward() + view.right() * right * aspect - view.up() * up;
            let Some(expected) = seen(&faces, eye, way) else { continue };
            let pixel = &picture[((y * SIZE.x + x) * 4) as usize..][..3];
            let found = linear([pixel[0], pixel[1], pixel[2]]);
            let is_alike = (0..3).all(|channel| (expected[channel] - found[channel]).abs() < 0.03);
            (compared, wrong) = (compared + 1, wrong + usize::from(!is_alike));
        }
        assert!(compared > 60, "too few clear lines of sight from {direction}: {compared}");
        assert!(wrong == 0, "{name}: {wrong} of {compared} pixels from {direction} are in the wrong order");
    }
}

/// Promise, looks: Blended faces are in the right order within and across chunks, from 26 directions.
#[test]
fn glass_and_water_are_in_order_from_all_directions() {
    check("order", 22.0, |_| BlockPos::new(0, 0, 0));
}

/// Promise, looks: Blended faces are in the right order among what surrounds the camera.
#[test]
fn glass_and_water_are_in_order_around_the_camera() {
    check("order-within", 3.3, |_| BlockPos::new(0, 0, 0));
}

/// Promise, looks: Blended faces are sorted again when the camera moves together with the `RenderOrigin`.
#[test]
fn glass_and_water_are_in_order_when_the_origin_moves_with_the_camera() {
    check("order-origin", 22.0, |eye| {
        let block = eye.floor();
        BlockPos::new(block.x as i64, block.y as i64, block.z as i64)
    });
}
