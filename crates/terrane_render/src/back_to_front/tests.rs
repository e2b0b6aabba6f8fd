use super::super::RenderMode;
use super::super::block_mesher::Meshing;
use super::super::looks::{BlockLook, BlockLooks, LookTable};
use super::super::mesher;
use super::super::neighborhood::{Near, Neighborhood};
use super::super::quads::{OPEN_SKY, axes, salted};
use super::*;
use bevy::math::{DVec3, dvec3};
use bevy_terrane::block::{BlockId, BlockRegistry, BlockShape, BlockStates, BlockType};
use bevy_terrane::chunk::Chunk;
use bevy_terrane::space::ChunkPos;
use proptest::prelude::*;
use proptest::sample::Index;
use std::sync::Arc;

/// The corners of a quad, straight from its definition: lowest, along the width, along the height, both.
fn corners(quad: &Rectangle) -> [DVec3; 4] {
    let [along_width, along_height] = axes(quad.side);
    [0, 1, 2, 3].map(|number| {
        let (is_wide, is_high) = (number & 1 == 1, number & 2 == 2);
        let mut corner = quad.corner.map(f64::from);
        corner[along_width] += if is_wide { f64::from(quad.size[0]) } else { 0.0 };
        corner[along_height] += if is_high { f64::from(quad.size[1]) } else { 0.0 };
        corner[1] -= f64::from(quad.drops[number]);
        DVec3::from(corner)
    })
}

/// The distance at which a line of sight hits a quad, in multiples of `way`.
fn hit(eye: DVec3, way: DVec3, quad: &Rectangle) -> Option<f64> {
    let [lowest, wide, high, both] = corners(quad);
    [[lowest, wide, both], [lowest, both, high]].into_iter().find_map(|[a, b, c]| {
        let normal = (b - a).cross(c - a);
        let at = (a - eye).dot(normal) / way.dot(normal);
        let point = eye + way * at;
        let is_inside =
            [[a, b], [b, c], [c, a]].iter().all(|[from, to]| (*to - *from).cross(point - *from).dot(normal) > 0.0);
        (is_inside && at > 0.0).then_some(at)
    })
}

fn drawn(quads: &[Quad], order: &BackToFront, eye: DVec3) -> Vec<Rectangle> {
    let mut drawn = Vec::new();
    order.for_each(eye.as_vec3(), &mut |range| drawn.extend(quads[range].iter().map(|quad| Rectangle::unpack(*quad))));
    assert_eq!(drawn.len(), quads.len());
    drawn
}

/// Checks each pair of quads that a line of sight hits: the farther one is drawn first. Returns the number of pairs.
fn check(drawn: &[Rectangle], eye: DVec3, way: DVec3) -> Result<usize, TestCaseError> {
    let hits: Vec<_> = drawn.iter().filter_map(|quad| Some((hit(eye, way, quad)?, quad))).collect();
    for pair in hits.windows(2) {
        let [(first, far), (second, near)] = pair else { unreachable!("windows of two") };
        prop_assert!(*first > *second - 1e-6, "{near:?} is drawn after {far:?}, which is nearer to {eye}");
    }
    Ok(hits.len().saturating_sub(1))
}

fn straight(look: u16, side: u8, low: [u16; 3], size: [u16; 2]) -> Rectangle {
    let [along_width, along_height] = axes(side);
    let room = [256 - low[along_width], 256 - low[along_height]];
    let size = [0, 1].map(|axis| size[axis].min(room[axis]).max(1));
    let openness = [3, 2, 1, 0];
    Rectangle { corner: low, side, size, openness, look, drops: [0; 4], light: [OPEN_SKY; 4] }
}

fn place() -> impl Strategy<Value = DVec3> {
    let coordinate = || prop_oneof![-200.0..500.0_f64, (-1..18i32).prop_map(|block| f64::from(block) * 16.0)];
    [coordinate(), coordinate(), coordinate()].prop_map(|[x, y, z]| dvec3(x, y, z))
}

/// The lowest corner and the sides of rectangles, in sixteenths; half of them with whole blocks.
fn rectangles() -> impl Strategy<Value = Vec<Rectangle>> {
    let corner = [0..256_u16, 0..256_u16, 0..256_u16];
    let rectangle = (0..6_u8, corner, [1..256_u16, 1..256_u16], any::<bool>());
    prop::collection::vec(rectangle, 1..40).prop_map(|rectangles| {
        let numbered = (0..).zip(rectangles);
        numbered
            .map(|(look, (side, low, size, has_blocks))| {
                let round = |length: u16| if has_blocks { length & !15 } else { length };
                straight(look, side, low.map(round), size.map(|length| round(length).max(16)))
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Promise, looks: Blended faces along the axes are drawn from far to near, wherever the camera is, also if they are joined or
    /// cross each other.
    ///
    /// The model casts lines of sight from the eye to places on the quads.
    #[test]
    fn no_quad_is_drawn_before_one_that_it_can_hide(
        quads in rectangles(), eye in place(), targets in prop::collection::vec((any::<Index>(), 0.01..0.99_f64, 0.01..0.99_f64), 60),
    ) {
        let mut packed: Vec<Quad> = quads.iter().map(Rectangle::pack).collect();
        let order = BackToFront::new(&mut packed);
        let drawn = drawn(&packed, &order, eye);
        for (target, along_width, along_height) in targets {
            let target = target.get(&quads);
            let [lowest, wide, high, _] = corners(target);
            let point = lowest + (wide - lowest) * along_width + (high - lowest) * along_height;
            check(&drawn, eye, point - eye)?;
            // The parts of a quad cover it.
            let parts = drawn.iter().filter(|quad| quad.look == target.look);
            prop_assert!(parts.clone().all(|quad| target.covers(quad) && quad.side == target.side));
            let area = |quad: &Rectangle| u32::from(quad.size[0]) * u32::from(quad.size[1]);
            prop_assert_eq!(parts.map(area).sum::<u32>(), area(target));
        }
    }

    /// The order is the same until the eye passes a plane.
    #[test]
    fn the_order_belongs_to_the_cell(quads in rectangles(), eye in place(), step in [-9.0..9.0_f64, -9.0..9.0_f64, -9.0..9.0_f64]) {
        let mut packed: Vec<Quad> = quads.iter().map(Rectangle::pack).collect();
        let order = BackToFront::new(&mut packed);
        let next = eye + DVec3::from(step);
        let is_same_cell = order.cell(eye.as_vec3()) == order.cell(next.as_vec3());
        prop_assert!(!is_same_cell || drawn(&packed, &order, eye) == drawn(&packed, &order, next));
    }

    /// A chunk that a line of sight enters later is drawn before.
    #[test]
    fn chunks_are_farther_the_later_they_are_entered(eye in place(), way in [-1.0..1.0_f64, -1.0..1.0_f64, -1.0..1.0_f64]) {
        let (mut last, mut passed) = (None, 0);
        for step in 0..2_000 {
            let point = eye + DVec3::from(way) * f64::from(step) * 0.1;
            let corner = (point / 16.0).floor() * 16.0;
            let now = Some((distance((eye - corner).as_vec3()), corner));
            if now != last {
                prop_assert!(now.map(|now| now.0) > last.map(|last: (i64, DVec3)| last.0), "{corner}");
                passed += 1;
            }
            last = now;
        }
        prop_assert!(passed > 0);
    }

    #[test]
    fn swaps_bring_everything_to_its_place(order in Just((0..30).collect::<Vec<usize>>()).prop_shuffle()) {
        let mut items: Vec<usize> = (0..30).collect();
        let pairs: Vec<_> = order.iter().map(|from| ((), *from)).collect();
        permute(&pairs, |a, b| items.swap(a, b));
        prop_assert_eq!(items, order);
    }
}

/// Glass, ice, slabs, stairs, panes and water of three levels, all blended.
fn blended_world() -> (BlockRegistry, LookTable, Vec<BlockId>) {
    let mut registry = BlockRegistry::new();
    let water = BlockStates::new(BlockType::new("test:water").with_shape(BlockShape::liquid(8).unwrap()))
        .with_property("level", ["8", "5", "2"])
        .varied_by(|state| {
            let level = state.property("level").unwrap().parse().unwrap();
            state.with_shape(BlockShape::liquid(level).unwrap())
        });
    let mut blocks = registry.register_states(water).unwrap();
    for (name, shape) in [
        ("test:glass", BlockShape::Cube),
        ("test:ice", BlockShape::Cube),
        ("test:slab", BlockShape::slab()),
        ("test:pane", BlockShape::pane()),
        ("test:stairs", BlockShape::stairs()),
    ] {
        blocks.push(registry.register(BlockType::new(name).with_shape(shape).transparent()).unwrap());
    }
    let names = ["test:water", "test:glass", "test:ice", "test:slab", "test:pane", "test:stairs"];
    let look = |name: &str| (name.to_owned(), BlockLook { mode: RenderMode::Blended, ..BlockLook::all(name) });
    let looks = BlockLooks { blocks: names.into_iter().map(look).collect() };
    let table = LookTable::new(&registry, [&looks]);
    (registry, table, blocks)
}

fn meshed(chunk: Chunk, (registry, looks, _): &(BlockRegistry, LookTable, Vec<BlockId>)) -> (Vec<Quad>, BackToFront) {
    let chunk = Arc::new(chunk);
    let alone = Neighborhood::from_fn(|offset| if offset == [0; 3] { Near::Chunk(chunk.clone()) } else { Near::Air });
    let meshing = Meshing { meshers: Vec::new().into(), ambient_occlusion: true };
    let (meshed, _) = mesher::mesh(ChunkPos::new(1, 2, 3), &alone, (looks, registry), &meshing).unwrap();
    let [_, _, blended] = meshed;
    (blended.quads, blended.order.unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// Of chunks of blended blocks, sloping water included.
    #[test]
    fn no_face_of_a_block_is_drawn_before_one_that_it_can_hide(
        seed in any::<u64>(), fill in 1..8_u64, rough in 0..3_u32, eye in place(),
        targets in prop::collection::vec([0.0..256.0_f64, 0.0..256.0_f64, 0.0..256.0_f64], 24),
    ) {
        let world = blended_world();
        let block = |place: [usize; 3]| {
            let mixed = place.iter().fold(seed, |sum, axis| {
                (sum ^ (*axis as u64 >> rough)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
            });
            if mixed % 8 < fill { world.2[(mixed >> 8) as usize % world.2.len()] } else { BlockId::AIR }
        };
        let mut chunk = Chunk::from_fn(block);
        chunk.set_block([0; 3], world.2[0]);
        let (quads, order) = meshed(chunk, &world);
        let drawn = drawn(&quads, &order, eye);
        for target in targets {
            check(&drawn, eye, DVec3::from(target) - eye)?;
        }
    }
}

#[test]
fn a_lake_with_a_glass_block_on_its_ground_is_hardly_cut() {
    let world = blended_world();
    let [water, _, _, glass, ..] = world.2[..] else { panic!("eight blocks") };
    let lake = |[x, y, z]: [usize; 3]| match (x, y, z) {
        (3, 4, 3) => glass,
        (_, 4..8, _) => water,
        _ => BlockId::AIR,
    };
    let (quads, order) = meshed(Chunk::from_fn(lake), &world);
    let surface: Vec<_> = quads
        .iter()
        .map(|quad| Rectangle::unpack(*quad))
        .filter(|quad| quad.bounds() == [[0, 126, 0], [256, 126, 256]])
        .collect();
    assert_eq!(surface.len(), 1, "the surface is whole");
    // Whether the surface is drawn after each face of the glass.
    let is_after_glass = |eye: DVec3| {
        let drawn = drawn(&quads, &order, eye);
        let surface = drawn.iter().position(|quad| *quad == surface[0]).unwrap();
        let is_glass = |quad: &Rectangle| {
            let [low, high] = quad.bounds();
            (0..3).all(|axis| [48, 64, 48][axis] <= low[axis] && high[axis] <= [64, 80, 64][axis])
        };
        let faces = drawn.iter().enumerate().filter(|(_, quad)| is_glass(quad));
        faces.map(|(place, _)| place < surface).collect::<Vec<_>>()
    };
    // Each side of the glass has a face, and those towards the water have one of the water too.
    let (above, below) = (is_after_glass(dvec3(60.0, 300.0, 60.0)), is_after_glass(dvec3(200.0, 10.0, 200.0)));
    assert!(above.len() >= 6 && above.iter().all(|is_after| *is_after), "{above:?}");
    assert!(below.len() >= 6 && !below.iter().any(|is_after| *is_after), "{below:?}");
}

#[test]
fn of_two_faces_in_a_plane_the_one_that_looks_at_the_camera_is_drawn_first() {
    let faces = [3, 0].map(|side| straight(u16::from(side), side, [64, 0, 0], [16; 2]));
    let mut quads: Vec<Quad> = faces.iter().map(Rectangle::pack).collect();
    let order = BackToFront::new(&mut quads);
    let looks = |x: f64| drawn(&quads, &order, dvec3(x, 5.0, 5.0)).iter().map(|quad| quad.side).collect::<Vec<_>>();
    assert_eq!((looks(0.0), looks(100.0)), (vec![0, 3], vec![3, 0]));
}

#[test]
fn a_cut_face_keeps_its_light() {
    let mut face = straight(7, 4, [16, 32, 48], [64, 32]);
    (face.light, face.openness) = ([0x10, 0x5c, 0x10, 0x5c], [0, 2, 0, 2]);
    let [before, after] = face.cut(0, 32);
    assert_eq!(
        (before.corner, before.size, after.corner, after.size),
        ([16, 32, 48], [16, 32], [32, 32, 48], [48, 32])
    );
    assert_eq!((before.light, after.light), ([0x10, 0x23, 0x10, 0x23], [0x23, 0x5c, 0x23, 0x5c]));
    assert_eq!((before.openness, after.openness), ([0, 1, 0, 1], [1, 2, 1, 2]));
    let [before, after] = face.cut(2, 64);
    assert_eq!(
        (before.corner, before.size, after.corner, after.size),
        ([16, 32, 48], [64, 16], [16, 32, 64], [64, 16])
    );
    assert_eq!([before.light, after.light], [face.light; 2]);
}

#[test]
fn a_salt_changes_nothing_else() {
    let face = straight(7, 4, [16, 32, 48], [64, 32]);
    for salt in [0, 1, 0x80, 0xff] {
        assert_eq!(Rectangle::unpack(salted(face.pack(), salt)), face);
    }
    assert_eq!(salted(face.pack(), 0xff)[0] >> 30 | (salted(face.pack(), 0xff)[1] >> 26) << 2, 0xff);
}
